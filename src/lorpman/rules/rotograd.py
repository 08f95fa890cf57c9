"""RotoGrad (Javaloy and Valera, ICLR 2022): each task sees the features through a rotation."""

import copy

import torch
from torch import Tensor, nn

from lorpman.errors import UsageError
from lorpman.manifold.base import Manifold
from lorpman.manifold.shared_bottom import SharedBottom
from lorpman.rules.balancer import require_shared_bottom
from lorpman.rules.base import Rule, Step
from lorpman.rules.rule_state import BufferedAdam, ensure_buffer
from lorpman.rules.task_gradients import (
    TaskGradients,
    give_gradients,
    outputs_recorded,
    parameters_besides,
)

# A rotation of d features takes d^2 numbers and a matrix exponential in every step.
_LARGEST_ROTATION = 512


class Rotation(nn.Module):
    """``z R^T`` on the first ``size`` flattened features, ``R = exp(S - S^T)``: orthogonal.

    ``S`` is a buffer that starts at zero: the tasks' losses do not train it, the rule does.

    Args:
        size: How many features are turned.
    """

    skew: Tensor
    """``S``, ``[size, size]``."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self.register_buffer("skew", torch.zeros(size, size))

    def forward(self, z: Tensor) -> Tensor:
        """The features ``z [n, ...]`` turned, in the same shape.

        Args:
            z: The features.

        Raises:
            UsageError: If there are fewer features than the rotation turns.
        """
        flat = z.flatten(1)
        size = len(self.skew)
        if flat.shape[1] < size:
            raise UsageError(
                f"rotation_size is {size}, but the bottom gives {flat.shape[1]} features; lower it"
            )
        turned = flat[:, :size] @ rotation(self.skew).to(flat).T
        return torch.cat([turned, flat[:, size:]], 1).view_as(z)


def rotation(skew: Tensor) -> Tensor:
    """The orthogonal matrix ``exp(S - S^T)``; the identity at zero.

    Args:
        skew: ``S``, ``[d, d]``; any matrix, so that it can be trained without constraints.
    """
    return torch.linalg.matrix_exp(skew - skew.T)


def with_rotations(network: nn.Module, size: int | None = None) -> SharedBottom:
    """A copy of ``network`` with a rotation before each head.

    Args:
        network: An ``lp.SharedBottom``.
        size: How many features are turned; by default the heads' input, at most 512.

    Raises:
        UsageError: If ``network`` has no shared bottom, or its number of features is not known.
    """
    if not isinstance(network, SharedBottom):
        raise UsageError(
            f"RotoGrad rotates the features of an lp.SharedBottom, found {type(network).__name__}"
        )
    network = copy.deepcopy(network)
    first = next((m for m in network.heads[0].modules() if isinstance(m, nn.Linear)), None)
    if size is None:
        if first is None:
            raise UsageError("cannot tell the number of features; set rotation_size")
        size = min(first.in_features, _LARGEST_ROTATION)
    like = next(network.parameters())
    for index, head in enumerate(network.heads):
        network.heads[index] = nn.Sequential(Rotation(size).to(like.device), head)
    return network


class RotoGrad(Rule):
    """Turns each task's features so that the gradients align, and evens out their lengths.

    Needs an ``lp.Single`` over :func:`with_rotations`.

    Args:
        rate: The learning rate of the rotations, as a multiple of the run's; they follow Adam.
        burn_in: The step at which the gradients' starting lengths are measured again, since those
            of the very first step are far from typical.
    """

    starts: Tensor
    """Length of every task's gradient at the start, ``[m]``."""
    steps: Tensor
    """How many steps there were, ``[]``."""

    def __init__(self, rate: float = 0.1, burn_in: int = 20) -> None:
        super().__init__()
        self.rate = rate
        self.burn_in = burn_in
        self.adam = nn.ModuleList()

    def prepare(self, model: Manifold) -> None:
        """Make room for what the rule remembers of each task.

        Raises:
            UsageError: If some head of ``model`` has no rotation before it.
        """
        rotations = self._rotations(model)
        ensure_buffer(self, "starts", torch.ones(model.num_tasks))
        ensure_buffer(self, "steps", torch.zeros((), dtype=torch.long))
        if len(self.adam) != len(rotations):
            self.adam = nn.ModuleList(BufferedAdam(r.skew) for r in rotations)

    def backward(self, step: Step) -> None:
        """Turn the rotations, and leave the balanced gradient at the features.

        Raises:
            UsageError: If the tasks have inputs of their own.
        """
        bottom = require_shared_bottom(self, step.model).bottom
        rotations = self._rotations(step.model)
        with outputs_recorded(bottom, *rotations) as (outputs, *turned):
            # The forward pass runs here, while its outputs are recorded.
            losses = step.losses[0]
        z, *further_calls = outputs
        if further_calls or any(len(part[0]) != len(z) for part in turned):
            raise UsageError(
                "RotoGrad compares the tasks' gradients at the same samples; it cannot be used "
                "with inputs per task"
            )
        heads = parameters_besides(step.model.parameters_at(step.alphas[0]), bottom.parameters())
        features = [output for (output,) in turned]
        gradients = TaskGradients(losses, [z], [*heads, *features])
        self._update_rotations(rotations, gradients, len(heads), step)
        direction = scaled_sum(gradients.matrix, self._starting_lengths(gradients.matrix))
        pairs = gradients.directed(direction, torch.ones(len(losses)))
        # The rotated features were only watched; what they need reaches the bottom through z.
        watched = {id(feature) for feature in features}
        give_gradients(step, [(t, g) for t, g in pairs if id(t) not in watched])

    def _starting_lengths(self, matrix: Tensor) -> Tensor:
        if int(self.steps) in (0, self.burn_in):
            self.starts.copy_(matrix.norm(dim=1))
        self.steps += 1
        return self.starts

    def _update_rotations(
        self, rotations: list[Rotation], gradients: TaskGradients, heads: int, step: Step
    ) -> None:
        """One step of every rotation towards the gradient that the tasks should share."""
        rate = self.rate * float(step.optimizer.param_groups[0]["lr"])
        common = common_gradient(gradients.matrix).view_as(gradients.shared[0]).flatten(1)
        for k, rotated in enumerate(rotations):
            # Of task k's loss at its own rotated features, which stand behind the heads.
            at_rotated = gradients.other_gradients[k][heads + k]
            adam = self.adam[k]
            if at_rotated is None or not isinstance(adam, BufferedAdam):
                continue
            size = len(rotated.skew)
            wanted = at_rotated.flatten(1)[:, :size]
            change = rotation_gradient(rotated.skew, common[:, :size], wanted)
            # In place is safe: what is back-propagated after this runs through the bottom only.
            rotated.skew += adam.change(change, rate)

    def _rotations(self, model: Manifold) -> list[Rotation]:
        heads = require_shared_bottom(self, model).heads
        first = [head[0] if isinstance(head, nn.Sequential) else None for head in heads]
        rotations = [module for module in first if isinstance(module, Rotation)]
        if len(rotations) != len(heads):
            raise UsageError(
                "RotoGrad needs a rotation before each head; build the network with "
                "lorpman.rules.rotograd.with_rotations(network)"
            )
        return rotations


def scaled_sum(matrix: Tensor, starts: Tensor) -> Tensor:
    """``sum_k G_k / |G_k|`` times the mean length, tasks that shrank least weighing most.

    Args:
        matrix: The tasks' gradients, ``[m, P]``.
        starts: Their lengths at the start, ``[m]``.

    Returns:
        The gradient of the shared features, ``[P]``.

    >>> scaled_sum(torch.tensor([[1.0, 2.0], [1.0, 2.0]]), torch.ones(2))
    tensor([2., 4.])
    """
    tiny = torch.finfo(matrix.dtype).tiny
    lengths = matrix.norm(dim=1)
    shrunk = lengths / starts.to(lengths).clamp_min(tiny)
    shares = shrunk / shrunk.sum().clamp_min(tiny)
    units = matrix / lengths.clamp_min(tiny)[:, None]
    return units.sum(0) * (shares * lengths).sum()


def common_gradient(matrix: Tensor) -> Tensor:
    """The mean of the tasks' gradients, each first brought to the length of their plain mean.

    Args:
        matrix: The tasks' gradients, ``[m, P]``.

    Returns:
        ``[P]``.
    """
    tiny = torch.finfo(matrix.dtype).tiny
    length = matrix.mean(0).norm()
    return (matrix * (length / matrix.norm(dim=1).clamp_min(tiny))[:, None]).mean(0)


def rotation_gradient(skew: Tensor, common: Tensor, wanted: Tensor) -> Tensor:
    """The gradient in ``S`` of ``mean |R v - g|^2`` over samples.

    Args:
        skew: ``S``, ``[d, d]``.
        common: ``v``, the gradient that the tasks should share, ``[n, d]``.
        wanted: ``g``, a task's gradient at its rotated features, ``[n, d]``.

    Returns:
        ``[d, d]``.
    """
    # By autograd: the derivative of a matrix exponential has no short formula.
    with torch.enable_grad():
        leaf = skew.detach().clone().requires_grad_()
        gap = common.detach().to(leaf) @ rotation(leaf).T - wanted.detach().to(leaf)
        return torch.autograd.grad(gap.square().sum(1).mean(), leaf)[0]
