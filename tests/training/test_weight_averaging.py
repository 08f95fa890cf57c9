"""The exponential mean of the weights: what it is, who sees it, and that it survives a stop."""

from functools import partial

import pytest
import torch
from torch import nn
from torch.nn import functional as F

import lorpman as lp
from lorpman.errors import UsageError
from lorpman.lab.datasets.splits import Arrays, batches
from lorpman.training import checkpoint
from lorpman.training.weight_averaging import WeightAverage
from properties import assert_resumes_to_the_same_bits

TASKS = [lp.Task(name, F.mse_loss, F.mse_loss, maximise=False, reference=9.0) for name in "ab"]


def _model(**options):
    torch.manual_seed(0)
    bottom = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.Tanh())
    network = lp.SharedBottom(bottom, [nn.Linear(8, 1), nn.Linear(8, 1)])
    return lp.LowRank(network, 2, **{"rank": 2, **options})


def _loader():
    x = torch.randn(80, 4, generator=torch.Generator().manual_seed(1))
    return batches(Arrays(x, [x[:, :1].clone(), -x[:, :1].clone()]), 20)


def _fit(model, epochs=4, **options):
    settings = {"seed": 0, "progress": False, "averaging": 0.5, **options}
    return lp.fit(model, TASKS, _loader(), epochs=epochs, **settings)


def test_the_mean_is_that_of_the_weights_after_every_step():
    linear = nn.Linear(1, 1, bias=False)
    averaging = WeightAverage(linear, 0.9)
    expected = linear.weight.item()
    for step in range(1, 200):
        with torch.no_grad():
            linear.weight.fill_(float(step))
        averaging.follow()
        decay = min(0.9, step / (step + 9))
        expected = decay * expected + (1 - decay) * step
    assert averaging.means["weight"].item() == pytest.approx(expected, rel=1e-5)
    assert linear.weight.item() == 199.0
    with averaging.in_place():
        assert linear.weight.item() == pytest.approx(expected, rel=1e-5)
    assert linear.weight.item() == 199.0


def test_averaging_does_not_change_what_is_trained():
    """The same losses in every epoch, and other weights in the end."""
    plain, averaged = _model(), _model()
    losses = [
        [epoch.losses for epoch in _fit(model, averaging=decay)]
        for model, decay in ((plain, 0.0), (averaged, 0.9))
    ]
    assert losses[0] == losses[1]
    assert any(
        not torch.equal(one, other)
        for one, other in zip(plain.parameters(), averaged.parameters(), strict=True)
    )


def test_what_is_watched_is_what_is_left():
    model, validation = _model(), list(_loader())
    history = _fit(model, validation=validation)
    assert history[-1].hypervolume == float(lp.evaluate(model, TASKS, validation).hypervolume())


@pytest.mark.parametrize("options", [{}, {"rank": "auto", "budget": 60}])
@pytest.mark.parametrize("stop", [1, 3])
def test_resuming_gives_the_same_bits(tmp_path, stop, options):
    make, fit = partial(_model, **options), partial(_fit, freeze_epoch=2)
    assert_resumes_to_the_same_bits(make, fit, tmp_path / "checkpoint.safetensors", stop)


def test_a_finished_run_can_be_resumed_without_a_step(tmp_path):
    path, model, again = tmp_path / "checkpoint.safetensors", _model(), _model()
    _fit(model, checkpoint=path)
    _fit(again, checkpoint=path, resume=True)
    for one, other in zip(model.parameters(), again.parameters(), strict=True):
        assert torch.equal(one, other)


def test_a_checkpoint_holds_the_mean_as_the_model(tmp_path):
    path, model = tmp_path / "checkpoint.safetensors", _model()
    _fit(model, checkpoint=path)
    saved = checkpoint.load(path)["model"]
    for name, value in model.state_dict().items():
        assert torch.equal(saved[name], value), name


def test_a_decay_of_one_is_refused():
    with pytest.raises(UsageError, match="averaging must be"):
        _fit(_model(), averaging=1.0)
