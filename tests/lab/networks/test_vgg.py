import pytest
import torch
from torch import nn

from lorpman.errors import UsageError
from lorpman.lab.networks.vgg import channels_last_helps, vgg16


def test_vgg_normalises_each_task_by_its_own_batch() -> None:
    net = vgg16(num_tasks=2, width=4)
    x = [torch.rand(5, 3, 32, 32), torch.rand(6, 3, 32, 32)]
    shifted = [x[0], 3.0 * x[1] + 1.0]
    torch.testing.assert_close(net(x)[0], net(shifted)[0])
    norms = [m for m in net.modules() if isinstance(m, nn.BatchNorm2d)]
    assert len(norms) == 26
    assert norms[0].running_mean is not None
    assert norms[13].running_mean is not None
    assert not torch.equal(norms[0].running_mean, norms[13].running_mean)


def test_one_tensor_stands_for_the_same_batch_for_every_task() -> None:
    net = vgg16(num_tasks=2, width=4).eval()
    x = torch.rand(3, 3, 32, 32)
    for one, each in zip(net(x), net([x, x]), strict=True):
        torch.testing.assert_close(one, each)


@pytest.mark.parametrize(("num_tasks", "width"), [(0, 4), (2, 0)])
def test_nonsense_sizes_are_refused(num_tasks: int, width: int) -> None:
    with pytest.raises(UsageError, match="num_tasks >= 1 and width >= 1"):
        vgg16(num_tasks=num_tasks, width=width)


def test_only_narrow_networks_gain_by_channels_last() -> None:
    assert [channels_last_helps(width) for width in (16, 32, 64)] == [True, True, False]
