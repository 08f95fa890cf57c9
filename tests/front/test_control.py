"""A front beside retrained networks: regret, reach, order, and whether tasks compete."""

from dataclasses import replace

import pytest
import torch

import lorpman as lp
from lorpman.front.control import compete

ALPHAS = lp.grid(2, 5)
LOSSES = 1.0 - 0.5 * ALPHAS.double()
SCORES = 0.5 + 0.25 * ALPHAS.double()


def _front(losses=LOSSES, scores=SCORES, maximise=(True, True), alphas=ALPHAS):
    return lp.Front(alphas, scores, ("a", "b"), maximise, (0.0, 0.0), losses)


def test_a_front_beside_itself_gives_nothing_up():
    found = _front().control(_front())
    assert (found.regret, found.reach) == (0.0, 0.0)
    assert found.order.correlation == found.order_on_losses.correlation == 1.0


def test_regret_is_the_mean_relative_excess_of_the_weighted_loss():
    factors = torch.tensor([1.1, 1.0, 0.9, 1.0, 1.5]).double()
    found = _front(LOSSES * factors[:, None]).control(_front())
    assert found.regrets == pytest.approx((factors - 1).tolist())
    assert found.regret == pytest.approx(0.1)


def test_only_the_weighted_tasks_count():
    """At a corner, the loss of the other task is of no interest."""
    spoiled = LOSSES.clone()
    spoiled[0, 0], spoiled[-1, 1] = 100.0, 100.0
    assert _front(spoiled).control(_front()).regret == pytest.approx(0.0)


def test_reach_is_the_gain_in_score_at_a_tasks_own_corner():
    scores = SCORES.clone()
    scores[-1, 0] += 0.03  # all weight on a
    scores[0, 1] -= 0.01  # all weight on b
    found = _front(scores=scores).control(_front())
    assert found.reaches == pytest.approx((0.03, -0.01))
    assert found.reach == pytest.approx(0.01)


def test_reach_is_turned_where_less_is_better():
    lower = SCORES - torch.tensor([0.1, 0.0])
    found = _front(scores=lower, maximise=(False, True)).control(_front(maximise=(False, True)))
    assert found.reaches == pytest.approx((0.1, 0.0))


def test_the_front_may_have_more_preferences_in_any_order():
    alphas = torch.cat([lp.grid(2), ALPHAS]).flip(0)
    front = _front(1 - 0.5 * alphas.double(), 0.5 + 0.25 * alphas.double(), alphas=alphas)
    assert front.control(_front()).regret == pytest.approx(0.0, abs=1e-7)


def test_order_on_losses_is_not_that_on_scores():
    found = _front(losses=0.5 + 0.5 * ALPHAS.double()).control(_front())
    assert found.order.correlation == 1.0
    assert found.order_on_losses.correlation == -1.0


def test_without_a_corner_there_is_no_reach_and_without_positive_losses_no_regret():
    inner = [1, 2, 3]
    some = _front(LOSSES[inner], SCORES[inner], alphas=ALPHAS[inner])
    assert _front().control(some).reach is None
    found = _front().control(_front(-LOSSES))
    assert (found.regret, found.regrets) == (None, ())


def test_what_does_not_fit_is_refused():
    with pytest.raises(lp.UsageError, match=r"no point at preference \(0.25, 0.75\).*evaluate"):
        _front(alphas=torch.eye(2), losses=LOSSES[:2], scores=SCORES[:2]).control(_front())
    with pytest.raises(lp.UsageError, match="different tasks: a, b and a, c"):
        _front().control(replace(_front(), tasks=("a", "c")))
    with pytest.raises(lp.UsageError, match="needs the losses"):
        _front().control(replace(_front(), losses=None))


def test_tasks_compete_where_a_corner_gains_over_equal_weights():
    assert compete([_front()]) is True
    level = _front(torch.ones(5, 2), torch.ones(5, 2))
    assert compete([level]) is False
    # A task that overfits where all weight is on it loses by retraining, and so does not compete.
    assert compete([_front(0.5 + ALPHAS.double(), 1 - 0.5 * ALPHAS.double())]) is False
    inner = [1, 2, 3]
    assert compete([_front(LOSSES[inner], SCORES[inner], alphas=ALPHAS[inner])]) is None


def test_seeds_that_gain_by_chance_do_not_make_a_trade_off():
    up, down = torch.ones(5, 2).double(), torch.ones(5, 2).double()
    up[-1, 0], down[-1, 0] = 0.97, 1.03
    scores = torch.ones(5, 2)
    assert compete([_front(up, scores)]) is True
    assert compete([_front(up, scores), _front(down, scores)]) is False


def test_numbers_stand_in_a_file(tmp_path):
    from lorpman._files import read_json
    from lorpman.front.front_file import write_front

    found = _front().control(_front())
    write_front(_front(), tmp_path / "front.json", found.to_json())
    kept = read_json(tmp_path / "front.json", "front")["control"]
    assert kept["regret"] == found.regret
    assert kept["order_on_losses"]["correlation"] == 1.0
    assert lp.Front.load(tmp_path / "front.json").scores.tolist() == SCORES.tolist()
