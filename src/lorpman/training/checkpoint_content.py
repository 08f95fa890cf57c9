"""What the checkpoint of a training must hold: a checksum can be right and the content wrong."""

from pathlib import Path
from typing import Annotated, Any, Literal, Self

import torch
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError, model_validator
from torch import Tensor

from lorpman.errors import UsageError
from lorpman.training.checkpoint import DamagedCheckpoint

_Count = Annotated[int, Field(ge=0, lt=2**62)]
_Finite = Annotated[float, Field(allow_inf_nan=False)]
_Seconds = Annotated[_Finite, Field(ge=0)]
# No rule of ours asks for more than one batch; more than this many would never end.
_MOST_ASKED = 1000


def _check_bytes(value: Tensor) -> Tensor:
    if value.dtype != torch.uint8 or value.ndim != 1:
        raise ValueError(f"a random state is a row of bytes, found {_form(value)}")
    return value


def _check_asked(value: Tensor) -> Tensor:
    if value.dtype != torch.int64 or value.ndim != 1:
        raise ValueError(f"a count of batches per step is a row of numbers, found {_form(value)}")
    if len(value) and not 0 <= int(value.min()) <= int(value.max()) <= _MOST_ASKED:
        raise ValueError(f"a step asks for 0 to {_MOST_ASKED} further batches")
    return value


def _check_losses(value: Tensor) -> Tensor:
    if not value.is_floating_point() or value.ndim != 1 or not value.isfinite().all():
        raise ValueError(f"losses are a row of finite numbers, found {_form(value)}")
    return value


def _form(value: Tensor) -> str:
    return f"{str(value.dtype).removeprefix('torch.')} {list(value.shape)}"


_Bytes = Annotated[Tensor, AfterValidator(_check_bytes)]


class _Content(BaseModel):
    """Strict, and further keys are allowed: other versions may have some."""

    model_config = ConfigDict(strict=True, extra="allow", arbitrary_types_allowed=True)


class _WithModel(_Content):
    """What every use of a checkpoint needs."""

    # Any: a module may put more than tensors into its state; loading it tells what does not fit.
    model: dict[str, Any]


class _Averaging(_Content):
    weights: dict[str, Any]
    steps: _Count


class _Group(_Content):
    params: list[_Count]


class _Optimizer(_Content):
    state: dict[_Count, dict[str, Any]]
    param_groups: list[_Group]


class _Random(_Content):
    """What ``capture`` of training/resumable_batches.py gives."""

    torch: _Bytes
    devices: list[_Bytes]
    python: tuple[int, tuple[int, ...], float | None]
    numpy: tuple[str, list[_Count], _Count, _Count, _Finite]
    loader: list[_Bytes]


class _Data(_Content):
    start: _Random
    asked: Annotated[Tensor, AfterValidator(_check_asked)]


class _Process(_Content):
    preferences: _Bytes
    random: _Random
    data: _Data | None


class _Training(_WithModel):
    """What training goes on from."""

    epochs_done: _Count
    steps_done: _Count
    losses: Annotated[Tensor, AfterValidator(_check_losses)]
    seconds: _Seconds
    last_rate: _Finite = 0.0
    frozen: bool
    averaging: _Averaging | None = None
    rule: dict[str, Any]
    optimizer: _Optimizer
    scheduler: dict[str, Any] | None
    scheduler_interval: Literal["epoch", "step"] = "epoch"
    processes: list[_Process]

    @model_validator(mode="after")
    def _check_steps(self) -> Self:
        for process in self.processes:
            asked = 0 if process.data is None else len(process.data.asked)
            if asked != self.steps_done:
                raise ValueError(f"data of {asked} steps after {self.steps_done}")
        return self


def check_model_state(state: Any, path: Path) -> None:
    """Refuse a state without the weights of a model.

    Args:
        state: What a checkpoint holds.
        path: Where it is, for the message.

    Raises:
        DamagedCheckpoint: If anything is missing or of another kind; the message says what.
    """
    _check(_WithModel, state, path)


def check_training_state(state: Any, path: Path) -> None:
    """Refuse a state that training cannot go on from.

    Args:
        state: What a checkpoint holds.
        path: Where it is, for the message.

    Raises:
        UsageError: If it is of a version from before there were several processes.
        DamagedCheckpoint: If anything is missing or of another kind; the message says what.
    """
    if isinstance(state, dict) and "epochs_done" in state and "processes" not in state:
        raise UsageError(f"checkpoint {path} is of another version and cannot be resumed")
    _check(_Training, state, path)


def _check(kind: type[_Content], state: Any, path: Path) -> None:
    try:
        kind.model_validate(state)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(map(str, first["loc"][:3])) or "it"
        raise DamagedCheckpoint(f"checkpoint {path} is damaged: {where}: {first['msg']}") from None
