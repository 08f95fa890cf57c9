import random
import re
import sys
import types
from functools import partial

import pytest
import rich.console

import lorpman as lp
from lorpman.training.progress import describe, in_notebook, progress_bar
from small_training import fit_small, make_loader, make_model, make_tasks


def test_up_to_four_tasks_are_told_one_by_one():
    losses = {name: 0.1 * i for i, name in enumerate("abcd")}
    assert describe(losses, None) == "a 0.000  b 0.100  c 0.200  d 0.300"
    assert describe({**losses, "e": 0.4}, None) == "mean loss 0.200"


@pytest.mark.parametrize(
    ("volume", "text"),
    [(0.01, "0.0100"), (0.009994, "0.009994"), (0.0, "0"), (1e-7, "1e-07"), (12.5, "12.5000")],
)
def test_small_hypervolumes_keep_their_digits(volume, text):
    assert describe({"a": 1.0}, volume) == f"a 1.000  hypervolume {text}"


def test_nothing_is_written_when_disabled(capsys):
    with progress_bar(False, 2, 0, 0, 3) as bar:
        bar.step()
        bar.epoch(1, {"a": 0.5}, 0.25)
    assert capsys.readouterr() == ("", "")


def test_a_line_per_epoch_where_there_is_no_terminal(capsys):
    with progress_bar(True, 2, 0, 0, 3) as bar:
        bar.step()
        bar.epoch(1, {"a": 0.5}, 0.25)
        bar.epoch(2, {"a" * 200: 0.5}, None)
    lines = ["epoch 1/2  a 0.500  hypervolume 0.2500", f"epoch 2/2  {'a' * 200} 0.500"]
    assert capsys.readouterr() == ("", "\n".join([*lines, ""]))


@pytest.fixture
def _terminal(monkeypatch):
    made = partial(rich.console.Console, force_terminal=True, width=200)
    monkeypatch.setattr(rich.console, "Console", made)


@pytest.mark.usefixtures("_terminal")
def test_the_bar_starts_where_a_resumed_run_does(capsys):
    with progress_bar(True, epochs=5, done=2, steps=4, steps_per_epoch=10) as bar:
        (task,) = bar._bar.tasks
        assert (task.total, task.completed) == (50, 24)
        assert task.description == "epoch 3/5"
        bar.step()
        assert task.completed == 25
        bar.epoch(3, {"rate [/s]": 0.5}, None)
        assert task.description == "epoch 4/5"
        bar.epoch(5, {"rate [/s]": 0.5}, None)
        assert task.description == "epoch 5/5"
        assert task.fields["status"] == "rate [/s] 0.500"
    out, err = capsys.readouterr()
    assert out == ""
    plain = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", err)
    assert "epoch 5/5" in plain
    assert "rate [/s] 0.500" in plain


@pytest.mark.usefixtures("_terminal")
def test_a_loader_without_a_length_has_a_bar_without_an_end():
    with progress_bar(True, epochs=5, done=2, steps=4, steps_per_epoch=None) as bar:
        (task,) = bar._bar.tasks
        assert (task.total, task.completed) == (None, 0)


def test_looking_on_draws_no_random_number(monkeypatch, capsys):
    """rich draws one when it is imported for the first time."""
    for name in [name for name in sys.modules if name.partition(".")[0] == "rich"]:
        monkeypatch.delitem(sys.modules, name)
    before = random.getstate()
    with progress_bar(True, 1, 0, 0, 1):
        assert random.getstate() == before


def test_task_names_are_not_markup(capsys):
    tasks = [
        lp.Task(name, task.loss, task.score, False, 10.0)
        for name, task in zip(("v [m/s]", "r [/s]"), make_tasks(), strict=True)
    ]
    lp.fit(make_model(), tasks, make_loader(), epochs=1)
    assert re.fullmatch(
        r"epoch 1/1  v \[m/s\] \d\.\d{3}  r \[/s\] \d\.\d{3}\n", capsys.readouterr().err
    )


def test_progress_does_not_change_training(capsys):
    shown, silent = (fit_small(progress=progress)[1] for progress in (True, False))
    assert [e.losses for e in shown] == [e.losses for e in silent]
    assert capsys.readouterr().err.count("epoch ") == 3


def test_a_notebook_is_told_on_standard_output(capsys, monkeypatch):
    """It shows standard error in red, as if something had failed."""

    class ZMQInteractiveShell:
        """The class of a notebook's shell, by which IPython's users tell it apart."""

    there = types.SimpleNamespace(get_ipython=ZMQInteractiveShell)
    monkeypatch.setitem(sys.modules, "IPython", there)
    assert in_notebook()
    monkeypatch.setattr(rich.console, "Console", partial(rich.console.Console, force_jupyter=False))
    with progress_bar(True, 2, 0, 0, 3) as bar:
        bar.epoch(1, {"a": 0.5}, None)
    assert capsys.readouterr() == ("epoch 1/2  a 0.500\n", "")
    there.get_ipython = lambda: None
    assert not in_notebook()
