import math
from dataclasses import replace

import pytest
import torch
from torch import nn

import lorpman as lp
from lorpman.rules.gmooar import uniformity_gradient
from lorpman.rules.solvers import project_simplex
from rules.small import close, network, one_step
from steps import step_of


def test_gmooar_u_pushes_points_apart():
    references = torch.tensor([[0.4, 0.6], [0.6, 0.4]])
    gradient = uniformity_gradient(references, width=0.3)
    torch.testing.assert_close(gradient[0], -gradient[1])
    assert ((references[0] - references[1]) * -gradient[0]).sum() > 0
    assert uniformity_gradient(references[:1].repeat(2, 1), 0.3).abs().max() == 0


def test_uniformity_has_the_slope_of_its_formula():
    points = torch.tensor([[0.0], [1.0]])
    close(uniformity_gradient(points, 1.0), [[4 / math.e], [-4 / math.e]], 1e-6)
    close(uniformity_gradient(points, 2.0), [[math.exp(-0.25)], [-math.exp(-0.25)]], 1e-6)


def test_gmooar_moves_its_references_on_the_simplex():
    class Identity(lp.Manifold):
        """A front that is the simplex itself: the losses are the preference."""

        def __init__(self):
            super().__init__(2)
            self.weight = nn.Parameter(torch.zeros(1))

        def forward(self, x, alpha):
            return [alpha[..., :1].expand(24, 1) + self.weight, alpha[..., 1:].expand(24, 1)]

        def solution(self, alpha):
            raise NotImplementedError

    for quality in ("uniform", "hypervolume"):
        model = lp.Learned(Identity(), 4)
        rule = lp.rules.GMOOAR(quality, rate=0.02, width=0.3)
        rule.prepare(model)
        before = model.references.clone()
        for _ in range(10):
            one_step(model, rule)
        after = model.preferences()
        torch.testing.assert_close(after.sum(1), torch.ones(4))
        assert (after >= 0).all()
        assert not torch.equal(before, after)
        torch.testing.assert_close(model.sampler(1.0)(2, 1, None), after)


@pytest.mark.parametrize("quality", ["uniform", "hypervolume"])
def test_references_follow_the_quality_of_the_other_batch(quality):
    model = lp.Learned(lp.Cosmos(nn.Linear(4, 2), 2), 2)
    alphas = torch.tensor([[0.25, 0.75], [0.75, 0.25]])
    rule = lp.rules.GMOOAR(quality, rate=0.01, width=1.0)
    rule.prepare(model)
    losses = torch.tensor([[1.0, 2.0], [2.0, 1.0]])
    step = replace(
        step_of(model, alphas, losses, lambda total: None),
        losses_at=lambda given, batch: losses + given if batch == "other" else losses,
        another_batch=lambda: "other",
    )
    rule.backward(step)
    slope = uniformity_gradient(losses + alphas, 1.0)
    if quality == "hypervolume":
        # Losses (1.25, 2.75) and (2.75, 1.25): volume counts up to 1.1 times 2.75.
        slope = torch.tensor([[0.275, 1.5], [1.5, 0.275]])
    torch.testing.assert_close(model.references, project_simplex(alphas - 0.01 * slope))


def test_the_network_descends_linear_scalarisation_unless_told_otherwise():
    assert isinstance(lp.rules.GMOOAR().lower, lp.Linear)
    assert isinstance(lp.rules.GMOOAR(lower=lp.Chebyshev()).lower, lp.Chebyshev)


def test_what_does_not_fit_is_refused():
    with pytest.raises(lp.UsageError, match=r"applies to lp\.Learned"):
        lp.rules.GMOOAR().prepare(lp.Single(network(), 2))
    for options in ({"rate": 0.0}, {"width": 0.0}):
        with pytest.raises(lp.UsageError, match="rate and width must be positive"):
            lp.rules.GMOOAR(**options)
    for m in (5, 6):
        model = lp.Learned(lp.Cosmos(nn.Linear(4, 2), m), 2)
        lp.rules.GMOOAR("uniform").prepare(model)
        if m == 5:
            lp.rules.GMOOAR("hypervolume").prepare(model)
        else:
            with pytest.raises(lp.UsageError, match="up to 5 tasks, found 6"):
                lp.rules.GMOOAR("hypervolume").prepare(model)
