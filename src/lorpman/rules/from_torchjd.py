"""The one place that knows torchjd: its weightings as rules. Needs the extra ``balancers``."""

from typing import Any

import torch
from torch import Tensor

from lorpman.errors import UsageError, need
from lorpman.rules.balancer import Row, Weighting


class TorchJD(Weighting):
    """A torchjd weighting of the gradients' inner products, as a balancer.

    Args:
        weighting: One of ``torchjd.aggregation``'s, by name ("UPGrad") or as an instance.

    Raises:
        UsageError: If torchjd is missing, has no such weighting, or if the weighting remembers
            earlier steps. Its memory would be in no ``state_dict``, so that a resumed run would
            differ from an uninterrupted one.
    """

    def __init__(self, weighting: Any = "UPGrad") -> None:
        super().__init__()
        torchjd = need("torchjd", extra="balancers")
        if isinstance(weighting, str):
            weighting = _by_name(need("torchjd.aggregation", extra="balancers"), weighting)
        if isinstance(weighting, torchjd.Stateful):
            raise UsageError(
                f"torchjd's {type(weighting).__name__} remembers earlier steps and cannot be "
                "resumed; use one without a state, such as UPGrad"
            )
        self.weighting = weighting

    def weights(self, row: Row) -> Tensor:
        """What torchjd makes of the inner products, ``[m]``.

        Raises:
            UsageError: If its weights are not finite.
        """
        with torch.no_grad():
            weights: Tensor = self.weighting(row.gram)
        if not torch.isfinite(weights).all():
            raise UsageError(
                f"torchjd's {type(self.weighting).__name__} found no finite weights for the "
                f"inner products {row.gram.tolist()}; use another method"
            )
        return weights


def _by_name(aggregation: Any, name: str) -> Any:
    weighting = getattr(aggregation, f"{name}Weighting", None)
    if weighting is None:
        raise UsageError(f"torchjd has no {name}Weighting; pass an instance of one that it has")
    try:
        return weighting()
    except TypeError as error:
        raise UsageError(
            f"torchjd's {name}Weighting needs arguments ({error}); pass an instance"
        ) from None
