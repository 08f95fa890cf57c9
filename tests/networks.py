"""Small networks of every kind of layer, for what must hold on any network."""

import torch
from torch import nn

import lorpman as lp


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.attention = nn.MultiheadAttention(8, 2, batch_first=True, add_bias_kv=True)

    def forward(self, x):
        return self.attention(x, x, x)[0]


class Language(nn.Module):
    """An embedding whose weight is tied to the output, as in language models."""

    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(11, 6)
        self.output = nn.Linear(6, 11, bias=False)
        self.output.weight = self.embedding.weight

    def forward(self, x):
        return {"logits": self.output(self.embedding(x["tokens"])), "cache": None}


def with_norm(norm, layer=None):
    return nn.Sequential(layer or nn.Linear(6, 4), norm)


def _encoder():
    layer = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True)
    return nn.TransformerEncoder(layer, 2)


NETWORKS = {
    "linear": (lambda: nn.Linear(6, 4), lambda: torch.randn(3, 6)),
    "conv1d": (lambda: nn.Conv1d(4, 6, 3), lambda: torch.randn(2, 4, 9)),
    "conv2d": (lambda: nn.Conv2d(4, 6, (3, 2)), lambda: torch.randn(2, 4, 7, 7)),
    "conv3d": (lambda: nn.Conv3d(2, 3, 2), lambda: torch.randn(2, 2, 4, 4, 4)),
    "grouped": (lambda: nn.Conv2d(4, 6, 3, groups=2), lambda: torch.randn(2, 4, 7, 7)),
    "depthwise": (lambda: nn.Conv2d(4, 4, 3, groups=4), lambda: torch.randn(2, 4, 7, 7)),
    "transposed1d": (lambda: nn.ConvTranspose1d(4, 6, 3), lambda: torch.randn(2, 4, 9)),
    "transposed2d": (
        lambda: nn.ConvTranspose2d(4, 6, 3, groups=2),
        lambda: torch.randn(2, 4, 7, 7),
    ),
    "transposed3d": (lambda: nn.ConvTranspose3d(2, 5, 2), lambda: torch.randn(2, 2, 3, 3, 3)),
    "embedding": (lambda: nn.Embedding(10, 4), lambda: torch.arange(10)),
    "attention": (Attention, lambda: torch.randn(2, 4, 8)),
    "transformer": (_encoder, lambda: torch.randn(2, 5, 8)),
    "lstm": (
        lambda: nn.LSTM(4, 5, 2, batch_first=True, bidirectional=True),
        lambda: torch.randn(2, 3, 4),
    ),
    "gru": (lambda: nn.GRU(4, 5), lambda: torch.randn(3, 2, 4)),
    "batch norm": (lambda: with_norm(nn.BatchNorm1d(4)), lambda: torch.randn(5, 6)),
    "layer norm": (lambda: with_norm(nn.LayerNorm(4)), lambda: torch.randn(5, 6)),
    "group norm": (
        lambda: with_norm(nn.GroupNorm(2, 4), nn.Conv2d(2, 4, 3)),
        lambda: torch.randn(5, 2, 6, 6),
    ),
    "tied": (Language, lambda: {"tokens": torch.arange(11)}),
    "parametrised": (
        lambda: nn.utils.parametrizations.weight_norm(nn.Linear(6, 4)),
        lambda: torch.randn(3, 6),
    ),
}


class Coded(nn.Linear):
    """A linear layer of 8-bit codes, as quantised networks have them."""

    def __init__(self, layer):
        super().__init__(layer.in_features, layer.out_features)
        scale = layer.weight.detach().abs().max() / 127
        codes = (layer.weight.detach() / scale).round().to(torch.int8)
        self.weight = nn.Parameter(codes.flatten(), requires_grad=False)
        self.register_buffer("scale", scale)

    def whole(self):
        return (self.weight.float() * self.scale).view(self.out_features, self.in_features)

    def forward(self, x):
        return nn.functional.linear(x, self.whole(), self.bias)


def frozen_front(network, m=2, **options):
    """A front over a network that stays as it came, with deltas other than zero."""
    torch.manual_seed(1)
    model = lp.LowRank(network, m, rank=3, scale=1.5, frozen=True, **options)
    for delta in model.low_rank_deltas().values():
        nn.init.normal_(delta.B, std=0.5)
    return model
