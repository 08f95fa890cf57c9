"""Every parameter count of the paper's tables that follows from the base networks."""

from collections.abc import Callable, Iterator

import pytest
import torch
from torch import nn

from counting import base, cosmos, lorpman, pamal, phn
from lorpman.lab.networks.lenet import lenet
from lorpman.lab.networks.mlp import mlp
from lorpman.lab.networks.resnet import resnet18
from lorpman.lab.networks.segnet import segnet
from lorpman.lab.networks.vgg import vgg16
from lorpman.manifold.low_rank import LowRank


@pytest.fixture(autouse=True)
def _no_storage() -> Iterator[None]:
    with torch.device("meta"):
        yield


def millions(count: int, digits: int) -> float:
    return round(count / 1e6, digits)


def test_multimnist() -> None:
    net = lenet()
    assert base(net) == 27_450
    assert pamal(net, 2) == 54_900
    assert lorpman(net, 2, rank=8) == 45_920
    assert cosmos(net, 2) == 28_158
    assert phn(net, 2) == 2_792_950


def test_census() -> None:
    net = mlp()
    assert base(net) == 121_092
    assert pamal(net, 2) == 242_184
    assert lorpman(net, 2, rank=8) == 132_676
    assert cosmos(net, 2) == 121_604
    assert phn(net, 2) == 12_250_792


def test_utkface() -> None:
    net = resnet18((1, 2, 5))
    assert base(net) == 11_185_224
    assert millions(pamal(net, 3), 2) == 33.56
    assert millions(cosmos(net, 3), 2) == 11.19


@pytest.mark.parametrize(
    ("rank", "published"),
    [(4, 12.02), (8, 12.81), (16, 14.41), (32, 17.60), (64, 23.97), (128, 35.48)],
)
def test_utkface_rank_row(rank: int, published: float) -> None:
    assert millions(lorpman(resnet18((1, 2, 5)), 3, rank), 2) == published


def test_cifar100() -> None:
    net = vgg16()
    assert base(net) == 14_986_248
    assert millions(pamal(net, 20, once="bottom.norms"), 3) == 296.515
    assert millions(lorpman(net, 20, rank=8, shared="bottom.convs"), 3) == 26.358
    assert millions(cosmos(net, 20), 3) == 15.019


def test_celeba() -> None:
    net = resnet18((2,) * 40, dropout=0.5)
    assert base(net) == 11_332_752
    assert millions(pamal(net, 40), 1) == 453.3
    assert millions(lorpman(net, 40, rank=32), 2) == 96.82
    assert millions(cosmos(net, 40), 2) == 11.44


def test_cityscapes() -> None:
    assert base(segnet()) == 25_017_672


@pytest.mark.parametrize(
    ("build", "num_tasks", "rank", "shared"),
    [
        (lenet, 2, 8, "bottom"),
        (mlp, 2, 8, "bottom"),
        (lambda: resnet18((1, 2, 5)), 3, 64, "bottom"),
        (vgg16, 20, 8, "bottom.convs"),
        (lambda: resnet18((2,) * 40, dropout=0.5), 40, 32, "bottom"),
        (segnet, 2, 16, "bottom"),
    ],
)
def test_the_manifold_has_the_size_of_the_formula(
    build: Callable[[], nn.Module], num_tasks: int, rank: int, shared: str
) -> None:
    model = LowRank(build(), num_tasks, rank=rank, shared=[shared])
    assert base(model) == lorpman(build(), num_tasks, rank, shared)


def test_film_after_four_stages_is_what_the_paper_counts() -> None:
    net = resnet18((2,) * 40, dropout=0.5)
    channels = net.bottom.channels
    assert isinstance(channels, tuple)
    film = sum(nn.Linear(40, 2 * c).weight.numel() + 2 * c for c in channels)
    assert millions(base(net) + film, 1) == 11.4
