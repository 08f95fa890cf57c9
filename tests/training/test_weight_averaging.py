"""The exponential mean of the weights: what it is, who sees it, and that it survives a stop."""

from functools import partial

import pytest
import torch
from torch import nn

import lorpman as lp
from lorpman.training import checkpoint
from lorpman.training.weight_averaging import WeightAverage
from properties import assert_resumes_to_the_same_bits
from small_training import exactly, fit_small, make_loader, make_model, make_tasks, same_weights

_fit = partial(fit_small, averaging=0.5, epochs=4)


def _fill(module, value):
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.fill_(value)


def test_the_mean_is_that_of_the_weights_after_every_step():
    linear = nn.Linear(1, 1, bias=False)
    average = WeightAverage(linear, 0.9)
    expected = linear.weight.item()
    for step in range(1, 200):
        _fill(linear, float(step))
        average.follow()
        decay = min(0.9, step / (step + 9))
        expected = decay * expected + (1 - decay) * step
        if step in (1, 2, 80, 82, 199):  # before and after the decay is the one given
            assert average.means["weight"].item() == pytest.approx(expected, rel=1e-5)
            assert average.steps == step
    assert linear.weight.item() == 199.0


def test_the_model_has_the_mean_inside_a_block_only():
    linear = nn.Linear(1, 1)
    average = WeightAverage(linear, 0.5)
    mean = linear.weight.item()
    _fill(linear, 7.0)
    inside = []

    def look_and_fail():
        inside.append(linear.weight.item())
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError), average.in_place():
        look_and_fail()
    assert inside == [mean]
    assert linear.weight.item() == 7.0
    average.keep()
    assert linear.weight.item() == mean
    _fill(linear, 7.0)
    assert average.means["weight"].item() == mean  # a copy


def test_running_statistics_are_averaged_and_counts_are_not():
    norm = nn.BatchNorm1d(2)
    average = WeightAverage(norm, 0.5)
    norm(torch.randn(8, 2) + 5)
    assert set(average.means) == {"weight", "bias", "running_mean", "running_var"}
    average.follow()
    # In the first step the decay is 1 / 10.
    torch.testing.assert_close(average.means["running_mean"], 0.9 * norm.running_mean)
    average.keep()
    assert norm.num_batches_tracked == 1


def test_a_restart_forgets_what_was_before():
    linear = nn.Linear(1, 1)
    average = WeightAverage(linear, 0.5)
    average.follow()
    _fill(linear, 3.0)
    average.restart()
    assert average.steps == 0
    assert average.means["weight"].item() == 3.0
    _fill(linear, 4.0)
    assert average.means["weight"].item() == 3.0


def test_averaging_does_not_change_what_is_trained():
    """The same losses in every epoch, and other weights in the end."""
    (plain, ours), (averaged, theirs) = (_fit(averaging=decay) for decay in (0.0, 0.9))
    assert [epoch.losses for epoch in ours] == [epoch.losses for epoch in theirs]
    assert not same_weights(plain, averaged)


def test_what_is_watched_is_what_is_left():
    validation = list(make_loader())
    model, history = _fit(validation=validation)
    front = lp.evaluate(model, make_tasks(), validation)
    assert history[-1].hypervolume == float(front.hypervolume())


@pytest.mark.parametrize("options", [{}, {"rank": "auto", "budget": 60}])
@pytest.mark.parametrize("stop", [1, 3])
def test_resuming_gives_the_same_bits(tmp_path, stop, options):
    make, fit = partial(make_model, **options), partial(_fit, freeze_epoch=2)
    assert_resumes_to_the_same_bits(make, fit, tmp_path / "checkpoint.safetensors", stop)


def test_a_finished_run_can_be_resumed_without_a_step(tmp_path):
    path = tmp_path / "checkpoint.safetensors"
    model, _ = _fit(checkpoint=path)
    again, history = _fit(checkpoint=path, resume=True)
    assert history == []
    assert same_weights(model, again)


def test_a_checkpoint_holds_the_mean_as_the_model(tmp_path):
    path = tmp_path / "checkpoint.safetensors"
    model, _ = _fit(checkpoint=path)
    content = checkpoint.load(path)
    assert same_weights(content["model"], model)
    assert not same_weights(content["averaging"]["weights"], model)
    assert content["averaging"]["steps"] == 4 * len(make_loader())


@pytest.mark.parametrize("decay", [1.0, -0.1])
def test_a_decay_beyond_its_bounds_is_refused(decay):
    message = f"averaging must be at least 0 and below 1, got {decay}"
    with pytest.raises(lp.UsageError, match=exactly(message)):
        _fit(averaging=decay)
