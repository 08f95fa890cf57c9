"""From m trained networks to theta_0 and low-rank deltas, by truncated SVD."""

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor, nn

from lorpman.errors import UsageError, check_kind
from lorpman.manifold.automatic_ranks import allocate
from lorpman.manifold.deltas import FullDelta
from lorpman.manifold.low_rank_delta import LowRankDelta
from lorpman.manifold.shared_bottom import SharedBottom


def check_copies(models: Sequence[nn.Module]) -> None:
    """Refuse networks that are not copies of one architecture.

    Args:
        models: One network per task.

    Raises:
        UsageError: If there is none, or a name or shape in the state of one differs from the
            first one's.
    """
    check_kind("models", models, Sequence, "a list of networks, one per task")
    for model in models:
        check_kind("every network", model, nn.Module, "an nn.Module")
    if not models:
        raise UsageError("from_models needs one network per task, got none")
    first = {name: value.shape for name, value in models[0].state_dict().items()}
    for i, model in enumerate(models[1:], start=2):
        other = {name: value.shape for name, value in model.state_dict().items()}
        for name in sorted(first.keys() | other.keys()):
            if first.get(name) != other.get(name):
                shapes = [list(s[name]) if name in s else "nothing" for s in (first, other)]
                raise UsageError(
                    f"from_models needs copies of one network, but '{name}' is {shapes[0]} in "
                    f"network 1 and {shapes[1]} in network {i}"
                )


@torch.no_grad()
def centre(models: Sequence[nn.Module], into: nn.Module) -> None:
    """Put the mean of all networks into ``into``; head i of a SharedBottom comes from network i.

    Buffers are averaged too, except counters, which come from the first network.

    Args:
        models: One network per task, copies of one architecture.
        into: Another copy, which is changed.
    """
    states = [model.state_dict() for model in models]
    split = isinstance(into, SharedBottom) and len(into.heads) == len(models)
    for name, value in into.state_dict().items():
        parts = name.split(".")
        if split and parts[0] == "heads":
            value.copy_(states[int(parts[1])][name])
        elif value.is_floating_point():
            # In double precision, so that the mean of equal weights is exactly that weight.
            value.copy_(torch.stack([state[name].double() for state in states]).mean(0))
        else:
            # Whole numbers, such as counts of batches, have no mean.
            value.copy_(states[0][name])


def differences_from(
    mean: nn.Module, models: Sequence[nn.Module], names: Sequence[str]
) -> dict[str, Tensor]:
    """How far every network is from their mean.

    Args:
        mean: What :func:`centre` has made.
        models: One network per task.
        names: The parameters that count.

    Returns:
        By name one difference per task, ``[m, *shape]``.
    """
    middle = dict(mean.named_parameters())
    given = [dict(network.named_parameters()) for network in models]
    return {
        name: torch.stack([g[name].detach() - middle[name].detach() for g in given])
        for name in names
    }


def share_budget(
    deltas: Mapping[str, LowRankDelta], differences: Mapping[str, Tensor], budget: int
) -> None:
    """Give each delta the rank at which a parameter keeps most of the squared differences.

    Args:
        deltas: The deltas by parameter name, which are resized.
        differences: What they are to hold, ``[m, *shape]`` each.
        budget: The parameters that all together may have.
    """
    energy = {name: spectrum(differences[name], len(delta.B)) for name, delta in deltas.items()}
    costs = {name: delta.cost for name, delta in deltas.items()}
    for name, inner in allocate(energy, costs, budget).items():
        deltas[name].resize(inner)


@torch.no_grad()
def take(delta: LowRankDelta | FullDelta | None, differences: Tensor, scale: float) -> float:
    """Set the deltas of one parameter to differences from its mean, as well as they can.

    Args:
        delta: The deltas, which are changed; None for a parameter that has none.
        differences: One per task, ``[m, *shape]``.
        scale: What the deltas are multiplied with.

    Returns:
        The part of the squared differences that was kept.
    """
    # A bias has no delta: the mean is all that is left of it.
    if delta is None:
        return 0.0
    if isinstance(delta, FullDelta):
        delta.delta.copy_(differences / scale)
        return 1.0
    kept = whole = 0.0
    for i, difference in enumerate(differences):
        B, A, part, all_of_it = factors(difference, len(delta.B), delta.rank)
        # theta(alpha) multiplies by the scale again.
        delta.B[:, i] = B / scale
        delta.A[i] = A
        kept, whole = kept + part, whole + all_of_it
    return kept / whole


def factors(delta: Tensor, rows: int, rank: int) -> tuple[Tensor, Tensor, float, float]:
    """The factors whose product is nearest to ``delta``, by truncated SVD.

    Args:
        delta: A difference of weights, of any shape.
        rows: Rows of the matrix that it is seen as.
        rank: The inner size of the factors.

    Returns:
        ``B [rows, rank]``, ``A [rank, columns]``, and the sums of squares of ``B A`` and of
        ``delta``: the energy that is kept, and all of it.

    >>> B, A, kept, whole = factors(torch.outer(torch.ones(3), torch.ones(4)), 3, 1)
    >>> torch.allclose((B @ A).float(), torch.ones(3, 4)), round(kept, 4), round(whole, 4)
    (True, 12.0, 12.0)
    """
    u, s, vh = torch.linalg.svd(delta.double().reshape(rows, -1), full_matrices=False)
    # Half of each singular value to either side, so that training moves both alike.
    root = s[:rank].sqrt()
    kept, whole = s[:rank].square().sum(), s.square().sum()
    return u[:, :rank] * root, root[:, None] * vh[:rank], float(kept), float(whole)


def spectrum(deltas: Tensor, rows: int) -> Tensor:
    """Squared singular values of several matrices, summed over the matrices.

    Args:
        deltas: The matrices, ``[m, *shape]``.
        rows: Rows that each of them is seen with.

    Returns:
        ``[min(rows, columns)]`` in falling order: what each further rank keeps of all of them.

    >>> spectrum(torch.diag(torch.tensor([1.0, 3.0]))[None], 2)
    tensor([9., 1.], dtype=torch.float64)
    """
    return torch.linalg.svdvals(deltas.double().reshape(len(deltas), rows, -1)).square().sum(0)
