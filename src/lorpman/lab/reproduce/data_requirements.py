"""What a table or figure needs, and whether it is here."""

from pathlib import Path

from lorpman.errors import UsageError
from lorpman.lab.datasets.sources import SOURCES
from lorpman.lab.reproduce.reproduction import Plan, Reproduction

GENERATED = "GENERATED"
"""A file of this name in a dataset's folder says that its files are noise."""
_ON_NOISE = "-generated"


def folder_of(problem: str, root: Path) -> Path | None:
    """Where a problem's files go; None if it needs none.

    Args:
        problem: Its name.
        root: Where datasets are.
    """
    if problem not in SOURCES:
        return None
    files = SOURCES[problem].files
    return root / (Path(files[0].path).parts[0] if files else problem)


def data_state(problem: str, root: Path) -> str:
    """Whether a problem's files are there.

    Args:
        problem: Its name.
        root: Where datasets are.

    Returns:
        ``none needed``, ``here``, ``generated files`` or ``missing``.
    """
    folder = folder_of(problem, root)
    if folder is None:
        return "none needed"
    if not folder.is_dir() or not any(folder.iterdir()):
        return "missing"
    return "generated files" if (folder / GENERATED).exists() else "here"


def check_data(problem: str, root: Path) -> None:
    """Refuse to start where every run would fail for lack of files.

    Args:
        problem: Its name.
        root: Where datasets are.

    Raises:
        UsageError: If the problem's files are missing, with the command that says how to get them.
    """
    if data_state(problem, root) == "missing":
        raise UsageError(
            f"no files of {problem} in {folder_of(problem, root)}; see: lorpman data {problem}"
        )


def runs_folder(runs: Path, problem: str, root: Path) -> Path:
    """Where a problem's runs are.

    Those on generated files have a folder of their own, so that they are never taken for real
    ones.

    Args:
        runs: The folder of all problems' runs.
        problem: Its name.
        root: Where datasets are.

    Returns:
        The folder, whether or not it exists; without any data, the one that exists.
    """
    plain, noise = runs / problem, runs / f"{problem}{_ON_NOISE}"
    state = data_state(problem, root)
    only_noise = state == "missing" and noise.is_dir() and not plain.is_dir()
    return noise if state == "generated files" or only_noise else plain


def is_generated(folder: Path) -> bool:
    """Whether a folder holds runs on generated files.

    Args:
        folder: A folder of runs, as this module names it.
    """
    return folder.name.endswith(_ON_NOISE)


def describe(reproduction: Reproduction, root: Path) -> str:
    """What ``--list`` says: a line on what it is, and a line for each scale on what that needs.

    Args:
        reproduction: The table or figure.
        root: Where datasets are.

    Returns:
        The lines.
    """
    lines = [f"{reproduction.name:<24}{reproduction.what}"]
    plans = {"laptop": reproduction.laptop, "paper": reproduction.paper}
    if reproduction.laptop == reproduction.paper:
        plans = {"either scale": reproduction.paper}
    for scale, plan in plans.items():
        state = data_state(plan.problem, root)
        lines.append(f"    {scale}: {plan.problem} (data {state}); {_cost(reproduction, plan)}")
    return "\n".join(lines)


def _cost(reproduction: Reproduction, plan: Plan) -> str:
    runs = f"{len(plan.seeds)} seed{'s' * (len(plan.seeds) > 1)}"
    if plan.minutes is None:
        time = "hours, on a GPU if networks are large (not measured)"
    else:
        time = f"about {plan.minutes:.0f} min"
    if plan.gibibytes is not None:
        return f"{runs}; {time}; {plan.gibibytes:.1f} GiB"
    # Weights, gradients and Adam's two moments, of the largest line.
    counts = [reproduction.reported(line)[1] or 0.0 for line in reproduction.lines]
    least = 16 * max(counts) / 2**30
    return f"{runs}; {time}" + (f"; more than {least:.1f} GiB" if least >= 0.1 else "")
