"""A network of a user's own class, to export."""

import torch
from torch import nn

import lorpman as lp
from properties import randomise

ALPHA = torch.tensor([0.3, 0.7])


class Net(nn.Module):
    """A user's own class: convolution, BatchNorm, dropout, two heads."""

    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(1, 4, 3)
        self.norm = nn.BatchNorm2d(4)
        self.drop = nn.Dropout(0.5)
        self.heads = nn.ModuleList([nn.Linear(4 * 36, 3), nn.Linear(4 * 36, 2)])

    def forward(self, x):
        features = self.drop(self.norm(self.conv(x)).relu().flatten(1))
        return [head(features) for head in self.heads]


def exportable():
    model = lp.LowRank(Net(), 2, rank=2, shared=["conv", "norm"])
    randomise(model)
    with torch.no_grad():
        model(torch.randn(64, 1, 8, 8), ALPHA)  # moves the running statistics
    return model


def names_in(folder):
    """The files of a folder, sorted."""
    return sorted(path.name for path in folder.iterdir())
