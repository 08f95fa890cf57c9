import pytest
import torch

from lorpman import MultiForward
from lorpman.rules.multi_forward import multi_forward

ONE_TASK = (torch.tensor([[0.8], [0.5], [0.2]]), torch.tensor([[0.5], [0.4], [0.9]]))


@pytest.mark.parametrize(
    ("as_printed", "chain", "expected"),
    [(True, False, 0.3222), (True, True, 0.2809), (False, False, 0.0345), (False, True, 0.0512)],
)
def test_multi_forward_of_one_task(as_printed, chain, expected):
    assert multi_forward(*ONE_TASK, as_printed, chain).item() == pytest.approx(expected, abs=5e-5)


def test_multi_forward_punishes_the_wrong_order():
    alphas = torch.tensor([[0.2, 0.8], [0.8, 0.2]])
    right = torch.tensor([[0.9, 0.1], [0.1, 0.9]])
    wrong = right.flip(0)
    assert MultiForward()(alphas, right, None) == 0
    assert MultiForward()(alphas, wrong, None) > 0.5
    assert MultiForward(as_printed=True)(alphas, right, None) > 0.5
    assert MultiForward(as_printed=True)(alphas, wrong, None) == 0


def test_multi_forward_gradient_lowers_the_loss_of_the_weightier_preference():
    alphas = torch.tensor([[0.2], [0.8]])
    losses = torch.tensor([[0.3], [0.7]], requires_grad=True)
    multi_forward(alphas, losses).backward()
    assert losses.grad[1] > 0 > losses.grad[0]


@pytest.mark.parametrize("chain", [False, True])
@pytest.mark.parametrize("alphas", [[[0.5, 0.5]], [[0.5, 0.5], [0.5, 0.5]]])
def test_multi_forward_without_an_edge_is_zero(alphas, chain):
    losses = torch.rand(len(alphas), 2, requires_grad=True)
    value = multi_forward(torch.tensor(alphas), losses, chain=chain)
    value.backward()
    assert value == 0
    assert torch.equal(losses.grad, torch.zeros_like(losses))


def test_multi_forward_does_not_overflow():
    alphas = torch.tensor([[0.2], [0.8]])
    assert multi_forward(alphas, torch.tensor([[0.0], [1e4]])).item() == pytest.approx(1e4)


def test_tasks_add_up():
    alphas = torch.tensor([[0.2, 0.8], [0.8, 0.2]])
    losses = torch.tensor([[0.3, 0.9], [0.7, 0.4]])
    each = [multi_forward(alphas[:, [i]], losses[:, [i]]).item() for i in range(2)]
    assert min(each) > 0
    assert multi_forward(alphas, losses).item() == pytest.approx(sum(each))


def test_it_is_printed_with_its_options():
    assert repr(MultiForward()) == "MultiForward()"
    assert repr(MultiForward(as_printed=True, chain=True)) == (
        "MultiForward(as_printed=True, chain=True)"
    )


def test_equal_weights_are_no_edge_of_a_chain():
    """Neither of two equal preferences must have the lower loss."""
    alphas, losses = torch.tensor([[0.5], [0.5]]), torch.tensor([[0.1], [0.9]])
    assert multi_forward(alphas, losses, chain=True).item() == 0.0
