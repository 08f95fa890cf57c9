"""Outputs at several preferences as one structure."""

from collections import namedtuple

import torch

from lorpman.manifold.stacked_outputs import select_output, stack_outputs


class Cache:
    """Something that torch does not know as a container."""


Pair = namedtuple("Pair", ["first", "second"])


def test_what_was_stacked_can_be_selected_again():
    caches = [Cache() for _ in range(3)]
    outputs = [
        {
            "a": [torch.full((2,), float(j))],
            "kind": "x",
            "none": None,
            "cache": cache,
            "pair": Pair(torch.tensor(j), (1.5, [torch.zeros(1)])),
        }
        for j, cache in enumerate(caches)
    ]
    stacked = stack_outputs(outputs)
    assert stacked["a"][0].shape == (3, 2)
    assert stacked["kind"] == ["x", "x", "x"]
    assert stacked["none"] == [None, None, None]
    assert stacked["cache"] == caches
    assert isinstance(stacked["pair"], Pair)
    for j, output in enumerate(outputs):
        selected = select_output(stacked, j)
        assert torch.equal(selected["a"][0], output["a"][0])
        assert (selected["kind"], selected["none"]) == ("x", None)
        assert selected["cache"] is caches[j]
        assert selected["pair"].first == j
        assert selected["pair"].second == (1.5, [torch.zeros(1)])


def test_an_output_that_is_no_container_becomes_a_list():
    caches = [Cache(), Cache()]
    assert stack_outputs(caches) == caches
    assert select_output(stack_outputs(caches), 1) is caches[1]
