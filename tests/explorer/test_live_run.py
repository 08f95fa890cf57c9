"""Evaluating while somebody looks."""

import pytest
import torch

from lorpman.explorer.live_run import LiveRun, _at_most, round_preference
from lorpman.explorer.opened_run import open_runs
from lorpman.front.evaluate import evaluate


def test_addresses_hold_preferences_that_sum_to_one():
    for alpha in (torch.tensor([1 / 3, 2 / 3]), torch.full((20,), 0.05), torch.eye(7)[3]):
        parts = round_preference(alpha)
        assert sum(parts) == pytest.approx(1, abs=1e-9)
        assert parts == pytest.approx(alpha.tolist(), abs=1e-3)


@pytest.mark.parametrize(("count", "sizes"), [(0, []), (3, [3]), (5, [4, 1]), (99, [4, 2])])
def test_no_more_samples_than_asked_for_are_held(count, sizes):
    batches = [(torch.zeros(n, 2), [torch.zeros(n), torch.ones(n)]) for n in (4, 2)]
    held = _at_most(batches, count)
    assert [len(x) for x, _ in held] == sizes
    assert [[len(target) for target in y] for _, y in held] == [[n, n] for n in sizes]


def test_the_line_to_move_on_is_scored_on_the_samples_of_the_point(digits, tmp_path):
    (run,) = open_runs([digits], tmp_path)
    live = LiveRun(run, 50)
    assert live.held_samples == 50
    assert not live.whole
    expected = evaluate(live.model, live.tasks, live.held, run.front.alphas)
    assert torch.equal(live.front.scores, expected.scores)
    corner = live.point(round_preference(run.front.alphas[0]))
    assert corner.scores == pytest.approx(live.front.scores[0].tolist())
    # On the whole split, the stored front is that line already.
    whole = LiveRun(run, 10**6)
    assert whole.whole
    assert whole.front is None
