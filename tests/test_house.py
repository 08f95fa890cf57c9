"""What holds for every file of the package: its test, its length, its docstrings."""

import ast
import dataclasses
import inspect
from pathlib import Path

import pytest

import lorpman as lp

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "lorpman"
MODULES = sorted(path.relative_to(SOURCE) for path in SOURCE.rglob("*.py"))


def _code_lines(function, lines):
    """Its lines without blanks, comments and docstrings."""
    skipped = set()
    for node in ast.walk(function):
        body = getattr(node, "body", None)
        first = body[0] if isinstance(body, list) and body else None
        if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant):
            skipped |= set(range(first.lineno, first.end_lineno + 1))
    numbers = range(function.lineno, function.end_lineno + 1)
    texts = [lines[number - 1].strip() for number in numbers if number not in skipped]
    return sum(1 for text in texts if text and not text.startswith("#"))


@pytest.mark.parametrize("module", MODULES, ids=str)
def test_no_function_is_longer_than_fifty_lines_of_code(module):
    text = (SOURCE / module).read_text()
    lines, kinds = text.splitlines(), (ast.FunctionDef, ast.AsyncFunctionDef)
    functions = [node for node in ast.walk(ast.parse(text)) if isinstance(node, kinds)]
    lengths = {function.name: _code_lines(function, lines) for function in functions}
    assert {name: length for name, length in lengths.items() if length > 50} == {}


def _does_something(module):
    """Whether a module has functions or classes of its own; registries and ``__init__`` may not."""
    kinds = (ast.FunctionDef, ast.ClassDef)
    body = ast.parse((SOURCE / module).read_text()).body
    return any(isinstance(node, kinds) for node in body)


@pytest.mark.parametrize("module", [m for m in MODULES if _does_something(m)], ids=str)
def test_every_file_has_a_test_of_its_name(module):
    name = module.name.removeprefix("_") if module.parent == Path() else module.name
    places = [ROOT / "tests" / module.parent / f"test_{n}" for n in (name, module.name)]
    assert any(place.exists() for place in places), places[0]


@pytest.mark.parametrize("name", sorted(lp.__all__))
def test_every_public_name_says_what_it_takes(name):
    value = getattr(lp, name)
    if inspect.ismodule(value):
        return
    documented = inspect.getdoc(value) or ""
    assert documented.split("\n")[0].rstrip().endswith((".", ":")), documented[:80]
    if dataclasses.is_dataclass(value):
        return  # every field has a docstring of its own
    target = value.__init__ if inspect.isclass(value) else value
    given = [p for p in inspect.signature(target).parameters.values() if p.name != "self"]
    own = inspect.isfunction(value) or (inspect.isclass(value) and "__init__" in vars(value))
    if own and len(given) > 1:
        assert "Args:" in documented, f"{name} takes {[p.name for p in given]}"
