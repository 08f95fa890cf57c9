import shutil
from pathlib import Path

import pytest
import torch

import lorpman as lp
from lorpman.lab.runs.evaluation import evaluate_run, save_front

KEPT = Path(__file__).parents[2] / "kept" / "multidigits"


def test_every_split_has_a_front_of_its_own(tmp_path):
    fronts = [evaluate_run(KEPT, split, tmp_path) for split in ("train", "validation", "test")]
    assert {front.label for front in fronts} == {"lorpman"}
    assert not torch.equal(fronts[0].scores, fronts[1].scores)
    assert not torch.equal(fronts[1].scores, fronts[2].scores)


def test_an_unknown_split_is_refused(tmp_path):
    with pytest.raises(lp.UsageError, match=r"^unknown split 'tests'; did you mean 'test'\?"):
        evaluate_run(KEPT, "tests", tmp_path)


@pytest.mark.parametrize(("split", "name"), [("test", "front"), ("train", "front-train")])
def test_only_the_test_split_replaces_the_runs_front(tmp_path, split, name):
    front = lp.Front.load(KEPT / "front.json")
    run = Path(shutil.copytree(KEPT, tmp_path / "run"))
    (run / "front.json").unlink()
    save_front(front, run, split)
    assert {path.name for path in run.glob("front*")} == {f"{name}.json", f"{name}.png"}
    assert torch.equal(lp.Front.load(run / f"{name}.json").scores, front.scores)
