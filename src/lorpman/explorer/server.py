"""The explorer as a web server of this machine."""

import socket
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from dash import Dash
from werkzeug.serving import BaseWSGIServer, WSGIRequestHandler, make_server

from lorpman.errors import UsageError
from lorpman.explorer.callbacks import register_callbacks
from lorpman.explorer.live_run import LiveRun
from lorpman.explorer.opened_run import OpenedRun, Tell, open_runs, say_nothing
from lorpman.explorer.page import page_layout
from lorpman.explorer.page_script import register_page_script
from lorpman.explorer.queries import Queries
from lorpman.explorer.request_guard import LOOPBACK, guard_requests, new_token
from lorpman.explorer.routes import register_routes
from lorpman.lab.problems.problem import Problem

# Notebooks of this machine, in a browser or in an editor.
_FRAMES = "http://localhost:* http://127.0.0.1:* https://localhost:* vscode-webview:"
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


class _QuietHandler(WSGIRequestHandler):
    """Prints no line per request: a moved slider makes hundreds."""

    timeout = 60  # seconds; whoever sends nothing for so long is let go

    def log_request(self, code: int | str = "-", size: int | str = "-") -> None:
        """Print nothing about a request that was answered."""
        del code, size

    def log_error(self, format: str, *arguments: Any) -> None:
        """Print nothing about half-sent requests, which are the sender's business."""


@dataclass(frozen=True, eq=False)
class Explorer:
    """A server that is bound to its address, and waits to be run."""

    server: BaseWSGIServer
    """What answers requests."""
    queries: Queries
    """The opened runs that they are about."""
    url: str
    """With the token, where there is one."""

    _started: threading.Event = field(default_factory=threading.Event)

    def start(self) -> None:
        """Answer in a thread, until :meth:`close`."""
        self._started.set()
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def run(self) -> None:
        """Answer until interrupted."""
        try:
            self.server.serve_forever()
        finally:
            self.close()

    def close(self) -> None:
        """Free the address, and end the threads that answer and evaluate."""
        # It would wait forever for what was never started.
        if self._started.is_set():
            self.server.shutdown()
        self.server.server_close()
        self.queries.close()


def make_explorer(
    paths: Sequence[Path],
    root: Path,
    problem: Problem | None = None,
    *,
    host: str = "127.0.0.1",
    port: int = 8050,
    samples: int = 1000,
    tell: Tell = say_nothing,
) -> Explorer:
    """Open run directories, and serve them as :func:`serve_runs` does.

    Args:
        paths: The directories of the runs, all of the same tasks.
        root: Where datasets are.
        problem: What the runs were trained on, where that is not built in.
        host: The address to listen on.
        port: The port; 0 for any free one.
        samples: On how many test samples the moving point is scored at most.
        tell: Told what is being done, before it is done.

    Returns:
        The server, which waits to be run.

    Raises:
        UsageError: If a run cannot be opened, or the address cannot be listened on.
    """
    runs = open_runs(paths, root, problem, tell)
    return serve_runs(runs, host=host, port=port, samples=samples, tell=tell)


def serve_runs(
    runs: Sequence[OpenedRun],
    *,
    host: str = "127.0.0.1",
    port: int = 8050,
    samples: int = 1000,
    framed: bool = False,
    tell: Tell = say_nothing,
) -> Explorer:
    """Prepare a page and bind to an address; one that others can reach gets a token.

    Args:
        runs: All of the same tasks.
        host: The address to listen on.
        port: The port; 0 for any free one.
        samples: On how many test samples the moving point is scored at most.
        framed: Whether pages of this machine, such as a notebook's, may hold the page in a frame.
        tell: Told what is being done, before it is done.

    Returns:
        The server, which waits to be run.

    Raises:
        UsageError: If the address cannot be listened on.
    """
    live_runs = {run.key: LiveRun(run, samples, tell) for run in runs if run.mode != "stored"}
    tell("drawing the page")
    queries = Queries(runs, live_runs)
    app = _make_app(runs, live_runs, queries)
    token = None if host in LOOPBACK else new_token()
    policy = _content_policy(app, _FRAMES if framed else "'none'")
    guard_requests(app.server, host, token, set(app.callback_map), policy, framed)
    server, port = _bind(app.server, host, port)
    shown = f"[{host}]" if ":" in host else host
    url = f"http://{shown}:{port}/" + (f"?token={token}" if token else "")
    return Explorer(server, queries, url)


def _make_app(
    runs: Sequence[OpenedRun], live_runs: Mapping[str, LiveRun], queries: Queries
) -> Dash:
    """The Dash application; everything it needs is served from here."""
    app = Dash(
        "lorpman",
        title=f"lorpman: {runs[0].origin.problem}",
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
    app.layout = page_layout(runs, live_runs)
    register_page_script(app)
    register_callbacks(app, queries)
    register_routes(app.server, queries)
    # What Dash does at the first request of a server; callbacks have no names before it.
    app._setup_server()
    return app


def _content_policy(app: Dash, frames: str) -> str:
    """Nothing is loaded from or sent to another place, or framed by others than ``frames``."""
    # Dash writes scripts into the page itself; their hashes let them run. Its renderer and plotly
    # make functions out of text, hence unsafe-eval.
    hashes = " ".join(app.csp_hashes())
    return (
        "default-src 'self'; "
        f"script-src 'self' 'unsafe-eval' {hashes}; "
        "style-src 'self' 'unsafe-inline'; "
        "img-src 'self' data: blob:; font-src 'self' data:; worker-src 'self' blob:; "
        "connect-src 'self'; object-src 'none'; base-uri 'none'; form-action 'none'; "
        f"frame-ancestors {frames}"
    )


def _bind(app: Any, host: str, port: int) -> tuple[BaseWSGIServer, int]:
    """Listen on an address; the server and the port that it got."""
    # Nothing would mean every address of this machine.
    if not host.strip():
        raise UsageError("the host to listen on is empty; leave it out for this machine alone")
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # Bound by hand: werkzeug ends the process when the address is taken.
    sock = socket.socket(family, socket.SOCK_STREAM)
    try:
        # So that the same port can be had right after an explorer was ended.
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.bind((host, port))
        sock.listen(128)
    except (OSError, OverflowError) as error:
        sock.close()
        raise UsageError(
            f"cannot listen on {host}, port {port}: {error}; choose another --port (0: any free)"
        ) from None
    bound_port = sock.getsockname()[1]
    try:
        server = make_server(
            host,
            bound_port,
            app,
            threaded=True,
            request_handler=_QuietHandler,
            fd=sock.fileno(),
        )
    finally:
        # werkzeug has duplicated the descriptor.
        sock.close()
    return server, bound_port
