import json
import shutil

import pytest

from lorpman import Front, UsageError, grid
from lorpman.lab.compare import compare
from lorpman.lab.runs.spec import Spec
from lorpman.lab.runs.train import train

QUICK = {"epochs": 1, "batch_size": 1000, "watch_samples": 0}

TOO_LARGE = {"block": 10**9, "hidden": 10**6}


def _compare(out, methods=("lorpman", "pamal"), seeds=(0, 1), isolate=False, **options):
    overrides = {**QUICK, **options.pop("overrides", {})}
    return compare(
        "multidigits", methods, seeds, out, out, isolate=isolate, overrides=overrides, **options
    )


@pytest.fixture(scope="module")
def done(tmp_path_factory):
    out = tmp_path_factory.mktemp("compare")
    told = []
    return out, _compare(out, tell=told.append), told


def test_the_table_has_every_method_with_its_seeds(done):
    out, comparison, told = done
    assert [row.method for row in comparison.rows] == ["lorpman", "pamal"]
    for row in comparison.rows:
        assert row.seeds == (0, 1)
        volumes = [float(Front.load(out / run / "front.json").hypervolume()) for run in row.runs]
        assert list(row.hypervolumes) == pytest.approx(volumes)
        assert row.mean == pytest.approx(sum(volumes) / 2)
        assert row.deviation == pytest.approx(abs(volumes[0] - volumes[1]) / 2**0.5)
        assert row.seconds_per_epoch > 0
        assert row.peak_memory > 50 * 2**20
    parameters = {row.method: row.parameters for row in comparison.rows}
    assert parameters["pamal"] == 2 * 2_918
    assert sum("begins" in line for line in told) == 4
    assert "4 of 4 done" in told[-1]


def test_all_fronts_are_on_the_same_preferences_corners_included(done):
    out, comparison, _ = done
    for row in comparison.rows:
        for run in row.runs:
            assert Front.load(out / run / "front.json").alphas.tolist() == grid(2).tolist()


def test_table_and_picture_are_written(done):
    out, comparison, _ = done
    text = (out / "comparison.md").read_text()
    assert text == comparison.markdown()
    mean = float(text.splitlines()[2].split("|")[2].split("±")[0])
    assert mean == pytest.approx(comparison.rows[0].mean, rel=1e-3)
    assert "corners included" in text
    written = json.loads((out / "comparison.json").read_text())
    assert written["rows"][1]["mean"] == comparison.rows[1].mean
    assert (out / "comparison.png").read_bytes().startswith(b"\x89PNG")


def test_what_is_there_is_not_trained_again(done):
    out, comparison, _ = done
    told = []
    again = _compare(out, tell=told.append)
    assert told == []
    assert again == comparison


def test_other_settings_are_another_run(done, tmp_path):
    out = shutil.copytree(done[0], tmp_path / "out")
    _compare(out, ("pamal",), (0,), overrides={"learning_rate": 0.01})
    assert {path.name for path in out.glob("pamal-0*")} == {"pamal-0", "pamal-0-2"}
    row = _compare(out, ("pamal",), (0,)).rows[0]
    assert row.runs == ("pamal-0",)
    assert row.deviation is None


def test_an_interrupted_run_goes_on_where_it_was(done, tmp_path):
    overrides = {**QUICK, "epochs": 2}
    whole = _compare(tmp_path / "whole", ("pamal",), (0,), overrides=overrides)
    cut = tmp_path / "cut" / "pamal-0"

    class Stop(Exception):
        pass

    def stop(*args, **kwargs):
        raise Stop

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("lorpman.lab.runs.train.evaluate", stop)
        with pytest.raises(Stop):
            train(Spec.make("multidigits", "pamal", 0, overrides), cut, cut, progress=False)
    assert not (cut / "front.json").exists()
    with pytest.MonkeyPatch.context() as patch:
        # Both epochs are done: nothing may be trained again.
        patch.setattr("lorpman.training.fit.train_step", stop)
        resumed = _compare(tmp_path / "cut", ("pamal",), (0,), overrides=overrides)
    assert resumed.rows[0].hypervolumes == whole.rows[0].hypervolumes


def test_a_front_of_an_unfinished_run_does_not_pass_for_its_end(tmp_path):
    # A schedule that does not depend on the number of epochs: the half is a half of the whole.
    overrides = {**QUICK, "epochs": 2, "scheduler": "constant"}
    told = []
    out = tmp_path / "out"
    whole = _compare(out, ("pamal",), (0,), overrides=overrides)
    spec = Spec.make("multidigits", "pamal", 0, {**overrides, "epochs": 1})
    train(spec, tmp_path / "half", tmp_path, progress=False)
    for name in ("checkpoint.safetensors", "front.json", "metrics.jsonl"):
        shutil.copy(tmp_path / "half" / name, out / "pamal-0" / name)
    (out / "pamal-0" / "checkpoint.previous.safetensors").unlink()
    again = _compare(out, ("pamal",), (0,), overrides=overrides, tell=told.append)
    assert sum("begins" in line for line in told) == 1
    assert again.rows[0].hypervolumes == whole.rows[0].hypervolumes


def test_a_setting_goes_to_the_methods_that_have_it(tmp_path):
    _compare(tmp_path, ("lorpman", "cosmos"), (0,), overrides={"rank": 1, "lambda_c": 2.0})
    settings = {
        method: json.loads((tmp_path / f"{method}-0" / "run.json").read_text())["settings"]
        for method in ("lorpman", "cosmos")
    }
    assert settings["lorpman"]["rank"] == 1
    assert settings["cosmos"]["lambda_c"] == 2.0
    assert "rank" not in settings["cosmos"]


def test_preferences_are_spread_for_the_methods_that_draw_them(tmp_path):
    _compare(tmp_path, ("lorpman", "phn-hvi"), (0,), overrides={"sampling": "stratified"})
    described = [json.loads(path.read_text()) for path in sorted(tmp_path.glob("*/run.json"))]
    sampling = {one["method"]: one["settings"]["sampling"] for one in described}
    assert sampling == {"lorpman": "stratified", "phn-hvi": "dirichlet"}
    with pytest.raises(UsageError, match="phn-hvi draws no preferences by sampling"):
        _compare(tmp_path, ("phn-hvi", "pmtl"), (0,), overrides={"sampling": "stratified"})


def test_one_failure_does_not_stop_the_others(tmp_path):
    comparison = _compare(tmp_path, ("lorpman", "chunked-phn"), (0,), overrides=TOO_LARGE)
    assert [row.method for row in comparison.rows] == ["lorpman"]
    assert "to train with Adam" in comparison.failures["chunked-phn-0"]
    assert "chunked-phn-0: a hypernetwork" in comparison.markdown()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"methods": ("lorpman", "pamall")}, "did you mean 'pamal'"),
        ({"methods": ()}, "at least one method"),
        ({"overrides": {"rnk": 2}}, "did you mean 'rank'"),
        ({"overrides": {"rank": 0}}, "setting rank"),
        ({"methods": ("chunked-phn",), "overrides": TOO_LARGE}, "of its own"),
    ],
)
def test_bad_input_is_refused_before_anything_is_trained(tmp_path, arguments, message):
    with pytest.raises(UsageError, match=message):
        _compare(tmp_path, **arguments)
    assert list(tmp_path.iterdir()) == []
