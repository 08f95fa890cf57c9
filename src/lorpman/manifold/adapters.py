"""Fronts to adapters and back: what a low-rank manifold learns, as one adapter per task."""

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor, nn

from lorpman.errors import UsageError
from lorpman.manifold.applied_factors import can_apply, is_turned_linear
from lorpman.manifold.low_rank_delta import LowRankDelta
from lorpman.manifold.peft_format import Adapter

_Places = Mapping[str, list[tuple[nn.Module, str]]]


@torch.no_grad()
def adapter_at(
    network: nn.Module,
    places: _Places,
    deltas: Mapping[str, LowRankDelta],
    alpha: Tensor,
    scale: float,
) -> Adapter:
    """The network at a preference as one adapter, exactly.

    The factors of all tasks with a weight other than 0 stand side by side: at a corner the rank is
    r, elsewhere up to m r.

    Args:
        network: The network with the main weights, of which those below ``deltas`` do not move.
        places: Which modules hold each parameter.
        deltas: The factors, by parameter name.
        alpha: The preference ``[m]``.
        scale: What the deltas are multiplied with.

    Raises:
        UsageError: If PEFT has no factors for a layer.
    """
    modules = {module: name for name, module in network.named_modules()}
    # At a corner, one task's factors are all: the adapter has its rank, and not m times as much.
    chosen = alpha.nonzero().flatten()
    factors = {}
    for name, delta in deltas.items():
        A = delta.A[chosen].flatten(0, 1)
        B = (delta.B[:, chosen] * alpha[chosen, None].to(delta.B)).flatten(1)
        for module, key in places[name]:
            if not can_apply(module, key):
                raise UsageError(
                    f"PEFT has no LoRA like that of '{name}', expected linear layers, embeddings "
                    "and convolutions of width 1; leave it out with shared="
                )
            # PEFT's factors of such layers are those of the transpose.
            factors[modules[module]] = (B.T, A.T) if _has_inputs_as_rows(module) else (A, B)
    # Heads that are trained beside the deltas, without which the adapter would be another network.
    saved = {n: p.detach() for n, p in network.named_parameters() if p.requires_grad}
    return Adapter(factors, dict.fromkeys(factors, scale), saved)


def _has_inputs_as_rows(module: nn.Module) -> bool:
    """Whether a layer's weight is the transpose of that of a linear layer."""
    return isinstance(module, nn.Embedding) or is_turned_linear(module)


def check_frozen(network: nn.Module, names: frozenset[str]) -> None:
    """Refuse a base that is trained, which adapters would not bring with them.

    Args:
        network: The network of a manifold.
        names: Its parameters that have deltas.

    Raises:
        UsageError: If one of these is trained; the message names it.
    """
    for name, parameter in network.named_parameters():
        if name in names and parameter.requires_grad:
            raise UsageError(
                f"an adapter needs a base that stays as it came, but '{name}' is trained; build "
                "the manifold with frozen=True, or export whole networks"
            )


def adapted_weights(network: nn.Module, adapters: Sequence[Adapter]) -> list[str]:
    """The names of the weights for which any of the adapters has factors.

    Args:
        network: The network that the adapters are for.
        adapters: One per task.

    Raises:
        UsageError: If there is no adapter, one brings other weights along, or one is for another
            network.
    """
    if not adapters:
        raise UsageError("from_adapters needs one adapter per task, got none")
    modules = dict(network.named_modules())
    names = sorted({name for adapter in adapters for name in adapter.factors})
    parameters = dict(network.named_parameters())
    for saved in (item for adapter in adapters for item in adapter.saved.items()):
        # PEFT saves the embeddings that it adapts, too, as they are in the network.
        known = parameters.get(saved[0].replace(".base_layer.", "."))
        if known is None or not torch.equal(saved[1].to(known), known):
            raise UsageError(
                f"an adapter brings whole weights along ('{saved[0]}'), which cannot be mixed; "
                "expected LoRA factors alone"
            )
    for name in names:
        if name not in modules or not can_apply(modules[name], "weight"):
            raise UsageError(
                f"the adapters change '{name}', which {type(network).__name__} does not have as a "
                "linear layer, embedding or convolution of width 1; give the network they are for"
            )
        # named_parameters() tells a tied weight once, under the name of its first layer.
        if f"{name}.weight" not in parameters:
            raise UsageError(
                f"the adapters change '{name}', whose weight is tied to another layer's; expected "
                "adapters of layers with weights of their own"
            )
    return [f"{name}.weight" for name in names]


@torch.no_grad()
def take_adapters(
    network: nn.Module, deltas: Mapping[str, LowRankDelta], adapters: Sequence[Adapter]
) -> None:
    """Set the deltas of task i to the factors of adapter i; what one of them lacks becomes 0.

    Args:
        network: The network that the adapters are for.
        deltas: Its low-rank deltas by name of parameter; they get new factors.
        adapters: One per task.
    """
    modules = dict(network.named_modules())
    for weight, delta in deltas.items():
        name = weight.removesuffix(".weight")
        pairs = []
        for adapter in adapters:
            # A layer that this adapter leaves alone: factors of rank 0, padded to the others' rank
            # below.
            A, B = adapter.factors.get(name, (delta.A[0, :0], delta.B[:, 0, :0]))
            if _has_inputs_as_rows(modules[name]) and name in adapter.factors:
                A, B = B.T, A.T
            pairs.append((A.to(delta.A), B.to(delta.B) * adapter.scales.get(name, 1.0)))
        rank = max(len(A) for A, _ in pairs)
        pad = nn.functional.pad
        delta.replace(
            torch.stack([pad(B, (0, rank - B.shape[1])) for _, B in pairs], 1),
            torch.stack([pad(A, (0, 0, 0, rank - len(A))) for A, _ in pairs]),
        )
