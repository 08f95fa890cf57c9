"""Downloads against a server on loopback that does everything wrong that servers do."""

import hashlib
import shutil
import ssl
import subprocess
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from lorpman.errors import UsageError
from lorpman.lab.datasets.downloads import download

BODY = bytes(range(256)) * 2000
GOOD = "sha256:" + hashlib.sha256(BODY).hexdigest()
MD5 = "md5:" + hashlib.md5(BODY, usedforsecurity=False).hexdigest()

REDIRECTS = {
    "to-good": "/good",
    "to-http": "http://127.0.0.1:9/file",
    "to-ftp": "ftp://127.0.0.1/file",
    "to-file": "file:///etc/passwd",
}


class Server(ThreadingHTTPServer):
    """Counts requests and remembers the ranges that were asked for."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.ranges: list[str | None] = []

    def url(self, behaviour: str) -> str:
        return f"https://127.0.0.1:{self.server_port}/{behaviour}"


class Handler(BaseHTTPRequestHandler):
    """The path names the behaviour."""

    server: Server

    def do_GET(self) -> None:
        wanted = self.headers.get("Range")
        self.server.ranges.append(wanted)
        behaviour = self.path.strip("/")
        first = len(self.server.ranges) == 1
        start = int(wanted.removeprefix("bytes=").removesuffix("-")) if wanted else 0
        if behaviour in REDIRECTS:
            self.send_response(302)
            self.send_header("Location", REDIRECTS[behaviour])
            return self.end_headers()
        if behaviour == "missing":
            return self.send_error(404)
        if behaviour == "busy" and first:
            return self.send_error(503)
        if behaviour == "down":
            return self.send_error(500)
        if start >= len(BODY) and behaviour != "no-range":
            return self.send_error(416)
        if wanted and behaviour != "no-range":
            self.send_response(206)
            self.send_header("Content-Range", f"bytes {start}-{len(BODY) - 1}/{len(BODY)}")
        else:
            self.send_response(200)
            start = 0
        body = BODY[start:]
        self.send_header("Content-Length", "many" if behaviour == "length" else str(len(body)))
        self.end_headers()
        cut = {"cut": 100_000 if first else None, "no-range": 90_000 if first else None}
        limit = 0 if behaviour == "empty" else cut.get(behaviour)
        self.wfile.write(body[:limit])
        return None

    def log_message(self, format: str, *args: object) -> None:
        """Quiet."""


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A key and a certificate for this machine, which nobody else trusts."""
    if shutil.which("openssl") is None:
        pytest.skip("needs openssl, to serve https")
    path = tmp_path_factory.mktemp("tls") / "server.pem"
    made = "openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=127.0.0.1"
    names = ["-addext", "subjectAltName=IP:127.0.0.1", "-keyout", path, "-out", f"{path}.crt"]
    subprocess.run([*made.split(), *names], check=True, capture_output=True)
    path.write_bytes(path.read_bytes() + Path(f"{path}.crt").read_bytes())
    return path


@pytest.fixture
def server(certificate: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    monkeypatch.setenv("SSL_CERT_FILE", f"{certificate}.crt")
    with Server() as server:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate)
        server.socket = context.wrap_socket(server.socket, server_side=True)
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def get(server: Server, behaviour: str, target: Path, checksum: str = GOOD) -> None:
    url = server.url(behaviour)
    download(url, target, checksum, progress=False, attempts=2, wait=0.0, timeout=5)


@pytest.mark.parametrize("checksum", [GOOD, MD5])
def test_whole_file(server: Server, tmp_path: Path, checksum: str) -> None:
    target = tmp_path / "deep" / "file"
    get(server, "good", target, checksum)
    assert target.read_bytes() == BODY
    assert [p.name for p in target.parent.iterdir()] == ["file"]


def test_file_that_is_there_is_checked_and_kept(server: Server, tmp_path: Path) -> None:
    target = tmp_path / "file"
    target.write_bytes(BODY)
    get(server, "good", target)
    assert server.ranges == []
    target.write_bytes(b"other")
    with pytest.raises(UsageError, match="delete it and run this again"):
        get(server, "good", target)
    assert target.read_bytes() == b"other"


def test_connection_cut_in_the_middle_is_resumed(server: Server, tmp_path: Path) -> None:
    get(server, "cut", tmp_path / "file")
    assert (tmp_path / "file").read_bytes() == BODY
    assert server.ranges == [None, "bytes=100000-"]


def test_part_of_an_earlier_process_is_resumed(server: Server, tmp_path: Path) -> None:
    (tmp_path / "file.part").write_bytes(BODY[:12_345])
    get(server, "good", tmp_path / "file")
    assert (tmp_path / "file").read_bytes() == BODY
    assert server.ranges == ["bytes=12345-"]


def test_part_that_is_whole_is_only_renamed(server: Server, tmp_path: Path) -> None:
    (tmp_path / "file.part").write_bytes(BODY)
    get(server, "good", tmp_path / "file")
    assert (tmp_path / "file").read_bytes() == BODY
    assert server.ranges == []


def test_server_that_ignores_ranges_starts_over(server: Server, tmp_path: Path) -> None:
    get(server, "no-range", tmp_path / "file")
    assert (tmp_path / "file").read_bytes() == BODY
    assert server.ranges == [None, "bytes=90000-"]


@pytest.mark.parametrize("rubbish", [b"x" * 500, b"x" * (len(BODY) + 1), b"x" * len(BODY)])
def test_part_of_another_file_is_thrown_away(
    server: Server, tmp_path: Path, rubbish: bytes
) -> None:
    (tmp_path / "file.part").write_bytes(rubbish)
    get(server, "good", tmp_path / "file")
    assert (tmp_path / "file").read_bytes() == BODY


def test_truncated_body_is_an_error_that_keeps_the_bytes(server: Server, tmp_path: Path) -> None:
    (tmp_path / "file.part").write_bytes(BODY[:77])
    with pytest.raises(UsageError, match=r"broke after 77 of 512000 bytes; 77 bytes are kept"):
        get(server, "empty", tmp_path / "file")
    assert (tmp_path / "file.part").read_bytes() == BODY[:77]
    assert not (tmp_path / "file").exists()


def test_wrong_checksum_keeps_nothing(server: Server, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"has md5:\w+, expected md5:0; nothing was kept"):
        get(server, "good", tmp_path / "file", "md5:0")
    assert list(tmp_path.iterdir()) == []


def test_404_is_not_tried_again(server: Server, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="the server says 404 Not Found"):
        get(server, "missing", tmp_path / "file")
    assert len(server.ranges) == 1
    assert not (tmp_path / "file").exists()


def test_passing_trouble_is_waited_for(server: Server, tmp_path: Path) -> None:
    get(server, "busy", tmp_path / "file")
    assert (tmp_path / "file").read_bytes() == BODY
    with pytest.raises(UsageError, match="the server says 500"):
        get(server, "down", tmp_path / "other")


def test_no_server_and_no_address(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"cannot get https://127\.0\.0\.1:9/"):
        download("https://127.0.0.1:9/x", tmp_path / "f", GOOD, progress=False, attempts=1, wait=0)
    for url in ("nonsense", "http://127.0.0.1/f", "ftp://127.0.0.1/f", "file:///etc/passwd"):
        with pytest.raises(UsageError, match="not an address"):
            download(url, tmp_path / "f", GOOD, progress=False)


@pytest.mark.parametrize("behaviour", ["to-http", "to-ftp", "to-file"])
def test_a_redirect_to_anything_but_https_is_refused(
    server: Server, tmp_path: Path, behaviour: str
) -> None:
    with pytest.raises(UsageError, match="cannot get"):
        get(server, behaviour, tmp_path / "file")
    assert len(server.ranges) == 1
    assert not (tmp_path / "file").exists()


def test_a_redirect_to_https_is_followed(server: Server, tmp_path: Path) -> None:
    get(server, "to-good", tmp_path / "file")
    assert (tmp_path / "file").read_bytes() == BODY


def test_a_server_that_nobody_vouches_for_is_refused(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SSL_CERT_FILE")
    with pytest.raises(UsageError, match="CERTIFICATE_VERIFY_FAILED"):
        get(server, "good", tmp_path / "file")


def test_a_length_that_is_no_number_is_told(server: Server, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="the server sent 'many' as the length"):
        get(server, "length", tmp_path / "file")


def test_folder_that_cannot_be_made(server: Server, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(UsageError, match="cannot write"):
        get(server, "good", tmp_path / "file" / "deeper")


def test_two_processes_do_not_write_one_file(server: Server, tmp_path: Path) -> None:
    fcntl = pytest.importorskip("fcntl")
    with (tmp_path / "file.part").open("ab") as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        with pytest.raises(UsageError, match="another process is writing"):
            get(server, "good", tmp_path / "file")
