import json
from pathlib import Path

import pytest

from lorpman import UsageError
from lorpman._files import owning
from lorpman.lab.runs.directory import (
    check_free,
    claimed,
    data_root,
    epochs_done,
    made_directory,
    open_run,
    read_spec,
)
from lorpman.lab.runs.spec import Spec
from lorpman.training import checkpoint
from lorpman.training.devices import Engine
from small_training import exactly, same_weights


@pytest.fixture
def spec():
    return Spec.make("toy", "lorpman", 0, {"epochs": 3})


@pytest.fixture
def out(tmp_path, spec):
    """A directory that the run has claimed, without a checkpoint."""
    with claimed(tmp_path, spec, spec.build(), Engine()):
        return tmp_path


def _edit(out, **changes):
    content = {**json.loads((out / "run.json").read_text()), **changes}
    content = {key: value for key, value in content.items() if value != "absent"}
    (out / "run.json").write_text(json.dumps(content))


def test_data_is_where_it_is_said_to_be(monkeypatch):
    monkeypatch.setenv("LORPMAN_DATA", "/variable")
    monkeypatch.setenv("XDG_CACHE_HOME", "/cache")
    assert data_root(Path("/option")) == Path("/option")
    assert data_root(None) == Path("/variable")
    monkeypatch.delenv("LORPMAN_DATA")
    assert data_root(None) == Path("/cache/lorpman/data")
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert data_root(None) == Path.home() / ".cache" / "lorpman" / "data"


def test_a_claimed_directory_describes_its_run(out, spec):
    described = json.loads((out / "run.json").read_text())
    assert list(described) == [
        *["format", "problem", "method", "seed", "settings", "scale", "recipe", "source"],
        *["parameters", "versions", "engine", "threads"],
    ]
    assert described["format"] == 1
    assert described["parameters"] == spec.build().num_parameters()
    assert described["engine"] == Engine().described()
    assert {"python", "lorpman", "torch"} < set(described["versions"])
    assert read_spec(out).identity() == spec.identity()


def test_a_claim_keeps_the_description_and_removes_leftovers(out, spec):
    before = (out / "run.json").read_text()
    (out / ".tmpa1b2c3").write_text("half a checkpoint")
    (out / ".tmpfiles").write_text("of somebody else")
    with claimed(out, Spec.make("toy", "lorpman", 9, {}), spec.build(), Engine()):
        pass
    assert (out / "run.json").read_text() == before
    assert not (out / ".tmpa1b2c3").exists()


def test_a_run_opens_with_its_trained_weights(out, spec):
    assert epochs_done(out) == 0
    model = spec.build()
    for parameter in model.parameters():
        parameter.data += 1
    content = {"model": dict(model.state_dict()), "epochs_done": 2}
    with owning(out):
        checkpoint.save(content, out / "checkpoint.safetensors")
    opened, trained = open_run(out)
    assert opened.identity() == spec.identity()
    assert same_weights(trained, model)
    assert not trained.training
    assert epochs_done(out) == 2


def test_what_is_no_description_is_named(out):
    _edit(out, seed="0")
    with pytest.raises(UsageError, match=r"run.json is not a run description: seed: .* found '0'"):
        read_spec(out)


def test_a_run_of_another_version_is_named(out):
    _edit(out, format=2)
    message = f"{out} was written by another version: expected format 1, found 2"
    with pytest.raises(UsageError, match=exactly(message)):
        read_spec(out)


def test_what_is_no_directory_is_named(tmp_path):
    missing = tmp_path / "none"
    message = f"no run directory at {missing}; train one with: lorpman train PROBLEM"
    with pytest.raises(UsageError, match=exactly(message)):
        read_spec(missing)


@pytest.mark.parametrize(("scale", "read"), [("laptop", "laptop"), ("absent", "paper")])
def test_a_run_keeps_its_scale(tmp_path, scale, read):
    spec = Spec.make("cifar100", "lorpman", 0, {}, "laptop")
    facts = {"format": 1, **spec.described(), "scale": scale}
    (tmp_path / "run.json").write_text(json.dumps(facts))
    _edit(tmp_path)
    assert read_spec(tmp_path).scale == read


@pytest.mark.parametrize("resume", [True, False])
def test_an_empty_or_missing_directory_is_free(tmp_path, spec, resume):
    check_free(tmp_path, spec, Engine(), resume)
    check_free(tmp_path / "none", spec, Engine(), resume)


def test_a_directory_of_something_else_is_not_free(tmp_path, spec):
    (tmp_path / "thesis.tex").write_text("")
    message = f"{tmp_path} is not empty and holds no run; choose another --out"
    with pytest.raises(UsageError, match=exactly(message)):
        check_free(tmp_path, spec, Engine(), True)


def test_a_run_is_continued_only_if_asked(out, spec):
    check_free(out, spec, Engine(), True)
    message = f"{out} already holds a run; pass --resume to continue it, or another --out"
    with pytest.raises(UsageError, match=exactly(message)):
        check_free(out, spec, Engine(), False)


def test_a_run_with_other_settings_is_not_continued(out):
    message = (
        f"{out} holds a run with other settings; resume it with the settings in {out / 'run.json'}"
    )
    with pytest.raises(UsageError, match=exactly(message)):
        check_free(out, Spec.make("toy", "lorpman", 0, {"epochs": 4}), Engine(), True)


def test_a_run_on_other_devices_is_not_continued(out, spec):
    engine = Engine(precision="bf16-mixed")
    message = f"{out} was trained with other devices or precision: {Engine().described()}"
    with pytest.raises(UsageError, match=exactly(message)):
        check_free(out, spec, engine, True)
    # From before there was a setting: it has the default, and without any it may be continued.
    _edit(out, engine={"devices": 1})
    check_free(out, spec, Engine(), True)
    _edit(out, engine="absent")
    check_free(out, spec, engine, True)


def test_a_directory_that_cannot_be_made_is_named(tmp_path):
    for _ in range(2):
        with made_directory(tmp_path / "a" / "b"):
            assert (tmp_path / "a" / "b").is_dir()
            (tmp_path / "a" / "b" / "run.json").touch()
    assert (tmp_path / "a" / "b").is_dir()
    (tmp_path / "file").write_text("")
    place = tmp_path / "file" / "run"
    message = exactly(f"cannot write to {place}: Not a directory")
    with pytest.raises(UsageError, match=message), made_directory(place):
        pytest.fail("there is no such directory")


def test_directories_that_stay_empty_go_again(tmp_path):
    (tmp_path / "a").mkdir()
    with made_directory(tmp_path / "a" / "b" / "c"):
        pass
    assert list(tmp_path.rglob("*")) == [tmp_path / "a"]


@pytest.mark.parametrize("saved", [False, True])
def test_a_new_run_that_fails_before_its_first_checkpoint_leaves_nothing(tmp_path, spec, saved):
    def fail():
        with claimed(tmp_path, spec, spec.build(), Engine()):
            (tmp_path / "metrics.jsonl").write_text("")
            (tmp_path / "csv").mkdir()
            (tmp_path / "csv" / "metrics.csv").write_text("")
            if saved:
                checkpoint.save({"epochs_done": 1}, tmp_path / "checkpoint.safetensors")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fail()
    assert any(tmp_path.iterdir()) == saved


def test_a_resumed_run_that_fails_is_kept(out, spec):
    with pytest.raises(KeyboardInterrupt), claimed(out, spec, spec.build(), Engine()):
        raise KeyboardInterrupt
    assert (out / "run.json").exists()
