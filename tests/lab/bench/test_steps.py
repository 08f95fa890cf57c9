"""What is timed is what it is called: fit's step, a plain step, PaMaL's layers, the peak."""

import pytest
import torch
from torch import nn
from torch.optim.optimizer import (
    register_optimizer_step_post_hook,
    register_optimizer_step_pre_hook,
)

import lorpman as lp
from lorpman.lab.bench.member_layers import MemberLayer, member_layers_step, with_member_layers
from lorpman.lab.bench.memory import peak_of_tensors
from lorpman.lab.bench.steps import FitStep, factors, fit_step, plain_steps
from lorpman.lab.bench.workload import OneNormVGG16, from_preset


@pytest.fixture
def workload():
    return from_preset("multidigits", (1, 12, 12), 10, batch=8)


def test_a_fit_step_reaches_the_weights_that_fit_reaches(workload):
    stepped, fitted = workload.manifold(), workload.manifold()
    step = FitStep(workload.spec, stepped, workload.tasks, workload.fit_batch())
    for _ in range(3):
        step()
    training = workload.spec.training
    lp.fit(
        fitted,
        workload.tasks,
        [workload.fit_batch()] * 3,
        epochs=1,
        objective=workload.spec.method.rule(workload.spec.own),
        window=training.window,
        concentration=training.concentration,
        optimizer=training.make_optimizer(),
        seed=workload.spec.seed,
        progress=False,
    )
    for (name, one), other in zip(stepped.named_parameters(), fitted.parameters(), strict=True):
        assert torch.equal(one, other), name


@pytest.fixture
def moved():
    """For every step that an optimiser takes: whether it moved all the weights that it has."""
    before, found = [], []

    def remember(optimizer, *_):
        before[:] = [p.detach().clone() for p in weights(optimizer)]

    def compare(optimizer, *_):
        pairs = zip(before, weights(optimizer), strict=True)
        found.append(all(not torch.equal(old, new) for old, new in pairs))

    def weights(optimizer):
        return [p for group in optimizer.param_groups for p in group["params"]]

    hooks = [
        register_optimizer_step_pre_hook(remember),
        register_optimizer_step_post_hook(compare),
    ]
    yield found
    for hook in hooks:
        hook.remove()


@pytest.mark.parametrize(
    ("make", "steps"),
    [
        (lambda workload: fit_step(workload, "pamal"), 1),
        (member_layers_step, 1),
        (lambda workload: plain_steps(workload, 2), 2),
        (lambda workload: plain_steps(workload, 2, tuned=True), 2),
    ],
    ids=["fit", "member layers", "plain", "plain, tuned"],
)
def test_every_contender_takes_its_steps_with_all_its_weights(workload, moved, make, steps):
    make(workload)()
    assert moved == [True] * steps


def test_layers_of_members_are_pamal():
    torch.manual_seed(0)
    network = nn.Sequential(
        nn.Conv2d(1, 3, 3, padding=1), nn.ReLU(), nn.Flatten(), nn.Linear(48, 2)
    )
    convex = lp.Convex(network, num_tasks=3)
    layers = with_member_layers(network, 3)
    alpha = torch.tensor([0.2, 0.3, 0.5])
    for name, values in convex.members().items():
        layer, _, parameter = name.rpartition(".")
        member_layer = layers.get_submodule(layer)
        assert isinstance(member_layer, MemberLayer)
        member_layer.alpha = alpha
        for member, value in zip(member_layer.members, values, strict=True):
            getattr(member, parameter).data.copy_(value.detach())
    x = torch.rand(2, 1, 4, 4)
    torch.testing.assert_close(layers(x), convex(x, alpha))


def test_factors_are_what_a_plain_network_lacks(workload):
    model = workload.manifold()
    network = sum(p.numel() for p in workload.network().parameters())
    assert sum(p.numel() for p in factors(model)) == model.num_parameters() - network


def test_the_vgg_of_one_norm_set_has_thirteen_layers():
    bottom = OneNormVGG16(width=2)
    assert len(bottom.convs) == len(bottom.norms) == 13
    assert bottom(torch.rand(2, 3, 32, 32)).shape == (2, 16)


def test_the_peak_counts_what_lives_at_once():
    def one_after_the_other():
        for _ in range(3):
            torch.zeros(1000, 256)

    def together():
        return [torch.zeros(1000, 256) for _ in range(3)]

    size = 4 * 256_000
    assert size <= peak_of_tensors(one_after_the_other) < 1.1 * size
    assert 3 * size <= peak_of_tensors(together) < 3.1 * size
