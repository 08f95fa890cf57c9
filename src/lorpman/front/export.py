"""Taking a network away: files that run without lorpman, each with a card that says what it is."""

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import version
from os import PathLike
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from lorpman._files import Kind, check_target, json_with, read_json, replacing
from lorpman._torch import tree_leaves
from lorpman.errors import UsageError, check_kind, need, unknown
from lorpman.front.export_formats import FORMATS, Format, NetworkOfAlpha, exporting
from lorpman.front.finiteness import check_outputs, check_weights
from lorpman.manifold.base import Manifold, check_manifold
from lorpman.manifold.network_parameters import check_values
from lorpman.preference import as_preference


def _card_of(path: Path) -> Path:
    """Where the model card of a file is."""
    return path.with_name(path.name + ".card.json")


def _has_card(path: Path) -> bool:
    """Whether a card beside the file names it; the formats have no place for a mark of ours."""
    return read_json(_card_of(path), "card").get("file") == path.name


CARD = Kind("a model card", json_with("file", "sha256", "kind"))
NETWORK = Kind("an exported network with its card", _has_card)


@dataclass(frozen=True)
class Exported:
    """What was written, and how it was checked."""

    path: Path
    """The network."""
    card: Path
    """The model card beside it."""
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
    """Write the network at a preference into a file, and a model card beside it.

    Args:
        model: The manifold.
        alpha: The preference, ``[m]``; with None, the file takes alpha as a second input.
        to: The file. Its suffix picks the format: ``.safetensors`` is a state dict for the
            network's own class, ``.pt2`` a ``torch.export`` program and ``.onnx`` a graph.
        example: A batch of inputs, which programs and graphs need; the file is run on it and
            compared with the network before it gets its name.
        outputs: Names of what a graph gives out.
        card: What is added to the model card.

    Returns:
        What was written, and how it was checked.

    Raises:
        UsageError: If the file cannot be written, the format does not fit, or the network cannot
            be exported or is not finite; nothing is left behind then.
    """
    check_manifold(model)
    check_kind("to", to, (str, PathLike), "the name of a file")
    if alpha is not None:
        alpha = as_preference(alpha, model.num_tasks)
        return export_network(model.solution(alpha), alpha, to, example, outputs, card)
    wanted = FORMATS.get(Path(to).suffix)
    if wanted is not None and not wanted.is_graph:
        raise UsageError("a state dict holds one network: give alpha, or export to .onnx or .pt2")
    return export_network(NetworkOfAlpha(model), None, to, example, outputs, card, model.num_tasks)


def export_network(
    network: nn.Module,
    alpha: Tensor | None,
    to: Path | str,
    example: Any = None,
    outputs: Sequence[str] | None = None,
    card: Mapping[str, Any] | None = None,
    num_tasks: int = 0,
) -> Exported:
    """Write a plain network, as :func:`export` does; for one changed after ``solution``.

    Args:
        network: The network.
        alpha: Its preference, ``[m]``, for the card; None if it takes alpha as a second input.
        to: See :func:`export`.
        example: See :func:`export`.
        outputs: See :func:`export`.
        card: See :func:`export`.
        num_tasks: The length of alpha, if it is a second input.

    Returns:
        What was written, and how it was checked.

    Raises:
        UsageError: As :func:`export`.
    """
    check_kind("network", network, nn.Module, "an nn.Module")
    check_kind("card", {} if card is None else card, Mapping, "a mapping")
    to = Path(to)
    chosen = _format_of(to)
    inputs = _inputs(to, example, num_tasks if alpha is None else 0) if chosen.is_graph else ()
    _check_finite(network, alpha, inputs)
    beside = _card_of(to)
    # The card is renamed last: a card without its file would be a lie.
    with (
        _in_eval_mode(network),
        replacing(beside, CARD) as described,
        replacing(to, NETWORK) as temporary,
    ):
        # First, so that a folder that refuses files gives our message and not the writer's.
        temporary.touch()
        difference, any_size = chosen.write(network, inputs, temporary, outputs)
        facts = {
            "file": to.name,
            "sha256": hashlib.sha256(temporary.read_bytes()).hexdigest(),
            "kind": chosen.kind,
            "alpha": "a second input" if alpha is None else alpha.tolist(),
            "inputs": [f"{v.dtype} {list(v.shape)}" for v in tree_leaves(inputs)],
            "outputs": None if outputs is None else list(outputs),
            "largest_difference": difference,
            "any_batch_size": any_size,
            "versions": {name: version(name) for name in ("lorpman", "torch")},
            **(card or {}),
        }
        described.write_text(json.dumps(facts, indent=2) + "\n")
    return Exported(to, beside, difference, any_size)


def _check_finite(network: nn.Module, alpha: Tensor | None, inputs: tuple[Any, ...]) -> None:
    """Refuse a network that is not finite, or gives out on the example what is not."""
    check_values(network)
    check_weights(network, alpha)
    if inputs:
        with _in_eval_mode(network), exporting(network):
            given = network(*inputs)
        check_outputs({"the output": given}, alpha, inputs[0])


def _inputs(to: Path, example: Any, num_tasks: int) -> tuple[Any, ...]:
    """What a graph is made and checked with: the example, and a preference if it takes one."""
    if example is None:
        raise UsageError(f"{to.suffix} needs an example: pass a batch of inputs")
    if any(len(leaf) < 2 for leaf in tree_leaves(example)):
        raise UsageError("the example must hold at least 2 samples, to tell a batch from a size")
    return (example, torch.full((num_tasks,), 1 / num_tasks)) if num_tasks else (example,)


@contextmanager
def _in_eval_mode(network: nn.Module) -> Iterator[None]:
    """Dropout off and norms on their statistics, as a file is to work; then as before."""
    # Module by module: a caller may have frozen some norm layers only.
    modes = {module: module.training for module in network.modules()}
    network.eval()
    try:
        yield
    finally:
        for module, mode in modes.items():
            module.training = mode


def _format_of(to: Path) -> Format:
    """The format of a file that can be written; everything else is refused before any work."""
    if not to.suffix:
        known = ", ".join(sorted(FORMATS))
        raise UsageError(f"'{to}' has no suffix that tells the file format; known: {known}")
    if to.suffix not in FORMATS:
        raise unknown("file format", to.suffix, FORMATS)
    check_target(to, NETWORK)
    check_target(_card_of(to), CARD)
    # Before the network is made: a missing package should not cost that time.
    for module in FORMATS[to.suffix].needs:
        need(module, extra=to.suffix[1:])
    return FORMATS[to.suffix]
