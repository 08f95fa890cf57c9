"""How long the explorer takes to answer a moved slider, from the request to its last byte.

    python benchmarks/live.py runs/compare/multimnist/lorpman-0

opens the run as ``lorpman explore`` does and asks over HTTP for preferences that it has not seen:
building the network, scoring it on the held-out samples and writing the answer all count.
"""

import argparse
import json
import threading
import time
import urllib.request
from pathlib import Path
from typing import Any

import torch

from lorpman.explorer.live_run import round_preference
from lorpman.explorer.server import make_explorer
from lorpman.lab.runs.directory import data_root
from lorpman.preference import dirichlet

_WARM_UP = 5


def fetched(url: str, body: dict[str, Any] | None = None) -> Any:
    """What the server answers, read to the end."""
    headers = {"Content-Type": "application/json"}
    data = None if body is None else json.dumps(body).encode()
    with urllib.request.urlopen(urllib.request.Request(url, data, headers)) as answer:
        return json.loads(answer.read())


def question(output: str, run: str, alpha: tuple[float, ...]) -> dict[str, Any]:
    """The call of the page's script for one preference."""
    names = output.strip(".").split("...")
    asked = {"run": run, "alpha": alpha, "serial": 1}
    return {
        "output": output,
        "outputs": [dict(zip(("id", "property"), n.rsplit(".", 1), strict=True)) for n in names],
        "inputs": [{"id": "asked", "property": "data", "value": asked}],
        "changedPropIds": ["asked.data"],
    }


def answer_times(url: str, run: str, tasks: int, count: int) -> list[float]:
    """Milliseconds of ``count`` answers, in order of size."""
    dependencies = fetched(f"{url}_dash-dependencies")
    (output,) = [one["output"] for one in dependencies if "..now.data" in one["output"]]
    alphas = dirichlet(tasks, count + _WARM_UP, generator=torch.Generator().manual_seed(0))
    times = []
    for alpha in alphas:
        body = question(output, run, round_preference(alpha))
        started = time.perf_counter()
        fetched(f"{url}_dash-update-component", body)
        times.append(1000 * (time.perf_counter() - started))
    return sorted(times[_WARM_UP:])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("run", type=Path)
    parser.add_argument("--samples", type=int, default=1000)
    parser.add_argument("--count", type=int, default=100)
    given = parser.parse_args()
    explorer = make_explorer([given.run], data_root(None), port=0, samples=given.samples)
    (live,) = explorer.queries.live_runs.values()
    threading.Thread(target=explorer.server.serve_forever, daemon=True).start()
    times = answer_times(explorer.url, live.run.key, len(live.tasks), given.count)
    explorer.server.shutdown()
    explorer.close()
    print(
        f"{given.count} preferences on {live.held_samples:,} samples: median "
        f"{times[len(times) // 2]:.0f} ms, 95th percentile {times[int(0.95 * len(times))]:.0f} ms, "
        f"slowest {times[-1]:.0f} ms ({torch.get_num_threads()} threads)"
    )


if __name__ == "__main__":
    main()
