"""Downloads that can break off: resumed where they stopped, checked, and renamed when whole."""

import contextlib
import hashlib
import http.client
import os
import re
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import BinaryIO
from urllib.error import HTTPError, URLError
from urllib.request import Request, urlopen

from rich.console import Console
from rich.progress import (
    BarColumn,
    DownloadColumn,
    Progress,
    TextColumn,
    TimeRemainingColumn,
    TransferSpeedColumn,
)

from lorpman.errors import UsageError

_BLOCK = 1 << 16
_HEADERS = {"User-Agent": "lorpman", "Accept-Encoding": "identity"}
_PASSING = frozenset({408, 425, 429, 500, 502, 503, 504})

Advance = Callable[[int, int | None], None]


class _Broken(Exception):
    """The transfer stopped early, and trying again may help."""


def download(
    url: str,
    target: Path,
    checksum: str | None = None,
    *,
    progress: bool = True,
    attempts: int = 4,
    wait: float = 1.0,
    timeout: float = 30.0,
) -> None:
    """Puts the file at ``url`` to ``target``, whole or not at all.

    The bytes gather in ``target.part``, which a later call (of this or another process) goes on
    with. A file that is already at ``target`` is checked and kept.

    Args:
        url: where the file is.
        target: where it goes; folders are made.
        checksum: ``md5:...`` or ``sha256:...``; without one only the length is checked.
        progress: show a bar on standard error.
        attempts: how often to try again, in a row, without receiving a byte.
        wait: seconds before the first new attempt; doubled for each one after it.
        timeout: seconds without a byte that count as a broken connection.
    """
    if not url.startswith(("http://", "https://")):
        raise UsageError(f"{url} is not an address of a file; it must begin with https://")
    if target.exists():
        verify(target, checksum)
        return
    part = target.with_name(f"{target.name}.part")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with part.open("a+b") as file, _lock(file, part), _bar(target.name, progress) as advance:
            resumed = file.tell() > 0
            whole = resumed and checksum is not None and not _wrong(file, checksum)
            if not whole:
                _receive(url, file, advance, attempts, wait, timeout)
            found = _wrong(file, checksum)
            if found and resumed:
                file.truncate(0)  # What was there before was of another file: begin anew.
                _receive(url, file, advance, attempts, wait, timeout)
                found = _wrong(file, checksum)
            os.fsync(file.fileno())
        if found:
            part.unlink()
            raise UsageError(f"{url} has {found}, expected {checksum}; nothing was kept, try again")
        part.replace(target)
    except OSError as error:
        raise UsageError(f"cannot write {part}: {error.strerror or error}") from error


def verify(path: Path, checksum: str | None) -> None:
    """Refuses a file whose checksum is another."""
    with path.open("rb") as file:
        found = _wrong(file, checksum)
    if found:
        raise UsageError(f"{path} has {found}, expected {checksum}; delete it and run this again")


def _wrong(file: BinaryIO, checksum: str | None) -> str | None:
    """The file's own checksum if it is not the expected one."""
    if checksum is None:
        return None
    kind = checksum.partition(":")[0]
    file.seek(0)
    digest = hashlib.new(kind, usedforsecurity=False)
    while block := file.read(1 << 20):
        digest.update(block)
    found = f"{kind}:{digest.hexdigest()}"
    return None if found == checksum else found


def _receive(
    url: str, file: BinaryIO, advance: Advance, attempts: int, wait: float, timeout: float
) -> None:
    """Appends to ``file`` until it is whole, with new attempts when the connection breaks."""
    failures = 0
    while True:
        before = file.seek(0, os.SEEK_END)
        try:
            return _append(url, file, advance, timeout)
        except _Broken as error:
            file.flush()
            received = file.seek(0, os.SEEK_END)
            failures = 0 if received > before else failures + 1
            if failures >= attempts:
                raise UsageError(
                    f"cannot get {url}: {error}; {received} bytes are kept, "
                    "run this again to go on from there"
                ) from error
            time.sleep(wait * 2**failures)


def _append(url: str, file: BinaryIO, advance: Advance, timeout: float) -> None:
    """One request for the bytes that ``file`` does not have yet."""
    have = file.tell()
    headers = {**_HEADERS, "Range": f"bytes={have}-"} if have else _HEADERS
    with _request(url, headers, file, timeout) as response:
        have, total = _place(response, have)
        file.truncate(have)
        advance(have, total)
        while block := _read(response):
            file.write(block)
            have += len(block)
            advance(have, total)
    file.flush()
    if total is not None and have < total:
        raise _Broken(f"the connection broke after {have} of {total} bytes")


def _request(
    url: str, headers: dict[str, str], file: BinaryIO, timeout: float
) -> http.client.HTTPResponse:
    try:
        response = urlopen(Request(url, headers=headers), timeout=timeout)
    except HTTPError as error:
        with error:
            if error.code == 416:  # More bytes than there are: they are of another file.
                file.truncate(0)
                raise _Broken("the server has fewer bytes than were kept") from error
            if error.code in _PASSING:
                raise _Broken(f"the server says {error.code} {error.reason}") from error
            raise UsageError(
                f"cannot get {url}: the server says {error.code} {error.reason}; "
                "get the file by hand and put it into the data directory"
            ) from error
    except URLError as error:
        raise _Broken(str(error.reason)) from error
    except (OSError, http.client.HTTPException) as error:
        raise _Broken(str(error) or type(error).__name__) from error
    assert isinstance(response, http.client.HTTPResponse)
    return response


def _place(response: http.client.HTTPResponse, have: int) -> tuple[int, int | None]:
    """Where the body belongs in the file, and the file's whole length if it is known."""
    length = response.headers.get("Content-Length")
    if response.status != 206:
        return 0, int(length) if length else None
    match = re.fullmatch(r"bytes (\d+)-\d+/(\d+|\*)", response.headers.get("Content-Range", ""))
    if match is None or int(match[1]) != have:
        raise _Broken("the server sent another range than the one asked for")
    return have, None if match[2] == "*" else int(match[2])


def _read(response: http.client.HTTPResponse) -> bytes:
    try:
        return response.read(_BLOCK)
    except http.client.IncompleteRead as error:
        return error.partial
    except (OSError, http.client.HTTPException) as error:
        raise _Broken(str(error) or type(error).__name__) from error


@contextlib.contextmanager
def _lock(file: BinaryIO, part: Path) -> Iterator[None]:
    """Keeps a second process from writing to the same file; where the system can."""
    try:
        import fcntl
    except ImportError:
        yield
        return
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise UsageError(f"another process is writing {part}; wait until it is done") from None
    yield


@contextlib.contextmanager
def _bar(name: str, show: bool) -> Iterator[Advance]:
    columns = (BarColumn(), DownloadColumn(), TransferSpeedColumn(), TimeRemainingColumn())
    text = TextColumn("{task.description}")
    with Progress(text, *columns, console=Console(stderr=True), disable=not show) as progress:
        task = progress.add_task(name, total=None)

        def advance(have: int, total: int | None) -> None:
            progress.update(task, completed=have, total=total)

        yield advance
