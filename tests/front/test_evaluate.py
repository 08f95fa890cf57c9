import math
import sys

import pytest
import torch
from torch import nn
from torch.nn import functional as F

import lorpman as lp
from lorpman.lab.datasets.splits import Arrays, batches
from networks import frozen_front
from properties import randomise


def _model(num_tasks=2):
    bottom = nn.Sequential(nn.Linear(4, 6), nn.BatchNorm1d(6), nn.Dropout(0.5))
    model = lp.LowRank(lp.SharedBottom(bottom, [nn.Linear(6, 3)] * num_tasks), num_tasks)
    randomise(model)
    return model


def _tasks(num_tasks=2):
    return [lp.Task(f"t{i}", F.cross_entropy, lp.accuracy) for i in range(num_tasks)]


def _data(num_tasks=2, n=50):
    return Arrays(torch.randn(n, 4), [torch.randint(3, (n,)) for _ in range(num_tasks)])


@pytest.mark.parametrize(("m", "n"), [(2, 11), (3, 66), (5, 100)])
def test_a_front_has_the_papers_number_of_points(m, n):
    front = lp.evaluate(_model(m), _tasks(m), batches(_data(m), 25))
    assert front.alphas.shape == front.scores.shape == front.losses.shape == (n, m)
    assert torch.equal(front.alphas, lp.grid(m))


def test_scores_are_those_of_the_solutions():
    model, data, tasks = _model(), _data(), _tasks()
    # 50 samples in batches of 20: the last one is smaller and must not count for more.
    front = lp.evaluate(model, tasks, batches(data, 20), lp.grid(2, 3))
    for alpha, scores, losses in zip(front.alphas, front.scores, front.losses, strict=True):
        outputs = model.solution(alpha).eval()(data.x)
        for i, (output, target) in enumerate(zip(outputs, data.targets, strict=True)):
            assert scores[i].item() == pytest.approx((output.argmax(1) == target).double().mean())
            assert losses[i].item() == pytest.approx(
                F.cross_entropy(output, target).item(), rel=1e-5
            )


def test_a_network_that_stays_as_it_came_is_scored_without_copies(monkeypatch):
    network = lp.SharedBottom(nn.Linear(4, 6), [nn.Linear(6, 3), nn.Linear(6, 3)])
    model, data = frozen_front(network), _data()
    expected = [model.solution(alpha)(data.x) for alpha in lp.grid(2, 3)]
    monkeypatch.setattr(model, "solution", lambda alpha: pytest.fail("copied"))
    front = lp.evaluate(model, _tasks(), batches(data, 20), lp.grid(2, 3))
    for outputs, losses in zip(expected, front.losses, strict=True):
        wanted = [
            F.cross_entropy(o, t).double() for o, t in zip(outputs, data.targets, strict=True)
        ]
        torch.testing.assert_close(losses, torch.stack(wanted), rtol=1e-5, atol=1e-6)
    with torch.no_grad():
        next(model.deltas.parameters()).fill_(math.nan)
    with pytest.raises(lp.UsageError, match="at any preference is not finite: parameter 'deltas"):
        lp.evaluate(model, _tasks(), batches(data, 20))


def test_few_networks_at_a_time_give_the_same_front(monkeypatch):
    model, data = _model(), _data()
    whole = lp.evaluate(model, _tasks(), batches(data, 20))
    # By name, since lorpman.front.evaluate is the function.
    monkeypatch.setattr(sys.modules["lorpman.front.evaluate"], "_NETWORKS_IN_MEMORY", 1)
    assert torch.equal(lp.evaluate(model, _tasks(), batches(data, 20)).scores, whole.scores)


@pytest.mark.parametrize("training", [True, False])
def test_evaluation_leaves_the_model_as_it_was(training):
    model = _model().train(training)
    before = {name: value.clone() for name, value in model.state_dict().items()}
    lp.evaluate(model, _tasks(), batches(_data(), 20))
    assert model.training is training
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())


def test_one_preference_gives_one_point():
    front = lp.evaluate(_model(), _tasks(), batches(_data(), 50), torch.tensor([0.3, 0.7]))
    assert len(front) == 1


def test_bad_input_is_refused():
    model, tasks = _model(), _tasks()
    with pytest.raises(lp.UsageError, match="the loader is empty"):
        lp.evaluate(model, tasks, [])
    with pytest.raises(ValueError, match="must sum to 1"):
        lp.evaluate(model, tasks, batches(_data(), 50), torch.tensor([[0.5, 0.6]]))
    with pytest.raises(lp.UsageError, match="3 tasks were given"):
        lp.evaluate(model, _tasks(3), batches(_data(), 50))
    with pytest.raises(lp.UsageError, match="names must differ"):
        lp.evaluate(model, [tasks[0], tasks[0]], batches(_data(), 50))


def test_a_batch_of_three_parts_is_refused():
    batch = [(torch.zeros(2, 4), torch.zeros(2, 1), torch.zeros(2, 1))]
    with pytest.raises(lp.UsageError, match="found 3 parts"):
        lp.evaluate(_model(), _tasks(), batch)


def test_a_loader_that_one_pass_uses_up_is_refused():
    with pytest.raises(lp.UsageError, match="iterable more than once"):
        lp.evaluate(_model(), _tasks(), iter([]))


def test_a_score_may_be_a_plain_number():
    tasks = [lp.Task(name, F.cross_entropy, lambda o, t: 0.25) for name in ("left", "right")]
    front = lp.evaluate(_model(), tasks, batches(_data(), 30))
    assert torch.equal(front.scores, torch.full_like(front.scores, 0.25))


@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_a_network_that_is_not_finite_is_no_result(bad):
    model = _model()
    with torch.no_grad():
        model.network.bottom[0].weight[0, 0] = bad
    message = r"at preference \(0, 1\) is not finite: parameter 'bottom.0.weight' holds "
    for ask in (lp.evaluate, lambda *given: lp.select(*given, best="t0")):
        with pytest.raises(lp.UsageError, match=message):
            ask(model, _tasks(), batches(_data(), 20))


def test_a_network_whose_outputs_overflow_is_no_result():
    model = _model()
    with torch.no_grad():
        model.network.bottom[0].weight.fill_(1e30)
        model.network.heads[1].weight.fill_(1e30)
    message = r"the output of task 't\d' holds (nan|inf) at preference \(0, 1\); train"
    with pytest.raises(lp.UsageError, match=message):
        lp.evaluate(model, _tasks(), batches(_data(), 20))


def test_data_that_is_not_finite_is_named():
    data = _data()
    data.x[31, 2] = math.nan
    message = r"the output of task 't0' holds nan .*: the data .* holds NaN or infinity; mend"
    with pytest.raises(lp.UsageError, match=message):
        lp.evaluate(_model(), _tasks(), batches(data, 20))


@pytest.mark.parametrize("part", ["loss", "score"])
def test_a_loss_or_a_score_that_is_not_finite_is_no_result(part):
    measures = {"loss": F.cross_entropy, "score": lp.accuracy}
    measures[part] = lambda output, target: torch.tensor(math.inf)
    tasks = [_tasks()[0], lp.Task("odd", **measures)]
    with pytest.raises(lp.UsageError, match=rf"the {part} of task 'odd' is inf at preference"):
        lp.evaluate(_model(), tasks, batches(_data(), 20))


def test_labels_that_are_missing_count_in_no_score():
    model = lp.Single(nn.Linear(1, 2), num_tasks=2)
    nan = float("nan")
    tasks = [lp.Task(n, F.mse_loss, F.mse_loss, False, missing=nan) for n in "ab"]
    x, y = torch.ones(4, 1), torch.tensor([[0.0, 1.0], [nan, 1.0], [nan, 1.0], [nan, 1.0]])
    whole = lp.evaluate(model, tasks, [(x, y)])
    # The second batch has no label of the first task at all.
    parts = lp.evaluate(model, tasks, [(x[:2], y[:2]), (x[2:], y[2:])])
    kept = lp.evaluate(model, tasks, [(x[:1], y[:1])])
    torch.testing.assert_close(whole.scores, parts.scores)
    torch.testing.assert_close(whole.losses[:, 0], kept.losses[:, 0])
    with pytest.raises(lp.UsageError, match="no sample has a label for task 'a'"):
        lp.evaluate(model, tasks, [(x[2:], y[2:])])


def test_data_without_values_is_refused():
    x, y = torch.zeros(4, 4), [torch.zeros(4, dtype=torch.long) for _ in range(2)]
    for batch in ((x.to("meta"), y), (x, [y[0], y[1].to("meta")])):
        with pytest.raises(lp.UsageError, match="tensor on the meta device, which has no values"):
            lp.evaluate(_model(), _tasks(), [batch])
