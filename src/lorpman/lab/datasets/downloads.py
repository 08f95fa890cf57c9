"""Downloads that can break off: resumed where they stopped, checked, and renamed when whole.

Kept beside pooch, which checks checksums too, but begins anew after a broken connection (it has
no range requests) and lets two processes write the same file.
"""

import contextlib
import hashlib
import http.client
import os
import re
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, BinaryIO
from urllib.error import HTTPError, URLError
from urllib.request import HTTPRedirectHandler, Request, build_opener

from rich.console import Console
from rich.progress import (
    BarColumn,
    DownloadColumn,
    Progress,
    TextColumn,
    TimeRemainingColumn,
    TransferSpeedColumn,
)

from lorpman._files import try_lock
from lorpman.errors import UsageError

_BLOCK = 1 << 16
# Not compressed on the way: ranges and lengths must be those of the file itself.
_HEADERS = {"User-Agent": "lorpman", "Accept-Encoding": "identity"}
# Answers after which the same request may well succeed in a moment.
_TEMPORARY_FAILURES = frozenset({408, 425, 429, 500, 502, 503, 504})

ShowProgress = Callable[[int, int | None], None]
"""Told how many bytes there are, and of how many if that is known."""


class _BrokenTransfer(Exception):
    """The transfer stopped early, and trying again may help."""


def download(
    url: str,
    target: Path,
    checksum: str,
    *,
    progress: bool = True,
    attempts: int = 4,
    wait: float = 1.0,
    timeout: float = 30.0,
) -> None:
    """Put the file at ``url`` to ``target``, whole or not at all.

    The bytes gather in ``target.part``, which a later call (of this or another process) goes on
    with. A file that is already at ``target`` is checked and kept.

    Args:
        url: Where the file is; it must begin with https://, and so must all it redirects to.
        target: Where it goes; folders are made.
        checksum: ``md5:...`` or ``sha256:...``.
        progress: Show a bar on standard error.
        attempts: How often to try again, in a row, without receiving a byte.
        wait: Seconds before the first new attempt; doubled for each one after it.
        timeout: Seconds without a byte that count as a broken connection.

    Raises:
        UsageError: If the file cannot be had or written, is another one than expected, or another
            process is downloading it.
    """
    if not url.startswith("https://"):
        raise UsageError(f"{url} is not an address of a file; it must begin with https://")
    if target.exists():
        verify(target, checksum)
        return
    part = target.with_name(f"{target.name}.part")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with part.open("a+b") as file, _progress_bar(target.name, progress) as show:
            if not try_lock(file.fileno()):
                raise UsageError(f"another process is writing {part}; wait until it is done")
            other = _complete(
                file, checksum, lambda: _receive(url, file, show, attempts, wait, timeout)
            )
            # Before the rename: after a power cut, a whole name must mean a whole file.
            os.fsync(file.fileno())
        if other:
            part.unlink()
            raise UsageError(f"{url} has {other}, expected {checksum}; nothing was kept, try again")
        part.replace(target)
    except OSError as error:
        raise UsageError(f"cannot write {part}: {error.strerror or error}") from error


def _complete(file: BinaryIO, checksum: str, receive: Callable[[], None]) -> str | None:
    """Add what ``file`` lacks; its checksum, if that is not the expected one all the same."""
    resumed = file.tell() > 0
    # A process that was killed just before the last rename leaves a whole file behind.
    if resumed and not _other_checksum(file, checksum):
        return None
    receive()
    other = _other_checksum(file, checksum)
    if other and resumed:
        file.truncate(0)  # What was there before was of another file: begin anew.
        receive()
        other = _other_checksum(file, checksum)
    return other


def verify(path: Path, checksum: str) -> None:
    """Check a file that is there.

    Args:
        path: The file.
        checksum: ``md5:...`` or ``sha256:...``.

    Raises:
        UsageError: If the file has another checksum.
    """
    with path.open("rb") as file:
        other = _other_checksum(file, checksum)
    if other:
        raise UsageError(f"{path} has {other}, expected {checksum}; delete it and run this again")


def _other_checksum(file: BinaryIO, checksum: str) -> str | None:
    """The file's own checksum if it is not the expected one."""
    algorithm = checksum.partition(":")[0]
    file.seek(0)
    # Publishers still give MD5, which some systems refuse unless it is marked as no protection.
    digest = hashlib.new(algorithm, usedforsecurity=False)
    while block := file.read(1 << 20):
        digest.update(block)
    actual = f"{algorithm}:{digest.hexdigest()}"
    return None if actual == checksum else actual


def _receive(
    url: str, file: BinaryIO, show: ShowProgress, attempts: int, wait: float, timeout: float
) -> None:
    """Append to ``file`` until it is whole, with new attempts when the connection breaks."""
    failures = 0
    while True:
        before = file.seek(0, os.SEEK_END)
        try:
            return _append(url, file, show, timeout)
        except _BrokenTransfer as error:
            file.flush()
            received = file.seek(0, os.SEEK_END)
            # Only attempts that bring nothing count: a bad connection may break often.
            failures = 0 if received > before else failures + 1
            if failures >= attempts:
                raise UsageError(
                    f"cannot get {url}: {error}; {received} bytes are kept, "
                    "run this again to go on from there"
                ) from error
            time.sleep(wait * 2**failures)


def _append(url: str, file: BinaryIO, show: ShowProgress, timeout: float) -> None:
    """One request for the bytes that ``file`` does not have yet."""
    have = file.tell()
    headers = {**_HEADERS, "Range": f"bytes={have}-"} if have else _HEADERS
    with _request(url, headers, file, timeout) as response:
        have, total = _start_and_total(response, have)
        # A server that ignores the range sends the whole file: what was kept would come twice.
        file.truncate(have)
        show(have, total)
        while block := _read(response):
            file.write(block)
            have += len(block)
            show(have, total)
    file.flush()
    if total is not None and have < total:
        raise _BrokenTransfer(f"the connection broke after {have} of {total} bytes")


class _HttpsOnly(HTTPRedirectHandler):
    """Follows no redirect to where others could read or change what is sent."""

    def redirect_request(
        self, req: Request, fp: Any, code: int, msg: str, headers: Any, newurl: str
    ) -> Request | None:
        if not newurl.startswith("https://"):
            raise UsageError(
                f"cannot get {req.full_url}: it redirects to {newurl[:100]}, expected https://; "
                "get the file by hand and put it into the data directory"
            )
        return super().redirect_request(req, fp, code, msg, headers, newurl)


def _request(
    url: str, headers: dict[str, str], file: BinaryIO, timeout: float
) -> http.client.HTTPResponse:
    try:
        opener = build_opener(_HttpsOnly)
        response = opener.open(Request(url, headers=headers), timeout=timeout)
    except HTTPError as error:
        with error:
            if error.code == 416:  # More bytes than there are: they are of another file.
                file.truncate(0)
                raise _BrokenTransfer("the server has fewer bytes than were kept") from error
            if error.code in _TEMPORARY_FAILURES:
                raise _BrokenTransfer(f"the server says {error.code} {error.reason}") from error
            raise UsageError(
                f"cannot get {url}: the server says {error.code} {error.reason}; "
                "get the file by hand and put it into the data directory"
            ) from error
    except URLError as error:
        raise _BrokenTransfer(str(error.reason)) from error
    except (OSError, http.client.HTTPException) as error:
        raise _BrokenTransfer(str(error) or type(error).__name__) from error
    assert isinstance(response, http.client.HTTPResponse)
    return response


def _start_and_total(response: http.client.HTTPResponse, have: int) -> tuple[int, int | None]:
    """Where the body belongs in the file, and the file's whole length if it is known."""
    length = response.headers.get("Content-Length")
    if length is not None and not re.fullmatch(r"[0-9]{1,18}", length):
        raise _BrokenTransfer(f"the server sent '{length[:20]}' as the length")
    if response.status != 206:
        return 0, int(length) if length else None
    # A server may answer with another range than the one asked for, which would garble the file.
    match = re.fullmatch(
        r"bytes ([0-9]{1,18})-[0-9]+/([0-9]{1,18}|\*)", response.headers.get("Content-Range", "")
    )
    if match is None or int(match[1]) != have:
        raise _BrokenTransfer("the server sent another range than the one asked for")
    return have, None if match[2] == "*" else int(match[2])


def _read(response: http.client.HTTPResponse) -> bytes:
    try:
        return response.read(_BLOCK)
    except http.client.IncompleteRead as error:
        # The bytes that came are good; the next read says that there are no more.
        return error.partial
    except (OSError, http.client.HTTPException) as error:
        raise _BrokenTransfer(str(error) or type(error).__name__) from error


@contextlib.contextmanager
def _progress_bar(name: str, visible: bool) -> Iterator[ShowProgress]:
    columns = (BarColumn(), DownloadColumn(), TransferSpeedColumn(), TimeRemainingColumn())
    text = TextColumn("{task.description}")
    with Progress(text, *columns, console=Console(stderr=True), disable=not visible) as progress:
        task = progress.add_task(name, total=None)

        def show(have: int, total: int | None) -> None:
            progress.update(task, completed=have, total=total)

        yield show
