"""How a LORPMAN step grows with the number of tasks m, the rank r and the window b.

The step is b plain passes and the merge. Of the merge the formula says: for a weight of
``d x k``, forward and backward take ``6 b m r d k`` operations with one product of concatenated
factors, and ``6 m r d k`` plus traffic of ``b m d k`` if each ``B_i A_i`` is built once. The
first is an upper bound of what a chooser between them takes, so nothing may grow faster.
"""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from lorpman.bench.memory import peak_of_tensors
from lorpman.bench.timing import Conditions, interleave
from lorpman.manifold.low_rank import LowRank
from lorpman.nets.shared_bottom import SharedBottom
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


def growth(conditions: Conditions) -> dict[str, Any]:
    """Time and memory of a step along every axis, and what the formulas say."""
    places = {axis: [{**BASE, axis: value} for value in AXES[axis]] for axis in AXES}
    if conditions.quick:
        places = {axis: points[::2] for axis, points in places.items()}
    merged = _merge_seconds_of_base(conditions)
    return {
        "network": f"{_LAYERS} layers of {_WIDTH} x {_WIDTH}, batch {_BATCH}",
        "base": BASE,
        "axes": {axis: [_point(p, merged, conditions) for p in places[axis]] for axis in places},
    }


def _merge_seconds_of_base(conditions: Conditions) -> float:
    times = interleave(_contenders(**BASE), conditions)
    return _median(times["lorpman"]) - BASE["b"] * _median(times["plain"])


def _point(place: dict[str, int], merge_of_base: float, conditions: Conditions) -> dict[str, Any]:
    contenders = _contenders(**place)
    times = interleave(contenders, conditions)
    factor = (place["m"] * place["r"] * place["b"]) / (BASE["m"] * BASE["r"] * BASE["b"])
    plain = place["b"] * _median(times["plain"])
    return {
        **place,
        "seconds": _median(times["lorpman"]),
        "plain seconds": plain,
        "expected seconds": plain + merge_of_base * factor,
        "bytes": peak_of_tensors(contenders["lorpman"]) + _held_bytes(**place),
        "expected bytes": expected_bytes(**place),
        "rounds": times,
    }


def _contenders(m: int, r: int, b: int) -> dict[str, Callable[[], object]]:
    """A plain pass, and a LORPMAN step, on a network of square layers with m small heads."""
    torch.manual_seed(0)
    layers = [part for _ in range(_LAYERS) for part in (nn.Linear(_WIDTH, _WIDTH), nn.ReLU())]
    heads = [nn.Linear(_WIDTH, _CLASSES) for _ in range(m)]
    network = SharedBottom(nn.Sequential(*layers), heads)
    model = LowRank(network, m, rank=r)
    tasks = [Task(str(i), F.cross_entropy, lambda output, target: output[:, 0]) for i in range(m)]
    x = torch.rand(_BATCH, _WIDTH)
    targets = [torch.randint(_CLASSES, (_BATCH,)) for _ in range(m)]

    def backward(module: nn.Module, losses: Tensor) -> None:
        module.zero_grad()
        losses.sum().backward()

    def plain() -> None:
        backward(network, task_losses(network(x), targets, tasks))

    def lorpman() -> None:
        alphas = dirichlet(m, b)
        outputs = model(x, alphas)
        rows = [task_losses([out[j] for out in outputs], targets, tasks) for j in range(b)]
        backward(model, alphas * torch.stack(rows))

    return {"plain": plain, "lorpman": lorpman}


def _weights(m: int) -> int:
    return _LAYERS * (_WIDTH * _WIDTH + _WIDTH) + m * _CLASSES * (_WIDTH + 1)


def _factors(m: int, r: int) -> int:
    return _LAYERS * 2 * _WIDTH * m * r


def _held_bytes(m: int, r: int, b: int) -> int:
    """Parameters and gradients, which are there before a step that is measured."""
    del b
    return 2 * _FLOAT * (_weights(m) + _factors(m, r))


def expected_bytes(m: int, r: int, b: int) -> int:
    """By the formula: parameters, gradients, b merged weights, b passes' activations.

    Of the b merged weights of all layers the values live until the backward pass, where their
    gradients join them layer by layer: one more layer at a time. Products of one layer, with
    factors scaled by b preferences, come on top.
    """
    merged = b * _LAYERS * _WIDTH * _WIDTH
    scaled = b * _LAYERS * _WIDTH * m * r
    one_layer = b * _WIDTH * _WIDTH + b * _WIDTH * m * r
    activations = b * _BATCH * (2 * _LAYERS * _WIDTH + 3 * m * _CLASSES)
    return _held_bytes(m, r, b) + _FLOAT * (merged + scaled + one_layer + activations)


def _median(values: list[float]) -> float:
    return sorted(values)[len(values) // 2]
