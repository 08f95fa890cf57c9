"""The addresses beside the page: exported networks, and pictures of inputs."""

from flask import Flask, Response, request

from lorpman.errors import UsageError
from lorpman.explorer.queries import Queries
from lorpman.explorer.request_guard import RequestRefused


def register_routes(server: Flask, queries: Queries) -> None:
    """Answer ``/export`` and ``/pictures``; request_guard.py must let them through.

    Args:
        server: The application.
        queries: What answers.
    """

    @server.get("/export")
    def send_export() -> Response:
        run = queries.run_named(request.args.get("run"))
        try:
            given = [float(part) for part in request.args.get("alpha", "").split(",")]
        except ValueError:
            raise RequestRefused("a preference is numbers with commas") from None
        alpha = queries.read_alpha(run, given)
        suffix = request.args.get("format", "")
        try:
            content = queries.export(run, alpha, suffix)
        except UsageError as error:
            raise RequestRefused(str(error), 409) from None
        # The suffix is safe in a header by now: an unknown one was refused above.
        name = f"{run.origin.problem}-{run.origin.method}-{suffix}.zip"
        disposition = {"Content-Disposition": f'attachment; filename="{name}"'}
        return Response(content, mimetype="application/zip", headers=disposition)

    @server.get("/pictures/<key>/<int:card>")
    def send_picture(key: str, card: int) -> Response:
        live = queries.live_runs.get(queries.run_named(key).key)
        if live is None or card >= len(live.samples.shown):
            raise RequestRefused("not found", 404)
        content = live.samples.inputs[card].picture
        if content is None:
            raise RequestRefused("not found", 404)
        # The inputs stay the same while the preference moves, so browsers may keep them.
        return Response(content, mimetype="image/png", headers={"Cache-Control": "max-age=3600"})
