"""Requests that the page never makes: refused, nothing told, and the server lives on."""

import re
import socket

import pytest

from asking import Asker


@pytest.fixture(scope="module")
def asker(served):
    return Asker(served)


def lives(asker):
    return len(asker.ask("digits", [0.25, 0.75])) == 2


GOOD = {"run": "digits", "alpha": [0.5, 0.5], "serial": 1}


@pytest.mark.parametrize(
    "asked",
    [
        None,
        [],
        "digits",
        {},
        GOOD | {"run": "../../etc/passwd"},
        GOOD | {"run": ["digits"]},
        GOOD | {"run": None},
        GOOD | {"alpha": "0.5,0.5"},
        GOOD | {"alpha": [0.5]},
        GOOD | {"alpha": [0.5] * 5000},
        GOOD | {"alpha": [0.9, 0.9]},
        GOOD | {"alpha": [-1, 2]},
        GOOD | {"alpha": [True, False]},
        GOOD | {"alpha": [{"a": 1}, 0]},
        GOOD | {"alpha": [1e400, 0]},
        GOOD | {"alpha": [10**400, 0]},
    ],
)
def test_a_question_that_makes_no_sense_is_refused(asker, asked):
    answer = asker.post(asker.body(asked))
    assert 400 <= answer.status_code < 500
    assert "Traceback" not in answer.text
    assert "/" not in answer.text.replace("alpha / alpha.sum()", "")
    assert lives(asker)


def mangled(asker):
    body = asker.body(GOOD)
    yield b""
    yield b"{"
    yield b"\xff\xfe\x00"
    yield b"[]"
    yield b"null"
    yield b"[" * 20_000
    for key in body:
        yield {k: v for k, v in body.items() if k != key}
        for wrong in (None, 7, "x", [], {}, [[]], [None], [{"id": 1}]):
            if not (key == "parsedChangedPropsIds" or (key == "changedPropIds" and wrong == [])):
                yield body | {key: wrong}
    yield body | {"output": "nothing.here"}
    yield body | {"inputs": [{"id": {"type": "weight"}, "property": "value", "value": 1}]}


def test_malformed_calls_are_refused(asker):
    for body in mangled(asker):
        answer = asker.post(body)
        assert answer.status_code < 500, body
        assert answer.status_code >= 400 or answer.status_code in (200, 204), body
        assert "Traceback" not in answer.text
        assert "site-packages" not in answer.text
    assert asker.post(b"{").status_code == 400
    assert asker.post(asker.body(GOOD), content_type="text/plain").status_code == 415
    assert lives(asker)


def test_a_huge_body_is_refused_unread(asker):
    assert asker.post(b'{"output": "' + b"x" * 100_000 + b'"}').status_code == 413
    assert lives(asker)


def test_a_huge_body_of_no_stated_length_is_refused(served, asker):
    host, port = served.server.server_address[:2]
    head = (
        "POST /_dash-update-component HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n"
        "Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
    )
    with socket.create_connection((host, port), timeout=10) as connection:
        connection.sendall(head.encode())
        connection.sendall((b"4000\r\n" + b" " * 0x4000 + b"\r\n") * 8 + b"0\r\n\r\n")
        assert re.match(rb"HTTP/1.1 4\d\d", connection.recv(100))
    assert lives(asker)


@pytest.mark.parametrize(
    "path",
    [
        "somewhere",
        "assets/../guard.py",
        "assets/..%2f..%2fguard.py",
        "assets/%2e%2e/guard.py",
        "_dash-component-suites/dash/../../secrets.txt",
        "_dash-component-suites/os/environ",
        "pictures/..%2f..%2fdigits/0",
        "pictures/nobody/0",
        "pictures/digits/999",
        "pictures/digits/-1",
        "export",
        "export?run=digits",
        "export?run=../digits&alpha=0.5,0.5&format=onnx",
        "export?run=digits&alpha=0.5,0.5&format=../../x",
        "export?run=digits&alpha=0.5,nan&format=onnx",
        "export?run=digits&alpha=%00&format=onnx",
        "_reload-hash",
        "_mcp",
        "run.json",
    ],
)
def test_paths_lead_nowhere_else(asker, path):
    answer = asker.get(path)
    assert 400 <= answer.status_code < 500, answer.text
    assert "Traceback" not in answer.text
    assert "site-packages" not in answer.text


@pytest.mark.parametrize(
    "query", ["?alpha=x", "?run=%00", "?" + "a=1&" * 2000, "?need=:::", "?%ff"]
)
def test_a_strange_address_still_gives_the_page(asker, query):
    answer = asker.get(query)
    assert answer.status_code == 200
    assert "lorpman" in answer.text


def test_only_this_machine_s_names_are_answered(asker):
    for host in ("evil.example", "127.0.0.1.evil.example", "localhost.evil.example:80"):
        assert asker.get("", headers={"Host": host}).status_code == 403
    for host in ("localhost:1", "127.0.0.1", "[::1]:9"):
        assert asker.get("", headers={"Host": host}).status_code == 200


def test_other_sites_can_only_link_to_the_page(asker):
    foreign = {"Sec-Fetch-Site": "cross-site"}
    assert asker.get("", headers=foreign).status_code == 200
    query = "export?run=digits&alpha=0.5,0.5&format=safetensors"
    assert asker.get(query, headers=foreign).status_code == 403
    assert asker.get("_dash-layout", headers=foreign).status_code == 403
    origin = {"Origin": "http://evil.example"}
    assert asker.post(asker.body(GOOD), headers=origin).status_code == 403


def test_browsers_are_told_to_load_nothing_from_elsewhere(asker):
    page = asker.get("")
    policy = page.headers["Content-Security-Policy"]
    assert "default-src 'self'" in policy
    assert "http:" not in policy
    assert page.headers["X-Content-Type-Options"] == "nosniff"
    loaded = re.findall(r'(?:src|href)="([^"]*)"', page.text)
    assert len(loaded) > 5
    assert all(re.match(r"/[^/]", address) for address in loaded)
    assert '"disable_version_check":true' in page.text


def test_half_a_request_does_no_harm(served, asker):
    host, port = served.server.server_address[:2]
    for content in (b"GET / HT", b"\x00" * 100, b"POST /_dash-update-component HTTP/1.1\r\n\r\n"):
        with socket.create_connection((host, port), timeout=10) as connection:
            connection.sendall(content)
    assert lives(asker)
