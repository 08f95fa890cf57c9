"""BatchNorm statistics of one chosen network, estimated anew."""

from collections.abc import Iterable
from itertools import islice
from typing import Any

import torch
from torch import nn

from lorpman._torch import BATCH_NORMS
from lorpman.errors import UsageError, check_kind, whole_number
from lorpman.front.finiteness import check_weights


def recalibrate(network: nn.Module, batches: Iterable[Any], limit: int | None = None) -> int:
    """Estimate the statistics of every BatchNorm anew.

    While training, these statistics are shared by all preferences, so that they fit none of the
    networks exactly.

    Args:
        network: A plain network, such as a manifold's solution; changed in place.
        batches: Yields ``(x, y)`` or ``x``; all batches have the same weight.
        limit: How many of them are used; None: all.

    Returns:
        The number of BatchNorm layers that keep statistics.

    Raises:
        UsageError: If there are such layers but no batches.
        NotFinite: If the batches gave statistics that are NaN or infinite.
    """
    check_kind("network", network, nn.Module, "an nn.Module")
    limit = None if limit is None else whole_number("limit", limit, least=0)
    norms = [m for m in network.modules() if isinstance(m, BATCH_NORMS) and m.track_running_stats]
    if not norms:
        return 0
    modes = {module: module.training for module in network.modules()}
    momenta = [norm.momentum for norm in norms]
    # Only the norms train: dropout would distort what the later ones see.
    network.eval()
    for norm in norms:
        norm.reset_running_stats()
        norm.momentum = None  # a plain average over batches
        norm.train()
    try:
        with torch.no_grad():
            for batch in islice(batches, limit):
                network(batch[0] if isinstance(batch, tuple | list) and len(batch) == 2 else batch)
    finally:
        for norm, momentum in zip(norms, momenta, strict=True):
            norm.momentum = momentum
        for module, mode in modes.items():
            module.training = mode
    if any(int(norm.num_batches_tracked or 0) == 0 for norm in norms):
        raise UsageError("no batches to re-estimate the BatchNorm statistics from")
    # New statistics of data that is not finite would spoil every prediction.
    check_weights(network, None)
    return len(norms)
