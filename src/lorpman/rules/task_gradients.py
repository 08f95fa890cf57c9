"""Gradients of every task at once, and how a rule hands over the ones it has made."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager

import torch
from torch import Tensor, nn

from lorpman.errors import TrainingDiverged, UsageError
from lorpman.rules.base import Step

GradientPairs = list[tuple[Tensor, Tensor]]
"""Tensors of the graph and the gradient each is to get."""

# How many columns of the gradient matrix are widened to float64 at once: a copy of the whole matrix
# would need three times the memory of the gradients.
_CHUNK = 2**20


class TaskGradients:
    """The gradients of every task's loss: of shared tensors as one matrix, of others as given.

    One backward pass per task. Memory: ``m`` gradients of the shared tensors at once, and for
    ``others`` (heads) those that a task reaches, usually its own.

    Args:
        losses: The tasks' losses, ``[m]``, with their graph.
        shared: Parameters, or features in the middle of the graph, that all tasks use.
        others: Tensors that some tasks use.

    Attributes:
        matrix: One row per task, the shared tensors' gradients side by side: ``[m, P]``.
        other_gradients: For each task, the gradient of each of ``others``, or None.
    """

    def __init__(self, losses: Tensor, shared: Sequence[Tensor], others: Sequence[Tensor]) -> None:
        self.shared, self.others = list(shared), list(others)
        self.sizes = [tensor.numel() for tensor in self.shared]
        # Zeros stay where a loss does not depend on a tensor.
        self.matrix = self.shared[0].new_zeros(len(losses), sum(self.sizes))
        self.other_gradients: list[list[Tensor | None]] = []
        inputs = [*self.shared, *self.others]
        for row, loss in zip(self.matrix, losses, strict=True):
            # The graph is kept for the other tasks, and for the one pass in give_gradients.
            reached = torch.autograd.grad(loss, inputs, retain_graph=True, allow_unused=True)
            # Not strict: the gradients of the others come after those of the shared tensors.
            for part, gradient in zip(row.split(self.sizes), reached, strict=False):
                if gradient is not None:
                    part.copy_(gradient.reshape(-1))
            self.other_gradients.append(list(reached[len(self.shared) :]))

    def gram(self) -> Tensor:
        """Inner products of the tasks' shared gradients, ``[m, m]``, float64 on the CPU.

        Raises:
            TrainingDiverged: If a gradient is not finite.
        """
        total = torch.zeros(len(self.matrix), len(self.matrix), dtype=torch.float64)
        for part in self.matrix.split(_CHUNK, 1):
            wide = part.double()
            total += (wide @ wide.T).cpu()
        if not torch.isfinite(total).all():
            raise TrainingDiverged(
                "the gradient of a task's loss is not finite although the loss is; look for a "
                "root or a norm at zero, or lower the learning rate"
            )
        return total

    def weighted(self, weights: Tensor, head_weights: Tensor) -> GradientPairs:
        """Every tensor, paired with a weighted sum of its gradients.

        Args:
            weights: What the shared gradients are weighted with, ``[m]``.
            head_weights: What the others' are weighted with, ``[m]``.
        """
        direction = weights.to(self.matrix) @ self.matrix
        return self.directed(direction, head_weights)

    def directed(self, direction: Tensor, head_weights: Tensor) -> GradientPairs:
        """The shared tensors, paired with parts of a direction; the others, with weighted sums.

        Args:
            direction: What the shared tensors are to get, side by side: ``[P]``.
            head_weights: What the others' gradients are weighted with, ``[m]``.
        """
        parts = direction.split(self.sizes)
        pairs = [(t, part.view_as(t)) for t, part in zip(self.shared, parts, strict=True)]
        for index, tensor in enumerate(self.others):
            reaching = [
                (float(weight), gradient)
                for weight, row in zip(head_weights, self.other_gradients, strict=True)
                if (gradient := row[index]) is not None
            ]
            # What no loss reaches gets no gradient rather than zeros, so that an optimiser leaves
            # it alone.
            if reaching:
                total = sum((w * g for w, g in reaching), torch.zeros_like(tensor))
                pairs.append((tensor, total))
        return pairs


def give_gradients(step: Step, pairs: GradientPairs) -> None:
    """Back-propagate so that every tensor of ``pairs`` gets the gradient beside it.

    ``d/dt <t, g> = g``: going through ``step.backward`` instead of writing ``grad`` keeps what
    the run does there, such as averaging over processes. Features pass theirs on to the bottom.

    Args:
        step: The step whose ``backward`` is used.
        pairs: Tensors and the gradients they are to get.
    """
    inner = [torch.vdot(t.flatten(), g.detach().flatten().to(t)) for t, g in pairs]
    step.backward(torch.stack(inner).sum())


def task_gradients(step: Step, row: int) -> TaskGradients:
    """The gradients of the tasks' losses at one preference of a step.

    Args:
        step: The step.
        row: Which preference, from 0.

    Raises:
        UsageError: If no shared parameter is trained.
    """
    alpha = step.alphas[row]
    shared = step.model.shared_parameters(alpha)
    if not shared:
        raise UsageError("nothing shared is trained, so there is nothing to balance; unfreeze it")
    # Only this network's: with the parameters of other members among the inputs, the backward pass
    # would run through their networks too.
    heads = parameters_besides(step.model.parameters_at(alpha), shared)
    return TaskGradients(step.losses[row], shared, heads)


def parameters_besides(parameters: Sequence[Tensor], shared: Iterable[Tensor]) -> list[Tensor]:
    """The parameters that are not shared: those of the heads.

    Args:
        parameters: All of a network.
        shared: Those that its tasks share.
    """
    known = {id(p) for p in shared}
    return [p for p in parameters if id(p) not in known]


@contextmanager
def outputs_recorded(*modules: nn.Module) -> Iterator[list[list[Tensor]]]:
    """The outputs of each module's calls, while the context is open.

    Args:
        *modules: The modules to watch.

    Yields:
        One list per module, to which every call adds its output.
    """
    outputs: list[list[Tensor]] = [[] for _ in modules]

    def keep_in(kept: list[Tensor]) -> object:
        return lambda module, args, output: kept.append(output)

    handles = [
        module.register_forward_hook(keep_in(kept))  # type: ignore[arg-type]
        for module, kept in zip(modules, outputs, strict=True)
    ]
    try:
        yield outputs
    finally:
        # Hooks that stayed would be copied into every solution.
        for handle in handles:
            handle.remove()


@contextmanager
def buffers_restored(model: nn.Module) -> Iterator[None]:
    """Restore the buffers afterwards: a look ahead must not move batch normalisation.

    Args:
        model: The module whose buffers are restored.
    """
    before = [(buffer, buffer.clone()) for buffer in model.buffers()]
    try:
        yield
    finally:
        with torch.no_grad():
            for buffer, value in before:
                # Not tracked: the graph of the step's own losses must stay valid.
                buffer.data.copy_(value)


def gradient_norms(losses: Tensor, parameters: Sequence[nn.Parameter]) -> Tensor:
    """The norm of the gradient of each of the ``losses [k]``, ``[k]``; the graph is kept.

    Args:
        losses: Scalars with their graph, ``[k]``.
        parameters: What they are differentiated in, taken together.
    """
    norms = []
    for loss in losses:
        reached = torch.autograd.grad(loss, parameters, retain_graph=True, allow_unused=True)
        pairs = zip(reached, parameters, strict=True)
        rows = [torch.zeros_like(p) if gradient is None else gradient for gradient, p in pairs]
        norms.append(torch.stack([row.norm() for row in rows]).norm())
    return torch.stack(norms)
