"""Files that are old or new, never half, and locks that end with their process."""

import errno
import os
import subprocess
import sys

import pytest

from lorpman import UsageError
from lorpman._files import (
    Kind,
    as_path,
    check_target,
    json_with,
    locked_folder,
    near_start,
    owning,
    parse_json,
    read_json,
    replacing,
    temporaries,
    try_lock,
    write_json,
)

LIST = Kind("a list", near_start(b"[", within=1), (".json", ".png"))

HOLDER = """
import sys, time
from pathlib import Path
from lorpman._files import locked_folder

with locked_folder(Path(sys.argv[1]), "taken"):
    print("held", flush=True)
    time.sleep(60)
"""


def test_a_write_that_fails_leaves_the_old_file_alone(tmp_path):
    path = tmp_path / "file.json"
    write_json(path, [1], LIST)

    class Stop(Exception):
        pass

    def write():
        with replacing(path, LIST) as temporary:
            temporary.write_text("half")
            raise Stop

    with pytest.raises(Stop):
        write()
    assert read_json(path, "file") == [1]
    assert list(tmp_path.iterdir()) == [path]


def test_a_temporary_file_is_found_again(tmp_path):
    path = tmp_path / "front.png"
    with replacing(path, LIST) as temporary:
        temporary.write_bytes(b"half")
        assert temporaries(path) == [temporary]
        (tmp_path / ".front.mine.png").write_bytes(b"of somebody else")
        assert temporaries(path) == [temporary]
        temporary.write_bytes(b"[]")
    assert temporaries(path) == []


def _refusal(path, kind=LIST):
    with pytest.raises(UsageError) as refused:
        check_target(path, kind)
    return str(refused.value)


def test_new_empty_and_own_files_may_be_written(tmp_path):
    check_target(tmp_path / "new.json", LIST)
    (tmp_path / "empty.json").touch()
    check_target(tmp_path / "empty.json", LIST)
    write_json(tmp_path / "own.json", [1], LIST)
    write_json(tmp_path / "own.json", [2], LIST)
    assert read_json(tmp_path / "own.json", "list") == [2]


def test_what_is_not_ours_is_never_written_over(tmp_path):
    (tmp_path / "folder.json").mkdir()
    (tmp_path / "thesis.json").write_text("years of work")
    (tmp_path / "link.json").symlink_to(tmp_path / "nowhere")
    os.mkfifo(tmp_path / "pipe.json")
    assert "it is a directory" in _refusal(tmp_path / "folder.json")
    assert "is not a list of lorpman" in _refusal(tmp_path / "thesis.json")
    assert "not a plain file" in _refusal(tmp_path / "link.json")
    assert "not a plain file" in _refusal(tmp_path / "pipe.json")
    assert "no folder" in _refusal(tmp_path / "none" / "a.json")
    assert "no folder" in _refusal(tmp_path / "thesis.json" / "a.json")
    assert "ends in .json, .png" in _refusal(tmp_path / "a.txt")
    assert "cannot write" in _refusal(tmp_path / ("long" * 100) / "a.json")


PARTS = ["run.json", "metrics.jsonl", "checkpoint.safetensors", "checkpoint.previous.safetensors"]
PARTS += ["front.json", "front.png", "front-train.json"]


@pytest.mark.parametrize("name", PARTS)
def test_parts_of_a_run_are_written_by_those_who_own_it(tmp_path, name):
    anything = Kind("anything", lambda path: True)
    check_target(tmp_path / name, anything)
    (tmp_path / "run.json").write_text("{}")
    assert "a part of the run" in _refusal(tmp_path / name, anything)
    check_target(tmp_path / "report.html", anything)
    with owning(tmp_path), owning(tmp_path):
        # A damaged one, too: by its place it is the run's own.
        (tmp_path / name).write_text("damaged")
        check_target(tmp_path / name, LIST)
    assert "a part of the run" in _refusal(tmp_path / name, anything)


def test_a_file_that_cannot_be_read_is_not_ours(tmp_path):
    (tmp_path / "a.json").write_text("{" * 10_000)
    assert "is not a table" in _refusal(tmp_path / "a.json", Kind("a table", json_with("rows")))
    (tmp_path / "a.json").write_text('{"rows": []}')
    check_target(tmp_path / "a.json", Kind("a table", json_with("rows")))


@pytest.mark.parametrize(
    "text",
    [
        *["", "{", "[" * 100_000, "[" * 65 + "]" * 65, '"\n"', "\ud800"],
        *["1e400", "-Infinity", "NaN", "9" * 5000, "1" * 20, str(2**63)],
    ],
    ids=range(12),
)
def test_json_from_outside_has_limits(text):
    with pytest.raises(UsageError) as refused:
        parse_json(text)
    assert "\n" not in str(refused.value)
    assert len(str(refused.value)) < 200


def test_json_within_the_limits_is_read():
    assert parse_json("[" * 64 + "]" * 64)
    assert parse_json(f'{{"a": [{2**63 - 1}, {-(2**63)}, 1e308, null]}}')["a"][0] == 2**63 - 1


def test_json_that_is_too_long_or_no_text_is_refused(tmp_path):
    path = tmp_path / "a.json"
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(UsageError, match=r"cannot be read: no valid JSON"):
        read_json(path, "front")
    with path.open("wb") as file:
        file.truncate(2**30)  # a hole, which takes no room
    with pytest.raises(UsageError, match="longer than 256 MiB"):
        read_json(path, "front")


def test_json_that_is_not_there_or_damaged_is_named(tmp_path):
    with pytest.raises(UsageError, match="no front at"):
        read_json(tmp_path / "front.json", "front")
    (tmp_path / "front.json").write_text("{")
    with pytest.raises(UsageError, match="cannot be read"):
        read_json(tmp_path / "front.json", "front")


def test_a_folder_is_held_by_one_and_is_free_afterwards(tmp_path):
    with (
        locked_folder(tmp_path, "first"),
        pytest.raises(UsageError, match="second"),
        locked_folder(tmp_path, "second"),
    ):
        pytest.fail("held twice")
    with locked_folder(tmp_path, "third"):
        assert list(tmp_path.iterdir()) == []


def test_a_lock_ends_with_its_process(tmp_path):
    command = [sys.executable, "-c", HOLDER, str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == "held\n"
        with pytest.raises(UsageError, match="in use"), locked_folder(tmp_path, "in use"):
            pytest.fail("held twice")
        process.kill()
    with locked_folder(tmp_path, "still in use"):
        pass


@pytest.mark.parametrize("code", [errno.ENOLCK, errno.ENOTSUP, errno.EINVAL, errno.ENOSYS])
def test_where_there_are_no_locks_nobody_is_refused(tmp_path, monkeypatch, code):
    def no_locks(*args):
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr("fcntl.flock", no_locks)
    with locked_folder(tmp_path, "first"), locked_folder(tmp_path, "second"):
        pass


def test_other_errors_of_a_lock_are_told():
    with pytest.raises(OSError, match="Bad file descriptor"):
        try_lock(10**6)


@pytest.mark.parametrize("value", [None, 3, b"x", "", "a\0b", "\ud800", ["x"]])
def test_what_is_no_path_is_named(value):
    with pytest.raises(UsageError, match=r"^out must be a path, got "):
        as_path("out", value)


def test_a_path_is_taken_as_it_is(tmp_path):
    assert as_path("out", str(tmp_path)) == as_path("out", tmp_path) == tmp_path
