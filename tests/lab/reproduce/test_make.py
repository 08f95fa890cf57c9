"""Training what is missing, sharing what is there, and what is written."""

import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from command_line import refused, run
from lorpman import Front, LowRank, UsageError
from lorpman.lab.reproduce.drawings import draw_sweep
from lorpman.lab.reproduce.make import reproduce, write
from lorpman.lab.reproduce.measures import CORRELATION, HYPERVOLUME, MEASURED, chosen, correlation
from lorpman.lab.reproduce.registry import REPRODUCTIONS
from lorpman.lab.reproduce.reproduction import Line, Plan, Reported, Reproduction
from lorpman.lab.reproduce.requirements import GENERATED, data_state, describe
from small_files import write_cityscapes, write_utkface

RESULTS = Path(__file__).parents[3] / "results"
QUICK = {"epochs": 1, "batch_size": 1000, "watch_samples": 0, "freeze_epoch": None}
SMALL = Reproduction(
    "small-ablation",
    "Table: two ranks",
    (
        Line("rank 1", "lorpman", None, {**QUICK, "rank": 1}, {"hypervolume": Reported(0.5, 0.01)}),
        Line("rank 2", "lorpman", None, {**QUICK, "rank": 2}, {}),
        Line("rank 99", "lorpman", {"rank": 99}, None, {"hypervolume": Reported(0.6)}, 3e6),
    ),
    (HYPERVOLUME, CORRELATION),
    draw_sweep,
    Plan("utkface", (0, 1)),
    Plan("multidigits", (0, 1), "much smaller"),
)


def _make(runs, row=SMALL, **options):
    return reproduce(row, "laptop", runs, runs, isolate=False, **options)


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    folder = tmp_path_factory.mktemp("reproduce")
    found = _make(folder / "runs")
    write(found, folder / "out")
    return folder, found


def test_every_line_has_its_runs_and_the_rest_says_why_not(made):
    folder, found = made
    rows = {row.line.label: row for row in found.rows}
    for label in ("rank 1", "rank 2"):
        volumes = [float(one.front.hypervolume()) for one in rows[label].evidence]
        assert [one.spec.seed for one in rows[label].evidence] == [0, 1]
        assert rows[label].values["hypervolume"] == tuple(volumes)
        assert rows[label].state == ""
    assert rows["rank 99"].state == "not at this scale"
    assert {run.name for run in (folder / "runs" / "multidigits").iterdir()} == {
        one.name for one in SMALL.needed("laptop", (0, 1))
    }


def test_the_table_shows_ours_beside_the_papers_and_how_to_redo_it(made):
    folder, found = made
    text = (folder / "out" / "small-ablation.md").read_text()
    lines = text.splitlines()
    assert lines[0].split(" | ")[:3] == ["| method", "hypervolume, ours", "paper"]
    first = [cell.strip() for cell in lines[2].split("|")[1:-1]]
    mean, deviation = map(float, first[1].split("±"))
    values = torch.tensor(found.rows[0].values["hypervolume"])
    assert mean == pytest.approx(values.mean().item(), abs=1e-4)
    assert deviation == pytest.approx(values.std().item(), abs=1e-4)
    assert first[2] == "0.500 ± 0.01"
    last = [cell.strip() for cell in lines[4].split("|")[1:-1]]
    assert last == ["rank 99", "not at this scale", "0.600", "not at this scale", "", "", "3.0M"]
    for said in ("laptop scale", "much smaller", "not comparable", "seeds 0, 1"):
        assert said in text
    assert "`lorpman reproduce small-ablation --scale laptop`" in text
    assert "`lorpman train multidigits --seed" in text


def test_the_json_holds_all_fronts(made):
    folder, found = made
    written = json.loads((folder / "out" / "small-ablation.json").read_text())
    for row, wanted in zip(written["rows"], found.rows, strict=True):
        assert len(row["runs"]) == len(wanted.evidence)
        for one, evidence in zip(row["runs"], wanted.evidence, strict=True):
            assert one["front"]["scores"] == evidence.front.scores.tolist()
    assert (folder / "out" / "small-ablation.png").read_bytes().startswith(b"\x89PNG")


def test_the_command_under_the_table_makes_the_same_run(made, tmp_path, capsys):
    text = (made[0] / "out" / "small-ablation.md").read_text()
    command = text.split("`lorpman train ")[1].split("`")[0].split()
    value = text.rsplit("prints the test hypervolume ", 1)[1].strip().rstrip(".")
    code, out, _ = run(capsys, "train", *command, "--out", tmp_path / "run", "--quiet")
    assert code == 0
    assert f"test hypervolume  {value}" in out


def test_what_is_there_is_shared_whatever_it_is_called(made, tmp_path, monkeypatch):
    runs = tmp_path / "runs" / "multidigits"
    shutil.copytree(made[0] / "runs" / "multidigits", runs)
    next(runs.glob("*rank=1*-0")).rename(runs / "lorpman-of-another-table")

    def fail(*arguments, **options):
        raise AssertionError("trained again")

    monkeypatch.setattr("lorpman.lab.reproduce.make.try_training", fail)
    again = _make(tmp_path / "runs")
    assert [row.values for row in again.rows] == [row.values for row in made[1].rows]


def test_runs_without_weights_still_make_the_table(made, tmp_path):
    runs = tmp_path / "runs"
    shutil.copytree(made[0] / "runs", runs)
    for weights in runs.rglob("*.safetensors"):
        weights.unlink()
    again = _make(runs, training=False)
    assert [row.values for row in again.rows] == [row.values for row in made[1].rows]
    # The correlation needed weights, and was remembered.
    assert any("correlation" in path.read_text() for path in runs.rglob(MEASURED))


def test_an_unfinished_run_without_weights_does_not_count(made, tmp_path):
    runs = tmp_path / "runs"
    shutil.copytree(made[0] / "runs", runs)
    cut = next(runs.glob("multidigits/*rank=1*-0"))
    (cut / "metrics.jsonl").write_text("")
    for weights in cut.glob("*.safetensors"):
        weights.unlink()
    again = _make(runs, training=False)
    assert [one.spec.seed for one in again.rows[0].evidence] == [1]
    text = write(again, tmp_path / "out")[0].read_text()
    assert "(seeds 1 only)" in text


def test_what_was_not_run_is_said_to_be_missing(made, tmp_path):
    runs = tmp_path / "runs"
    shutil.copytree(made[0] / "runs", runs)
    for run_ in runs.glob("multidigits/*rank=2*"):
        shutil.rmtree(run_)
    again = _make(runs, training=False)
    assert again.rows[1].state == "not run"
    assert "| rank 2 | not run |" in write(again, tmp_path / "out")[0].read_text()


def test_a_failure_is_told_under_the_table(made, tmp_path):
    bad = Line("diverges", "lorpman", None, {**QUICK, "learning_rate": 1e30, "optimizer": "sgd"})
    found = _make(made[0] / "runs", replace(SMALL, lines=(*SMALL.lines, bad)), seeds=[0])
    assert found.rows[3].state == "not run"
    assert "failed: " in write(found, tmp_path)[0].read_text()


def test_correlation_is_the_mean_cosine_of_the_products():
    torch.manual_seed(0)
    model = LowRank(torch.nn.Linear(4, 3), 3, rank=2)
    (delta,) = model.low_rank_deltas().values()
    assert correlation(model) == 0.0
    torch.nn.init.normal_(delta.B)
    products = [(delta.B[:, i] @ delta.A[i]).flatten() for i in range(3)]
    pairs = [(0, 1), (0, 2), (1, 2)]
    cosines = [torch.cosine_similarity(products[i], products[j], dim=0) for i, j in pairs]
    assert correlation(model) == pytest.approx(torch.stack(cosines).mean().item(), abs=1e-6)


def test_a_front_is_shown_by_its_knee_and_single_tasks_by_their_own_network():
    scores = torch.tensor([[0.9, 0.1], [0.8, 0.8], [0.1, 0.9]])
    alphas = torch.tensor([[1.0, 0.0], [0.5, 0.5], [0.0, 1.0]])
    front = Front(alphas, scores, ("a", "b"), (True, True), (0.0, 0.0))
    assert chosen(front, single=False).tolist() == [1, 1]
    assert chosen(front, single=True).tolist() == [0, 2]


@pytest.fixture(scope="module")
def noise(tmp_path_factory):
    """Generated files and one cheap table from them."""
    root = tmp_path_factory.mktemp("noise")
    write_cityscapes(root, 6, 2, 32, 64)
    (root / "cityscapes" / GENERATED).write_text("noise")
    table = REPRODUCTIONS["cityscapes-table"]
    settings = {"validation_scenes": 2, "width": 1}
    kept = [line for line in table.lines if line.method in ("stl", "lorpman")]
    row = replace(table, lines=tuple(replace(line, laptop=settings) for line in kept))
    return root, reproduce(row, "laptop", root / "runs", root, isolate=False)


def test_noise_never_passes_for_data(noise, tmp_path):
    root, found = noise
    assert found.generated
    assert not found.comparable
    assert (root / "runs" / "cityscapes-generated").is_dir()
    epochs = {one.spec.training.epochs for row in found.rows for one in row.evidence}
    assert epochs == {2}
    assert found.rows[1].evidence[0].spec.training.freeze_epoch == 1
    text = write(found, tmp_path)[0].read_text()
    assert "GENERATED DATA, NO QUALITY CLAIM" in text
    assert "benchmarks/generated_files.py cityscapes DIR" in text
    (root / "cityscapes" / GENERATED).unlink()
    with pytest.raises(UsageError, match="holds no finished run"):
        reproduce(found.reproduction, "laptop", root / "runs", root, training=False)


def test_scenes_have_their_four_metrics(noise):
    for row in noise[1].rows:
        values = {key: value for key, (value,) in row.values.items()}
        front = row.evidence[0].front
        assert set(values) == {"miou", "pixels", "absolute", "relative"}
        assert 0 <= values["miou"] <= values["pixels"] <= 100
        assert any(values["absolute"] == pytest.approx(e) for e in front.scores[:, 1].tolist())
        assert values["relative"] > values["absolute"] > 0


def test_the_list_says_what_is_needed_and_what_is_here(tmp_path, capsys):
    code, out, _ = run(capsys, "reproduce", "--list", "--data", tmp_path)
    assert code == 0
    assert all(name in out for name in REPRODUCTIONS)
    assert "utkface (data missing)" in out
    assert "toy (data none needed); 3 seeds; about 2 min; 0.5 GiB" in out
    write_utkface(tmp_path, 3)
    assert "laptop: utkface (data here)" in describe(REPRODUCTIONS["utkface-table"], tmp_path)
    (tmp_path / "utkface" / GENERATED).write_text("noise")
    assert data_state("utkface", tmp_path) == "generated files"


def test_bad_input_is_one_line(tmp_path, capsys):
    options = ("--data", tmp_path, "--runs", tmp_path / "runs", "--out", tmp_path / "out")
    wrong = refused(capsys, "reproduce", "multimnist-tabel", *options)
    assert "did you mean 'multimnist-table'" in wrong
    assert all(name in wrong for name in REPRODUCTIONS)
    assert "which table or figure?" in refused(capsys, "reproduce", *options)
    assert "lorpman data utkface" in refused(capsys, "reproduce", "utkface-table", *options)
    assert "--seeds expects" in refused(capsys, "reproduce", "toy-figure", "--seeds", "a", *options)
    nothing = refused(capsys, "reproduce", "toy-figure", "--no-training", *options)
    assert "holds no finished run" in nothing
    assert not list(tmp_path.iterdir())


def test_the_toy_figure_from_the_command_line(tmp_path, capsys):
    code, out, _ = run(capsys, "reproduce", "toy-figure", "--runs", RESULTS, "--out", tmp_path)
    assert code == 0
    assert {path.name for path in tmp_path.iterdir()} == {
        f"toy-figure.{suffix}" for suffix in ("md", "json", "png")
    }
    made = json.loads((tmp_path / "toy-figure.json").read_text())
    assert made["rows"][0]["ours"]["distance"]["mean"] < 0.1
    assert f"picture  {tmp_path / 'toy-figure.png'}" in out
