"""Taking a network away: files that run without lorpman, each with a card that says what it is."""

import hashlib
import logging
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import version
from itertools import islice
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import save_file
from torch import Tensor, nn

from lorpman._files import is_checkpoint, replacing, write_json
from lorpman._torch import BATCH_NORMS, tree_leaves, tree_map_only
from lorpman.errors import UsageError, need, unknown
from lorpman.manifold.base import Manifold
from lorpman.preference import as_preference

TOLERANCE = 1e-4
"""The largest difference to the network in PyTorch, for outputs of size 1."""


@dataclass(frozen=True)
class Exported:
    """What was written, and how it was checked."""

    path: Path
    card: Path
    difference: float | None
    """Largest difference to the network in PyTorch on the example; None for a state dict."""
    any_batch_size: bool | None
    """Whether the file takes batches of any size; None for a state dict."""


def export(
    model: Manifold,
    alpha: Tensor | Sequence[float] | None,
    to: Path | str,
    example: Any = None,
    *,
    outputs: Sequence[str] | None = None,
    card: Mapping[str, Any] | None = None,
) -> Exported:
    """Write the network at ``alpha [m]`` into the file ``to``; its suffix picks the format.

    ``.safetensors`` is a state dict for the network's own class, ``.pt2`` a ``torch.export``
    program and ``.onnx`` a graph. The latter two need ``example``, a batch of inputs on which
    the file is run and compared with the network before it gets its name. With ``alpha=None``
    they take alpha ``[m]`` as a second input. ``outputs`` names what a graph gives out; ``card``
    is added to the model card, which is written beside the file.
    """
    if alpha is not None:
        alpha = as_preference(alpha, model.num_tasks)
        return export_network(model.solution(alpha), alpha, to, example, outputs, card)
    if Path(to).suffix == ".safetensors":
        raise UsageError("a state dict holds one network: give alpha, or export to .onnx or .pt2")
    return export_network(_Any(model), None, to, example, outputs, card, model.num_tasks)


def export_network(
    network: nn.Module,
    alpha: Tensor | None,
    to: Path | str,
    example: Any = None,
    outputs: Sequence[str] | None = None,
    card: Mapping[str, Any] | None = None,
    num_tasks: int = 0,
) -> Exported:
    """Write a plain network, as :func:`export` does; for one changed after ``solution``."""
    to = Path(to)
    write = _writer(to)
    inputs = _inputs(to, example, num_tasks if alpha is None else 0)
    beside = to.with_name(to.name + ".card.json")
    # The card is renamed last: a card without its file would be a lie.
    with _in_eval_mode(network), replacing(beside) as described, replacing(to) as temporary:
        temporary.touch()  # so that a folder that refuses it is named, whatever the writer says
        difference, any_size = write(network, inputs, temporary, outputs)
        facts = {
            "file": to.name,
            "sha256": hashlib.sha256(temporary.read_bytes()).hexdigest(),
            "kind": _KINDS[to.suffix],
            "alpha": "a second input" if alpha is None else alpha.tolist(),
            "inputs": [f"{v.dtype} {list(v.shape)}" for v in tree_leaves(inputs)],
            "outputs": None if outputs is None else list(outputs),
            "largest_difference": difference,
            "any_batch_size": any_size,
            "versions": {name: version(name) for name in ("lorpman", "torch")},
            **(card or {}),
        }
        write_json(described, facts)
    return Exported(to, beside, difference, any_size)


def recalibrate(network: nn.Module, batches: Iterable[Any], limit: int | None = None) -> int:
    """Estimate the statistics of every BatchNorm anew; how many layers there are.

    While training, these statistics are shared by all preferences. ``batches`` yields
    ``(x, y)`` or ``x``; at most ``limit`` of them are used, all with the same weight.
    """
    norms = [m for m in network.modules() if isinstance(m, BATCH_NORMS) and m.track_running_stats]
    if not norms:
        return 0
    modes = {module: module.training for module in network.modules()}
    momenta = [norm.momentum for norm in norms]
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
    return len(norms)


class _Any(nn.Module):
    """A manifold as a network of two inputs."""

    def __init__(self, model: Manifold) -> None:
        super().__init__()
        self.model = model

    def forward(self, x: Any, alpha: Tensor) -> Any:
        return self.model(x, alpha)


def _inputs(to: Path, example: Any, num_tasks: int) -> tuple[Any, ...]:
    if to.suffix == ".safetensors":
        return ()
    if example is None:
        raise UsageError(f"{to.suffix} needs an example: pass a batch of inputs")
    if any(len(leaf) < 2 for leaf in tree_leaves(example)):
        raise UsageError("the example must hold at least 2 samples, to tell a batch from a size")
    return (example, torch.full((num_tasks,), 1 / num_tasks)) if num_tasks else (example,)


@contextmanager
def _in_eval_mode(network: nn.Module) -> Iterator[None]:
    modes = {module: module.training for module in network.modules()}
    network.eval()
    try:
        yield
    finally:
        for module, mode in modes.items():
            module.training = mode


Written = tuple[float | None, bool | None]
Run = Callable[[tuple[Any, ...]], list[Tensor]]


def _writer(to: Path) -> Callable[..., Written]:
    writers = {".safetensors": _state_dict, ".pt2": _program, ".onnx": _onnx}
    if not to.suffix:
        known = ", ".join(sorted(writers))
        raise UsageError(f"'{to}' has no suffix that tells the file format; known: {known}")
    if to.suffix not in writers:
        raise unknown("file format", to.suffix, writers)
    if to.is_dir():
        raise UsageError(f"cannot write '{to}': it is a directory; choose a file name")
    if not to.parent.is_dir():
        raise UsageError(f"cannot write '{to}': there is no folder '{to.parent}'; make it first")
    if is_checkpoint(to):
        raise UsageError(f"'{to}' is the checkpoint of a run; choose another file name")
    if to.suffix == ".onnx":
        for module in ("onnx", "onnxscript", "onnxruntime"):
            need(module, extra="onnx")
    return writers[to.suffix]


_KINDS = {
    ".safetensors": "state dict of the network's own class",
    ".pt2": "torch.export program",
    ".onnx": "ONNX graph",
}


def _state_dict(network: nn.Module, inputs: Any, path: Path, outputs: Any) -> Written:
    del inputs, outputs
    # Copies: safetensors refuses tensors that share memory, as tied weights do.
    state = {n: v.detach().cpu().clone().contiguous() for n, v in network.state_dict().items()}
    try:
        save_file(state, path)
    except SafetensorError as error:
        raise OSError(str(error)) from None
    return None, None


def _program(network: nn.Module, inputs: tuple[Any, ...], path: Path, outputs: Any) -> Written:
    del outputs
    with _exporting(network):
        program = torch.export.export(network, inputs, dynamic_shapes=_dynamic(inputs))
        torch.export.save(program, path)
        loaded = torch.export.load(path).module()
    return _checked(network, inputs, lambda given: tree_leaves(loaded(*given)))


def _onnx(
    network: nn.Module, inputs: tuple[Any, ...], path: Path, outputs: Sequence[str] | None
) -> Written:
    import onnxruntime

    names = ["x"] if isinstance(inputs[0], Tensor) else [f"x_{i}" for i in range(len(inputs[0]))]
    names += ["alpha"] * (len(inputs) - 1)
    with _exporting(network):
        program = torch.onnx.export(
            network,
            inputs,
            dynamo=True,
            dynamic_shapes=_dynamic(inputs),
            input_names=names,
            output_names=outputs,
            verbose=False,
        )
        assert program is not None
        program.save(path, external_data=False)
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])

    def run(given: tuple[Any, ...]) -> list[Tensor]:
        arrays = [leaf.numpy() for leaf in tree_leaves(given)]
        found = session.run(None, dict(zip(names, arrays, strict=True)))
        return [torch.from_numpy(array) for array in found]

    return _checked(network, inputs, run)


def _dynamic(inputs: tuple[Any, ...]) -> tuple[Any, ...]:
    """The first axis of the example may have any length; alpha's may not."""
    batch = tree_map_only(Tensor, lambda _: {0: torch.export.Dim.AUTO}, inputs[0])
    return (batch, *(None for _ in inputs[1:]))


@contextmanager
def _exporting(network: nn.Module) -> Iterator[None]:
    """Quiet, and with one line for a network that PyTorch cannot take apart."""
    logger = logging.getLogger("torch.onnx")
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings(), torch.no_grad():
            warnings.simplefilter("ignore")
            yield
    except OSError:
        raise
    except Exception as error:
        name = type(network.model if isinstance(network, _Any) else network).__name__
        reason = next(iter(str(error).strip().splitlines()), type(error).__name__)
        raise UsageError(
            f"{name} cannot be exported to a graph: {reason}; "
            "export a state dict instead (.safetensors)"
        ) from error
    finally:
        logger.setLevel(level)


@torch.no_grad()
def _checked(network: nn.Module, inputs: tuple[Any, ...], run: Run) -> Written:
    """Compare a written file with the network, on the example and on a part of it."""
    # Alpha is tried at a corner as well: a graph with the example's alpha baked in must not pass.
    corners = [torch.eye(len(alpha))[0] for alpha in inputs[1:]]
    tried = [inputs, (inputs[0], *corners)] if corners else [inputs]
    difference = max(_difference(network, given, run) for given in tried)
    if not difference <= TOLERANCE:
        raise UsageError(
            f"the exported file differs from the network by {difference:.3g}, expected at most "
            f"{TOLERANCE:g}; export a state dict instead (.safetensors)"
        )
    part = tree_map_only(Tensor, lambda value: value[: len(value) - 1], inputs[0])
    try:
        any_size = _difference(network, (part, *inputs[1:]), run) <= TOLERANCE
    except Exception:  # each runtime has its own way to refuse a size
        any_size = False
    return difference, any_size


def _difference(network: nn.Module, inputs: tuple[Any, ...], run: Run) -> float:
    expected = [v for v in tree_leaves(network(*inputs)) if isinstance(v, Tensor)]
    pairs = zip(expected, run(inputs), strict=True)
    return max(float((a - b).abs().max() / a.abs().max().clamp_min(1.0)) for a, b in pairs)
