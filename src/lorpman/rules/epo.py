"""EPO (Mahapatra and Rajan, ICML 2020): the point of the front on a given ray."""

from torch import Tensor

from lorpman.manifold.base import Manifold
from lorpman.rules.balancer import Row, Weighting
from lorpman.rules.epo_solver import epo_weights


class Epo(Weighting):
    """At every preference, go to where the front meets ``alpha_1 f_1 = ... = alpha_m f_m``.

    A big entry means a low loss, as everywhere here. Losses must not be negative. Over an
    ``lp.Population`` this is EPO search, over a hypernetwork PHN-EPO.
    """

    def prepare(self, model: Manifold) -> None:
        """Nothing to check: every manifold will do, since the preference decides."""

    def weights(self, row: Row) -> Tensor:
        """``m`` times the weights of EPO's linear programme, ``[m]``."""
        return len(row.losses) * epo_weights(row.losses, row.gram, row.alpha)
