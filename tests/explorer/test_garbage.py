"""Garbage in every request: an answer or a refusal, never an error of the server's own.

Hypothesis makes 200 cases for ``make test`` and 2,000 for ``make soak``.
"""

import json
import socket
from urllib.parse import quote, urlencode

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from werkzeug.test import Client

from asking import Asker, serving
from soak_size import soaked

GOOD = {"run": "digits", "alpha": [0.5, 0.5], "serial": 1}

numbers = (
    st.integers(-3, 3)
    | st.floats()
    | st.sampled_from([2**63, 10**400, -(10**400), 1e308, 1e-320, 0.5, 1e13])
)
scalars = st.none() | st.booleans() | numbers | st.text(max_size=8) | st.just("digits")
values = st.recursive(
    scalars,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=6,
)
# Latin-1 without line ends: what a header can carry.
words = st.text(st.characters(min_codepoint=32, max_codepoint=255), max_size=20)


def cases(count):
    health = [HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
    return settings(max_examples=count, deadline=None, suppress_health_check=health)


@st.composite
def mangled(draw, value):
    """``value`` with something else in one place of it, or without that place."""
    if not isinstance(value, dict | list) or not value or draw(st.integers(0, 5)) == 0:
        return draw(values)
    place = draw(st.sampled_from(sorted(value) if isinstance(value, dict) else range(len(value))))
    changed = value.copy()
    if draw(st.integers(0, 4)) == 0:
        del changed[place]
    else:
        changed[place] = draw(mangled(value[place]))
    return changed


@st.composite
def headers(draw):
    """What a browser says about itself, where some of it may be anything."""
    known = {
        "Host": st.sampled_from(["127.0.0.1", "localhost:1", "[::1", "evil.example", ""]) | words,
        "Origin": st.sampled_from(["null", "http://127.0.0.1", "http://", "://"]) | words,
        "Sec-Fetch-Site": st.sampled_from(["none", "same-origin", "cross-site"]) | words,
        "Cookie": words.map("lorpman-token={}".format) | words,
        "Content-Type": st.sampled_from(["application/json; charset=x", "text/plain"]) | words,
        "Content-Length": st.sampled_from(["-1", "1e9", "10" * 12, ""]) | words,
        "Range": st.just("bytes=9-1") | words,
        "If-Modified-Since": words,
        "Accept-Encoding": words,
    }
    names = draw(st.lists(st.sampled_from(sorted(known)), max_size=2, unique=True))
    return {name: draw(known[name]) for name in names}


paths = st.sampled_from(
    ["", "export", "pictures/digits/0", "_dash-layout", "assets/x", "_dash-component-suites/x"]
) | st.text(max_size=20).map(lambda text: quote(text, safe="/.", errors="replace"))
queries = st.dictionaries(
    st.sampled_from(["run", "alpha", "format", "token"]) | words,
    st.sampled_from(["digits", "0.5,0.5", "1,nan", "9" * 5000, "safetensors", "1e400,0", ","])
    | st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
    | numbers.map(str),
    max_size=4,
).map(urlencode)


@pytest.fixture(scope="module")
def asker(served):
    return Asker(served)


@pytest.fixture(scope="module")
def stranger(digits):
    """A client without the token of a page that others can reach."""
    with serving([digits], host="0.0.0.0") as explorer:
        yield Client(explorer.server.app)


def check(answer, capfd):
    """An answer, or a refusal that says nothing about how the server works inside."""
    # What went wrong inside would stand on the terminal.
    assert "Traceback" not in capfd.readouterr().err
    assert answer.status_code < 500, answer.data
    assert answer.status_code < 400 or len(answer.data) < 1000
    assert b"Traceback" not in answer.data
    assert b"site-packages" not in answer.data


def check_call(asker, capfd, data):
    point, search = asker.body(GOOD), asker.search_body("digits", [0.9, None])
    # A search takes seconds of a slow machine, a point none.
    body = data.draw(mangled(data.draw(st.sampled_from([point, point, search]))))
    check(asker.post(body, headers=data.draw(headers())), capfd)


@cases(100)
@given(data=st.data())
def test_calls(asker, capfd, data):
    check_call(asker, capfd, data)


@pytest.mark.soak
@cases(soaked(1000))
@given(data=st.data())
def test_calls_for_long(asker, capfd, data):
    check_call(asker, capfd, data)


def check_address(asker, stranger, capfd, path, query, headers):
    check(asker.get(f"{path}?{query}", headers=headers), capfd)
    answer = stranger.get(f"/{path}?{query}", headers=headers)
    check(answer, capfd)
    assert answer.status_code >= 400


@cases(80)
@given(path=paths, query=queries, headers=headers())
def test_addresses(asker, stranger, capfd, path, query, headers):
    check_address(asker, stranger, capfd, path, query, headers)


@pytest.mark.soak
@cases(soaked(700))
@given(path=paths, query=queries, headers=headers())
def test_addresses_for_long(asker, stranger, capfd, path, query, headers):
    check_address(asker, stranger, capfd, path, query, headers)


@st.composite
def raw_requests(draw):
    """Bytes as no browser sends them: a request with something else in one place, or noise."""
    body = json.dumps({"output": "x"}).encode()
    request = b"POST /_dash-update-component HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n"
    request += b"Content-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(body) + body
    start, length = draw(st.integers(0, len(request))), draw(st.integers(0, 30))
    other = draw(st.binary(max_size=30) | st.sampled_from([b"\r\n\r\n", b"\0" * 9, b"9" * 5000]))
    return request[:start] + other + request[start + length :]


def check_bytes(served, asker, capfd, request):
    """Whatever comes back, if anything does: the next one is answered."""
    with socket.create_connection(served.server.server_address[:2], timeout=10) as connection:
        connection.sendall(request)
        connection.shutdown(socket.SHUT_WR)
        answer = connection.recv(65536)
    assert b"HTTP/1.1 5" not in answer
    assert b"Traceback" not in answer
    assert "Traceback" not in capfd.readouterr().err
    assert len(asker.ask("digits", [0.25, 0.75])) == 2


@cases(20)
@given(request=raw_requests())
def test_bytes(served, asker, capfd, request):
    check_bytes(served, asker, capfd, request)


@pytest.mark.soak
@cases(soaked(300))
@given(request=raw_requests())
def test_bytes_for_long(served, asker, capfd, request):
    check_bytes(served, asker, capfd, request)
