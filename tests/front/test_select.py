import pytest
import torch
from torch import nn

import lorpman as lp
from lorpman.preference import Fixed


class Curve(nn.Module):
    """Scores that are a known function of alpha: output i is ``weight[i]`` of each sample."""

    def __init__(self, m):
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(1, m))

    def forward(self, x):
        return [column.expand(len(x)) for column in self.weight.unbind(1)]


def _front(m):
    """theta(alpha) = alpha, scored as 1 - (1 - alpha_i)^2: a quarter circle for m = 2."""
    model = lp.LowRank(Curve(m), m, rank=1)
    (delta,) = model.low_rank_deltas().values()
    with torch.no_grad():
        delta.B.fill_(1.0)
        delta.A.copy_(torch.eye(m)[:, None])

    def score(output, target):
        return 1 - (1 - output).square()

    tasks = [lp.Task(f"t{i}", lambda o, t: (1 - o).square().mean(), score) for i in range(m)]
    return model, tasks, [(torch.zeros(4, 1), torch.zeros(4, m))]


def test_a_bound_is_met_between_the_points_of_the_grid():
    model, tasks, loader = _front(2)
    found = lp.select(model, tasks, loader, at_least={"t0": 0.55}, best="t1")
    # 1 - (1 - a)^2 = 0.55 at a = 0.3292; the grid has 0.4.
    exact = 1 - 0.45**0.5
    assert found.choice.feasible
    assert found.choice.scores["t0"] >= 0.55
    assert found.choice.alpha[0].item() == pytest.approx(exact, abs=2e-3)
    on_grid = lp.evaluate(model, tasks, loader).select(at_least={"t0": 0.55}, best="t1")
    assert found.choice.scores["t1"] > on_grid.scores["t1"] + 0.03
    assert found.refined
    assert 11 < found.evaluations <= 11 + 40
    assert len(found.front) == found.evaluations


@pytest.mark.parametrize("m", [2, 3, 5])
def test_the_search_finds_the_optimum_of_a_utility(m):
    model, tasks, loader = _front(m)
    weights = torch.arange(1.0, m + 1)

    def utility(scores):
        return sum(w * s for w, s in zip(weights.tolist(), scores.values(), strict=True))

    found = lp.select(model, tasks, loader, utility=utility, evaluations=200)
    start = utility(lp.evaluate(model, tasks, loader).select(utility=utility).scores)
    tried = torch.cat([lp.dirichlet(m, 20_000, c) for c in (0.3, 1.0)])
    optimum = ((1 - (1 - tried).square()) @ weights).max().item()
    # The search closes most of the gap that the grid leaves.
    assert optimum - utility(found.choice.scores) < max(0.2 * (optimum - start), 1e-3)


def test_knee_and_target():
    model, tasks, loader = _front(2)
    assert lp.select(model, tasks, loader, knee=True).choice.alpha.tolist() == pytest.approx(
        [0.5, 0.5], abs=0.01
    )
    wanted = {"t0": 1 - 0.37**2, "t1": 1 - 0.63**2}
    assert lp.select(model, tasks, loader, target=wanted).choice.alpha.tolist() == pytest.approx(
        [0.63, 0.37], abs=0.005
    )


def test_an_impossible_demand_gives_the_nearest():
    model, tasks, loader = _front(2)
    found = lp.select(model, tasks, loader, at_least={"t0": 0.9, "t1": 0.9}, best="t1")
    assert not found.choice.feasible
    # Equal shortfalls add up to the same only in the middle of the circle.
    assert found.choice.alpha.tolist() == pytest.approx([0.5, 0.5], abs=0.01)


def test_the_grid_alone():
    model, tasks, loader = _front(2)
    found = lp.select(model, tasks, loader, best="t0", evaluations=0)
    assert (found.evaluations, found.refined) == (11, False)
    with pytest.raises(lp.UsageError, match="evaluations must be a whole number"):
        lp.select(model, tasks, loader, best="t0", evaluations=-1)


def test_members_of_a_finite_front_are_not_searched_between():
    class Members(lp.LowRank):
        def preferences(self):
            return lp.grid(2, 3)

        def sampler(self, concentration):
            return Fixed(self.preferences())

    _, tasks, loader = _front(2)
    found = lp.select(Members(Curve(2), 2), tasks, loader, best="t0")
    assert (found.evaluations, found.refined) == (3, False)
