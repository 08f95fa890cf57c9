import json

import pytest

from lorpman import UsageError
from lorpman.lab.runs.run_file import read_run_file

GOOD = {"format": 1, "problem": "toy", "method": "lorpman", "seed": 3, "settings": {"epochs": 2}}


def _read(folder, content):
    text = content if isinstance(content, str) else json.dumps(content)
    (folder / "run.json").write_text(text)
    return read_run_file(folder)


def test_what_an_old_file_lacks_has_its_default(tmp_path):
    described = _read(tmp_path, GOOD)
    assert described.settings == {"epochs": 2}
    assert (described.scale, described.recipe, described.engine) == ("paper", None, None)
    engine = _read(tmp_path, {**GOOD, "engine": {"devices": 2}}).engine
    assert (engine.devices, engine.precision) == (2, "32-true")


def test_further_keys_are_kept(tmp_path):
    assert _read(tmp_path, {**GOOD, "later": [1]}).model_dump()["later"] == [1]


@pytest.mark.parametrize(
    ("key", "value"),
    [
        *[("seed", seed) for seed in (-1, 2**63 - 0.5, "0", True, None)],
        *[("problem", name) for name in (None, 3, ["toy"])],
        ("method", {}),
        ("settings", []),
        ("settings", None),
        ("scale", "huge"),
        ("recipe", 1),
        ("parameters", "many"),
        ("parameters", -1),
        ("versions", []),
        ("versions", {"torch": 2}),
        ("engine", []),
        ("engine", {"devices": "two"}),
        ("engine", {"devices": 0}),
        ("threads", None),
    ],
)
def test_a_value_that_no_run_has_is_named(tmp_path, key, value):
    with pytest.raises(UsageError, match=f"is not a run description: {key}") as refused:
        _read(tmp_path, {**GOOD, key: value})
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("key", ["problem", "method", "seed", "settings", "format"])
def test_what_every_run_has_is_asked_for(tmp_path, key):
    with pytest.raises(UsageError, match=f"is not a run description: {key}"):
        _read(tmp_path, {name: value for name, value in GOOD.items() if name != key})


@pytest.mark.parametrize("text", ["", "[]", "3", "[" * 100_000, '{"format": 1e999}', "9" * 5000])
def test_another_file_is_refused(tmp_path, text):
    with pytest.raises(UsageError, match=r"run.json"):
        _read(tmp_path, text)


def test_another_version_is_told(tmp_path):
    with pytest.raises(UsageError, match="another version: expected format 1, found 2"):
        _read(tmp_path, {**GOOD, "format": 2})
