"""The file formats that a network can be written in, one row of ``FORMATS`` each.

A new format is a function that writes and checks a file, and its row.
"""

import logging
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import save_file
from torch import Tensor, nn

from lorpman._torch import tree_leaves, tree_map_only
from lorpman.errors import UsageError
from lorpman.manifold.base import Manifold

TOLERANCE = 1e-4
"""The largest difference to the network in PyTorch, for outputs of size 1."""

Written = tuple[float | None, bool | None]
"""The largest difference to the network, and whether batches of any size are taken."""
_Run = Callable[[tuple[Any, ...]], list[Tensor]]


class NetworkOfAlpha(nn.Module):
    """A manifold as a network of two inputs, the batch and the preference.

    Args:
        model: The manifold.
    """

    def __init__(self, model: Manifold) -> None:
        super().__init__()
        self.model = model

    def forward(self, x: Any, alpha: Tensor) -> Any:
        """What the network at one preference gives.

        Args:
            x: A batch.
            alpha: The preference ``[m]``.
        """
        return self.model(x, alpha)


def _write_state_dict(network: nn.Module, inputs: Any, path: Path, outputs: Any) -> Written:
    del inputs, outputs
    # Copies: safetensors refuses tensors that share memory, as tied weights do.
    state = {n: v.detach().cpu().clone().contiguous() for n, v in network.state_dict().items()}
    try:
        save_file(state, path)
    except SafetensorError as error:
        # What writes files turns an OSError into one line; it does not know safetensors.
        raise OSError(str(error)) from None
    return None, None


def _write_program(
    network: nn.Module, inputs: tuple[Any, ...], path: Path, outputs: Any
) -> Written:
    del outputs
    with exporting(network):
        program = torch.export.export(network, inputs, dynamic_shapes=_dynamic_shapes(inputs))
        # Read back and run, since a program that was saved may still fail to load.
        torch.export.save(program, path)
        loaded = torch.export.load(path).module()
    return _compared(network, inputs, lambda given: tree_leaves(loaded(*given)))


def _write_onnx(
    network: nn.Module, inputs: tuple[Any, ...], path: Path, outputs: Sequence[str] | None
) -> Written:
    import onnxruntime

    names = ["x"] if isinstance(inputs[0], Tensor) else [f"x_{i}" for i in range(len(inputs[0]))]
    names += ["alpha"] * (len(inputs) - 1)
    with exporting(network):
        program = torch.onnx.export(
            network,
            inputs,
            dynamo=True,
            dynamic_shapes=_dynamic_shapes(inputs),
            input_names=names,
            output_names=outputs,
            verbose=False,
        )
        assert program is not None
        # Everything in one file: weights beside it would be lost when the file is renamed.
        program.save(path, external_data=False)
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])

    def run(given: tuple[Any, ...]) -> list[Tensor]:
        arrays = [leaf.numpy() for leaf in tree_leaves(given)]
        results = session.run(None, dict(zip(names, arrays, strict=True)))
        return [torch.from_numpy(array) for array in results]

    return _compared(network, inputs, run)


@dataclass(frozen=True)
class Format:
    """One file format."""

    kind: str
    """What such a file is, for its card."""
    write: Callable[..., Written]
    """``(network, inputs, path, outputs)`` writes the file and compares it with the network."""
    needs: tuple[str, ...] = ()
    """Packages that writing needs, from the extra of the format's name."""
    is_graph: bool = True
    """Whether the file holds how to compute, and so needs an example of the inputs."""


FORMATS = {
    ".safetensors": Format(
        "state dict of the network's own class", _write_state_dict, is_graph=False
    ),
    ".pt2": Format("torch.export program", _write_program),
    ".onnx": Format("ONNX graph", _write_onnx, ("onnx", "onnxscript", "onnxruntime")),
}
"""By the suffix of the file's name."""


def _dynamic_shapes(inputs: tuple[Any, ...]) -> tuple[Any, ...]:
    """The first axis of the example may have any length; alpha's may not."""
    batch = tree_map_only(Tensor, lambda _: {0: torch.export.Dim.AUTO}, inputs[0])
    return (batch, *(None for _ in inputs[1:]))


@contextmanager
def exporting(network: nn.Module) -> Iterator[None]:
    """Quiet inside this context; one line for a network that PyTorch cannot run or take apart.

    Args:
        network: What is exported, for the message.

    Raises:
        UsageError: If anything goes wrong but the writing of a file.
    """
    logger = logging.getLogger("torch.onnx")
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings(), torch.no_grad():
            warnings.simplefilter("ignore")
            yield
    # A full disk is not the network's fault; who opened the file says so in one line.
    except OSError:
        raise
    except Exception as error:
        name = type(network.model if isinstance(network, NetworkOfAlpha) else network).__name__
        reason = next(iter(str(error).strip().splitlines()), type(error).__name__)
        raise UsageError(
            f"{name} cannot be exported to a graph: {reason}; "
            "export a state dict instead (.safetensors)"
        ) from error
    finally:
        logger.setLevel(level)


@torch.no_grad()
def _compared(network: nn.Module, inputs: tuple[Any, ...], run: _Run) -> Written:
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
    # One sample fewer: exporters fix the size silently where a network computes with it.
    part = tree_map_only(Tensor, lambda value: value[: len(value) - 1], inputs[0])
    try:
        any_size = _difference(network, (part, *inputs[1:]), run) <= TOLERANCE
    except Exception:  # each runtime has its own way to refuse a size
        any_size = False
    return difference, any_size


def _difference(network: nn.Module, inputs: tuple[Any, ...], run: _Run) -> float:
    """The largest difference between file and network, for outputs of size 1 or more."""
    expected = [v for v in tree_leaves(network(*inputs)) if isinstance(v, Tensor)]
    pairs = zip(expected, run(inputs), strict=True)
    # Large outputs, such as unscaled logits, lose digits in proportion to their size.
    return max(float((a - b).abs().max() / a.abs().max().clamp_min(1.0)) for a, b in pairs)
