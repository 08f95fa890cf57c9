"""Valid calls of what trains, opens, compares and shows runs; see ``misuse.py``."""

import shutil
from functools import lru_cache
from pathlib import Path
from tempfile import mkdtemp

import lorpman as lp
from misuse import Call, loader, model, tasks
from small_problem import load, small_problem

QUICK = {"epochs": 1, "watch_samples": 0, "progress": False}


@lru_cache
def _trained():
    """A run that is copied to wherever one is needed."""
    folder = Path(mkdtemp(prefix="misused-run-"))
    lp.train(small_problem(), out=folder / "run", **QUICK)
    return folder / "run"


def _run(folder):
    shutil.copytree(_trained(), folder / "run")
    return folder / "run"


def _explore(shown, **options):
    """Several things to show stand in a list here, and as separate arguments there."""
    several = shown if isinstance(shown, list | tuple) else [shown]
    lp.explore(*several, block=False, **options).close()


def _splits(**parts):
    return lp.train(small_problem(data=lambda: lp.Splits(**parts)), **QUICK)


def _problem(**parts):
    return lp.train(lp.Problem(**parts), **QUICK)


RUN_CALLS = {
    "train": Call(
        lp.train,
        lambda folder: {
            "problem": small_problem(),
            "method": "lorpman",
            "seed": 0,
            "out": folder / "new",
            "data": None,
            "scale": "paper",
            "recipe": None,
            "resume": False,
            "rank": 2,
            "window": 2,
            "learning_rate": 0.01,
            "batch_size": 20,
            "freeze_epoch": None,
            **QUICK,
        },
        # A trillion epochs would be trained.
        keep=("epochs", "progress"),
    ),
    "open_run": Call(
        lp.open_run,
        lambda folder: {"path": _run(folder), "problem": small_problem(), "data": None},
    ),
    "compare": Call(
        lp.compare,
        lambda folder: {
            "problem": small_problem(),
            "methods": ["lorpman"],
            "seeds": [0],
            "out": folder / "table",
            "data": None,
            "scale": "paper",
            "recipe": None,
            "scheduler": None,
            "rank": 2,
            **QUICK,
        },
        keep=("epochs", "progress"),
    ),
    "tune": Call(
        lp.tune,
        lambda folder: {
            "problem": small_problem(),
            "method": "lorpman",
            "trials": 1,
            "search": {"rank": [1]},
            "seed": 0,
            "study": folder / "a.study",
            "data": None,
            "scale": "paper",
            "recipe": None,
            "scheduler": None,
            "learning_rate": 0.01,
            **QUICK,
        },
        keep=("epochs", "progress"),
    ),
    "report": Call(
        lp.report,
        lambda folder: {
            "run": _run(folder),
            "to": folder / "report.html",
            "problem": small_problem(),
        },
    ),
    "explore": Call(
        _explore,
        lambda folder: {
            "shown": [_run(folder)],
            "problem": small_problem(),
            "data": None,
            "port": 0,
            "samples": 5,
        },
    ),
    "explore a model": Call(
        _explore,
        lambda folder: {
            "shown": [model()],
            "tasks": tasks(),
            "data": loader(),
            "show": None,
            "port": 0,
            "samples": 5,
        },
    ),
    "Problem": Call(
        _problem,
        lambda folder: {
            "name": "small",
            "tasks": small_problem().tasks,
            "network": small_problem().network,
            "data": load,
            "shared": None,
            "settings": {"rank": 2},
        },
    ),
    "Splits": Call(
        _splits,
        lambda folder: {name: getattr(load(), name) for name in ("train", "validation", "test")},
    ),
}
"""By the public name. What they write goes below the folder, or the working directory."""
