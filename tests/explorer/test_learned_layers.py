"""Low-rank matrices in numbers."""

import pytest
import torch

from lorpman.explorer.learned_layers import learned_layers
from lorpman.lab.runs.directory import open_run


def test_layers_are_what_the_dense_matrices_say(digits):
    model = open_run(digits)[1]
    shown = {layer.name: layer for layer in learned_layers(model)}
    for name, delta in model.low_rank_deltas().items():
        flat = delta.dense().flatten(1).double()
        cosine = torch.nn.functional.cosine_similarity(flat[0], flat[1], dim=0).item()
        assert shown[name].correlation[0][1] == pytest.approx(cosine, abs=1e-4)
        main = dict(model.network.named_parameters())[name].double()
        energy = (model.scale * flat).square().sum(1) / main.square().sum()
        assert shown[name].energy == pytest.approx(energy.tolist(), rel=1e-4)


def test_other_manifolds_have_none(rivals):
    assert learned_layers(open_run(rivals["pamal"])[1]) == []
    assert learned_layers(None) == []
