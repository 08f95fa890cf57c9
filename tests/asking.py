"""Explorers that answer, and calls of their callbacks as the page's own script makes them."""

import json
from contextlib import contextmanager
from pathlib import Path

from werkzeug.test import Client

from lorpman.explorer.server import make_explorer


class Asker:
    """A client of a served explorer, without a browser."""

    def __init__(self, explorer):
        self.client = Client(explorer.server.app)
        self.base = explorer.url.partition("?")[0]
        dependencies = json.loads(self.get("_dash-dependencies").text)
        (self.output,) = [d["output"] for d in dependencies if "..now.data" in d["output"]]
        (self.search,) = [d["output"] for d in dependencies if "..found.data" in d["output"]]

    def get(self, path, **options):
        return self.client.get("/" + path, base_url=self.base, **options)

    def post(self, body, **options):
        options.setdefault("content_type", "application/json")
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        return self.client.post("/_dash-update-component", data=data, base_url=self.base, **options)

    def body(self, asked):
        """The call that asks for a point."""
        return {
            "output": self.output,
            "outputs": _outputs(self.output),
            "inputs": [{"id": "asked", "property": "data", "value": asked}],
            "changedPropIds": ["asked.data"],
            "parsedChangedPropsIds": ["asked.data"],
        }

    def search_body(self, run, bounds):
        """The call that asks for what reaches ``bounds``, one per task."""
        fields = [
            {"id": {"type": "bound", "index": i}, "property": "value", "value": bound}
            for i, bound in enumerate(bounds)
        ]
        return {
            "output": self.search,
            "outputs": _outputs(self.search),
            "inputs": [{"id": "find", "property": "n_clicks", "value": 1}],
            "changedPropIds": ["find.n_clicks"],
            "state": [fields, {"id": "run", "property": "value", "value": run}],
        }

    def ask(self, run, alpha):
        """The scores at a preference."""
        answer = self.post(self.body({"run": run, "alpha": alpha, "serial": 1}))
        assert answer.status_code == 200, answer.text
        return json.loads(answer.text)["response"]["now"]["data"]["scores"]


def _outputs(joined):
    """Dash's name of several outputs, taken apart."""
    names = joined.strip(".").split("...")
    return [dict(zip(("id", "property"), name.rsplit(".", 1), strict=True)) for name in names]


@contextmanager
def serving(paths, root=Path("nowhere"), **options):
    """An explorer that answers in a thread of its own."""
    explorer = make_explorer(paths, root, port=0, **options)
    explorer.start()
    try:
        yield explorer
    finally:
        explorer.close()
