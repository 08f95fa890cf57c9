import torch
from torch import nn

import lorpman as lp
from front.pictures import svg_text
from lorpman.front.plot_ranks import plot_ranks


def test_every_layer_has_a_bar_with_its_rank(tmp_path):
    torch.manual_seed(0)
    network = nn.Sequential(nn.Linear(6, 5), nn.ReLU(), nn.Linear(5, 4))
    model = lp.LowRank(network, 2, rank="auto")
    plot_ranks(model, tmp_path / "ranks.svg")
    words = svg_text(tmp_path / "ranks.svg").splitlines()
    assert {"0.weight", "2.weight", "full rank", "found"} <= set(words)
    for rank in model.ranks().values():
        assert str(rank) in words
    assert f"{model.spent():,} of {model.budget:,} parameters" in words
