"""The command line: its commands, and what becomes of their errors.

Every command stands in the file of its name. Bad input is one line on standard error and exit
code 2. What a command needs is imported inside its function, so that ``lorpman --help`` is quick.
"""

import os
import sys
import traceback
import warnings
from collections.abc import Callable
from typing import Annotated, Any

import typer

from lorpman.cli.bench import bench
from lorpman.cli.compare import compare
from lorpman.cli.data import data
from lorpman.cli.evaluate import evaluate
from lorpman.cli.explore import explore
from lorpman.cli.export import export
from lorpman.cli.methods import methods
from lorpman.cli.new import new
from lorpman.cli.output import warn
from lorpman.cli.problems import problems
from lorpman.cli.report import report
from lorpman.cli.reproduce import reproduce
from lorpman.cli.select import select
from lorpman.cli.train import train
from lorpman.cli.tune import tune
from lorpman.errors import (
    ProcessLost,
    TrainingDiverged,
    TrainingInterrupted,
    UsageError,
    UserNotice,
)

COMMANDS: tuple[Callable[..., None], ...] = (
    problems,
    methods,
    data,
    new,
    train,
    evaluate,
    compare,
    select,
    export,
    explore,
    report,
    tune,
    reproduce,
    bench,
)
"""In the order of ``lorpman --help``: about that in which a newcomer needs them."""

_BAD_INPUT = 2
_UNEXPECTED = 1
_DEBUG = "--debug"
_INTERRUPTED = 130  # as shells have it: 128 and the number of SIGINT

app = typer.Typer(
    name="lorpman",
    help="Choose the trade-off between tasks after training: learn a whole Pareto front of "
    "networks in one run, look at it, and take away the network you need.",
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


@app.callback(invoke_without_command=True)
def _without_command(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False,
    debug: Annotated[bool, typer.Option(_DEBUG, help="Show where an error came from.")] = False,
) -> None:
    del debug  # main has read it: it may stand anywhere
    if version:
        from lorpman import __version__

        typer.echo(__version__)
    elif context.invoked_subcommand is None:
        typer.echo(context.get_help())


for _command in COMMANDS:
    app.command()(_command)


def main(arguments: list[str] | None = None) -> None:
    """Run one command and leave the process with its exit code.

    Args:
        arguments: What stands after ``lorpman``; by default, what this process was called with.

    Raises:
        SystemExit: Always.
    """
    warnings.showwarning = _show_warning
    given = sys.argv[1:] if arguments is None else arguments
    debug = _DEBUG in given
    try:
        # Not standalone: typer would print errors on several lines, and leave by itself.
        code = app([text for text in given if text != _DEBUG], standalone_mode=False)
    except typer.Exit as error:
        code = error.exit_code
    except (typer.Abort, KeyboardInterrupt):
        warn("interrupted")
        code = _INTERRUPTED
    except typer.TyperException as error:
        code = _refuse(error.format_message())
    except (UsageError, TrainingDiverged) as error:
        code = _refuse(str(error))
    except ProcessLost as error:
        warn(str(error))
        sys.stderr.flush()
        # Not by the usual way out, where what is left of the connection may abort the process.
        os._exit(error.code)
    except TrainingInterrupted as error:
        warn(str(error))
        code = error.code
    except BrokenPipeError:
        # Whoever read the output has gone, as "head" does; what is left in the buffer goes nowhere.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = _UNEXPECTED
    except Exception as error:
        code = _explain(error, debug)
    # A command that went well returns None.
    sys.exit(code if isinstance(code, int) else 0)


def _show_warning(message: Warning | str, *where: Any, **more: Any) -> None:
    """Print our own warnings, which are for the user; those of other packages are not."""
    del where, more
    if isinstance(message, UserNotice):
        warn(str(message))


def _explain(error: Exception, debug: bool) -> int:
    """Print an error that nobody expected, on one line, or where it came from."""
    if debug:
        traceback.print_exception(error)
    what = " ".join(f"{type(error).__name__}: {error}".split())
    what = what if len(what) <= 300 else f"{what[:300]}..."
    if isinstance(error, MemoryError) or "allocate memory" in what or "out of memory" in what:
        return _refuse(f"not enough memory ({what}); choose a smaller window, batch or network")
    hint = "" if debug else f"; to see where it came from, add {_DEBUG}"
    warn(f"unexpected error, which should be reported: {what}{hint}")
    return _UNEXPECTED


def _refuse(message: str) -> int:
    """Print why a command was refused, on one line."""
    warn(" ".join(message.split()))
    return _BAD_INPUT
