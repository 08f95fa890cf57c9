from collections.abc import Callable

import pytest
import torch
from torch import nn

from lorpman.errors import UsageError
from lorpman.lab.networks.resnet import ResNet18


def test_resnet_dropout_drops_channels_where_the_paper_says() -> None:
    net = ResNet18(width=4, dropout=0.5)
    rates = {name: m.p for name, m in net.named_modules() if isinstance(m, nn.Dropout2d)}
    blocks = {f"stage{s}.{b}.dropout": 0.5 for s in (1, 2, 3, 4) for b in (0, 1)}
    assert rates == {"stem.3": 0.25, **blocks, "pool.1": 0.5}


def test_resnet_stages_end_with_the_channels_it_states() -> None:
    net = ResNet18(width=4)
    x = net.stem(torch.rand(1, 3, 64, 64))
    for name, channels in zip(net.stages, net.channels, strict=True):
        x = net.get_submodule(name)(x)
        assert x.shape[1] == channels
        assert x.min() >= 0


@pytest.mark.parametrize("build", [lambda: ResNet18(size=60), lambda: ResNet18(width=0)])
def test_resnet_refuses_sizes_that_it_cannot_pool(build: Callable[[], nn.Module]) -> None:
    with pytest.raises(UsageError, match="multiple of 32"):
        build()
