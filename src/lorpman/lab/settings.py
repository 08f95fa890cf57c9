"""Typed settings: what a run can be told, with the paper's names. Unknown keys fail."""

import json
import math
import reprlib
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Annotated, Any, ClassVar, Literal, get_args, get_origin

import torch
import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError, ValidationInfo, field_validator
from torch.optim import Optimizer
from torch.optim.lr_scheduler import CosineAnnealingLR, LambdaLR, LRScheduler, MultiStepLR

from lorpman.errors import UsageError, unknown
from lorpman.preference import Dirichlet, Sampler, Stratified, TowardsCorners
from lorpman.training.optimizers import MakeOptimizer, MakeScheduler

_WARMUP_RATE = 0.2
_LARGEST = 2**31 - 1
_LONGEST_VALUE = 10_000  # characters of a value in --set

Sampling = Literal["dirichlet", "stratified"]
"""What the setting ``sampling`` takes: the keys of :data:`SAMPLERS`."""
SAMPLERS: Mapping[Sampling, Callable[[float], Sampler]] = {
    "dirichlet": Dirichlet,
    "stratified": Stratified,
}
"""What draws preferences, made from the concentration. A new sampler is one more line here."""
DEFAULT_SAMPLING: Sampling = "dirichlet"


class SettingsGroup(BaseModel):
    """Settings that belong together: of training, of one method, or of one problem.

    Unknown names, infinities and values outside a field's range are refused.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

    @field_validator("*", mode="before")
    @classmethod
    def _refuse_truth_values_for_numbers(cls, value: Any, info: ValidationInfo) -> Any:
        """YAML reads ``no`` as False, which would pass for the number 0."""
        annotation = cls.model_fields[info.field_name or ""].annotation
        types = get_args(annotation) or (annotation,)
        types = tuple(get_args(t)[0] if get_origin(t) is Annotated else t for t in types)
        if isinstance(value, bool) and bool not in types and {int, float} & set(types):
            hint = "; use null for never" if type(None) in types else ""
            raise ValueError(f"expected a number, not true, false, yes or no{hint}")
        # Beyond this, counts and sizes overflow somewhere in torch or numpy.
        if type(value) is int and float not in types and abs(value) > _LARGEST:
            raise ValueError(f"expected a number of at most {_LARGEST}")
        return value


class NoSettings(SettingsGroup):
    """For a method or a problem that has nothing to set."""


class TrainingSettings(SettingsGroup):
    """What every method is trained with."""

    epochs: int = Field(10, ge=1, le=1_000_000)
    batch_size: int | None = Field(None, ge=1)
    """Samples per step; default: those of the loader that a problem's data is given as, or 256."""
    optimizer: Literal["adam", "adamw", "sgd"] = "adam"
    learning_rate: float = Field(1e-3, gt=0)
    momentum: float = Field(0.0, ge=0, lt=1)
    weight_decay: float = Field(0.0, ge=0)
    scheduler: Literal["constant", "cosine", "step"] = "constant"
    ramp_epochs: int = Field(0, ge=0)
    """How many epochs begin with a fifth of the rate, before the schedule starts."""
    step_epochs: tuple[int, ...] = ()
    step_factor: float = Field(0.5, gt=0)
    window: int = Field(4, ge=1, le=4096)
    concentration: float = Field(1.0, gt=0)
    sampling: Sampling = DEFAULT_SAMPLING
    """Preferences independent of each other, or spread over the simplex within a step."""
    corners: float = Field(0.0, ge=0, le=1)
    """The share of preferences that are moved a random way towards a random corner."""
    freeze_epoch: int | None = Field(None, ge=0)
    freeze_heads: bool = False
    averaging: float = Field(0.0, ge=0, lt=1)
    """Decay per step of an exponential mean of the weights, which is what is kept; 0: none. The
    mean never reaches further back than about a ninth of the steps done."""
    watch_samples: int = Field(640, ge=0)
    """How many validation samples the hypervolume shown during training is taken on."""
    watch_preferences: int | None = Field(None, ge=1)
    """At how many preferences; default: as many as the final front has."""

    # Not fields: pydantic leaves class variables alone.
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
        """What makes the optimiser that these settings name.

        Args:
            fused: Update all weights in one pass, instead of one for each tensor and operation,
                which takes as long as a forward pass where the network is small.

        Returns:
            A function from the parameters to their optimiser.
        """
        common: dict[str, Any] = {
            "lr": self.learning_rate,
            "weight_decay": self.weight_decay,
            # None and not False, with which torch would not choose its foreach way either.
            "fused": fused or None,
        }
        if self.optimizer == "sgd":
            return partial(torch.optim.SGD, momentum=self.momentum, **common)
        return partial(
            torch.optim.AdamW if self.optimizer == "adamw" else torch.optim.Adam, **common
        )

    def make_scheduler(self) -> MakeScheduler | None:
        """What makes the schedule of the learning rate, advanced once per epoch.

        Returns:
            A function from the optimiser to its schedule; None where the rate stays as it is.
        """
        if self.scheduler == "constant" and not self.ramp_epochs:
            return None

        def make(optimizer: Optimizer) -> LRScheduler:
            if self.ramp_epochs:
                return LambdaLR(optimizer, self._rate_factor)
            if self.scheduler == "cosine":
                return CosineAnnealingLR(optimizer, self.epochs)
            return MultiStepLR(optimizer, list(self.step_epochs), self.step_factor)

        return make

    def make_sampler(self) -> Sampler:
        """What draws the preferences of every training step."""
        sampler = SAMPLERS[self.sampling](self.concentration)
        return TowardsCorners(sampler, self.corners) if self.corners else sampler

    def _rate_factor(self, epoch: int) -> float:
        """The part of the learning rate that an epoch has, where there is a warm-up."""
        if epoch < self.ramp_epochs:
            return _WARMUP_RATE
        done, length = epoch - self.ramp_epochs, self.epochs - self.ramp_epochs
        if self.scheduler == "cosine":
            return (1 + math.cos(math.pi * done / length)) / 2
        steps = sum(epoch >= step for step in self.step_epochs)
        return self.step_factor**steps if self.scheduler == "step" else 1.0


def parse_assignments(assignments: Iterable[str]) -> dict[str, Any]:
    """Read what ``--set`` was given; values are read as YAML.

    Args:
        assignments: Such as ``["rank=4", "scale=2.0"]``.

    Returns:
        The values by name.

    Raises:
        UsageError: If one of them is not ``key=value``, its value is no YAML, or two values
            are given for one name.

    >>> parse_assignments(["rank=4", "freeze_epoch=null"])
    {'rank': 4, 'freeze_epoch': None}
    """
    parsed: dict[str, Any] = {}
    for assignment in assignments:
        key, equals, value = assignment.partition("=")
        if not equals or not key.strip() or not value.strip():
            raise UsageError(
                f"--set expects key=value, found '{assignment}'; example: --set rank=4"
            )
        name, read = key.strip(), _parse_value(key.strip(), value)
        # One of two values would be dropped without a word.
        if name in parsed and parsed[name] != read:
            raise UsageError(f"--set {name} is given twice, as {parsed[name]} and {read}")
        parsed[name] = read
    return parsed


class _Loader(yaml.SafeLoader):
    """Without references, by which a short text can stand for an endless or a huge value."""

    def compose_node(self, parent: Any, index: Any) -> Any:
        if self.check_event(yaml.AliasEvent):
            raise yaml.YAMLError("references are not allowed")
        return super().compose_node(parent, index)


def _parse_value(key: str, text: str) -> Any:
    try:
        if len(text) > _LONGEST_VALUE:
            raise ValueError("too long")
        # Not unsafe: the loader is a SafeLoader.
        return yaml.load(text, _Loader)
    # YAML's own error, and those of Python over dates, numbers and depths that cannot be.
    except (yaml.YAMLError, ValueError, TypeError, KeyError, AttributeError, RecursionError):
        raise UsageError(f"--set {key}: cannot read the value '{_shown(text)}'") from None


def _shown(value: Any) -> str:
    """A value for a message, cut short."""
    text = value if isinstance(value, str) else reprlib.repr(value)
    return text if len(text) <= 60 else f"{text[:60]}..."


def format_assignments(values: Mapping[str, Any]) -> list[str]:
    """Write settings the way :func:`parse_assignments` reads them.

    Args:
        values: Settings by name.

    Returns:
        One ``key=value`` for each.

    >>> format_assignments({"rank": 4, "freeze_epoch": None, "optimizer": "sgd"})
    ['rank=4', 'freeze_epoch=null', 'optimizer=sgd']
    """
    return [f"{k}={v if isinstance(v, str) else json.dumps(v)}" for k, v in values.items()]


def distribute(
    values: Mapping[str, Any], groups: Mapping[str, type[SettingsGroup]]
) -> dict[str, SettingsGroup]:
    """Hand every value to the group that has a field of that name.

    Args:
        values: Settings by name; what is not given has its default.
        groups: The groups that the settings may belong to.

    Returns:
        One group of settings for each of ``groups``, under the same name.

    Raises:
        UsageError: If no group has such a setting, or its value is not allowed.

    >>> distribute({"epochs": 3}, {"training": TrainingSettings})["training"].epochs
    3
    """
    group_of = {key: name for name, group in groups.items() for key in group.model_fields}
    parts: dict[str, dict[str, Any]] = {name: {} for name in groups}
    for key, value in values.items():
        if key not in group_of:
            raise unknown("setting", key, group_of)
        parts[group_of[key]][key] = value
    try:
        return {name: group(**parts[name]) for name, group in groups.items()}
    except ValidationError as error:
        raise UsageError(_first_problem(error)) from None


def _first_problem(error: ValidationError) -> str:
    """The first setting that pydantic refused, in one line."""
    first, *others = error.errors()
    key = str(first["loc"][0])
    # A field of several types has one error for each of them.
    same = [e["msg"] for e in others if e["loc"][0] == key and e["input"] == first["input"]]
    reason = " or ".join(dict.fromkeys([first["msg"], *same]))
    found = first["input"]
    shown = repr(found) if isinstance(found, str) and len(found) <= 60 else _shown(found)
    return f"setting {key}: {reason}, got {shown}"
