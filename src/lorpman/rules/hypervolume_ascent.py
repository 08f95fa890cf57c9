"""PHN-HVI's rule: the preferences of a step together maximise the volume of their losses."""

from lorpman.errors import UsageError
from lorpman.front.hypervolume_gradient import hypervolume_weights
from lorpman.rules.base import Rule, Step
from lorpman.rules.cosine import cosines, opposite


class HypervolumeAscent(Rule):
    """``sum_ji w_ji losses_ji - cosine sum_j cos(losses_j, r_j)``.

    The weights are those of
    :func:`~lorpman.front.hypervolume_gradient.hypervolume_weights`; the rays
    ``r_j = opposite(alpha_j)`` are what PHN-HVI calls a preference, aligned with the losses
    (there, a large entry means a large loss).

    Args:
        reference: The losses up to which volume counts: one number, or one per task.
        cosine: The weight of the cosines.
        warmup_epochs: During so many epochs only the cosines are raised, which spreads the
            preferences over the front.

    Raises:
        UsageError: If ``warmup_epochs`` is negative.
    """

    def __init__(
        self, reference: float | list[float] = 2.0, cosine: float = 5.0, warmup_epochs: int = 1
    ) -> None:
        super().__init__()
        if warmup_epochs < 0:
            raise UsageError(f"warmup_epochs must be 0 or more, got {warmup_epochs}")
        self.reference = reference
        self.cosine = cosine
        self.warmup_epochs = warmup_epochs

    def backward(self, step: Step) -> None:
        """Leave the gradient of the weighted losses and the cosines."""
        aligned = cosines(step.losses, opposite(step.alphas)).sum()
        if step.epoch < self.warmup_epochs:
            step.backward(-aligned)
            return
        weights = hypervolume_weights(step.losses.detach(), self.reference)
        step.backward((weights * step.losses).sum() - self.cosine * aligned)
