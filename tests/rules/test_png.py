import pytest
import torch

import lorpman as lp
from lorpman.manifold.finite import rays
from lorpman.rules.mgda import mgda_weights
from lorpman.rules.png import energy_gradient, png_weights
from rules.small import close, gram_of, network, row_of


def test_png():
    weights = png_weights(torch.eye(2), torch.tensor([-1.0, 0.0]))
    close(weights, [0.25, 0.25])


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


def test_the_share_of_the_descent_is_what_is_asked_for():
    for descent in (0.25, 1.0):
        weights = png_weights(torch.eye(2), torch.tensor([-1.0, 0.0]), descent)
        # The steepest common descent of two unit gradients has the squared length 1/2.
        close(weights, [descent / 2, descent / 2], 1e-6)


@pytest.mark.parametrize(("tolerance", "alone"), [(0.501, True), (0.499, False)])
def test_stationary_is_a_share_of_the_mean_squared_length(tolerance, alone):
    criterion = torch.tensor([-1.0, 0.0]).double()
    weights = png_weights(torch.eye(2), criterion, tolerance=tolerance)
    assert torch.equal(weights, criterion) is alone


def test_the_energy_has_the_slope_of_its_formula():
    close(energy_gradient(torch.tensor([[0.0], [1.0]])), [[4.0], [-4.0]], 1e-9)
    close(energy_gradient(torch.tensor([[0.0], [2.0]])), [[0.5], [-0.5]], 1e-9)
    # Nearer than a thousandth, members do not repel: the energy is cut off there.
    close(energy_gradient(torch.tensor([[0.0], [1e-4]])), [[0.0], [0.0]], 1e-9)


def test_a_criterion_is_shortened_to_the_mean_length_of_the_gradients():
    gram, rule = gram_of([[3.0, 0.0], [0.0, 1.0]]), lp.rules.PNG(tolerance=1.0)
    for apart in (0.1, 100.0):
        losses = torch.tensor([[0.0, 0.0], [apart, 0.0]])
        weights = rule.weights(row_of(gram, losses))
        (criterion, _) = energy_gradient(losses)
        length = 3 * criterion[0].item()
        close(weights, (criterion * min(1.0, 2.0 / length)).tolist(), 1e-6)


def test_heads_are_never_made_worse():
    rule = lp.rules.PNG()
    assert rule.head_weights(torch.tensor([-0.5, 0.0, 2.0])).tolist() == [0.0, 0.0, 2.0]


@pytest.mark.parametrize("descent", [0.0, 1.1])
def test_a_share_out_of_range_is_refused(descent):
    with pytest.raises(lp.UsageError, match="descent must be above 0 and at most 1"):
        lp.rules.PNG(descent=descent)
    assert lp.rules.PNG(descent=1.0).tolerance == 0.1


def test_one_member_cannot_keep_apart():
    with pytest.raises(lp.UsageError, match="needs at least 2 members, found 1"):
        lp.rules.PNG().prepare(lp.Population(network(), rays(2, 1)))
