"""What a run can switch on: torch.compile and bfloat16, against the step without them."""

import os
from collections.abc import Callable, Mapping
from typing import Any

import torch

from lorpman.lab.bench.fresh_process import call_in_fresh_process
from lorpman.lab.bench.steps import fit_step
from lorpman.lab.bench.timing import Conditions, Times, interleave, ratio
from lorpman.lab.bench.workload import Workload, census, lenet
from lorpman.training.devices import Engine

SWITCHES: dict[str, dict[str, Any]] = {
    "compile": {"compiled": True},
    "bf16-mixed": {"precision": "bf16-mixed"},
    "both": {"compiled": True, "precision": "bf16-mixed"},
}
NETWORKS: dict[str, Callable[[], Workload]] = {
    "MultiMNIST LeNet": lenet,
    "Census MLP": census,
}
_INSTRUCTIONS = "ONEDNN_MAX_CPU_ISA"
"""The variable that keeps the library below PyTorch from instructions that do not work."""


def compile_and_bf16(conditions: Conditions) -> dict[str, Any]:
    """Measure a step with every switch against the step without, for two networks.

    Args:
        conditions: How; a quick run measures nothing, since compiling takes longer than all else.

    Returns:
        A ratio for each network and switch, and the processor instructions that were allowed.
    """
    steps = [
        {
            "network": network,
            "switch": switch,
            **against_none(network, SWITCHES[switch], conditions),
        }
        for network in NETWORKS
        for switch in SWITCHES
        if not conditions.quick
    ]
    return {"steps": steps, "instructions": os.environ.get(_INSTRUCTIONS, "")}


def against_none(
    network: str, switched: Mapping[str, Any], conditions: Conditions
) -> dict[str, Any]:
    """Measure one switch in a process of its own.

    A processor that promises instructions which it does not have ends the process.

    Args:
        network: One of :data:`NETWORKS`.
        switched: The options of the engine.
        conditions: How to measure.

    Returns:
        The ratio and the rounds; or no ratio, and why there is none.
    """
    arguments = {
        "network": network,
        "switched": dict(switched),
        "threads": conditions.threads,
        "quick": conditions.quick,
    }
    try:
        times, _ = call_in_fresh_process(f"{__name__}.times_of", arguments, conditions.threads)
    except RuntimeError as error:
        return {"ratio": None, "note": str(error)}
    return {"ratio": ratio(times, "switched", "none"), "rounds": times}


def times_of(network: str, switched: Mapping[str, Any], threads: int, quick: bool) -> Times:
    """Time a network's step with and without a switch, in this process.

    Args:
        network: One of :data:`NETWORKS`.
        switched: The options of the engine.
        threads: How many torch may use.
        quick: Whether to take fewer rounds.

    Returns:
        The seconds of every round, ``none`` and ``switched``.
    """
    torch.set_num_threads(threads)
    workload = NETWORKS[network]()
    steps = {"none": fit_step(workload), "switched": fit_step(workload, engine=Engine(**switched))}
    for step in steps.values():
        step()  # the first one compiles
    return interleave(steps, Conditions(threads, quick))


def markdown(study: Mapping[str, Any]) -> str:
    """The study as a table, and below it what went wrong.

    Args:
        study: What :func:`compile_and_bf16` gave.
    """
    if not study["steps"]:
        return "Not part of a quick run."
    steps = {(step["network"], step["switch"]): step for step in study["steps"]}
    networks = dict.fromkeys(network for network, _ in steps)
    head = ["| a step of | " + " | ".join(SWITCHES) + " |", "|---|" + "---|" * len(SWITCHES)]
    body = [
        f"| {network} | "
        + " | ".join(_cell(steps.get((network, switch))) for switch in SWITCHES)
        + " |"
        for network in networks
    ]
    notes = [
        f"- {network}, {switch}: {step['note']}"
        for (network, switch), step in steps.items()
        if step["ratio"] is None
    ]
    if study["instructions"]:
        notes.append(f"- With `{_INSTRUCTIONS}={study['instructions']}`.")
    return "\n".join([*head, *body, *([""] if notes else []), *notes])


def _cell(step: Mapping[str, Any] | None) -> str:
    if step is None:
        return "-"
    return "failed" if step["ratio"] is None else f"{step['ratio']:.2f}"
