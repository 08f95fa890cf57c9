"""Training a manifold with PyTorch Lightning's ``Trainer``.

``pip install 'lorpman[lightning]'``; where ``lightning`` is installed or imported instead of
``pytorch_lightning``, that one is used.
"""

import sys
from collections.abc import Callable, Iterable, Sequence
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from lorpman.errors import TrainingDiverged, UsageError, need
from lorpman.front.evaluate import evaluate
from lorpman.front.front import Front
from lorpman.manifold.base import Manifold
from lorpman.manifold.stacked_outputs import select_output
from lorpman.rules.base import Rule, Step
from lorpman.rules.objective import Linear
from lorpman.task import Task, check_tasks, task_losses, unpack
from lorpman.training.optimizers import drop_frozen


def _package() -> str:
    """The name under which Lightning is used here: its classes exist twice, and do not mix."""
    names = ("lightning.pytorch", "pytorch_lightning")
    imported = [name for name in names if name in sys.modules]
    installed = [name for name in names if find_spec(name.partition(".")[0]) is not None]
    return (imported or installed or ["pytorch_lightning"])[0]


if TYPE_CHECKING:
    from pytorch_lightning import LightningModule
else:
    LightningModule = need(_package(), extra="lightning").LightningModule


class ParetoModule(LightningModule):
    """A manifold for Lightning's ``Trainer``: every step is one of Algorithm 1 of the paper.

    Preferences are drawn in every step, and the rule leaves the gradients (manual optimisation).
    After every validation the front is kept as :attr:`front`, and its hypervolume is logged as
    ``hypervolume``, for checkpoints and early stopping to watch.

    Args:
        model: The manifold.
        tasks: Its m tasks.
        objective: Turns losses into gradients, as in :func:`lorpman.fit`.
        optimizer: Makes the optimiser from the parameters; by default Adam with rate 1e-3.
        window: Preferences per step.
        concentration: Of the Dirichlet distribution that they are drawn from.
        freeze_epoch: Before this epoch, counted from 0, the main weights stop; None for never.
        freeze_heads: Whether the heads stop with them.
        alphas: The preferences ``[n, m]`` of the validation front; None for the manifold's own.
        seed: Of the preferences.

    Raises:
        UsageError: If model, tasks and objective do not fit together.
    """

    def __init__(
        self,
        model: Manifold,
        tasks: Sequence[Task],
        *,
        objective: Rule | None = None,
        optimizer: Callable[[Iterable[nn.Parameter]], Optimizer] | None = None,
        window: int = 4,
        concentration: float = 1.0,
        freeze_epoch: int | None = None,
        freeze_heads: bool = False,
        alphas: Tensor | None = None,
        seed: int = 0,
    ) -> None:
        super().__init__()
        check_tasks(tasks, model.num_tasks)
        if window < 1:
            raise UsageError(f"window must be at least 1, got {window}")
        # A rule takes gradients itself, perhaps in several passes.
        self.automatic_optimization = False
        self.model, self.tasks = model, list(tasks)
        self.rule = Linear() if objective is None else objective
        self.rule.prepare(model)
        self.window, self.alphas = window, alphas
        self.freeze_epoch, self.freeze_heads = freeze_epoch, freeze_heads
        self.front: Front | None = None
        """On the validation data, after the last epoch that had some."""
        self._make_optimizer = optimizer or (lambda parameters: torch.optim.Adam(parameters, 1e-3))
        self._draw = model.sampler(concentration)
        self._generator = torch.Generator().manual_seed(seed)

    def forward(self, x: Any, alpha: Tensor) -> Any:
        """The outputs at ``alpha``, as those of the manifold.

        Args:
            x: What the network takes.
            alpha: A preference ``[m]``, or several ``[b, m]``.
        """
        return self.model(x, alpha)

    def configure_optimizers(self) -> Optimizer:
        """The optimiser of the manifold, and of the rule where that learns too."""
        learned = [*self.model.parameters(), *self.rule.parameters()]
        return self._make_optimizer([p for p in learned if p.requires_grad])

    def on_train_epoch_start(self) -> None:
        """Stop the main weights when it is time."""
        # Not in that very epoch only: a training may be resumed after it.
        if self.freeze_epoch is None or self.current_epoch < self.freeze_epoch:
            return
        if not self.model.frozen:
            self.model.freeze(self.freeze_heads)
            drop_frozen(self._plain_optimizer())

    def training_step(self, batch: Any, batch_idx: int) -> None:
        """Draw preferences, let the rule leave its gradients, and step.

        Args:
            batch: The mini-batch ``(x, y)``.
            batch_idx: Its number in the epoch; not used.
        """
        del batch_idx
        optimizer: Any = self.optimizers()
        alphas = self._draw(self.model.num_tasks, self.window, self._generator).to(self.device)
        optimizer.zero_grad()
        step = Step(
            alphas=alphas,
            model=self.model,
            backward=self.manual_backward,
            losses_at=self._losses_at,
            batch=batch,
            another_batch=_no_other_batch,
            epoch=self.current_epoch,
            epochs=self.trainer.max_epochs or 0,
            optimizer=self._plain_optimizer(),
        )
        self.rule.backward(step)
        self.model.after_backward()
        optimizer.step()
        means = step.losses.detach().mean(0)
        named = {f"loss/{task.name}": mean for task, mean in zip(self.tasks, means, strict=True)}
        # The same size for every batch, so that an epoch's mean weighs them alike, as in lp.fit.
        self.log_dict(named, on_step=False, on_epoch=True, batch_size=len(alphas))

    def validation_step(self, batch: Any, batch_idx: int) -> None:
        """Nothing: a front is scored over all batches at once.

        Lightning runs no validation where this method is missing.

        Args:
            batch: Not used.
            batch_idx: Not used.
        """

    def on_validation_epoch_end(self) -> None:
        """Score the front on the validation data, and log its hypervolume."""
        loader = self.trainer.val_dataloaders
        # Before training, Lightning only tries whether validation runs at all.
        if loader is None or self.trainer.sanity_checking:
            return
        self.front = evaluate(self.model, self.tasks, loader, self.alphas)
        volume = float(self.front.hypervolume())
        self.log("hypervolume", volume, prog_bar=True, rank_zero_only=True)

    def _losses_at(self, alphas: Tensor, batch: Any) -> Tensor:
        """The losses ``[b, m]`` of a batch."""
        x, y = unpack(batch)
        outputs = self.model(x, alphas)
        rows = [task_losses(select_output(outputs, j), y, self.tasks) for j in range(len(alphas))]
        losses = torch.stack(rows)
        if not torch.isfinite(losses).all():
            raise TrainingDiverged(
                f"a loss became NaN or infinite in epoch {self.current_epoch + 1}; check the data "
                "or lower the learning rate"
            )
        return losses

    def _plain_optimizer(self) -> Optimizer:
        """The optimiser itself, without Lightning's wrapper."""
        (optimizer,) = self.trainer.optimizers
        return optimizer


def _no_other_batch() -> Any:
    raise UsageError(
        "this rule measures on a second batch, which Lightning does not give; use lp.fit for it"
    )
