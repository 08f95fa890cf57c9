"""MGDA (Désidéri 2012; Sener and Koltun, NeurIPS 2018): the shortest combination of gradients."""

from typing import Literal

import torch
from torch import Tensor

from lorpman.errors import UsageError
from lorpman.manifold.base import Manifold
from lorpman.rules.balancer import Row, Weighting, require_shared_bottom
from lorpman.rules.base import Rule, Step
from lorpman.rules.solvers import min_norm
from lorpman.rules.task_gradients import (
    TaskGradients,
    give_gradients,
    outputs_recorded,
    parameters_besides,
)

Normalisation = Literal["none", "l2", "loss", "loss+"]


class MGDA(Weighting):
    """``argmin |sum_i w_i gradient_i|`` over the simplex: a descent direction for every task.

    Args:
        normalisation: What each gradient is divided by before the weights are chosen, as Sener
            and Koltun's code does: its length ("l2"), the loss ("loss"), or both ("loss+").
    """

    def __init__(self, normalisation: Normalisation = "none") -> None:
        super().__init__()
        self.normalisation: Normalisation = normalisation

    def weights(self, row: Row) -> Tensor:
        """The weights of the shortest convex combination, ``[m]``."""
        return mgda_weights(row.gram, row.losses, self.normalisation)


def mgda_weights(gram: Tensor, losses: Tensor, normalisation: Normalisation = "none") -> Tensor:
    """The weights of :class:`MGDA`.

    Args:
        gram: Inner products of the tasks' gradients, ``[m, m]``.
        losses: The tasks' losses, ``[m]``.
        normalisation: See :class:`MGDA`.

    Returns:
        A point of the simplex, ``[m]``.

    >>> mgda_weights(torch.tensor([[4.0, 0.0], [0.0, 1.0]]), torch.ones(2), "l2")
    tensor([0.5000, 0.5000], dtype=torch.float64)
    """
    sizes = torch.ones(len(gram), dtype=torch.float64)
    if normalisation in ("l2", "loss+"):
        sizes *= gram.double().diagonal().clamp_min(0).sqrt()
    if normalisation in ("loss", "loss+"):
        sizes *= losses.double().abs()
    # A gradient of length zero stays what it is.
    sizes = torch.where(sizes > 0, sizes, 1.0)
    return min_norm(gram.double() / sizes[:, None] / sizes)


class FeatureMGDA(Rule):
    """MGDA-UB: the weights come from the gradients at the shared representation.

    An upper bound of :class:`MGDA`'s norm that needs one backward pass through the bottom,
    whatever the number of tasks. Needs an ``lp.Single`` over an ``lp.SharedBottom``.
    With inputs per task, no two tasks meet at a feature, so only lengths decide the weights.

    Args:
        normalisation: See :class:`MGDA`.
    """

    def __init__(self, normalisation: Normalisation = "none") -> None:
        super().__init__()
        self.normalisation: Normalisation = normalisation

    def prepare(self, model: Manifold) -> None:
        """Check that ``model`` has features to look at.

        Raises:
            UsageError: If it is no Single over a SharedBottom.
        """
        require_shared_bottom(self, model)

    def backward(self, step: Step) -> None:
        """Leave the gradients of the weighted losses, through the features.

        Raises:
            UsageError: If the bottom gives anything but one tensor.
        """
        bottom = require_shared_bottom(self, step.model).bottom
        with outputs_recorded(bottom) as (features,):
            # The forward pass runs here, while the features are recorded.
            losses = step.losses[0]
        if not all(isinstance(feature, Tensor) for feature in features):
            raise UsageError("FeatureMGDA needs a bottom whose output is one tensor")
        heads = parameters_besides(step.model.parameters_at(step.alphas[0]), bottom.parameters())
        gradients = TaskGradients(losses, features, heads)
        detached = losses.detach().to("cpu", torch.float64)
        weights = mgda_weights(gradients.gram(), detached, self.normalisation)
        give_gradients(step, gradients.weighted(weights, weights))
