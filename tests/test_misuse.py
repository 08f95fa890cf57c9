"""Garbage in the place of any argument of a public callable: a success, or one clear line."""

import warnings
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import lorpman as lp
from misuse import CALLS, GARBAGE

_MODES = (torch.enable_grad, torch.no_grad, torch.inference_mode)
# Not called with arguments of the user: results, base classes, errors, what a rule needs, and a
# plain pair.
_NOT_CALLED = {
    "Balanced", "Choice", "Cosine", "Epo", "Epoch", "Exported", "Hypervolume",
    "HypervolumeAscent", "Manifold", "Masked", "Order", "ParameterManifold", "Rule", "Selection",
    "Step", "Term", "TrainingDiverged", "UsageError", "export_network", "rules",
    # What commands do too, and is fuzzed as such in tests/cli/test_garbage.py.
    "Comparison", "Method", "Problem", "Run", "SettingsGroup", "Splits", "Tuned", "compare",
    "explore", "open_run", "report", "train", "tune",
}  # fmt: skip


def _misuse(data):
    """One call with one or two arguments replaced."""
    name = data.draw(st.sampled_from([name for name in CALLS if name != "SmoothChebyshev"]))
    call = CALLS[name]
    mode = data.draw(st.sampled_from(_MODES))
    with TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        arguments = call.make(Path(folder))
        names = st.sampled_from([name for name in arguments if name not in call.keep])
        for replaced in data.draw(st.lists(names, min_size=1, max_size=2, unique=True)):
            arguments[replaced] = data.draw(GARBAGE)
        if name == "fit":
            arguments["progress"] = False
        said = "nothing"
        try:
            with mode():
                call.target(**arguments)
        except (ValueError, TypeError, lp.TrainingDiverged) as error:
            said = str(error)
    assert said.strip()
    assert len(said.splitlines()) == 1, f"more than one line: {said}"


_FUZZ = {"deadline": None, "database": None, "suppress_health_check": list(HealthCheck)}


@pytest.mark.slow
@settings(max_examples=200, derandomize=True, **_FUZZ)
@given(st.data())
def test_garbage_is_refused_in_one_line(data):
    _misuse(data)


@pytest.mark.soak
@settings(max_examples=2000, **_FUZZ)
@given(st.data())
def test_much_garbage_is_refused_in_one_line(data):
    _misuse(data)


@pytest.mark.parametrize("name", [name for name in CALLS if name != "Front.load"])
def test_the_calls_work_without_garbage(name, tmp_path):
    CALLS[name].target(**CALLS[name].make(tmp_path))


def test_every_public_callable_is_called():
    assert set(lp.__all__) - _NOT_CALLED - set(CALLS) == set()
