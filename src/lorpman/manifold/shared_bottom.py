"""A network of one shared bottom and one head per task."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from lorpman.errors import UsageError
from lorpman.manifold.network_call import call_network

_Batch = Tensor | Mapping[str, Any]
Inputs = Tensor | Sequence[Tensor]


class SharedBottom(nn.Module):
    """``heads[i](bottom(x))`` for every task ``i``: a list with one output per task.

    ``x`` is one batch ``[n, ...]`` that every head sees, or a sequence with one batch
    ``[n_i, ...]`` per task, where head ``i`` sees only batch ``i``. Per-task batches of one
    trailing shape go through the bottom together, as one batch of ``sum(n_i)`` samples: that is
    faster, and it means that batch normalisation in the bottom normalises them together.
    Batches whose trailing shapes differ go through the bottom one after the other. A batch may
    also be a mapping of keywords for the bottom, as for transformers.

    Args:
        bottom: Turns a batch into the features that all tasks share.
        heads: One module per task, in the order of the tasks; each turns features into the
            output of its task.

    Raises:
        UsageError: If there is no head.

    >>> net = SharedBottom(nn.Linear(4, 3), [nn.Linear(3, 2), nn.Linear(3, 5)])
    >>> [tuple(out.shape) for out in net(torch.zeros(7, 4))]
    [(7, 2), (7, 5)]
    >>> [tuple(out.shape) for out in net([torch.zeros(7, 4), torch.zeros(6, 4)])]
    [(7, 2), (6, 5)]
    """

    def __init__(self, bottom: nn.Module, heads: Iterable[nn.Module]) -> None:
        super().__init__()
        self.bottom = bottom
        self.heads = nn.ModuleList(heads)
        if len(self.heads) == 0:
            raise UsageError("SharedBottom needs at least one head, got none; pass one per task")

    def forward(self, x: _Batch | Sequence[_Batch]) -> list[Tensor]:
        """Run the bottom and every head.

        Args:
            x: One batch ``[n, ...]`` for all tasks, or one ``[n_i, ...]`` per task.

        Returns:
            One output per task, led by n or by n_i.

        Raises:
            UsageError: If there are batches, but not one per task.
        """
        if isinstance(x, Tensor | Mapping):
            features = call_network(self.bottom, x)
            return [head(features) for head in self.heads]
        check_one_per_task(x, len(self.heads))
        return [head(part) for head, part in zip(self.heads, self._features(x), strict=True)]

    def _features(self, x: Sequence[_Batch]) -> Sequence[Tensor]:
        parts = [part for part in x if isinstance(part, Tensor)]
        if len(parts) < len(x) or any(part.shape[1:] != parts[0].shape[1:] for part in parts):
            return [call_network(self.bottom, part) for part in x]
        # Together: the bottom runs once, and batch norms see the samples of all tasks.
        return self.bottom(torch.cat(parts)).split([len(part) for part in parts])


def check_one_per_task(x: Sequence[Any], num_tasks: int) -> None:
    """Refuse per-task inputs whose number is not the number of heads.

    Args:
        x: One batch for each task.
        num_tasks: How many there should be.

    Raises:
        UsageError: If there are more or fewer.
    """
    if len(x) != num_tasks:
        raise UsageError(
            f"x must hold one batch per head: expected {num_tasks}, got {len(x)}; "
            "pass one tensor for all heads, or a list with one batch for each"
        )
