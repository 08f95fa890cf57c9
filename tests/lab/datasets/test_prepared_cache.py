"""The cache: round trips, rebuilds what is stale or broken, and survives two writers."""

import subprocess
import sys
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from lorpman.errors import UsageError
from lorpman.lab.datasets.prepared_cache import (
    Preparation,
    Tensors,
    cached,
    cached_in_place,
    content_checksum,
    listing_checksum,
)


class Builder:
    """Counts how often it builds."""

    def __init__(self) -> None:
        self.calls = 0

    def __call__(self) -> Tensors:
        self.calls += 1
        return {
            "bytes": torch.arange(7, dtype=torch.uint8),
            "long": torch.arange(5),
            "float": torch.arange(6.0).reshape(2, 3),
        }


def equal(a: Tensors, b: Tensors) -> bool:
    return a.keys() == b.keys() and all(
        a[k].dtype == b[k].dtype and torch.equal(a[k], b[k]) for k in a
    )


def test_round_trip_and_plain_safetensors() -> None:
    build, preparation = Builder(), Preparation("toy", 1, "abc")
    assert equal(cached(preparation, build), build())
    assert equal(cached(preparation, build), build())
    assert build.calls == 3
    assert equal(load_file(preparation.path), build())


@pytest.mark.parametrize(
    "other",
    [
        Preparation("toy", 2, "abc"),
        Preparation("toy", 1, "abd"),
        Preparation("toy", 1, "abc", {"seed": 1}),
    ],
)
def test_every_part_of_the_key_counts(other: Preparation) -> None:
    build = Builder()
    cached(Preparation("toy", 1, "abc"), build)
    cached(other, build)
    assert build.calls == 2


@pytest.mark.parametrize("damage", ["truncated", "header", "data", "empty", "longer"])
def test_broken_files_are_rebuilt(damage: str) -> None:
    build, preparation = Builder(), Preparation("toy", 1, "abc")
    expected = {k: v.clone() for k, v in cached(preparation, build).items()}
    whole = preparation.path.read_bytes()
    broken = {
        "truncated": whole[:-3],
        "header": whole[:8] + b"?" + whole[9:],
        "data": whole[:-1] + bytes([whole[-1] ^ 1]),
        "empty": b"",
        "longer": whole + b"0",
    }[damage]
    preparation.path.unlink()
    preparation.path.write_bytes(broken)
    assert equal(cached(preparation, build), expected)
    assert build.calls == 2
    assert preparation.path.read_bytes() == whole


def test_a_failed_build_leaves_nothing(cache_folder: Path) -> None:
    def fill(out: Tensors) -> None:
        raise RuntimeError("no")

    with pytest.raises(RuntimeError, match="no"):
        cached_in_place(Preparation("toy", 1, "x"), {"a": ((3,), torch.uint8)}, fill)
    assert list(cache_folder.iterdir()) == []


def test_changes_to_a_loaded_tensor_do_not_reach_the_file() -> None:
    build, preparation = Builder(), Preparation("toy", 1, "abc")
    cached(preparation, build)["float"].zero_()
    assert cached(preparation, build)["float"].max() == 5


def test_older_versions_are_removed_but_other_problems_stay() -> None:
    build = Builder()
    old, other = Preparation("toy", 1, "x"), Preparation("toys", 1, "x")
    cached(old, build)
    cached(other, build)
    cached(Preparation("toy", 2, "x"), build)
    assert not old.path.exists()
    assert other.path.exists()


def test_a_cache_that_cannot_be_written_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("in the way")
    monkeypatch.setenv("LORPMAN_CACHE", str(tmp_path / "file" / "cache"))
    with pytest.raises(UsageError, match="set LORPMAN_CACHE"):
        cached(Preparation("toy", 1, "x"), Builder())


WRITER = """
import torch
from lorpman.lab.datasets.prepared_cache import Preparation, cached
for round in range(8):
    made = cached(Preparation("race", 1, str(round)), lambda: {"x": torch.full((50_000,), 7.0)})
    assert made["x"].shape == (50_000,) and bool((made["x"] == 7.0).all()), round
"""


def test_two_processes_at_once(cache_folder: Path) -> None:
    both = [subprocess.Popen([sys.executable, "-c", WRITER]) for _ in range(2)]
    assert [p.wait(timeout=60) for p in both] == [0, 0]
    assert len(list(cache_folder.iterdir())) == 8


def test_checksums_see_names_and_contents(tmp_path: Path) -> None:
    a, b = tmp_path / "a", tmp_path / "b"
    a.write_text("1")
    b.write_text("1")
    assert content_checksum([a]) != content_checksum([b])
    assert listing_checksum([a]) != listing_checksum([b])
    before = content_checksum([a]), listing_checksum([a])
    a.write_text("22")
    assert content_checksum([a]) != before[0]
    assert listing_checksum([a]) != before[1]
