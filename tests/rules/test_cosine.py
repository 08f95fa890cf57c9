import pytest
import torch

from lorpman import Cosine, Linear
from lorpman.rules.cosine import opposite


def test_the_objective_of_cosmos():
    alphas, losses = torch.tensor([[0.5, 0.5]]), torch.tensor([[1.0, 2.0]])
    objective = Linear() + 1.0 * Cosine()
    assert objective(alphas, losses, None).item() == pytest.approx(0.551317, abs=1e-6)
    # Over several preferences it is a sum, like everything else.
    twice = objective(alphas.expand(2, 2), losses.expand(2, 2), None)
    assert twice.item() == pytest.approx(2 * 0.551317, abs=1e-6)


def test_cosine_pulls_against_linear_scalarisation_unless_inverted():
    alphas = torch.tensor([[0.9, 0.1]])
    small_first, large_first = torch.tensor([[0.1, 0.9]]), torch.tensor([[0.9, 0.1]])
    assert Linear()(alphas, small_first, None) < Linear()(alphas, large_first, None)
    assert Cosine()(alphas, small_first, None) > Cosine()(alphas, large_first, None)
    inverted = Cosine(inverted=True)
    assert inverted(alphas, small_first, None) < inverted(alphas, large_first, None)


def test_opposite_rays():
    torch.testing.assert_close(opposite(torch.tensor([[0.3, 0.7]])), torch.tensor([[0.7, 0.3]]))
    rays = opposite(torch.tensor([[1.0, 0.0, 0.0], [0.2, 0.3, 0.5]]))
    torch.testing.assert_close(rays.sum(1), torch.ones(2))
    assert rays[0, 0] < 1e-3
    weighted = rays[1] * torch.tensor([0.2, 0.3, 0.5])
    torch.testing.assert_close(weighted, weighted[:1].expand(3))


def test_a_corner_is_an_axis_but_for_a_thousandth():
    rays = opposite(torch.tensor([[1.0, 0.0]]))
    torch.testing.assert_close(rays, torch.tensor([[1 / 1001, 1000 / 1001]]))


def test_it_is_printed_with_its_option():
    assert (repr(Cosine()), repr(Cosine(inverted=True))) == ("Cosine()", "Cosine(inverted=True)")
