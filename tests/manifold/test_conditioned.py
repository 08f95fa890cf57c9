"""What every network that is told the preference does, whatever it does with it."""

import pytest
import torch
from torch import nn

from lorpman import UsageError
from lorpman.manifold.conditioned import ConditionedManifold
from properties import assert_batch_is_loop, assert_untouched, randomise


class Shifted(ConditionedManifold):
    """The smallest one: the output is shifted by the first weight of the preference."""

    def _at(self, x, alpha):
        assert alpha.ndim == 1
        return {"out": self.network(x) + alpha[0], "dtype": str(alpha.dtype)}

    def solution(self, alpha):
        self._one(alpha)
        raise NotImplementedError


def test_several_preferences_are_a_loop_over_one():
    assert_batch_is_loop(Shifted(nn.Linear(3, 2), 2), torch.randn(5, 3))


def test_outputs_of_several_preferences_are_led_by_their_number():
    outputs = Shifted(nn.Linear(3, 2), 2)(torch.randn(5, 3), torch.eye(2))
    assert outputs["out"].shape == (2, 5, 2)
    torch.testing.assert_close(outputs["out"][0], outputs["out"][1] + 1)


def test_the_preference_takes_the_type_of_the_weights():
    model = Shifted(nn.Linear(3, 2).double(), 2)
    output = model(torch.randn(5, 3, dtype=torch.float64), [0.25, 0.75])
    assert output["dtype"] == "torch.float64"
    assert output["out"].dtype == torch.float64


def test_the_given_network_is_left_alone():
    network = nn.Linear(3, 2)
    assert_untouched(network, lambda: randomise(Shifted(network, 2)))


def test_a_solution_is_of_one_preference():
    with pytest.raises(ValueError, match=r"one preference \[m\], got \[2, 2\]"):
        Shifted(nn.Linear(3, 2), 2).solution(torch.eye(2))


def test_what_is_no_preference_is_refused():
    with pytest.raises(ValueError, match="sum to 1"):
        Shifted(nn.Linear(3, 2), 2)(torch.zeros(1, 3), torch.tensor([0.5, 0.7]))


def test_a_network_without_parameters_is_refused():
    with pytest.raises(UsageError, match="no parameters"):
        Shifted(nn.ReLU(), 2)
