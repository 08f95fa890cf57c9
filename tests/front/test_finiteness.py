"""What is not finite is found wherever it hides, and named."""

import math

import pytest
import torch
from torch import nn

import lorpman as lp
from lorpman.errors import NotFinite
from lorpman.front.finiteness import (
    all_finite,
    at_preference,
    check_number,
    check_outputs,
    check_weights,
    describe_bad,
    describe_bad_weight,
)

ALPHA = torch.tensor([0.25, 0.75])
TASK = lp.Task("left", nn.functional.mse_loss, nn.functional.mse_loss)
BAD = (math.nan, math.inf, -math.inf)


def _network():
    return nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4))


@pytest.mark.parametrize("bad", BAD)
@pytest.mark.parametrize("name", ["0.weight", "0.bias", "1.weight"])
def test_any_parameter_that_is_not_finite_is_named(name, bad):
    network = _network()
    assert describe_bad_weight(network) is None
    with torch.no_grad():
        dict(network.named_parameters())[name].view(-1)[-1] = bad
    assert describe_bad_weight(network) == f"parameter '{name}' holds {bad}"
    with pytest.raises(NotFinite, match=rf"at preference \(0.25, 0.75\) .*'{name}' holds {bad};"):
        check_weights(network, ALPHA)


@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_statistics_of_norm_layers_count_too(bad):
    network = _network()
    network[1].running_var[1] = bad
    with pytest.raises(NotFinite, match=f"buffer '1.running_var' holds {bad}"):
        check_weights(network, None)


def test_a_mask_of_minus_infinity_is_no_fault():
    network = _network()
    network.register_buffer("mask", torch.full((2, 2), -math.inf).triu(1))
    check_weights(network, ALPHA)
    check_outputs({"the output": [torch.tensor([0.0, -math.inf])]}, ALPHA)
    network.mask[0, 0] = math.nan
    with pytest.raises(NotFinite, match="buffer 'mask' holds nan"):
        check_weights(network, ALPHA)


@pytest.mark.parametrize(
    "dtype", [torch.float16, torch.bfloat16, torch.float64, torch.complex64, torch.float8_e4m3fn]
)
def test_every_type_of_float_is_looked_into(dtype):
    values = torch.ones(5).to(dtype)
    assert describe_bad({"it": values}) is None
    values = torch.tensor([1.0, math.nan]).to(dtype)
    assert describe_bad({"whole": torch.ones(3, dtype=torch.long), "it": values}).startswith("it ")


def test_large_numbers_whose_sum_overflows_are_finite():
    large = torch.full((4,), torch.finfo(torch.float32).max)
    assert not all_finite([large])
    assert describe_bad({"it": large}) is None


def test_opposite_infinities_do_not_cancel():
    assert describe_bad({"it": torch.tensor([math.inf, -math.inf])}) == "it holds inf"


def test_what_holds_no_floats_is_finite():
    assert all_finite([])
    assert all_finite([torch.arange(3), None, "text", torch.zeros(0)])


@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_an_output_is_named_wherever_it_stands(bad):
    outputs = {"first": torch.zeros(2), "second": {"deep": [torch.tensor([0.0, bad])]}}
    with pytest.raises(NotFinite, match=rf"second holds {bad} at preference \(0.25, 0.75\); train"):
        check_outputs(outputs, ALPHA, (torch.zeros(2), [torch.zeros(2)]))


@pytest.mark.parametrize("bad", BAD)
def test_a_number_is_named_with_task_and_preference(bad):
    check_number("loss", 0.5, TASK, ALPHA)
    found = rf"the loss of task 'left' is {bad} at preference \(0.25, 0.75\)"
    with pytest.raises(NotFinite, match=f"^{found}; train it again"):
        check_number("loss", bad, TASK, ALPHA)
    batch = (torch.zeros(3), [torch.tensor([1.0, bad])])
    with pytest.raises(NotFinite, match=f"^{found}: the data .* holds NaN or infinity; mend"):
        check_number("loss", bad, TASK, ALPHA, batch)


def test_a_manifold_is_at_every_preference():
    assert at_preference(None) == "at any preference"
