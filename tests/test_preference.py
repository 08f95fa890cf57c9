import math
from importlib.metadata import version

import pytest
import scipy.stats
import torch
from hypothesis import given
from hypothesis import strategies as st

import lorpman as lp
from lorpman.errors import UsageError
from lorpman.preference import (
    Angles,
    Dirichlet,
    Stratified,
    TowardsCorners,
    as_preference,
    dirichlet,
    grid,
    in_turn,
)


@given(
    m=st.integers(1, 12),
    n=st.integers(1, 30),
    concentration=st.floats(0.01, 50),
    seed=st.integers(0, 2**31),
)
def test_dirichlet_draws_points_of_the_simplex(m, n, concentration, seed):
    alphas = dirichlet(m, n, concentration, torch.Generator().manual_seed(seed))
    assert alphas.shape == (n, m)
    as_preference(alphas, m)


def test_dirichlet_follows_its_generator():
    def draw(seed):
        return dirichlet(3, 4, generator=torch.Generator().manual_seed(seed))

    assert torch.equal(draw(1), draw(1))
    assert not torch.equal(draw(1), draw(2))


def test_dirichlet_concentration_decides_the_spread():
    generator = torch.Generator().manual_seed(0)
    wide = dirichlet(2, 4000, 0.2, generator)
    narrow = dirichlet(2, 4000, 20.0, generator)
    # Var(alpha_1) = 1 / (4 (2 p + 1)) for two tasks.
    for alphas, p in ((wide, 0.2), (narrow, 20.0)):
        assert alphas[:, 0].var().item() == pytest.approx(1 / (4 * (2 * p + 1)), rel=0.1)


@pytest.mark.parametrize(("m", "n"), [(1, 1), (2, 11), (3, 66), (4, 100), (20, 100), (40, 100)])
def test_grid_has_the_papers_sizes_and_the_corners(m, n):
    alphas = grid(m)
    assert alphas.shape == (n, m)
    as_preference(alphas, m)
    for corner in torch.eye(m):
        assert (alphas == corner).all(1).any()
    assert torch.equal(alphas, grid(m))
    assert len(alphas.unique(dim=0)) == n


@pytest.mark.parametrize(("m", "n"), [(2, 2), (2, 5), (3, 10), (3, 7), (5, 6), (8, 40), (40, 30)])
def test_grid_of_any_size(m, n):
    alphas = grid(m, n)
    assert alphas.shape == (n, m)
    as_preference(alphas, m)
    if n > m:
        assert all((alphas == corner).all(1).any() for corner in torch.eye(m))


@pytest.mark.parametrize(
    ("alpha", "message"),
    [
        ([0.5, 0.7], "must sum to 1"),
        ([-0.1, 1.1], "must not be negative"),
        ([math.nan, 1.0], "must be finite"),
        ([math.inf, 0.0], "must be finite"),
        ([0.2, 0.3, 0.5], r"must have shape \[2\]"),
        ([], "must have shape"),
        ([[0.5, 0.5], [0.5, 0.6]], "must sum to 1"),
        ([[[0.5, 0.5]]], "must have shape"),
    ],
)
def test_bad_preferences_are_refused(alpha, message):
    with pytest.raises(ValueError, match=message):
        as_preference(alpha, 2)


def test_an_empty_set_of_preferences_is_refused():
    with pytest.raises(ValueError, match="at least one preference"):
        as_preference(torch.empty(0, 2), 2)


@pytest.mark.parametrize("call", [lambda: grid(0), lambda: grid(2, 0), lambda: dirichlet(2, 0)])
def test_sizes_below_one_are_refused(call):
    with pytest.raises(ValueError, match="at least 1"):
        call()


@pytest.mark.parametrize("concentration", [0.0, -1.0, math.nan, math.inf])
def test_a_bad_concentration_is_refused(concentration):
    with pytest.raises(ValueError, match=r"concentration must be (positive|a finite)"):
        dirichlet(2, 3, concentration)


@pytest.mark.parametrize("count", [1, 5, 16])
def test_angles_are_one_from_each_range(count):
    alphas = Angles(0.1)(2, count, torch.Generator().manual_seed(0))
    assert alphas.shape == (count, 2)
    torch.testing.assert_close(alphas.sum(1), torch.ones(count))
    angles = torch.atan2(alphas[:, 1], alphas[:, 0])
    share = (angles - 0.1) / (math.pi / 2 - 0.2) * count
    assert share.floor().tolist() == list(range(count))
    assert alphas.min() > 0.09


def test_angles_of_more_tasks_are_uniform_draws():
    assert Angles()(3, 4, None).shape == (4, 3)
    with pytest.raises(ValueError, match="edge"):
        Angles(1.0)


@pytest.mark.parametrize("alpha", [None, "x", [None, 1.0]])
def test_what_is_no_number_is_refused(alpha):
    with pytest.raises(ValueError, match="alpha must be numbers"):
        as_preference(alpha, 2)


@pytest.mark.parametrize(("m", "concentration"), [(2, 1.0), (2, 0.3), (3, 2.0), (20, 2.0)])
def test_stratified_draws_are_dirichlet_draws(m, concentration):
    """Each by itself: the moments of the distribution, for every task."""
    generator = torch.Generator().manual_seed(0)
    draw = Stratified(concentration)
    alphas = torch.cat([draw(m, 4, generator) for _ in range(4000)]).double()
    torch.testing.assert_close(alphas.sum(1), torch.ones(16000).double(), atol=1e-5, rtol=0)
    whole = m * concentration
    variance = (1 / m) * (1 - 1 / m) / (whole + 1)
    assert (alphas.mean(0) - 1 / m).abs().max() < 0.01
    assert (alphas.var(0) / variance - 1).abs().max() < 0.06


@pytest.mark.parametrize("concentration", [0.5, 1.0, 3.0])
def test_stratified_draws_of_two_tasks_fall_into_every_range(concentration):
    generator = torch.Generator().manual_seed(0)
    borders = scipy.stats.beta(concentration, concentration).ppf([0.25, 0.5, 0.75])
    for _ in range(20):
        first = Stratified(concentration)(2, 4, generator)[:, 0]
        counts = torch.bucketize(first.double(), torch.from_numpy(borders)).bincount(minlength=4)
        assert counts.tolist() == [1, 1, 1, 1]


def test_stratified_draws_spread_more_evenly_than_independent_ones():
    """The mean preference of a window varies less, for three tasks and for twenty."""
    for m in (3, 20):
        spread = {}
        for kind in (Stratified, Dirichlet):
            generator = torch.Generator().manual_seed(0)
            means = [kind(1.0)(m, 4, generator).mean(0) for _ in range(1000)]
            spread[kind] = torch.stack(means).var(0).mean()
        assert spread[Stratified] < 0.7 * spread[Dirichlet], m


def test_stratified_draws_repeat_with_their_generator():
    first, again = (Stratified()(5, 3, torch.Generator().manual_seed(7)) for _ in range(2))
    assert torch.equal(first, again)
    assert Stratified()(1, 3, None).tolist() == [[1.0]] * 3


@pytest.mark.slow
@pytest.mark.skipif(
    version("torch").startswith("2.8"), reason="torch 2.8 leaves the check out of compiled code"
)
@pytest.mark.filterwarnings("ignore")  # the compiler's own
@pytest.mark.parametrize(
    ("alpha", "message"),
    [
        ([0.5, 0.7], "must sum to 1, got"),
        ([math.nan, 1.0], "must be finite, got"),
        ([-0.5, 1.5], "must not be negative, got"),
        ([[0.5, 0.5], [0.5, 0.7]], "must sum to 1, got"),
    ],
)
def test_a_compiled_manifold_refuses_what_is_no_preference(alpha, message):
    model = lp.LowRank(torch.nn.Linear(3, 2), 2)
    compiled, x = torch.compile(model, backend="aot_eager"), torch.randn(4, 3)
    good = torch.full_like(torch.tensor(alpha), 0.5)
    torch.testing.assert_close(compiled(x, good), model(x, good))
    with pytest.raises(ValueError, match=f"alpha {message}"):
        compiled(x, torch.tensor(alpha))


def test_a_preference_in_a_graph_keeps_its_gradient():
    """As learned preferences need it."""

    def objective(alpha):
        return (as_preference(alpha, 2) * torch.tensor([2.0, 3.0])).sum()

    alpha = torch.tensor([0.25, 0.75], requires_grad=True)
    torch.compile(objective, backend="aot_eager", fullgraph=True)(alpha).backward()
    assert alpha.grad.tolist() == [2.0, 3.0]


def test_in_turn_has_the_centre_and_every_task_at_two_weights():
    alphas = in_turn(4)
    assert alphas.shape == (9, 4)
    assert torch.allclose(alphas.sum(1), torch.ones(9))
    assert alphas[0].tolist() == [0.25] * 4
    for task in range(4):
        assert alphas[1 + task, task] == pytest.approx(0.3)
        assert alphas[5 + task].tolist() == torch.eye(4)[task].tolist()


def test_draws_towards_corners_stay_on_the_simplex_and_leave_the_middle():
    plain = Dirichlet(2.0)
    draws = {
        share: TowardsCorners(plain, share)(20, 2000, torch.Generator().manual_seed(0))
        for share in (0.0, 0.5, 1.0)
    }
    for alphas in draws.values():
        assert torch.allclose(alphas.sum(1), torch.ones(2000), atol=1e-5)
        assert (alphas >= 0).all()
    largest = {share: alphas.amax(1) for share, alphas in draws.items()}
    assert largest[0.0].max() < 0.4
    # A uniform part of the way: a third of the moved ones have more than two thirds on one task.
    assert (largest[1.0] > 0.7).float().mean() == pytest.approx(1 / 3, abs=0.05)
    assert (largest[0.5] > 0.7).float().mean() == pytest.approx(1 / 6, abs=0.05)
    # Every corner in turn.
    assert draws[1.0].argmax(1).bincount(minlength=20).min() > 50


def test_a_share_of_zero_draws_what_the_inner_sampler_draws():
    a = TowardsCorners(Dirichlet(), 0.0)(3, 50, torch.Generator().manual_seed(1))
    assert torch.equal(a, Dirichlet()(3, 50, torch.Generator().manual_seed(1)))


@pytest.mark.parametrize("share", [-0.1, 1.1, float("nan")])
def test_a_share_outside_zero_to_one_is_refused(share):
    with pytest.raises(UsageError, match="share must be"):
        TowardsCorners(Dirichlet(), share)
