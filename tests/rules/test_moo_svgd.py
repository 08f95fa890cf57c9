import math

import pytest
import torch

import lorpman as lp
from lorpman.manifold.finite import rays
from lorpman.rules.moo_svgd import loss_kernel, svgd_gradients
from rules.small import close, network, one_step


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


def test_the_kernel_and_its_slope():
    kernel, slope = loss_kernel(torch.tensor([[0.0], [1.0]]), bandwidth=2.0)
    close(kernel, [[1.0, math.exp(-0.5)], [math.exp(-0.5), 1.0]], 1e-6)
    close(slope, [[2 * math.exp(-0.5)], [-2 * math.exp(-0.5)]], 1e-6)


def test_the_bandwidth_is_the_median_over_the_logarithm_of_the_members():
    # Squared distances 0, 1, 1, 0 have the median 1/2: exp(-2 ln 2) = 1/4.
    kernel, _ = loss_kernel(torch.tensor([[0.0], [1.0]]))
    assert kernel[0, 1].item() == pytest.approx(0.25)
    kernel, _ = loss_kernel(torch.tensor([[0.0], [1.0], [2.0]]))
    assert kernel[0, 1].item() == pytest.approx(math.exp(-math.log(3)))


def test_members_share_descents_by_the_kernel_and_half_of_their_repulsion():
    tensors = [torch.zeros(1), torch.zeros(1)]
    descents = [[(t, torch.tensor([g]))] for t, g in zip(tensors, (2.0, 4.0), strict=True)]
    repulsions = [[(t, torch.tensor([g]))] for t, g in zip(tensors, (1.0, -1.0), strict=True)]
    kernel = torch.tensor([[1.0, 0.25], [0.25, 1.0]])
    pairs = svgd_gradients(kernel, descents, repulsions)
    assert [t is tensors[k] for k, (t, _) in enumerate(pairs)] == [True, True]
    assert [g.item() for _, g in pairs] == [(0.5 + 2 + 1) / 2, (-0.5 + 0.5 + 4) / 2]


def test_heads_are_not_repelled(monkeypatch):
    seen = []

    def spy(kernel, descents, repulsions):
        seen.extend(repulsions)
        return svgd_gradients(kernel, descents, repulsions)

    monkeypatch.setattr("lorpman.rules.moo_svgd.svgd_gradients", spy)
    model = lp.Population(network(), rays(2, 2), independent=True)
    one_step(model, lp.rules.MOOSVGD())
    heads = {id(p) for member in model.members for p in member.heads.parameters()}
    for repulsion in seen:
        moved = {id(tensor) for tensor, push in repulsion if push.abs().max() > 0}
        assert moved
        assert not moved & heads


def test_one_member_cannot_keep_apart():
    with pytest.raises(lp.UsageError, match="needs at least 2 members, found 1"):
        lp.rules.MOOSVGD().prepare(lp.Population(network(), rays(2, 1)))
