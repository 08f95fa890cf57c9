"""UTKFace: age, gender and race of a face."""

from typing import Literal

from pydantic import Field

from lorpman.lab.datasets import utkface
from lorpman.lab.networks.resnet import resnet18
from lorpman.lab.problems.preset import read_preset
from lorpman.lab.problems.problem import Problem
from lorpman.lab.settings import SettingsGroup
from lorpman.metrics import accuracy, cross_entropy, huber
from lorpman.task import Task


class UtkFaceSettings(SettingsGroup):
    """Width and number of images, for small machines, and the odd file names."""

    width: int = Field(64, ge=1)
    size: int = Field(64, ge=16)
    limit: int | None = Field(None, ge=10)
    odd_names: Literal["drop", "error"] = "drop"


PROBLEM = Problem(
    name="utkface",
    summary="age, gender and race of a face, ResNet-18, 3 tasks",
    settings=read_preset("utkface"),
    tasks=[
        # The paper's reference point: 0.5 is close to the largest Huber loss seen.
        Task("age", huber, huber, maximise=False, reference=0.5),
        Task("gender", cross_entropy, accuracy, classes=utkface.GENDERS),
        Task("race", cross_entropy, accuracy, classes=utkface.RACES),
    ],
    network=lambda options: resnet18((1, 2, 5), width=options.width, size=options.size),
    data=lambda root, options: utkface.load(
        root, options.odd_names, options.size, options.limit, progress=True
    ),
    options=UtkFaceSettings,
)
