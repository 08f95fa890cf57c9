import dataclasses
import json

import numpy as np
import pytest
import torch
from torch.utils.data import DataLoader, Sampler, WeightedRandomSampler

import lorpman as lp
from command_line import files, refused, run
from lorpman.lab.runs.train import train as train_run
from lorpman.training import fit as fit_module
from small_problem import SOURCE, load, small_problem


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    out = tmp_path_factory.mktemp("run") / "small"
    return lp.train(small_problem(), seed=3, out=out, epochs=1, progress=False)


def test_a_run_has_its_model_front_tasks_settings_and_path(trained):
    assert (trained.settings["epochs"], trained.settings["rank"], trained.spec.seed) == (1, 2, 3)
    assert [task.name for task in trained.tasks] == ["number", "sign"]
    assert isinstance(trained.model, lp.LowRank)
    assert torch.equal(lp.Front.load(trained.path / "front.json").scores, trained.front.scores)
    assert trained._repr_html_() == trained.front._repr_html_()


def test_an_opened_run_is_the_trained_one(trained):
    again = lp.open_run(trained.path, problem=small_problem())
    x, alpha = torch.ones(2, 4), torch.tensor([0.3, 0.7])
    for first, second in zip(trained.model(x, alpha), again.model(x, alpha), strict=True):
        assert torch.equal(first, second)
    assert again.settings == trained.settings


def test_a_run_never_says_which_code_to_execute(trained, tmp_path, monkeypatch, capsys):
    copied = tmp_path / "run"
    copied.mkdir()
    described = json.loads((trained.path / "run.json").read_text())
    (tmp_path / "evil.py").write_text("raise SystemExit('executed')")
    monkeypatch.chdir(tmp_path)
    for name in ("evil.py", "evil:PROBLEM", "small"):
        (copied / "run.json").write_text(json.dumps({**described, "problem": name}))
        with pytest.raises(lp.UsageError, match="is not built in; say where it is: --problem"):
            lp.open_run(copied)
        assert "--problem FILE.py" in refused(capsys, "evaluate", copied)


def test_a_run_of_a_changed_file_says_so(trained):
    changed = dataclasses.replace(small_problem(), source="0" * 64)
    with pytest.warns(UserWarning, match="file of problem 'small' has changed since"):
        lp.open_run(trained.path, problem=changed)


def test_a_run_of_another_problem_is_refused(trained):
    with pytest.raises(lp.UsageError, match="trained on the problem 'small', not on 'other'"):
        lp.open_run(trained.path, problem=small_problem(name="other"))


def test_a_comparison_trains_what_is_missing_and_shows_itself(tmp_path):
    problem = small_problem()
    methods = ["lorpman", "pamal", "retrain"]
    table = lp.compare(problem, methods, [0], tmp_path, progress=False)
    assert [row.method for row in table.rows] == methods
    assert {path.name for path in tmp_path.iterdir()} >= {"lorpman-0", "retrain-0"}
    shown = table._repr_html_()
    assert shown.startswith("<table>")
    assert "data:image/png;base64," in shown
    before = files(tmp_path / "lorpman-0")
    # Without retrain there is nothing to hold it against, but the run is the same.
    (again,) = lp.compare(problem, ["lorpman"], [0], tmp_path, progress=False).rows
    assert again == dataclasses.replace(table.rows[0], controls=(), cost=None)
    assert files(tmp_path / "lorpman-0") == before


def test_a_comparison_does_not_mix_versions_of_a_problem(tmp_path):
    lp.compare(small_problem(), ["lorpman"], [0], tmp_path, progress=False, epochs=1)
    changed = dataclasses.replace(small_problem(), source="0" * 64)
    table = lp.compare(changed, ["lorpman"], [0], tmp_path, progress=False, epochs=1)
    assert table.rows[0].runs == ("lorpman-0-2",)


def test_a_search_gives_the_best_settings(tmp_path):
    pytest.importorskip("optuna")
    found = lp.tune(
        small_problem(),
        trials=2,
        search={"rank": [1, 2]},
        study=tmp_path / "a.study",
        epochs=1,
        progress=False,
    )
    assert found.settings["rank"] in (1, 2)
    assert found.hypervolume == max(trial.value for trial in found.study.get_trials())


def test_every_command_takes_a_file(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    name = f"mine_{tmp_path.name}.py"
    (tmp_path / name).write_text(SOURCE)
    commands = [
        ["train", name, "--quiet"],
        ["evaluate", "runs/small-lorpman-0", "--problem", name],
        ["select", "runs/small-lorpman-0", "--knee", "--problem", name],
        ["export", "runs/small-lorpman-0", "--alpha", "0.3,0.7", "--to", "a.safetensors"],
        ["report", "runs/small-lorpman-0", "--problem", name],
        ["data", name],
        ["tune", name, "--trials", "1", "--search", "rank=1,2", "--epochs", "1"],
    ]
    commands[3] += ["--problem", name]
    for command in commands:
        code, _, err = run(capsys, *command)
        assert (code, err) == (0, ""), command
    assert (tmp_path / "runs/small-lorpman-0/report.html").stat().st_size > 100_000


def test_what_stands_behind_a_mask_changes_nothing(tmp_path):
    """Neither what is learned nor any score, however wrong the labels there are."""

    def problem(garbage):
        def data():
            x = torch.randn(60, 4, generator=torch.Generator().manual_seed(0))
            seen = torch.arange(60) % 3 > 0
            number = torch.where(seen[:, None], x[:, :1], garbage)

            def part(start, end):
                rows = slice(start, end)
                sign = (x[rows, 1] > 0).long()
                return x[rows], [lp.Masked(number[rows], seen[rows]), sign]

            return lp.Splits(train=part(0, 40), validation=part(40, 50), test=part(50, 60))

        return small_problem(data=data)

    runs = [
        lp.train(problem(garbage), out=tmp_path / str(garbage), epochs=1, progress=False)
        for garbage in (1e3, float("nan"))
    ]
    assert torch.equal(runs[0].front.scores, runs[1].front.scores)
    theta, other = (run.model.state_dict() for run in runs)
    assert all(torch.equal(theta[name], other[name]) for name in theta)


def _problem_of_a_loader(sampler):
    """The small problem, whose training data is a loader of 8 samples a batch."""

    def data():
        splits = load()
        samples = [splits.train[i] for i in range(40)]
        train = DataLoader(samples, batch_size=8, sampler=sampler())
        return lp.Splits(train=train, validation=splits.validation, test=splits.test)

    return small_problem(data=data, settings={"epochs": 2, "rank": 2})


class _Drawing(Sampler):
    """Every sample once, as a generator of numpy or torch's global one says."""

    def __init__(self, generator=None):
        self.own = generator

    def __iter__(self):
        if self.own is None:
            return iter(torch.randperm(40).tolist())
        return iter(self.own.permutation(40).tolist())

    def __len__(self):
        return 40


@pytest.mark.parametrize("sampler", [_Drawing, lambda: WeightedRandomSampler([1.0, 3.0] * 20, 40)])
def test_a_run_on_a_loader_is_resumed_in_the_middle_of_an_epoch(tmp_path, monkeypatch, sampler):
    problem = _problem_of_a_loader(sampler)
    whole = lp.train(problem, out=tmp_path / "whole", progress=False)
    assert whole.settings["batch_size"] is None
    spec, root = whole.spec, tmp_path
    stopped = iter(range(100))

    def stop(*given):
        # In the second epoch; each has 5 batches.
        if next(stopped) == 6:
            raise KeyboardInterrupt
        return train_step(*given)

    train_step = fit_module.train_step
    with monkeypatch.context() as patch:
        patch.setattr(fit_module, "train_step", stop)
        with pytest.raises(KeyboardInterrupt):
            train_run(spec, tmp_path / "cut", root, checkpoint_every=1, progress=False)
    resumed = train_run(spec, tmp_path / "cut", root, resume=True, progress=False)
    weights, again = whole.model.state_dict(), resumed.model.state_dict()
    assert all(torch.equal(weights[name], again[name]) for name in weights)


def test_a_sampler_that_cannot_be_resumed_is_named(tmp_path):
    own = np.random.default_rng(0)
    with pytest.raises(lp.UsageError, match="sampler of its loader draws another order"):
        lp.train(_problem_of_a_loader(lambda: _Drawing(own)), out=tmp_path / "run")
    assert list(tmp_path.iterdir()) == []
