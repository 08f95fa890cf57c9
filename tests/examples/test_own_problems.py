"""The problems of examples/ that nobody made for this package: they train, and can be opened."""

from pathlib import Path

import pytest
import torch

import lorpman as lp
from lorpman.lab.datasets.splits import batches
from lorpman.lab.problems.own_problem import find_problem

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.mark.parametrize("name", ["diabetes", "ratings", "texts"])
def test_it_trains_with_a_front_and_by_retraining(name, tmp_path):
    file = str(EXAMPLES / f"{name}.py")
    table = lp.compare(file, ["lorpman", "retrain"], [0], tmp_path, epochs=2, progress=False)
    assert table.failures == {}
    run = lp.open_run(tmp_path / "lorpman-0", problem=file)
    assert run.problem.name == name
    assert torch.isfinite(run.front.scores).all()
    assert run.front.hypervolume() > 0


def test_texts_are_shown_with_the_names_of_their_pages(tmp_path):
    problem = find_problem(str(EXAMPLES / "texts.py"))
    run = lp.train(problem, out=tmp_path / "run", epochs=1, progress=False)
    page = lp.report(run).read_text()
    assert "<blockquote" in page
    assert any(name in page for name in problem.tasks[0].classes)


def test_labels_are_missing_in_both():
    for name, task in (("diabetes", "severe"), ("ratings", "stars")):
        problem = find_problem(str(EXAMPLES / f"{name}.py"))
        _, targets = next(iter(batches(problem.data().train, 40)))
        (its_task,) = (t for t in problem.tasks if t.name == task)
        assert 0 < its_task.labelled(targets[task], targets[task])[2] < 40
