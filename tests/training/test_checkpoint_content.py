import math
from pathlib import Path

import pytest
import torch

from lorpman import UsageError
from lorpman.training import checkpoint
from lorpman.training.checkpoint import DamagedCheckpoint
from lorpman.training.checkpoint_content import check_model_state, check_training_state
from small_training import fit_small

PATH = Path("c.safetensors")


@pytest.fixture(scope="module")
def state(tmp_path_factory):
    """What a real training saves."""
    path = tmp_path_factory.mktemp("run") / "c.safetensors"
    fit_small(epochs=1, averaging=0.5, checkpoint=path)
    return checkpoint.load(path)


def test_what_training_saves_passes(state):
    check_model_state(state, PATH)
    check_training_state(state, PATH)


@pytest.mark.parametrize("key", ["model", "epochs_done", "losses", "optimizer", "rule", "frozen"])
def test_everything_that_training_needs_is_asked_for(state, key):
    forged = {name: value for name, value in state.items() if name != key}
    with pytest.raises(DamagedCheckpoint, match=f"^checkpoint c.safetensors is damaged: {key}: "):
        check_training_state(forged, PATH)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("model", []),
        ("model", {1: torch.ones(1)}),
        ("epochs_done", "x"),
        ("epochs_done", -1),
        ("epochs_done", True),
        ("epochs_done", 10**30),
        ("steps_done", 1.5),
        ("losses", [0.0]),
        ("seconds", float("nan")),
        ("seconds", -1.0),
        ("frozen", 1),
        ("averaging", {"weights": {}}),
        ("rule", None),
        ("optimizer", {"state": {}}),
        ("optimizer", {"state": [], "param_groups": []}),
        ("scheduler", "cosine"),
        ("scheduler_interval", "year"),
        ("optimizer", {"state": {"0": {}}, "param_groups": []}),
        ("optimizer", {"state": {}, "param_groups": [{}]}),
        ("optimizer", {"state": {}, "param_groups": [{"params": ["x"]}]}),
        ("losses", torch.zeros(2, dtype=torch.int64)),
        ("losses", torch.zeros(2, 2)),
        ("losses", torch.tensor([math.nan, 0.0])),
        ("last_rate", math.inf),
        ("processes", {}),
        ("processes", [{}]),
    ],
)
def test_a_value_of_another_kind_is_named(state, key, value):
    with pytest.raises(DamagedCheckpoint, match=f": {key}[.:]") as refused:
        check_training_state({**state, key: value}, PATH)
    assert "\n" not in str(refused.value)


_BYTES = torch.zeros(9, dtype=torch.uint8)
_COUNTS = torch.zeros(1, dtype=torch.int64)


@pytest.mark.parametrize(
    "change",
    [
        {"preferences": "x"},
        {"preferences": torch.zeros(9)},
        {"preferences": _BYTES.view(3, 3)},
        {"random": {}},
        {"random": {"torch": torch.zeros(9)}},
        {"random": {"devices": None}},
        {"random": {"devices": [1]}},
        {"random": {"python": [3, (1,), None]}},
        {"random": {"python": (3, (1,), "x")}},
        {"random": {"numpy": ("MT19937", ["x"], 0, 0, 0.0)}},
        {"random": {"numpy": ("MT19937", [1], 0, 0, math.nan)}},
        {"random": {"loader": [torch.zeros(9)]}},
        {"data": "x"},
        {"data": {}},
        {"data": {"start": {}, "asked": _COUNTS}},
        {"data": {"asked": torch.zeros(1)}},
        {"data": {"asked": _COUNTS - 1}},
        {"data": {"asked": _COUNTS + 10**6}},
        {"data": {"asked": _COUNTS}},  # of a step, where the checkpoint is of none
    ],
)
def test_the_random_states_of_a_process_are_looked_at(state, change):
    (process,) = state["processes"]
    if change.get("random"):
        change = {"random": {**process["random"], **change["random"]}}
    elif isinstance(change.get("data"), dict) and change["data"]:
        change = {"data": {"start": process["random"], **change["data"]}}
    with pytest.raises(DamagedCheckpoint, match=r"^checkpoint c.safetensors is damaged: ") as said:
        check_training_state({**state, "processes": [{**process, **change}]}, PATH)
    assert "\n" not in str(said.value)


def test_another_version_is_told_apart_from_damage(state):
    old = {name: value for name, value in state.items() if name != "processes"}
    with pytest.raises(UsageError, match="of another version") as refused:
        check_training_state(old, PATH)
    assert not isinstance(refused.value, DamagedCheckpoint)
    for nothing in (None, [], "state"):
        with pytest.raises(DamagedCheckpoint):
            check_training_state(nothing, PATH)


def test_to_use_a_network_its_weights_are_enough(state):
    check_model_state({"model": state["model"]}, PATH)
    for forged in ({}, {"model": [1]}, None):
        with pytest.raises(DamagedCheckpoint):
            check_model_state(forged, PATH)
