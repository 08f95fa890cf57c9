"""A problem of one's own, small enough to train in a second: as an object, and as a file."""

import torch
from torch import nn
from torch.nn import functional as F

import lorpman as lp

SOURCE = """
import torch
from torch import nn
from torch.nn import functional as F

import lorpman as lp


def load():
    x = torch.randn(60, 4, generator=torch.Generator().manual_seed(0))

    def part(start, end):
        return x[start:end], [x[start:end, :1], (x[start:end, 1] > 0).long()]

    return lp.Splits(train=part(0, 40), validation=part(40, 50), test=part(50, 60))


def network():
    return lp.SharedBottom(nn.Linear(4, 8), [nn.Linear(8, 1), nn.Linear(8, 2)])


PROBLEM = lp.Problem(
    name="small",
    tasks=[
        lp.Task("number", F.mse_loss, F.mse_loss, maximise=False, reference=4.0),
        lp.Task("sign", F.cross_entropy, lp.accuracy),
    ],
    network=network,
    data=load,
    settings={"epochs": 2, "batch_size": 20, "rank": 2},
)
"""
"""A whole file; its problem is called small."""


def load():
    """60 rows of 4 numbers; the first of them, and the sign of the second, are the targets."""
    x = torch.randn(60, 4, generator=torch.Generator().manual_seed(0))

    def part(start, end):
        return x[start:end], [x[start:end, :1], (x[start:end, 1] > 0).long()]

    return lp.Splits(train=part(0, 40), validation=part(40, 50), test=part(50, 60))


def network():
    """One layer for both tasks."""
    return lp.SharedBottom(nn.Linear(4, 8), [nn.Linear(8, 1), nn.Linear(8, 2)])


TASKS = [
    lp.Task("number", F.mse_loss, F.mse_loss, maximise=False, reference=4.0),
    lp.Task("sign", F.cross_entropy, lp.accuracy),
]


def small_problem(**changes):
    """The problem, with some parts changed."""
    parts = {
        "name": "small",
        "tasks": TASKS,
        "network": network,
        "data": load,
        "settings": {"epochs": 2, "batch_size": 20, "rank": 2},
    }
    return lp.Problem(**{**parts, **changes})
