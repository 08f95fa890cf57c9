"""Problems with a Pareto front known in closed form: the network is nothing but a point.

Methods are checked against them. VLMOP2, ZDT1 and ZDT2 are standard test problems.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from lorpman.lab.datasets import no_data
from lorpman.lab.problems.preset import read_preset
from lorpman.lab.problems.problem import Problem
from lorpman.task import Task

_STEPS_PER_EPOCH = 20
_SIZE = 10


def vlmop2(x: Tensor) -> Tensor:
    """``f = 1 - exp(-|x -+ 1 / sqrt(n)|^2)`` at ``x [..., n]``: a concave front, ``[..., 2]``.

    Args:
        x: The points.

    >>> vlmop2(torch.full((4,), 0.5))
    tensor([0.0000, 0.9817])
    """
    centre = 1 / math.sqrt(x.shape[-1])
    distances = torch.stack([(x - centre).square().sum(-1), (x + centre).square().sum(-1)], -1)
    # 1 - exp(-d) would lose all digits near its minimum, where d is tiny.
    return -torch.expm1(-distances)


def zdt1(x: Tensor) -> Tensor:
    """``f = (x_1, g (1 - sqrt(x_1 / g)))`` for ``x [..., n]`` in the unit box, ``[..., 2]``.

    ``g = 1 + 9 mean(x_2, ..., x_n)``, so the front is ``f_2 = 1 - sqrt(f_1)``, at ``g = 1``.

    Args:
        x: The points.
    """
    first, g = x[..., 0], 1 + 9 * x[..., 1:].mean(-1)
    # The slope of the root is infinite at zero; a hair above, it is finite.
    return torch.stack([first, g - (first * g + 1e-12).sqrt()], -1)


def zdt2(x: Tensor) -> Tensor:
    """As :func:`zdt1`, but ``f_2 = g (1 - (x_1 / g)^2)``: the front ``1 - f_1^2`` is concave.

    Args:
        x: The points.

    >>> zdt2(torch.tensor([0.5, 0.0, 0.0]))
    tensor([0.5000, 0.7500])
    """
    first, g = x[..., 0], 1 + 9 * x[..., 1:].mean(-1)
    return torch.stack([first, g - first.square() / g], -1)


def quadratic(x: Tensor) -> Tensor:
    """``f = |x -+ a|^2`` with ``|2 a| = 1`` at ``x [..., n]``, ``[..., 2]``.

    The front is convex: ``sqrt(f_1) + sqrt(f_2) = 1``.

    Args:
        x: The points.
    """
    a = 0.5 / math.sqrt(x.shape[-1])
    return torch.stack([(x - a).square().sum(-1), (x + a).square().sum(-1)], -1)


def ellipses(x: Tensor) -> Tensor:
    """``f = |D (x - a)|^2, |D' (x + a)|^2``, the diagonals D from 1 to 1/2 and D' from 1/2 to 1.

    With ``|2 a| = 1``, at ``x [..., n]``, ``[..., 2]``. The front is convex; the set of best
    points is a curve, since the two bowls are long in different directions.

    Args:
        x: The points.
    """
    a, first, second = _bowls(x)
    f = [(first * (x - a).square()).sum(-1), (second * (x + a).square()).sum(-1)]
    return torch.stack(f, -1)


def _bowls(x: Tensor) -> tuple[float, Tensor, Tensor]:
    """The centre of the first bowl, and the curvatures of both, ``[n]``, for ``x [..., n]``."""
    n = x.shape[-1]
    steep = torch.linspace(1, 0.5, n, dtype=x.dtype, device=x.device).square()
    return 0.5 / math.sqrt(n), steep, steep.flip(0)


def _ellipses_front(t: Tensor) -> Tensor:
    """Where ``t grad f_1 + (1 - t) grad f_2 = 0``."""
    a, first, second = _bowls(t.new_empty(_SIZE))
    towards, away = t[:, None] * first, (1 - t[:, None]) * second
    return ellipses(a * (towards - away) / (towards + away))


@dataclass(frozen=True)
class KnownFront:
    """Two objectives of a point, and their front.

    Args:
        objectives: From points ``[..., n]`` to losses ``[..., 2]``.
        front: Points of the front ``[k, 2]`` at ``t [k]`` from 0 (best ``f_2``) to 1 (best
            ``f_1``).
        size: How many numbers a point has.
        start: Fresh points are uniform in a cube of this half width (see :class:`Point` for a
            box).
        box: Whether points lie in the unit box.
        worst: A loss beyond every point of the front, the reference of the hypervolume.
        summary: One line for ``lorpman problems``.
    """

    objectives: Callable[[Tensor], Tensor]
    front: Callable[[Tensor], Tensor]
    size: int
    start: float
    box: bool
    worst: float
    summary: str


def _line(objectives: Callable[[Tensor], Tensor], n: int, end: float) -> Callable[[Tensor], Tensor]:
    return lambda t: objectives(((2 * t - 1) * end)[:, None].expand(-1, n))


KNOWN = {
    "vlmop2": KnownFront(
        vlmop2,
        _line(vlmop2, _SIZE, 1 / math.sqrt(_SIZE)),
        _SIZE,
        0.3,
        False,
        1.0,
        "a point of 10 numbers, 2 objectives, a concave front",
    ),
    "zdt1": KnownFront(
        zdt1,
        lambda t: torch.stack([(1 - t).square(), t], 1),
        _SIZE,
        0.4,
        True,
        1.1,
        "a point of the unit box, 10 numbers, 2 objectives, a convex front",
    ),
    "zdt2": KnownFront(
        zdt2,
        lambda t: torch.stack([1 - t, 1 - (1 - t).square()], 1),
        _SIZE,
        0.4,
        True,
        1.1,
        "a point of the unit box, 10 numbers, 2 objectives, a concave front",
    ),
    "quadratic": KnownFront(
        quadratic,
        _line(quadratic, _SIZE, 0.5 / math.sqrt(_SIZE)),
        _SIZE,
        0.5,
        False,
        1.0,
        "a point of 10 numbers, 2 quadratic objectives, a convex front",
    ),
    "ellipses": KnownFront(
        ellipses,
        _ellipses_front,
        _SIZE,
        0.5,
        False,
        1.0,
        "a point of 10 numbers, 2 stretched bowls, a convex front over a curved set",
    ),
}


class Point(nn.Module):
    """A point, given out once per sample of the (empty) input.

    A ``1 x n`` matrix, so that it can have low-rank deltas. In a ``box`` the point is the squared
    sine of the numbers that are learned: it reaches the bounds, where a sigmoid would not, and
    its slope there is zero, so that a point on a bound may stay. There the first number, which
    decides the place on the front, starts anywhere, and the others near zero: from farther
    away, methods of common descent stop at ``f_1 = 0``, which is weakly optimal.

    Args:
        size: The number n of coordinates.
        start: The learned numbers start at random within this distance of zero.
        box: Whether the point stays in the unit box.
    """

    def __init__(self, size: int, start: float, box: bool) -> None:
        super().__init__()
        self.start, self.box = start, box
        self.numbers = nn.Parameter(torch.empty(1, size))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw a fresh start."""
        low = 0.0 if self.box else -self.start
        nn.init.uniform_(self.numbers, low, self.start)
        if self.box:
            nn.init.uniform_(self.numbers[:, :1], 0.2, math.pi / 2)

    def point(self) -> Tensor:
        """The point itself, ``[n]``."""
        return self.numbers[0].sin().square() if self.box else self.numbers[0]

    def forward(self, x: Tensor) -> list[Tensor]:
        """The point for every sample and both tasks, twice ``[len(x), n]``.

        Args:
            x: The samples, of which only the number counts.
        """
        return [self.point().expand(len(x), -1)] * 2


def distance_to_front(losses: Tensor, known: KnownFront, n: int = 20_001) -> Tensor:
    """How far losses are from a front.

    Args:
        losses: ``[k, 2]``.
        known: The front.
        n: The number of points that stand for it.

    Returns:
        Euclidean distances, ``[k]``.
    """
    front = known.front(torch.linspace(0, 1, n, dtype=torch.float64))
    return torch.cdist(losses.double(), front).amin(1)


def make_problem(name: str) -> Problem:
    """The problem with that known front, one of :data:`KNOWN`.

    Args:
        name: One of :data:`KNOWN`.
    """
    known = KNOWN[name]
    return Problem(
        name=name,
        summary=known.summary,
        settings=read_preset(name),
        tasks=[_task(known, 0), _task(known, 1)],
        network=lambda: Point(known.size, known.start, known.box),
        data=lambda: no_data.load(_STEPS_PER_EPOCH),
    )


def _task(known: KnownFront, index: int) -> Task:
    def loss(output: Tensor, target: Tensor) -> Tensor:
        del target
        return known.objectives(output)[:, index].mean()

    return Task(f"f{index + 1}", loss, loss, maximise=False, reference=known.worst)


VLMOP2 = make_problem("vlmop2")
ZDT1 = make_problem("zdt1")
ZDT2 = make_problem("zdt2")
QUADRATIC = make_problem("quadratic")
ELLIPSES = make_problem("ellipses")
