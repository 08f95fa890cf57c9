"""Adapters of a run."""

from pathlib import Path

import pytest
import torch
from torch import nn

import lorpman as lp
from lorpman.lab.runs.directory import open_run
from lorpman.lab.runs.export_adapters import export_adapters

KEPT = Path(__file__).parents[2] / "kept" / "multidigits"


@pytest.fixture(scope="module")
def spec():
    return open_run(KEPT)[0]


def _front():
    network = nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 2))
    model = lp.LowRank(network, 2, rank=2, frozen=True)
    for delta in model.low_rank_deltas().values():
        nn.init.normal_(delta.B)
    return model, network


def test_one_adapter_per_task_or_one_at_a_preference(spec, tmp_path):
    model, network = _front()
    folders = export_adapters(spec, model, None, tmp_path / "adapters")
    assert [folder.name for folder in folders] == [task.name for task in spec.tasks()]
    x, alpha = torch.randn(3, 4), torch.tensor([0.3, 0.7])
    again = lp.LowRank.from_adapters(network, folders)
    torch.testing.assert_close(again(x, alpha), model(x, alpha))
    (one,) = export_adapters(spec, model, alpha, tmp_path / "adapter")
    single = lp.LowRank.from_adapters(network, [one])
    torch.testing.assert_close(single(x, torch.ones(1)), model(x, alpha))


def test_runs_without_adapters_are_refused(spec, tmp_path):
    with pytest.raises(lp.UsageError, match="need low-rank matrices, found a Convex; train with"):
        export_adapters(spec, lp.Convex(nn.Linear(3, 3), 2), None, tmp_path / "a")
    with pytest.raises(lp.UsageError, match="is trained; build the manifold with frozen=True"):
        export_adapters(spec, lp.LowRank(nn.Linear(3, 3), 2), None, tmp_path / "a")
    (tmp_path / "file").touch()
    with pytest.raises(lp.UsageError, match="it is a file; choose a folder"):
        export_adapters(spec, _front()[0], None, tmp_path / "file")
