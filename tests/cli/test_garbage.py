"""Garbage in every file and setting: exit code 2 or success, no traceback, no changed file.

Hypothesis makes 200 cases for ``make test`` and more than 2,000 for ``make soak``.
"""

import json
import shutil

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from command_line import files
from lorpman.cli.main import main
from lorpman.lab.runs.spec import Spec
from lorpman.training import checkpoint
from soak_size import soaked

KEYS = sorted(Spec.make("toy", "lorpman", 0, {}).settings())

numbers = st.one_of(
    st.integers(),
    st.integers(-(10**400), 10**400),
    st.floats(),
    st.sampled_from([2**31, 2**63, 2**64, 10**21, -1, 0, 1e30, 1e-300]),
)
values = st.recursive(
    st.none() | st.booleans() | numbers | st.text(max_size=20),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=6,
)
# Nothing of a command line can hold a NUL or half of a surrogate pair.
words = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=30)
fragments = st.sampled_from(
    [
        *[
            "2020-13-45",
            "!!int a",
            "9" * 5000,
            "[" * 3000,
            "&a [*a]",
            "*a",
            "!!python/name:os.getcwd",
        ],
        *["!!binary x", "{", "? ", "0x", "1_0", ".inf", ".nan", "1:99:99", "!!timestamp 3", "- -"],
        *[
            "!!set {1}",
            "!!omap [1]",
            "!!float x",
            "=",
            "<<: 1",
            "[1, 2",
            "'",
            "%TAG",
            "\t- a",
            "yes",
        ],
    ]
)
texts = st.one_of(words, fragments, numbers.map(str), values.map(str))


def cases(count):
    health = [HealthCheck.function_scoped_fixture, HealthCheck.too_slow, HealthCheck.data_too_large]
    return settings(max_examples=count, deadline=None, suppress_health_check=health)


def answer(capsys, *arguments):
    """The exit code of a command that must be 0, or 2 with one line."""
    with pytest.raises(SystemExit) as stop:
        main([str(argument) for argument in arguments])
    err = capsys.readouterr().err
    assert stop.value.code in (0, 2), err
    assert "Traceback" not in err
    assert stop.value.code == 0 or (err.startswith("lorpman: ") and err.count("\n") == 1), err
    assert len(err) < 2000
    return stop.value.code


def check_settings(capsys, tmp_path, key, text, more):
    # A directory that holds something: what passes as a setting is refused there.
    (tmp_path / "thesis.txt").write_text("years of work")
    train = ["train", "toy", "--out", tmp_path, "--set", f"{key}={text}", "--set", more]
    assert answer(capsys, *train) == 2
    search = ["tune", "toy", "--trials", "0", "--study", tmp_path / "study"]
    assert answer(capsys, *search, "--search", f"{key}={text}") == 2
    assert answer(capsys, "compare", "toy", "--seeds", text or "x", "--out", tmp_path / "s") == 2
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.txt"]


keys = st.sampled_from(KEYS) | words.filter(lambda word: not word.startswith("-"))
seeds = texts.filter(lambda text: not text.replace(",", "").strip().isdecimal())


@cases(60)
@given(key=keys, text=seeds, more=st.just("rank=1"))
def test_settings(capsys, tmp_path_factory, key, text, more):
    check_settings(capsys, tmp_path_factory.mktemp("set"), key, text, more)


@pytest.mark.soak
@cases(soaked(1000))
@given(key=keys, text=seeds, more=st.sampled_from(["rank=1", "epochs=3"]))
def test_settings_for_long(capsys, tmp_path_factory, key, text, more):
    check_settings(capsys, tmp_path_factory.mktemp("set"), key, text, more)


@st.composite
def damaged(draw, content):
    """What could stand in a file in the place of ``content``."""
    way = draw(st.sampled_from(["bytes", "cut", "flip", "longer", "value"]))
    if way == "bytes":
        return draw(st.binary(max_size=200))
    place = draw(st.integers(0, max(0, len(content) - 1)))
    if way == "cut":
        return content[:place]
    if way == "flip":
        bit = draw(st.integers(0, 7))
        return content[:place] + bytes([content[place] ^ 1 << bit]) + content[place + 1 :]
    if way == "longer":
        return content + draw(st.binary(min_size=1, max_size=20))
    try:
        lines = [json.loads(line) for line in content.splitlines()]
    except ValueError:
        try:
            lines = [json.loads(content)]
        except ValueError:
            return b"[" * draw(st.integers(0, 100_000))
    line = draw(st.integers(0, len(lines) - 1))
    lines[line] = draw(with_another_value(lines[line]))
    return b"".join(json.dumps(each).encode() + b"\n" for each in lines)


@st.composite
def with_another_value(draw, value):
    """``value`` with something else in one place of it, or without that place."""
    if not isinstance(value, dict | list) or not value or draw(st.integers(0, 4)) == 0:
        return draw(values)
    if isinstance(value, list):
        place = draw(st.integers(0, len(value) - 1))
        return [*value[:place], draw(with_another_value(value[place])), *value[place + 1 :]]
    key = draw(st.sampled_from(sorted(value)))
    if draw(st.integers(0, 3)) == 0:
        return {name: inner for name, inner in value.items() if name != key}
    return {**value, key: draw(with_another_value(value[key]))}


PARTS = ["run.json", "front.json", "metrics.jsonl", "checkpoint.safetensors"]


@pytest.fixture(scope="session")
def toy(tmp_path_factory):
    """A run that opens quickly."""
    out = tmp_path_factory.mktemp("garbage") / "toy"
    with pytest.raises(SystemExit) as stop:
        main(["train", "toy", "--epochs", "2", "--quiet", "--out", str(out)])
    assert stop.value.code == 0
    return out


def check_file(capsys, run, part, data):
    content = (run / part).read_bytes()
    before = files(run)
    try:
        (run / part).write_bytes(data.draw(damaged(content)))
        changed = (run / part).read_bytes()
        to = run / "exported.safetensors"
        answer(capsys, "export", run, "--alpha", "0.5,0.5", "--to", to)
        to.unlink(missing_ok=True)
        to.with_name("exported.safetensors.card.json").unlink(missing_ok=True)
        answer(capsys, "report", run, "--to", run / "report.html")
        (run / "report.html").unlink(missing_ok=True)
        resumed = ["train", "toy", "--epochs", "3", "--out", run, "--resume", "--quiet"]
        assert answer(capsys, *resumed) == 2  # it has 2 epochs, or nothing that is one
        assert files(run) == {**before, (run / part).relative_to(run): changed}
    finally:
        (run / part).write_bytes(content)


@pytest.mark.parametrize("part", PARTS)
@cases(35)
@given(data=st.data())
def test_files_of_a_run(capsys, toy, part, data):
    check_file(capsys, toy, part, data)


@pytest.mark.soak
@pytest.mark.parametrize("part", PARTS)
@cases(soaked(260))
@given(data=st.data())
def test_files_of_a_run_for_long(capsys, toy, part, data):
    check_file(capsys, toy, part, data)


tensors = st.builds(
    torch.zeros,
    st.lists(st.integers(0, 3), max_size=3),
    dtype=st.sampled_from([torch.float32, torch.float64, torch.int64, torch.uint8, torch.bool]),
)
# A number of a thousand digits is no part of a safetensors file that can be written.
stored = st.one_of(values, tensors, st.just(())).filter(lambda value: "e+" not in str(value))


@st.composite
def forged(draw, value):
    """``value`` with something else in one place of it, however deep."""
    inside = {dict: dict, list: list, tuple: list}.get(type(value))
    if inside is None or not value or draw(st.integers(0, 5)) == 0:
        return draw(stored)
    changed = inside(value)
    places = list(changed) if inside is dict else range(len(changed))
    place = draw(st.sampled_from(places))
    if draw(st.integers(0, 5)) == 0:
        del changed[place]
    else:
        changed[place] = draw(forged(changed[place]))
    return tuple(changed) if isinstance(value, tuple) else changed


def check_forged(capsys, toy, tmp_path, data):
    """A checkpoint whose checksum is right and whose content is not, and training from it."""
    run = tmp_path / "run"
    shutil.copytree(toy, run)
    path = run / "checkpoint.safetensors"
    # The one after the first epoch of two, so that there is something left to train.
    state = checkpoint.load(checkpoint.previous(path))
    checkpoint.previous(path).unlink()
    path.unlink()
    key = data.draw(st.sampled_from(sorted(state)))
    checkpoint.save({**state, key: data.draw(forged(state[key]))}, tmp_path / "f.safetensors")
    (tmp_path / "f.safetensors").rename(path)
    if key == "model":  # the rest is for training alone
        answer(capsys, "export", run, "--alpha", "0.5,0.5", "--to", tmp_path / "a.safetensors")
        answer(capsys, "report", run, "--to", tmp_path / "report.html")
    answer(capsys, "train", "toy", "--epochs", "2", "--out", run, "--resume", "--quiet")


@cases(30)
@given(data=st.data())
def test_forged_checkpoints(capsys, toy, tmp_path_factory, data):
    check_forged(capsys, toy, tmp_path_factory.mktemp("forged"), data)


@pytest.mark.soak
@cases(soaked(300))
@given(data=st.data())
def test_forged_checkpoints_for_long(capsys, toy, tmp_path_factory, data):
    check_forged(capsys, toy, tmp_path_factory.mktemp("forged"), data)
