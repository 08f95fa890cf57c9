"""Checkpoints: nested state as safetensors plus JSON. Nothing in them can run code."""

import json
import os
import tempfile
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from lorpman.errors import UsageError

_FORMAT = "lorpman-checkpoint-1"


def save(state: dict[str, Any], path: Path) -> None:
    """Write ``state`` (dicts, lists, tuples, plain values, tensors) so that it appears whole or
    not at all: temporary file in the same folder, fsync, rename."""
    tensors: dict[str, Tensor] = {}
    text = json.dumps(_pack(state, tensors))
    handle, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    temporary = Path(name)
    try:
        os.close(handle)
        save_file(tensors, temporary, metadata={"format": _FORMAT, "state": text})
        with temporary.open("rb+") as file:
            os.fsync(file.fileno())
        temporary.replace(path)
    except (OSError, SafetensorError) as error:
        raise UsageError(f"cannot write checkpoint {path}: {error}") from error
    finally:
        temporary.unlink(missing_ok=True)


def load(path: Path) -> dict[str, Any]:
    """Read what :func:`save` wrote; a truncated or foreign file is a :class:`UsageError`."""
    try:
        with safe_open(path, framework="pt") as file:
            metadata = file.metadata() or {}
            if metadata.get("format") != _FORMAT:
                raise UsageError(
                    f"{path} is not a checkpoint of this version: expected format {_FORMAT}, "
                    f"found {metadata.get('format')}"
                )
            return _unpack(json.loads(metadata["state"]), file.get_tensor)
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


def random_state() -> Tensor:
    """The state of torch's global generator on the CPU."""
    return torch.get_rng_state()
