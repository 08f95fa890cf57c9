"""The analytic cases of the discrete-front methods."""

import pytest
import torch
from torch import nn

import lorpman as lp
from lorpman.front.hypervolume import hypervolume
from lorpman.front.hypervolume_gradient import hypervolume_gradient
from lorpman.manifold.finite import rays
from lorpman.rules.epo_solver import epo_weights
from lorpman.rules.gmooar import uniformity_gradient
from lorpman.rules.mgda import mgda_weights
from lorpman.rules.moo_svgd import loss_kernel
from lorpman.rules.pmtl import active_constraints, loss_vectors, pmtl_weights
from lorpman.rules.png import energy_gradient, png_weights
from rules.small import gram_of, network, one_step


def _close(found, expected, tolerance=1e-4):
    torch.testing.assert_close(
        torch.as_tensor(found).double(), torch.tensor(expected).double(), atol=tolerance, rtol=0
    )


# PMTL

VECTORS = loss_vectors(rays(2, 5).double())


def test_pmtl_vectors_point_along_the_losses():
    """Ours asks for a low first loss with a big first weight, so the vectors run the other way."""
    angles = torch.atan2(VECTORS[:, 1], VECTORS[:, 0])
    _close(angles, [k * torch.pi / 8 for k in range(5)])


@pytest.mark.parametrize(
    ("losses", "index", "active"),
    [
        ((1.0, 1.0), 2, []),
        ((1.0, 0.45), 2, [1]),
        ((1.0, 1.0), 0, [1, 2, 3]),
        ((1.0, 1.0), 4, [1, 2, 3]),
    ],
)
def test_pmtl_active_constraints(losses, index, active):
    found = active_constraints(torch.tensor(losses).double(), VECTORS, index)
    torch.testing.assert_close(found, (VECTORS - VECTORS[index])[active])


def test_pmtl_inside_its_cone_is_mgda():
    gram = gram_of([[2.0, 0.0], [0.0, 1.0]])
    expected = 2 * mgda_weights(gram, torch.ones(2))
    _close(pmtl_weights(gram, torch.empty(0, 2).double()), expected.tolist())


def test_pmtl_moves_into_its_cone_first():
    """Its direction lowers the active constraints, whatever the losses do."""
    active = active_constraints(torch.tensor([1.0, 0.2]).double(), VECTORS, 3)
    gram = gram_of([[1.0, 0.2], [-0.3, 1.0]])
    weights = pmtl_weights(gram, active, into_cone=True)
    assert (active @ gram @ weights).min() > 0


# EPO


@pytest.mark.parametrize(
    ("losses", "cross", "expected"),
    [((1.0, 1.0), 0.0, [1.0, 0.0]), ((1.0, 1.0), -0.5, [0.88847, 0.11153])],
)
def test_epo_balances(losses, cross, expected):
    gram = torch.tensor([[1.0, cross], [cross, 1.0]])
    _close(epo_weights(torch.tensor(losses), gram, torch.tensor([0.8, 0.2])), expected)


def test_epo_descends_on_its_ray():
    gram = torch.diag(torch.tensor([1.0, 4.0]))
    _close(epo_weights(torch.tensor([0.2, 0.8]), gram, torch.tensor([0.8, 0.2])), [0.0, 1.0])


def test_epo_of_two_tasks_is_the_linear_program():
    """A third task that has no part in it changes nothing, but takes the other way of solving."""
    for seed in range(20):
        generator = torch.Generator().manual_seed(seed)
        rows = torch.randn(2, 5, generator=generator).double()
        losses = torch.rand(2, generator=generator).double() + 0.1
        from lorpman.rules import epo_solver

        c, C = torch.randn(2, generator=generator).double(), rows @ rows.T
        bounds = torch.minimum(C @ losses, torch.zeros(2)) - 0.1
        two = epo_solver.maximise(c.numpy(), C.numpy(), bounds.numpy())
        wide = torch.cat([C, torch.zeros(2, 1).double()], 1)
        low = torch.cat([c, torch.tensor([-100.0]).double()])
        three = epo_solver.maximise(low.numpy(), wide.numpy(), bounds.numpy())
        assert two.tolist() == pytest.approx(three[:2].tolist(), abs=1e-6)


def test_epo_refuses_negative_losses():
    with pytest.raises(lp.UsageError, match="losses"):
        epo_weights(torch.tensor([-1.0, 1.0]), torch.eye(2), torch.tensor([0.5, 0.5]))


# MOO-SVGD


def test_svgd_of_equal_members_is_the_mean_descent():
    model = lp.Population(network(), rays(2, 3), independent=False)
    rule = lp.rules.MOOSVGD()
    rule.prepare(model)
    one_step(model, rule)
    single = lp.Single(network(), 2)
    mgda = lp.rules.MGDA()
    mgda.prepare(single)
    one_step(single, mgda)
    for member in model.members:
        for ours, theirs in zip(member.parameters(), single.network.parameters(), strict=True):
            torch.testing.assert_close(ours.grad, theirs.grad, atol=1e-6, rtol=1e-4)


def test_svgd_repels_in_loss_space():
    losses = torch.tensor([[0.1, 0.5], [0.4, 0.2]], dtype=torch.float64)
    kernel, gradient = loss_kernel(losses, bandwidth=0.1)
    assert (kernel.diagonal() == 1).all()
    moved = losses - 0.01 * gradient
    assert (moved[0] - moved[1]).norm() > (losses[0] - losses[1]).norm()


# PNG


def test_png():
    weights = png_weights(torch.eye(2), torch.tensor([-1.0, 0.0]))
    _close(weights, [0.25, 0.25])


def test_png_follows_the_criterion_at_a_stationary_point():
    gram = gram_of([[1.0, 0.0], [-1.0, 0.1]])
    criterion = torch.tensor([0.3, -0.7]).double()
    assert torch.equal(png_weights(gram, criterion), criterion)


def test_png_keeps_its_share_of_the_descent():
    rows = torch.randn(3, 8, dtype=torch.float64)
    gram = rows @ rows.T
    weights = png_weights(gram, torch.tensor([-5.0, 3.0, 1.0]), 0.5, 0.0)
    shortest = mgda_weights(gram, torch.ones(3))
    assert (gram @ weights).min() >= 0.5 * (shortest @ gram @ shortest) - 1e-6


def test_png_energy_spreads():
    losses = torch.tensor([[0.1, 0.5], [0.2, 0.4], [0.2, 0.4]])
    gradient = energy_gradient(losses)
    assert gradient.isfinite().all()
    assert ((losses[1] - losses[0]) * -gradient[1]).sum() > 0


# GMOOAR


def test_gmooar_u_pushes_points_apart():
    references = torch.tensor([[0.4, 0.6], [0.6, 0.4]])
    gradient = uniformity_gradient(references, width=0.3)
    torch.testing.assert_close(gradient[0], -gradient[1])
    assert ((references[0] - references[1]) * -gradient[0]).sum() > 0
    assert uniformity_gradient(references[:1].repeat(2, 1), 0.3).abs().max() == 0


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


# The hypervolume's gradient


def test_hypervolume_gradient():
    points = torch.tensor([[0.5, 1.5], [1.5, 0.5], [1.6, 1.6], [3.0, 0.1]])
    expected = [[-0.5, -1.0], [-1.0, -0.5], [0.0, 0.0], [0.0, 0.0]]
    _close(hypervolume_gradient(points, torch.tensor([2.0, 2.0])), expected)


@pytest.mark.parametrize("m", [2, 3, 4])
def test_hypervolume_gradient_is_the_difference(m):
    generator = torch.Generator().manual_seed(m)
    points = torch.rand(6, m, generator=generator, dtype=torch.float64)
    reference = torch.full((m,), 1.1, dtype=torch.float64)
    found, width = hypervolume_gradient(points, reference), 1e-6
    for j in range(6):
        for i in range(m):
            ends = []
            for sign in (1, -1):
                moved = points.clone()
                moved[j, i] += sign * width
                ends.append(float(hypervolume(moved, reference, maximise=False)))
            assert found[j, i].item() == pytest.approx((ends[0] - ends[1]) / (2 * width), abs=1e-5)
