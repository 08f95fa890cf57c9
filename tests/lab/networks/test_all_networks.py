"""What all networks must do for a manifold to use them: run, copy, and take foreign weights."""

import copy
from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn

from lorpman.errors import UsageError
from lorpman.lab.networks.lenet import lenet
from lorpman.lab.networks.mlp import mlp
from lorpman.lab.networks.resnet import resnet18
from lorpman.lab.networks.segnet import segnet
from lorpman.lab.networks.vgg import vgg16

Example = tuple[nn.Module, Tensor, list[tuple[int, ...]]]
Case = tuple[Callable[[], nn.Module], tuple[int, ...], list[tuple[int, ...]]]

CASES: dict[str, Case] = {
    "lenet": (lenet, (3, 1, 28, 28), [(3, 10), (3, 10)]),
    "mlp": (mlp, (3, 468), [(3, 2), (3, 2)]),
    "resnet": (
        lambda: resnet18((1, 2, 5), width=4, dropout=0.5),
        (3, 3, 64, 64),
        [(3, 1), (3, 2), (3, 5)],
    ),
    "vgg": (lambda: vgg16(num_tasks=3, width=4), (3, 3, 32, 32), [(3, 10)] * 3),
    "segnet": (lambda: segnet(width=4), (2, 3, 32, 64), [(2, 7, 32, 64), (2, 1, 32, 64)]),
}


@pytest.fixture(params=CASES)
def case(request: pytest.FixtureRequest) -> Example:
    build, shape, outputs = CASES[request.param]
    torch.manual_seed(0)
    return build(), torch.rand(shape), outputs


def test_outputs_have_one_entry_per_task(case: Example) -> None:
    net, x, shapes = case
    assert [tuple(out.shape) for out in net(x)] == shapes


def test_inputs_are_left_alone(case: Example) -> None:
    net, x, _ = case
    before = x.clone()
    net(x)
    assert torch.equal(x, before)


def test_functional_call_on_a_copy_equals_the_network(case: Example) -> None:
    net, x, _ = case
    net.eval()
    expected = net(x)
    other = copy.deepcopy(net)
    with torch.no_grad():
        for p in other.parameters():
            p.zero_()
    found = torch.func.functional_call(other, dict(net.named_parameters()), (x,))
    for a, b in zip(expected, found, strict=True):
        assert torch.equal(a, b)


def test_every_parameter_receives_a_gradient(case: Example) -> None:
    net, x, _ = case
    sum(out.square().sum() for out in net(x)).backward()
    assert [name for name, p in net.named_parameters() if p.grad is None] == []


def test_export_follows_the_forward_pass(case: Example) -> None:
    net, x, _ = case
    net.eval()
    exported = torch.export.export(net, (x,)).module()
    for a, b in zip(net(x), exported(x), strict=True):
        torch.testing.assert_close(a, b)


@pytest.mark.parametrize("build", [lenet, lambda: vgg16(num_tasks=2, width=4)])
def test_wrong_number_of_batches_is_named(build: Callable[[], nn.Module]) -> None:
    with pytest.raises(UsageError, match="expected 2, got 3"):
        build()([torch.rand(1, 3, 32, 32)] * 3)


def test_vmap_over_stacked_weights_equals_a_loop(case: Example) -> None:
    net, x, _ = case
    net.eval()
    first = {k: v.detach() for k, v in net.named_parameters()}
    stacked = {k: torch.stack([v, 0.9 * v]) for k, v in first.items()}

    def call(parameters: dict[str, Tensor]) -> list[Tensor]:
        return torch.func.functional_call(net, parameters, (x,))

    together = torch.func.vmap(call)(stacked)
    for i in range(2):
        alone = call({k: v[i] for k, v in stacked.items()})
        for a, b in zip(together, alone, strict=True):
            torch.testing.assert_close(a[i], b, rtol=1e-4, atol=1e-5)
