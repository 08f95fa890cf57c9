"""CIFAR-100 as 20 tasks: every superclass is one, with images of its own and five classes."""

from pydantic import Field

from lorpman.lab.datasets import cifar100
from lorpman.lab.networks.vgg import channels_last_helps, vgg16
from lorpman.lab.problems.preset import read_preset
from lorpman.lab.problems.problem import Problem
from lorpman.lab.settings import SettingsGroup
from lorpman.metrics import accuracy, cross_entropy
from lorpman.task import Task


class CifarSettings(SettingsGroup):
    """Width and number of images, for small machines, and the size of the heads."""

    width: int = Field(64, ge=1)
    classes: int = Field(10, ge=5)
    """10 is what the published parameter counts imply; 5 is what the tasks need."""
    train_images: int | None = Field(None, ge=1)
    """Images of each task for training; all that validation leaves if not given."""
    test_images: int | None = Field(None, ge=1)
    validation_images: int = Field(250, ge=1)
    augment: bool = True


PROBLEM = Problem(
    name="cifar100",
    summary="20 superclasses of CIFAR-100, each with images of its own, VGG-16, 20 tasks",
    settings=read_preset("cifar100"),
    tasks=[
        Task(name, cross_entropy, accuracy, classes=cifar100.CLASSES[name])
        for name in cifar100.TASKS
    ],
    network=lambda options: vgg16(len(cifar100.TASKS), options.classes, options.width),
    data=lambda root, options: cifar100.load(
        root,
        validation=options.validation_images,
        train=options.train_images,
        test=options.test_images,
        augment=options.augment,
        channels_last=channels_last_helps(options.width),
    ),
    options=CifarSettings,
    # One set of norm layers per task, neither combined nor adapted: the published counts say so.
    shared=("bottom.convs",),
)
