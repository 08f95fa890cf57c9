"""Checkpoints: nested state as safetensors plus JSON. Nothing in them can run code."""

import json
from pathlib import Path
from typing import Any

from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from lorpman.errors import UsageError
from lorpman.files import replacing

# The only key of the metadata: safetensors writes several in random order, and the files of two
# equal runs should be equal.
_FORMAT = "lorpman-checkpoint-1"


def save(state: dict[str, Any], path: Path) -> None:
    """Write ``state``: dicts, lists, tuples, plain values and tensors, nested as they are."""
    tensors: dict[str, Tensor] = {}
    text = json.dumps(_pack(state, tensors))
    try:
        with replacing(path) as temporary:
            save_file(tensors, temporary, metadata={_FORMAT: text})
    except SafetensorError as error:
        raise UsageError(f"cannot write checkpoint {path}: {error}") from error


def load(path: Path) -> dict[str, Any]:
    """Read what :func:`save` wrote; a truncated or foreign file is a :class:`UsageError`."""
    try:
        with safe_open(path, framework="pt") as file:
            metadata = file.metadata() or {}
            if _FORMAT not in metadata:
                raise UsageError(
                    f"{path} is not a checkpoint of this version: expected {_FORMAT}, "
                    f"found {', '.join(metadata) or 'no description'}"
                )
            return _unpack(json.loads(metadata[_FORMAT]), file.get_tensor)
    except FileNotFoundError as error:
        raise UsageError(f"no checkpoint at {path}") from error
    except (OSError, SafetensorError, KeyError, json.JSONDecodeError) as error:
        raise UsageError(f"checkpoint {path} is damaged or truncated: {error}") from error


def _pack(value: Any, tensors: dict[str, Tensor]) -> Any:
    """Plain JSON in which every tensor is a name, and tuples and odd keys are marked."""
    if isinstance(value, Tensor):
        name = str(len(tensors))
        # A copy of its own: safetensors refuses tensors that share memory, as tied weights do.
        tensors[name] = value.detach().cpu().clone().contiguous()
        return {"$tensor": name}
    if isinstance(value, dict):
        return {"$dict": [[_pack(k, tensors), _pack(v, tensors)] for k, v in value.items()]}
    if isinstance(value, tuple):
        return {"$tuple": [_pack(v, tensors) for v in value]}
    if isinstance(value, list):
        return [_pack(v, tensors) for v in value]
    if value is None or isinstance(value, bool | int | float | str):
        return value
    raise UsageError(f"cannot put a {type(value).__name__} into a checkpoint")


def _unpack(value: Any, tensor: Any) -> Any:
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
