import itertools

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional as F

import lorpman as lp
from command_line import refused
from lorpman.lab.runs.spec import Spec
from lorpman.lab.runs.trial import try_out
from small_problem import SOURCE, TASKS, load, network, small_problem


def _try(tmp_path, **changes):
    spec = Spec.make(small_problem(**changes), "lorpman", 0, {})
    try_out(spec, spec.load(tmp_path), tmp_path)


def _grows():
    widths = itertools.count(8)

    def make():
        width = next(widths)
        return lp.SharedBottom(nn.Linear(4, width), [nn.Linear(width, 1), nn.Linear(width, 2)])

    return make


def _own_generator():
    made = network()
    values = np.random.default_rng().random((8, 4))
    made.bottom.weight.data.copy_(torch.tensor(values))
    return made


def _shuffles_differently():
    splits = load()
    x, (number, sign) = splits.test.parts
    rows = torch.from_numpy(np.random.default_rng().permutation(len(x)))
    return lp.Splits(splits.train, splits.validation, (x[rows], [number[rows], sign[rows]]))


def _other_targets():
    splits = load()
    x, (number, _) = splits.test.parts
    return lp.Splits(splits.train, splits.validation, (x, [number]))


WRONG = {
    "a network that grows": ({"network": _grows()}, r"'bottom.weight' was \(\d+, 4\), then"),
    "weights of another generator": ({"network": _own_generator}, "starts with other values"),
    "too wide": ({"network": lambda: nn.Linear(5, 2)}, "the network fails .* float32 \\[8, 4\\]"),
    "one output": ({"network": lambda: nn.Linear(4, 1)}, "must hold one entry per task"),
    "other order": ({"data": _shuffles_differently}, "the test split differs from call to call"),
    "one target": ({"data": _other_targets}, "targets must hold one entry per task"),
    "a loss per sample": (
        {"tasks": [lp.Task("number", lambda o, t: (o - t).abs(), F.mse_loss), TASKS[1]]},
        r"loss of task 'number' must be a scalar tensor, found \[8, 1\]",
    ),
    "a loss of nothing": (
        {"tasks": [lp.Task("number", lambda o, t: t.mean(), F.mse_loss), TASKS[1]]},
        "loss of task 'number' does not depend on the network",
    ),
    "a score that fails": (
        {"tasks": [lp.Task("number", F.mse_loss, lambda o, t: o.nothing()), TASKS[1]]},
        "score of task 'number' fails on the validation split",
    ),
}


@pytest.mark.parametrize("case", WRONG)
def test_what_is_wrong_is_named(case, tmp_path):
    changes, message = WRONG[case]
    with pytest.raises(lp.UsageError, match=message):
        _try(tmp_path, **changes)


def test_what_fits_passes_and_leaves_random_states_alone(tmp_path):
    before = torch.get_rng_state()
    _try(tmp_path)
    assert torch.equal(torch.get_rng_state(), before)


def test_a_method_that_cannot_run_the_network_is_named(tmp_path):
    class Odd(nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = nn.Parameter(torch.ones(4, 4))

        def forward(self, x):
            return [(x @ self.weight)[:, :1], (x @ self.weight)[:, :2]]

    spec = Spec.make(small_problem(network=Odd), "film", 0, {})
    with pytest.raises(lp.UsageError):
        try_out(spec, spec.load(tmp_path), tmp_path)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("PROBLEM =", "OTHER =", "has no PROBLEM"),
        ("def load():", "1 / 0\n\n\ndef load():", "ZeroDivisionError"),
        ("train=part(0, 40)", "train=part(0, 0)", "the train split is empty"),
        ('"sign"', '"number"', "task names must differ"),
        ("nn.Linear(4, 8)", "nn.Linear(5, 8)", "the network fails"),
    ],
)
def test_a_bad_file_is_one_line_and_nothing_is_written(
    tmp_path, monkeypatch, capsys, old, new, message
):
    monkeypatch.chdir(tmp_path)
    file = tmp_path / f"bad_{tmp_path.name}.py"
    assert old in SOURCE
    file.write_text(SOURCE.replace(old, new))
    assert message in refused(capsys, "train", file.name, "--quiet")
    assert message in refused(capsys, "tune", file.name, "--search", "rank=1,2")
    assert not (tmp_path / "runs").exists()


def test_labels_may_be_missing(tmp_path, capsys):
    def gaps():
        splits, with_gaps = load(), []
        for split in (splits.train, splits.validation, splits.test):
            x, (number, sign) = split.parts
            number, sign = number.clone(), sign.clone()
            number[::2], sign[1::2] = float("nan"), -1
            with_gaps.append((x, [number, sign]))
        return lp.Splits(*with_gaps)

    tasks = [
        lp.Task("number", F.mse_loss, F.mse_loss, False, 4.0, missing=float("nan")),
        lp.Task("sign", F.cross_entropy, lp.accuracy, missing=-1),
    ]
    problem = small_problem(tasks=tasks, data=gaps)
    trained = lp.train(problem, out=tmp_path / "run", progress=False)
    assert torch.isfinite(trained.front.scores).all()
    assert torch.isfinite(trained.front.losses).all()
