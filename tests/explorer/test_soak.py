"""Many people at once: 40 clients that move sliders for two minutes."""

import json
import random
import re
import subprocess
import sys
import threading
import time
import urllib.request
from pathlib import Path

import pytest

from soak_size import soaked

CLIENTS = 40
SECONDS = soaked(120)


def resident(process):
    """Megabytes that a process holds."""
    text = Path(f"/proc/{process.pid}/status").read_text()
    return int(re.search(r"VmRSS:\s+(\d+)", text)[1]) / 1024


@pytest.fixture
def server(digits):
    command = [sys.executable, "-m", "lorpman", "explore", str(digits), "--port", "0"]
    started = subprocess.Popen([*command, "--no-browser"], stdout=subprocess.PIPE, text=True)
    with started as process:
        try:
            yield process, process.stdout.readline().split()[1]
        finally:
            process.terminate()


def moving(url, output, until, times, errors):
    """One client: a new preference as soon as the last one was answered, as the page does it."""
    names = output.strip(".").split("...")
    outputs = [dict(zip(("id", "property"), n.rsplit(".", 1), strict=True)) for n in names]
    serial = 0
    while time.monotonic() < until:
        serial += 1
        weight = round(random.random(), 4)
        asked = {"run": "digits", "alpha": [weight, round(1 - weight, 4)], "serial": serial}
        body = {
            "output": output,
            "outputs": outputs,
            "inputs": [{"id": "asked", "property": "data", "value": asked}],
            "changedPropIds": ["asked.data"],
        }
        request = urllib.request.Request(
            f"{url}_dash-update-component",
            json.dumps(body).encode(),
            {"Content-Type": "application/json"},
        )
        started = time.monotonic()
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:
                found = json.loads(answer.read())["response"]["now"]["data"]
            assert found["serial"] == serial
            assert found["alpha"] == asked["alpha"]
        except Exception as error:
            errors.append(repr(error))
        times.append(time.monotonic() - started)


def spell(url, output, seconds):
    """All clients for so many seconds; how long answers took, and what went wrong."""
    times, errors = [], []
    until = time.monotonic() + seconds
    threads = [
        threading.Thread(target=moving, args=(url, output, until, times, errors))
        for _ in range(CLIENTS)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return sorted(times), errors


@pytest.mark.soak
def test_forty_clients_for_two_minutes(server, capsys):
    process, url = server
    with urllib.request.urlopen(f"{url}_dash-dependencies") as answer:
        dependencies = json.loads(answer.read())
    (output,) = [d["output"] for d in dependencies if "..now.data" in d["output"]]
    _, errors = spell(url, output, SECONDS / 6)  # caches fill, threads start
    before = resident(process)
    times, more = spell(url, output, SECONDS)
    after = resident(process)
    with capsys.disabled():
        sys.stderr.write(
            f"\n{len(times)} answers to {CLIENTS} clients in {SECONDS} s, median "
            f"{1000 * times[len(times) // 2]:.0f} ms, slowest {1000 * times[-1]:.0f} ms; "
            f"memory {before:.0f} MB, then {after:.0f} MB\n"
        )
    assert errors + more == []
    assert len(times) >= CLIENTS
    assert after < before * 1.1 + 20
