"""The contenders of the rows about steps: each is a function that trains for one step."""

from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor, nn

from lorpman.lab.bench.workload import Workload
from lorpman.lab.datasets.splits import Batch
from lorpman.lab.runs.spec import Spec
from lorpman.manifold.base import Manifold
from lorpman.task import Task, task_losses
from lorpman.training.devices import Engine
from lorpman.training.fit import train_step
from lorpman.training.options import Placement
from lorpman.training.state import TrainingState

_PLAIN_ENGINE = Engine()


class _Endless:
    """A loader that gives one mini-batch for ever."""

    def __init__(self, batch: Any) -> None:
        self.batch = batch

    def __iter__(self) -> Iterator[Any]:
        while True:
            yield self.batch


class FitStep:
    """One step of :func:`lorpman.training.fit`, with the settings of ``spec``; call it to take one.

    It goes through the very functions that ``fit`` calls, but for the loader and the progress
    bar, and a test compares the weights it reaches with those that ``fit`` does.

    Args:
        spec: The settings: rule, optimiser, window and the rest.
        model: The manifold that is trained.
        tasks: Its m tasks.
        batch: The mini-batch ``(x, y)`` of every step.
        engine: Device, precision and whether to compile.
    """

    def __init__(
        self,
        spec: Spec,
        model: Manifold,
        tasks: list[Task],
        batch: Any,
        engine: Engine = _PLAIN_ENGINE,
    ) -> None:
        training = spec.training
        rule, make = spec.method.rule(spec.own), training.make_optimizer()
        fabric, compiled = engine.start([]), engine.compiled
        placement = Placement(fabric, compiled=compiled)
        self.run = TrainingState(model, rule, make, placement=placement, seed=spec.seed)
        self.tasks = tasks
        self.window = training.window
        self.draw = spec.sampler() or model.sampler(training.concentration)
        self.batches = iter(self.run.remaining_batches(_Endless(batch)))

    def __call__(self) -> Tensor:
        """Take one step; the losses ``[b, m]`` before it."""
        batch = next(self.batches)
        losses = train_step(self.run, batch, self.tasks, self.draw, self.window, epochs=1)
        self.run.finish_step(losses)
        return losses


def fit_step(
    workload: Workload, method: str = "lorpman", engine: Engine = _PLAIN_ENGINE
) -> FitStep:
    """Make a step of a method on a workload, as a run of its preset takes it.

    Args:
        workload: Network, tasks and mini-batch.
        method: Its name.
        engine: Devices and precision.

    Returns:
        The step, to be called.
    """
    spec, model = workload.spec_of(method), workload.manifold(method)
    return FitStep(spec, model, workload.tasks, workload.fit_batch(), engine)


def plain_steps(workload: Workload, passes: int, tuned: bool = False) -> Callable[[], None]:
    """Make steps of plain training on the mean loss: the same network, batch and optimiser.

    Args:
        workload: Network, tasks and mini-batch.
        passes: How many steps a call takes.
        tuned: Whether images are channels-last and the optimiser is fused, as in a run of ours;
            if not, all is as PyTorch does it unless told otherwise.

    Returns:
        A function that takes the steps.
    """
    torch.manual_seed(0)
    network = workload.network().train()
    optimizer = workload.spec.training.make_optimizer(fused=tuned)(network.parameters())
    batch = workload.fit_batch() if tuned else workload.plain_batch()

    def steps() -> None:
        for _ in range(passes):
            optimizer.zero_grad()
            mean_loss(network(batch[0]), batch, workload.tasks).backward()
            optimizer.step()

    return steps


def mean_loss(outputs: Any, batch: Batch, tasks: list[Task]) -> Tensor:
    """The mean of the tasks' losses, as anybody would write it down.

    Args:
        outputs: The network's, one for each task.
        batch: Inputs, which are not looked at, and one target for each task.
        tasks: Their losses count.

    Returns:
        A scalar.
    """
    return task_losses(outputs, batch[1], tasks).mean()


def factors(model: nn.Module) -> list[nn.Parameter]:
    """The parameters of a LORPMAN manifold that a plain network does not have.

    Args:
        model: Any module; of those that are no such manifold, the list is empty.
    """
    return [p for name, p in model.named_parameters() if name.startswith("deltas.")]
