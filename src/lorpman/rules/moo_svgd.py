"""MOO-SVGD (Liu et al., NeurIPS 2021): particles that descend together and keep apart."""

import math

import torch
from torch import Tensor

from lorpman.manifold.base import Manifold
from lorpman.rules.balancer import require_population
from lorpman.rules.base import Rule, Step
from lorpman.rules.solvers import min_norm
from lorpman.rules.task_gradients import Pairs, leave, task_gradients


class MOOSVGD(Rule):
    """``(sum_j K_ij g_j + 1/2 grad_i sum K) / n``: ``g_j`` is member j's MGDA direction, ``K`` a
    radial kernel on the *loss vectors*, its bandwidth the median heuristic.

    The kernel's gradient goes through the losses, so no second derivative is needed. Members
    must start apart. They settle where the others leave room: their preferences are only names.
    Only the shared parameters repel; heads descend.
    """

    def __init__(self, bandwidth: float | None = None) -> None:
        super().__init__()
        self.bandwidth = bandwidth

    def prepare(self, model: Manifold) -> None:
        require_population(self, model, at_least=2)

    def backward(self, step: Step) -> None:
        losses = step.losses.detach().to("cpu", torch.float64)
        kernel, apart = loss_kernel(losses, self.bandwidth)
        descents: list[Pairs] = []
        repulsions: list[Pairs] = []
        for index, away in enumerate(apart):
            gradients = task_gradients(step, index)
            weights = min_norm(gradients.gram())
            descents.append(gradients.weighted(weights, weights))
            # A head could worsen its own loss without end, at no cost to the other tasks.
            repulsions.append(gradients.weighted(away, torch.zeros_like(away)))
        leave(step, mix(kernel, descents, repulsions))


def loss_kernel(losses: Tensor, bandwidth: float | None = None) -> tuple[Tensor, Tensor]:
    """``K [n, n]`` with ``K_ij = exp(-|f_i - f_j|^2 / h)``, and ``d sum(K) / d f``, ``[n, m]``.

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
    kernel = (-squared / max(h, 1e-12)).exp()
    (gradient,) = torch.autograd.grad(kernel.sum(), f)
    return kernel.detach(), gradient


def mix(kernel: Tensor, descents: list[Pairs], repulsions: list[Pairs]) -> Pairs:
    """Every member's parameters with ``(sum_j K_ij g_j + repulsion_i / 2) / n``."""
    n = len(kernel)
    pairs: Pairs = []
    for i, repulsion in enumerate(repulsions):
        for index, (tensor, push) in enumerate(repulsion):
            total = 0.5 * push
            for j, descent in enumerate(descents):
                total = total + float(kernel[i, j]) * descent[index][1]
            pairs.append((tensor, total / n))
    return pairs
