"""MGDA (Désidéri 2012; Sener and Koltun, NeurIPS 2018): the shortest combination of gradients."""

from typing import Literal

import torch
from torch import Tensor

from lorpman.errors import UsageError
from lorpman.manifold.base import Manifold
from lorpman.manifold.finite import Single
from lorpman.manifold.shared_bottom import SharedBottom
from lorpman.rules.balancer import Row, Weighting
from lorpman.rules.base import Rule, Step
from lorpman.rules.solvers import min_norm
from lorpman.rules.task_gradients import TaskGradients, besides, leave, recorded

Normalisation = Literal["none", "l2", "loss", "loss+"]


class MGDA(Weighting):
    """``argmin |sum_i w_i gradient_i|`` over the simplex: a descent direction for every task.

    ``normalisation`` divides each gradient before the weights are chosen, as Sener and Koltun's
    code does: by its length ("l2"), by the loss ("loss"), or by both ("loss+").
    """

    def __init__(self, normalisation: Normalisation = "none") -> None:
        super().__init__()
        self.normalisation: Normalisation = normalisation

    def weights(self, row: Row) -> Tensor:
        return mgda_weights(row.gram, row.losses, self.normalisation)


def mgda_weights(gram: Tensor, losses: Tensor, normalisation: Normalisation = "none") -> Tensor:
    """The weights of :class:`MGDA` from the Gram matrix ``[m, m]`` and the losses ``[m]``.

    >>> mgda_weights(torch.tensor([[4.0, 0.0], [0.0, 1.0]]), torch.ones(2), "l2")
    tensor([0.5000, 0.5000], dtype=torch.float64)
    """
    sizes = torch.ones(len(gram), dtype=torch.float64)
    if normalisation in ("l2", "loss+"):
        sizes *= gram.double().diagonal().clamp_min(0).sqrt()
    if normalisation in ("loss", "loss+"):
        sizes *= losses.double().abs()
    sizes = torch.where(sizes > 0, sizes, 1.0)
    return min_norm(gram.double() / sizes[:, None] / sizes)


class FeatureMGDA(Rule):
    """MGDA-UB: the weights come from the gradients at the shared representation.

    An upper bound of :class:`MGDA`'s norm that needs one backward pass through the bottom,
    whatever the number of tasks. Needs an ``lp.Single`` over an ``lp.SharedBottom``.
    With inputs per task, no two tasks meet at a feature, so only lengths decide the weights.
    """

    def __init__(self, normalisation: Normalisation = "none") -> None:
        super().__init__()
        self.normalisation: Normalisation = normalisation

    def prepare(self, model: Manifold) -> None:
        shared_bottom(self, model)

    def backward(self, step: Step) -> None:
        bottom = shared_bottom(self, step.model).bottom
        with recorded(bottom) as (features,):
            losses = step.losses[0]
        if not all(isinstance(feature, Tensor) for feature in features):
            raise UsageError("FeatureMGDA needs a bottom whose output is one tensor")
        heads = besides(step.model.parameters_at(step.alphas[0]), bottom.parameters())
        gradients = TaskGradients(losses, features, heads)
        detached = losses.detach().to("cpu", torch.float64)
        weights = mgda_weights(gradients.gram(), detached, self.normalisation)
        leave(step, gradients.weighted(weights, weights))


def shared_bottom(rule: Rule, model: Manifold) -> SharedBottom:
    """The network of ``model``, if it has a bottom to look at."""
    if not isinstance(model, Single) or not isinstance(model.network, SharedBottom):
        inner = getattr(model, "network", None)
        found = type(model).__name__ + ("" if inner is None else f" over {type(inner).__name__}")
        raise UsageError(
            f"{type(rule).__name__} looks at the features of a shared bottom; it applies to "
            f"lp.Single over an lp.SharedBottom, found {found}"
        )
    return model.network
