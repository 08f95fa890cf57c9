"""Files that are old or new, never half, and locks that end with their process."""

import errno
import os
import subprocess
import sys

import pytest

from lorpman import UsageError
from lorpman._files import locked_folder, read_json, replacing, temporaries, try_lock, write_json

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
    write_json(path, [1])

    class Stop(Exception):
        pass

    def write():
        with replacing(path) as temporary:
            temporary.write_text("half")
            raise Stop

    with pytest.raises(Stop):
        write()
    assert read_json(path, "file") == [1]
    assert list(tmp_path.iterdir()) == [path]


def test_a_temporary_file_is_found_again(tmp_path):
    path = tmp_path / "front.png"
    with replacing(path) as temporary:
        temporary.write_bytes(b"half")
        assert temporaries(path) == [temporary]
    assert temporaries(path) == []


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
