"""The paper's two-parameter problem: a network that is nothing but a point of the plane.

The paper prints ``- tanh(-theta_2)`` in h_2; the original problem, whose Pareto set is
``theta_1 = 7 (alpha_1 - alpha_2)``, has ``+``.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from lorpman.front.front import Front
from lorpman.lab.datasets import no_data
from lorpman.lab.problems.preset import read_preset
from lorpman.lab.problems.problem import Problem
from lorpman.manifold.base import Manifold
from lorpman.manifold.convex import Convex
from lorpman.manifold.low_rank import LowRank
from lorpman.manifold.parameter_manifold import ParameterManifold
from lorpman.task import Task

_STEPS_PER_EPOCH = 20
_COLOURS = ("#D55E00", "#009E73", "#0072B2")
TRACED = ((0.5, 0.5), (1.0, 0.0), (0.0, 1.0))
"""The preferences whose tracks the paper shows."""


def objectives(theta: Tensor) -> Tensor:
    """``f_1`` and ``f_2`` at the points ``theta [..., 2]``, ``[..., 2]``.

    Args:
        theta: The points.

    >>> objectives(torch.tensor([0.0, 4.5]))
    tensor([6.7644, 6.7644])
    """
    first, second = theta.unbind(-1)
    tanh = torch.tanh(-second)
    # The original problem's limit, below which the logarithm has no bound.
    h1 = (0.5 * (-first - 7) - tanh).abs().clamp_min(5e-6).log() + 6
    h2 = (0.5 * (-first + 3) + tanh + 2).abs().clamp_min(5e-6).log() + 6
    valley = 0.1 * (-second - 8).square()
    g1 = ((-first + 7).square() + valley) / 10 - 20
    g2 = ((-first - 7).square() + valley) / 10 - 20
    c1 = torch.tanh(0.5 * second).clamp_min(0)
    c2 = torch.tanh(-0.5 * second).clamp_min(0)
    return torch.stack([c1 * h1 + c2 * g1, c1 * h2 + c2 * g2], -1)


class PlanePoint(nn.Module):
    """A point ``(theta_1, theta_2)``, given out once per sample of the (empty) input.

    ``theta_1`` is a 1 x 1 matrix, so that it can have low-rank deltas, and ``theta_2`` a vector,
    which is shared: the paper keeps the second component of its deltas at zero.
    """

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Parameter(torch.full((1, 1), 4.5))
        self.second = nn.Parameter(torch.full((1,), 4.5))

    def forward(self, x: Tensor) -> list[Tensor]:
        """The point for every sample and both tasks, twice ``[len(x), 2]``.

        Args:
            x: The samples, of which only the number counts.
        """
        point = torch.cat([self.first[0], self.second])
        return [point.expand(len(x), 2)] * 2


def _start(model: Manifold) -> None:
    """The paper's deltas, (-4.5, 0) and (4.5, 0), and members that start at the same points."""
    if isinstance(model, Convex):
        with torch.no_grad():
            model.members()["first"].copy_(torch.tensor([0.0, 9.0]).view(2, 1, 1))
    if isinstance(model, LowRank):
        for delta in model.low_rank_deltas().values():
            with torch.no_grad():
                delta.A.fill_(4.5**0.5)
                delta.B.copy_(torch.tensor([-(4.5**0.5), 4.5**0.5]).view(1, 2, 1))


def _trace(model: Manifold) -> Mapping[str, Any]:
    """The point at each traced preference."""
    if not isinstance(model, ParameterManifold):
        return {}
    with torch.no_grad():
        thetas = [model.theta(torch.tensor(alpha)) for alpha in TRACED]
    points = [torch.cat([t["first"].flatten(), t["second"]]) for t in thetas]
    return {"theta": [point.tolist() for point in points]}


def pareto_set(n: int = 201) -> Tensor:
    """Points of the true Pareto set.

    Args:
        n: How many, at even steps of theta_1.

    Returns:
        ``[n, 2]``; theta_2 is the best one of a fine grid.
    """
    first = torch.linspace(-7, 7, n, dtype=torch.float64)
    # It has no closed form here: the best of a fine grid around the bottom of the valley.
    second = torch.linspace(-9, -8, 2001, dtype=torch.float64)
    plane = torch.stack(torch.broadcast_tensors(first[:, None], second[None, :]), -1)
    # theta_1 = 7 (alpha_1 - alpha_2), solved for alpha_1.
    weight = (first / 7 + 1) / 2
    values = objectives(plane)
    scalar = weight[:, None] * values[..., 0] + (1 - weight[:, None]) * values[..., 1]
    return torch.stack([first, second[scalar.argmin(1)]], -1)


def optimum(alpha: Sequence[float]) -> Tensor:
    """The point of the Pareto set that belongs to a preference.

    Args:
        alpha: The preference.

    Returns:
        ``[2]``, the nearest of :func:`pareto_set`.
    """
    points = pareto_set()
    return points[(points[:, 0] - 7 * (alpha[0] - alpha[1])).abs().argmin()]


def _figure(notes: Sequence[Mapping[str, Any]], front: Front, path: Path) -> None:
    """The paper's toy figure: trajectories in objective space and in parameter space."""
    from matplotlib.figure import Figure

    from lorpman.front.plot_style import save_figure

    del front
    if "theta" not in notes[0]:
        return  # a set of networks has no single track per preference
    true = pareto_set()
    figure = Figure(figsize=(9, 4.2), layout="constrained")
    spaces = {"objective space": objectives, "parameter space": lambda points: points}
    for axes, (title, view) in zip(figure.subplots(1, 2), spaces.items(), strict=True):
        line = view(true)
        axes.plot(line[:, 0], line[:, 1], color="0.7", linewidth=5, label="true front and set")
        for index, (alpha, colour) in enumerate(zip(TRACED, _COLOURS, strict=True)):
            track = view(
                torch.tensor([note["theta"][index] for note in notes], dtype=torch.float64)
            )
            axes.plot(track[:, 0], track[:, 1], color=colour, label=f"preference {alpha}")
            axes.plot(*track[0], "o", color=colour, markersize=7)
            axes.plot(*track[-1], "s", color=colour, markersize=8)
        axes.set_title(title)
    figure.axes[0].set(xlabel="$f_1$  (lower is better)", ylabel="$f_2$  (lower is better)")
    figure.axes[1].set(xlabel=r"$\theta_1$", ylabel=r"$\theta_2$")
    figure.axes[0].legend(frameon=False)
    save_figure(figure, path)


def _task(index: int) -> Task:
    def loss(output: Tensor, target: Tensor) -> Tensor:
        del target
        return objectives(output)[:, index].mean()

    return Task(f"f{index + 1}", loss, loss, maximise=False, reference=0.0)


PROBLEM = Problem(
    name="toy",
    summary="two parameters, two objectives, a Pareto set known in closed form",
    settings=read_preset("toy"),
    tasks=[_task(0), _task(1)],
    network=PlanePoint,
    data=lambda: no_data.load(_STEPS_PER_EPOCH),
    start=_start,
    trace=_trace,
    figure=_figure,
)
