"""What changes while training, as one state that a checkpoint can hold."""

from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor
from torch.optim import Optimizer
from torch.optim.lr_scheduler import LRScheduler, ReduceLROnPlateau

from lorpman.errors import NotFinite, UsageError, check_kind
from lorpman.front.finiteness import describe_bad
from lorpman.manifold.base import Manifold
from lorpman.rules.base import Rule
from lorpman.rules.objective import Linear
from lorpman.training import checkpoint
from lorpman.training.divergence import LastStep
from lorpman.training.optimizers import (
    Interval,
    MakeOptimizer,
    MakeScheduler,
    cut_state,
    drop_frozen,
    make_optimizer,
    make_scheduler,
)
from lorpman.training.options import Placement
from lorpman.training.placed_model import PlacedModel
from lorpman.training.processes import agree, from_every_process
from lorpman.training.resumable_batches import ResumableBatches, capture, restore
from lorpman.training.stored_optimizer import load_optimizer, load_scheduler
from lorpman.training.weight_averaging import WeightAverage

if TYPE_CHECKING:
    from lightning_fabric import Fabric

# The golden ratio in 64 bits: multiples of it are far apart.
_SEED_DISTANCE = 0x9E3779B97F4A7C15


class TrainingState:
    """Weights, optimiser, schedule, random numbers, and how far training has come.

    Args:
        model: The manifold that is trained, in place.
        objective: The rule; None for linear scalarisation.
        optimizer: See :func:`~lorpman.training.optimizers.make_optimizer`.
        scheduler: See :func:`~lorpman.training.optimizers.make_scheduler`.
        scheduler_interval: Whether the schedule moves with epochs or with steps.
        placement: Devices, processes and precision.
        averaging: Decay of the exponential mean of the weights; 0 for none.
        seed: Fixes the preferences; None to draw one from torch's global generator.
    """

    def __init__(
        self,
        model: Manifold,
        objective: Rule | None = None,
        optimizer: Optimizer | MakeOptimizer | None = None,
        scheduler: LRScheduler | MakeScheduler | None = None,
        scheduler_interval: Interval = "epoch",
        placement: Placement | None = None,
        averaging: float = 0.0,
        seed: int | None = None,
    ) -> None:
        placement = placement or Placement()
        self.model = model
        self.rule = Linear() if objective is None else objective
        check_kind("objective", self.rule, Rule, "a rule, such as lp.Linear()")
        # Before the optimiser is made: a rule may add parameters of its own here.
        self.rule.prepare(model)
        self.optimizer = make_optimizer(optimizer, model, self.rule)
        self.scheduler = make_scheduler(scheduler, self.optimizer, scheduler_interval)
        self.scheduler_interval = scheduler_interval
        # From torch's own generator, so that torch.manual_seed decides this one too.
        seed = int(torch.randint(2**62, ())) if seed is None else seed
        self.placed = PlacedModel(model, self.rule, self.optimizer, placement)
        self.fabric: Fabric = self.placed.fabric
        rank = self.fabric.global_rank if placement.own_preferences else 0
        # Far apart: the seeds of two runs should not give two processes one sequence.
        seed = (seed + rank * _SEED_DISTANCE) % 2**63
        self.generator = torch.Generator().manual_seed(seed)
        """Draws the preferences."""
        self.average = WeightAverage(model, averaging) if averaging else None
        self.frozen = False
        self.epoch = 0
        """Epochs that are done."""
        self.steps = 0
        """Steps that are done of the next one."""
        self.losses = torch.zeros(model.num_tasks)
        """Sums ``[m]`` over those steps."""
        self.seconds = 0.0
        """Spent on those steps."""
        self.last_rate = 0.0
        """The learning rate of the last step."""
        self.batches: ResumableBatches | None = None
        self.last: LastStep | None = None
        """The last step that was taken here; None before the first one."""

    def begin_epoch(self, epochs: int, freeze_epoch: int | None, freeze_heads: bool) -> None:
        """Let the model shrink before the first step of an epoch, and freeze it when it is time.

        Args:
            epochs: Of the whole training.
            freeze_epoch: The epoch, counted from 0, before which the main weights are frozen;
                None for never.
            freeze_heads: Whether the heads are frozen with them.
        """
        # Not in an epoch that is resumed in the middle: its checkpoint is of the model after that.
        if self.steps == 0:
            cuts = self.model.begin_epoch(self.epoch, epochs)
            if cuts:
                cut_state(self.optimizer, cuts)
                self.placed.set_up()
                if self.average is not None:
                    self.average.restart()
        if self.epoch == freeze_epoch and not self.frozen:
            self.freeze(freeze_heads)

    def freeze(self, heads: bool) -> None:
        """Stop the main weights: no gradient, no optimiser state, a fresh distributed wrapper.

        Args:
            heads: Whether the heads are stopped too.
        """
        self.model.freeze(heads)
        drop_frozen(self.optimizer)
        self.frozen = True
        # The wrapper of several processes would wait for gradients that never come.
        self.placed.set_up()

    def remaining_batches(self, loader: Iterable[Any]) -> ResumableBatches:
        """The batches of this epoch that are still to come, on the run's device.

        Args:
            loader: The data.
        """
        if self.batches is None:
            self.batches = ResumableBatches(loader, self.fabric.to_device)
        # The caller may have it in evaluation mode.
        self.placed.wrapped.train()
        return self.batches

    def another_batch(self) -> Any:
        """One more batch for the present step, for rules that measure on other data."""
        assert self.batches is not None, "there is no step outside an epoch"
        return self.batches.another()

    def finish_step(self, losses: Tensor) -> None:
        """Count a step, and let the mean of the weights and the schedule follow.

        Args:
            losses: Those of the step, ``[b, m]``.
        """
        if self.average is not None:
            self.average.follow()
        # Before the schedule moves on: the rate that this step had.
        self.last_rate = self.learning_rate()
        if self.scheduler is not None and self.scheduler_interval == "step":
            self.scheduler.step()
        self.losses += losses.mean(0).cpu()
        self.steps += 1

    def finish_epoch(self) -> list[float]:
        """Close an epoch: move the schedule, and begin to count anew.

        Returns:
            The mean loss of every task over the epoch and all processes.

        Raises:
            UsageError: If there was no step.
        """
        if self.steps == 0:
            raise UsageError("the loader is empty: nothing to train on")
        mean = agree(self.fabric, self.losses / self.steps).tolist()
        # The mean of all processes, so that the rate is the same on each.
        if isinstance(self.scheduler, ReduceLROnPlateau):
            self.scheduler.step(sum(mean))
        elif self.scheduler is not None and self.scheduler_interval == "epoch":
            self.scheduler.step()
        self.epoch, self.steps, self.batches = self.epoch + 1, 0, None
        self.losses, self.seconds = torch.zeros(self.model.num_tasks), 0.0
        return mean

    def as_it_will_be(self) -> AbstractContextManager[None]:
        """Inside this context the model has its final weights: the mean, if there is one."""
        return nullcontext() if self.average is None else self.average.in_place()

    def finish(self) -> None:
        """Leave the model with its final weights: their mean, if there is one."""
        if self.average is not None:
            self.average.keep()

    def learning_rate(self) -> float:
        """The rate of the next step."""
        return float(self.optimizer.param_groups[0]["lr"])

    def as_checkpoint(self, loader: Iterable[Any]) -> dict[str, Any]:
        """Everything that the next step depends on; :meth:`resume` takes it.

        Every process must call it, since the random states of all go into one file.

        Args:
            loader: The data, whose random states belong to it.
        """
        mine = {
            "preferences": self.generator.get_state(),
            "random": capture(loader),
            "data": None if self.batches is None else self.batches.state(),
        }
        weights, average = dict(self.model.state_dict()), self.average
        # Whoever opens a run wants the model as it is to be used.
        final = weights if average is None else {**weights, **average.means}
        trained = None if average is None else {"weights": weights, "steps": average.steps}
        return {
            "epochs_done": self.epoch,
            "steps_done": self.steps,
            "losses": self.losses,
            "seconds": self.seconds,
            "last_rate": self.last_rate,
            "frozen": self.frozen,
            "model": final,
            "averaging": trained,
            "rule": dict(self.rule.state_dict()),
            "optimizer": self.optimizer.state_dict(),
            "scheduler": None if self.scheduler is None else self.scheduler.state_dict(),
            "scheduler_interval": self.scheduler_interval,
            # Random states differ between processes; all else is the same on each.
            "processes": from_every_process(self.fabric, mine),
        }

    def resume(self, path: Path, freeze_heads: bool, loader: Iterable[Any]) -> None:
        """Take training up where :meth:`as_checkpoint` left it.

        Args:
            path: The checkpoint file.
            freeze_heads: Whether heads are frozen together with the main weights.
            loader: Data like that of the interrupted training.

        Raises:
            UsageError: If the checkpoint is damaged, or of another model, schedule or number of
                processes.
        """
        content = checkpoint.load_latest(path)
        self._check_fits(content, path)
        # First: the stored state of the optimiser has no entries for what is frozen.
        if content["frozen"]:
            self.freeze(freeze_heads)
        self._load_model(content, path)
        mine = content["processes"][self.fabric.global_rank]
        with _one_line_for_what_does_not_fit(path):
            self.rule.load_state_dict(content["rule"])
            load_optimizer(self.optimizer, content["optimizer"])
            if self.scheduler is not None:
                load_scheduler(self.scheduler, content["scheduler"])
            self.generator.set_state(mine["preferences"])
        self.epoch, self.steps = int(content["epochs_done"]), int(content["steps_done"])
        self.losses, self.seconds = content["losses"], float(content["seconds"])
        # Older checkpoints do not have it.
        self.last_rate = float(content.get("last_rate", self.learning_rate()))
        if mine["data"] is not None:
            self.remaining_batches(loader).replay(mine["data"])
        # Last: to replay the data draws from the same generators.
        restore(mine["random"], loader)

    def _check_fits(self, content: dict[str, Any], path: Path) -> None:
        """Refuse a checkpoint that this training cannot go on from."""
        interval = content.get("scheduler_interval", "epoch")
        if self.scheduler is not None and content["scheduler"] is None:
            raise UsageError(
                f"checkpoint {path} has no schedule; resume with the settings it was begun with"
            )
        if self.scheduler is not None and interval != self.scheduler_interval:
            raise UsageError(
                f"the schedule of checkpoint {path} moves with every {interval}, and this one with "
                f"every {self.scheduler_interval}; resume with the settings it was begun with"
            )
        if len(content["processes"]) != self.fabric.world_size:
            raise UsageError(
                f"checkpoint {path} is of {len(content['processes'])} processes, found "
                f"{self.fabric.world_size}; resume with as many devices as before"
            )
        if content["losses"].shape != self.losses.shape:
            raise UsageError(
                f"checkpoint {path} is of {content['losses'].numel()} tasks, found "
                f"{self.model.num_tasks}; resume with the tasks it was begun with"
            )

    def _load_model(self, content: dict[str, Any], path: Path) -> None:
        """Load trained weights and their mean; a manifold may take the sizes of what it loads."""
        sizes = [p.shape for p in self.model.parameters()]
        trained = content.get("averaging")
        load_weights(self.model, content["model"], path)
        if self.average is not None:
            self.average.restart()
        if trained is not None:
            # What was loaded first is the mean, which nobody trains.
            load_weights(self.model, trained["weights"], path)
            if self.average is not None:
                self.average.steps = int(trained["steps"])
        # Automatic ranks were smaller there than at the start of a training.
        if sizes != [p.shape for p in self.model.parameters()]:
            self.placed.set_up()


@contextmanager
def _one_line_for_what_does_not_fit(path: Path) -> Iterator[None]:
    """Whatever torch raises over a state that is not of this training."""
    try:
        yield
    except Exception as error:
        reason = " ".join(str(error).split())
        raise UsageError(
            f"checkpoint {path} is of another training, or damaged: {reason[:300]}"
        ) from error


def load_weights(model: Manifold, weights: dict[str, Tensor], path: Path) -> None:
    """Load a checkpoint's weights into ``model``.

    Args:
        model: The manifold, which is changed.
        weights: Its state by name.
        path: Where they are from, for the message.

    Raises:
        UsageError: If they are of another network, or are not finite; one line says which weight
            does not fit.
    """
    bad = describe_bad({f"'{name}'": value for name, value in weights.items()}, masked=True)
    if bad is not None:
        raise NotFinite(f"checkpoint {path} is of a training that went wrong: {bad}; train again")
    try:
        model.load_state_dict(weights)
    except RuntimeError as error:
        # torch lists every weight that does not fit, below a heading; one is enough.
        reason = str(error).splitlines()[1].strip() if "\n" in str(error) else str(error)
        raise UsageError(f"checkpoint {path} is of another network: {reason}") from error
