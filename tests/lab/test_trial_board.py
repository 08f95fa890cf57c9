import io

import pytest
from rich.console import Console

from lorpman.lab.sweep import Sweep
from lorpman.lab.trial_board import TrialBoard

optuna = pytest.importorskip("optuna")
SWEEP = Sweep.make("toy", "lorpman", 0, {"epochs": 4}, {"rank": [1, 2, 4]})


@pytest.fixture
def study():
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    return optuna.create_study(direction="maximize")


def _begin(study, rank, epochs=0):
    """A trial as it stands after some epochs."""
    study.enqueue_trial({"rank": rank})
    trial = study.ask()
    trial.suggest_categorical("rank", SWEEP.ranges["rank"])
    for epoch in range(epochs):
        trial.report(0.5, epoch + 1)
    return trial


def _shown(board):
    console = Console(width=100, file=io.StringIO())
    console.print(board.table())
    return console.file.getvalue()


def test_a_trial_that_begins_is_told_once_with_its_settings(study):
    told = []
    board = TrialBoard(study, SWEEP, 20, 1, told.append)
    board.look()
    assert told == []
    _begin(study, 2)
    board.look()
    board.look()
    # Three, and not twenty: there are no more combinations.
    assert told == ["trial 0 (rank=2) begins (0 of 3 done; running: trial 0 (rank=2))"]


def test_a_table_shows_how_far_each_trial_is(study):
    board = TrialBoard(study, SWEEP, 3, 2, print)
    study.tell(_begin(study, 1, epochs=4), 0.7)
    _begin(study, 2, epochs=3)
    text = _shown(board)
    assert "trial 0 (rank=1)" in text
    assert "epoch 4/4" in text
    assert "epoch 3/4" in text
    assert "1 of 3 done; running: trial 1 (rank=2)" in text
    assert "1 waiting" in text


def test_pruned_trials_count_and_make_those_to_come_shorter(study):
    board = TrialBoard(study, SWEEP, 3, 1, print)
    for rank in (1, 2):
        pruned = _begin(study, rank, epochs=2)
        study.tell(pruned, state=optuna.trial.TrialState.PRUNED)
    progress = board._progress()
    assert [one.state for one in progress.values()] == ["done", "done", "waits"]
    assert [one.epochs for one in progress.values()] == [4, 4, 2]


def test_a_trial_of_a_killed_process_does_not_seem_to_run(study):
    _begin(study, 1)
    told = []
    board = TrialBoard(study, SWEEP, 3, 1, told.append)
    board.look()
    assert told == []
    assert "0 of 3 done; 3 waiting" in _shown(board)


def test_a_trial_that_was_told_no_settings_yet_has_not_begun(study):
    board = TrialBoard(study, SWEEP, 3, 1, pytest.fail)
    study.ask()
    board.look()
