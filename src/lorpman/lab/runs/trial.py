"""A trial before training: whether network, data, losses and scores of a problem fit together.

What is wrong is named at once and in one line, before a directory is made or an epoch is spent.
"""

import hashlib
from collections.abc import Callable
from itertools import islice
from pathlib import Path
from typing import Any, TypeVar

import torch
from torch import Tensor, nn

from lorpman._torch import tree_leaves
from lorpman.errors import UsageError
from lorpman.lab.datasets.given_data import OfLoader, map_columns
from lorpman.lab.datasets.splits import Splits, batches
from lorpman.lab.fixed_seed import fixed_seed, seed_all
from lorpman.lab.problems.registry import problem_names
from lorpman.lab.runs.spec import Spec
from lorpman.manifold.base import Manifold
from lorpman.manifold.network_call import call_network
from lorpman.task import Task, per_task, unpack

_TRIAL_SAMPLES = 8
_SPLITS = ("train", "validation", "test")
_Made = TypeVar("_Made")


def try_out(spec: Spec, splits: Splits, root: Path) -> None:
    """Run a few samples through network, losses and scores; refuse what does not repeat itself.

    Args:
        spec: The run that is to be trained.
        splits: What ``spec.load(root)`` gave.
        root: Where datasets are.

    Raises:
        UsageError: If a part of the problem fails; the message names it.
    """
    tasks = spec.tasks()
    with fixed_seed(spec.seed):
        network = _same_twice(spec)
        # Not from train: reading it may draw from generators of its own.
        for split in ("validation", "test"):
            _try_batch(network, tasks, _first_batch(splits, split), split)
        seed_all(spec.seed)
        _try_manifold(_named("method", spec.build), _first_batch(splits, "validation"))
        # Those of the package are known to repeat themselves, and are large.
        if spec.problem.name not in problem_names():
            _check_repeatable(spec, splits, root)
            _check_order(spec, splits.train)


def _same_twice(spec: Spec) -> nn.Module:
    """A network of the problem, which must be the same whenever it is made from one seed."""
    made = []
    for _ in range(2):
        seed_all(spec.seed)
        made.append(_named("network", lambda: spec.problem.make_network(spec.data)))
    first, second = (network.state_dict() for network in made)
    shapes = [{k: tuple(v.shape) for k, v in state.items()} for state in (first, second)]
    if shapes[0] != shapes[1]:
        name = next(k for k in shapes[0] | shapes[1] if shapes[0].get(k) != shapes[1].get(k))
        was, now = (state.get(name, "absent") for state in shapes)
        raise UsageError(
            f"the network changes from call to call: '{name}' was {was}, then {now}; a run could "
            "not be opened again"
        )
    for name, value in first.items():
        # NaN differs from itself, and is refused elsewhere.
        if not torch.equal(value, second[name]) and not value.isnan().any():
            raise UsageError(
                f"the network changes from call to call: '{name}' starts with other values though "
                "the seed is the same; draw them with torch, numpy or random, without a generator "
                "of its own"
            )
    return made[0]


def _first_batch(splits: Splits, split: str) -> tuple[Any, Any]:
    data = getattr(splits, split)
    batch = _named(f"{split} split", lambda: next(iter(batches(data, _TRIAL_SAMPLES))))
    return unpack(batch)


def _try_batch(network: nn.Module, tasks: list[Task], batch: tuple[Any, Any], split: str) -> None:
    """Whether each task has a loss to learn from, and a score."""
    x, y = batch
    network.eval()
    where = f"on the {split} split, x: {_described(x)}"
    outputs = _named("network", lambda: call_network(network, x), where)
    pairs = zip(
        tasks,
        per_task(outputs, tasks, "the network's output"),
        per_task(y, tasks, "the batch's targets"),
        strict=True,
    )
    for task, output, target in pairs:
        where = f"on the {split} split, output: {_described(output)}, target: {_described(target)}"
        loss = _named(f"loss of task '{task.name}'", _bound(task.loss_of, output, target), where)
        if not isinstance(loss, Tensor) or loss.ndim != 0:
            found = list(loss.shape) if isinstance(loss, Tensor) else type(loss).__name__
            raise UsageError(
                f"the loss of task '{task.name}' must be a scalar tensor, found {found}; take its "
                "mean"
            )
        if not loss.requires_grad:
            raise UsageError(
                f"the loss of task '{task.name}' does not depend on the network: it has no gradient"
            )
        _named(f"score of task '{task.name}'", _bound(_score, task, output, target), where)


def _score(task: Task, output: Any, target: Any) -> None:
    output, target, count = task.labelled(output, target)
    if count:
        metric = task.metric()
        value = metric.value(metric.statistics(output, target).double())
        if value.ndim != 0:
            raise ValueError(f"it must be one number, found shape {list(value.shape)}")


@torch.no_grad()
def _try_manifold(model: Manifold, batch: tuple[Any, Any]) -> None:
    """Whether the method can run the network at two preferences at once."""
    # The same one twice: a single network has no second preference.
    alphas = model.preferences()[:1].expand(2, -1)
    model.eval()
    _named("method", lambda: model(batch[0], alphas), "with this network")


def _check_repeatable(spec: Spec, splits: Splits, root: Path) -> None:
    """Whether data that is loaded again is the same; else test samples become training samples."""
    again = _named("data", lambda: spec.load(root))
    for split in _SPLITS:
        first, second = getattr(splits, split), getattr(again, split)
        same = len(first) == len(second)
        # Training data may be augmented, and differ each time it is read.
        if split != "train":
            same = same and _fingerprint(first) == _fingerprint(second)
        if not same:
            raise UsageError(
                f"the {split} split differs from call to call of data(); split with a generator "
                "of a fixed seed"
            )


def _check_order(spec: Spec, train: Any) -> None:
    """Whether a loader's sampler draws what the seed says; else a run could not be resumed."""
    if not isinstance(train, OfLoader):
        return
    orders = []
    for _ in range(2):
        seed_all(spec.seed)
        generator = torch.Generator().manual_seed(spec.seed)
        drawn = train.training_batches(spec.training.batch_size, generator)
        orders.append([list(batch) for batch in islice(drawn, 2)])
    if orders[0] != orders[1]:
        raise UsageError(
            "the train split: the sampler of its loader draws another order though the seed is the "
            "same, and a run could not be resumed; let it draw from its attribute 'generator', or "
            "from torch, numpy or random without a generator of its own"
        )


def _fingerprint(data: Any) -> str:
    """A hash of the first batches."""
    digest = hashlib.sha256()

    def add(column: Any) -> None:
        if isinstance(column, list):
            digest.update("\n".join(column).encode())
        else:
            # numpy has no bfloat16, and what matters is only whether two are the same.
            digest.update(column.detach().cpu().double().numpy().tobytes())

    for batch in islice(iter(batches(data, 64)), 2):
        map_columns(add, batch)
    return digest.hexdigest()


def _named(part: str, make: Callable[[], _Made], where: str = "") -> _Made:
    """What ``make`` gives; where it fails, an error that says which part of the problem did."""
    try:
        return make()
    # The first says already what is wrong; the second is no fault of the problem.
    except (UsageError, MemoryError):
        raise
    except Exception as error:
        place = f" {where}" if where else ""
        raise UsageError(
            f"the {part} fails{place}: {type(error).__name__}: {' '.join(str(error).split())}"
        ) from error


def _bound(function: Callable[..., _Made], *arguments: Any) -> Callable[[], _Made]:
    # In a function, since a lambda inside a loop would see the last values of its variables.
    return lambda: function(*arguments)


def _described(value: Any) -> str:
    """The types and shapes of a structure's first tensors."""
    leaves = [leaf for leaf in tree_leaves(value) if isinstance(leaf, Tensor)]
    shown = [f"{str(t.dtype).removeprefix('torch.')} {list(t.shape)}" for t in leaves[:3]]
    return ", ".join(shown) + (" ..." if len(leaves) > 3 else "") or type(value).__name__
