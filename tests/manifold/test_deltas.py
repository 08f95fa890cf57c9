"""Which parameters get which deltas, and how these are laid out."""

import pytest
import torch
from torch import nn

from lorpman import LowRank
from lorpman.manifold.deltas import FullDelta
from lorpman.manifold.low_rank_delta import LowRankDelta


@pytest.mark.parametrize(
    ("layer", "rows", "columns", "inner"),
    [
        (nn.Conv2d(10, 20, 5), 100, 50, 10),
        (nn.Conv2d(1, 10, 5), 50, 5, 5),
        (nn.Conv1d(4, 6, 3), 18, 4, 4),
        (nn.Conv3d(4, 6, (2, 3, 5)), 12, 60, 4),
        (nn.Conv2d(8, 6, 3, groups=2), 18, 12, 6),
        (nn.ConvTranspose2d(4, 6, 3), 18, 12, 6),
        (nn.ConvTranspose2d(4, 6, 3, groups=2), 18, 6, 6),
        (nn.Linear(7, 9), 9, 7, 2),
        (nn.Embedding(30, 5), 30, 5, 2),
    ],
)
def test_layout_of_the_factors(layer, rows, columns, inner):
    (delta,) = LowRank(layer, 2, rank=2).low_rank_deltas().values()
    assert delta.B.shape == (rows, 2, inner)
    assert delta.A.shape == (2, inner, columns)
    assert (delta.B == 0).all()
    assert delta.A.abs().max() <= columns**-0.5


class Stack(nn.Module):
    """A weight of three dimensions that is no convolution, as in a mixture of experts."""

    def __init__(self):
        super().__init__()
        self.experts = nn.Parameter(torch.randn(4, 10, 12))

    def forward(self, x):
        return torch.einsum("ni,eio->no", x, self.experts)


def test_rank_holds_for_weights_of_many_dimensions_that_are_no_convolutions():
    (delta,) = LowRank(Stack(), 2, rank=3).low_rank_deltas().values()
    assert delta.B.shape == (40, 2, 3)
    assert delta.A.shape == (2, 3, 12)
    (delta,) = LowRank(nn.Bilinear(5, 6, 7), 2, rank=2).low_rank_deltas().values()
    assert (delta.B.shape, delta.A.shape) == ((35, 2, 2), (2, 2, 6))


def test_norm_layers_get_full_deltas_and_biases_none():
    model = LowRank(nn.Sequential(nn.Linear(4, 3), nn.BatchNorm1d(3)), 2)
    kinds = {key: type(delta) for key, delta in model.deltas.items()}
    assert kinds == {"0/weight": LowRankDelta, "1/weight": FullDelta, "1/bias": FullDelta}
