"""A shared bottom: who sees which batch, and what the bottom runs on."""

import pytest
import torch
from torch import nn

from lorpman import SharedBottom, UsageError
from lorpman.manifold.shared_bottom import check_one_per_task


class Watched(nn.Module):
    """An identity that keeps the sizes of the batches it has seen."""

    def __init__(self):
        super().__init__()
        self.sizes = []

    def forward(self, x):
        self.sizes.append(len(x))
        return x


def test_one_batch_goes_through_the_bottom_once_and_to_every_head():
    bottom, heads = nn.Linear(4, 3), [nn.Linear(3, 2), nn.Linear(3, 5)]
    x = torch.randn(7, 4)
    for output, head in zip(SharedBottom(bottom, heads)(x), heads, strict=True):
        assert torch.equal(output, head(bottom(x)))
    watched = Watched()
    SharedBottom(watched, heads)(torch.randn(7, 3))
    assert watched.sizes == [7]


def test_every_head_sees_only_the_batch_of_its_task():
    bottom, heads = nn.Linear(4, 3), [nn.Linear(3, 2), nn.Linear(3, 5)]
    parts = [torch.randn(7, 4), torch.randn(6, 4)]
    outputs = SharedBottom(bottom, heads)(parts)
    for output, head, part in zip(outputs, heads, parts, strict=True):
        torch.testing.assert_close(output, head(bottom(part)))


def test_batches_of_one_shape_go_through_the_bottom_together():
    bottom = Watched()
    SharedBottom(bottom, [nn.Identity(), nn.Identity()])([torch.zeros(7, 4), torch.zeros(6, 4)])
    assert bottom.sizes == [13]


def test_batch_norm_in_the_bottom_normalises_per_task_batches_together():
    net = SharedBottom(nn.BatchNorm1d(1, affine=False), [nn.Identity(), nn.Identity()])
    low, high = net([torch.zeros(4, 1), torch.ones(4, 1)])
    # Alone, each constant batch would be normalised to zero.
    assert low.mean() < -0.9
    assert high.mean() > 0.9


def test_batches_of_different_shapes_go_through_the_bottom_one_by_one():
    net = SharedBottom(nn.AdaptiveAvgPool2d(2), [nn.Flatten(), nn.Flatten()])
    outputs = net([torch.rand(1, 3, 8, 8), torch.rand(2, 3, 9, 9)])
    assert [tuple(output.shape) for output in outputs] == [(1, 12), (2, 12)]


def test_no_heads_is_an_error():
    with pytest.raises(UsageError, match="at least one head"):
        SharedBottom(nn.Identity(), [])


@pytest.mark.parametrize("count", [0, 1, 3])
def test_another_number_of_batches_than_heads_is_refused(count):
    with pytest.raises(UsageError, match=f"expected 2, got {count}"):
        check_one_per_task([torch.zeros(1)] * count, 2)
    with pytest.raises(UsageError, match=f"expected 2, got {count}"):
        SharedBottom(nn.Identity(), [nn.Identity()] * 2)([torch.zeros(1, 1)] * count)
