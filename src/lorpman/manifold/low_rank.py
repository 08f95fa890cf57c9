"""LORPMAN: one main network and a low-rank delta per task and layer."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, Self, cast

import torch
from torch import Tensor, nn

from lorpman.errors import UsageError, finite_number
from lorpman.manifold import from_networks
from lorpman.manifold.adapters import adapted_weights, take_adapters
from lorpman.manifold.automatic_ranks import budget_at, ranks_within
from lorpman.manifold.base import Cut
from lorpman.manifold.deltas import FullDelta, make_delta, make_frozen_delta
from lorpman.manifold.fine_tuning import FineTuning
from lorpman.manifold.low_rank_delta import LowRankDelta
from lorpman.manifold.merge import Way, check_way, needs_plain_operations
from lorpman.manifold.network_parameters import owners, shared_names
from lorpman.manifold.parameter_manifold import LateWeight
from lorpman.manifold.peft_format import read_adapter
from lorpman.manifold.ranks import DEFAULT_RANK, Owned, check_budget, first_rank, rank_by_name
from lorpman.manifold.repeated_batch import check_batched
from lorpman.manifold.shared_bottom import SharedBottom

_Rank = int | Literal["auto"] | Mapping[str, int]


class LowRank(FineTuning):
    """``theta(alpha) = theta_0 + scale * sum_i alpha_i B_i A_i`` over any network.

    Matrices get low-rank deltas; a convolution ``[out, in, k, k]`` is seen as a matrix
    ``(out k) x (in k)`` with inner size ``rank k``; norm layers get a full-size delta of their
    affine vectors; biases are shared. ``B`` starts at zero, so at first every preference gives
    the network as it came.

    With ``frozen=True``, for fine-tuning, theta_0 stays as it came: in the memory of the given
    network, which must not be changed meanwhile, and in its own precision. Only matrices get
    deltas, and beside these only the heads of a SharedBottom are trained; what else should be, for
    instance ``model.network.classifier``, is told ``requires_grad_()``. Layers use their factors on
    activations and no weight is merged (see :mod:`lorpman.manifold.applied_factors`).

    With ``rank="auto"`` each layer finds its own rank while :func:`fit` trains (see
    :mod:`lorpman.manifold.automatic_ranks`). In a loop of your own, which does not let the
    manifold change its size, the layers keep the larger ranks that they start with.

    Args:
        network: Any network; it is copied, and becomes theta_0.
        num_tasks: The number m of tasks.
        rank: The rank of the deltas, less where a matrix is smaller; or "auto"; or ranks by
            prefixes of names, such as ``{"attention": 16, "": 4}``, of which the longest counts.
        scale: Multiplies all deltas, s in the paper.
        shared: Prefixes of the parameters that are adapted; by default the bottom of a
            :class:`SharedBottom`, else every parameter.
        merge: How the sum is computed (see :mod:`lorpman.manifold.merge`); by default the way
            that takes the least work.
        budget: With ``rank="auto"``, the most parameters that all factors together may have; by
            default as many as with rank 8.
        frozen: Whether theta_0 stays as it came, for fine-tuning.
        batched: With ``frozen=True``, whether one pass serves all b preferences, over a batch that
            is repeated b times (see docs/transformers.md for when that is faster).

    Raises:
        UsageError: If a setting is out of range, a prefix matches no parameter, there is nothing
            to adapt, or the network cannot be used.

    >>> model = LowRank(nn.Linear(6, 4), num_tasks=2, rank=3)
    >>> sorted(model.theta(torch.tensor([0.3, 0.7])))
    ['bias', 'weight']
    >>> model.num_parameters() == (6 * 4 + 4) + 2 * 3 * (6 + 4)
    True
    """

    def __init__(
        self,
        network: nn.Module,
        num_tasks: int,
        rank: _Rank = DEFAULT_RANK,
        scale: float = 1.0,
        shared: str | Sequence[str] | None = None,
        merge: Way = "auto",
        budget: int | None = None,
        frozen: bool = False,
        batched: bool = False,
    ) -> None:
        super().__init__(network, num_tasks, share_weights=frozen)
        if budget is not None and rank != "auto":
            raise UsageError(f"budget belongs to rank='auto', found rank={rank!r}")
        self.merge = check_way(merge)
        self.scale = finite_number("scale", scale)
        self.energy_kept: dict[str, float] = {}
        self._shared = frozenset(shared_names(self.network, shared))
        self.deltas = nn.ModuleDict()
        self._keys: dict[str, str] = {}
        adapted = [entry for entry in owners(self.network) if entry[0] in self._shared]
        self.budget = None
        if rank == "auto":
            self.budget = check_budget(adapted, num_tasks, budget)
            # More than the budget at first: begin_epoch drops what turns out to matter least.
            rank = first_rank(adapted, num_tasks, self.budget)
        self._make_deltas(adapted, rank_by_name(rank, adapted), frozen)
        # Decided here and not by a later freeze(): a network that uses factors on activations has
        # no place for the deltas of norm layers, which only frozen=True leaves out.
        self._applies_factors = frozen
        self.batched = batched and check_batched(self.network, frozen)
        if frozen:
            # Heads that were made for these tasks know nothing yet; all else came trained.
            self.freeze(heads=not isinstance(network, SharedBottom))

    def _make_deltas(
        self, adapted: Sequence[Owned], rank: Callable[[str], int], frozen: bool
    ) -> None:
        make = make_frozen_delta if frozen else make_delta
        watched = self.budget is not None
        for name, owner, parameter in adapted:
            delta = make(name, owner, parameter, self.num_tasks, rank(name), watched)
            if delta is not None:
                # nn.ModuleDict refuses names with a dot.
                self._keys[name] = name.replace(".", "/")
                self.deltas[self._keys[name]] = delta
        if not self._keys:
            raise UsageError(
                f"nothing to adapt in {type(self.network).__name__}: no matrix"
                f"{'' if frozen else ' and no norm layer'} among its shared parameters"
            )

    @classmethod
    def from_models(
        cls,
        models: Sequence[nn.Module],
        rank: _Rank = DEFAULT_RANK,
        scale: float = 1.0,
        shared: str | Sequence[str] | None = None,
        budget: int | None = None,
    ) -> Self:
        """Compress m fine-tuned copies of one network, network i for task i, into a front.

        ``theta_0`` is their mean and ``B_i A_i`` the truncated SVD of the difference between
        network i and the mean, so that the corner e_i is (nearly) network i. Norm layers keep
        their whole difference; other vectors are averaged, since deltas do not cover them; head i
        of a SharedBottom comes from network i; BatchNorm statistics are averaged (see
        :func:`recalibrate`).

        Args:
            models: One network per task, copies of one architecture; they are not changed.
            rank: As for the class; "auto" gives the ``budget`` to those layers in which a
                parameter keeps most of the squared differences.
            scale: As for the class, but not 0.
            shared: As for the class.
            budget: As for the class.

        Returns:
            A manifold whose ``energy_kept`` holds, for every shared parameter in which the
            networks differ, the part of the squared differences that survived.

        Raises:
            UsageError: If the networks are not copies of one architecture, or as for the class.

        >>> model = LowRank.from_models([nn.Linear(6, 4), nn.Linear(6, 4)], rank=4)
        >>> round(model.energy_kept["weight"], 3), model.energy_kept["bias"]
        (1.0, 0.0)
        """
        from_networks.check_copies(models)
        if finite_number("scale", scale) == 0:
            raise UsageError("from_models needs a scale other than 0")
        model = cls(models[0], len(models), rank, scale, shared, budget=budget)
        from_networks.centre(models, model.network)
        # Sorted, since the order of a set of texts differs from process to process.
        differences = from_networks.differences_from(model.network, models, sorted(model._shared))
        if model.budget is not None:
            from_networks.share_budget(model.low_rank_deltas(), differences, model.budget)
        for name, difference in differences.items():
            # Where networks agree there is no energy to keep a part of.
            if difference.any():
                delta = model._deltas().get(name)
                model.energy_kept[name] = from_networks.take(delta, difference, model.scale)
        return model

    @classmethod
    def from_adapters(cls, network: nn.Module, folders: Sequence[Path | str]) -> Self:
        """A front over ``network`` from PEFT LoRA adapters of it, adapter i for task i.

        Args:
            network: The network that the adapters were trained for.
            folders: One per task, each with ``adapter_config.json`` and
                ``adapter_model.safetensors``.

        Returns:
            A manifold with ``frozen=True`` whose corner i is the network with adapter i.

        Raises:
            UsageError: If a folder holds no plain LoRA adapter of this network.
        """
        adapters = [read_adapter(Path(folder)) for folder in folders]
        names = adapted_weights(network, adapters)
        # Any rank would do: the adapters bring factors of their own.
        model = cls(network, len(adapters), rank=1, shared=names, frozen=True)
        take_adapters(model.network, model.low_rank_deltas(), adapters)
        return model

    def after_backward(self) -> None:
        """With automatic ranks: measure how much each direction matters, from the gradients."""
        if self.budget is None:
            return
        # Once the ranks are within the budget they stay, and measuring would be wasted time.
        if self.spent() > self.budget:
            parameters = dict(self.network.named_parameters())
            for name, delta in self.low_rank_deltas().items():
                weight = parameters[name]
                delta.note(weight.grad if weight.requires_grad else None, self.scale)

    @torch.no_grad()
    def begin_epoch(self, epoch: int, epochs: int) -> Mapping[nn.Parameter, Cut]:
        """With automatic ranks: drop the directions that the epoch's budget has no room for.

        They are added to the main weights with the share that they have at equal preferences, so
        that the network there stays as it is.

        Args:
            epoch: The epoch that begins, counted from 0.
            epochs: How many there are in all.

        Returns:
            How the factors were cut; nothing if no rank changed.
        """
        if self.budget is None:
            return {}
        deltas = self.low_rank_deltas()
        ranks = ranks_within(deltas, budget_at(epoch, epochs, self.budget))
        parameters, cuts = dict(self.network.named_parameters()), {}
        for name, delta in deltas.items():
            kept = min(ranks[name], delta.rank)
            # A frozen main weight must not move: there, what is dropped is lost.
            folds = kept < delta.rank and parameters[name].requires_grad
            before = delta.total() if folds else None
            cuts.update(delta.keep(kept))
            if before is not None:
                # At equal preferences, alpha_i = 1 / m, a direction weighs scale / m.
                parameters[name].add_(before - delta.total(), alpha=self.scale / self.num_tasks)
        return cuts

    def ranks(self) -> dict[str, int]:
        """The inner size of the low-rank deltas, by parameter name.

        For a convolution that is the rank times the size of its kernel.
        """
        return {name: delta.rank for name, delta in self.low_rank_deltas().items()}

    def trace(self) -> Mapping[str, Any]:
        if self.budget is None:
            return {}
        return {"ranks": self.ranks(), "parameters": self.num_parameters()}

    def spent(self) -> int:
        """The parameters of all low-rank factors together."""
        return sum(delta.rank * delta.cost for delta in self.low_rank_deltas().values())

    def low_rank_deltas(self) -> dict[str, LowRankDelta]:
        """The low-rank deltas by parameter name."""
        return {n: delta for n, delta in self._deltas().items() if isinstance(delta, LowRankDelta)}

    def _deltas(self) -> dict[str, LowRankDelta | FullDelta]:
        by_name = {name: self.deltas[key] for name, key in self._keys.items()}
        return cast("dict[str, LowRankDelta | FullDelta]", by_name)

    def freeze(self, heads: bool = False) -> None:
        """Stop theta_0 of the shared part, biases included; the deltas go on.

        Args:
            heads: Whether the heads are stopped too.
        """
        for name, parameter in self.network.named_parameters():
            if heads or name in self._shared:
                parameter.requires_grad_(False)
                # An optimiser would still apply a gradient that is left over.
                parameter.grad = None

    def _vary(self, alphas: Tensor) -> dict[str, Sequence[Tensor]]:
        scaled = alphas * self.scale
        parameters = dict(self.network.named_parameters())
        return {
            name: delta.merge(parameters[name], scaled, self.merge)
            for name, delta in self._deltas().items()
        }

    def weights_on(self, x: Any, alphas: Tensor) -> Mapping[str, Sequence[Tensor | LateWeight]]:
        # One preference has nothing to share the work with; a chosen way is always the one used.
        if self.merge != "auto" or len(alphas) < 2 or needs_plain_operations(alphas):
            return self._vary(alphas)
        scaled = alphas * self.scale
        parameters = dict(self.network.named_parameters())
        varied: dict[str, Sequence[Tensor | LateWeight]] = {}
        for name, delta in self._deltas().items():
            weight = parameters[name]
            # A linear layer that reads the data shares its products between preferences; whether it
            # does shows only when it runs.
            if isinstance(delta, LowRankDelta) and self._is_linear(name):
                varied[name] = delta.merge_late(x, weight, scaled)
            else:
                varied[name] = delta.merge(weight, scaled, self.merge)
        return varied

    def _is_linear(self, name: str) -> bool:
        """Whether a parameter is the weight of one linear layer and of nothing else."""
        (module, key), *others = self._places[name]
        # The type itself: a subclass may use its weight in another way than nn.Linear does.
        return type(module) is nn.Linear and key == "weight" and not others

    @property
    def frozen(self) -> bool:
        parameters = dict(self.network.named_parameters())
        return not any(parameters[name].requires_grad for name in self._shared)
