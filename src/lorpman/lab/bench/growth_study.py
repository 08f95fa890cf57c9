"""How a LORPMAN step grows with the number of tasks m, the rank r and the window b.

A step is b plain passes and the merge. For a weight of ``d x k`` the merge takes, forward and
backward, ``6 b m r d k`` operations in products of concatenated factors, and reads and writes
``b d k`` numbers a fixed number of times. (Building each ``B_i A_i`` once takes ``6 m r d k``
operations and ``b m d k`` numbers; a chooser takes the smaller.) Besides, the outputs of m heads
at b preferences are put together and taken apart. So

    seconds = b * plain + p * b m r + q * b + s * b m

with three constants of the machine, which are fitted to all points of all axes together. They are
multiplied by how slow the machine is at that moment, which the plain passes tell that take turns
with the steps. Nothing may grow faster than that.
"""

import statistics
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

from lorpman.lab.bench.memory_row import peak_of_tensors
from lorpman.lab.bench.timing import Conditions, interleave
from lorpman.manifold.low_rank import LowRank
from lorpman.manifold.merge import cheapest
from lorpman.manifold.shared_bottom import SharedBottom
from lorpman.preference import dirichlet
from lorpman.task import Task, task_losses

AXES = {
    "m": (2, 5, 10, 20, 40),
    "r": (2, 4, 8, 16, 32),
    "b": (1, 2, 4, 8, 16),
}
BASE = {"m": 10, "r": 8, "b": 4}
NAMES = {"m": "tasks m", "r": "rank r", "b": "preferences per step b"}
_WIDTH, _LAYERS, _BATCH, _CLASSES = 512, 3, 128, 2
_FLOAT = 4
# Rows of every B_i A_i that the merge by pairs holds at once.
_ROWS_AT_ONCE = 128
TOLERANCE = 1.15
"""A time above the formula by less is noise."""


def growth(conditions: Conditions) -> dict[str, Any]:
    """Time and memory of a step along every axis, and what the formulas say.

    Args:
        conditions: How to measure; a quick run takes every second point.

    Returns:
        By axis, for each point: its place, and the measured and expected seconds and bytes.
    """
    places = {axis: [{**BASE, axis: value} for value in AXES[axis]] for axis in AXES}
    if conditions.quick:
        places = {axis: points[::2] for axis, points in places.items()}
    measured = {axis: [_point(p, conditions) for p in places[axis]] for axis in places}
    _expect(measured)
    return {
        "network": f"{_LAYERS} layers of {_WIDTH} x {_WIDTH}, batch {_BATCH}",
        "base": BASE,
        "axes": measured,
    }


def _point(place: dict[str, int], conditions: Conditions) -> dict[str, Any]:
    contenders = _contenders(**place)
    clear = contenders.pop("clear")
    times = interleave(contenders, conditions)
    # Nothing may be there that the measured step frees: it would be taken off its peak.
    clear()
    return {
        **place,
        "seconds": statistics.median(times["lorpman"]),
        "plain seconds": place["b"] * statistics.median(times["plain"]),
        "bytes": peak_of_tensors(contenders["lorpman"]) + parameter_bytes(**place),
        "expected bytes": expected_bytes(**place),
        "rounds": times,
    }


def _expect(measured: dict[str, list[dict[str, Any]]]) -> None:
    """Add to every point what the formula says, with the best constants for all of them."""
    from scipy.optimize import nnls

    points = [point for axis in measured.values() for point in axis]
    plain = np.array([p["plain seconds"] for p in points])
    speed = _speed(points)
    work = speed[:, None] * np.array(
        [[p["b"] * p["m"] * p["r"], p["b"], p["b"] * p["m"]] for p in points], dtype=float
    )
    seconds = np.array([p["seconds"] for p in points])
    # Relative errors count, or the largest points would decide alone.
    # And none is negative: no part of a step gives time back.
    constants, _ = nnls(work / seconds[:, None], (seconds - plain) / seconds)
    for point, expected in zip(points, plain + work @ constants, strict=True):
        point["expected seconds"] = float(expected)


def _speed(points: list[dict[str, Any]]) -> "np.ndarray[Any, np.dtype[np.float64]]":
    """How slow the machine was at each point.

    A plain pass depends on the number of heads alone, so all of them should lie on one line; how
    far one is above it says how slow the machine was.
    """
    from scipy.optimize import nnls

    plain = np.array([p["plain seconds"] / p["b"] for p in points])
    heads = np.array([[1.0, p["m"]] for p in points])
    line, _ = nnls(heads / plain[:, None], np.ones(len(plain)))
    return plain / (heads @ line)


def _contenders(m: int, r: int, b: int) -> dict[str, Callable[[], object]]:
    """A plain pass, and a LORPMAN step, on a network of square layers with m small heads.

    No layer reads the data itself: it would grow less than the formula.
    """
    torch.manual_seed(0)
    layers = [part for _ in range(_LAYERS) for part in (nn.ReLU(), nn.Linear(_WIDTH, _WIDTH))]
    heads = [nn.Linear(_WIDTH, _CLASSES) for _ in range(m)]
    network = SharedBottom(nn.Sequential(*layers), heads)
    model = LowRank(network, m, rank=r)
    tasks = [Task(str(i), F.cross_entropy, lambda output, target: output[:, 0]) for i in range(m)]
    x = torch.rand(_BATCH, _WIDTH)
    targets = [torch.randint(_CLASSES, (_BATCH,)) for _ in range(m)]

    def plain() -> None:
        network.zero_grad()
        task_losses(network(x), targets, tasks).sum().backward()

    def lorpman() -> None:
        model.zero_grad()
        alphas = dirichlet(m, b)
        outputs = model(x, alphas)
        rows = [task_losses([out[j] for out in outputs], targets, tasks) for j in range(b)]
        (alphas * torch.stack(rows)).sum().backward()

    return {"plain": plain, "lorpman": lorpman, "clear": model.zero_grad}


def _weights(m: int) -> int:
    return _LAYERS * (_WIDTH * _WIDTH + _WIDTH) + m * _CLASSES * (_WIDTH + 1)


def _factors(m: int, r: int) -> int:
    return _LAYERS * 2 * _WIDTH * m * r


def parameter_bytes(m: int, r: int, b: int) -> int:
    """Bytes of the parameters, which are there before a step, whatever the window ``b``.

    Args:
        m: The number of tasks.
        r: The rank.
        b: Not used: it is here so that a point ``{m, r, b}`` can be passed as keywords.
    """
    del b
    return _FLOAT * (_weights(m) + _factors(m, r))


def expected_bytes(m: int, r: int, b: int) -> int:
    """By the formula: the larger of what lives when the backward pass begins and when it ends.

    First: the parameters, b merged weights of all layers, b passes' activations, the gradients
    of one layer's b weights. Last: the parameters, their gradients, and one layer's b weights
    with their gradients. In both, what the merge of one layer works in.

    Args:
        m: The number of tasks.
        r: The rank.
        b: The number of preferences per step.
    """
    layer = b * _WIDTH * _WIDTH
    activations = b * _BATCH * ((_LAYERS + 1) * _WIDTH + 3 * m * _CLASSES)
    workspace = _WIDTH * m * (_ROWS_AT_ONCE if cheapest(b, r) == "pairs" else b * r)
    first = _LAYERS * layer + activations + layer
    last = _weights(m) + _factors(m, r) + 2 * layer
    return parameter_bytes(m, r, b) + _FLOAT * (max(first, last) + workspace)


def above(points: list[dict[str, Any]], what: str) -> list[dict[str, Any]]:
    """Find what grows faster than it should.

    Args:
        points: Those of one axis.
        what: ``seconds`` or ``bytes``.

    Returns:
        The points where it is clearly more than the formula says.
    """
    return [p for p in points if p[what] > TOLERANCE * p[f"expected {what}"]]


def markdown(study: dict[str, Any]) -> str:
    """The study as a table, and whether anything grows faster than it should.

    Args:
        study: What :func:`growth` gave.
    """
    head = ["| axis | value | ms | formula | MiB | formula |", "|---|---|---|---|---|---|"]
    body = [
        f"| {axis} | {p[axis]} | {1e3 * p['seconds']:.1f} | {1e3 * p['expected seconds']:.1f} | "
        f"{p['bytes'] / 2**20:.1f} | {p['expected bytes'] / 2**20:.1f} |"
        for axis, points in study["axes"].items()
        for p in points
    ]
    above_formula = [
        f"{what} at {axis}={p[axis]}"
        for axis, points in study["axes"].items()
        for what in ("seconds", "bytes")
        for p in above(points, what)
    ]
    named = ", ".join(above_formula) or "nothing"
    said = f"Above the formula by more than {TOLERANCE - 1:.0%}: {named}."
    return "\n".join([*head, *body, "", said])
