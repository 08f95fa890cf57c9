"""Learned: another manifold, shown at preferences of its own."""

import pytest
import torch
from torch import nn

import lorpman as lp


def _model(count=3):
    return lp.Learned(lp.LowRank(nn.Linear(3, 2), 2, rank=1), count)


def test_its_front_is_shown_and_trained_at_its_references():
    model = _model()
    assert model.preferences().shape == (3, 2)
    assert torch.allclose(model.preferences().sum(1), torch.ones(3))
    assert torch.equal(model.sampler(1.0)(2, 99, None), model.references)


def test_the_references_cannot_be_changed_from_outside():
    model = _model()
    model.preferences().zero_()
    assert model.references.sum() > 0


def test_every_preference_is_answered_by_the_manifold_inside():
    model, x, alpha = _model(), torch.randn(4, 3), torch.tensor([0.3, 0.7])
    assert torch.equal(model(x, alpha), model.inner(x, alpha))
    assert torch.equal(model.solution(alpha)(x), model.inner.solution(alpha)(x))
    assert model.parameters_at(alpha) == model.inner.parameters_at(alpha)
    assert model.shared_parameters(alpha) == model.inner.shared_parameters(alpha)


def test_it_freezes_if_the_manifold_inside_can():
    model = _model()
    assert model.can_freeze
    model.freeze()
    assert model.inner.frozen
    single = lp.Learned(lp.Convex(nn.Linear(3, 2), 2), 1)
    assert not single.can_freeze
    with pytest.raises(lp.UsageError, match="Convex has no main network"):
        single.freeze()


def test_the_innermost_manifold_is_the_one_with_the_weights():
    model = _model()
    assert lp.Learned(model, 2).innermost is model.inner


def test_there_is_at_least_one_reference():
    with pytest.raises(lp.UsageError, match="count must be a whole number"):
        _model(0)
