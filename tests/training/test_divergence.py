"""Training that leaves the finite numbers ends in an error, and in no file."""

import math

import pytest
import torch
from torch import nn

import lorpman as lp
from lorpman.training import checkpoint
from lorpman.training.divergence import check_checkpoint
from small_training import fit_small, make_data, make_loader, make_model, make_tasks, same_weights


def _tasks_with_nan_gradient(call):
    """The gradient of the second task is NaN in its ``call``-th loss; all losses are finite."""
    calls = []

    def loss(output, target):
        calls.append(None)
        value = (output - target).square().mean()
        if len(calls) == call:
            value.register_hook(lambda gradient: gradient * math.nan)
        return value

    left = make_tasks()[0]
    return [left, lp.Task("right", loss, left.score, maximise=False, reference=10.0)]


def _fit(tasks, **options):
    settings = {"window": 1, "progress": False, "seed": 5, **options}
    return lp.fit(make_model(), tasks, make_loader(), **settings)


def test_a_nan_gradient_in_the_last_step_is_found():
    message = (
        r"^parameter 'network\..*' holds nan after epoch 2, step 3, whose largest loss was .* of "
        r"task '(left|right)' at preference \(.*\); check"
    )
    with pytest.raises(lp.TrainingDiverged, match=message):
        _fit(_tasks_with_nan_gradient(6), epochs=2)


def test_the_last_whole_checkpoint_stays(tmp_path):
    path = tmp_path / "c.safetensors"
    with pytest.raises(lp.TrainingDiverged, match="holds nan after epoch 2, step 3"):
        _fit(_tasks_with_nan_gradient(6), epochs=3, checkpoint=path)
    content = checkpoint.load(path)
    assert content["epochs_done"] == 1
    assert all(v.isfinite().all() for v in content["model"].values() if v.is_floating_point())


def test_a_checkpoint_within_an_epoch_never_holds_nan(tmp_path):
    path = tmp_path / "c.safetensors"
    with pytest.raises(lp.TrainingDiverged, match=r"parameter '.*' holds nan, and so nothing was"):
        _fit(_tasks_with_nan_gradient(5), epochs=3, checkpoint=path, checkpoint_every=1)
    content = checkpoint.load(path)
    assert (content["epochs_done"], content["steps_done"]) == (1, 1)
    assert sorted(p.name for p in tmp_path.iterdir()) == [
        "c.previous.safetensors",
        "c.safetensors",
    ]


@pytest.mark.parametrize("make", [torch.optim.Adam, torch.optim.SGD])
def test_one_step_that_is_far_too_long_is_found(tmp_path, make):
    path = tmp_path / "c.safetensors"
    with pytest.raises(lp.TrainingDiverged, match=r"task '(left|right)' is (inf|nan) after the la"):
        fit_small(
            loader=[next(iter(make_loader()))],
            epochs=1,
            optimizer=lambda p: make(p, lr=1e30),
            checkpoint=path,
        )
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("averaging", [0.0, 0.9])
def test_looking_changes_nothing(monkeypatch, averaging):
    looked, _ = fit_small(averaging=averaging)
    state = torch.get_rng_state()
    monkeypatch.setattr("lorpman.training.fit.check_epoch", lambda *_: None)
    blind, _ = fit_small(averaging=averaging)
    assert same_weights(looked, blind)
    assert torch.equal(state, torch.get_rng_state())


def test_a_rule_that_is_not_finite_is_found():
    class Spoilt(lp.Rule):
        def __init__(self):
            super().__init__()
            self.register_buffer("weight", torch.ones(2))

        def backward(self, step):
            step.backward((step.alphas * step.losses).sum())
            self.weight[1] = math.nan

    with pytest.raises(lp.TrainingDiverged, match="buffer 'weight' holds nan after epoch 1"):
        fit_small(objective=Spoilt())


@pytest.mark.parametrize(
    ("content", "name"),
    [
        ({"optimizer": {"state": {3: {"exp_avg": torch.tensor([1.0, math.nan])}}}}, "exp_avg"),
        ({"rule": {"history": [torch.tensor(math.nan)]}}, "rule.history.0"),
        ({"averaging": {"weights": {"w": torch.tensor([math.nan])}}}, "averaging.weights.w"),
        ({"model": {"w": torch.tensor([math.inf])}}, "parameter 'w' holds inf"),
    ],
)
def test_what_a_checkpoint_must_not_hold_is_named(content, name):
    with pytest.raises(lp.TrainingDiverged, match=name):
        check_checkpoint(content)


def test_a_finite_checkpoint_passes():
    mask = torch.full((2, 2), -math.inf).triu(1)
    best = {"best": torch.tensor(math.inf)}  # a schedule or a rule may begin so
    check_checkpoint({"model": {"mask": mask}, "rule": best, "optimizer": {}, "averaging": None})


def test_validation_data_that_is_not_finite_is_named():
    data = make_data()
    data.targets[1][7] = math.nan
    batch = [(data.x, data.targets)]
    with pytest.raises(lp.UsageError, match=r"loss of task 'right' is nan .* the data .* mend"):
        fit_small(validation=batch)


def test_statistics_of_norm_layers_are_as_without_a_look(monkeypatch):
    """The look runs in training mode, where a norm layer counts every batch."""
    model, _ = fit_small(epochs=1)
    norms = [m for m in model.modules() if isinstance(m, nn.BatchNorm1d)]
    assert int(norms[0].num_batches_tracked) == 3 * 4
