"""Chebyshev scalarisation, plain and smooth: reaches concave parts of a front too."""

import torch
from torch import Tensor

from lorpman.errors import UsageError
from lorpman.manifold.base import Manifold
from lorpman.rules.objective import Term


class _DistanceFromIdeal(Term):
    """What the Chebyshev family shares: weighted distances from an ideal point."""

    depends_on = "each preference"
    ideal: Tensor

    def __init__(self, ideal: float | list[float] = 0.0) -> None:
        super().__init__()
        point = torch.as_tensor(ideal, dtype=torch.float32)
        if point.ndim > 1:
            raise UsageError(f"ideal must be one number, or one per task, got {ideal!r}")
        self.register_buffer("ideal", point)

    def _weighted(self, alphas: Tensor, losses: Tensor) -> Tensor:
        return alphas * (losses - self.ideal.to(losses))


class Chebyshev(_DistanceFromIdeal):
    """Chebyshev scalarisation, ``sum_j max_i alpha_ji (losses_ji - ideal_i)``.

    Reaches every point of a front, concave parts included, which no linear weighting does.

    Args:
        ideal: The losses that distances are measured from: one number, or one per task.

    Raises:
        UsageError: If ``ideal`` is neither.
    """

    def forward(self, alphas: Tensor, losses: Tensor, model: Manifold) -> Tensor:
        """The largest weighted distance at each preference, summed: ``[]``."""
        del model
        return self._weighted(alphas, losses).amax(1).sum()


class SmoothChebyshev(_DistanceFromIdeal):
    """``sum_j mu log sum_i exp(alpha_ji (losses_ji - ideal_i) / mu)``: Chebyshev, differentiable.

    From Lin et al., "Smooth Tchebycheff Scalarization" (ICML 2024). Tends to Chebyshev as
    ``smoothing`` (mu) tends to zero, and exceeds it by at most ``mu log m``.

    Args:
        smoothing: Mu, above 0.
        ideal: The losses that distances are measured from: one number, or one per task.

    Raises:
        UsageError: If ``smoothing`` is not positive, or ``ideal`` is something else.
    """

    def __init__(self, smoothing: float = 0.1, ideal: float | list[float] = 0.0) -> None:
        super().__init__(ideal)
        if not smoothing > 0:
            raise UsageError(f"smoothing must be positive, got {smoothing}")
        self.smoothing = smoothing

    def forward(self, alphas: Tensor, losses: Tensor, model: Manifold) -> Tensor:
        """The smooth maximum of the weighted distances at each preference, summed: ``[]``."""
        del model
        weighted = self._weighted(alphas, losses)
        return self.smoothing * torch.logsumexp(weighted / self.smoothing, 1).sum()

    def extra_repr(self) -> str:
        """What stands between the brackets when the term is printed."""
        return f"smoothing={self.smoothing}"
