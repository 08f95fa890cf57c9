import sys

import pytest

from command_line import run
from lorpman import UsageError
from lorpman.lab.methods.registry import get_method, method_names
from lorpman.lab.problems.registry import get_problem, problem_names
from lorpman.lab.runs.spec import Spec
from small_problem import SOURCE

METHOD = """
import lorpman as lp
from lorpman.lab.settings import NoSettings

METHOD = lp.Method(
    "half-and-half", "equal weights", "single", NoSettings,
    lambda network, m, shared, settings: lp.Single(network, m, shared),
    lambda settings: lp.Linear(),
)
"""


@pytest.fixture
def package(tmp_path, monkeypatch):
    """An installed package that adds a problem, a method, and one of each that is broken."""
    name = f"added_{tmp_path.name}".replace("-", "_")
    (tmp_path / f"{name}.py").write_text(SOURCE + METHOD)
    (tmp_path / f"{name}_broken.py").write_text("import no_such_package")
    info = tmp_path / f"{name}-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(
        f"[lorpman.problems]\nsmall = {name}:PROBLEM\nbroken = {name}_broken:PROBLEM\n"
        f"other = {name}:PROBLEM\n"
        f"[lorpman.methods]\nhalf-and-half = {name}:METHOD\nlame = {name}_broken:METHOD\n"
        f"wrong = {name}:PROBLEM\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    yield name
    for module in (name, f"{name}_broken"):
        sys.modules.pop(module, None)


def test_they_stand_in_the_lists(package, capsys):
    assert {"small", "broken", "census"} <= set(problem_names())
    assert {"half-and-half", "lorpman"} <= set(method_names())
    code, out, _ = run(capsys, "problems")
    assert code == 0
    assert "\nsmall " in out
    assert "No module named 'no_such_package'" in out
    code, out, _ = run(capsys, "methods")
    assert code == 0
    assert "equal weights" in out
    assert "\nlame " in out


def test_they_are_trained_like_any_other(package, capsys, tmp_path):
    out = tmp_path / "run"
    train = ["train", "small", "--method", "half-and-half", "--quiet", "--out", out]
    assert run(capsys, *train)[0] == 0
    # A name leads to an installed package, so nobody has to say where it is.
    assert run(capsys, "evaluate", out)[0] == 0
    assert Spec.make("small", "half-and-half", 0, {}).problem.reference == "small"


def test_a_broken_one_is_named_with_its_package(package):
    with pytest.raises(UsageError, match=f"'broken' of {package} .* cannot be imported: Mod"):
        get_problem("broken")
    with pytest.raises(UsageError, match=r"must be an lp\.Method, found Problem"):
        get_method("wrong")
    with pytest.raises(UsageError, match="calls itself 'small'"):
        get_problem("other")


def test_without_the_package_they_are_not_there():
    assert "half-and-half" not in method_names()
    with pytest.raises(UsageError, match="unknown method 'half-and-half'"):
        get_method("half-and-half")
