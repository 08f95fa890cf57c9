"""CityScapes: what every pixel of a street scene shows, and how far away it is."""

from pydantic import Field

from lorpman.lab.datasets import cityscapes
from lorpman.lab.networks.segnet import segnet
from lorpman.lab.problems.preset import read_preset
from lorpman.lab.problems.problem import Problem
from lorpman.lab.settings import SettingsGroup
from lorpman.metrics import AbsoluteDepthError, MeanIoU, cross_entropy, depth_l1
from lorpman.task import Task

_CLASSES = 7


class CityscapesSettings(SettingsGroup):
    """Width of the network, for small machines, and which of the published splits is used."""

    width: int = Field(64, ge=1)
    validation_scenes: int | None = Field(475, ge=1)
    augment: bool = True
    limit: int | None = Field(None, ge=1)
    """Of training scenes."""


PROBLEM = Problem(
    name="cityscapes",
    summary="segmentation and depth of street scenes, SegNet, 2 tasks",
    settings=read_preset("cityscapes"),
    tasks=[
        Task("segmentation", cross_entropy, MeanIoU(_CLASSES)),
        # Depth errors here are far below 0.1 (the paper's worst is 0.054).
        Task("depth", depth_l1, AbsoluteDepthError(), maximise=False, reference=0.1),
    ],
    network=lambda options: segnet((_CLASSES, 1), options.width),
    data=lambda root, options: cityscapes.load(
        root, options.validation_scenes, augment=options.augment, limit=options.limit
    ),
    options=CityscapesSettings,
)
