import dataclasses
import math

import pytest
import torch
from torch.nn import functional as F

import lorpman as lp
from lorpman.task import (
    HIGHER,
    LOWER,
    check_repeatable,
    check_tasks,
    direction_of,
    per_task,
    signs,
    task_losses,
    unpack,
)


def _tasks(*names):
    return [lp.Task(name, F.mse_loss, F.mse_loss, maximise=False) for name in names]


def test_a_direction_turns_scores_so_that_bigger_is_better():
    assert (HIGHER.orient(0.3), LOWER.orient(0.3)) == (0.3, -0.3)
    assert LOWER.orient(torch.tensor([1.0, -2.0])).tolist() == [-1.0, 2.0]


def test_a_bound_is_reached_from_the_better_side_and_exactly():
    assert [HIGHER.reaches(score, 0.5) for score in (0.4, 0.5, 0.6)] == [False, True, True]
    assert [LOWER.reaches(score, 0.5) for score in (0.4, 0.5, 0.6)] == [True, True, False]


def test_the_words_of_both_directions():
    assert (HIGHER.words, LOWER.words) == ("higher is better", "lower is better")
    assert (HIGHER.axis_words, LOWER.axis_words) == ("higher is better →", "← lower is better")
    assert (HIGHER.bound, LOWER.bound) == ("at_least", "at_most")
    assert (HIGHER.symbol, LOWER.symbol) == ("≥", "≤")
    assert (HIGHER.better, LOWER.better) == ("bigger", "smaller")


def test_a_task_has_the_direction_of_its_flag():
    assert lp.Task("a", F.mse_loss, lp.accuracy).direction is HIGHER
    assert lp.Task("a", F.mse_loss, F.mse_loss, maximise=False).direction is LOWER
    assert (direction_of(True), direction_of(False)) == (HIGHER, LOWER)


def test_signs_of_one_flag_or_of_each_task():
    assert signs(False).shape == ()
    assert float(signs(False)) == -1.0
    assert signs([True, False, True]).tolist() == [1.0, -1.0, 1.0]


def test_a_task_without_a_sense_is_refused():
    with pytest.raises(lp.UsageError, match="maximise must be True or False, got 1"):
        lp.Task("a", F.mse_loss, F.mse_loss, maximise=1)
    with pytest.raises(lp.UsageError, match="reference of 'a' must be a finite number, got nan"):
        lp.Task("a", F.mse_loss, F.mse_loss, reference=math.nan)


def test_a_plain_function_is_scored_by_its_mean():
    metric = lp.Task("a", F.mse_loss, lp.accuracy).metric()
    logits, target = torch.tensor([[2.0, 1.0], [0.0, 1.0]]), torch.tensor([0, 0])
    assert metric.value(metric.statistics(logits, target)).item() == 0.5


def test_tasks_must_fit_the_model():
    check_tasks(_tasks("a", "b"), 2)
    with pytest.raises(lp.UsageError, match="num_tasks=3, but 2 tasks were given"):
        check_tasks(_tasks("a", "b"), 3)
    with pytest.raises(lp.UsageError, match="names must differ, got a, a"):
        check_tasks(_tasks("a", "a"), 2)


def test_values_are_split_by_name_by_place_or_by_column():
    first, second = torch.zeros(3), torch.ones(3)
    tasks = _tasks("a", "b")
    for values in (
        {"b": second, "a": first, "c": None},
        [first, second],
        (first, second),
        torch.stack([first, second], 1),
    ):
        found = per_task(values, tasks, "the output")
        assert torch.equal(found[0], first)
        assert torch.equal(found[1], second)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"a": 1}, "the output must have an entry for every task; missing b, found a"),
        (torch.zeros(3), r"found a tensor \[3\]"),
        (torch.zeros(3, 3), r"found a tensor \[3, 3\]"),
        ([1, 2, 3], r"one entry per task \(2\), found 3; tasks: a, b"),
        (3, "must be a list, a mapping or a tensor, found int"),
    ],
)
def test_values_that_do_not_fit_the_tasks_are_refused(values, message):
    with pytest.raises(lp.UsageError, match=message):
        per_task(values, _tasks("a", "b"), "the output")


def test_losses_are_one_scalar_per_task():
    outputs, targets = [torch.zeros(2), torch.ones(2)], [torch.ones(2) * 3, torch.ones(2)]
    assert task_losses(outputs, targets, _tasks("a", "b")).tolist() == [9.0, 0.0]
    raw = lp.Task("a", lambda o, t: o - t, F.mse_loss)
    with pytest.raises(lp.UsageError, match=r"loss of task 'a' must be a scalar.*\[2\]"):
        task_losses(outputs[:1], targets[:1], [raw])


def test_a_batch_is_a_pair():
    assert unpack((1, 2)) == (1, 2)
    assert unpack([1, 2]) == (1, 2)
    with pytest.raises(lp.UsageError, match="found 3 parts"):
        unpack((1, 2, 3))
    with pytest.raises(lp.UsageError, match="found dict"):
        unpack({"x": 1})


def test_an_iterator_is_used_up_by_one_pass():
    check_repeatable([1], "the loader")
    with pytest.raises(lp.UsageError, match="the loader must be iterable more than once"):
        check_repeatable(iter([1]), "the loader")


def _gaps(missing):
    return lp.Task("a", F.mse_loss, F.mse_loss, maximise=False, missing=missing)


@pytest.mark.parametrize("missing", [float("nan"), -1])
def test_a_sample_without_a_label_does_not_count(missing):
    output = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
    target = torch.tensor([0.0, missing, 1.0])
    loss = _gaps(missing).loss_of(output, target)
    assert loss.item() == pytest.approx((1 + 4) / 2)
    loss.backward()
    assert output.grad[1] == 0


def test_a_batch_without_labels_has_no_loss_and_no_gradient():
    output = torch.ones(3, 2, requires_grad=True)
    loss = _gaps(float("nan")).loss_of(output, torch.full((3, 2), float("nan")))
    loss.backward()
    assert loss == 0
    assert torch.equal(output.grad, torch.zeros(3, 2))


def test_a_target_of_several_values_is_left_out_where_all_are_missing():
    target = torch.tensor([[-1, -1], [-1, 4]])
    kept, labels, count = _gaps(-1).labelled({"x": torch.tensor([5, 6])}, target)
    assert (kept["x"].tolist(), labels.tolist(), count) == ([6], [[-1, 4]], 1)


def _masked(values, present):
    return lp.Masked(torch.tensor(values), torch.tensor(present))


def test_a_masked_sample_counts_neither_in_the_loss_nor_in_the_score():
    task = _gaps(None)
    target = _masked([0.0, 9.0, 1.0], [True, False, True])
    output = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
    loss = task.loss_of(output, target)
    assert loss.item() == pytest.approx((1 + 4) / 2)
    loss.backward()
    assert output.grad[1] == 0
    kept, labels, count = task.labelled(output, target)
    assert (kept.tolist(), labels.tolist(), count) == ([1, 3], [0, 1], 2)


def test_a_mask_and_a_value_for_missing_labels_go_together():
    target = _masked([0, -1, 2, 3], [True, True, True, False])
    _, labels, count = _gaps(-1).labelled(torch.arange(4.0), target)
    assert (labels.tolist(), count) == ([0, 2], 2)


def test_a_mask_stands_around_the_targets_of_all_tasks_too():
    tasks = [dataclasses.replace(_gaps(None), name=name) for name in "ab"]
    outputs = torch.tensor([[1.0, 2.0], [3.0, 4.0]])
    seen = _masked([[0.0, 9.0], [9.0, 1.0]], [[True, False], [False, True]])
    assert task_losses(outputs, seen, tasks).tolist() == [1, 9]
    by_name = lp.Masked(
        {"b": seen.target[:, 1], "a": seen.target[:, 0]},
        {"a": seen.present[:, 0], "b": seen.present[:, 1]},
    )
    assert task_losses(outputs, by_name, tasks).tolist() == [1, 9]


@pytest.mark.parametrize("present", [torch.ones(2), torch.ones(3, 4), [True] * 3])
def test_a_mask_needs_one_entry_per_sample(present):
    with pytest.raises(lp.UsageError, match=r"one entry per sample, \[3\], found"):
        _gaps(None).loss_of(torch.ones(3, 4), lp.Masked(torch.ones(3, 4), present))
