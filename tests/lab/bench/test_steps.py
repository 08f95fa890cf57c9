"""What is timed is what it is called: a step of fit, a plain step, a step of PaMaL's layers."""

import pytest
import torch
from torch.optim.optimizer import (
    register_optimizer_step_post_hook,
    register_optimizer_step_pre_hook,
)

import lorpman as lp
from lorpman.lab.bench.member_layers import member_layers_step
from lorpman.lab.bench.steps import FitStep, factors, fit_step, plain_steps
from lorpman.lab.bench.workload import from_preset


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


def test_factors_are_what_a_plain_network_lacks(workload):
    model = workload.manifold()
    network = sum(p.numel() for p in workload.network().parameters())
    assert sum(p.numel() for p in factors(model)) == model.num_parameters() - network
