"""Train a front with the Trainer of Hugging Face: its arguments, callbacks and checkpoints."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor, nn
from transformers import Trainer, TrainingArguments

from lorpman.errors import UsageError
from lorpman.front.evaluate import evaluate
from lorpman.front.front import Front
from lorpman.manifold.base import Manifold
from lorpman.manifold.stacked_outputs import select_output
from lorpman.rules.objective import Linear, Term
from lorpman.task import Task, check_tasks, task_losses, unpack

WEIGHTS = "front.safetensors"
"""What is trained, in a checkpoint of the Trainer."""


class ParetoTrainer(Trainer):
    """The Trainer of transformers, which draws preferences and trains a manifold.

    A batch is what the data collator gives: ``(x, y)`` as for :func:`lorpman.fit`, or a mapping, of
    which ``labels`` are the targets ``y`` and the rest is the input. Evaluation gives the front and
    logs its hypervolume. A checkpoint holds what is trained and not the frozen base.

    Args:
        model: The manifold, usually ``LowRank(network, m, frozen=True)``.
        args: Of transformers. Columns are not removed, since the manifold does not name them;
            activation checkpointing is switched on in the network.
        tasks: One per task of the manifold.
        objective: Sum of terms; None for linear scalarisation.
        window: Preferences per step, b in the paper.
        concentration: Of the Dirichlet distribution they are drawn from.
        **others: As for the Trainer: datasets, collator, callbacks.

    Raises:
        UsageError: If tasks and manifold do not fit together.
    """

    front: Front | None = None
    """The front of the last evaluation."""

    def __init__(
        self,
        model: Manifold,
        args: TrainingArguments,
        tasks: Sequence[Task],
        objective: Term | None = None,
        window: int = 4,
        concentration: float = 1.0,
        **others: Any,
    ) -> None:
        check_tasks(tasks, model.num_tasks)
        if window < 1:
            raise UsageError(f"window must be at least 1, got {window}")
        self.tasks, self.window = tasks, window
        self.objective: Term = Linear() if objective is None else objective
        self.draw = model.sampler(concentration)
        # The Trainer would drop every column that the manifold's forward(x, alpha) does not name.
        args.remove_unused_columns = False
        if args.activation_checkpointing:
            network: Any = model.get_submodule("network")
            network.activation_checkpointing_enable(args.activation_checkpointing_kwargs)
            # Done already; the Trainer would ask the manifold for it.
            args.activation_checkpointing = args.gradient_checkpointing = False
        super().__init__(model=model, args=args, **others)

    def compute_loss(
        self,
        model: nn.Module,
        inputs: Any,
        return_outputs: bool = False,
        num_items_in_batch: Tensor | int | None = None,
    ) -> Any:
        """The objective at freshly drawn preferences.

        Args:
            model: The manifold, perhaps wrapped for several processes.
            inputs: A batch.
            return_outputs: Whether the outputs, led by b, are wanted too.
            num_items_in_batch: Not used: every task's loss is a mean of its own.
        """
        del num_items_in_batch
        x, y = _split(inputs)
        manifold = self.accelerator.unwrap_model(model)
        # From torch's own generator, whose state the Trainer keeps in its checkpoints.
        alphas = self.draw(manifold.num_tasks, self.window, None).to(self.args.device)
        outputs = model(x, alphas)
        rows = [task_losses(select_output(outputs, j), y, self.tasks) for j in range(len(alphas))]
        loss = self.objective(alphas, torch.stack(rows), manifold)
        return (loss, outputs) if return_outputs else loss

    def evaluate(
        self, eval_dataset: Any = None, ignore_keys: Any = None, metric_key_prefix: str = "eval"
    ) -> dict[str, float]:
        """Score the front on the evaluation data, and log its hypervolume and its ends.

        Args:
            eval_dataset: Other data than the Trainer's own.
            ignore_keys: Not used.
            metric_key_prefix: What the names of the values begin with.

        Returns:
            The values by name; :attr:`front` holds the front itself.
        """
        del ignore_keys
        batches = _Batches(self.get_eval_dataloader(eval_dataset))
        model = self.accelerator.unwrap_model(self.model)
        self.front = evaluate(model, self.tasks, batches)
        metrics = {f"{metric_key_prefix}_hypervolume": float(self.front.hypervolume())}
        for task, scores in zip(self.tasks, self.front.scores.T, strict=True):
            best = scores[task.direction.orient(scores).argmax()]
            metrics[f"{metric_key_prefix}_best_{task.name}"] = float(best)
        self.log(metrics)
        self.control = self.callback_handler.on_evaluate(
            self.args, self.state, self.control, metrics
        )
        return metrics

    def floating_point_ops(self, inputs: Any) -> int:
        """Not counted: 0.

        Args:
            inputs: Not used.
        """
        del inputs
        return 0

    def _save(self, output_dir: str | None = None, state_dict: Any = None) -> None:
        del state_dict
        folder = Path(output_dir or str(self.args.output_dir))
        folder.mkdir(parents=True, exist_ok=True)
        model = self.accelerator.unwrap_model(self.model)
        # Not the rest: with frozen=True that is a large network which everybody can get again.
        save_file({n: v.cpu().contiguous() for n, v in _trained(model).items()}, folder / WEIGHTS)

    def _load_from_checkpoint(
        self, resume_from_checkpoint: str, model: nn.Module | None = None
    ) -> None:
        into = _trained(self.accelerator.unwrap_model(self.model if model is None else model))
        stored = load_file(Path(resume_from_checkpoint) / WEIGHTS)
        if stored.keys() != into.keys():
            raise UsageError(
                f"the checkpoint '{resume_from_checkpoint}' holds {len(stored)} trained "
                f"parameters, expected the {len(into)} of this manifold; build it as before"
            )
        for name, value in into.items():
            value.copy_(stored[name])


@dataclass(frozen=True)
class _Batches:
    """The Trainer's evaluation data as pairs, any number of times."""

    loader: Any

    def __iter__(self) -> Iterator[tuple[Any, Any]]:
        for batch in self.loader:
            yield _split(batch)


def _split(batch: Any) -> tuple[Any, Any]:
    """Inputs and targets of a batch."""
    if not isinstance(batch, Mapping):
        return unpack(batch)
    if "labels" not in batch:
        raise UsageError(
            f"a batch needs targets under 'labels', found {', '.join(map(str, batch))}; let the "
            "data collator add them, or give pairs (x, y)"
        )
    return {key: value for key, value in batch.items() if key != "labels"}, batch["labels"]


def _trained(model: nn.Module) -> dict[str, Tensor]:
    """What is trained, as tensors that can be read and written."""
    return {name: p.detach() for name, p in model.named_parameters() if p.requires_grad}
