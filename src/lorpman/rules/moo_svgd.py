"""MOO-SVGD (Liu et al., NeurIPS 2021): particles that descend together and keep apart."""

import math

import torch
from torch import Tensor

from lorpman.manifold.base import Manifold
from lorpman.rules.balancer import require_population
from lorpman.rules.base import Rule, Step
from lorpman.rules.solvers import min_norm
from lorpman.rules.task_gradients import GradientPairs, give_gradients, task_gradients


class MOOSVGD(Rule):
    """Members descend together and repel each other: ``(sum_j K_ij g_j + 1/2 grad_i sum K) / n``.

    ``g_j`` is member j's MGDA direction, ``K`` a radial kernel on the *loss vectors*.

    The kernel's gradient goes through the losses, so no second derivative is needed. Members
    must start apart. They settle where the others leave room: their preferences are only names.
    Only the shared parameters repel; heads descend.

    Args:
        bandwidth: The squared width of the kernel; None: the median heuristic.
    """

    def __init__(self, bandwidth: float | None = None) -> None:
        super().__init__()
        self.bandwidth = bandwidth

    def prepare(self, model: Manifold) -> None:
        """Check that there are members to keep apart.

        Raises:
            UsageError: If ``model`` is no Population of at least two.
        """
        require_population(self, model, at_least=2)

    def backward(self, step: Step) -> None:
        """Leave every member's share of all descents, and its repulsion."""
        losses = step.losses.detach().to("cpu", torch.float64)
        kernel, apart = loss_kernel(losses, self.bandwidth)
        descents: list[GradientPairs] = []
        repulsions: list[GradientPairs] = []
        for index, away in enumerate(apart):
            gradients = task_gradients(step, index)
            weights = min_norm(gradients.gram())
            descents.append(gradients.weighted(weights, weights))
            # A head could worsen its own loss without end, at no cost to the other tasks.
            repulsions.append(gradients.weighted(away, torch.zeros_like(away)))
        give_gradients(step, svgd_gradients(kernel, descents, repulsions))


def loss_kernel(losses: Tensor, bandwidth: float | None = None) -> tuple[Tensor, Tensor]:
    """The kernel ``K_ij = exp(-|f_i - f_j|^2 / h)`` and the slope of its sum.

    Args:
        losses: The members' loss vectors ``f``, ``[n, m]``.
        bandwidth: ``h``; None: the median squared distance over ``log n``.

    Returns:
        ``K [n, n]``, and ``d sum(K) / d f``, ``[n, m]``.

    >>> loss_kernel(torch.ones(2, 2))[0]
    tensor([[1., 1.],
            [1., 1.]])
    """
    f = losses.detach().clone().requires_grad_()
    squared = (f[:, None] - f[None, :]).square().sum(-1)
    h = bandwidth
    if h is None:
        # numpy's median over all pairs, the diagonal included, as published.
        h = float(squared.detach().flatten().quantile(0.5)) / math.log(max(len(f), 2))
    # Members that coincide have a median distance of zero.
    kernel = (-squared / max(h, 1e-12)).exp()
    (gradient,) = torch.autograd.grad(kernel.sum(), f)
    return kernel.detach(), gradient


def svgd_gradients(
    kernel: Tensor, descents: list[GradientPairs], repulsions: list[GradientPairs]
) -> GradientPairs:
    """Every member's parameters with ``(sum_j K_ij g_j + repulsion_i / 2) / n``.

    Args:
        kernel: ``K``, ``[n, n]``.
        descents: For each member, its parameters and their descent.
        repulsions: For each member, the same parameters and their repulsion.
    """
    n = len(kernel)
    pairs: GradientPairs = []
    for i, repulsion in enumerate(repulsions):
        for index, (tensor, push) in enumerate(repulsion):
            total = 0.5 * push
            for j, descent in enumerate(descents):
                total = total + float(kernel[i, j]) * descent[index][1]
            pairs.append((tensor, total / n))
    return pairs
