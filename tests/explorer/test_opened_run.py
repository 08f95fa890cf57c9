"""Runs as the page sees them."""

import math
import shutil
from pathlib import Path

import pytest

from asking import Asker, serving
from browser import click_point
from lorpman._files import owning
from lorpman.errors import UsageError
from lorpman.explorer.opened_run import open_runs
from lorpman.explorer.report import write_report
from lorpman.front.front import Front
from lorpman.training import checkpoint

ROOT = Path(__file__).parents[2]


def test_every_kind_of_run_says_what_can_be_chosen(digits, rivals, toy, tmp_path):
    runs = open_runs([digits, *rivals.values()], tmp_path)
    modes = {run.origin.method: run.mode for run in runs}
    assert modes == {
        "lorpman": "any",
        "pamal": "any",
        "cosmos": "any",
        "phn": "any",
        "pmtl": "members",
        "ls": "members",
    }
    with serving([digits, *rivals.values()]) as explorer:
        asker = Asker(explorer)
        for run in runs:
            assert all(0 <= score <= 1 for score in asker.ask(run.key, [0.3, 0.7]))
        # Between members there is nothing: a preference is answered by the nearest one.
        members = next(run for run in runs if run.origin.method == "pmtl")
        near = members.front.alphas[0] * 0.99 + 0.005
        assert asker.ask("pmtl", near.tolist()) == asker.ask(
            "pmtl", members.front.alphas[0].tolist()
        )
    with pytest.raises(UsageError, match="must have the same tasks"):
        open_runs([digits, toy], tmp_path)


def test_runs_of_one_name_get_keys_of_their_own(digits, tmp_path):
    twin = tmp_path / "digits"
    twin.mkdir()
    for name in ("run.json", "front.json", "metrics.jsonl"):
        (twin / name).write_bytes((digits / name).read_bytes())
    first, second = open_runs([digits, twin], tmp_path)
    assert first.key != second.key
    assert (first.mode, second.mode) == ("any", "stored")
    assert "weights are not here" in second.why_not_live


def test_a_run_without_a_front_is_refused_with_the_way_out(digits, tmp_path):
    (tmp_path / "run.json").write_bytes((digits / "run.json").read_bytes())
    with pytest.raises(UsageError, match="has no front yet"):
        open_runs([tmp_path], tmp_path)


def with_nan_weights(run, copy):
    """A copy of a run whose weights hold NaN, as older versions could leave it."""
    shutil.copytree(run, copy)
    content = checkpoint.load(copy / "checkpoint.safetensors")
    next(iter(content["model"].values())).view(-1)[0] = math.nan
    with owning(copy):
        checkpoint.save(content, copy / "checkpoint.safetensors")
    return copy


def test_a_run_whose_weights_are_not_finite_is_refused(digits, tmp_path):
    spoilt = with_nan_weights(digits, tmp_path / "spoilt")
    with pytest.raises(UsageError, match=r"training that went wrong: '.*' holds nan; train again"):
        open_runs([spoilt], None)
    with pytest.raises(UsageError, match="holds nan"):
        write_report(spoilt, tmp_path / "report.html")
    assert not (tmp_path / "report.html").exists()


def test_a_run_without_weights_shows_its_front_and_says_why_it_stands_still(window):
    """MultiMNIST, kept without its weights."""
    with serving([ROOT / "tests/kept_runs/lorpman-0"]) as explorer:
        view = window(explorer.url)
        view.settled()
        assert "weights are not here" in view.page.text_content("#moving")
        front = Front.load(ROOT / "tests/kept_runs/lorpman-0/front.json")
        click_point(view, "lorpman-0", 3, "alpha=0.3,0.7")
        view.settled()
        assert list(view.scores().values()) == pytest.approx(front.scores[3].tolist(), abs=1e-4)
        view.page.locator("button.take", has_text=".onnx").click()
        view.page.wait_for_function(
            "document.getElementById('taken').textContent.includes('nothing to export')"
        )
    # The refused export is the one complaint that there should be.
    assert [line for line in view.complaints if "/export" not in line and "409" not in line] == []
    view.complaints.clear()
