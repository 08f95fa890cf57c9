"""Preferences: points of the simplex, one weight per task. Big weight means low loss."""

import math
from collections.abc import Sequence
from typing import Protocol

import torch
from torch import Tensor

from lorpman._torch import standard_gamma
from lorpman.errors import UsageError, finite_number, shown, whole_number

# How far the weights of a preference may be from summing to 1, as people type them.
_TOLERANCE = 1e-4
# Grids of many tasks are part of published numbers: this seed must not change.
_GRID_SEED = 2024
# Numbers in one set of preferences: 8 GiB of doubles.
_MOST = 2**30


class Sampler(Protocol):
    """Draws the preferences of one training step, ``[count, num_tasks]``.

    Called with the number m of tasks, how many preferences are wanted, and where randomness comes
    from (None for torch's own generator).
    """

    def __call__(self, num_tasks: int, count: int, generator: torch.Generator | None) -> Tensor: ...


class Dirichlet:
    """Independent draws from a symmetric Dirichlet distribution, as in the paper.

    Args:
        concentration: Above 0; below 1 draws lie near the corners, above 1 near the centre.

    Raises:
        ValueError: If ``concentration`` is not positive and finite.
    """

    def __init__(self, concentration: float = 1.0) -> None:
        self.concentration = _positive("concentration", concentration)

    def __call__(self, num_tasks: int, count: int, generator: torch.Generator | None) -> Tensor:
        return dirichlet(num_tasks, count, self.concentration, generator)


class Stratified:
    """Dirichlet draws that spread within a step: a Latin hypercube under stick-breaking.

    Each draw by itself is distributed as in :class:`Dirichlet`. Of two tasks, the ``count``
    draws fall one into each of ``count`` equally likely ranges; of more, so do the parts that
    each task takes of what the tasks before it have left, in an order drawn for every step.

    Args:
        concentration: As for :class:`Dirichlet`.

    Raises:
        ValueError: If ``concentration`` is not positive and finite.
    """

    def __init__(self, concentration: float = 1.0) -> None:
        self.concentration = _positive("concentration", concentration)

    def __call__(self, num_tasks: int, count: int, generator: torch.Generator | None) -> Tensor:
        # Imported here: it is slow, and only this sampler needs it.
        from scipy.special import betaincinv

        num_tasks, count = _size(num_tasks, count)
        # Stick-breaking: a task takes a Beta-distributed part of what those before it have left. Of
        # each part, one draw lies in every count-th of its probability: a Latin hypercube.
        drawn = torch.rand(count, num_tasks - 1, generator=generator, dtype=torch.float64)
        ranges = torch.rand(count, num_tasks - 1, generator=generator).argsort(0)
        levels = ((ranges + drawn) / count).numpy()
        left_over = self.concentration * torch.arange(num_tasks - 1, 0, -1, dtype=torch.float64)
        taken = torch.from_numpy(betaincinv(self.concentration, left_over.numpy(), levels))
        left = torch.cat([torch.ones(count, 1), (1 - taken).cumprod(1)], 1)
        alphas = left * torch.cat([taken, torch.ones(count, 1)], 1)
        # The first task of the stick is spread best: in turn, so that none is favoured.
        return alphas[:, torch.randperm(num_tasks, generator=generator)].float()


class TowardsCorners:
    """The draws of another sampler, some of them moved a random way towards a random corner.

    Of many tasks, Dirichlet draws hardly leave the middle, so that networks near the corners would
    never be trained.

    Args:
        inner: Draws the preferences.
        share: The chance of each to be moved, from 0 to 1.

    Raises:
        UsageError: If ``share`` is no number from 0 to 1.
    """

    def __init__(self, inner: Sampler, share: float) -> None:
        if not 0 <= finite_number("share", share) <= 1:
            raise UsageError(f"share must be a number from 0 to 1, got {share}")
        self.inner, self.share = inner, float(share)

    def __call__(self, num_tasks: int, count: int, generator: torch.Generator | None) -> Tensor:
        alphas = self.inner(num_tasks, count, generator)
        moved = torch.rand(len(alphas), generator=generator) < self.share
        way = torch.rand(len(alphas), generator=generator) * moved
        corners = torch.eye(num_tasks)[torch.randint(num_tasks, way.shape, generator=generator)]
        return alphas + way[:, None] * (corners - alphas)


class Angles:
    """Spread draws: for two tasks, one from each of ``count`` equal ranges of the angle.

    For more tasks, where there is no such order, uniform draws from the simplex.

    Args:
        edge: How many radians are left out at both ends, as in PHN-HVI (0.1: weights from 0.091 to
            0.909).

    Raises:
        ValueError: If ``edge`` is negative, or leaves nothing between the ends.
    """

    def __init__(self, edge: float = 0.1) -> None:
        if not 0 <= edge < math.pi / 4:
            raise ValueError(f"edge must be at least 0 and below pi / 4, got {edge}")
        self.edge = edge

    def __call__(self, num_tasks: int, count: int, generator: torch.Generator | None) -> Tensor:
        if num_tasks != 2:
            return dirichlet(num_tasks, count, 1.0, generator)
        drawn = torch.rand(count, generator=generator, dtype=torch.float64)
        angles = self.edge + (math.pi / 2 - 2 * self.edge) * (torch.arange(count) + drawn) / count
        rays = torch.stack([angles.cos(), angles.sin()], 1)
        return (rays / rays.sum(1, keepdim=True)).float()


class Fixed:
    """The same preferences in every step: those of a finite set of members.

    Args:
        alphas: The preferences, ``[count, m]``.
    """

    def __init__(self, alphas: Tensor) -> None:
        self.alphas = alphas

    def __call__(self, num_tasks: int, count: int, generator: torch.Generator | None) -> Tensor:
        del num_tasks, count, generator
        return self.alphas


def dirichlet(
    m: int, n: int, concentration: float = 1.0, generator: torch.Generator | None = None
) -> Tensor:
    """Independent draws from Dir(concentration, ..., concentration).

    Args:
        m: The number of tasks.
        n: The number of draws.
        concentration: As for :class:`Dirichlet`.
        generator: Where randomness comes from; None: torch's own.

    Returns:
        Preferences, ``[n, m]``.

    Raises:
        ValueError: If a number is below 1, or ``concentration`` is not positive and finite.

    >>> alphas = dirichlet(3, 5, generator=torch.Generator().manual_seed(0))
    >>> alphas.shape, bool(torch.allclose(alphas.sum(1), torch.ones(5)))
    (torch.Size([5, 3]), True)
    """
    m, n = _size(m, n)
    shape = torch.full((n, m), _positive("concentration", concentration), dtype=torch.float64)
    gamma = standard_gamma(shape, generator)
    # With a tiny concentration every gamma of a row can underflow to zero.
    gamma = gamma.clamp_min(torch.finfo(torch.float64).tiny)
    return (gamma / gamma.sum(1, keepdim=True)).float()


def grid(m: int, n: int | None = None) -> Tensor:
    """Fixed preferences that cover the simplex, ``[n, m]``, for showing a front.

    Two tasks: ``n`` (11) even steps. Three: the triangular lattice when ``n`` (66) is a
    triangular number. Otherwise (100 for more than three tasks): the corners and the centre
    when ``n > m``, then low-discrepancy points, uniform on the simplex.

    Args:
        m: The number of tasks.
        n: The number of preferences; by default as above.

    Returns:
        Preferences, ``[n, m]``.

    Raises:
        ValueError: If a number is below 1.

    >>> grid(2, 3)
    tensor([[0.0000, 1.0000],
            [0.5000, 0.5000],
            [1.0000, 0.0000]])
    >>> grid(3).shape, grid(20).shape
    (torch.Size([66, 3]), torch.Size([100, 20]))
    """
    m, n = _size(m, {1: 1, 2: 11, 3: 66}.get(whole_number("m", m), 100) if n is None else n)
    if m == 1:
        return torch.ones(n, 1)
    if n == 1:
        return torch.full((1, m), 1 / m)
    if m == 2:
        first = torch.linspace(0, 1, n, dtype=torch.float64)
        return torch.stack([first, 1 - first], 1).float()
    # A lattice of s steps has (s + 1)(s + 2) / 2 points; this solves it for s.
    steps = (math.isqrt(8 * n + 1) - 3) // 2
    if m == 3 and (steps + 1) * (steps + 2) // 2 == n:
        points = [(i, j, steps - i - j) for i in range(steps + 1) for j in range(steps + 1 - i)]
        return (torch.tensor(points, dtype=torch.float64) / steps).float()
    return _spread(m, n)


def in_turn(m: int) -> Tensor:
    """The centre, then every task in turn at weight 0.3 and at weight 1, ``[2m + 1, m]``.

    Where there are many tasks, no grid that can be afforded shows what a task gains by weight: this
    does. The other tasks share what is left evenly.

    Args:
        m: The number of tasks.

    >>> in_turn(4)[[0, 1, -1]]
    tensor([[0.2500, 0.2500, 0.2500, 0.2500],
            [0.3000, 0.2333, 0.2333, 0.2333],
            [0.0000, 0.0000, 0.0000, 1.0000]])
    """
    m, _ = _size(m, 2 * whole_number("m", m) + 1)
    even, corners = torch.full((m, m), 1 / m), torch.eye(m)
    # Between the centre and a corner, where that corner's task has weight 0.3.
    part = (0.3 - 1 / m) / (1 - 1 / m) if m > 1 else 0.0
    return torch.cat([even[:1], even + part * (corners - even), corners])


def _spread(m: int, n: int) -> Tensor:
    """The corners and the centre if there is room, then a Sobol sequence: ``[n, m]``."""
    anchors = (
        torch.cat([torch.eye(m), torch.full((1, m), 1 / m)])[:n] if n > m else torch.empty(0, m)
    )
    rest = n - len(anchors)
    if rest == 0:
        return anchors
    sobol = torch.quasirandom.SobolEngine(m, scramble=True, seed=_GRID_SEED)
    # At 0 the logarithm is infinite; at 1 it is 0, and a row of zeros has no sum to divide by.
    uniform = sobol.draw(rest, dtype=torch.float64).clamp(1e-12, 1 - 1e-12)
    # Exponential numbers over their sum are uniform on the simplex.
    exponential = -uniform.log()
    return torch.cat([anchors, (exponential / exponential.sum(1, keepdim=True)).float()])


def as_preference(
    alpha: Tensor | Sequence[float] | Sequence[Sequence[float]], num_tasks: int
) -> Tensor:
    """``alpha`` as a float tensor, checked to lie on the simplex.

    Args:
        alpha: One weight per task, ``[m]``, or several preferences ``[b, m]``.
        num_tasks: m.

    Returns:
        ``[m]`` or ``[b, m]``; half-precision floats stay what they are.

    Raises:
        ValueError: If it is anything but points of the simplex.

    >>> as_preference([0.3, 0.7], 2)
    tensor([0.3000, 0.7000])
    >>> as_preference([0.5, 0.7], 2)
    Traceback (most recent call last):
    ValueError: alpha must sum to 1, got [0.5, 0.7] with sum 1.2; pass alpha / alpha.sum()
    """
    if type(num_tasks) is not int:
        num_tasks = whole_number("num_tasks", num_tasks)
    try:
        tensor = torch.as_tensor(alpha)
    except (TypeError, ValueError, RuntimeError, OverflowError):
        raise ValueError(f"alpha must be numbers, one per task, got {shown(alpha)}") from None
    if tensor.is_complex() or tensor.is_meta:
        raise ValueError(f"alpha must be real numbers with values, got {shown(alpha)}")
    if not tensor.is_floating_point():
        tensor = tensor.to(torch.get_default_dtype())
    if tensor.ndim not in (1, 2) or tensor.shape[-1] != num_tasks:
        raise ValueError(
            f"alpha must have shape [{num_tasks}] or [b, {num_tasks}], one weight per task, "
            f"got {list(tensor.shape)}"
        )
    if len(tensor) == 0:
        raise ValueError(f"alpha must hold at least one preference, got {list(tensor.shape)}")
    if not torch.compiler.is_compiling():
        _check_simplex(tensor)
    elif not torch.compiler.is_exporting():
        return _on_simplex(tensor)
    # A file that runs without us cannot ask us.
    return tensor


def _check_simplex(alpha: Tensor) -> None:
    """Refuse values that are no points of the simplex."""
    rows = alpha.detach().reshape(-1, alpha.shape[-1]).to("cpu", torch.float64)
    if not torch.isfinite(rows).all():
        raise ValueError(
            f"alpha must be finite, got {_show(rows[~torch.isfinite(rows).all(1)][0])}"
        )
    if (rows < 0).any():
        raise ValueError(
            f"alpha must not be negative, got {_show(rows[(rows < 0).any(1)][0])}; "
            "a preference is a point of the simplex"
        )
    # Half-precision training rounds each weight, and so their sum.
    rounding = alpha.shape[-1] * torch.finfo(alpha.dtype).eps / 2
    off = (rows.sum(1) - 1).abs() > max(_TOLERANCE, rounding)
    if off.any():
        row = rows[off][0]
        raise ValueError(
            f"alpha must sum to 1, got {_show(row)} with sum {row.sum():.6g}; "
            "pass alpha / alpha.sum()"
        )


# A compiled graph does not know values. An operator of our own is a part of it that sees them
# when it runs, without breaking it in two.
@torch.library.custom_op("lorpman::on_simplex", mutates_args=())
def _on_simplex(alpha: Tensor) -> Tensor:
    # While a CUDA graph is recorded nothing can be read; the run before that was checked.
    if not (alpha.is_cuda and torch.cuda.is_current_stream_capturing()):
        _check_simplex(alpha)
    return alpha.clone()


@_on_simplex.register_fake
def _(alpha: Tensor) -> Tensor:
    return torch.empty_like(alpha)


_on_simplex.register_autograd(lambda _context, gradient: gradient)


def _show(row: Tensor) -> str:
    return "[" + ", ".join(f"{v:.6g}" for v in row.tolist()) + "]"


def _size(m: int, n: int) -> tuple[int, int]:
    """Both numbers as plain ints, if so many preferences can be held."""
    m, n = whole_number("m", m), whole_number("n", n)
    if m * n > _MOST:
        raise UsageError(f"{n} preferences of {m} tasks are too many; take at most {_MOST // m}")
    return m, n


def _positive(name: str, value: float) -> float:
    if finite_number(name, value) <= 0:
        raise UsageError(f"{name} must be positive and finite, got {value}")
    return float(value)
