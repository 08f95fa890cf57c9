import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from lorpman import LowRank, Orthogonality, UsageError
from lorpman.rules.orthogonality import orthogonality
from properties import randomise

# The term looks at the model alone.
_UNUSED = torch.ones(1, 2)


def _model(num_tasks=2, rank=3):
    model = LowRank(nn.Sequential(nn.Linear(6, 5), nn.ReLU(), nn.Linear(5, 4)), num_tasks, rank)
    randomise(model)
    return model


@given(seed=st.integers(0, 1000), m=st.integers(2, 3))
def test_orthogonality_is_the_papers_formula(seed, m):
    torch.manual_seed(seed)
    model = _model(m)
    expected = 0.0
    for delta in model.low_rank_deltas().values():
        flat = delta.dense().flatten(1)
        w = flat / flat.norm(dim=1, keepdim=True)
        expected += (w @ w.T - torch.eye(m)).square().sum() / len(model.low_rank_deltas())
    torch.testing.assert_close(
        Orthogonality()(_UNUSED, _UNUSED, model), expected, atol=1e-5, rtol=1e-4
    )


def test_orthogonality_at_the_start_is_zero_with_finite_gradients():
    model = LowRank(nn.Linear(6, 5), 2)
    value = Orthogonality()(_UNUSED, _UNUSED, model)
    value.backward()
    assert value == 0
    assert all(torch.isfinite(p.grad).all() for p in model.deltas.parameters())


def test_orthogonality_ignores_the_scale_of_the_deltas():
    gram = torch.tensor([[4.0, 1.0], [1.0, 9.0]])
    for factor in (1e-6, 1.0, 1e6):
        assert orthogonality(gram * factor).item() == pytest.approx(2 / 36, rel=1e-5)


def test_orthogonality_takes_a_fresh_subset_above_three_tasks():
    model = _model(num_tasks=6)
    values = {round(Orthogonality()(_UNUSED, _UNUSED, model).item(), 6) for _ in range(20)}
    assert len(values) > 3
    # Over many subsets, its mean is that of all pairs, scaled to the pairs of a subset.
    deltas = model.low_rank_deltas().values()
    everything = torch.stack([orthogonality(delta.gram()) for delta in deltas]).mean()
    mean = torch.stack([Orthogonality()(_UNUSED, _UNUSED, model) for _ in range(2000)]).mean()
    torch.testing.assert_close(mean, everything * (3 * 2) / (6 * 5), rtol=0.1, atol=0)


def test_a_subset_needs_two_tasks():
    with pytest.raises(UsageError, match="subset must be at least 2 tasks, got 1"):
        Orthogonality(subset=1)
    assert Orthogonality(subset=2).subset == 2
