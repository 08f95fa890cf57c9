"""What a table plans: which runs at which scale, and what the paper prints beside them."""

from dataclasses import replace
from pathlib import Path

from lorpman.front.front import Front
from lorpman.lab.reproduce.reproduction import (
    NOISE_EPOCHS,
    FinishedRun,
    Line,
    Plan,
    PlannedRun,
    Reported,
    Reproduction,
)
from small_reproduction import SMALL

KEPT_FRONT = Path(__file__).parents[2] / "kept" / "toy" / "front.json"


def test_a_line_is_run_only_at_the_scales_that_it_has_settings_for():
    labels = {
        scale: [one.line.label for one in SMALL.planned_runs(scale, (0,))]
        for scale in ("paper", "laptop")
    }
    assert labels == {"paper": ["rank 99"], "laptop": ["rank 1", "rank 2"]}


def test_every_line_has_one_run_per_seed_on_the_problem_of_its_scale():
    planned = SMALL.planned_runs("laptop", (3, 4, 5))
    assert [one.spec.seed for one in planned] == [3, 4, 5, 3, 4, 5]
    assert {one.spec.problem.name for one in planned} == {"multidigits"}
    assert {one.spec.problem.name for one in SMALL.planned_runs("paper", (0,))} == {"utkface"}


def test_the_settings_of_a_line_reach_its_runs():
    first, second = SMALL.planned_runs("laptop", (0,))
    assert (first.spec.settings()["rank"], second.spec.settings()["rank"]) == (1, 2)
    assert first.changes == SMALL.lines[0].laptop


def test_a_run_is_named_after_method_changes_and_seed():
    one = SMALL.planned_runs("laptop", (7,))[0]
    bare = PlannedRun(one.line, one.spec, {"rank": 1, "epochs": 2})
    assert bare.name == "lorpman-rank=1-epochs=2-7"


def test_runs_on_noise_are_short_and_still_freeze():
    frozen = replace(SMALL.lines[0], laptop={"freeze_epoch": 8})
    table = replace(SMALL, lines=(frozen, SMALL.lines[1]))
    first, second = (
        one.spec.training for one in table.planned_runs("laptop", (0,), generated=True)
    )
    assert (first.epochs, first.freeze_epoch) == (NOISE_EPOCHS, 1)
    assert (second.epochs, second.freeze_epoch) == (NOISE_EPOCHS, None)


def test_published_numbers_come_from_the_preset_unless_the_line_has_its_own():
    plan = Plan("multimnist", (0,))
    lines = (
        Line("a", "lorpman"),
        Line("b", "lorpman", reported={"hypervolume": Reported(0.5)}, parameters=7.0),
        Line("c", "lorpman", reported={}),
        Line("d", "epo"),
    )
    row = Reproduction("x", "X", lines, (), lambda found, path: None, plan, plan)
    assert row.reported(lines[0]) == ({"hypervolume": Reported(0.918, 0.0018)}, 0.046e6)
    assert row.reported(lines[1]) == ({"hypervolume": Reported(0.5)}, 7.0)
    assert row.reported(lines[2]) == ({}, None)
    assert row.reported(lines[3]) == ({}, None)


def test_a_finished_run_reads_its_notes_once_and_only_when_asked(tmp_path):
    planned = SMALL.planned_runs("laptop", (0,))[0]
    run = FinishedRun(tmp_path, planned, Front.load(KEPT_FRONT), tmp_path)
    assert run.spec is planned.spec
    log = tmp_path / "metrics.jsonl"
    log.write_text('{"number": 1}\n{"number": 2}\n')
    assert [note["number"] for note in run.notes] == [1, 2]
    log.unlink()
    assert len(run.notes) == 2
