"""What is measured in a finished run, beyond its hypervolume.

What needs weights or data is measured once and written to ``measured.json`` in the run's
directory, so that tables can be made again from runs that were kept without their weights.
"""

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import torch
from torch import Tensor

from lorpman._files import Kind, json_with, read_json, write_json
from lorpman.front.evaluate import evaluate
from lorpman.front.front import Front
from lorpman.lab.datasets.splits import batches
from lorpman.lab.reproduce.reproduction import Column, FinishedRun
from lorpman.lab.reproduce.run_record import Note
from lorpman.lab.runs.directory import open_run
from lorpman.lab.runs.evaluation import EVALUATION_BATCH
from lorpman.manifold.base import Manifold
from lorpman.manifold.low_rank import LowRank
from lorpman.metrics import PixelAccuracy, RelativeDepthError, cross_entropy, depth_l1
from lorpman.task import Task

MEASURED = "measured.json"
_KIND = Kind("what was measured in a run", json_with())
T = TypeVar("T")


def remembered(run: FinishedRun, key: str, measure: Callable[[], T]) -> T:
    """Measure something once, and keep it in the run's ``measured.json``.

    Args:
        run: What is measured.
        key: The name in that file.
        measure: Called if the file has nothing of that name.

    Returns:
        What was measured, now or earlier; it must be something that JSON can hold.
    """
    path = run.directory / MEASURED
    known: dict[str, Any] = read_json(path, "measurement") if path.exists() else {}
    if key not in known:
        known[key] = measure()
        write_json(path, known, _KIND)
    return known[key]


def data_note(run: FinishedRun) -> str:
    """How a run's data differs from the official splits, if it does.

    Args:
        run: The run; its data is loaded the first time only.
    """
    return remembered(run, "data", lambda: run.spec.load(run.data_root).note)


def _hypervolume(run: FinishedRun) -> float:
    """As stored with the front: sampling it again takes seconds."""
    stored = read_json(run.directory / "front.json", "front")
    return float(stored["hypervolume"]["value"])


def mean_losses(notes: Sequence[Note]) -> list[float]:
    """The training loss of every epoch, a mean over tasks.

    Args:
        notes: The lines of a run's epoch log; the start, number 0, has no losses.

    >>> mean_losses([{"number": 0}, {"number": 1, "losses": {"left": 1.0, "right": 3.0}}])
    [2.0]
    """
    by_task = [note["losses"].values() for note in notes if "losses" in note]
    return [sum(losses) / len(losses) for losses in by_task]


def _final_loss(run: FinishedRun) -> float:
    return mean_losses(run.notes)[-1]


def _correlation(run: FinishedRun) -> float:
    return remembered(run, "correlation", lambda: correlation(open_run(run.directory)[1]))


@torch.no_grad()
def correlation(model: Manifold) -> float:
    """The cosine of ``B_i A_i`` and ``B_j A_j``, a mean over all pairs and adapted matrices.

    The paper's ablation prints it; as there, the sign counts.

    Args:
        model: A :class:`~lorpman.manifold.low_rank.LowRank`.
    """
    assert isinstance(model, LowRank)
    grams = torch.stack([delta.gram() for delta in model.low_rank_deltas().values()])
    norms = grams.diagonal(dim1=1, dim2=2).sqrt()
    # A delta of zeros is orthogonal to everything.
    cosines = grams / (norms[:, :, None] * norms[:, None, :]).clamp_min(1e-30)
    i, j = torch.triu_indices(model.num_tasks, model.num_tasks, offset=1)
    return cosines[:, i, j].mean().item()


def _distance(run: FinishedRun) -> float:
    """From the points at the traced preferences to their places in the toy's Pareto set."""
    from lorpman.lab.problems.toy import TRACED, optimum

    reached = torch.tensor(run.notes[-1]["theta"], dtype=torch.float64)
    wanted = torch.stack([optimum(alpha) for alpha in TRACED])
    return (reached - wanted).norm(dim=1).max().item()


def _scenes(run: FinishedRun) -> dict[str, float]:
    """CityScapes' four metrics of one solution of the front, chosen on validation data.

    Depth errors are means over pixels, where the published code averages batches.
    """
    spec, model = open_run(run.directory)
    splits, tasks = spec.load(run.data_root), spec.tasks()
    rest = [
        Task(tasks[0].name, cross_entropy, PixelAccuracy()),
        Task(tasks[1].name, depth_l1, RelativeDepthError(), maximise=False),
    ]
    watched = evaluate(model, tasks, batches(splits.validation, EVALUATION_BATCH))
    alphas = watched.alphas[chosen(watched, spec.method.kind == "single")]
    test = batches(splits.test, EVALUATION_BATCH)
    # Row i was chosen for task i, so only the diagonal counts.
    first, second = (
        evaluate(model, some, test, alphas).scores.diagonal() for some in (tasks, rest)
    )
    names = ("miou", "absolute", "pixels", "relative")
    return dict(zip(names, [*first.tolist(), *second.tolist()], strict=True))


def chosen(front: Front, single: bool) -> Tensor:
    """Which point of a front counts for each task.

    The paper does not say which solution of a front it prints. Ours is the knee; where a method
    has one network per task (STL), every task is scored with its own.

    Args:
        front: One on validation data.
        single: Whether the method has one network per task.

    Returns:
        Indices of points, ``[m]``.
    """
    if single:
        return front.alphas.argmax(dim=0)
    return torch.full((len(front.tasks),), front.select(knee=True).index)


def _scene(key: str, factor: float = 1.0) -> Callable[[FinishedRun], float]:
    return lambda run: factor * remembered(run, "scenes", lambda: _scenes(run))[key]


HYPERVOLUME = Column("hypervolume", "hypervolume", _hypervolume)
LOSS = Column("loss", "last training loss", _final_loss, "training")
CORRELATION = Column("correlation", "correlation", _correlation)
DISTANCE = Column("distance", "distance to the Pareto set", _distance)
SCENES = (
    Column("miou", "mIoU ↑", _scene("miou", 100.0)),
    Column("pixels", "pixel accuracy ↑", _scene("pixels", 100.0)),
    Column("absolute", "absolute error ↓", _scene("absolute")),
    Column("relative", "relative error ↓", _scene("relative")),
)
