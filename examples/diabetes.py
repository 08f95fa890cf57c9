"""A table that nobody made for this: how far diabetes goes within a year, asked in two ways.

Scikit-learn's data, 442 patients: the progression as a number, and whether it is in the upper
quarter, which is what a clinic would act on. The second answer is missing for every fifth patient,
as labels are in life. Compare the front with what one would do without it:

    lorpman compare examples/diabetes.py --methods lorpman,pamal,nash-mtl,retrain --seeds 0
"""

import torch
from sklearn.datasets import load_diabetes
from torch import nn
from torch.nn import functional as F

import lorpman as lp


def load() -> lp.Splits:
    """265 patients to learn from, 88 and 89 to choose and to report on."""
    table, progression = load_diabetes(return_X_y=True)
    x = torch.tensor(table, dtype=torch.float32) * 20  # from a norm of 1 to a deviation of 1
    y = torch.tensor(progression, dtype=torch.float32)[:, None]
    number = (y - y.mean()) / y.std()
    severe = (y[:, 0] > y.quantile(0.75)).long()
    severe[::5] = -1
    order = torch.randperm(len(x), generator=torch.Generator().manual_seed(0))
    parts = order.split([265, 88, 89])
    return lp.Splits(
        *((x[rows], {"number": number[rows], "severe": severe[rows]}) for rows in parts)
    )


def network() -> nn.Module:
    """A narrow bottom, for which the two questions compete."""
    bottom = nn.Sequential(nn.Linear(10, 16), nn.ReLU(), nn.Linear(16, 4), nn.ReLU())
    return lp.SharedBottom(bottom, [nn.Linear(4, 1), nn.Linear(4, 2)])


PROBLEM = lp.Problem(
    name="diabetes",
    summary="the progression of diabetes as a number and as a yes or no, 2 tasks",
    tasks=[
        lp.Task("number", F.mse_loss, F.mse_loss, maximise=False, reference=1.5),
        lp.Task("severe", F.cross_entropy, lp.accuracy, missing=-1),
    ],
    network=network,
    data=load,
    settings={"epochs": 30, "batch_size": 32, "learning_rate": 3e-3, "rank": 4, "lambda_p": 1.0},
)
