"""Valid calls of every public callable, and garbage to put in the place of their arguments."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from hypothesis import strategies as st
from torch import nn
from torch.nn import functional as F

import lorpman as lp

ALPHA = (0.25, 0.75)


@dataclass(frozen=True)
class Call:
    """A call that works: what is called, and how its arguments are made."""

    target: Callable[..., Any]
    make: Callable[[Path], dict[str, Any]]
    keep: tuple[str, ...] = ()
    """Arguments that are not replaced: they run code of the user's own, whose errors are theirs."""


def network(num_tasks=2):
    bottom = nn.Sequential(nn.Linear(3, 4), nn.ReLU())
    return lp.SharedBottom(bottom, [nn.Linear(4, 1) for _ in range(num_tasks)])


def tasks():
    return [lp.Task(n, F.mse_loss, F.mse_loss, maximise=False, reference=9.0) for n in "ab"]


def loader():
    x = torch.linspace(-1, 1, 12).reshape(4, 3)
    return [(x, [x[:, :1], -x[:, :1]])]


def model():
    return lp.LowRank(network(), 2, rank=2)


def front():
    return {
        "alphas": torch.eye(2),
        "scores": torch.tensor([[0.9, 0.5], [0.5, 0.9]]),
        "tasks": ("a", "b"),
        "maximise": (True, True),
        "reference": (0.0, 0.0),
        "losses": None,
        "label": "front",
    }


def objective_inputs(_folder):
    losses = torch.tensor([[1.0, 2.0], [2.0, 1.0]], requires_grad=True)
    return {"alphas": torch.tensor([ALPHA, ALPHA[::-1]]), "losses": losses, "model": model()}


def _method(make, name):
    """A call of a method: the object is made anew each time."""

    def call(**arguments):
        return getattr(make(), name)(**arguments)

    return call


def _evaluated(_folder):
    return {"model": model(), "tasks": tasks(), "loader": loader()}


def _fitted(folder):
    return {
        **_evaluated(folder),
        "epochs": 1,
        "objective": lp.Linear() + 0.1 * lp.MultiForward(),
        "window": 2,
        "concentration": 1.0,
        "sampler": None,
        "freeze_epoch": None,
        "freeze_heads": False,
        "optimizer": None,
        "scheduler": None,
        "scheduler_interval": "epoch",
        "averaging": 0.0,
        "validation": None,
        "seed": 0,
        "placement": None,
        "checkpoint": folder / "c.safetensors",
        "checkpoint_every": 1,
        "resume": False,
    }


CALLS = {
    "LowRank": Call(
        lp.LowRank,
        lambda _: {
            "network": network(),
            "num_tasks": 2,
            "rank": 2,
            "scale": 1.0,
            "shared": None,
            "merge": "auto",
            "budget": None,
        },
    ),
    "LowRank.from_models": Call(
        lp.LowRank.from_models,
        lambda _: {"models": [network(), network()], "rank": 2, "scale": 1.0, "shared": None},
    ),
    "Convex": Call(
        lp.Convex, lambda _: {"network": network(), "num_tasks": 2, "fixed": None, "shared": None}
    ),
    "Hyper": Call(
        lp.Hyper,
        lambda _: {
            "network": network(),
            "num_tasks": 2,
            "hidden": 3,
            "dropout": 0.0,
            "memory": None,
        },
    ),
    "ChunkedHyper": Call(
        lp.ChunkedHyper,
        lambda _: {
            "network": network(),
            "num_tasks": 2,
            "hidden": 3,
            "matrices": 2,
            "block": 5,
        },
    ),
    "Cosmos": Call(lp.Cosmos, lambda _: {"network": network(), "num_tasks": 2, "layer": None}),
    "Film": Call(lp.Film, lambda _: {"network": network(), "num_tasks": 2, "stages": None}),
    "Single": Call(lp.Single, lambda _: {"network": network(), "num_tasks": 2, "shared": None}),
    "Population": Call(
        lp.Population, lambda _: {"network": network(), "alphas": torch.eye(2), "shared": None}
    ),
    "Learned": Call(lp.Learned, lambda _: {"inner": model(), "count": 3}),
    "SharedBottom": Call(
        lp.SharedBottom, lambda _: {"bottom": nn.Linear(3, 4), "heads": [nn.Linear(4, 1)]}
    ),
    "Task": Call(
        lp.Task,
        lambda _: {
            "name": "a",
            "loss": F.mse_loss,
            "score": F.mse_loss,
            "maximise": False,
            "reference": 1.0,
        },
    ),
    "Dirichlet": Call(lp.Dirichlet, lambda _: {"concentration": 1.0}),
    "Stratified": Call(lp.Stratified, lambda _: {"concentration": 1.0}),
    "as_preference": Call(lp.as_preference, lambda _: {"alpha": ALPHA, "num_tasks": 2}),
    "dirichlet": Call(
        lp.dirichlet, lambda _: {"m": 2, "n": 3, "concentration": 1.0, "generator": None}
    ),
    "grid": Call(lp.grid, lambda _: {"m": 3, "n": 7}),
    "accuracy": Call(
        lp.accuracy, lambda _: {"output": torch.eye(3), "target": torch.tensor([0, 1, 1])}
    ),
    "hypervolume": Call(
        lp.hypervolume,
        lambda _: {"points": torch.rand(4, 2), "reference": [0.0, 0.0], "maximise": True},
    ),
    "hypervolume_gradient": Call(
        lp.hypervolume_gradient,
        lambda _: {"points": torch.rand(4, 2), "reference": [1.0, 1.0]},
    ),
    "Front": Call(lp.Front, lambda _: front()),
    "Front.select": Call(
        _method(lambda: lp.Front(**front()), "select"),
        lambda _: {"at_least": {"a": 0.6}, "at_most": None, "best": "b", "knee": False},
    ),
    "Front.plot": Call(
        _method(lambda: lp.Front(**front()), "plot"),
        lambda folder: {"path": folder / "front.svg", "title": None},
    ),
    "Front.save": Call(
        _method(lambda: lp.Front(**front()), "save"), lambda folder: {"path": folder / "f.json"}
    ),
    "Front.load": Call(lp.Front.load, lambda folder: {"path": folder / "absent.json"}),
    "Checkpoints": Call(
        lp.Checkpoints, lambda folder: {"path": folder / "c", "every": 1, "resume": False}
    ),
    "Placement": Call(lp.Placement, lambda _: {"fabric": None, "compiled": False}),
    "Validation": Call(lp.Validation, lambda _: {"loader": loader(), "alphas": None}),
    "Linear": Call(lp.Linear(), objective_inputs),
    "Chebyshev": Call(lp.Chebyshev(), objective_inputs),
    "SmoothChebyshev": Call(lp.SmoothChebyshev, lambda _: {}),
    "MultiForward": Call(lp.MultiForward(), objective_inputs),
    "Orthogonality": Call(lp.Orthogonality(), objective_inputs),
    "evaluate": Call(lp.evaluate, lambda f: {**_evaluated(f), "alphas": None, "label": ""}),
    "select": Call(
        lp.select,
        lambda f: {**_evaluated(f), "best": "a", "at_most": {"b": 1.0}, "evaluations": 2},
    ),
    "export": Call(
        lp.export,
        lambda f: {
            "model": model(),
            "alpha": ALPHA,
            "to": f / "m.safetensors",
            "outputs": None,
            "card": None,
        },
    ),
    "recalibrate": Call(
        lp.recalibrate,
        lambda _: {
            "network": nn.BatchNorm1d(3),
            "batches": [torch.randn(4, 3), torch.randn(4, 3)],
            "limit": 1,
        },
        keep=("batches",),
    ),
    # A trillion epochs would be trained.
    "fit": Call(lp.fit, _fitted, keep=("epochs",)),
    "theta": Call(_method(model, "theta"), lambda _: {"alpha": ALPHA}),
    "solution": Call(_method(model, "solution"), lambda _: {"alpha": ALPHA}),
    "forward": Call(
        _method(model, "__call__"), lambda _: {"x": torch.zeros(2, 3), "alpha": ALPHA}, keep=("x",)
    ),
}
"""By the public name; calls of methods by their own."""

_DTYPES = (
    torch.float32,
    torch.float64,
    torch.float16,
    torch.bfloat16,
    torch.complex64,
    torch.int64,
    torch.uint8,
    torch.bool,
)
_NUMBERS = (
    st.integers(-3, 40)
    | st.sampled_from([10**12, -(10**12), 2**63, 10**400])
    | st.floats(allow_nan=True, allow_infinity=True)
    | st.booleans()
)


@st.composite
def tensors(draw):
    """Of any small shape, type, device and value, with or without gradients."""
    shape = draw(st.lists(st.integers(0, 4), max_size=4))
    dtype, device = draw(st.sampled_from(_DTYPES)), draw(st.sampled_from(["cpu", "cpu", "meta"]))
    fill = draw(st.sampled_from([0.0, 0.5, 1.0, -1.0, float("nan"), float("inf")]))
    if not (dtype.is_floating_point or dtype.is_complex):
        fill = int(fill) if fill == fill and abs(fill) < 2 else 1
        fill = abs(fill) if dtype == torch.uint8 else fill
    value = torch.full(shape, fill, dtype=dtype, device=device)
    if value.is_floating_point() and draw(st.booleans()):
        value.requires_grad_(True)
    return value


_SIMPLE = (
    st.none()
    | _NUMBERS
    | st.text(max_size=5)
    | st.binary(max_size=3)
    | tensors()
    | st.sampled_from(
        [
            object,
            nn.Linear,
            nn.Identity(),
            nn.Linear(2, 2),
            nn.LazyLinear(2),
            nn.Linear(2, 2, device="meta"),
            nn.Embedding(3, 2, sparse=True),
            nn.Linear(2, 2, dtype=torch.complex64),
            len,
            print,
            torch.float32,
            torch.Generator(),
            Path("nowhere/at/all"),
            range(3),
            iter([]),
        ]
    )
)
_MAPPINGS = st.dictionaries(st.text(max_size=2), _SIMPLE, max_size=2)
GARBAGE = _SIMPLE | st.lists(_SIMPLE, max_size=3) | _MAPPINGS
"""What people and programs pass by mistake."""
