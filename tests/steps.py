"""A training step made by hand, for rules that are tested without a loop."""

from collections.abc import Callable

import torch
from torch import Tensor

from lorpman.manifold.base import Manifold
from lorpman.rules.base import Step


def step_of(
    model: Manifold,
    alphas: Tensor,
    losses: Tensor,
    backward: Callable[[Tensor], object] = Tensor.backward,
    epoch: int = 0,
) -> Step:
    """The step in which ``model`` has the given ``losses [b, m]`` at ``alphas [b, m]``."""
    return Step(
        alphas=alphas,
        model=model,
        backward=backward,  # type: ignore[arg-type]
        losses_at=lambda alphas, batch: losses,
        batch=None,
        another_batch=lambda: None,
        epoch=epoch,
        epochs=1,
        optimizer=torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=0.1),
    )
