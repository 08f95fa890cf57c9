"""Where the original files come from, how to know them, and where they go.

``obtain`` downloads what has an official direct link; for the rest it says which files to get and
where to put them. MNIST's own site no longer serves its files; the mirror named here holds the
same bytes.
"""

import gzip
import hashlib
import shutil
import tarfile
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from lorpman.errors import UsageError, unknown
from lorpman.lab.datasets.downloads import download, verify


@dataclass(frozen=True)
class SourceFile:
    """One original file.

    Args:
        path: Where it goes, below the data directory.
        url: Its direct link.
        checksum: Of the file as downloaded: ``sha256:...``, or ``md5:...`` where that is all that
            its publisher states.
        content: ``sha256:...`` of what is inside a gzip file. It also knows files that were
            unpacked, or compressed anew (as Linux distributions do).
    """

    path: str
    url: str
    checksum: str
    content: str | None = None


@dataclass(frozen=True)
class Source:
    """The files of one problem: with links, or with words on how to get them by hand.

    Args:
        files: What is downloaded.
        manual: Which files to get by hand and where to put them, since there are no links, or no
            checksum by which to know what came; ``{root}`` stands for the data directory.
        by_hand: Those files, where there are others that can be downloaded.
        unpack: Takes the files out of a downloaded archive.
        unpacked: What it takes out. Where all of these are there, nothing is downloaded.
    """

    files: tuple[SourceFile, ...] = ()
    manual: str = ""
    by_hand: tuple[str, ...] = ()
    unpack: Callable[[Path], None] | None = None
    unpacked: tuple[SourceFile, ...] = ()


def obtain(problem: str, root: Path, progress: bool = True) -> str:
    """Get and check the files of a problem.

    Args:
        problem: Its name.
        root: The data directory.
        progress: Show a bar for each download.

    Returns:
        What there is to say: how many files were checked, or how to get them by hand.

    Raises:
        UsageError: If the problem has no files, or one of them cannot be had or is another one.
    """
    if problem not in SOURCES:
        raise unknown("problem with data", problem, SOURCES)
    source = SOURCES[problem]
    if not source.files:
        return source.manual.format(root=root)
    if source.unpacked and all((root / f.path).exists() for f in source.unpacked):
        for file in source.unpacked:
            verify(root / file.path, file.checksum)
        return f"{problem}: {len(source.unpacked)} files in {root}, all checked"
    for file in source.files:
        if not _is_there(root, file):
            download(file.url, root / file.path, file.checksum, progress=progress)
    if source.unpack is not None:
        source.unpack(root)
    said = f"{problem}: {len(source.files)} files in {root}, checked"
    if not all(_exists(root / path) for path in source.by_hand):
        return f"{said}; {source.manual.format(root=root)}"
    unchecked = ", ".join(Path(path).name for path in source.by_hand)
    return f"{said}; {unchecked} has no published checksum" if unchecked else said


def _exists(path: Path) -> bool:
    """Whether a file is there, gzipped or not."""
    return path.exists() or path.with_suffix("").exists()


def _is_there(root: Path, file: SourceFile) -> bool:
    """Whether the file is there, in any packing, with the right content."""
    packed = root / file.path
    plain = packed.with_suffix("")
    path = plain if packed.suffix == ".gz" and plain.exists() else packed
    if not path.exists():
        return False
    if file.content is None:
        verify(path, file.checksum)
        return True
    digest = hashlib.sha256()
    try:
        with gzip.open(path, "rb") if path == packed else path.open("rb") as stream:
            while block := stream.read(1 << 20):
                digest.update(block)
    except (OSError, EOFError, zlib.error):
        raise UsageError(f"{path} is not a whole gzip file; delete it and run again") from None
    if f"sha256:{digest.hexdigest()}" != file.content:
        raise UsageError(f"{path} is not the original file; delete it and run this again")
    return True


_CIFAR_FILES = (
    SourceFile(
        "cifar100/cifar-100-python/train",
        "",
        "sha256:735e79b04f092ca3d2e6d07f368c0a7d70d48c48d28865950cc24454cf45129b",
    ),
    SourceFile(
        "cifar100/cifar-100-python/test",
        "",
        "sha256:4b67687d9933c4db8f0831104447f15b93774f4f464bd0516f0f0f2ac83b7864",
    ),
    SourceFile(
        "cifar100/cifar-100-python/meta",
        "",
        "sha256:a5d4786345c961390f865e93b434dbd5c6904ce880667e0cb888c97d449f28b9",
    ),
)


# Of an archive's member: the largest of the three has 155 MB.
_LARGEST_MEMBER = 1 << 30


def _unpack_cifar(root: Path) -> None:
    """Take the three known members out of the archive, by name, each whole or not at all."""
    archive = root / "cifar100" / "cifar-100-python.tar.gz"
    try:
        with tarfile.open(archive, "r:gz") as tar:
            for file in _CIFAR_FILES:
                _take_out(tar, file, root)
    except (OSError, EOFError, zlib.error, tarfile.TarError, ValueError, KeyError) as error:
        raise UsageError(f"{archive}: {error}; delete it and run this again") from None
    # Its members are checked one by one from now on; the archive would only take space.
    archive.unlink()


def _take_out(tar: tarfile.TarFile, file: SourceFile, root: Path) -> None:
    """Write one member to where it goes, under its own name only when it is checked."""
    target = root / file.path
    # By the names that we know, so that an archive cannot choose where its files go.
    member = tar.getmember(file.path.removeprefix("cifar100/"))
    content = tar.extractfile(member) if member.isfile() else None
    if content is None or member.size > _LARGEST_MEMBER:
        raise UsageError(f"{target.name} in it is not the original file")
    target.parent.mkdir(parents=True, exist_ok=True)
    partial = target.with_name(f"{target.name}.part")
    try:
        with content, partial.open("wb") as out:
            shutil.copyfileobj(content, out)
        verify(partial, file.checksum)
        partial.replace(target)
    finally:
        partial.unlink(missing_ok=True)


def _idx(folder: str, url: str, known: dict[str, tuple[str, str]]) -> Source:
    files = (
        SourceFile(f"{folder}/{name}", f"{url}/{name}", f"md5:{md5}", f"sha256:{sha256}")
        for name, (md5, sha256) in known.items()
    )
    return Source(tuple(files))


def _both(*sources: Source) -> Source:
    """The files of several sources, for a problem that is made of all of them."""
    return Source(tuple(file for source in sources for file in source.files))


_MNIST = {
    "train-images-idx3-ubyte.gz": (
        "f68b3c2dcbeaaa9fbdd348bbdeb94873",
        "ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db",
    ),
    "train-labels-idx1-ubyte.gz": (
        "d53e105ee54ea40749a09fcbcd1e9432",
        "65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5",
    ),
    "t10k-images-idx3-ubyte.gz": (
        "9fb629c4189551a2d022fa330f9573f3",
        "0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7",
    ),
    "t10k-labels-idx1-ubyte.gz": (
        "ec29112dd5afa0611ce80d1b7f02629c",
        "ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2",
    ),
}
_FASHION = {
    "train-images-idx3-ubyte.gz": (
        "8d4fb7e6c68d591d4c3dfef9ec88bf0d",
        "c59f468a2f672dc815687fe0f83887768d799fd8a3f3276145d20f83aa44d888",
    ),
    "train-labels-idx1-ubyte.gz": (
        "25c81989df183df01b3e8a0aad5dffbe",
        "bad3541b69d912435c50bb6ba87bec294ff4f6a2e1246121d8633921760443d9",
    ),
    "t10k-images-idx3-ubyte.gz": (
        "bef4ecab320f06d8554ea6380940ec79",
        "5b4141f0afbad91edebe8549f8fcffe087ea10ca49f1dbef5c9a5cd8815ce37b",
    ),
    "t10k-labels-idx1-ubyte.gz": (
        "bb300cfdad3c16e7a12a480ee83cd310",
        "0402a96d92fd2663957122ceb108a494c5af83dab82d92729df917d7dec38c34",
    ),
}
# The publisher's repository: its other server has no https.
_FASHION_URL = "https://raw.githubusercontent.com/zalandoresearch/fashion-mnist/master/data/fashion"
_CENSUS_URL = "https://archive.ics.uci.edu/ml/machine-learning-databases/census-income-mld"

_DIGITS = _idx("mnist", "https://ossci-datasets.s3.amazonaws.com/mnist", _MNIST)
_GARMENTS = _idx("fashion", _FASHION_URL, _FASHION)

SOURCES = {
    "multimnist": _DIGITS,
    "multifashion": _GARMENTS,
    "multifashion-mnist": _both(_DIGITS, _GARMENTS),
    "census": Source(
        (
            SourceFile(
                "census/census-income.test.gz",
                f"{_CENSUS_URL}/census-income.test.gz",
                "sha256:5ac4cacd3ca9f1ecb10de1a0a41e4ac68fdc419e3fec190f5c0c6cc03b2ea659",
                "sha256:98402b1ab879573d0a7f38a699a40258080e25e33d3401e7bf9c96d3fa0fab8c",
            ),
        ),
        manual="the training half has no published checksum, so get "
        f"{_CENSUS_URL}/census-income.data.gz yourself (199,523 rows) and put it into "
        "{root}/census/",
        by_hand=("census/census-income.data.gz",),
    ),
    "cifar100": Source(
        (
            SourceFile(
                "cifar100/cifar-100-python.tar.gz",
                "https://www.cs.toronto.edu/~kriz/cifar-100-python.tar.gz",
                "md5:eb9058c3a382ffc7106e4002c42a8d85",
            ),
        ),
        unpack=_unpack_cifar,
        unpacked=_CIFAR_FILES,
    ),
    "utkface": Source(
        manual="utkface has no direct link. From https://susanqq.github.io/UTKFace/ get "
        "'Aligned&Cropped Faces' (UTKFace.tar.gz, 23,708 images) and unpack the .jpg files "
        "below {root}/utkface/"
    ),
    "celeba": Source(
        manual="celeba has no direct link. From "
        "https://mmlab.ie.cuhk.edu.hk/projects/CelebA.html get list_attr_celeba.txt, "
        "list_eval_partition.txt and img_align_celeba.zip; put the two lists into {root}/celeba/ "
        "and unpack the 202,599 images to {root}/celeba/img_align_celeba/"
    ),
    "cityscapes": Source(
        manual="cityscapes has no direct link. Get the preprocessed CityScapes of MTAN "
        "(https://github.com/lorenmt/mtan, 128x256, 7 classes) and put its folders train and val, "
        "each with image, label_7 and depth, into {root}/cityscapes/"
    ),
}
