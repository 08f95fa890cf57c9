"""Problems of one's own: a file of Python, or a variable of a module, holds one.

Only a person names such code, on the command line or in Python. A run directory never does.
"""

import hashlib
import re
import sys
from dataclasses import replace
from importlib import import_module
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any

from lorpman.errors import UsageError, check_kind, unknown
from lorpman.lab.problems.problem import Problem
from lorpman.lab.problems.registry import get_problem, problem_names

_VARIABLE = "PROBLEM"
_MODULE_AND_VARIABLE = re.compile(r"([A-Za-z_][\w.]*):([A-Za-z_]\w*)")


def find_problem(named: str | Problem) -> Problem:
    """The problem that a person means.

    Args:
        named: A name of :func:`~lorpman.lab.problems.registry.problem_names`, ``mine.py``,
            ``mine.py:NAME`` (default: PROBLEM), ``package.module:NAME``, or a problem.

    Raises:
        UsageError: If there is none, its code fails, or its name belongs to another problem.
    """
    check_kind("problem", named, (str, Problem), "an lp.Problem, its name or its file")
    if isinstance(named, str) and named in problem_names():
        return get_problem(named)
    problem = named if isinstance(named, Problem) else _import_problem(named)
    if problem.name in problem_names() and problem.reference != problem.name:
        raise UsageError(
            f"there is a problem '{problem.name}' already; give yours another name: lp.Problem("
            f'name="my-{problem.name}", ...)'
        )
    return problem


def as_people_write(problem: Problem) -> str:
    """What names a problem on the command line, as short as a shell in this folder takes it.

    Args:
        problem: What :func:`find_problem` gave.
    """
    file, _, variable = problem.reference.rpartition(":")
    if not file.endswith(".py"):
        return problem.reference or problem.name
    if Path(file).is_relative_to(Path.cwd()):
        file = str(Path(file).relative_to(Path.cwd()))
    return file if variable == _VARIABLE else f"{file}:{variable}"


def _import_problem(text: str) -> Problem:
    path, colon, variable = text.rpartition(":")
    # Without a name, or with the colon of C:\mine.py.
    if not colon or not variable.isidentifier():
        path, variable = text, _VARIABLE
    if path.endswith(".py"):
        file = Path(path).expanduser().resolve()
        problem = _variable_of(_import_file(file, path), variable, path)
        return replace(problem, reference=f"{file}:{variable}")
    if match := _MODULE_AND_VARIABLE.fullmatch(text):
        problem = _variable_of(_import_module(match[1]), match[2], match[1])
        return replace(problem, reference=text)
    raise UsageError(
        f"{unknown('problem', text, problem_names())}; or a file: mine.py, mine.py:NAME"
    )


def _import_file(file: Path, shown: str) -> ModuleType:
    """Run a file as a module, once for each content."""
    try:
        content = file.read_bytes()
    except OSError as error:
        raise UsageError(
            f"cannot read the problem file {shown}: {error.strerror or error}; write one with: "
            f"lorpman new {shown}"
        ) from None
    # Its name, so that other processes that unpickle its functions find them; with the hash
    # where another module has that name.
    digest = hashlib.sha256(content).hexdigest()
    before = sys.modules.get(file.stem)
    taken = before is not None and getattr(before, "__source__", None) != digest
    name = f"{file.stem}_{digest[:12]}" if taken else file.stem
    if name in sys.modules:
        return sys.modules[name]
    _look_in(file.parent)
    specification = spec_from_file_location(name, file)
    assert specification is not None
    assert specification.loader is not None
    module = module_from_spec(specification)
    module.__dict__["__source__"] = digest
    # Before it runs: dataclasses and pickle look their module up by name.
    sys.modules[name] = module
    try:
        specification.loader.exec_module(module)
    # Half a module must not be found by the next import; Ctrl-C passes on as it is.
    except BaseException as error:
        del sys.modules[name]
        if isinstance(error, Exception | SystemExit):
            raise UsageError(_failure(shown, error, file)) from error
        raise
    return module


def _import_module(name: str) -> ModuleType:
    _look_in(Path.cwd())
    try:
        return import_module(name)
    except (Exception, SystemExit) as error:
        raise UsageError(_failure(name, error, None)) from error


def _look_in(folder: Path) -> None:
    """Let a problem import what stands beside it, as a script can."""
    if str(folder) not in sys.path:
        sys.path.insert(0, str(folder))


def _failure(shown: str, error: BaseException, file: Path | None) -> str:
    """Why code could not be run, with the last line of the file that was reached."""
    if isinstance(error, UsageError):
        return f"{shown}: {error}"
    line, trace = "", error.__traceback__
    while trace is not None:
        if file is not None and trace.tb_frame.f_code.co_filename == str(file):
            line = f", line {trace.tb_lineno}"
        trace = trace.tb_next
    if isinstance(error, SyntaxError):
        line = f", line {error.lineno}"
    return f"{shown} cannot be imported{line}: {type(error).__name__}: {error}"


def _variable_of(module: ModuleType, variable: str, shown: str) -> Problem:
    found: Any = getattr(module, variable, None)
    if isinstance(found, Problem):
        return found
    others = [name for name, value in vars(module).items() if isinstance(value, Problem)]
    if found is not None:
        raise UsageError(
            f"{variable} in {shown} must be an lp.Problem, found {type(found).__name__}"
        )
    hint = f"it has {', '.join(others)}: {shown}:{others[0]}" if others else "define one: "
    raise UsageError(
        f"{shown} has no {variable}; {hint}" + ("" if others else f"{variable} = lp.Problem(...)")
    )
