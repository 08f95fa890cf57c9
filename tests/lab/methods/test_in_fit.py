"""Every row of the registry trains under the one loop, and carries on after an interruption."""

import pytest
import torch

import lorpman as lp
from lorpman.lab.datasets.splits import Arrays, batches
from lorpman.lab.methods.discrete import DISCRETE
from lorpman.lab.methods.registry import METHODS
from lorpman.lab.methods.single import SINGLE
from rules.small import network, tasks

ROWS = [*SINGLE, *DISCRETE]
NAMES = [row.name for row in ROWS]
STATEFUL = [
    "uw",
    "dwa",
    "imtl",
    "imtl-l",
    "nash-mtl",
    "rotograd",
    "auto-lambda",
    "pmtl",
    "gmooar-u",
]


def _settings(row, **given):
    return row.settings(**{k: v for k, v in given.items() if k in row.settings.model_fields})


def _data(m, n=32):
    generator = torch.Generator().manual_seed(2)
    x = torch.randn(n, 4, generator=generator)
    mixing = torch.randn(4, m, generator=generator)
    return Arrays(x, [y[:, None].tanh() for y in (x @ mixing).T])


def _fit(row, m=2, epochs=2, batch_size=16, dataset=None, **options):
    torch.manual_seed(3)
    own = _settings(row, members=3, rank=2)
    net = network(m, norm=True, dropout=0.2)
    model = row.manifold(net, m, None, own)
    generator = torch.Generator().manual_seed(4)
    loader = batches(dataset or _data(m), batch_size, shuffle=True, generator=generator)
    options = {"progress": False, "seed": 5, **options}
    history = lp.fit(model, tasks(m), loader, epochs=epochs, objective=row.rule(own), **options)
    return model, history


@pytest.mark.parametrize("row", ROWS, ids=NAMES)
def test_trains_with_batch_norm_and_dropout(row):
    model, history = _fit(
        row, epochs=12, optimizer=lambda p: torch.optim.Adam(p, lr=0.02), batch_size=16
    )
    first, last = (sum(record.losses.values()) for record in (history[0], history[-1]))
    assert last < first
    front = lp.evaluate(model, tasks(2), batches(_data(2), 32))
    expected = {"single": 2 if row.name == "stl" else 1, "discrete": 3}[row.kind]
    assert len(front) == expected
    assert torch.isfinite(front.scores).all()


@pytest.mark.parametrize("row", ROWS, ids=NAMES)
def test_forty_tasks(row):
    if row.name == "gmooar-hv":
        with pytest.raises(lp.UsageError, match="use quality='uniform'"):
            _fit(row, m=40, epochs=1)
        return
    _, history = _fit(row, m=40, epochs=1, batch_size=32)
    assert len(history[0].losses) == 40


@pytest.mark.parametrize("row", ROWS, ids=NAMES)
def test_inputs_of_each_tasks_own(row):
    class PerTask(Arrays):
        def __getitems__(self, indices):
            x, y = super().__getitems__(indices)
            return [x, x + 1], y

    source = _data(2)
    dataset = PerTask(source.x, source.targets)
    if row.name == "rotograd":
        with pytest.raises(lp.UsageError, match="cannot be used with inputs per task"):
            _fit(row, dataset=dataset, epochs=1)
        return
    _, history = _fit(row, dataset=dataset, epochs=1)
    assert history[0].losses


@pytest.mark.parametrize("name", STATEFUL)
def test_a_resumed_run_equals_an_uninterrupted_one(name, tmp_path):
    row = METHODS[name]
    whole, _ = _fit(row, epochs=5)
    path = tmp_path / "checkpoint.safetensors"
    _fit(row, epochs=3, checkpoint=path)
    resumed, _ = _fit(row, epochs=5, checkpoint=path, resume=True)
    for key, value in whole.state_dict().items():
        assert torch.equal(value, resumed.state_dict()[key]), key


def test_stl_trains_each_network_for_its_own_task():
    model, _ = _fit(METHODS["stl"], epochs=1)
    assert torch.equal(model.preferences(), torch.eye(2))
    untouched = network(2, norm=True, dropout=0.2).heads[1]
    assert torch.equal(model.members[0].heads[1].weight, untouched.weight)
