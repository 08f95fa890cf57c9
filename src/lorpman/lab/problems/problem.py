"""What a problem is: tasks, a network, data, and settings. Ours and yours are the same object."""

import hashlib
import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from torch import nn

from lorpman.errors import UsageError
from lorpman.front.front import Front
from lorpman.lab.datasets.splits import Splits
from lorpman.lab.problems.preset import Preset
from lorpman.lab.settings import NoSettings, SettingsGroup
from lorpman.manifold.base import Manifold
from lorpman.task import Task, check_tasks

# It becomes part of file names.
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")


@dataclass(frozen=True)
class Problem:
    """Tasks, a network, data and settings: all that a method needs to be trained and compared.

    ``tasks``, ``network`` and ``data`` are functions, which may take ``options`` (an instance of
    the class below) by that name; ``data`` may take ``root``, the directory of ``--data``. They
    are called with a fixed seed, and give the same each time. ``tasks`` may be a plain list.

    Args:
        name: What people call it, and part of the names of its runs.
        tasks: The tasks, or a function that makes them.
        network: Makes a fresh network, with one output per task.
        data: Gives :class:`~lorpman.lab.datasets.splits.Splits`.
        shared: Prefixes of the parameters that are adapted, where the manifold's choice is not
            right.
        settings: Over the defaults of training and methods, as in ``{"epochs": 20, "rank": 4}``;
            each goes to the methods that have it.
        summary: One line for ``lorpman problems``.
        options: The settings that only this problem has.
        start: Moves a fresh manifold to the problem's own starting point.
        trace: Plain values to be logged after every epoch, for ``figure``.
        figure: Draws a picture of its own from (the log of all epochs, front, file).
        show: How one input looks to people: a function of it that gives an image
            ``[1 or 3, h, w]``, a dict (a row of a table, by column) or a text. None shows it by
            its shape.
        reference: What leads another process to this problem; set when it is looked up.
        source: The SHA-256 of the file that it was made in; found if not given, and empty for a
            notebook and for ours.

    Raises:
        UsageError: If a part is not what it must be.
    """

    name: str
    tasks: Sequence[Task] | Callable[..., Sequence[Task]]
    network: Callable[..., nn.Module]
    data: Callable[..., Splits]
    shared: Sequence[str] | None = None
    settings: Mapping[str, Any] | Preset = field(default_factory=dict)
    summary: str = ""
    options: type[SettingsGroup] = NoSettings
    start: Callable[[Manifold], None] | None = None
    trace: Callable[[Manifold], Mapping[str, Any]] | None = None
    figure: Callable[[Sequence[Mapping[str, Any]], Front, Path], None] | None = None
    reference: str = ""
    source: str | None = None
    show: Callable[[Any], Any] | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not _NAME.fullmatch(self.name):
            raise UsageError(
                f"the name of a problem must be letters, digits, '.', '_' or '-', got {self.name!r}"
            )
        for part in ("network", "data"):
            self._check_function(part)
        if not isinstance(self.settings, Mapping | Preset):
            raise UsageError(f"{self._of('settings')} must be a dict, got {self.settings!r}")
        if not callable(self.tasks):
            self._check_tasks(self.tasks)
        if self.source is None:
            # Frames: this one, the dataclass's __init__, and whoever makes the problem.
            here = inspect.currentframe()
            maker = here and here.f_back and here.f_back.f_back
            object.__setattr__(self, "source", _hash_of_maker(maker.f_globals if maker else {}))

    def preset(self) -> Preset:
        """The problem's settings, for all methods and by method."""
        if isinstance(self.settings, Preset):
            return self.settings
        return Preset(settings=dict(self.settings))

    def make_tasks(self, options: SettingsGroup) -> list[Task]:
        """The problem's tasks, made with its options and checked.

        Args:
            options: An instance of the problem's ``options``.

        Raises:
            UsageError: If they are no tasks, fewer than two, or two have one name.
        """
        given = callable(self.tasks)
        tasks = self._made("tasks", options=options) if given else self.tasks
        return self._check_tasks(tasks)

    def make_network(self, options: SettingsGroup) -> nn.Module:
        """A fresh network.

        Args:
            options: An instance of the problem's ``options``.

        Raises:
            UsageError: If it is no module.
        """
        network = self._made("network", options=options)
        if not isinstance(network, nn.Module):
            raise UsageError(
                f"{self._of('network')} must return an nn.Module, got {type(network).__name__}"
            )
        return network

    def load(self, root: Path, options: SettingsGroup) -> Splits:
        """The problem's data, loaded with its options and checked.

        Args:
            root: Where datasets are.
            options: An instance of the problem's ``options``.

        Raises:
            UsageError: If files are missing or damaged, or it is no ``lp.Splits``.
        """
        splits = self._made("data", root=root, options=options)
        if not isinstance(splits, Splits):
            raise UsageError(
                f"{self._of('data')} must return lp.Splits(train=..., validation=..., test=...), "
                f"got {type(splits).__name__}"
            )
        return splits

    def _made(self, part: str, **offered: Any) -> Any:
        """What the function of a part gives; where it fails, the error names the part."""
        try:
            return _call(getattr(self, part), **offered)
        except UsageError:
            raise
        except Exception as error:
            reason = f"{type(error).__name__}: {' '.join(str(error).split())}"
            raise UsageError(f"{self._of(part)} fails: {reason}") from error

    def _of(self, part: str) -> str:
        return f"{part} of problem '{self.name}'"

    def _check_function(self, part: str) -> None:
        given = getattr(self, part)
        # A module is callable, but calling it would run it instead of making one.
        if isinstance(given, nn.Module) or not callable(given):
            raise UsageError(
                f"{self._of(part)} must be a function that makes it, got a "
                f"{type(given).__name__}; write {part}=lambda: ..."
            )

    def _check_tasks(self, tasks: Any) -> list[Task]:
        listed = list(tasks) if isinstance(tasks, Sequence) else []
        if len(listed) < 2 or not all(isinstance(task, Task) for task in listed):
            raise UsageError(f"{self._of('tasks')} must be a list of two lp.Task or more")
        check_tasks(listed, len(listed))
        return listed


def _call(part: Callable[..., Any], **offered: Any) -> Any:
    """Call a function with those of the arguments that it names."""
    try:
        named = inspect.signature(part).parameters
    except ValueError:  # some functions that are written in C do not say
        named = {}  # type: ignore[assignment]
    return part(**{key: value for key, value in offered.items() if key in named})


def _hash_of_maker(variables: Mapping[str, Any]) -> str:
    """The hash of the file with these global variables; empty for a notebook, and for ours."""
    file, module = variables.get("__file__"), str(variables.get("__name__"))
    if file is None or module.startswith("lorpman."):
        return ""
    try:
        return hashlib.sha256(Path(file).read_bytes()).hexdigest()
    except OSError:
        return ""
