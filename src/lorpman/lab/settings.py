"""Typed settings: what a run can be told, with the paper's names. Unknown keys fail."""

import json
import math
from collections.abc import Iterable, Mapping
from functools import partial
from typing import Annotated, Any, ClassVar, Literal, get_args, get_origin

import torch
import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError, ValidationInfo, field_validator
from torch.optim import Optimizer
from torch.optim.lr_scheduler import CosineAnnealingLR, LambdaLR, LRScheduler, MultiStepLR

from lorpman.errors import UsageError, unknown
from lorpman.training.optimizers import MakeOptimizer, MakeScheduler

_WARMUP_RATE = 0.2


class Group(BaseModel):
    """A group of settings that belongs together."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

    @field_validator("*", mode="before")
    @classmethod
    def _no_truth_for_a_number(cls, value: Any, info: ValidationInfo) -> Any:
        """YAML reads ``no`` as False, which would pass for the number 0."""
        kind = cls.model_fields[info.field_name or ""].annotation
        kinds = get_args(kind) or (kind,)
        kinds = tuple(get_args(k)[0] if get_origin(k) is Annotated else k for k in kinds)
        if isinstance(value, bool) and bool not in kinds and {int, float} & set(kinds):
            hint = "; use null for never" if type(None) in kinds else ""
            raise ValueError(f"expected a number, not true, false, yes or no{hint}")
        return value


class Training(Group):
    """What every method is trained with."""

    epochs: int = Field(10, ge=1)
    batch_size: int = Field(256, ge=1)
    optimizer: Literal["adam", "adamw", "sgd"] = "adam"
    learning_rate: float = Field(1e-3, gt=0)
    momentum: float = Field(0.0, ge=0, lt=1)
    weight_decay: float = Field(0.0, ge=0)
    scheduler: Literal["constant", "cosine", "step"] = "constant"
    ramp_epochs: int = Field(0, ge=0)
    """How many epochs begin with a fifth of the rate, before the schedule starts."""
    step_epochs: tuple[int, ...] = ()
    step_factor: float = Field(0.5, gt=0)
    window: int = Field(4, ge=1)
    concentration: float = Field(1.0, gt=0)
    sampling: Literal["dirichlet", "stratified"] = "dirichlet"
    """Preferences independent of each other, or spread over the simplex within a step."""
    freeze_epoch: int | None = Field(None, ge=0)
    freeze_heads: bool = False
    averaging: float = Field(0.0, ge=0, lt=1)
    """Decay per step of an exponential mean of the weights, which is what is kept; 0: none. The
    mean never reaches further back than about a ninth of the steps done."""
    watch_samples: int = Field(640, ge=0)
    """How many validation samples the hypervolume shown during training is taken on."""
    watch_preferences: int | None = Field(None, ge=1)
    """At how many preferences; default: as many as the final front has."""

    WATCHING: ClassVar = frozenset({"watch_samples", "watch_preferences"})
    """What decides only what is shown, not what is learned."""
    OF_THE_OPTIMIZER: ClassVar = frozenset(
        {
            "learning_rate",
            "momentum",
            "weight_decay",
            "scheduler",
            "ramp_epochs",
            "step_epochs",
            "step_factor",
        }
    )
    """What would have to be found anew for another optimiser."""

    def make_optimizer(self, fused: bool = True) -> MakeOptimizer:
        """``fused``: one pass over all weights, instead of one for each tensor and operation,
        which takes as long as a forward pass where the network is small."""
        common: dict[str, Any] = {
            "lr": self.learning_rate,
            "weight_decay": self.weight_decay,
            "fused": fused or None,
        }
        if self.optimizer == "sgd":
            return partial(torch.optim.SGD, momentum=self.momentum, **common)
        return partial(
            torch.optim.AdamW if self.optimizer == "adamw" else torch.optim.Adam, **common
        )

    def make_scheduler(self) -> MakeScheduler | None:
        if self.scheduler == "constant" and not self.ramp_epochs:
            return None

        def make(optimizer: Optimizer) -> LRScheduler:
            if self.ramp_epochs:
                return LambdaLR(optimizer, self._factor)
            if self.scheduler == "cosine":
                return CosineAnnealingLR(optimizer, self.epochs)
            return MultiStepLR(optimizer, list(self.step_epochs), self.step_factor)

        return make

    def _factor(self, epoch: int) -> float:
        """The part of the rate that an epoch has, where there is a warm-up."""
        if epoch < self.ramp_epochs:
            return _WARMUP_RATE
        done, length = epoch - self.ramp_epochs, self.epochs - self.ramp_epochs
        if self.scheduler == "cosine":
            return (1 + math.cos(math.pi * done / length)) / 2
        steps = sum(epoch >= step for step in self.step_epochs)
        return self.step_factor**steps if self.scheduler == "step" else 1.0


def parse_assignments(assignments: Iterable[str]) -> dict[str, Any]:
    """``["rank=4", "scale=2.0"]`` as a mapping; values are read as YAML.

    >>> parse_assignments(["rank=4", "freeze_epoch=null"])
    {'rank': 4, 'freeze_epoch': None}
    """
    parsed = {}
    for assignment in assignments:
        key, equals, value = assignment.partition("=")
        if not equals or not key.strip() or not value.strip():
            raise UsageError(
                f"--set expects key=value, found '{assignment}'; example: --set rank=4"
            )
        try:
            parsed[key.strip()] = yaml.safe_load(value)
        except yaml.YAMLError:
            raise UsageError(f"--set {key.strip()}: cannot read the value '{value}'") from None
    return parsed


def format_assignments(values: Mapping[str, Any]) -> list[str]:
    """What :func:`parse_assignments` reads.

    >>> format_assignments({"rank": 4, "freeze_epoch": None, "optimizer": "sgd"})
    ['rank=4', 'freeze_epoch=null', 'optimizer=sgd']
    """
    return [f"{k}={v if isinstance(v, str) else json.dumps(v)}" for k, v in values.items()]


def distribute(values: Mapping[str, Any], groups: Mapping[str, type[Group]]) -> dict[str, Group]:
    """Hand every value to the group that has a field of that name.

    >>> distribute({"epochs": 3}, {"training": Training})["training"].epochs
    3
    """
    fields = {key: name for name, group in groups.items() for key in group.model_fields}
    parts: dict[str, dict[str, Any]] = {name: {} for name in groups}
    for key, value in values.items():
        if key not in fields:
            raise unknown("setting", key, fields)
        parts[fields[key]][key] = value
    try:
        return {name: group(**parts[name]) for name, group in groups.items()}
    except ValidationError as error:
        first, *others = error.errors()
        key = str(first["loc"][0])
        # A field of several types has one error for each of them.
        same = [e["msg"] for e in others if e["loc"][0] == key and e["input"] == first["input"]]
        reason = " or ".join(dict.fromkeys([first["msg"], *same]))
        raise UsageError(f"setting {key}: {reason}, got {first['input']!r}") from None
