import pytest
import torch
from torch import nn

import lorpman as lp
from lorpman.rules import task_gradients as module
from lorpman.rules.task_gradients import (
    TaskGradients,
    buffers_restored,
    give_gradients,
    gradient_norms,
    outputs_recorded,
    parameters_besides,
    task_gradients,
)
from rules.small import make_step, network, tasks
from steps import step_of


def _small():
    """f_1 = 2 a . b + c, f_2 = |a|^2, with a = (1, 2), b = (3, 4) and c = 5."""
    a, b = torch.tensor([1.0, 2.0], requires_grad=True), torch.tensor([3.0, 4.0])
    b.requires_grad_()
    c = torch.tensor([[5.0]], requires_grad=True)
    losses = torch.stack([2 * (a * b).sum() + c.sum(), a.square().sum()])
    return TaskGradients(losses, [a, b], [c]), (a, b, c)


def test_rows_hold_the_shared_gradients_side_by_side():
    gradients, _ = _small()
    assert gradients.matrix.tolist() == [[6.0, 8.0, 2.0, 4.0], [2.0, 4.0, 0.0, 0.0]]
    assert gradients.other_gradients[0][0].tolist() == [[1.0]]
    assert gradients.other_gradients[1][0].tolist() == [[0.0]]


@pytest.mark.parametrize("chunk", [1, 3, 2**20])
def test_inner_products_do_not_depend_on_the_chunks(chunk, monkeypatch):
    monkeypatch.setattr(module, "_CHUNK", chunk)
    gram = _small()[0].gram()
    assert gram.dtype == torch.float64
    assert gram.tolist() == [[120.0, 44.0], [44.0, 20.0]]


def test_weights_of_shared_tensors_and_of_heads():
    gradients, (a, b, c) = _small()
    pairs = gradients.weighted(torch.tensor([1.0, 10.0]).double(), torch.tensor([0.5, 7.0]))
    assert [tensor is expected for (tensor, _), expected in zip(pairs, (a, b, c), strict=True)]
    assert [g.tolist() for _, g in pairs] == [[26.0, 48.0], [2.0, 4.0], [[0.5]]]


def test_a_tensor_that_no_task_reaches_is_left_out():
    a, lonely = torch.ones(2, requires_grad=True), torch.ones(1, requires_grad=True)
    gradients = TaskGradients(a.square(), [a], [lonely])
    assert len(gradients.directed(torch.ones(2), torch.ones(2))) == 1


def test_given_gradients_arrive_through_the_steps_own_backward():
    _, (a, b, c) = _small()
    pairs = [(a, torch.tensor([1.0, -1.0])), (c, torch.tensor([[3.0]]).double())]
    totals = []

    def backward(total):
        totals.append(total)
        total.backward()

    give_gradients(step_of(None, torch.ones(1, 2), torch.ones(1, 2), backward), pairs)
    assert len(totals) == 1
    assert (a.grad.tolist(), b.grad, c.grad.tolist()) == ([1.0, -1.0], None, [[3.0]])


def test_gradients_given_to_features_go_on_to_the_bottom():
    weight = torch.tensor([2.0], requires_grad=True)
    give_gradients(
        step_of(None, torch.ones(1, 1), torch.ones(1, 1)), [(3 * weight, torch.tensor([5.0]))]
    )
    assert weight.grad.item() == 15.0


def test_the_gradients_of_one_preference_are_those_of_its_network():
    model = lp.Population(network(), torch.eye(2), independent=True)
    gradients = task_gradients(make_step(model), 1)
    bottom = list(model.members[1].bottom.parameters())
    assert [t is p for t, p in zip(gradients.shared, bottom, strict=True)] == [True] * len(bottom)
    heads = {id(p) for p in model.members[1].heads.parameters()}
    assert {id(t) for t in gradients.others} == heads


def test_nothing_shared_is_nothing_to_balance():
    model = lp.Single(network(), 2)
    for parameter in model.network.bottom.parameters():
        parameter.requires_grad_(False)
    with pytest.raises(lp.UsageError, match="nothing shared is trained"):
        task_gradients(make_step(model), 0)


def test_parameters_are_told_apart_by_identity():
    first, second = torch.zeros(1), torch.zeros(1)
    (left,) = parameters_besides([first, second], [first])
    assert left is second


def test_outputs_are_recorded_while_the_context_is_open_and_no_hook_stays():
    first, second = nn.Linear(2, 2), nn.Linear(2, 3)
    x = torch.ones(1, 2)
    with outputs_recorded(first, second) as (ours, theirs):
        y = first(x)
        second(y)
        second(y)
    first(x)
    assert (len(ours), len(theirs)) == (1, 2)
    assert ours[0] is y
    assert not any(module._forward_hooks for module in (first, second))


class First(nn.Module):
    def forward(self, x):
        return x[:1]


def test_buffers_are_restored_even_after_an_error():
    norm = nn.BatchNorm1d(2)
    before = {name: value.clone() for name, value in norm.named_buffers()}
    with pytest.raises(ValueError, match="more than 1 value"), buffers_restored(norm):
        nn.Sequential(norm, First(), norm)(torch.randn(4, 2) + 3)
    assert all(torch.equal(value, before[name]) for name, value in norm.named_buffers())


def test_norms_are_over_all_parameters_together():
    a, b = nn.Parameter(torch.tensor([1.0])), nn.Parameter(torch.tensor([2.0]))
    losses = torch.stack([(3 * a + 4 * b).sum(), (2 * a).sum()])
    assert gradient_norms(losses, [a, b]).tolist() == [5.0, 2.0]


def test_a_gradient_that_is_not_finite_stops_training():
    class Bad(nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = nn.Parameter(torch.zeros(1, 1))

        def forward(self, x):
            return [x @ self.weight, (x @ self.weight).abs().sqrt()]

    with pytest.raises(lp.TrainingDiverged, match="gradient of a task's loss is not finite"):
        lp.fit(
            lp.Single(Bad(), 2),
            tasks(2),
            [(torch.ones(2, 1), [torch.ones(2, 1)] * 2)],
            epochs=1,
            objective=lp.rules.MGDA(),
            progress=False,
        )
