"""What holds for every file of the package: its test, its length, its docstrings."""

import ast
import re
from pathlib import Path

import pytest

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


TREES = {module: ast.parse((SOURCE / module).read_text()) for module in MODULES}
CLASSES = {
    node.name: node
    for tree in TREES.values()
    for node in ast.walk(tree)
    if isinstance(node, ast.ClassDef)
}


def _functions(body):
    return [node for node in body if isinstance(node, ast.FunctionDef)]


def _is_public(name):
    return not name.startswith("_")


def _public_functions(module):
    """The public functions, methods and constructors of a file, each with its docstrings."""
    for node in TREES[module].body:
        if isinstance(node, ast.ClassDef) and _is_public(node.name):
            for method in _functions(node.body):
                if method.name == "__init__":
                    yield node.name, method, [_docstring(node), _docstring(method)]
                elif _is_public(method.name):
                    yield f"{node.name}.{method.name}", method, _inherited(node, method.name)
        # The options of a command say what they are in "lorpman NAME --help".
        elif isinstance(node, ast.FunctionDef) and _is_public(node.name):
            is_command = module == Path("cli", f"{node.name}.py")
            if not is_command:
                yield node.name, node, [_docstring(node)]


def _inherited(cls, name):
    """The docstrings of a method and of those that it overrides.

    It takes and raises what they say, unless it says otherwise.
    """
    found = [_docstring(method) for method in _functions(cls.body) if method.name == name]
    for base in cls.bases:
        # Generic classes are written with what they hold in brackets.
        base = base.value if isinstance(base, ast.Subscript) else base
        if isinstance(base, ast.Name) and base.id in CLASSES:
            found += _inherited(CLASSES[base.id], name)
    return found


def _docstring(node):
    return ast.get_docstring(node) or ""


def _has_first_sentence(docstring):
    """On its first line, so that lists of functions can show it."""
    return docstring.split("\n")[0].endswith((".", ":"))


def _section(docstring, title):
    """The indented lines below a title such as ``Args:``."""
    found = re.search(rf"^{title}:\n((?:(?: +.*)?\n)+)", docstring + "\n", re.M)
    return found[1] if found else ""


def _parameters(function):
    given = function.args
    taken = [*given.posonlyargs, *given.args, *given.kwonlyargs, given.vararg, given.kwarg]
    return [one.arg for one in taken if one is not None and one.arg not in ("self", "cls")]


def _raises(function):
    """Whether a function raises an error of its own, not one that it only passes on."""
    waiting = list(function.body)
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.Raise) and node.exc is not None:
            return True
        if not isinstance(node, ast.FunctionDef | ast.ClassDef):
            waiting.extend(ast.iter_child_nodes(node))
    return False


def _faults(function, docstrings):
    """What the docstrings of a function leave out."""
    said = [text for text in docstrings if text]
    if not said:
        return ["a docstring"]
    faults = [] if _has_first_sentence(said[0]) else ["a first sentence"]
    listed = "".join(_section(text, "Args") for text in said)
    for name in _parameters(function):
        if not re.search(rf"^    \*{{,2}}{name}: \S", listed, re.M):
            faults.append(name)
    if _raises(function) and not any(_section(text, "Raises") for text in said):
        faults.append("Raises")
    return faults


@pytest.mark.parametrize("module", MODULES, ids=str)
def test_every_public_function_says_what_it_takes_and_raises(module):
    found = _public_functions(module)
    missing = {name: _faults(function, docstrings) for name, function, docstrings in found}
    assert {name: faults for name, faults in missing.items() if faults} == {}


@pytest.mark.parametrize("name", [name for name in CLASSES if _is_public(name)])
def test_every_public_class_says_what_it_is(name):
    assert _has_first_sentence(_docstring(CLASSES[name]))
