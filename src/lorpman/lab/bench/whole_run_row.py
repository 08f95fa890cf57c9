"""What a whole ``lorpman train`` takes beyond its training steps."""

import tempfile
from pathlib import Path
from typing import Any

from lorpman.errors import UsageError
from lorpman.lab.bench.benchmark_row import Measurement, Skipped
from lorpman.lab.bench.fresh_process import call_in_fresh_process
from lorpman.lab.bench.timing import Conditions
from lorpman.lab.problems.registry import get_problem


def whole_run(conditions: Conditions) -> Measurement:
    """The command from start to exit, at the preset's length, against the sum of its own steps.

    Both are taken in one run: a step is timed each time ``fit`` takes one, and everything else
    (start, imports, data, the front after every epoch, checkpoints, the last evaluation,
    pictures) happens between them.

    Args:
        conditions: How to measure, and where the data is.

    Returns:
        The ratio.

    Raises:
        Skipped: If the run is quick, or MultiMNIST is not there.
    """
    if conditions.quick:
        raise Skipped("quick: the whole command takes minutes")
    missing = _why_no_data(conditions.data)
    if missing:
        total, steps, _ = train_once("multidigits", conditions)
        raise Skipped(missing, {"multidigits, whose steps are tiny": total / steps})
    total, steps, count = train_once("multimnist", conditions)
    note = f"one run of {count} steps"
    return Measurement(
        total / steps, {"whole command": [total], "sum of its steps": [steps]}, {}, note
    )


def _why_no_data(root: Path) -> str:
    problem = get_problem("multimnist")
    try:
        problem.load(root, problem.options())
    except UsageError as error:
        return f"no MultiMNIST: {error}"
    return ""


def train_once(
    problem: str, conditions: Conditions, options: tuple[str, ...] = ()
) -> tuple[float, float, int]:
    """Run ``lorpman train`` once, in a process of its own.

    Args:
        problem: What is trained.
        conditions: Threads, clock and the folder of the data.
        options: Further ones of the command.

    Returns:
        Seconds of the command, seconds of its steps, and how many steps there were.
    """
    with tempfile.TemporaryDirectory() as folder:
        out, data = str(Path(folder) / "run"), str(conditions.data)
        command = ["train", problem, "--out", out, "--data", data, *options]
        arguments = {"command": command, "threads": conditions.threads}
        steps, done = call_in_fresh_process(
            f"{__name__}.timed_command", arguments, conditions.threads
        )
    if conditions.cpu_time:
        return done.cpu_seconds, steps["cpu_steps"], steps["count"]
    return done.seconds, steps["steps"], steps["count"]


def timed_command(command: list[str], threads: int) -> dict[str, Any]:
    """Run a command line in this process and time every training step in it.

    Args:
        command: What stands behind ``lorpman``.
        threads: How many torch may use.

    Returns:
        Seconds of all steps on the wall and of the processor, and how many there were.
    """
    import runpy
    import sys
    import time

    import torch

    from lorpman.training import fit as fit_module

    torch.set_num_threads(threads)
    spent = {"steps": 0.0, "cpu_steps": 0.0, "count": 0}
    take_step = fit_module.train_step

    def timed(*given: Any, **named: Any) -> Any:
        began, cpu = time.perf_counter(), time.process_time()
        losses = take_step(*given, **named)
        spent["steps"] += time.perf_counter() - began
        spent["cpu_steps"] += time.process_time() - cpu
        spent["count"] += 1
        return losses

    # Replaced from outside, so that fit itself carries no clock.
    fit_module.train_step = timed
    try:
        # As a user starts it; the command line stands above this room and is not imported here.
        sys.argv = ["lorpman", *command]
        runpy.run_module("lorpman", run_name="__main__")
    except SystemExit as stop:
        # A command ends by it, also when all went well.
        if stop.code:
            raise
    return spent
