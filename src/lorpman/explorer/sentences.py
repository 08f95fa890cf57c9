"""Sentences that the page and the report share, for a reader from outside the field."""

from collections.abc import Sequence

from lorpman.explorer.opened_run import OpenedRun
from lorpman.front.front import Front

PREFERENCE = "A preference says how much each task matters to you: weights that sum to 100%."
FRONT = (
    "Every point is a network that you can have. The bold ones are the front: "
    "nothing on offer beats them on every task at once."
)
_HYPERVOLUME = (
    "Hypervolume measures a whole front in one number: the space between it and the worst "
    "acceptable scores. Bigger is better."
)
_ERROR = " It is estimated here; the number after ± says how well (standard error)."


def explain_hypervolume(shown: Sequence[str]) -> str:
    """What a hypervolume is.

    Args:
        shown: The hypervolumes beside it, as text; if one has an error, that is explained too.
    """
    return _HYPERVOLUME + (_ERROR if any("±" in text for text in shown) else "")


def explain_choice(run: OpenedRun) -> str:
    """What can be chosen in a run, and why no more.

    Args:
        run: The run.
    """
    count = len(run.front)
    if run.mode == "any":
        return "This run has a network for every preference; move to any of them."
    if run.origin.kind == "single":
        why = f"The method {run.origin.method} gives one network: there is nothing to move."
    elif run.origin.kind == "discrete":
        why = (
            f"The method {run.origin.method} gives {count} separate networks, and nothing "
            "between them: step from one to the next."
        )
    else:
        why = f"Choose among the {count} stored points."
    return (
        f"{why} Nothing can be evaluated live here: {run.why_not_live}."
        if run.why_not_live
        else why
    )


def reference_text(front: Front) -> str:
    """The worst acceptable scores, in words.

    Args:
        front: The front, with its reference point.
    """
    if len(set(front.reference)) == 1:
        return f"{front.reference[0]:g} for every task"
    parts = [f"{n} {r:g}" for n, r in zip(front.tasks, front.reference, strict=True)]
    return ", ".join(parts[:6]) + (" ..." if len(parts) > 6 else "")


def alpha_text(alpha: Sequence[float]) -> str:
    """A preference as commands and addresses hold it.

    Args:
        alpha: The preference ``[m]``.

    >>> alpha_text((0.3, 0.7))
    '0.3,0.7'
    """
    return ",".join(f"{weight:.4g}" for weight in alpha)
