import pytest
import torch
from torch import nn

import lorpman as lp
from lorpman.rules.rotograd import (
    Rotation,
    common_gradient,
    rotation,
    rotation_gradient,
    scaled_sum,
    with_rotations,
)
from rules.small import assert_left, close, gradients_of, make_step, network, one_step, tasks


def test_rotograd_of_equal_gradients_is_their_sum():
    rows = torch.randn(1, 12).expand(3, 12)
    torch.testing.assert_close(scaled_sum(rows, rows.norm(dim=1)), 3 * rows[0])
    torch.testing.assert_close(common_gradient(rows), rows[0])


def test_tasks_that_shrank_least_decide_the_length():
    matrix = torch.tensor([[3.0, 4.0], [0.0, 1.0]])
    # Lengths 5 and 1, of 5 and 0.5 at the start: shares 1/3 and 2/3, mean length 7/3.
    close(scaled_sum(matrix, torch.tensor([5.0, 0.5])), [1.4, 4.2], 1e-5)


def test_the_common_gradient_counts_every_task_with_one_length():
    close(common_gradient(torch.tensor([[4.0, 0.0], [0.0, 2.0]])), [5**0.5 / 2] * 2, 1e-5)


def test_a_task_without_gradient_gives_finite_directions():
    matrix = torch.tensor([[3.0, 4.0], [0.0, 0.0]])
    assert scaled_sum(matrix, torch.tensor([5.0, 0.0])).isfinite().all()
    assert common_gradient(matrix).isfinite().all()


def test_the_gradient_of_a_rotation_at_the_start():
    """2 (gap v^T - v gap^T), with the gap between the common gradient v and the task's own."""
    v, g = torch.tensor([[1.0, 0.0]]), torch.tensor([[0.0, 1.0]])
    close(rotation_gradient(torch.zeros(2, 2), v, g), [[0.0, 2.0], [-2.0, 0.0]], 1e-6)
    # A mean over samples, a sum over features.
    twice = rotation_gradient(torch.zeros(2, 2), v.repeat(2, 1), g.repeat(2, 1))
    close(twice, [[0.0, 2.0], [-2.0, 0.0]], 1e-6)


def test_a_rotation_turns_the_first_features_only():
    turn = Rotation(2)
    turn.skew[0, 1] = torch.pi / 2
    z = torch.tensor([[[1.0, 2.0], [3.0, 4.0]]])
    close(turn(z), [[[2.0, -1.0], [3.0, 4.0]]], 1e-5)
    with pytest.raises(lp.UsageError, match="rotation_size is 2, but the bottom gives 1 features"):
        turn(torch.ones(1, 1))


def test_rotations_start_as_the_identity_and_stay_orthogonal():
    plain = network()
    model, rule = lp.Single(with_rotations(plain), 2), lp.rules.RotoGrad(rate=10.0)
    x = torch.randn(5, 4)
    for a, b in zip(plain(x), model.network(x), strict=True):
        torch.testing.assert_close(a, b)
    rule.prepare(model)
    for _ in range(5):
        one_step(model, rule, learning_rate=0.1)
    for head in model.network.heads:
        R = rotation(head[0].skew)
        torch.testing.assert_close(R @ R.T, torch.eye(len(R)), atol=1e-5, rtol=0)
        assert (R - torch.eye(len(R))).abs().max() > 0.01


def test_rotations_align_the_gradients():
    """Where two tasks want opposite features, a turn lets both have them."""
    torch.manual_seed(3)
    model, rule = lp.Single(with_rotations(network()), 2), lp.rules.RotoGrad(rate=1.0)
    rule.prepare(model)
    step = one_step(model, rule)

    def cosine():
        z = model.network.bottom(step.batch[0]).detach().requires_grad_()
        outputs = [head(z) for head in model.network.heads]
        losses = [
            task.loss(out, y) for task, out, y in zip(tasks(2), outputs, step.batch[1], strict=True)
        ]
        first, second = (torch.autograd.grad(loss, z, retain_graph=True)[0] for loss in losses)
        return torch.cosine_similarity(first.flatten(), second.flatten(), 0).item()

    before = cosine()
    for _ in range(100):
        one_step(model, rule, learning_rate=1e-2, update=False)
    assert cosine() > before + 0.1


def test_bottom_and_heads_get_the_balanced_and_the_plain_gradient():
    model, rule = lp.Single(with_rotations(network()), 2), lp.rules.RotoGrad()
    rule.prepare(model)
    step = make_step(model)
    x, y = step.batch
    z = model.network.bottom(x)
    outputs = [head(z) for head in model.network.heads]
    losses = [t.loss(o, v) for t, o, v in zip(tasks(2), outputs, y, strict=True)]
    rows = torch.stack([torch.autograd.grad(f, z, retain_graph=True)[0].flatten() for f in losses])
    direction = scaled_sum(rows, rows.norm(dim=1))
    bottom, heads = model.network.bottom, model.network.heads
    expected = gradients_of(bottom, (z.flatten() * direction).sum())
    plain = gradients_of(heads, losses[0] + losses[1])
    rule.backward(step)
    assert_left(bottom, expected)
    assert_left(heads, plain)


def test_rotations_move_at_their_share_of_the_learning_rate():
    model, rule = lp.Single(with_rotations(network()), 2), lp.rules.RotoGrad(rate=0.5)
    rule.prepare(model)
    one_step(model, rule, learning_rate=0.1)
    # The first step of Adam is as long as its rate.
    moved = [head[0].skew.abs().max().item() for head in model.network.heads]
    assert moved == [pytest.approx(0.05, rel=1e-3)] * 2


def test_the_start_is_taken_again_after_the_burn_in():
    model, rule = lp.Single(with_rotations(network()), 2), lp.rules.RotoGrad(burn_in=2)
    rule.prepare(model)
    seen = []
    for _ in range(4):
        one_step(model, rule, learning_rate=0.1)
        seen.append(rule.starts.clone())
    assert torch.equal(seen[0], seen[1])
    assert not torch.equal(seen[1], seen[2])
    assert torch.equal(seen[2], seen[3])


def test_a_rotation_is_as_large_as_the_heads_input_up_to_a_limit():
    def size(features, given=None):
        plain = lp.SharedBottom(nn.Linear(2, features), [nn.Linear(features, 1)] * 2)
        return len(with_rotations(plain, given).heads[0][0].skew)

    assert (size(6), size(600), size(6, 4)) == (6, 512, 4)
    with pytest.raises(lp.UsageError, match="set rotation_size"):
        with_rotations(lp.SharedBottom(nn.Linear(2, 2), [nn.Identity()] * 2))
    with pytest.raises(lp.UsageError, match="found Linear"):
        with_rotations(nn.Linear(2, 2))


def test_a_network_without_rotations_is_refused():
    with pytest.raises(lp.UsageError, match="with_rotations"):
        lp.rules.RotoGrad().prepare(lp.Single(network(), 2))


def test_rotations_are_slower_than_the_network_by_default():
    rule = lp.rules.RotoGrad()
    assert (rule.rate, rule.burn_in) == (0.1, 20)
