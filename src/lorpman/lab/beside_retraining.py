"""Runs beside retrained networks: what one run gives up, and whether there is a trade-off."""

from collections.abc import Mapping
from math import isfinite
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from lorpman._files import owning, read_json
from lorpman.front.control import Control, compete
from lorpman.front.front import Front
from lorpman.front.front_file import write_front
from lorpman.lab.runs.evaluation import evaluate_run
from lorpman.lab.runs.spec import Spec
from lorpman.preference import grid, in_turn

RETRAIN = "retrain"
"""The method that trains one network per preference."""
CONTROL_FRONT = "front-control.json"
"""Of a run: its test front at the retrained preferences, and where order is measured."""
# Up to here a grid shows what every task gains by weight.
_MOST_TASKS_OF_GRID = 3


def control_preferences(retrained: Front) -> Tensor:
    """Where a front is measured against retrained networks: at theirs, and where order is taken.

    Args:
        retrained: The test front of the retrained networks.

    Returns:
        Preferences ``[n, m]``, each once: the retrained ones, the grid and, where the grid is too
        coarse for many tasks, those of :func:`~lorpman.preference.in_turn`.
    """
    m = len(retrained.tasks)
    parts = [retrained.alphas, grid(m)]
    if m > _MOST_TASKS_OF_GRID:
        parts.insert(1, in_turn(m))
    kept: list[Tensor] = []
    for alpha in torch.cat(parts):
        # A tolerance: the same preference comes with other roundings.
        if not any(torch.allclose(alpha, other, atol=1e-5) for other in kept):
            kept.append(alpha)
    return torch.stack(kept)


def control_of_run(spec: Spec, run: Path, retrained: Front, root: Path) -> Control:
    """What a finished continuous run gives up against retrained networks, on test data.

    The front at their preferences is kept in the run directory, and the numbers in its
    ``front.json``.

    Args:
        spec: The run's settings.
        run: Its directory.
        retrained: The test front of the retrained networks.
        root: Where datasets are.

    Raises:
        UsageError: If the two are of different tasks, or run or data are missing or damaged.
    """
    front = control_front(spec, run, retrained, root)
    control = front.control(retrained)
    with owning(run):
        kept = {
            **control.to_json(),
            "networks": len(retrained),
            "compete": compete([retrained]),
        }
        write_front(Front.load(run / "front.json"), run / "front.json", kept)
    return control


def kept_control(run: Path) -> dict[str, Any] | None:
    """What :func:`control_of_run` wrote into the ``front.json`` of a run; None if it did not.

    Args:
        run: the run directory.

    Returns:
        Finite numbers ``regret``, ``reach``, ``order_on_losses`` and ``networks``, and ``compete``;
        each None where it was not known.

    Raises:
        UsageError: if the file cannot be read.
    """
    document = read_json(run / "front.json", "front")
    kept = document.get("control") if isinstance(document, dict) else None
    if not isinstance(kept, dict):
        return None
    on_losses = kept.get("order_on_losses")
    correlation = on_losses.get("correlation") if isinstance(on_losses, dict) else None
    numbers = {key: kept.get(key) for key in ("regret", "reach", "networks")}
    numbers["order_on_losses"] = correlation
    # Whoever sent the run may have written anything there.
    sane = {key: value if _is_number(value) else None for key, value in numbers.items()}
    told = kept.get("compete")
    return {**sane, "compete": told if isinstance(told, bool) else None}


def _is_number(value: Any) -> bool:
    # A bool is an int to isinstance, and a mistake here.
    return type(value) in (int, float) and isfinite(value)


def control_front(spec: Spec, run: Path, retrained: Front, root: Path) -> Front:
    """The test front of a run at :func:`control_preferences`, evaluated once and then kept.

    Args:
        spec: The run's settings.
        run: Its directory.
        retrained: The test front of the retrained networks.
        root: Where datasets are.

    Raises:
        UsageError: If run or data are missing or damaged.
    """
    alphas = control_preferences(retrained)
    path = run / CONTROL_FRONT
    # A run that was trained on after it was kept has a newer front.
    if path.exists() and path.stat().st_mtime >= (run / "checkpoint.safetensors").stat().st_mtime:
        kept = Front.load(path)
        if kept.alphas.shape == alphas.shape and torch.allclose(kept.alphas, alphas, atol=1e-5):
            return kept
    front = evaluate_run(run, "test", root, spec.problem, alphas)
    with owning(run):
        front.save(path)
    return front


def retrained_fronts(runs: Mapping[tuple[str, int], Path]) -> dict[int, Front]:
    """The fronts of the retrained networks, by seed.

    Args:
        runs: Finished runs, by method and seed.
    """
    return {
        seed: Front.load(run / "front.json")
        for (method, seed), run in runs.items()
        if method == RETRAIN
    }
