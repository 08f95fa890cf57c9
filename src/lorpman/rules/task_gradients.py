"""Gradients of every task at once, and how a rule leaves the ones it has made."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager

import torch
from torch import Tensor, nn

from lorpman.errors import TrainingDiverged, UsageError
from lorpman.rules.base import Step

Pairs = list[tuple[Tensor, Tensor]]
"""Tensors of the graph and the gradient each is to get."""

_CHUNK = 2**20


class TaskGradients:
    """The gradients of ``losses [m]``: of ``shared`` as rows of a matrix, of ``others`` as given.

    One backward pass per task. Memory: ``m`` gradients of the shared tensors at once, and for
    ``others`` (heads) those that a task reaches, usually its own. ``shared`` may be parameters,
    or features in the middle of the graph.
    """

    def __init__(self, losses: Tensor, shared: Sequence[Tensor], others: Sequence[Tensor]) -> None:
        self.shared, self.others = list(shared), list(others)
        self.sizes = [tensor.numel() for tensor in self.shared]
        self.matrix = self.shared[0].new_zeros(len(losses), sum(self.sizes))
        self.rest: list[list[Tensor | None]] = []
        inputs = [*self.shared, *self.others]
        for row, loss in zip(self.matrix, losses, strict=True):
            found = torch.autograd.grad(loss, inputs, retain_graph=True, allow_unused=True)
            for part, gradient in zip(row.split(self.sizes), found, strict=False):
                if gradient is not None:
                    part.copy_(gradient.reshape(-1))
            self.rest.append(list(found[len(self.shared) :]))

    def gram(self) -> Tensor:
        """Inner products of the tasks' shared gradients, ``[m, m]``, float64 on the CPU."""
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

    def weighted(self, weights: Tensor, head_weights: Tensor) -> Pairs:
        """Every tensor with ``sum_i weights_i gradient_i``; heads with weights of their own."""
        direction = weights.to(self.matrix) @ self.matrix
        return self.directed(direction, head_weights)

    def directed(self, direction: Tensor, head_weights: Tensor) -> Pairs:
        """The shared tensors with parts of ``direction [P]``, the others with weighted sums."""
        parts = direction.split(self.sizes)
        pairs = [(t, part.view_as(t)) for t, part in zip(self.shared, parts, strict=True)]
        for index, tensor in enumerate(self.others):
            found = [
                (float(weight), gradient)
                for weight, row in zip(head_weights, self.rest, strict=True)
                if (gradient := row[index]) is not None
            ]
            if found:
                total = sum((w * g for w, g in found), torch.zeros_like(tensor))
                pairs.append((tensor, total))
        return pairs


def leave(step: Step, pairs: Pairs) -> None:
    """Back-propagate so that every tensor of ``pairs`` gets the gradient beside it.

    ``d/dt <t, g> = g``: going through ``step.backward`` instead of writing ``grad`` keeps what
    the run does there, such as averaging over processes. Features pass theirs on to the bottom.
    """
    inner = [torch.vdot(t.flatten(), g.detach().flatten().to(t)) for t, g in pairs]
    step.backward(torch.stack(inner).sum())


def task_gradients(step: Step, row: int) -> TaskGradients:
    """The gradients of the tasks' losses at preference ``row`` of a step."""
    alpha = step.alphas[row]
    shared = step.model.shared_parameters(alpha)
    if not shared:
        raise UsageError("nothing shared is trained, so there is nothing to balance; unfreeze it")
    # Only this network's: a pass that must reach other members' parameters runs through them.
    return TaskGradients(step.losses[row], shared, besides(step.model.parameters_at(alpha), shared))


def besides(parameters: Sequence[Tensor], shared: Iterable[Tensor]) -> list[Tensor]:
    """The parameters that are not shared: heads."""
    known = {id(p) for p in shared}
    return [p for p in parameters if id(p) not in known]


@contextmanager
def recorded(*modules: nn.Module) -> Iterator[list[list[Tensor]]]:
    """The outputs of each module's calls, while the context is open.

    Hooks that stayed would be copied into every solution.
    """
    outputs: list[list[Tensor]] = [[] for _ in modules]

    def keep(kept: list[Tensor]) -> object:
        return lambda module, args, output: kept.append(output)

    handles = [
        module.register_forward_hook(keep(kept))  # type: ignore[arg-type]
        for module, kept in zip(modules, outputs, strict=True)
    ]
    try:
        yield outputs
    finally:
        for handle in handles:
            handle.remove()


@contextmanager
def kept_buffers(model: nn.Module) -> Iterator[None]:
    """Restore the buffers afterwards: a look ahead must not move batch normalisation."""
    before = [(buffer, buffer.clone()) for buffer in model.buffers()]
    try:
        yield
    finally:
        with torch.no_grad():
            for buffer, value in before:
                # Not tracked: the graph of the step's own losses must stay valid.
                buffer.data.copy_(value)


def gradients(losses: Tensor, parameters: Sequence[nn.Parameter]) -> Iterator[list[Tensor]]:
    """The gradient of each of the ``losses [k]``, one tensor per parameter; the graph is kept."""
    for loss in losses:
        found = torch.autograd.grad(loss, parameters, retain_graph=True, allow_unused=True)
        pairs = zip(found, parameters, strict=True)
        yield [torch.zeros_like(p) if gradient is None else gradient for gradient, p in pairs]


def gradient_norms(losses: Tensor, parameters: Sequence[nn.Parameter]) -> Tensor:
    """The norm of the gradient of each of the ``losses [k]``, ``[k]``."""
    rows = (torch.stack([g.norm() for g in found]) for found in gradients(losses, parameters))
    return torch.stack([norms.norm() for norms in rows])
