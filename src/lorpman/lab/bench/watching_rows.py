"""What the hypervolume shown after every epoch costs, as a share of the epoch."""

import torch

from lorpman.front.evaluate import evaluate
from lorpman.front.hypervolume import Hypervolume, hypervolume
from lorpman.lab.bench.benchmark_row import Measurement
from lorpman.lab.bench.steps import FitStep
from lorpman.lab.bench.timing import Conditions, interleave, ratio
from lorpman.lab.bench.workload import lenet
from lorpman.lab.datasets.process_shares import USUAL_BATCH
from lorpman.lab.datasets.splits import Arrays, Batch, batches
from lorpman.lab.runs.evaluation import EVALUATION_BATCH
from lorpman.lab.runs.spec import Spec
from lorpman.manifold.base import Manifold
from lorpman.preference import grid
from lorpman.task import Task

MULTIMNIST_TRAINING_IMAGES = 50_000
CIFAR_TRAINING_IMAGES = 2_500
"""Of each task; the preset keeps some of them for validation."""
_CIFAR_STEP_IMAGES = 8
_CIFAR_WATCHED_PREFERENCES = 2


def two_tasks(conditions: Conditions) -> Measurement:
    """MultiMNIST's preset: evaluation at its preferences and the volume, against an epoch.

    Args:
        conditions: How to measure.

    Returns:
        The share of an epoch that watching takes.
    """
    workload = lenet()
    training = workload.spec.training
    model = workload.manifold()
    step = FitStep(workload.spec, model, workload.tasks, workload.fit_batch())
    watched = lenet(batch=training.watch_samples)
    size = min(training.watch_samples, EVALUATION_BATCH)
    held = list(batches(Arrays(watched.x, watched.targets), size))
    alphas = _watched_preferences(model, training.watch_preferences)
    times = interleave(
        {
            "step": step,
            "watch": lambda: evaluate(model, workload.tasks, held, alphas).hypervolume(),
        },
        conditions,
    )
    steps = -(-MULTIMNIST_TRAINING_IMAGES // (training.batch_size or USUAL_BATCH))
    note = f"{training.watch_samples} samples, {len(alphas)} preferences; {steps} steps an epoch"
    return Measurement(ratio(times, "watch", "step") / steps, times, {}, note)


def twenty_tasks(conditions: Conditions) -> Measurement:
    """CIFAR-100's preset at a quarter of its width, since both sides shrink alike with it.

    Time grows with the images on both sides: a step is taken on fewer images per task, the
    evaluation at fewer preferences, and both are multiplied up. The volume itself is taken of a
    front of full size.

    Args:
        conditions: How to measure.

    Returns:
        The share of an epoch that watching takes.
    """
    spec = Spec.make("cifar100", "lorpman", 0, {"width": 16})
    training, tasks, model = spec.training, spec.tasks(), spec.build()
    step = FitStep(spec, model, tasks, _cifar_batch(tasks, _CIFAR_STEP_IMAGES))
    held = [_cifar_batch(tasks, training.watch_samples)]
    alphas = _watched_preferences(model, training.watch_preferences)
    some = alphas[:_CIFAR_WATCHED_PREFERENCES]
    times = interleave(
        {
            "step": step,
            "evaluation": lambda: evaluate(model, tasks, held, some),
            "volume": lambda: _volume_of(tasks, len(alphas)),
        },
        conditions,
    )
    images = CIFAR_TRAINING_IMAGES - int(spec.settings()["validation_images"])
    epoch = images / _CIFAR_STEP_IMAGES
    evaluation = ratio(times, "evaluation", "step") * len(alphas) / len(some) / epoch
    volume = ratio(times, "volume", "step") / epoch
    note = (
        f"{training.watch_samples} images of each task, {len(alphas)} preferences; an epoch has "
        f"{images} images of each task; at a quarter of the width"
    )
    return Measurement(evaluation + volume, times, {"of it the volume": volume}, note)


def _watched_preferences(model: Manifold, count: int | None) -> torch.Tensor:
    usual = model.preferences()
    return usual if count is None or len(usual) <= count else grid(model.num_tasks, count)


def _cifar_batch(tasks: list[Task], images: int) -> Batch:
    x = torch.rand(len(tasks), images, 3, 32, 32)
    parts = [part.to(memory_format=torch.channels_last) for part in x]
    return parts, [torch.randint(5, (images,)) for _ in tasks]


def _volume_of(tasks: list[Task], points: int) -> Hypervolume:
    """Of scores as a half-trained model has them; not through a Front, which computes it once."""
    scores = 0.4 + 0.3 * torch.rand(points, len(tasks), dtype=torch.float64)
    references = [float(task.reference) for task in tasks]
    return hypervolume(scores, references, [task.maximise for task in tasks])
