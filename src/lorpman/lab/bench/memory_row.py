"""Peak memory of a training step, taken in fresh processes."""

import os
from collections.abc import Callable, Iterable
from pathlib import Path

import torch
from torch import Tensor, nn

from lorpman.lab.bench.benchmark_row import Measurement
from lorpman.lab.bench.fresh_process import call_in_fresh_process
from lorpman.lab.bench.steps import factors, fit_step, mean_loss
from lorpman.lab.bench.timing import Conditions, Times, ratio
from lorpman.lab.bench.workload import Workload, lenet, vgg

_NOTE = (
    "resident memory at its peak, beyond what a process has before it builds anything; "
    "without optimiser state on either side"
)


def vgg_memory(conditions: Conditions) -> Measurement:
    """LORPMAN's step against b plain forward passes back-propagated together.

    The optimiser's step is left out: its state is a further copy of the parameters on both
    sides, which would only draw the ratio towards one.

    Args:
        conditions: How to measure; a quick run has the network at half its width.

    Returns:
        The ratio of the peaks of resident memory.
    """
    width = 32 if conditions.quick else 64
    peaks: Times = {}
    for _ in range(conditions.rounds(60.0)):
        for who in ("plain", "lorpman"):
            arguments = {"who": who, "width": width, "threads": conditions.threads}
            peak, _ = call_in_fresh_process(
                f"{__name__}.peak_of_step", arguments, conditions.threads
            )
            for what, value in peak.items():
                peaks.setdefault(f"{who}, {what}", []).append(value)
    also = {
        "counted in tensors alone": ratio(peaks, "lorpman, tensors", "plain, tensors"),
        "with the factors' parameters aside, but not their gradients": ratio(
            peaks, "lorpman, resident with gradients of factors", "plain, resident"
        ),
    }
    note = _NOTE + ("; quick: the network at half its width" if conditions.quick else "")
    return Measurement(ratio(peaks, "lorpman, resident", "plain, resident"), peaks, also, note)


def peak_of_step(who: str, width: int, threads: int) -> dict[str, float]:
    """Measure the peak of a step, in this process.

    Args:
        who: ``lorpman`` or ``plain``.
        width: That of the network's first layer.
        threads: How many torch may use.

    Returns:
        Bytes, counted in several ways; LORPMAN's without its factors and their gradients.
    """
    torch.set_num_threads(threads)
    # Otherwise what libraries load at the first step would count as the step's own.
    _warm_up()
    before = _resident()
    workload = vgg(width)
    step, module = _lorpman(workload) if who == "lorpman" else _plain(workload)
    of_factors = _bytes(factors(module))
    step()
    # Twice: the factors and their gradients, which a plain network does not have.
    resident = _peak_resident() - before - 2 * of_factors
    # The allocator's count starts with the call, so nothing may be there that the call frees.
    module.zero_grad()
    tensors = peak_of_tensors(step) + _bytes(module.parameters()) - 2 * of_factors
    return {
        "resident": float(resident),
        "resident with gradients of factors": float(resident + of_factors),
        "tensors": float(tensors),
    }


def _bytes(parameters: Iterable[Tensor]) -> int:
    return sum(p.numel() * p.element_size() for p in parameters)


def _lorpman(workload: Workload) -> tuple[Callable[[], object], nn.Module]:
    step = fit_step(workload)
    # A step without its last line; see vgg_memory.
    step.run.placed.optimizer.step = lambda: None
    return step, step.run.model


def _plain(workload: Workload) -> tuple[Callable[[], object], nn.Module]:
    torch.manual_seed(0)
    network, batch = workload.network().train(), workload.plain_batch()

    def step() -> None:
        network.zero_grad()
        passes = range(workload.spec.training.window)
        losses = [mean_loss(network(batch[0]), batch, workload.tasks) for _ in passes]
        torch.stack(losses).sum().backward()

    return step, network


def peak_of_tensors(call: Callable[[], object]) -> int:
    """The most bytes of tensors that lived at once in ``call``, beyond those before it.

    Counted by PyTorch's allocator, so exact, and the same however busy the machine is; what
    libraries below PyTorch take for themselves is not in it, nor what ``call`` frees of what was
    there before.

    Args:
        call: What is watched; it is called once.
    """
    # Above all its levels: the profiler's library otherwise writes a line on standard error.
    os.environ.setdefault("KINETO_LOG_LEVEL", "6")
    activities = [torch.profiler.ProfilerActivity.CPU]
    with torch.profiler.profile(activities=activities, profile_memory=True) as profile:
        call()
    assert profile.profiler is not None
    results = profile.profiler.kineto_results
    assert results is not None
    changes = [e for e in results.events() if e.name() == "[memory]"]
    now = peak = 0
    for event in sorted(changes, key=lambda event: event.start_ns()):
        now += event.nbytes()
        peak = max(peak, now)
    return peak


def _warm_up() -> None:
    """Import what training imports late, make threads, load kernels: it all takes memory once."""
    fit_step(lenet(batch=4))()


def _resident() -> int:
    return _from_status("VmRSS")


def _peak_resident() -> int:
    """Not ``ru_maxrss``: Linux lets a new process start with the peak of the one before it."""
    return _from_status("VmHWM")


def _from_status(field: str) -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    (line,) = [line for line in lines if line.startswith(f"{field}:")]
    return 1024 * int(line.split()[1])
