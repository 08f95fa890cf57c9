"""Pareto hypernetworks: a network that writes the weights of another one."""

import math
import os
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from lorpman._torch import NORMS_WITH_STATISTICS
from lorpman.errors import UsageError, finite_number, whole_number
from lorpman.manifold.network_parameters import hollow
from lorpman.manifold.parameter_manifold import LateWeight, ParameterManifold

# Training with Adam holds weights, gradients and two moments.
_COPIES = 4


class HyperManifold(ParameterManifold):
    """What both hypernetworks share: every parameter of the network is generated.

    Args:
        network: Any network; it is copied, but its weights are not used.
        num_tasks: The number m of tasks.
        dropout: The share of generated weights that is set to zero in training.

    Raises:
        UsageError: If ``dropout`` is not in [0, 1), or the network cannot be used.
    """

    def __init__(self, network: nn.Module, num_tasks: int, dropout: float) -> None:
        super().__init__(network, num_tasks)
        if not 0 <= finite_number("dropout", dropout) < 1:
            raise UsageError(f"dropout must be at least 0 and below 1, got {dropout}")
        self.dropout = dropout
        self._shapes = {name: p.shape for name, p in self.network.named_parameters()}

    @property
    def generated(self) -> int:
        """The number of parameters of the network that is generated."""
        return sum(shape.numel() for shape in self._shapes.values())

    def _ready(self) -> None:
        # After the hypernetwork is built, which takes type and device from these weights.
        hollow(self.network, list(self._shapes))

    @abstractmethod
    def _vary(self, alphas: Tensor) -> dict[str, Sequence[Tensor]]: ...

    def run_with(self, varied: Mapping[str, Tensor | LateWeight], x: object) -> object:
        # Here and not in theta: a solution has all of its weights.
        if self.dropout and self.training:
            tensors = {name: v for name, v in varied.items() if isinstance(v, Tensor)}
            varied = {name: F.dropout(value, self.dropout) for name, value in tensors.items()}
        return super().run_with(varied, x)


class Hyper(HyperManifold):
    """PHN: ``theta(alpha) = W MLP(alpha) + c``, one linear map per parameter tensor.

    The MLP of the preference has three layers, the last one without an activation. For a network
    of N parameters the hypernetwork has a little more than ``(hidden + 1) N``, as many as about a
    hundred networks. Where training that would not fit into the free memory, it is refused before
    anything is allocated.

    Args:
        network: Any network; it is copied, but its weights are not used.
        num_tasks: The number m of tasks.
        hidden: Units in every layer of the MLP.
        dropout: The share of generated weights that is set to zero in training, as in PHN-HVI.
        memory: Bytes that training may take; by default what is free on the network's device.

    Raises:
        UsageError: If training would take more memory, a number is out of range, or the network
            cannot be used.

    >>> model = Hyper(nn.Linear(6, 4), num_tasks=2)
    >>> model.num_parameters() == 101 * (6 * 4 + 4) + 20_500
    True
    """

    def __init__(
        self,
        network: nn.Module,
        num_tasks: int,
        hidden: int = 100,
        dropout: float = 0.0,
        memory: int | None = None,
    ) -> None:
        super().__init__(network, num_tasks, dropout)
        _at_least_one("hidden", hidden)
        like = next(self.network.parameters())
        # Counted by hand, since the check has to come before anything is allocated.
        ray = hidden * (num_tasks + 1) + 2 * hidden * (hidden + 1)
        check_memory((hidden + 1) * self.generated + ray, self.generated, like, memory)
        self.ray = _mlp(num_tasks, hidden).to(like)
        self._keys = {name: name.replace(".", "/") for name in self._shapes}
        self.maps = nn.ModuleDict(
            {
                key: nn.Linear(
                    hidden, self._shapes[name].numel(), device=like.device, dtype=like.dtype
                )
                for name, key in self._keys.items()
            }
        )
        self._ready()

    def _vary(self, alphas: Tensor) -> dict[str, Sequence[Tensor]]:
        features = self.ray(alphas.to(next(self.ray.parameters())))
        return {
            name: self.maps[key](features).view(-1, *self._shapes[name]).unbind()
            for name, key in self._keys.items()
        }


class ChunkedHyper(HyperManifold):
    """Chunked PHN: the weights come in pieces, each written from an embedding of its own.

    ``e(alpha) = sum_i alpha_i E_i`` (32 numbers) and the embedding of a chunk (64 numbers) go
    through an MLP of three layers; linear maps that all chunks share turn its output into the
    chunk's values. The chunks are joined and cut to the network's size. So the number of
    parameters hardly depends on the network.

    Args:
        network: Any network; it is copied, but its weights are not used.
        num_tasks: The number m of tasks.
        hidden: Units in every layer of the MLP.
        matrices: How many linear maps make a chunk; fewer where one chunk of fewer maps already
            holds the whole network.
        block: How many values each of them gives.
        dropout: The share of generated weights that is set to zero in training, as in PHN-HVI.
        batch_statistics: Whether batch norms use the statistics of the batch in predictions too,
            as the released code does; a prediction then depends on the rest of its batch.
        memory: Bytes that training may take; by default what is free on the network's device.

    Raises:
        UsageError: If training would take more memory, a number is out of range, or the network
            cannot be used.

    >>> model = ChunkedHyper(nn.Linear(6, 4), num_tasks=2, hidden=10, matrices=2, block=5)
    >>> len(model.chunks), model.theta(torch.tensor([0.3, 0.7]))["weight"].shape
    (3, torch.Size([4, 6]))
    """

    def __init__(
        self,
        network: nn.Module,
        num_tasks: int,
        hidden: int = 100,
        matrices: int = 11,
        block: int = 10_000,
        dropout: float = 0.0,
        batch_statistics: bool = False,
        memory: int | None = None,
    ) -> None:
        super().__init__(network, num_tasks, dropout)
        for name, value in (("hidden", hidden), ("matrices", matrices), ("block", block)):
            _at_least_one(name, value)
        # More maps than one chunk of the whole network needs would never be used.
        matrices = min(matrices, math.ceil(self.generated / block))
        like = next(self.network.parameters())
        check_memory(matrices * block * hidden, self.generated, like, memory)
        count = math.ceil(self.generated / (matrices * block))
        # The sizes 32 and 64 of the embeddings are those of the released code.
        self.preference = nn.Parameter(_small(like, num_tasks, 32))
        self.chunks = nn.Parameter(_small(like, count, 64))
        self.mlp = _mlp(96, hidden).to(like)
        self.blocks = nn.Parameter(_small(like, matrices, block, hidden))
        self._ready()
        if batch_statistics:
            _forget_statistics(self.network)

    def _vary(self, alphas: Tensor) -> dict[str, Sequence[Tensor]]:
        b, c = len(alphas), len(self.chunks)
        rays = (alphas.to(self.preference) @ self.preference)[:, None].expand(b, c, -1)
        features = self.mlp(torch.cat([rays, self.chunks.expand(b, c, -1)], -1))
        # The last chunk gives more than the network needs; the rest of it is cut off.
        values = (features @ self.blocks.flatten(0, 1).T).flatten(1)[:, : self.generated]
        parts = values.split([shape.numel() for shape in self._shapes.values()], 1)
        return {
            name: part.reshape(b, *shape).unbind()
            for (name, shape), part in zip(self._shapes.items(), parts, strict=True)
        }


def _mlp(inputs: int, hidden: int) -> nn.Sequential:
    return nn.Sequential(
        nn.Linear(inputs, hidden),
        nn.ReLU(),
        nn.Linear(hidden, hidden),
        nn.ReLU(),
        nn.Linear(hidden, hidden),
    )


def _small(like: Tensor, *shape: int) -> Tensor:
    """A random start of embeddings and maps: normal numbers of deviation 0.1."""
    return torch.randn(shape, device=like.device, dtype=like.dtype) * 0.1


def _forget_statistics(network: nn.Module) -> None:
    """Let norm layers use the statistics of the batch, in evaluation too."""
    for module in network.modules():
        if isinstance(module, NORMS_WITH_STATISTICS):
            # The flag alone would not do: evaluation uses running statistics where there are any.
            module.track_running_stats = False
            module.running_mean = module.running_var = module.num_batches_tracked = None


def check_memory(count: int, target: int, like: Tensor, limit: int | None = None) -> None:
    """Refuse a hypernetwork that could not be trained here.

    Args:
        count: The parameters of the hypernetwork.
        target: The parameters of the network that it generates, for the message.
        like: A tensor of their type, on their device.
        limit: Bytes that training may take; None for what is free on that device.

    Raises:
        UsageError: If training with Adam would take more.
    """
    free = free_memory(like.device) if limit is None else limit
    size = count * like.element_size()
    if free is not None and _COPIES * size > free:
        raise UsageError(
            f"a hypernetwork for {target:,} parameters has {count:,} of its own: "
            f"{_bytes(size)}, and {_bytes(_COPIES * size)} to train with Adam, but "
            f"{_bytes(free)} are free; use ChunkedHyper (chunked-phn), LowRank (lorpman), or "
            "pass memory= to try all the same"
        )


def free_memory(device: torch.device) -> int | None:
    """How much memory a device has left.

    Args:
        device: Any device.

    Returns:
        Bytes; None where that is not known, or nothing is stored (the meta device).
    """
    if device.type == "cuda":
        return int(torch.cuda.mem_get_info(device)[0])
    if device.type != "cpu":
        return None
    try:
        # MemAvailable and not MemFree, which leaves out what caches would give back.
        text = Path("/proc/meminfo").read_text()
        lines = dict(line.split(":") for line in text.splitlines())
        return int(lines["MemAvailable"].split()[0]) * 1024
    except (OSError, KeyError, ValueError):
        # Not Linux: all memory that the machine has is the best bound there is.
        pages = os.sysconf("SC_PHYS_PAGES") if hasattr(os, "sysconf") else -1
        return pages * os.sysconf("SC_PAGE_SIZE") if pages > 0 else None


def _bytes(size: int) -> str:
    return f"{size / 2**30:.1f} GiB" if size >= 2**30 else f"{size / 2**20:.1f} MiB"


def _at_least_one(name: str, value: int) -> None:
    whole_number(name, value)
