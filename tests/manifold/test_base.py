"""What every manifold has unless it says otherwise."""

import pytest
import torch
from torch import nn

import lorpman as lp


class Constant(lp.Manifold):
    """The least that a manifold can be."""

    def __init__(self, num_tasks=2):
        super().__init__(num_tasks)
        self.network = nn.Linear(3, 2)
        self.network.bias.requires_grad_(False)

    def forward(self, x, alpha):
        return self.network(x)

    def solution(self, alpha):
        return self.network


def test_everything_that_is_trained_is_shared_by_default():
    model, alpha = Constant(), torch.tensor([0.5, 0.5])
    assert model.parameters_at(alpha) == [model.network.weight]
    assert model.shared_parameters(alpha) == [model.network.weight]
    assert model.num_parameters() == 3 * 2 + 2


def test_a_front_is_shown_on_the_grid_and_trained_on_dirichlet_draws():
    model = Constant(3)
    assert torch.equal(model.preferences(), lp.grid(3))
    draws = model.sampler(2.0)(3, 4, torch.Generator().manual_seed(0))
    expected = lp.dirichlet(3, 4, 2.0, torch.Generator().manual_seed(0))
    assert torch.equal(draws, expected)


def test_what_has_no_main_network_says_so_when_it_is_to_be_frozen():
    model = Constant()
    assert not model.can_freeze
    assert not model.frozen
    with pytest.raises(lp.UsageError, match="Constant has no main network to freeze"):
        model.freeze()
    assert lp.LowRank(nn.Linear(3, 2), 2).can_freeze


def test_training_changes_no_size_and_logs_nothing_by_default():
    model = Constant()
    assert model.begin_epoch(0, 5) == {}
    assert model.trace() == {}
    assert model.innermost is model


def test_there_is_at_least_one_task():
    with pytest.raises(lp.UsageError, match=r"num_tasks must be a whole number .*, got 0"):
        Constant(0)
