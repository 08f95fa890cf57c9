import pytest
import torch

import lorpman as lp
from lorpman.manifold.finite import rays
from lorpman.rules.mgda import mgda_weights
from lorpman.rules.pmtl import active_constraints, loss_vectors, pmtl_weights
from rules.small import close, gram_of, network, row_of

VECTORS = loss_vectors(rays(2, 5).double())


def test_pmtl_vectors_point_along_the_losses():
    """Ours asks for a low first loss with a big first weight, so the vectors run the other way."""
    angles = torch.atan2(VECTORS[:, 1], VECTORS[:, 0])
    close(angles, [k * torch.pi / 8 for k in range(5)])


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
    close(pmtl_weights(gram, torch.empty(0, 2).double()), expected.tolist())


def test_pmtl_moves_into_its_cone_first():
    """Its direction lowers the active constraints, whatever the losses do."""
    active = active_constraints(torch.tensor([1.0, 0.2]).double(), VECTORS, 3)
    gram = gram_of([[1.0, 0.2], [-0.3, 1.0]])
    weights = pmtl_weights(gram, active, into_cone=True)
    assert (active @ gram @ weights).min() > 0


def test_corners_are_axes_of_the_loss_space():
    close(loss_vectors(torch.tensor([[1.0, 0.0]])), [[1e-6, 1.0]], 1e-9)


def test_outside_its_cone_the_sizes_of_the_weights_sum_to_the_number_of_tasks():
    """Tasks and constraint together: the shortest combination, by its optimality conditions."""
    active = torch.tensor([[0.5, -0.5]]).double()
    gram = gram_of([[2.0, 0.0], [0.0, 1.0]])
    weights = pmtl_weights(gram, active)
    assert weights.abs().sum().item() == pytest.approx(2)
    rows = torch.cat([torch.eye(2).double(), active])
    shortest = rows.T @ mgda_weights(rows @ gram @ rows.T, torch.ones(3))
    close(weights, (2 * shortest / shortest.abs().sum()).tolist(), 1e-6)
    # Without scaling, on the way into the cone, the one constraint is all there is.
    close(pmtl_weights(gram, active, into_cone=True), [0.5, -0.5])
    close(pmtl_weights(gram, active[:0], into_cone=True), [0.2, 0.8])


def test_a_member_moves_into_its_cone_until_it_has_arrived():
    rule = lp.rules.PMTL(cone_epochs=2)
    rule.prepare(lp.Population(network(), rays(2, 3)))
    gram, alphas = gram_of([[2.0, 0.0], [0.0, 1.0]]), rays(2, 3)
    inside, outside = torch.tensor([[0.1, 1.0]] * 3), torch.tensor([[1.0, 0.1]] * 3)
    index = int(alphas[:, 0].argmax())

    def sizes(losses, epoch):
        weights = rule.weights(row_of(gram, losses, index, alphas, epoch))
        return weights.abs().sum().item()

    assert sizes(outside, 0) != pytest.approx(2)
    assert not rule.arrived.any()
    assert sizes(inside, 1) == pytest.approx(2)
    assert rule.arrived.tolist() == [k == index for k in range(3)]
    assert sizes(outside, 1) == pytest.approx(2)


def test_a_member_that_never_arrives_descends_after_some_epochs():
    rule = lp.rules.PMTL(cone_epochs=2)
    rule.prepare(lp.Population(network(), rays(2, 3)))
    gram, alphas = gram_of([[2.0, 0.0], [0.0, 1.0]]), rays(2, 3)
    index = int(alphas[:, 0].argmax())
    row = [gram, torch.tensor([[1.0, 0.1]] * 3), index, alphas]
    rule.weights(row_of(*row, epoch=1))
    assert not rule.arrived[index]
    rule.weights(row_of(*row, epoch=2))
    assert rule.arrived[index]
