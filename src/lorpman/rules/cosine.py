"""COSMOS's term: the cosine between losses and preference."""

from torch import Tensor, nn

from lorpman.manifold.base import Manifold
from lorpman.rules.objective import Term


class Cosine(Term):
    """``-sum_j cos(losses_j, alpha_j)``: COSMOS's term, which spreads the preferences.

    It draws the loss vector towards ``alpha`` itself, so more weight means *more* loss, against
    linear scalarisation; with a large weight it turns the front round.

    Args:
        inverted: Draw the loss vector towards :func:`opposite` instead, where both agree.
    """

    depends_on = "each preference"

    def __init__(self, inverted: bool = False) -> None:
        super().__init__()
        self.inverted = inverted

    def forward(self, alphas: Tensor, losses: Tensor, model: Manifold) -> Tensor:
        """Minus the cosines at all preferences ``[b, m]``, summed: ``[]``."""
        del model
        return -cosines(losses, opposite(alphas) if self.inverted else alphas).sum()

    def extra_repr(self) -> str:
        """What stands between the brackets when the term is printed."""
        return "inverted=True" if self.inverted else ""


def cosines(losses: Tensor, rays: Tensor) -> Tensor:
    """The cosine between each loss vector and its ray.

    Args:
        losses: ``[b, m]``.
        rays: ``[b, m]``.

    Returns:
        ``[b]``.
    """
    return nn.functional.cosine_similarity(losses, rays, dim=1)


def opposite(alphas: Tensor) -> Tensor:
    """The rays ``1 / alpha``, on the simplex: where all weighted losses are equal.

    Of two tasks, the weights change places.

    Args:
        alphas: Preferences, ``[b, m]``.

    Returns:
        The directions that the loss vectors should have, ``[b, m]``.

    >>> import torch
    >>> opposite(torch.tensor([[0.2, 0.8]]))
    tensor([[0.8000, 0.2000]])
    """
    # The limit keeps corners finite; a ray this close to an axis is that axis.
    inverse = 1 / alphas.clamp_min(1e-3)
    return inverse / inverse.sum(1, keepdim=True)
