"""What changes while training, as one state that a checkpoint can hold."""

from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, cast, get_args

import torch
from torch import Tensor, nn
from torch.optim import Optimizer
from torch.optim.lr_scheduler import LRScheduler, ReduceLROnPlateau

from lorpman.errors import TrainingInterrupted, UsageError, unknown
from lorpman.manifold.base import Cut, Manifold
from lorpman.rules.base import Rule, Step
from lorpman.rules.objective import Linear
from lorpman.training import checkpoint as checkpoints
from lorpman.training.averaging import Averaging
from lorpman.training.processes import agree, average_gradients, from_every_process
from lorpman.training.resumable_batches import Pass, capture, restore
from lorpman.training.stop_signals import Stop

if TYPE_CHECKING:
    from lightning_fabric import Fabric

MakeOptimizer = Callable[[Iterable[nn.Parameter]], Optimizer]
MakeScheduler = Callable[[Optimizer], LRScheduler]
Interval = Literal["epoch", "step"]


class Training:
    """Weights, optimiser, schedule, random numbers, and how far it has come."""

    def __init__(
        self,
        model: Manifold,
        objective: Rule | None,
        optimizer: Optimizer | MakeOptimizer | None,
        scheduler: LRScheduler | MakeScheduler | None,
        seed: int | None,
        fabric: "Fabric | None",
        own_preferences: bool = False,
        compiled: bool = False,
        averaging: float = 0.0,
        scheduler_interval: Interval = "epoch",
    ) -> None:
        self.model = model
        self.compiled = compiled
        self.rule = Linear() if objective is None else objective
        self.rule.prepare(model)
        self.fabric = _default_fabric() if fabric is None else fabric
        self.plain_optimizer = _make_optimizer(optimizer, model, self.rule)
        self.scheduler = _make_scheduler(scheduler, self.plain_optimizer, scheduler_interval)
        self.scheduler_interval = scheduler_interval
        self.generator = torch.Generator()
        seed = int(torch.randint(2**62, ())) if seed is None else seed
        rank = self.fabric.global_rank if own_preferences else 0
        # Far apart: the seeds of two runs should not give two processes one sequence.
        self.generator.manual_seed((seed + rank * 0x9E3779B97F4A7C15) % 2**63)
        self.frozen = False
        self.epoch = 0
        """Epochs that are done."""
        self.steps = 0
        """Steps that are done of the next one."""
        self.losses = torch.zeros(model.num_tasks)
        """Sums over those steps."""
        self.seconds = 0.0
        self.last_rate = 0.0
        """Of the last step."""
        self.data: Pass | None = None
        self._set_up()
        self.averaging = Averaging(model, averaging) if averaging else None

    def _set_up(self) -> None:
        # The wrapper before it holds on to parameters of the sizes that it saw.
        self.wrapped = self.optimizer = cast("Any", None)
        self.rule.to(self.fabric.device)
        module: nn.Module = self.model
        if self.compiled:
            module = cast("nn.Module", torch.compile(self.model))
        # Compiled inside Fabric's wrapper and not around it, since forward looks into the wrapper.
        self.wrapped, self.optimizer = self.fabric.setup(
            module, self.plain_optimizer, _reapply_compile=False
        )

    def begin(self, loader: Iterable[Any]) -> Pass:
        """The batches of this epoch that are still to come."""
        if self.data is None:
            self.data = Pass(loader, self.fabric.to_device)
        self.wrapped.train()
        return self.data

    def forward(self, x: Any, alphas: Tensor) -> Any:
        """The outputs at ``alphas [b, m]``, in the run's precision and seen by its processes.

        This is what Fabric's wrapper does, without its ban on gradients that do not come from
        ``fabric.backward``: rules that balance tasks take their own. The ban is there for losses
        that are scaled, as those of half precision are.
        """
        precision = self.fabric.strategy.precision
        if getattr(precision, "scaler", None) is not None:
            return self.wrapped(x, alphas)
        x, alphas = precision.convert_input((x, alphas))
        with precision.forward_context():
            outputs = self.wrapped._forward_module(x, alphas)
        return precision.convert_output(outputs)

    def step(self, losses_at: Callable[[Tensor, Any], Tensor], step: dict[str, Any]) -> Tensor:
        """Gradients by the rule, then one step of the optimiser; the losses ``[b, m]``."""
        kept: list[Tensor] = []
        calls: list[int] = []

        def backward(loss: Tensor) -> None:
            calls.append(1)
            self.fabric.backward(loss)

        def closure() -> Tensor:
            self.optimizer.zero_grad()
            calls.clear()
            alphas = step["alphas"].to(self.fabric.device)
            given = {**step, "alphas": alphas, "losses_at": losses_at}
            now = Step(model=self.model, backward=backward, optimizer=self.plain_optimizer, **given)
            try:
                self.rule.backward(now)
            except RuntimeError as error:
                if "fabric.backward" not in str(error):
                    raise
                raise UsageError(
                    f"{type(self.rule).__name__} takes gradients itself, without the scaling of "
                    "losses that 16-mixed needs; use the precision bf16-mixed or 32-true"
                ) from None
            self._average(synced=bool(calls))
            self.model.after_backward()
            kept[:] = [now.losses.detach()]
            return kept[0].sum()

        if isinstance(self.plain_optimizer, torch.optim.LBFGS):
            self.optimizer.step(closure)
        else:
            closure()
            self.optimizer.step()
        if self.averaging is not None:
            self.averaging.follow()
        self.last_rate = self.learning_rate()
        if self.scheduler is not None and self.scheduler_interval == "step":
            self.scheduler.step()
        return kept[0]

    def shown(self) -> AbstractContextManager[None]:
        """Inside this context the model is as it will be in the end: the mean, if there is one."""
        return nullcontext() if self.averaging is None else self.averaging.shown()

    def finish(self) -> None:
        """Leave the model as it is to be used."""
        if self.averaging is not None:
            self.averaging.settle()

    def _average(self, synced: bool) -> None:
        """One gradient on all processes.

        The distributed wrapper has averaged what came through ``backward``; gradients that a
        rule set by itself, and those of the rule's own parameters, are not known to it.
        """
        if self.fabric.world_size > 1:
            mine = [] if synced else list(self.model.parameters())
            average_gradients(self.fabric, [*mine, *self.rule.parameters()])

    def finish_epoch(self) -> list[float]:
        """Move the schedule; the mean loss of every task over the epoch."""
        if self.steps == 0:
            raise UsageError("the loader is empty: nothing to train on")
        mean = agree(self.fabric, self.losses / self.steps).tolist()
        if isinstance(self.scheduler, ReduceLROnPlateau):
            self.scheduler.step(sum(mean))
        elif self.scheduler is not None and self.scheduler_interval == "epoch":
            self.scheduler.step()
        self.epoch, self.steps, self.data = self.epoch + 1, 0, None
        self.losses, self.seconds = torch.zeros(self.model.num_tasks), 0.0
        return mean

    def begin_epoch(self, epochs: int) -> None:
        """Let the model change its size, before the first step of an epoch."""
        if self.steps:
            return
        cuts = self.model.begin_epoch(self.epoch, epochs)
        if cuts:
            for parameter, cut in cuts.items():
                self._cut(parameter, cut)
            self._forget_history()
            self._set_up()
            if self.averaging is not None:
                self.averaging.restart()

    def _cut(self, parameter: nn.Parameter, cut: Cut) -> None:
        """Let what the optimiser knows of a parameter follow it to its new size."""
        state = self.plain_optimizer.state.get(parameter, {})
        for key, value in state.items():
            if isinstance(value, Tensor) and value.shape == cut.before:
                state[key] = cut.cut(value)
        tensors = [value for value in state.values() if isinstance(value, Tensor)]
        if any(value.ndim and value.shape != parameter.shape for value in tensors):
            # Some optimisers keep sums over rows or columns.
            self.plain_optimizer.state.pop(parameter)

    def _forget_history(self) -> None:
        """LBFGS keeps a list of its own, and a history of steps of all parameters together."""
        if isinstance(self.plain_optimizer, torch.optim.LBFGS):
            self.plain_optimizer.state.clear()
            self.plain_optimizer._params = self.plain_optimizer.param_groups[0]["params"]
            self.plain_optimizer._numel_cache = None

    def freeze(self, heads: bool) -> None:
        """Stop the main weights: no gradient, no optimiser state, a fresh distributed wrapper."""
        self.model.freeze(heads)
        for group in self.plain_optimizer.param_groups:
            for parameter in group["params"]:
                if not parameter.requires_grad:
                    self.plain_optimizer.state.pop(parameter, None)
            group["params"] = [p for p in group["params"] if p.requires_grad]
        self._forget_history()
        self.frozen = True
        self._set_up()

    def learning_rate(self) -> float:
        return float(self.plain_optimizer.param_groups[0]["lr"])

    def state(self, loader: Iterable[Any]) -> dict[str, Any]:
        """Everything that the next step depends on."""
        mine = {
            "preferences": self.generator.get_state(),
            "random": capture(loader),
            "data": None if self.data is None else self.data.state(),
        }
        weights = dict(self.model.state_dict())
        averaging = self.averaging
        # Whoever opens a run wants the model as it is to be used.
        shown = weights if averaging is None else {**weights, **averaging.means}
        trained = None if averaging is None else {"weights": weights, "steps": averaging.steps}
        return {
            "epochs_done": self.epoch,
            "steps_done": self.steps,
            "losses": self.losses,
            "seconds": self.seconds,
            "last_rate": self.last_rate,
            "frozen": self.frozen,
            "model": shown,
            "averaging": trained,
            "rule": dict(self.rule.state_dict()),
            "optimizer": self.plain_optimizer.state_dict(),
            "scheduler": None if self.scheduler is None else self.scheduler.state_dict(),
            "scheduler_interval": self.scheduler_interval,
            "processes": from_every_process(self.fabric, mine),
        }

    def load(self, path: Path, freeze_heads: bool, loader: Iterable[Any]) -> None:
        """Go to where :meth:`state` was taken."""
        state = checkpoints.load_latest(path)
        if "processes" not in state:
            raise UsageError(f"checkpoint {path} is of another version and cannot be resumed")
        interval = state.get("scheduler_interval", "epoch")
        if self.scheduler is not None and interval != self.scheduler_interval:
            raise UsageError(
                f"the schedule of checkpoint {path} moves with every {interval}, and this one with "
                f"every {self.scheduler_interval}; resume with the settings it was begun with"
            )
        if len(state["processes"]) != self.fabric.world_size:
            raise UsageError(
                f"checkpoint {path} is of {len(state['processes'])} processes, found "
                f"{self.fabric.world_size}; resume with as many devices as before"
            )
        if state["frozen"]:
            self.freeze(freeze_heads)
        sizes = [p.shape for p in self.model.parameters()]
        trained = state.get("averaging")
        load_weights(self.model, state["model"] if trained is None else trained["weights"], path)
        if self.averaging is not None and trained is not None:
            means = {name: state["model"][name] for name in self.averaging.means}
            self.averaging.means, self.averaging.steps = means, int(trained["steps"])
        if sizes != [p.shape for p in self.model.parameters()]:
            self._set_up()
        self.rule.load_state_dict(state["rule"])
        self.plain_optimizer.load_state_dict(state["optimizer"])
        if self.scheduler is not None:
            self.scheduler.load_state_dict(state["scheduler"])
        self.epoch, self.steps = int(state["epochs_done"]), int(state["steps_done"])
        self.losses, self.seconds = state["losses"], float(state["seconds"])
        self.last_rate = float(state.get("last_rate", self.learning_rate()))
        mine = state["processes"][self.fabric.global_rank]
        self.generator.set_state(mine["preferences"])
        if mine["data"] is not None:
            self.begin(loader).replay(mine["data"])
        restore(mine["random"], loader)


@dataclass(frozen=True)
class Saver:
    """Writes checkpoints when they are due, and when a signal has asked to stop."""

    path: Path | None
    every: int | None
    """Steps between checkpoints; those at the ends of epochs come on top."""
    stop: Stop

    def after_step(self, run: Training, loader: Iterable[Any]) -> None:
        due = self.every is not None and run.steps % self.every == 0
        self._save(run, loader, due)

    def after_epoch(self, run: Training, loader: Iterable[Any]) -> None:
        self._save(run, loader, True)

    def _save(self, run: Training, loader: Iterable[Any], due: bool) -> None:
        if self.path is None:
            return
        # Signals reach processes at different times: all of them must stop at one step.
        signal = int(agree(run.fabric, torch.tensor(self.stop.signal), "max"))
        if not due and not signal:
            return
        state = run.state(loader)
        if run.fabric.is_global_zero:
            checkpoints.save(state, self.path)
        if signal:
            where = f"after epoch {run.epoch}" + (f", step {run.steps}" if run.steps else "")
            raise TrainingInterrupted(
                f"stopped by signal {signal} {where}; saved in {self.path}, "
                "continue with --resume (resume=True)",
                signal,
            )


def load_weights(model: Manifold, weights: dict[str, Tensor], path: Path) -> None:
    """Load a checkpoint's weights, or say in one line why they do not fit."""
    try:
        model.load_state_dict(weights)
    except RuntimeError as error:
        reason = str(error).splitlines()[1].strip() if "\n" in str(error) else str(error)
        raise UsageError(f"checkpoint {path} is of another network: {reason}") from error


def _default_fabric() -> "Fabric":
    from lightning_fabric import Fabric

    return Fabric(devices=1)


def _make_optimizer(
    optimizer: Optimizer | MakeOptimizer | None, model: Manifold, rule: Rule
) -> Optimizer:
    trained = [p for p in (*model.parameters(), *rule.parameters()) if p.requires_grad]
    if optimizer is None:
        return torch.optim.Adam(trained, lr=1e-3, fused=True)
    if not isinstance(optimizer, Optimizer):
        return optimizer(trained)
    held = {id(p) for group in optimizer.param_groups for p in group["params"]}
    missing = [n for n, p in model.named_parameters() if p.requires_grad and id(p) not in held]
    if missing:
        raise UsageError(
            f"the optimizer lacks {len(missing)} of the model's parameters, among them "
            f"{missing[0]}; the manifold works on a copy of your network, so make the optimizer "
            "from model.parameters() (requires_grad_(False) stops what should not be trained)"
        )
    extra = [p for p in rule.parameters() if p.requires_grad and id(p) not in held]
    if extra:
        optimizer.add_param_group({"params": extra})
    return optimizer


def _make_scheduler(
    scheduler: LRScheduler | MakeScheduler | None, optimizer: Optimizer, interval: Interval
) -> LRScheduler | None:
    if interval not in get_args(Interval):
        raise unknown("scheduler_interval", interval, get_args(Interval))
    if scheduler is not None and not isinstance(scheduler, LRScheduler):
        scheduler = scheduler(optimizer)
    if scheduler is not None and scheduler.optimizer is not optimizer:
        raise UsageError(
            "the scheduler moves another optimizer than the one that trains; pass both, or a "
            "function that makes the scheduler from the optimizer"
        )
    if interval == "step" and isinstance(scheduler, ReduceLROnPlateau):
        raise UsageError(
            "ReduceLROnPlateau looks at the loss of an epoch; use scheduler_interval='epoch'"
        )
    return scheduler
