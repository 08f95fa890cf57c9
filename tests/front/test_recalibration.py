import pytest
import torch
from torch import nn

import lorpman as lp
from front.exported import ALPHA, exportable


def test_recalibration_gives_the_statistics_of_the_chosen_network():
    network = exportable().solution(ALPHA).train()
    batches = [(torch.randn(32, 1, 8, 8) * 3 + 1, None) for _ in range(4)]
    assert lp.recalibrate(network, batches, 3) == 1
    features = [network.conv(x) for x, _ in batches[:3]]
    mean = torch.stack([f.mean((0, 2, 3)) for f in features]).mean(0)
    torch.testing.assert_close(network.norm.running_mean, mean, atol=1e-5, rtol=1e-4)
    assert network.norm.momentum == 0.1
    assert network.training
    assert lp.recalibrate(nn.Linear(2, 2), batches) == 0
    with pytest.raises(lp.UsageError, match="no batches"):
        lp.recalibrate(network, [])


def test_recalibration_helps_where_preferences_disagree_about_statistics():
    """The measured effect: a network whose alphas move the features has blended statistics."""
    torch.manual_seed(0)
    network = nn.Sequential(nn.Linear(4, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Linear(16, 1))
    x = torch.randn(512, 4)
    y = [(x[:, :1] - 1), (1 - x[:, :1])]
    tasks = [
        lp.Task(f"t{i}", lambda o, t: (o - t).square().mean(), lambda o, t: -(o - t).square())
        for i in range(2)
    ]
    split = [(x[k : k + 64], [v[k : k + 64] for v in y]) for k in range(0, 512, 64)]

    class Same(nn.Module):
        """One output for two tasks that want opposite values of it."""

        def __init__(self):
            super().__init__()
            self.net = network

        def forward(self, x):
            out = self.net(x)
            return [out, out]

    model = lp.LowRank(Same(), 2, rank=4, scale=4.0)
    lp.fit(model, tasks, split, epochs=30, progress=False, seed=0)
    corner = model.solution(torch.tensor([1.0, 0.0])).eval()
    before = (corner(x)[0] - y[0]).square().mean().item()
    lp.recalibrate(corner, split)
    after = (corner(x)[0] - y[0]).square().mean().item()
    assert after < 0.9 * before, (before, after)


def test_batches_without_targets_and_layers_without_statistics():
    network = nn.Sequential(nn.BatchNorm1d(2), nn.BatchNorm1d(2, track_running_stats=False))
    x = torch.randn(8, 2)
    assert lp.recalibrate(network, [x]) == 1
    torch.testing.assert_close(network[0].running_mean, x.mean(0))


def test_statistics_of_data_that_is_not_finite_are_refused():
    network = nn.Sequential(nn.BatchNorm1d(2))
    with pytest.raises(lp.UsageError, match=r"buffer '0.running_mean' holds nan"):
        lp.recalibrate(network, [torch.full((4, 2), torch.nan)])
