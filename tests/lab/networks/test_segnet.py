import pytest
import torch
from torch import nn

from lorpman.errors import UsageError
from lorpman.lab.networks.segnet import SegNet, unpool


def test_unpool_is_the_one_of_torch() -> None:
    pooled, places = nn.functional.max_pool2d(torch.rand(2, 3, 8, 12), 2, return_indices=True)
    expected = nn.functional.max_unpool2d(pooled, places, [2, 2])
    assert torch.equal(unpool(pooled, places), expected)


def test_features_have_the_size_of_the_image_and_the_stated_width() -> None:
    net = SegNet(width=4)
    assert net(torch.rand(2, 3, 32, 64)).shape == (2, net.out_features, 32, 64)


def test_every_stage_it_names_is_there() -> None:
    net = SegNet(width=4)
    assert all(isinstance(net.get_submodule(name), nn.Sequential) for name in net.stages)


def test_width_zero_is_refused() -> None:
    with pytest.raises(UsageError, match="width >= 1"):
        SegNet(width=0)
