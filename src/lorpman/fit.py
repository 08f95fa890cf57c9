"""The first verb: one loop for every method. It reads like Algorithm 1 of the paper."""

import time
from collections.abc import Callable, Iterable, Iterator, Sequence, Sized
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn
from torch.optim import Optimizer
from torch.optim.lr_scheduler import LRScheduler, ReduceLROnPlateau

from lorpman import checkpoint as checkpoints
from lorpman.data.base import generators
from lorpman.errors import TrainingDiverged, UsageError
from lorpman.evaluate import evaluate
from lorpman.manifold.base import Manifold, select_output
from lorpman.objective import Linear
from lorpman.preference import Sampler
from lorpman.progress import Progress, progress_bar
from lorpman.rule import Rule, Step
from lorpman.task import Task, check_tasks, task_losses

if TYPE_CHECKING:
    from lightning_fabric import Fabric

MakeOptimizer = Callable[[Iterable[nn.Parameter]], Optimizer]
MakeScheduler = Callable[[Optimizer], LRScheduler]


@dataclass(frozen=True)
class Epoch:
    """What one epoch of training did."""

    number: int
    """Counted from 1."""
    losses: dict[str, float]
    """Mean training loss of every task, over batches and drawn preferences."""
    hypervolume: float | None
    """Of the front on the validation data."""
    learning_rate: float
    frozen: bool
    seconds: float


def fit(
    model: Manifold,
    tasks: Sequence[Task],
    loader: Iterable[Any],
    *,
    epochs: int,
    objective: Rule | None = None,
    window: int = 4,
    concentration: float = 1.0,
    sampler: Sampler | None = None,
    freeze_epoch: int | None = None,
    freeze_heads: bool = False,
    optimizer: Optimizer | MakeOptimizer | None = None,
    scheduler: LRScheduler | MakeScheduler | None = None,
    validation: Iterable[Any] | None = None,
    validation_alphas: Tensor | None = None,
    seed: int | None = None,
    fabric: "Fabric | None" = None,
    progress: bool = True,
    checkpoint: Path | str | None = None,
    resume: bool = False,
    on_epoch: Callable[[Epoch], None] | None = None,
) -> list[Epoch]:
    """Train ``model`` in place so that every preference gives a good trade-off.

    Every step draws ``window`` preferences (Dirichlet with ``concentration``, unless a
    ``sampler`` is given), runs the same mini-batch through the networks at all of them, and
    lets ``objective`` (default: linear scalarisation) turn the losses into gradients. From
    epoch ``freeze_epoch`` on, counted from 0, the main weights stay still.

    ``optimizer`` and ``scheduler`` are instances, or functions that make one (default: Adam,
    1e-3); schedulers step once per epoch. With ``validation``, each epoch reports hypervolume,
    at ``validation_alphas`` or the manifold's own preferences.
    ``seed`` fixes the preferences; default: drawn from torch's global generator. ``fabric``
    places the run (devices, precision, processes). With ``checkpoint``, every epoch is saved
    there, and ``resume`` continues from it, bit for bit on the CPU.
    """
    check_tasks(tasks, model.num_tasks)
    _check_settings(epochs, window, freeze_epoch)
    draw = sampler if sampler is not None else model.sampler(concentration)
    run = _Training(model, objective, optimizer, scheduler, seed, fabric)
    path = None if checkpoint is None else Path(checkpoint)
    start = (
        run.load(path, freeze_heads, loader) if resume and path is not None and path.exists() else 0
    )
    steps = len(loader) if isinstance(loader, Sized) else None
    history: list[Epoch] = []
    with progress_bar(progress and run.fabric.is_global_zero, epochs, start, steps) as bar:
        for epoch in range(start, epochs):
            if freeze_epoch is not None and epoch == freeze_epoch:
                run.freeze(freeze_heads)
            began = time.perf_counter()
            rate = run.learning_rate()
            losses = run.epoch(epoch, epochs, tasks, loader, draw, window, bar)
            volume = None
            if validation is not None:
                front = evaluate(model, tasks, validation, validation_alphas)
                volume = float(front.hypervolume())
            named = {task.name: value for task, value in zip(tasks, losses, strict=True)}
            seconds = time.perf_counter() - began
            record = Epoch(epoch + 1, named, volume, rate, run.frozen, seconds)
            history.append(record)
            bar.epoch(record.number, named, volume)
            if on_epoch is not None:
                on_epoch(record)
            if path is not None and run.fabric.is_global_zero:
                run.save(path, epoch + 1, loader)
    return history


def _check_settings(epochs: int, window: int, freeze_epoch: int | None) -> None:
    if epochs < 1:
        raise UsageError(f"epochs must be at least 1, got {epochs}")
    if window < 1:
        raise UsageError(f"window must be at least 1, got {window}")
    if freeze_epoch is not None and freeze_epoch < 0:
        raise UsageError(f"freeze_epoch must be 0 or more, got {freeze_epoch}")


class _Training:
    """What changes while training: weights, optimiser, schedule and random numbers."""

    def __init__(
        self,
        model: Manifold,
        objective: Rule | None,
        optimizer: Optimizer | MakeOptimizer | None,
        scheduler: LRScheduler | MakeScheduler | None,
        seed: int | None,
        fabric: "Fabric | None",
    ) -> None:
        self.model = model
        self.rule = Linear() if objective is None else objective
        self.rule.prepare(model)
        self.fabric = _default_fabric() if fabric is None else fabric
        self.plain_optimizer = _make_optimizer(optimizer, model, self.rule)
        self.scheduler = _make_scheduler(scheduler, self.plain_optimizer)
        self.generator = torch.Generator()
        self.generator.manual_seed(int(torch.randint(2**62, ())) if seed is None else seed)
        self.frozen = False
        self._set_up()

    def _set_up(self) -> None:
        self.rule.to(self.fabric.device)
        self.wrapped, self.optimizer = self.fabric.setup(self.model, self.plain_optimizer)

    def epoch(
        self,
        epoch: int,
        epochs: int,
        tasks: Sequence[Task],
        loader: Iterable[Any],
        draw: Sampler,
        window: int,
        bar: Progress,
    ) -> list[float]:
        """One pass over the data; the mean loss of every task."""
        self.wrapped.train()
        spare = _Spare(loader, self.fabric.to_device)
        total, steps = torch.zeros(len(tasks)), 0
        for batch in loader:
            alphas = draw(self.model.num_tasks, window, self.generator)
            losses = self._step(batch, alphas, tasks, spare, (epoch, epochs, steps))
            total += losses.mean(0).cpu()
            steps += 1
            bar.step()
        if steps == 0:
            raise UsageError("the loader is empty: nothing to train on")
        mean = (total / steps).tolist()
        if isinstance(self.scheduler, ReduceLROnPlateau):
            self.scheduler.step(sum(mean))
        elif self.scheduler is not None:
            self.scheduler.step()
        return mean

    def _step(
        self,
        batch: Any,
        alphas: Tensor,
        tasks: Sequence[Task],
        spare: "_Spare",
        where: tuple[int, int, int],
    ) -> Tensor:
        batch = self.fabric.to_device(batch)
        epoch, epochs, step = where
        kept: list[Tensor] = []

        def losses_at(alphas: Tensor, batch: Any) -> Tensor:
            x, y = _unpack(batch)
            outputs = self.wrapped(x, alphas)
            rows = [task_losses(select_output(outputs, j), y, tasks) for j in range(len(alphas))]
            losses = torch.stack(rows)
            _check_finite(losses, alphas, tasks, epoch, step)
            return losses

        def closure() -> Tensor:
            self.optimizer.zero_grad()
            now = Step(
                alphas=alphas.to(self.fabric.device),
                model=self.model,
                backward=self.fabric.backward,
                losses_at=losses_at,
                batch=batch,
                another_batch=spare,
                epoch=epoch,
                epochs=epochs,
                optimizer=self.plain_optimizer,
            )
            self.rule.backward(now)
            kept[:] = [now.losses.detach()]
            return now.losses.detach().sum()

        if isinstance(self.plain_optimizer, torch.optim.LBFGS):
            self.optimizer.step(closure)
        else:
            closure()
            self.optimizer.step()
        return kept[0]

    def freeze(self, heads: bool) -> None:
        """Stop the main weights: no gradient, no optimiser state, a fresh distributed wrapper."""
        self.model.freeze(heads)
        for group in self.plain_optimizer.param_groups:
            for parameter in group["params"]:
                if not parameter.requires_grad:
                    self.plain_optimizer.state.pop(parameter, None)
            group["params"] = [p for p in group["params"] if p.requires_grad]
        self.frozen = True
        self._set_up()

    def learning_rate(self) -> float:
        return float(self.plain_optimizer.param_groups[0]["lr"])

    def save(self, path: Path, epochs_done: int, loader: Iterable[Any]) -> None:
        """Everything that the next epoch depends on."""
        state = {
            "epochs_done": epochs_done,
            "frozen": self.frozen,
            "model": dict(self.model.state_dict()),
            "rule": dict(self.rule.state_dict()),
            "optimizer": self.plain_optimizer.state_dict(),
            "scheduler": None if self.scheduler is None else self.scheduler.state_dict(),
            "preferences": self.generator.get_state(),
            "data": [generator.get_state() for generator in _generators(loader)],
            "random": torch.get_rng_state(),
        }
        checkpoints.save(state, path)

    def load(self, path: Path, freeze_heads: bool, loader: Iterable[Any]) -> int:
        """Restore what :meth:`save` wrote; how many epochs it had done."""
        state = checkpoints.load(path)
        if state["frozen"]:
            self.freeze(freeze_heads)
        load_weights(self.model, state["model"], path)
        self.rule.load_state_dict(state["rule"])
        self.plain_optimizer.load_state_dict(state["optimizer"])
        if self.scheduler is not None:
            self.scheduler.load_state_dict(state["scheduler"])
        self.generator.set_state(state["preferences"])
        for generator, kept in zip(_generators(loader), state["data"], strict=True):
            generator.set_state(kept)
        torch.set_rng_state(state["random"])
        return int(state["epochs_done"])


def load_weights(model: Manifold, weights: dict[str, Tensor], path: Path) -> None:
    """Load a checkpoint's weights, or say in one line why they do not fit."""
    try:
        model.load_state_dict(weights)
    except RuntimeError as error:
        reason = str(error).splitlines()[1].strip() if "\n" in str(error) else str(error)
        raise UsageError(f"checkpoint {path} is of another network: {reason}") from error


def _generators(loader: Iterable[Any]) -> list[torch.Generator]:
    """What decides the order of the data, and how it is augmented."""
    order = getattr(loader, "generator", None)
    transforms = generators(getattr(loader, "dataset", None))
    return transforms if order is None else [order, *transforms]


def _default_fabric() -> "Fabric":
    from lightning_fabric import Fabric

    return Fabric(devices=1)


def _make_optimizer(
    optimizer: Optimizer | MakeOptimizer | None, model: Manifold, rule: Rule
) -> Optimizer:
    trained = [p for p in (*model.parameters(), *rule.parameters()) if p.requires_grad]
    if optimizer is None:
        return torch.optim.Adam(trained, lr=1e-3)
    if not isinstance(optimizer, Optimizer):
        return optimizer(trained)
    held = {id(p) for group in optimizer.param_groups for p in group["params"]}
    if not any(id(p) in held for p in model.parameters()):
        raise UsageError(
            "the optimizer holds none of the model's parameters; the manifold works on a copy of "
            "your network, so make the optimizer from model.parameters()"
        )
    extra = [p for p in rule.parameters() if p.requires_grad and id(p) not in held]
    if extra:
        optimizer.add_param_group({"params": extra})
    return optimizer


def _make_scheduler(
    scheduler: LRScheduler | MakeScheduler | None, optimizer: Optimizer
) -> LRScheduler | None:
    if scheduler is None or isinstance(scheduler, LRScheduler):
        return scheduler
    return scheduler(optimizer)


class _Spare:
    """Further training batches for a rule that asks for them, from a pass of their own."""

    def __init__(self, loader: Iterable[Any], to_device: Callable[[Any], Any]) -> None:
        self._loader = loader
        self._to_device = to_device
        self._pass: Iterator[Any] = iter(())

    def __call__(self) -> Any:
        batch = next(self._pass, None)
        if batch is None:
            self._pass = iter(self._loader)
            batch = next(self._pass)
        return self._to_device(batch)


def _unpack(batch: Any) -> tuple[Any, Any]:
    if not isinstance(batch, Sequence) or len(batch) != 2:
        found = f"{len(batch)} parts" if isinstance(batch, Sequence) else type(batch).__name__
        raise UsageError(
            f"a batch must be (x, y) with one target per task in y, found {found}; "
            "for separate targets use (x, [y_1, ..., y_m])"
        )
    return batch[0], batch[1]


def _check_finite(
    losses: Tensor, alphas: Tensor, tasks: Sequence[Task], epoch: int, step: int
) -> None:
    if torch.isfinite(losses).all():
        return
    j, i = (~torch.isfinite(losses)).nonzero()[0].tolist()
    preference = ", ".join(f"{a:.3g}" for a in alphas[j].tolist())
    raise TrainingDiverged(
        f"the loss of task '{tasks[i].name}' became {losses[j, i].item()} at epoch {epoch + 1}, "
        f"step {step + 1}, preference ({preference}); check this task's data or lower the "
        "learning rate"
    )
