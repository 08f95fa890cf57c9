"""How results, warnings and progress are printed: one place, so that every command looks alike.

Results go to standard output; everything else goes to standard error, so that a pipe gets results
only.
"""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from lorpman.front.front import Front
    from lorpman.front.hypervolume import Hypervolume


def print_field(name: str, value: object, width: int = 12) -> None:
    """Print one line of a result: a name, padded to ``width``, and its value.

    Args:
        name: What the value is.
        value: Anything that can be printed.
        width: The columns before the value.

    >>> print_field("file", "model.onnx")
    file        model.onnx
    """
    typer.echo(f"{name:<{width}}{value}")


def warn(message: str) -> None:
    """Print ``message`` on standard error as a line of lorpman's own.

    Args:
        message: One line.
    """
    typer.echo(f"lorpman: {message}", err=True)


def progress_printer(quiet: bool) -> Callable[[str], None] | None:
    """What to call with every line of progress; None where nobody wants to hear.

    Args:
        quiet: Whether ``--quiet`` was given.
    """
    return None if quiet else lambda line: typer.echo(line, err=True)


def hypervolume_text(volume: "Hypervolume") -> str:
    """A hypervolume, and its standard error where it was estimated.

    Args:
        volume: The hypervolume.
    """
    # Four decimals would show a small volume (many tasks) as zero.
    value = float(volume)
    digits = ".4f" if value >= 0.01 or value == 0 else ".4g"
    error = "" if volume.stderr == 0 else f" ± {volume.stderr:.1g}"
    return f"{value:{digits}}{error}"


def order_text(front: "Front") -> str:
    """Whether more weight on a task gives a better score of it, over all pairs of preferences.

    Args:
        front: The front.
    """
    order = front.order()
    pairs = f"{order.violations} of {order.pairs} pairs of preferences"
    return f"{order.correlation:.2f}  (more weight scores worse in {pairs})"


def trade_off_text(front: "Front", method: str) -> str | None:
    """What there is to say about a front that shows no trade-off; None where it shows one.

    Args:
        front: The front of a run.
        method: The name of its method.
    """
    from lorpman.front.control import NO_TRADE_OFF, compete
    from lorpman.lab.beside_retraining import RETRAIN

    if compete([front]) is not False:
        return None
    if method == RETRAIN:
        return NO_TRADE_OFF
    # A front may also fail to reach its corners: only retraining tells.
    return (
        "none on this front: no task gains where all weight is on it; to learn whether the tasks "
        f"compete at all: lorpman compare PROBLEM --methods {method},{RETRAIN}"
    )


def scores_text(scores: Mapping[str, float]) -> str:
    """Scores by task, on one line.

    Args:
        scores: The scores by name of task.

    >>> scores_text({"left": 0.9412, "right": 0.93})
    'left 0.9412  right 0.9300'
    """
    return "  ".join(f"{task} {score:.4f}" for task, score in scores.items())
