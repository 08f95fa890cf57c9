"""Scoring a trained run again, on any split of its data."""

from pathlib import Path

from torch import Tensor

from lorpman._files import owning
from lorpman.errors import unknown
from lorpman.front.evaluate import evaluate
from lorpman.front.front import Front
from lorpman.lab.datasets.splits import batches
from lorpman.lab.problems.problem import Problem
from lorpman.lab.runs.directory import open_run

SPLITS = ("train", "validation", "test")
EVALUATION_BATCH = 1000
"""Samples per batch where nothing is learned; it changes no score."""


def evaluate_run(
    run: Path,
    split: str,
    root: Path,
    problem: Problem | None = None,
    alphas: Tensor | None = None,
) -> Front:
    """The front of a finished run on one of its splits; :func:`save_front` writes it.

    Args:
        run: The run directory.
        split: Any of :data:`SPLITS`.
        root: Where datasets are.
        problem: What was trained, where that is not built in.
        alphas: The preferences, ``[n, m]``; default: the manifold's own.

    Raises:
        UsageError: If the split is not known, or run or data are missing or damaged.
    """
    if split not in SPLITS:
        raise unknown("split", split, SPLITS)
    spec, model = open_run(run, problem)
    data = getattr(spec.load(root), split)
    loader = batches(data, EVALUATION_BATCH)
    return evaluate(model, spec.tasks(), loader, alphas, label=spec.method.name)


def save_front(front: Front, run: Path, split: str) -> None:
    """Write a front and its picture into a run directory.

    Args:
        front: What :func:`evaluate_run` gave.
        run: The run directory.
        split: The test split replaces the run's own ``front.json`` and ``front.png``; others have
            their name in the files' names.

    Raises:
        UsageError: If the files cannot be written.
    """
    name = "front" if split == "test" else f"front-{split}"
    with owning(run):
        front.save(run / f"{name}.json")
        front.plot(run / f"{name}.png")
