"""Getting the files of a problem: what is there is recognised, in any packing."""

import gzip
import hashlib
import io
import tarfile
from pathlib import Path

import pytest

from lorpman.errors import UsageError
from lorpman.lab.datasets import sources
from lorpman.lab.datasets.sources import SOURCES, Source, SourceFile, obtain

CONTENT = b"the original content" * 100


def digest(kind: str, data: bytes) -> str:
    return f"{kind}:{hashlib.new(kind, data, usedforsecurity=False).hexdigest()}"


@pytest.fixture
def toy(monkeypatch: pytest.MonkeyPatch) -> None:
    packed = gzip.compress(CONTENT, mtime=0)
    file = SourceFile("toy/file.gz", "nowhere", digest("md5", packed), digest("sha256", CONTENT))
    monkeypatch.setitem(SOURCES, "toy", Source((file,)))


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("file.gz", gzip.compress(CONTENT, mtime=0)),
        ("file.gz", gzip.compress(CONTENT, 1, mtime=5)),
        ("file", CONTENT),
    ],
)
@pytest.mark.usefixtures("toy")
def test_any_packing_is_recognised(tmp_path: Path, name: str, data: bytes) -> None:
    (tmp_path / "toy").mkdir()
    (tmp_path / "toy" / name).write_bytes(data)
    assert obtain("toy", tmp_path) == f"toy: 1 files in {tmp_path}, checked"


@pytest.mark.usefixtures("toy")
def test_other_content_is_refused(tmp_path: Path) -> None:
    (tmp_path / "toy").mkdir()
    path = tmp_path / "toy" / "file.gz"
    path.write_bytes(gzip.compress(CONTENT + b"!"))
    with pytest.raises(UsageError, match=r"file\.gz is not the original file"):
        obtain("toy", tmp_path)
    path.write_bytes(gzip.compress(CONTENT)[:-9])
    with pytest.raises(UsageError, match="not a whole gzip file"):
        obtain("toy", tmp_path)


@pytest.mark.parametrize("problem", ["utkface", "celeba", "cityscapes"])
def test_problems_without_links_say_what_to_get_and_where_to_put_it(
    tmp_path: Path, problem: str
) -> None:
    said = obtain(problem, tmp_path)
    assert "https://" in said
    assert f"{tmp_path}/{problem}/" in said
    assert "\n" not in said


def test_unknown_problem(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="did you mean 'census'"):
        obtain("sensus", tmp_path)


def test_cifar_archive_gives_only_the_three_known_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = ("train", "test", "meta")
    files = tuple(
        SourceFile(f"cifar100/cifar-100-python/{n}", "", digest("md5", n.encode())) for n in names
    )
    monkeypatch.setattr(sources, "_CIFAR_FILES", files)
    archive = tmp_path / "cifar100" / "cifar-100-python.tar.gz"
    archive.parent.mkdir()
    with tarfile.open(archive, "w:gz") as tar:
        for name in (*names, "../../escaped"):
            info = tarfile.TarInfo(f"cifar-100-python/{name}")
            info.size = len(name)
            tar.addfile(info, io.BytesIO(name.encode()))
    sources._unpack_cifar(tmp_path)
    found = sorted(p.relative_to(tmp_path).as_posix() for p in tmp_path.rglob("*") if p.is_file())
    assert found == [f"cifar100/cifar-100-python/{n}" for n in sorted(names)]


@pytest.mark.parametrize(
    "content",
    [b"", b"no archive", gzip.compress(b"no archive")],
    # gzip holds the time: tests of other names in every process.
    ids=["empty", "text", "packed text"],
)
def test_a_garbage_archive_is_named(tmp_path: Path, content: bytes) -> None:
    archive = tmp_path / "cifar100" / "cifar-100-python.tar.gz"
    archive.parent.mkdir()
    archive.write_bytes(content)
    with pytest.raises(UsageError, match=r"cifar-100-python\.tar\.gz: .*; delete it and run"):
        sources._unpack_cifar(tmp_path)
    assert list(tmp_path.rglob("*.part")) == []


@pytest.mark.parametrize("kind", [tarfile.DIRTYPE, tarfile.SYMTYPE, tarfile.FIFOTYPE])
def test_a_member_that_is_no_file_is_refused(tmp_path: Path, kind: bytes) -> None:
    archive = tmp_path / "cifar100" / "cifar-100-python.tar.gz"
    archive.parent.mkdir()
    with tarfile.open(archive, "w:gz") as tar:
        info = tarfile.TarInfo("cifar-100-python/train")
        info.type, info.linkname = kind, "/etc/passwd"
        tar.addfile(info)
    with pytest.raises(UsageError, match="train in it is not the original file"):
        sources._unpack_cifar(tmp_path)
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == [archive]


def test_every_file_has_a_checksum_and_comes_by_https() -> None:
    for source in SOURCES.values():
        for file in source.files:
            assert file.url.startswith("https://")
        for file in (*source.files, *source.unpacked):
            assert file.checksum.startswith(("sha256:", "md5:"))


def test_a_file_without_checksum_is_to_be_got_by_hand(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    packed = gzip.compress(CONTENT, mtime=0)
    file = SourceFile("toy/file.gz", "nowhere", digest("sha256", packed))
    source = Source((file,), "put it into {root}/toy/", by_hand=("toy/other.gz",))
    monkeypatch.setitem(SOURCES, "toy", source)
    (tmp_path / "toy").mkdir()
    (tmp_path / "toy" / "file.gz").write_bytes(packed)
    assert f"put it into {tmp_path}/toy/" in obtain("toy", tmp_path)
    (tmp_path / "toy" / "other").write_bytes(b"")
    assert obtain("toy", tmp_path).endswith("checked; other.gz has no published checksum")


@pytest.mark.parametrize("problem", ["multimnist", "cifar100"])
def test_real_files_are_recognised(real: Path, problem: str) -> None:
    assert "checked" in obtain(problem, real)
