"""Where the page is served, and to whom."""

import json
import urllib.error
import urllib.request

import pytest

from asking import serving
from lorpman.errors import UsageError
from lorpman.explorer.server import make_explorer


def test_it_listens_on_this_machine_alone_unless_told(served):
    assert served.server.server_address[0] == "127.0.0.1"
    assert "token" not in served.url


def test_another_address_needs_the_token_at_every_door(digits):
    with serving([digits], host="0.0.0.0") as explorer:
        token = explorer.url.partition("token=")[2]
        assert len(token) >= 32
        base = explorer.url.partition("?")[0].replace("0.0.0.0", "127.0.0.1")
        paths = ("", "_dash-layout", "assets/explorer.js", "?token=" + "x" * len(token), "?token=")
        for path in paths:
            with pytest.raises(urllib.error.HTTPError) as refused:
                urllib.request.urlopen(base + path)
            assert refused.value.code == 403
            assert token not in refused.value.read().decode()
        opener = urllib.request.build_opener(urllib.request.HTTPCookieProcessor())
        with opener.open(f"{base}?alpha=0.3,0.7&token={token}") as answer:
            assert answer.status == 200
            assert answer.url.endswith("?alpha=0.3,0.7")
        with opener.open(base + "_dash-layout") as answer:
            assert json.loads(answer.read())


def test_an_address_that_is_taken_is_refused(served, digits):
    port = served.server.server_address[1]
    with pytest.raises(UsageError, match=f"cannot listen on 127.0.0.1, port {port}"):
        make_explorer([digits], digits, port=port)
