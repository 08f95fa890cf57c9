"""The rows about training steps: LORPMAN's against b plain ones."""

import math
from collections.abc import Callable
from pathlib import Path

from lorpman.lab.bench.benchmark_row import Measurement
from lorpman.lab.bench.member_layers import member_layers_step
from lorpman.lab.bench.steps import fit_step, plain_steps
from lorpman.lab.bench.timing import Conditions, Times, interleave, ratio
from lorpman.lab.bench.workload import Workload, census, lenet, resnet, vgg

TUNED = "with images laid out as ours and a fused optimiser"
_HALF_WIDTH = "quick: the network at half its width"
# Two PaMaLs of 20 networks each, with gradients and momentum: 3.6 GB each, and room to work in.
_PAMAL_BYTES = 9 * 2**30


def step_row(workload: Workload, conditions: Conditions, note: str = "") -> Measurement:
    """Measure LORPMAN's step against as many plain steps as it has preferences.

    Args:
        workload: What is trained.
        conditions: How to measure.
        note: What a reader must know about the number.

    Returns:
        The ratio, and the one against plain steps that are tuned as ours are.
    """
    times = interleave(_contenders(workload), conditions)
    return Measurement(ratio(times, "lorpman", "plain"), times, _second_numbers(times), note)


def _contenders(workload: Workload) -> dict[str, Callable[[], object]]:
    window = workload.spec.training.window
    return {
        "plain": plain_steps(workload, window),
        "lorpman": fit_step(workload),
        "plain, tuned": plain_steps(workload, window, tuned=True),
    }


def _second_numbers(times: Times) -> dict[str, float]:
    numbers = {f"against plain steps {TUNED}": ratio(times, "lorpman", "plain, tuned")}
    for rival in ("pamal, layers of members", "pamal, lp.Convex"):
        if rival in times:
            numbers[f"{rival}, against plain"] = ratio(times, rival, "plain")
    return numbers


def lenet_step(conditions: Conditions) -> Measurement:
    """LORPMAN's step on MultiMNIST's network against b plain ones.

    Args:
        conditions: How to measure.
    """
    return step_row(lenet(), conditions)


def census_step(conditions: Conditions) -> Measurement:
    """LORPMAN's step on Census's network against b plain ones.

    Args:
        conditions: How to measure.
    """
    return step_row(census(), conditions)


def resnet_step(conditions: Conditions) -> Measurement:
    """LORPMAN's step on CelebA's network against b plain ones.

    Args:
        conditions: How to measure; a quick run has the network at half its width.
    """
    workload = resnet(width=32 if conditions.quick else 64)
    return step_row(workload, conditions, _HALF_WIDTH if conditions.quick else "")


def vgg_step(conditions: Conditions) -> Measurement:
    """LORPMAN's step on VGG-16 against b plain ones.

    Beside it, PaMaL as it is publicly written, and ours.

    Args:
        conditions: How to measure; a quick run has the network at half its width.
    """
    workload = vgg(width=32 if conditions.quick else 64)
    contenders = _contenders(workload)
    note = _HALF_WIDTH if conditions.quick else ""
    if _available_memory() < _PAMAL_BYTES:
        note = f"without PaMaL, which needs {_PAMAL_BYTES / 2**30:.0f} GiB of free memory"
    else:
        contenders["pamal, layers of members"] = member_layers_step(workload)
        contenders["pamal, lp.Convex"] = fit_step(workload, "pamal")
    times = interleave(contenders, conditions)
    return Measurement(ratio(times, "lorpman", "plain"), times, _second_numbers(times), note)


def _available_memory() -> float:
    """Bytes that can be taken without swapping; no limit where the system does not tell."""
    try:
        lines = Path("/proc/meminfo").read_text().splitlines()
    except OSError:
        return math.inf
    available = [line.split() for line in lines if line.startswith("MemAvailable:")]
    return 1024 * float(available[0][1]) if available else math.inf
