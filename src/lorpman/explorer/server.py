"""The explorer as a web server of this machine."""

import socket
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dash import Dash
from werkzeug.serving import BaseWSGIServer, WSGIRequestHandler, make_server

from lorpman.errors import UsageError
from lorpman.explorer.callbacks import connect
from lorpman.explorer.live_evaluation import Live
from lorpman.explorer.opened_run import open_runs
from lorpman.explorer.page import layout
from lorpman.explorer.queries import Answers
from lorpman.explorer.request_guard import LOOPBACK, guard, new_token

_INDEX = """<!DOCTYPE html>
<html lang="en">
  <head>
    {%metas%}
    <title>{%title%}</title>
    {%favicon%}
    {%css%}
  </head>
  <body>
    {%app_entry%}
    <footer class="machinery">{%config%}{%scripts%}{%renderer%}</footer>
  </body>
</html>"""


class _Quiet(WSGIRequestHandler):
    """No line per request: a moved slider makes hundreds. Who sends nothing for long is let go."""

    timeout = 60

    def log_request(self, code: int | str = "-", size: int | str = "-") -> None:
        del code, size

    def log_error(self, format: str, *arguments: Any) -> None:
        """Half-sent requests are the sender's business."""


@dataclass(frozen=True, eq=False)
class Explorer:
    """A server that is bound to its address, and waits to be run."""

    server: BaseWSGIServer
    answers: Answers
    url: str
    """With the token, where there is one."""

    def run(self) -> None:
        """Answer until interrupted."""
        try:
            self.server.serve_forever()
        finally:
            self.close()

    def close(self) -> None:
        self.server.server_close()
        self.answers.close()


def make_explorer(
    paths: Sequence[Path],
    root: Path,
    *,
    host: str = "127.0.0.1",
    port: int = 8050,
    samples: int = 1000,
) -> Explorer:
    """Open ``paths`` and bind to an address; one that others can reach gets a token."""
    runs = open_runs(paths, root)
    lives = {run.key: Live(run, samples) for run in runs if run.mode != "stored"}
    answers = Answers(runs, lives)
    app = make_app(runs, lives, answers)
    token = None if host in LOOPBACK else new_token()
    outputs = set(app.callback_map)
    guard(app.server, host, token, lambda: outputs, _policy(app))
    server, port = _bind(app.server, host, port)
    shown = f"[{host}]" if ":" in host else host
    url = f"http://{shown}:{port}/" + (f"?token={token}" if token else "")
    return Explorer(server, answers, url)


def make_app(runs: Any, lives: Any, answers: Answers) -> Dash:
    """The Dash application; everything it needs is served from here."""
    app = Dash(
        "lorpman",
        title=f"lorpman: {runs[0].spec.problem.name}",
        update_title=None,  # type: ignore[arg-type]
        assets_folder=str(Path(__file__).parent / "assets"),
        serve_locally=True,
        index_string=_INDEX,
        meta_tags=[{"name": "color-scheme", "content": "light dark"}],
        compress=False,
        add_log_handler=False,
        enable_mcp=False,
        use_pages=False,
    )
    # Whatever the environment says: no debugger, and nobody is asked for a newer version.
    app.enable_dev_tools(
        debug=False,
        dev_tools_ui=False,
        dev_tools_hot_reload=False,
        dev_tools_prune_errors=False,
        dev_tools_disable_version_check=True,
    )
    app.layout = layout(runs, lives)
    connect(app, answers)
    # What Dash does at the first request of a server; callbacks have no names before it.
    app._setup_server()
    return app


def _policy(app: Dash) -> str:
    """Nothing is loaded from, sent to, or framed by another place."""
    hashes = " ".join(f"{one}" for one in app.csp_hashes())
    return (
        "default-src 'self'; "
        f"script-src 'self' 'unsafe-eval' {hashes}; "
        "style-src 'self' 'unsafe-inline'; "
        "img-src 'self' data: blob:; font-src 'self' data:; worker-src 'self' blob:; "
        "connect-src 'self'; object-src 'none'; base-uri 'none'; form-action 'none'; "
        "frame-ancestors 'none'"
    )


def _bind(app: Any, host: str, port: int) -> tuple[BaseWSGIServer, int]:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # Bound by hand: werkzeug ends the process when the address is taken.
    sock = socket.socket(family, socket.SOCK_STREAM)
    try:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.bind((host, port))
        sock.listen(128)
    except (OSError, OverflowError) as error:
        sock.close()
        raise UsageError(
            f"cannot listen on {host}, port {port}: {error}; choose another --port (0: any free)"
        ) from None
    taken = sock.getsockname()[1]
    try:
        server = make_server(
            host, taken, app, threaded=True, request_handler=_Quiet, fd=sock.fileno()
        )
    finally:
        sock.close()
    return server, taken
