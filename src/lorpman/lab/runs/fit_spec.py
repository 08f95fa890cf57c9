"""Training a model as a run's settings say."""

import random
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from lorpman.lab.datasets.process_shares import shared_batches
from lorpman.lab.datasets.splits import Batch, Splits, first_batches
from lorpman.manifold.base import Manifold
from lorpman.preference import grid
from lorpman.training.fit import Epoch, fit

if TYPE_CHECKING:
    from lightning_fabric import Fabric

    from lorpman.lab.runs.runs import Spec

EVALUATION_BATCH = 1000


def fit_spec(
    spec: "Spec", model: Manifold, splits: Splits, *, fabric: "Fabric", **options: Any
) -> list[Epoch]:
    """Train ``model`` as ``spec`` says; ``options`` are those of :func:`fit` that are left."""
    training = spec.training
    order = torch.Generator().manual_seed(spec.seed)
    rank, world = fabric.global_rank, fabric.world_size
    # Checkpoints hold these too; seeded late, since packages draw while they are imported.
    random.seed(spec.seed)
    np.random.seed(spec.seed % 2**32)  # noqa: NPY002
    return fit(
        model,
        spec.tasks(),
        shared_batches(splits.train, training.batch_size, order, rank, world),
        epochs=training.epochs,
        objective=spec.method.rule(spec.own),
        window=training.window,
        concentration=training.concentration,
        sampler=spec.sampler(),
        freeze_epoch=training.freeze_epoch,
        freeze_heads=training.freeze_heads,
        averaging=training.averaging,
        optimizer=training.make_optimizer(),
        scheduler=training.make_scheduler(),
        validation=_watched(splits, training.watch_samples),
        validation_alphas=_watched_preferences(model, training.watch_preferences),
        seed=spec.seed,
        fabric=fabric,
        **options,
    )


def _watched(splits: Splits, samples: int) -> list[Batch] | None:
    """The first validation samples as ready batches, for a quick look after every epoch."""
    return first_batches(splits.validation, samples, EVALUATION_BATCH) if samples else None


def _watched_preferences(model: Manifold, count: int | None) -> Tensor | None:
    """Fewer preferences for that quick look, where the manifold has more."""
    if count is None or len(model.preferences()) <= count:
        return None
    return grid(model.num_tasks, count)
