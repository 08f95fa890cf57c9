"""An exponential mean of all weights, beside those that are trained."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor, nn


class WeightAverage:
    """Follows a model's weights step by step; the mean is what is shown, saved and kept.

    ``mean <- decay mean + (1 - decay) weights`` after every step. In step n the decay is at most
    n / (n + 9), as in TensorFlow, since otherwise a short run would still remember its start. So
    after n steps the mean is over about the last n / 9 of them, however large the decay is.
    Running statistics are averaged too; whole numbers, such as their counts, are not.

    Args:
        model: What is trained.
        decay: Of the mean, per step; at least 0 and below 1.
    """

    def __init__(self, model: nn.Module, decay: float) -> None:
        self.model, self.decay = model, decay
        self.steps = 0
        """Steps that the mean has followed."""
        self.means = self._copies()
        """By the names of the model's state."""

    @torch.no_grad()
    def follow(self) -> None:
        """Take one step's weights into the mean."""
        self.steps += 1
        now, weight = self._floats(), 1 - min(self.decay, self.steps / (self.steps + 9))
        for name, mean in self.means.items():
            mean.lerp_(now[name], weight)

    def restart(self) -> None:
        """Begin again from the trained weights, after the model has become smaller.

        A model that shrinks moves some weights into others. A mean over weights from before and
        after that would belong to no network at all.
        """
        self.means, self.steps = self._copies(), 0

    @contextmanager
    def in_place(self) -> Iterator[None]:
        """The model has the mean as its weights inside this context."""
        trained = self._copies()
        self.keep()
        try:
            yield
        finally:
            self._load(trained)

    def keep(self) -> None:
        """Give the model the mean for good."""
        self._load(self.means)

    def _floats(self) -> dict[str, Tensor]:
        """The model's weights and statistics themselves, not copies."""
        return {k: v for k, v in self.model.state_dict().items() if v.is_floating_point()}

    def _copies(self) -> dict[str, Tensor]:
        return {name: value.clone() for name, value in self._floats().items()}

    @torch.no_grad()
    def _load(self, values: dict[str, Tensor]) -> None:
        # Copied into, not replaced: optimiser and wrapper hold the same tensors.
        for name, value in self._floats().items():
            value.copy_(values[name])
