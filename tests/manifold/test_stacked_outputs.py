"""Outputs at several preferences as one structure."""

import pytest
import torch

import lorpman as lp
from lorpman.manifold.stacked_outputs import select_output, stack_outputs


def test_what_was_stacked_can_be_selected_again():
    outputs = [{"a": [torch.full((2,), float(j))], "kind": "x", "none": None} for j in range(3)]
    stacked = stack_outputs(outputs)
    assert stacked["a"][0].shape == (3, 2)
    for j, output in enumerate(outputs):
        selected = select_output(stacked, j)
        assert torch.equal(selected["a"][0], output["a"][0])
        assert (selected["kind"], selected["none"]) == ("x", None)


def test_what_may_hide_a_tensor_is_refused():
    with pytest.raises(lp.UsageError, match="holds a object, which cannot be split"):
        stack_outputs([object(), object()])
