"""Front: validation, and what it asks of its tasks' directions."""

import pytest
import torch

from front.fronts import curve, mixed, random_front
from lorpman.errors import UsageError
from lorpman.front.front import Front, worst_and_best
from lorpman.front.hypervolume import hypervolume
from lorpman.task import HIGHER, LOWER


def test_hypervolume_uses_each_tasks_direction_and_reference() -> None:
    assert mixed().hypervolume() == pytest.approx(float(curve().hypervolume()))
    assert curve().hypervolume() == hypervolume(curve().scores, 0.0)


def test_non_dominated_keeps_rows_together() -> None:
    front = random_front()
    kept = curve().non_dominated()
    assert len(curve()) == 5
    assert torch.equal(kept.scores, curve().scores[:4])
    assert torch.equal(kept.alphas, curve().alphas[:4])
    losses = front.non_dominated().losses
    assert losses is not None
    assert len(losses) == len(front.non_dominated())


def test_a_front_does_not_change_with_the_callers_tensor() -> None:
    scores = torch.rand(2, 2, requires_grad=True)
    front = Front(torch.eye(2), scores, ("a", "b"), (True, True), (0.0, 0.0))
    before = front.scores.clone()
    with torch.no_grad():
        scores += 1
    assert torch.equal(front.scores, before)
    assert (front.scores.dtype, front.alphas.dtype) == (torch.float64, torch.float32)
    assert not front.scores.requires_grad


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"scores": torch.zeros(2, 3)}, r"scores must have shape \[n, 2\].*got \[2, 3\]"),
        ({"scores": torch.zeros(0, 2)}, r"scores must have shape \[n, 2\].*got \[0, 2\]"),
        ({"alphas": torch.zeros(3, 2)}, "alphas has 3 rows, scores have 2"),
        ({"losses": torch.zeros(1, 2)}, "losses has 1 rows, scores have 2"),
        ({"scores": torch.tensor([[0.0, 1.0], [0.0, torch.nan]])}, "row 1, task 'b'"),
        ({"losses": torch.tensor([[0.0, 1.0], [torch.inf, 1.0]])}, "losses must be finite"),
        ({"tasks": ("a", "a")}, "names that differ"),
        ({"tasks": "ab"}, "tasks must hold names"),
        ({"maximise": (True,)}, "maximise must hold True or False, one per task"),
        ({"reference": ("0", 1)}, "reference must hold a number, one per task"),
        ({"reference": (0.0, float("nan"))}, "reference must be finite"),
    ],
)
def test_what_is_not_a_front_is_refused(change: dict[str, object], message: str) -> None:
    fields: dict[str, object] = {"alphas": torch.eye(2), "scores": torch.eye(2)}
    fields |= {"tasks": ("a", "b"), "maximise": (True, True), "reference": (0.0, 0.0)} | change
    with pytest.raises(UsageError, match=message):
        Front(**fields)  # type: ignore[arg-type]


def test_gains_are_scores_turned_so_that_bigger_is_better() -> None:
    front = mixed()
    assert front.signs.tolist() == [-1.0, 1.0]
    assert torch.equal(front.gains[:, 0], -front.scores[:, 0])
    assert torch.equal(front.gains[:, 1], front.scores[:, 1])


def test_each_task_has_its_direction() -> None:
    assert (mixed().direction("age"), mixed().direction("right")) == (LOWER, HIGHER)
    assert (mixed().column("age"), mixed().column("right")) == (0, 1)
    with pytest.raises(UsageError, match="unknown task 'aeg'; did you mean 'age'"):
        mixed().direction("aeg")


def test_the_mask_is_that_of_the_tasks_directions() -> None:
    expected = [True, True, True, True, False]
    assert curve().non_dominated_mask().tolist() == expected
    assert mixed().non_dominated_mask().tolist() == expected


def test_the_worst_and_the_best_over_several_fronts() -> None:
    front = mixed()
    better = Front(front.alphas, front.scores - 0.01, front.tasks, front.maximise, front.reference)
    worst, best = worst_and_best([front, better])
    torch.testing.assert_close(worst, torch.tensor([0.5, 0.59]).double())
    torch.testing.assert_close(best, torch.tensor([0.04, 0.95]).double())


def test_fronts_are_compared_if_tasks_and_directions_agree() -> None:
    front = curve()
    turned = Front(front.alphas, front.scores, front.tasks, (True, False), front.reference)
    assert front.has_tasks_of(curve())
    assert not front.has_tasks_of(mixed())
    assert not front.has_tasks_of(turned)
