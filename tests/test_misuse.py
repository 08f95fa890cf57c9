"""Garbage in the place of any argument of a public callable: a success, or one clear line."""

import warnings
from contextlib import chdir
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import lorpman as lp
from command_line import files
from misuse import CALLS, GARBAGE
from misused_runs import RUN_CALLS
from soak_size import soaked

_MODES = (torch.enable_grad, torch.no_grad, torch.inference_mode)
# Not called with arguments of the user: results, base classes, errors, what a rule needs, and a
# plain pair.
_NOT_CALLED = {
    "Balanced", "Choice", "Cosine", "Epo", "Epoch", "Exported", "Hypervolume",
    "HypervolumeAscent", "Manifold", "Masked", "Order", "ParameterManifold", "Rule", "Selection",
    "Step", "Term", "TrainingDiverged", "UsageError", "export_network", "rules",
    "Comparison", "Method", "Run", "SettingsGroup", "Tuned",
}  # fmt: skip


def _misuse(data, calls):
    """One call with one or two arguments replaced."""
    name = data.draw(st.sampled_from([name for name in calls if name != "SmoothChebyshev"]))
    call = calls[name]
    mode = data.draw(st.sampled_from(_MODES))
    with TemporaryDirectory() as folder, chdir(folder), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        arguments = call.make(Path(folder))
        names = st.sampled_from([name for name in arguments if name not in call.keep])
        for replaced in data.draw(st.lists(names, min_size=1, max_size=2, unique=True)):
            arguments[replaced] = data.draw(GARBAGE)
        if name == "fit":
            arguments["progress"] = False
        before, said = files(Path(folder)), "nothing"
        try:
            with mode():
                call.target(**arguments)
        except (ValueError, TypeError, lp.TrainingDiverged) as error:
            said = str(error)
            # What is refused leaves nothing; a training that diverges may have saved epochs.
            if calls is RUN_CALLS and not isinstance(error, lp.TrainingDiverged):
                assert files(Path(folder)) == before, said
    assert said.strip()
    assert len(said.splitlines()) == 1, f"more than one line: {said}"


_FUZZ = {"deadline": None, "database": None, "suppress_health_check": list(HealthCheck)}


@pytest.mark.slow
@settings(max_examples=200, derandomize=True, **_FUZZ)
@given(st.data())
def test_garbage_is_refused_in_one_line(data):
    _misuse(data, CALLS)


@pytest.mark.soak
@settings(max_examples=soaked(2000), **_FUZZ)
@given(st.data())
def test_much_garbage_is_refused_in_one_line(data):
    _misuse(data, CALLS)


@pytest.mark.slow
@settings(max_examples=20, derandomize=True, **_FUZZ)
@given(st.data())
def test_garbage_about_runs_is_refused_and_leaves_nothing(data):
    _misuse(data, RUN_CALLS)


@pytest.mark.soak
@settings(max_examples=soaked(500), **_FUZZ)
@given(st.data())
def test_much_garbage_about_runs_is_refused_and_leaves_nothing(data):
    _misuse(data, RUN_CALLS)


_WORKING = {name: call for name, call in (CALLS | RUN_CALLS).items() if name != "Front.load"}


@pytest.mark.parametrize("name", _WORKING)
def test_the_calls_work_without_garbage(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    _WORKING[name].target(**_WORKING[name].make(tmp_path))


def test_every_public_callable_is_called():
    assert set(lp.__all__) - _NOT_CALLED - set(CALLS) - set(RUN_CALLS) == set()
