"""The invariants that every part of lorpman must keep, by name."""

import copy
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils import _pytree as pytree

from lorpman.manifold.base import Manifold, ParameterManifold, select_output
from lorpman.preference import dirichlet


def randomise(model: Manifold) -> None:
    """Move every parameter away from its start, where many invariants hold trivially."""
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.1 * torch.randn_like(parameter))


def tensors(tree: Any) -> list[Tensor]:
    """The tensors of a nested structure."""
    return [leaf for leaf in pytree.tree_leaves(tree) if isinstance(leaf, Tensor)]


def assert_same(left: Any, right: Any, tolerance: float = 1e-5) -> None:
    """Two output structures have equal tensors."""
    ours, theirs = tensors(left), tensors(right)
    assert len(ours) == len(theirs)
    for a, b in zip(ours, theirs, strict=True):
        torch.testing.assert_close(a, b, atol=tolerance, rtol=tolerance)


def assert_theta_is_affine(model: ParameterManifold) -> None:
    """``theta(t a + (1 - t) b) = t theta(a) + (1 - t) theta(b)``."""
    first, second = dirichlet(model.num_tasks, 2)
    between = model.theta(0.3 * first + 0.7 * second)
    a, b = model.theta(first), model.theta(second)
    assert between.keys() == dict(model.network.named_parameters()).keys()
    for name, value in between.items():
        torch.testing.assert_close(value, 0.3 * a[name] + 0.7 * b[name], atol=1e-6, rtol=1e-4)


def assert_batch_is_loop(model: Manifold, x: Any, tolerance: float = 1e-5) -> None:
    """``forward(x, alphas)[j] = forward(x, alphas[j])``."""
    model.eval()
    alphas = dirichlet(model.num_tasks, 3)
    together = model(x, alphas)
    for j, alpha in enumerate(alphas):
        assert_same(select_output(together, j), model(x, alpha), tolerance)


def assert_solution_equals_forward(model: Manifold, x: Any, tolerance: float = 1e-6) -> None:
    """``solution(alpha)(x) = forward(x, alpha)``, and the solution holds no lorpman manifold."""
    model.eval()
    for alpha in dirichlet(model.num_tasks, 3):
        solution = model.solution(alpha)
        assert not any(isinstance(module, Manifold) for module in solution.modules())
        assert_same(solution(x), model(x, alpha), tolerance)


def assert_all_trainable_get_gradient(model: Manifold, x: Any) -> None:
    """Every parameter that can be trained receives a gradient from a random preference."""
    model.zero_grad()
    leaves = tensors(model(x, dirichlet(model.num_tasks, 2)))
    torch.stack([leaf.square().sum() for leaf in leaves]).sum().backward()
    for name, parameter in model.named_parameters():
        if parameter.requires_grad:
            assert parameter.grad is not None, f"{name} got no gradient"
            assert parameter.grad.abs().sum() > 0, f"{name} got a zero gradient"


def assert_permuting_tasks_permutes(
    permute: Callable[[Tensor], Manifold], model: Manifold, x: Any
) -> None:
    """A manifold whose tasks' own parameters are permuted answers the permuted preference."""
    order = torch.randperm(model.num_tasks)
    other = permute(order)
    alpha = dirichlet(model.num_tasks, 1)[0]
    assert_same(other(x, alpha[order]), model(x, alpha))


def assert_untouched(network: nn.Module, work: Callable[[], object]) -> None:
    """``work`` leaves every tensor of ``network`` as it was."""
    before = copy.deepcopy(network.state_dict())
    work()
    after = network.state_dict()
    assert before.keys() == after.keys()
    for name, value in before.items():
        assert torch.equal(value, after[name]), f"{name} was changed"


def assert_vertex_is_member(
    model: ParameterManifold, members: dict[str, Tensor], index: int
) -> None:
    """At ``alpha = e_i``, theta is member ``i`` and only member ``i`` receives a gradient."""
    vertex = torch.eye(model.num_tasks)[index]
    theta = model.theta(vertex)
    for name, stacked in members.items():
        torch.testing.assert_close(theta[name], stacked[index])
    model.zero_grad()
    torch.stack([theta[name].square().sum() for name in members]).sum().backward()
    for name, stacked in members.items():
        assert stacked.grad is not None, f"{name} got no gradient"
        touched = stacked.grad.flatten(1).abs().sum(1).nonzero().flatten().tolist()
        assert touched == [index], f"{name}: members {touched} got a gradient"


def assert_callers_do_not_disturb(model: Manifold, x: Any, threads: int = 4) -> None:
    """Concurrent calls at different preferences give what each of them gives alone."""
    model.eval()
    alphas = dirichlet(model.num_tasks, threads)
    with torch.no_grad():
        alone = [model(x, alpha) for alpha in alphas]

    def work(j: int) -> bool:
        with torch.no_grad():
            outputs = [model(x, alphas[j]) for _ in range(30)]
        expected = tensors(alone[j])
        return all(
            torch.equal(a, b)
            for output in outputs
            for a, b in zip(tensors(output), expected, strict=True)
        )

    with ThreadPoolExecutor(threads) as pool:
        assert all(pool.map(work, range(threads)))
    with torch.no_grad():
        assert_same(model(x, alphas[0]), alone[0], 0)
