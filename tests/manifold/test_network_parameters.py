"""Which parameters a network has, and which networks are refused."""

import pytest
import torch
from torch import nn

import lorpman as lp
from lorpman.manifold.network_parameters import check_network, hollow, owners, shared_names


def _network():
    return lp.SharedBottom(nn.Linear(4, 3), [nn.Linear(3, 2), nn.Linear(3, 2)])


def test_the_bottom_is_shared_by_default_and_prefixes_are_whole_names():
    assert shared_names(_network(), None) == ["bottom.weight", "bottom.bias"]
    assert shared_names(nn.Linear(2, 2), None) == ["weight", "bias"]
    assert shared_names(_network(), ["heads.1"]) == ["heads.1.weight", "heads.1.bias"]
    with pytest.raises(lp.UsageError, match="shared prefix 'bot' matches no parameter"):
        shared_names(_network(), "bot")


def test_every_parameter_has_its_owner_and_ties_one():
    network = nn.Sequential(nn.Linear(2, 2, bias=False), nn.Linear(2, 2, bias=False))
    network[1].weight = network[0].weight
    assert list(owners(network)) == [("0.weight", network[0], network[0].weight)]


@pytest.mark.parametrize(
    ("network", "message"),
    [
        (lambda x: x, "network must be an nn.Module"),
        (nn.ReLU(), "has no parameters to learn"),
        (nn.LazyLinear(2), "has lazy parameters without a shape"),
        (nn.Embedding(3, 2, sparse=True), "sparse=False"),
        (_network(), "has 2 heads, but num_tasks is 3"),
    ],
)
def test_networks_that_cannot_be_used_are_refused(network, message):
    with pytest.raises(lp.UsageError, match=message):
        check_network(network, 3)


def test_hollow_parameters_keep_their_name_and_type_and_take_no_memory():
    network = nn.Linear(4, 3, dtype=torch.float64)
    hollow(network, ["weight"])
    assert network.weight.numel() == 0
    assert network.weight.dtype == torch.float64
    assert not network.weight.requires_grad
    assert network.bias.requires_grad


@pytest.mark.parametrize(
    "network",
    [
        lambda: torch.compile(nn.Linear(4, 2), backend="eager"),
        lambda: nn.Sequential(torch.compile(nn.Linear(4, 2), backend="eager")),
    ],
)
def test_a_compiled_network_is_refused(network):
    message = r"(module '0'|the network itself) is compiled or scripted, .*compile the manifold"
    with pytest.raises(lp.UsageError, match=message):
        lp.LowRank(network(), 2)


def test_a_module_that_compiles_itself_is_refused():
    network = nn.Sequential(nn.Linear(4, 2))
    network[0].compile(backend="eager")
    with pytest.raises(lp.UsageError, match="module '0' is compiled"):
        lp.Convex(network, 2)


@pytest.mark.parametrize("shared", [3, [3], 2.5, ("0", None)])
@pytest.mark.parametrize("make", [lp.LowRank, lp.Convex, lp.Single])
def test_shared_takes_names_only(make, shared):
    with pytest.raises(lp.UsageError, match="shared must be a prefix of parameter names"):
        make(nn.Linear(4, 2), 2, shared=shared)


def test_the_meta_device_is_named():
    from small_training import fit_small, make_loader, make_network, make_tasks

    with torch.device("meta"):
        model = lp.LowRank(make_network(), 2)
    message = "'network.bottom.0.weight' is on the meta device"
    with pytest.raises(lp.UsageError, match=message):
        fit_small(model)
    with pytest.raises(lp.UsageError, match=message):
        lp.evaluate(model, make_tasks(), make_loader())
    with pytest.raises(lp.UsageError, match="is on the meta device"):
        lp.export(model, [0.5, 0.5], "never.safetensors")
