"""Who may ask the page for what. Everything from outside passes here before anything else."""

import hmac
import re
import secrets
import sys
import traceback
from collections.abc import Set
from typing import Any

from flask import Flask, Request, Response, redirect, request
from werkzeug.exceptions import HTTPException

from lorpman.explorer.bounded_worker import Busy

LOOPBACK = ("127.0.0.1", "localhost", "::1")
# Bytes; what the page itself sends is far smaller, even for 40 tasks.
_LARGEST_BODY = 64 * 1024
_COOKIE = "lorpman-token"
_CALLBACK = "/_dash-update-component"
_OPEN_PATHS = ("/", "/_dash-layout", "/_dash-dependencies", "/_favicon.ico", "/export", _CALLBACK)
_OPEN_FOLDERS = ("/assets/", "/_dash-component-suites/")
_PICTURE = re.compile(r"/pictures/[^/]+/\d{1,4}")


class RequestRefused(Exception):
    """A request that cannot be answered; the message is for the one who asked.

    Args:
        message: One plain line.
        code: The HTTP status.
    """

    def __init__(self, message: str, code: int = 400) -> None:
        super().__init__(message)
        self.code = code


def new_token() -> str:
    """A secret for an address that others can reach."""
    return secrets.token_urlsafe(24)


def guard_requests(
    server: Flask,
    host: str,
    token: str | None,
    outputs: Set[str],
    policy: str,
    framed: bool = False,
) -> None:
    """Check every request to ``server``, and answer errors without saying how it works inside.

    Args:
        server: The application to guard.
        host: The address that it listens on.
        token: The secret that a request must hold; None where this machine alone can ask.
        outputs: The callbacks that there are, by Dash's names of their outputs.
        policy: The Content-Security-Policy: what browsers may load.
        framed: Whether another page may hold this one inside; the policy says which.
    """
    server.config["MAX_CONTENT_LENGTH"] = _LARGEST_BODY

    @server.before_request
    def check_request() -> Any:
        # Cheap checks first; the body is read only of requests that may be answered.
        _check_host(request, host)
        _check_path(request.path)
        _check_origin(request)
        if token is not None and (answer := _check_token(request, token)) is not None:
            return answer
        if request.path == _CALLBACK:
            _check_body(request, outputs)
        return None

    @server.after_request
    def add_headers(response: Response) -> Response:
        response.headers["Content-Security-Policy"] = policy
        response.headers["X-Content-Type-Options"] = "nosniff"
        if not framed:
            response.headers["X-Frame-Options"] = "DENY"
        response.headers["Referrer-Policy"] = "no-referrer"
        response.headers["Cross-Origin-Resource-Policy"] = "same-origin"
        return response

    server.register_error_handler(Exception, _answer_error)


def _answer_error(error: Exception) -> tuple[str, int]:
    """One plain line; what went wrong inside stands on the terminal only."""
    if isinstance(error, RequestRefused):
        return str(error), error.code
    if isinstance(error, Busy):
        return "busy: too many requests are waiting", 503
    if isinstance(error, HTTPException):
        return error.name.lower(), error.code or 400
    if not _is_ours(error):
        # Dash could not read the rest of a call, or has no such file.
        return ("malformed call", 400) if request.path == _CALLBACK else ("not found", 404)
    traceback.print_exception(error, file=sys.stderr)
    return "internal error", 500


def _is_ours(error: Exception) -> bool:
    """Whether the error came out of our own code, rather than of reading a call."""
    frames = traceback.walk_tb(error.__traceback__)
    names = [frame.f_globals.get("__name__", "") for frame, _ in frames]
    return any(n.startswith("lorpman.") and n != __name__ for n in names)


def _check_host(given: Request, host: str) -> None:
    """A foreign name in Host is how a foreign page reaches this machine (DNS rebinding)."""
    name = _without_port(given.host)
    if host in LOOPBACK and name not in LOOPBACK:
        raise RequestRefused("unknown host", 403)
    # Behind every address, only the token can tell friend from foe.
    if host not in ("0.0.0.0", "::") and name not in (*LOOPBACK, host.lower()):
        raise RequestRefused("unknown host", 403)


def _without_port(netloc: str) -> str:
    """The name in a Host header.

    >>> _without_port("127.0.0.1:8050"), _without_port("[::1]:8050"), _without_port("LOCALHOST")
    ('127.0.0.1', '::1', 'localhost')
    """
    if netloc.startswith("["):
        return netloc[1:].partition("]")[0].lower()
    return netloc.partition(":")[0].lower()


def _check_path(path: str) -> None:
    """Dash would answer any other path with the page."""
    known = path in _OPEN_PATHS or path.startswith(_OPEN_FOLDERS) or _PICTURE.fullmatch(path)
    if not known:
        raise RequestRefused("not found", 404)


def _check_origin(given: Request) -> None:
    """Other sites may link to the page, and nothing else."""
    # Programs and old browsers do not send it; the calls of a browser still have an Origin.
    site = given.headers.get("Sec-Fetch-Site", "none")
    if site not in ("none", "same-origin") and given.path != "/":
        raise RequestRefused("foreign request", 403)
    origin = given.headers.get("Origin")
    if origin is not None and origin.partition("://")[2].lower() != given.host.lower():
        raise RequestRefused("foreign request", 403)


def _check_token(given: Request, token: str) -> Any:
    """The token stands in a cookie, or once in the address, from where it moves to the cookie."""
    shown = given.args.get("token")
    if shown is not None:
        if not _equal(shown, token):
            raise RequestRefused("wrong token", 403)
        rest = "&".join(
            part for part in given.query_string.decode("ascii", "replace").split("&")
            if not part.startswith("token=")
        )  # fmt: skip
        answer = redirect("/" + (f"?{rest}" if rest else ""))
        # Out of the address, which stays in histories and is passed on with links; out of reach of
        # scripts. Lax and not Strict: a link from a chat should open the page.
        answer.set_cookie(_COOKIE, token, httponly=True, samesite="Lax")
        return answer
    if not _equal(given.cookies.get(_COOKIE, ""), token):
        raise RequestRefused("this page needs the token that lorpman explore has printed", 403)
    return None


def _equal(given: str, token: str) -> bool:
    # In constant time: how long == takes tells how many characters are right.
    return hmac.compare_digest(given.encode("utf-8", "replace"), token.encode())


def _check_body(given: Request, outputs: Set[str]) -> None:
    """The outer form of a call of a callback."""
    body = given.get_json()
    if not isinstance(body, dict) or body.get("output") not in outputs:
        raise RequestRefused("unknown call")
    for name in ("inputs", "changedPropIds"):
        if not isinstance(body.get(name), list):
            raise RequestRefused("malformed call")
    if not isinstance(body.get("state", []), list):
        raise RequestRefused("malformed call")
