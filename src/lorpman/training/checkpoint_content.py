"""What the checkpoint of a training must hold: a checksum can be right and the content wrong."""

from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from torch import Tensor

from lorpman.errors import UsageError
from lorpman.training.checkpoint import DamagedCheckpoint

_Count = Annotated[int, Field(ge=0, lt=2**62)]
_Seconds = Annotated[float, Field(ge=0, allow_inf_nan=False)]


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


class _Optimizer(_Content):
    state: dict[Any, dict[str, Any]]
    param_groups: list[dict[str, Any]]


class _Process(_Content):
    preferences: Tensor
    random: dict[str, Any]
    data: Any


class _Training(_WithModel):
    """What training goes on from."""

    epochs_done: _Count
    steps_done: _Count
    losses: Tensor
    seconds: _Seconds
    last_rate: float | None = None
    frozen: bool
    averaging: _Averaging | None = None
    rule: dict[str, Any]
    optimizer: _Optimizer
    scheduler: dict[str, Any] | None
    scheduler_interval: Literal["epoch", "step"] = "epoch"
    processes: list[_Process]


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
