"""A step on a person's own problem is measured like ours."""

import torch
from torch.nn import functional as F

import lorpman as lp
from command_line import refused, run
from lorpman.lab.bench.problem_row import problem_row
from lorpman.lab.bench.timing import Conditions
from small_problem import SOURCE, load, small_problem


def test_it_measures_our_step_by_plain_ones(tmp_path):
    row = problem_row(small_problem())
    measured = row.measure(Conditions(1, True, tmp_path))
    assert row.name == "small-step"
    assert measured.value > 0
    assert set(measured.rounds) == {"plain", "lorpman"}
    window = small_problem().settings.get("window", 4)
    trainings = f"{window * measured.value:.1f} trainings of your network"
    assert f"one front costs as much as {trainings}" in measured.note
    (memory,) = measured.also.values()
    assert memory > 0


def test_data_of_any_structure_and_gaps_are_measured_too(tmp_path):
    def gaps():
        parts = []
        for split in (load().train, load().validation, load().test):
            x, (number, sign) = split.parts
            number = torch.where(torch.arange(len(x))[:, None] % 2 == 0, number, float("nan"))
            parts.append((x, {"sign": sign, "number": number}))
        return lp.Splits(*parts)

    tasks = [
        lp.Task("number", F.mse_loss, F.mse_loss, False, 4.0, missing=float("nan")),
        lp.Task("sign", F.cross_entropy, lp.accuracy),
    ]
    measured = problem_row(small_problem(tasks=tasks, data=gaps)).measure(
        Conditions(1, True, tmp_path)
    )
    assert measured.value > 0


def test_the_command_takes_a_file(tmp_path, capsys):
    file = tmp_path / f"bench_{tmp_path.name}.py"
    file.write_text(SOURCE)
    code, out, _ = run(capsys, "bench", file, "--quick", "--threads", 1, "--out", tmp_path / "b")
    assert code == 0
    assert "small-step" in out
    assert "one front costs as much as" in out
    assert "unknown problem 'nothing'" in refused(capsys, "bench", "nothing")
