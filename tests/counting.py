"""Parameter counts of the manifolds by formula, from the shapes of a base network alone."""

from collections.abc import Iterator

from torch import nn

NORMS = (nn.BatchNorm1d, nn.BatchNorm2d, nn.GroupNorm, nn.LayerNorm)


def base(network: nn.Module) -> int:
    return sum(p.numel() for p in network.parameters())


def _chosen(network: nn.Module, prefix: str) -> Iterator[nn.Module]:
    return (m for name, m in network.named_modules() if f"{name}.".startswith(f"{prefix}."))


def low_rank_delta(shape: tuple[int, ...], rank: int) -> int:
    """Factors of one delta: ``d x k``, or a convolution seen as ``(out k) x (in k)``."""
    out, ins, k = shape[0], shape[1], shape[2] if len(shape) > 2 else 1
    rows, columns = out * k, ins * k
    return min(rank * k, rows, columns) * (rows + columns)


def lorpman(network: nn.Module, num_tasks: int, rank: int, shared: str = "bottom") -> int:
    """One factorised delta per weight and one full delta per norm vector, for each task."""
    extra = 0
    for module in _chosen(network, shared):
        if isinstance(module, nn.Linear | nn.Conv2d):
            extra += low_rank_delta(tuple(module.weight.shape), rank)
        elif isinstance(module, NORMS):
            extra += sum(p.numel() for p in module.parameters(recurse=False))
    return base(network) + num_tasks * extra


def pamal(network: nn.Module, num_tasks: int, once: str | None = None) -> int:
    """A copy of every parameter per task, but for those under the prefix ``once``."""
    single = 0 if once is None else sum(p.numel() for p in network.get_submodule(once).parameters())
    return num_tasks * (base(network) - single) + single


def cosmos(network: nn.Module, num_tasks: int) -> int:
    """Preferences as more input features, or as more input channels after an upsampler."""
    first = next(m for m in network.modules() if isinstance(m, nn.Linear | nn.Conv2d))
    if isinstance(first, nn.Linear):
        return base(network) + num_tasks * first.out_features
    upsampler = num_tasks**2 * (4 * 4 + 6 * 6)
    kernel = first.kernel_size[0] * first.kernel_size[1]
    return base(network) + upsampler + num_tasks * first.out_channels * kernel


def phn(network: nn.Module, num_tasks: int, hidden: int = 100) -> int:
    """A three-layer ray network and one linear map to every parameter."""
    ray = num_tasks * hidden + hidden + 2 * (hidden**2 + hidden)
    return ray + (hidden + 1) * base(network)
