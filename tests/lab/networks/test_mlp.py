import torch

from lorpman.lab.networks.mlp import mlp


def test_outputs_are_as_wide_as_asked() -> None:
    outputs = mlp(5, hidden=7, outputs=(2, 3))(torch.rand(4, 5))
    assert [tuple(out.shape) for out in outputs] == [(4, 2), (4, 3)]
