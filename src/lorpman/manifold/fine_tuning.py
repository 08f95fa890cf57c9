"""What fine-tuning adds to low-rank manifolds: factors on activations, and PEFT adapters."""

from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from lorpman._torch import is_transformed
from lorpman.errors import UsageError
from lorpman.manifold.adapters import adapter_at, check_frozen
from lorpman.manifold.applied_factors import can_apply, network_at
from lorpman.manifold.low_rank_delta import LowRankDelta
from lorpman.manifold.network_call import call_network
from lorpman.manifold.network_view import has_hidden_references
from lorpman.manifold.one_by_one import OneByOne
from lorpman.manifold.parameter_manifold import ParameterManifold
from lorpman.manifold.peft_format import write_adapter
from lorpman.manifold.repeated_batch import count_samples, repeat_batch, split_batch
from lorpman.manifold.stacked_outputs import stack_outputs


class FineTuning(ParameterManifold):
    """A low-rank manifold whose network may stay as it came.

    If it does, layers use their factors on activations and no weight is merged (see
    :mod:`lorpman.manifold.applied_factors`); threads do not wait for each other; and what was
    learned can be written as PEFT adapters.
    """

    scale: float
    """Multiplies all deltas."""
    batched: bool
    """Whether one pass over a batch that is repeated b times serves all b preferences."""
    _shared: frozenset[str]
    _applies_factors: bool

    @abstractmethod
    def low_rank_deltas(self) -> Mapping[str, LowRankDelta]:
        """The low-rank deltas by parameter name."""

    def forward(self, x: Any, alpha: Tensor) -> Any:
        # A compiler and transforms such as vmap do better with weights than with views.
        if not self._applies_factors or torch.compiler.is_compiling() or is_transformed():
            return super().forward(x, alpha)
        alpha = self._on_device(alpha)
        if alpha.ndim == 1:
            return call_network(self._view(alpha), x)
        if self.batched:
            samples = count_samples(x)
            network = self._view(alpha.repeat_interleave(samples, 0))
            return split_batch(call_network(network, repeat_batch(x, len(alpha))), len(alpha))
        return stack_outputs([call_network(self._view(row), x) for row in alpha])

    def one_by_one(self, alphas: Tensor) -> OneByOne | None:
        if not self._applies_factors:
            return super().one_by_one(alphas)
        # Factors on activations leave nothing to merge.
        return None if self.batched else OneByOne(self, alphas)

    @contextmanager
    def at(self, alpha: Tensor | Sequence[float]) -> Iterator[nn.Module]:
        """The network at a preference, for any use of it, over the manifold's own weights.

        With ``frozen=True`` threads do not wait for each other, the network can be used after the
        context too, and ``alpha [n, m]`` gives sample i of a batch of n the preference i.

        Args:
            alpha: The preference ``[m]``; where frozen, also one per sample, ``[n, m]``.
        """
        if self._applies_factors:
            yield self._view(self._on_device(alpha))
        else:
            with super().at(alpha) as network:
                yield network

    @property
    def lends_weights(self) -> bool:
        # Where a layer needs a merged weight, so that is kept, plain networks are quicker.
        places = [place for name in self.low_rank_deltas() for place in self._places[name]]
        return self._applies_factors and all(can_apply(*place) for place in places)

    def network_to_run(self, alpha: Tensor) -> nn.Module:
        if not self.lends_weights:
            return super().network_to_run(alpha)
        return self._view(self._on_device(alpha))

    def _view(self, alpha: Tensor) -> nn.Module:
        """The network at ``alpha [m]`` or ``[n, m]``, with factors on activations."""
        return network_at(
            self.network, self._places, self.low_rank_deltas(), alpha * self.scale, self._hidden
        )

    @cached_property
    def _hidden(self) -> bool:
        # Looked at once: training changes tensors, never the structure.
        return has_hidden_references(self.network)

    def save_adapters(
        self, folder: Path | str, names: Sequence[str] | None = None, padded: bool = False
    ) -> list[Path]:
        """Write one PEFT LoRA adapter per task, the network at its corner.

        PEFT mixes them exactly by ``add_weighted_adapter(..., combination_type="cat")``.

        Args:
            folder: Gets one folder per task.
            names: What they are called; by default task1, task2, ...
            padded: Whether ranks become such as vLLM takes, by directions of zero.

        Returns:
            The folders.

        Raises:
            UsageError: If the base is trained too, or a layer is none that PEFT can adapt.
        """
        names = [f"task{i + 1}" for i in range(self.num_tasks)] if names is None else names
        if len(names) != self.num_tasks:
            raise UsageError(f"names must be {self.num_tasks}, one per task, got {len(names)}")
        corners = zip(names, torch.eye(self.num_tasks), strict=True)
        return [self.save_adapter(Path(folder) / n, alpha, padded) for n, alpha in corners]

    def save_adapter(
        self, folder: Path | str, alpha: Tensor | Sequence[float], padded: bool = False
    ) -> Path:
        """Write the network at ``alpha [m]`` as one PEFT LoRA adapter of rank up to m r, exactly.

        Args:
            folder: Gets ``adapter_config.json`` and ``adapter_model.safetensors``.
            alpha: The preference ``[m]``.
            padded: As in :meth:`save_adapters`.

        Returns:
            The folder.

        Raises:
            UsageError: As :meth:`save_adapters`.
            ValueError: If there are several preferences.
        """
        check_frozen(self.network, self._shared)
        given = self._on_device(alpha)
        if given.ndim != 1:
            raise ValueError(f"save_adapter takes one preference [m], got {list(given.shape)}")
        deltas = self.low_rank_deltas()
        adapter = adapter_at(self.network, self._places, deltas, given, self.scale)
        write_adapter(adapter, self.network, Path(folder), padded)
        return Path(folder)
