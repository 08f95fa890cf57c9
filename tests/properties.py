"""The invariants that every part of lorpman must keep, by name."""

import copy
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.utils import _pytree as pytree

from lorpman.front.hypervolume import hypervolume
from lorpman.manifold.base import Manifold
from lorpman.manifold.low_rank import LowRank
from lorpman.manifold.parameter_manifold import ParameterManifold
from lorpman.manifold.stacked_outputs import select_output
from lorpman.preference import dirichlet, grid
from lorpman.training import checkpoint


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


def assert_vertex_uses_only_its_delta(model: LowRank, x: Any, task: int) -> None:
    """At ``e_i`` the network is ``theta_0 + scale * B_i A_i``, whatever the other deltas are."""
    corner = torch.eye(model.num_tasks)[task]
    theta = model.theta(corner)
    weights = dict(model.network.named_parameters())
    for name, delta in model.low_rank_deltas().items():
        expected = weights[name] + model.scale * delta.dense()[task]
        torch.testing.assert_close(theta[name], expected, atol=1e-6, rtol=1e-4)
    before = model.eval()(x, corner)
    others = [i for i in range(model.num_tasks) if i != task]
    with torch.no_grad():
        for delta in model.low_rank_deltas().values():
            delta.A[others] = 100.0
            delta.B[:, others] = 100.0
    assert_same(model(x, corner), before)


def assert_frozen_do_not_move(
    before: Mapping[str, Tensor], after: Mapping[str, Tensor], frozen: Callable[[str], bool]
) -> None:
    """Of two snapshots of the parameters, exactly those that are ``frozen`` are equal."""
    for name, value in before.items():
        assert torch.equal(value, after[name]) is frozen(name), name


def assert_hypervolume_never_falls(points: Tensor, added: Tensor, reference: float) -> None:
    """A point more cannot make a front worse."""
    more = hypervolume(torch.cat([points, added]), reference)
    assert more >= hypervolume(points, reference) * (1 - 1e-12)


def assert_dominated_points_do_not_count(points: Tensor, worse: Tensor, reference: float) -> None:
    """Points that another one of the front beats, or equals, add no volume."""
    assert hypervolume(torch.cat([points, worse]), reference) == hypervolume(points, reference)


def assert_round_trips(state: dict[str, Any], path: Path) -> None:
    """What a checkpoint holds comes back as it went in."""
    checkpoint.save(state, path)
    loaded = checkpoint.load(path)
    ours, structure = pytree.tree_flatten(state)
    theirs, other = pytree.tree_flatten(loaded)
    assert structure == other
    for a, b in zip(ours, theirs, strict=True):
        assert torch.equal(a, b) if isinstance(a, Tensor) else a == b


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
    alphas = grid(model.num_tasks, threads)
    with torch.no_grad():
        alone = [model(x, alpha) for alpha in alphas]
    first, second = tensors(alone[0])[0], tensors(alone[1])[0]
    assert (first - second).abs().max() > 1e-4, "the preferences are too alike to tell"

    def work(j: int) -> bool:
        with torch.no_grad():
            outputs = [model(x, alphas[j]) for _ in range(30)]
        expected = tensors(alone[j])
        # Not bit by bit: a thread of its own may split its sums over other cores.
        return all(
            torch.allclose(a, b, atol=1e-5, rtol=1e-5)
            for output in outputs
            for a, b in zip(tensors(output), expected, strict=True)
        )

    with ThreadPoolExecutor(threads) as pool:
        assert all(pool.map(work, range(threads)))
    with torch.no_grad():
        assert_same(model(x, alphas[0]), alone[0], 0)


def assert_min_norm_is_optimal(gram: Tensor, weights: Tensor, tolerance: float = 1e-6) -> None:
    """``(K a)_i >= a^T K a`` for all i, on the simplex: the KKT conditions of the min norm."""
    gram = gram / gram.diagonal().sum().clamp_min(1e-300)
    slope = gram @ weights
    assert (weights >= 0).all()
    torch.testing.assert_close(weights.sum(), torch.ones((), dtype=weights.dtype))
    assert slope.min() >= weights @ slope - tolerance


def assert_common_descent(gram: Tensor, weights: Tensor, tolerance: float = 1e-9) -> None:
    """No task's loss rises along ``-sum_i w_i gradient_i``."""
    assert (gram @ weights).min() >= -tolerance * gram.diagonal().sum()


def assert_permutation_equivariant(
    rule: Callable[[Tensor], Tensor], gram: Tensor, tolerance: float = 1e-5
) -> None:
    """Renumbering the tasks renumbers the direction's inner products with them."""
    order = torch.randperm(len(gram))
    plain, renumbered = gram @ rule(gram), gram[order][:, order] @ rule(gram[order][:, order])
    scale = plain.abs().max().item()
    torch.testing.assert_close(renumbered, plain[order], atol=tolerance * scale, rtol=tolerance)


def assert_loss_scale_invariant(
    rule: Callable[[Tensor], Tensor], gram: Tensor, tolerance: float = 1e-5
) -> None:
    """Multiplying each loss by a constant leaves the direction as it was."""
    factors = 10 ** torch.randn(len(gram), dtype=gram.dtype)
    scaled = rule(factors[:, None] * gram * factors) * factors
    torch.testing.assert_close(scaled, rule(gram), atol=tolerance, rtol=tolerance)


def assert_resumes_to_the_same_bits(
    make: Callable[[], Manifold], fit: Callable[..., Any], path: Path, stop: int
) -> None:
    """``fit(make(), ...)`` ended after an epoch and resumed: the same weights as without an end."""

    class Enough(Exception):
        pass

    def end(epoch: Any) -> None:
        if epoch.number > stop:
            raise Enough

    whole, first, again = make(), make(), make()
    fit(whole)
    with pytest.raises(Enough):
        fit(first, checkpoint=path, on_epoch=end)
    fit(again, checkpoint=path, resume=True)
    for name, value in whole.state_dict().items():
        assert torch.equal(value, again.state_dict()[name]), name
