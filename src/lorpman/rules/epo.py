"""EPO as a rule: at every preference, losses are weighted so that they reach its ray."""

import torch
from torch import Tensor

from lorpman.rule import Rule, Step
from lorpman.rules.epo_solver import epo_weights
from lorpman.rules.gradients import gram_matrix


class Epo(Rule):
    """``sum_ji m w_ji losses_ji`` with the weights of EPO search, for each preference its own.

    The gradients that decide them are taken over everything that is trained, which for PHN is
    the hypernetwork. The optimum at ``alpha`` lies on the ray ``1 / alpha``: more weight, less
    loss.
    """

    def backward(self, step: Step) -> None:
        trained = [p for p in step.model.parameters() if p.requires_grad]

        def weights(alpha: Tensor, losses: Tensor) -> Tensor:
            return epo_weights(losses, gram_matrix(losses, trained), alpha)

        rows = [weights(a, f) for a, f in zip(step.alphas, step.losses, strict=True)]
        m = step.alphas.shape[1]
        step.backward(m * (torch.stack(rows) * step.losses).sum())
