"""LORPMAN: one main network and a low-rank delta per task and layer."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal, Self, cast

import torch
from torch import Tensor, nn

from lorpman.errors import UsageError, finite_number, whole_number
from lorpman.manifold.automatic_ranks import START, allocate, budget_at
from lorpman.manifold.base import Cut
from lorpman.manifold.deltas import FullDelta, LowRankDelta, is_matrix, make_delta, matrix_of
from lorpman.manifold.from_networks import centre, check_copies, factors, spectrum
from lorpman.manifold.merge import Way, check_way, needs_plain_operations
from lorpman.manifold.network_parameters import owners, shared_names
from lorpman.manifold.parameter_manifold import LateWeight, ParameterManifold

_RANK = 8
_Owned = tuple[str, nn.Module, nn.Parameter]


class LowRank(ParameterManifold):
    """``theta(alpha) = theta_0 + scale * sum_i alpha_i B_i A_i`` over any network.

    Matrices get low-rank deltas of the given ``rank`` (less where the matrix is smaller); a
    convolution ``[out, in, k, k]`` is seen as ``(out k) x (in k)`` with inner size ``rank k``;
    norm layers get a full-size delta of their affine vectors; biases are shared. ``shared``
    names the prefixes of what is adapted (default: the bottom of a SharedBottom, else all).
    ``B`` starts at zero, so at first every preference gives the network as it came. ``merge``
    overrides how the sum is computed (see :mod:`lorpman.manifold.merge`), which is otherwise
    chosen by the work that it takes.

    With ``rank="auto"`` the layers find ranks of their own while :func:`fit` trains (see
    :mod:`lorpman.manifold.automatic_ranks`), so that all factors together have at most ``budget``
    parameters (default: as many as with rank 8). In a loop of your own, which does not let the
    manifold change its size, the layers keep the larger ranks that they start with.

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
        rank: int | Literal["auto"] = _RANK,
        scale: float = 1.0,
        shared: str | Sequence[str] | None = None,
        merge: Way = "auto",
        budget: int | None = None,
    ) -> None:
        super().__init__(network, num_tasks)
        if budget is not None and rank != "auto":
            raise UsageError(f"budget belongs to rank='auto', found rank={rank!r}")
        self.merge = check_way(merge)
        self.scale = finite_number("scale", scale)
        self.energy_kept: dict[str, float] = {}
        self._shared = frozenset(shared_names(self.network, shared))
        self.deltas = nn.ModuleDict()
        self._keys: dict[str, str] = {}
        adapted = [found for found in owners(self.network) if found[0] in self._shared]
        self.budget = None
        if rank == "auto":
            self.budget = _check_budget(adapted, num_tasks, budget)
            rank = _first_rank(adapted, num_tasks, self.budget)
        rank = whole_number("rank", rank)
        for name, owner, parameter in adapted:
            delta = make_delta(name, owner, parameter, num_tasks, rank, self.budget is not None)
            if delta is not None:
                # A module's name cannot contain a dot.
                self._keys[name] = name.replace(".", "/")
                self.deltas[self._keys[name]] = delta
        if not self._keys:
            raise UsageError(
                f"nothing to adapt in {type(network).__name__}: no matrix and no norm layer "
                "among its shared parameters"
            )

    @classmethod
    def from_models(
        cls,
        models: Sequence[nn.Module],
        rank: int | Literal["auto"] = _RANK,
        scale: float = 1.0,
        shared: str | Sequence[str] | None = None,
        budget: int | None = None,
    ) -> Self:
        """Compress m fine-tuned copies of one network, network i for task i, into a front.

        ``theta_0`` is their mean and ``B_i A_i`` the truncated SVD of what network i differs
        from it, so that the corner e_i is (nearly) network i. Norm layers keep their whole
        difference; other vectors are averaged, since deltas do not cover them; head i of a
        SharedBottom comes from network i; BatchNorm statistics are averaged (see recalibrate).
        ``energy_kept`` of the result holds, for every shared parameter in which the networks
        differ, the part of the squared differences that survived. ``rank="auto"`` gives the
        ``budget`` to the layers in which each parameter keeps most of them.
        """
        check_copies(models)
        if finite_number("scale", scale) == 0:
            raise UsageError("from_models needs a scale other than 0")
        model = cls(models[0], len(models), rank, scale, shared, budget=budget)
        centre(models, model.network)
        mean = dict(model.network.named_parameters())
        given = [dict(network.named_parameters()) for network in models]
        differences = {
            name: torch.stack([g[name].detach() - mean[name].detach() for g in given])
            for name in sorted(model._shared)
        }
        if model.budget is not None:
            deltas = model.low_rank_deltas()
            energy = {
                name: spectrum(differences[name], len(delta.B)) for name, delta in deltas.items()
            }
            costs = {name: delta.cost for name, delta in deltas.items()}
            for name, found in allocate(energy, costs, model.budget).items():
                deltas[name].resize(found)
        for name, difference in differences.items():
            if difference.any():
                model.energy_kept[name] = model._take(name, difference)
        return model

    @torch.no_grad()
    def _take(self, name: str, differences: Tensor) -> float:
        """Set the deltas of one parameter to ``differences [m, *shape]``; the energy kept."""
        delta = self._deltas().get(name)
        if delta is None:
            return 0.0
        if isinstance(delta, FullDelta):
            delta.delta.copy_(differences / self.scale)
            return 1.0
        kept = whole = 0.0
        for i, difference in enumerate(differences):
            B, A, part, all_of_it = factors(difference, len(delta.B), delta.rank)
            delta.B[:, i] = B / self.scale
            delta.A[i] = A
            kept, whole = kept + part, whole + all_of_it
        return kept / whole

    def after_backward(self) -> None:
        """With automatic ranks that are not yet settled: note what each direction brings."""
        if self.budget is None:
            return
        if self.spent() > self.budget:
            parameters = dict(self.network.named_parameters())
            for name, delta in self.low_rank_deltas().items():
                weight = parameters[name]
                delta.note(weight.grad if weight.requires_grad else None, self.scale)

    @torch.no_grad()
    def begin_epoch(self, epoch: int, epochs: int) -> Mapping[nn.Parameter, Cut]:
        """With automatic ranks: keep what earns its parameters within the epoch's budget.

        What goes is added to the main weights with the share that it has at equal preferences,
        so that the network there stays as it is.
        """
        if self.budget is None:
            return {}
        deltas = self.low_rank_deltas()
        importance = {}
        for name, delta in deltas.items():
            assert delta.importance is not None
            importance[name] = delta.importance.sort(descending=True).values.sum(0)
        costs = {name: delta.cost for name, delta in deltas.items()}
        ranks = allocate(importance, costs, budget_at(epoch, epochs, self.budget))
        parameters, cuts = dict(self.network.named_parameters()), {}
        for name, delta in deltas.items():
            kept = min(ranks[name], delta.rank)
            folds = kept < delta.rank and parameters[name].requires_grad
            before = delta.total() if folds else None
            cuts.update(delta.keep(kept))
            if before is not None:
                parameters[name].add_(before - delta.total(), alpha=self.scale / self.num_tasks)
        return cuts

    def ranks(self) -> dict[str, int]:
        """The inner size of the low-rank deltas, by parameter name."""
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
        found = {name: self.deltas[key] for name, key in self._keys.items()}
        return cast("dict[str, LowRankDelta | FullDelta]", found)

    def freeze(self, heads: bool = False) -> None:
        """Stop theta_0 of the shared part, biases included; with ``heads`` the heads too."""
        for name, parameter in self.network.named_parameters():
            if heads or name in self._shared:
                parameter.requires_grad_(False)
                parameter.grad = None

    def _vary(self, alphas: Tensor) -> dict[str, Sequence[Tensor]]:
        scaled = alphas * self.scale
        parameters = dict(self.network.named_parameters())
        return {
            name: delta.merge(parameters[name], scaled, self.merge)
            for name, delta in self._deltas().items()
        }

    def _vary_on(self, x: Any, alphas: Tensor) -> Mapping[str, Sequence[Tensor | LateWeight]]:
        if self.merge != "auto" or len(alphas) < 2 or needs_plain_operations(alphas):
            return self._vary(alphas)
        scaled = alphas * self.scale
        parameters = dict(self.network.named_parameters())
        varied: dict[str, Sequence[Tensor | LateWeight]] = {}
        for name, delta in self._deltas().items():
            weight = parameters[name]
            if isinstance(delta, LowRankDelta) and self._is_linear(name):
                varied[name] = delta.merge_late(x, weight, scaled)
            else:
                varied[name] = delta.merge(weight, scaled, self.merge)
        return varied

    def _is_linear(self, name: str) -> bool:
        """Whether a parameter is the weight of one linear layer and of nothing else."""
        (module, key), *others = self._places[name]
        return type(module) is nn.Linear and key == "weight" and not others

    @property
    def frozen(self) -> bool:
        parameters = dict(self.network.named_parameters())
        return not any(parameters[name].requires_grad for name in self._shared)


def _sizes(adapted: Sequence[_Owned], num_tasks: int, rank: int) -> Iterator[tuple[int, int]]:
    """For every matrix: directions at one rank for all layers, and the parameters of each."""
    for name, owner, weight in adapted:
        if is_matrix(name, owner, weight):
            rows, inner = matrix_of(owner, weight, rank)
            yield inner, num_tasks * (rows + weight.numel() // rows)


def _size(adapted: Sequence[_Owned], num_tasks: int, rank: int) -> int:
    """The parameters of all factors together with one rank for all layers."""
    return sum(inner * cost for inner, cost in _sizes(adapted, num_tasks, rank))


def _check_budget(adapted: Sequence[_Owned], num_tasks: int, budget: int | None) -> int:
    """The budget asked for, or that of rank 8, if every layer can have one direction."""
    if budget is None:
        return _size(adapted, num_tasks, _RANK)
    least = sum(cost for _, cost in _sizes(adapted, num_tasks, 1))
    return whole_number("budget", budget, least, " parameters, one direction in every layer")


def _first_rank(adapted: Sequence[_Owned], num_tasks: int, budget: int) -> int:
    """The rank that training starts from: the smallest that has more than it may use."""
    rank, size = 1, _size(adapted, num_tasks, 1)
    while size < START * budget and (larger := _size(adapted, num_tasks, rank + 1)) > size:
        rank, size = rank + 1, larger
    return rank
