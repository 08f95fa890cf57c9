"""The table as people read it."""

import pytest
import torch

from command_line import run
from lorpman.lab.reproduce.markdown_table import as_markdown


def test_ours_stands_beside_the_papers_with_how_to_redo_it(made):
    _, outcome = made
    text = as_markdown(outcome)
    lines = text.splitlines()
    assert lines[0].split(" | ")[:3] == ["| method", "hypervolume, ours", "paper"]
    first = [cell.strip() for cell in lines[2].split("|")[1:-1]]
    mean, deviation = map(float, first[1].split("±"))
    values = torch.tensor(outcome.lines[0].values("hypervolume"))
    assert mean == pytest.approx(values.mean().item(), abs=1e-4)
    assert deviation == pytest.approx(values.std().item(), abs=1e-4)
    assert first[2] == "0.500 ± 0.01"
    last = [cell.strip() for cell in lines[4].split("|")[1:-1]]
    assert last == ["rank 99", "not at this scale", "0.600", "not at this scale", "", "", "3.0M"]
    for said in ("laptop scale", "much smaller", "not comparable", "seeds 0, 1"):
        assert said in text
    assert "`lorpman reproduce small-ablation --scale laptop`" in text
    assert "`lorpman train multidigits --seed" in text


def test_the_command_under_the_table_makes_the_same_run(made, tmp_path, capsys):
    text = as_markdown(made[1])
    command = text.split("`lorpman train ")[1].split("`")[0].split()
    value = text.rsplit("prints the test hypervolume ", 1)[1].strip().rstrip(".")
    code, out, _ = run(capsys, "train", *command, "--out", tmp_path / "run", "--quiet")
    assert code == 0
    assert f"test hypervolume  {value}" in out


def test_noise_is_told_before_anything_else(noise):
    text = as_markdown(noise[1])
    assert "\n**GENERATED DATA, NO QUALITY CLAIM.**" in text
    assert "benchmarks/generated_files.py cityscapes DIR" in text
    assert "--data DIR`" in text
