"""Checkpoints: nested state as safetensors plus JSON, with a checksum. No file can run code.

The tensors of a state stand in the file under running numbers. Everything around them is JSON in
the metadata, with ``{"$tensor": number}`` where a tensor was. The newest two files are kept, so
that one that is damaged later does not cost the whole run.
"""

import hashlib
import json
import os
import warnings
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from lorpman._files import Kind, check_target, replacing, temporaries, temporary_name
from lorpman.errors import UsageError, UserNotice

# The only key of the metadata: safetensors writes several in random order, and the files of two
# equal runs should be equal.
_FORMAT = "lorpman-checkpoint-2"
# Files of the first version hold the packed state itself, and no checksum around it.
_WITHOUT_CHECKSUM = "lorpman-checkpoint-1"
# What Python raises over JSON that was not written by save.
_WRONG_CONTENT = (KeyError, TypeError, ValueError, AttributeError, OverflowError, RecursionError)


class DamagedCheckpoint(UsageError):
    """A checkpoint that was whole once: truncated, with bits that changed, or made by hand."""


class CheckpointWarning(UserNotice):
    """The newest checkpoint is damaged, and the one before it was used."""


def save(state: dict[str, Any], path: Path) -> None:
    """Write ``state``: dicts, lists, tuples, plain values and tensors, nested as they are.

    What was at ``path`` before is kept at :func:`previous`.

    Args:
        state: What :func:`load` gives back.
        path: The file; never half written, whatever happens.

    Raises:
        UsageError: If the state holds something else, or the file cannot be written.
    """
    tensors: dict[str, Tensor] = {}
    packed = _pack(state, tensors)
    text = json.dumps({"sha256": _checksum(json.dumps(packed), tensors), "state": packed})
    advice = "what was saved before is intact: make room and resume"
    try:
        with replacing(path, KIND) as temporary:
            check_target(previous(path), KIND)
            save_file(tensors, temporary, metadata={_FORMAT: text})
            # Only now, when the new file is whole: a full disk must not cost the older one.
            _keep_as_previous(path)
    except SafetensorError as error:
        raise UsageError(f"cannot write checkpoint {path}: {error}; {advice}") from error


def previous(path: Path) -> Path:
    """Where the checkpoint before the newest one is.

    Args:
        path: Where the newest one is.

    >>> previous(Path("run/checkpoint.safetensors")).name
    'checkpoint.previous.safetensors'
    """
    return path.with_name(f"{path.stem}.previous{path.suffix}")


def _is_checkpoint(path: Path) -> bool:
    """Whether the file is one, or was: a damaged one has the one before it beside it."""
    for candidate in (path, previous(path)):
        with suppress(OSError, SafetensorError), safe_open(candidate, framework="pt") as file:
            if any(key.startswith("lorpman-checkpoint") for key in file.metadata() or {}):
                return True
    return False


KIND = Kind("a checkpoint", _is_checkpoint)


def check_writable(path: Path) -> None:
    """Refuse to save where something else is; before training, which could be in vain.

    Args:
        path: Where the newest checkpoint will be.

    Raises:
        UsageError: If a place is taken by something else, or cannot be written to.
    """
    check_target(path, KIND)
    check_target(previous(path), KIND)


def exists(path: Path) -> bool:
    """Whether there is anything to resume from: the newest checkpoint, or the one before it.

    Args:
        path: Where the newest one would be.
    """
    return path.exists() or previous(path).exists()


def load_latest(path: Path) -> dict[str, Any]:
    """The newest checkpoint that is whole; a :class:`CheckpointWarning` if it is the older one.

    Also removes what writers that were killed have left beside it.

    Args:
        path: Where the newest one should be.

    Raises:
        UsageError: If there is none, or both are damaged.
    """
    for leftover in temporaries(path):
        # Another process may be removing the same one.
        with suppress(OSError):
            leftover.unlink()
    try:
        return _load_training(path if path.exists() else previous(path))
    except DamagedCheckpoint as error:
        try:
            state = _load_training(previous(path))
        except UsageError as other:
            raise UsageError(f"{error}; and so is the one before: {other}") from None
        message = f"{error}; continuing from the one before, {previous(path).name}"
        # stacklevel 2: the warning names the line of the caller.
        warnings.warn(message, CheckpointWarning, stacklevel=2)
        return state


def _load_training(path: Path) -> dict[str, Any]:
    """A checkpoint of a training, with everything in it of the kind that it should be."""
    # Imported here, as below: pydantic is slow to import, and "import lorpman" stays light.
    from lorpman.training.checkpoint_content import check_training_state

    state = load(path)
    check_training_state(state, path)
    return state


def load_model(path: Path) -> dict[str, Any]:
    """The weights of the model in the checkpoint at ``path``, and nothing else.

    Unlike :func:`load_latest`, it takes no other file than the one that was asked for.

    Args:
        path: The file.

    Raises:
        UsageError: If there is none, or it is damaged; the message names the one before it, if
            that is whole.
    """
    try:
        return _model_of(path)
    except DamagedCheckpoint as error:
        try:
            _model_of(previous(path))
        except UsageError:
            raise error from None
        raise DamagedCheckpoint(
            f"{error}; the one before is whole: continue training from it with --resume, or "
            f"rename {previous(path)} to {path.name}"
        ) from None


def _model_of(path: Path) -> dict[str, Any]:
    from lorpman.training.checkpoint_content import check_model_state

    state = load(path)
    check_model_state(state, path)
    return state["model"]


def epochs_done(path: Path) -> int:
    """How many epochs a checkpoint has, without reading its tensors.

    Args:
        path: The file.

    Returns:
        Their number; 0 if there is no checkpoint, or it cannot be read.
    """
    try:
        with safe_open(path, framework="pt") as file:
            metadata = file.metadata() or {}
        if _FORMAT in metadata:
            state = json.loads(metadata[_FORMAT])["state"]
        else:
            state = json.loads(metadata[_WITHOUT_CHECKSUM])
        done = _unpack(state, lambda name: None)["epochs_done"]
        # Not isinstance, for which True is a whole number.
        return done if type(done) is int and done > 0 else 0
    except (OSError, SafetensorError, *_WRONG_CONTENT):
        return 0


def load(path: Path) -> dict[str, Any]:
    """Read what :func:`save` wrote.

    Args:
        path: The file.

    Returns:
        The state, with its tensors on the CPU.

    Raises:
        DamagedCheckpoint: If the file is truncated, or a bit of it has changed.
        UsageError: If there is no file, or it is not a checkpoint.
    """
    try:
        with safe_open(path, framework="pt") as file:
            metadata = file.metadata() or {}
            if _FORMAT not in metadata and _WITHOUT_CHECKSUM not in metadata:
                raise UsageError(
                    f"{path} is not a checkpoint of this version: expected {_FORMAT}, "
                    f"found {', '.join(metadata) or 'no description'}"
                )
            if _FORMAT not in metadata:
                return _unpack(json.loads(metadata[_WITHOUT_CHECKSUM]), file.get_tensor)
            content = json.loads(metadata[_FORMAT])
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
            # Of all that was read: a flipped bit in a weight would otherwise train on unnoticed.
            if _checksum(json.dumps(content["state"]), tensors) != content["sha256"]:
                raise DamagedCheckpoint(f"checkpoint {path} is damaged: its checksum is wrong")
            return _unpack(content["state"], tensors.__getitem__)
    except FileNotFoundError as error:
        raise UsageError(f"no checkpoint at {path}") from error
    except (OSError, SafetensorError, *_WRONG_CONTENT) as error:
        if isinstance(error, UsageError):  # which is a ValueError
            raise
        raise DamagedCheckpoint(f"checkpoint {path} is damaged or truncated: {error}") from error


def _keep_as_previous(path: Path) -> None:
    """Give the present file a second name; there is no moment without a whole checkpoint."""
    if not path.is_file():
        return
    # A link cannot replace a file, but a link of another name can be renamed to it.
    link = temporary_name(path)
    try:
        os.link(path, link)
        link.replace(previous(path))
    except OSError:  # a file system without hard links
        path.replace(previous(path))
    finally:
        link.unlink(missing_ok=True)


def _checksum(text: str, tensors: dict[str, Tensor]) -> str:
    """Of the JSON text, and of name, type, shape and bytes of every tensor."""
    digest = hashlib.sha256(text.encode())
    # Sorted, since safetensors gives them back in an order of its own.
    for name in sorted(tensors):
        tensor = tensors[name]
        digest.update(f"{name} {tensor.dtype} {list(tensor.shape)}".encode())
        # As bytes, since numpy has no bfloat16.
        digest.update(tensor.reshape(-1).view(torch.uint8).numpy().data)
    return digest.hexdigest()


def _pack(value: Any, tensors: dict[str, Tensor]) -> Any:
    """Plain JSON for ``value``; its tensors are put into ``tensors`` and named in the JSON.

    Dictionaries become lists of pairs: the keys of an optimiser's state are numbers, and those of
    JSON cannot be.
    """
    if isinstance(value, Tensor):
        name = str(len(tensors))
        # A copy of its own: safetensors refuses tensors that share memory, as tied weights do.
        tensors[name] = value.detach().cpu().clone().contiguous()
        return {"$tensor": name}
    if isinstance(value, dict):
        # As pairs: the keys of an optimiser's state are numbers, of which JSON would make texts.
        return {"$dict": [[_pack(k, tensors), _pack(v, tensors)] for k, v in value.items()]}
    if isinstance(value, tuple):
        return {"$tuple": [_pack(v, tensors) for v in value]}
    if isinstance(value, list):
        return [_pack(v, tensors) for v in value]
    if value is None or isinstance(value, bool | int | float | str):
        return value
    raise UsageError(f"cannot put a {type(value).__name__} into a checkpoint")


def _unpack(value: Any, tensor: Callable[[str], Any]) -> Any:
    """What :func:`_pack` was given; ``tensor`` gives the tensor of a name."""
    if isinstance(value, list):
        return [_unpack(v, tensor) for v in value]
    if isinstance(value, dict):
        ((kind, content),) = value.items()
        if kind == "$tensor":
            return tensor(content)
        if kind == "$tuple":
            return tuple(_unpack(v, tensor) for v in content)
        return {_unpack(k, tensor): _unpack(v, tensor) for k, v in content}
    return value
