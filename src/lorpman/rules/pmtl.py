"""PMTL (Lin et al., NeurIPS 2019): one network per cone of the loss space."""

import torch
from torch import Tensor

from lorpman.manifold.base import Manifold
from lorpman.rules.balancer import Row, Weighting, require_population
from lorpman.rules.rule_state import ensure_buffer
from lorpman.rules.solvers import min_norm


class PMTL(Weighting):
    """Member i descends within the cone of losses that is nearest to its own vector ``u_i``.

    The published vectors point along the loss vector, so a big entry means a *high* loss; ours
    mean a low one. ``u_i`` is therefore the direction of ``1 / alpha_i``.

    Args:
        cone_epochs: For up to so many epochs a member first moves into its cone.
    """

    arrived: Tensor
    """Which members have been in their cone, ``[k]``."""

    def __init__(self, cone_epochs: int = 2) -> None:
        super().__init__()
        self.cone_epochs = cone_epochs

    def prepare(self, model: Manifold) -> None:
        """Make room to remember which members have been in their cone.

        Raises:
            UsageError: If ``model`` is no Population.
        """
        population = require_population(self, model)
        ensure_buffer(self, "arrived", torch.zeros(len(population.members), dtype=torch.bool))

    def weights(self, row: Row) -> Tensor:
        """The min-norm weights within the member's cone, or on the way into it, ``[m]``."""
        vectors = loss_vectors(row.step.alphas.detach().to("cpu", torch.float64))
        active = active_constraints(row.losses, vectors, row.index)
        # Once inside, a member that leaves its cone is not sent back at the cost of all losses; and
        # one that never arrives must begin to descend some day.
        if len(active) == 0 or row.step.epoch >= self.cone_epochs:
            self.arrived[row.index] = True
        return pmtl_weights(row.gram, active, into_cone=not bool(self.arrived[row.index]))


def loss_vectors(alphas: Tensor) -> Tensor:
    """The direction of the loss vector that each preference asks for.

    Args:
        alphas: The preferences, ``[k, m]``.

    Returns:
        Unit vectors, ``[k, m]``.

    >>> loss_vectors(torch.tensor([[0.75, 0.25]]))
    tensor([[0.3162, 0.9487]])
    """
    # The limit keeps corners finite.
    inverse = 1 / alphas.clamp_min(1e-6)
    return inverse / inverse.norm(dim=1, keepdim=True)


def active_constraints(losses: Tensor, vectors: Tensor, index: int) -> Tensor:
    """The other cones that a member's losses lie closer to than to its own.

    Args:
        losses: The member's losses, ``[m]``.
        vectors: The cones' unit vectors ``u``, ``[k, m]``.
        index: Which of them is the member's own.

    Returns:
        The rows ``u_j - u_i`` of those cones, ``[a, m]``.
    """
    differences = vectors - vectors[index]
    # Above a hair, not above 0: a member on the border of two cones is in its own.
    return differences[differences @ losses / losses.norm().clamp_min(1e-300) > 1e-12]


def pmtl_weights(gram: Tensor, active: Tensor, into_cone: bool = False) -> Tensor:
    """The min-norm combination of the gradients of the tasks and of the active constraints.

    Args:
        gram: Inner products of the tasks' gradients, ``[m, m]``.
        active: What :func:`active_constraints` gave, ``[a, m]``.
        into_cone: On the way into the cone only the constraints count.

    Returns:
        Weights of the losses, ``[m]``, some of them perhaps negative. Inside the cone their
        sizes sum to m.
    """
    m = len(gram)
    if into_cone and len(active):
        rows = active
    else:
        rows = torch.cat([torch.eye(m, dtype=torch.float64), active.double()])
    weights = rows.T @ min_norm(rows @ gram.double() @ rows.T)
    # So that learning rates mean about the same as for the plain sum of m losses.
    return weights if into_cone else weights * m / weights.abs().sum().clamp_min(1e-300)
