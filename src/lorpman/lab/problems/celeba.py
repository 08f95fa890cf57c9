"""CelebA: 40 yes-or-no attributes of a face."""

from typing import Literal

from pydantic import Field

from lorpman.lab.datasets import celeba
from lorpman.lab.networks.resnet import resnet18
from lorpman.lab.problems.preset import read_preset
from lorpman.lab.problems.problem import Problem
from lorpman.lab.settings import SettingsGroup
from lorpman.metrics import accuracy, cross_entropy
from lorpman.task import Task


class CelebASettings(SettingsGroup):
    """Width and number of images, for small machines, and how colours are prepared."""

    width: int = Field(64, ge=1)
    size: int = Field(64, ge=16)
    limit: int | None = Field(None, ge=10)
    colours: Literal["rgb", "bgr"] = "rgb"
    dropout: float = Field(0.5, ge=0, lt=1)


PROBLEM = Problem(
    name="celeba",
    summary="40 attributes of a face, ResNet-18 with dropout, 40 tasks",
    settings=read_preset("celeba"),
    tasks=[Task(name, cross_entropy, accuracy) for name in celeba.ATTRIBUTES],
    network=lambda options: resnet18(
        (2,) * len(celeba.ATTRIBUTES),
        width=options.width,
        size=options.size,
        dropout=options.dropout,
    ),
    data=lambda root, options: celeba.load(
        root, options.colours, options.size, options.limit, progress=True
    ),
    options=CelebASettings,
)
