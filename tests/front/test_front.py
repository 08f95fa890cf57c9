"""Front: validation, selection in both directions, files that round-trip or say why not."""

import json
from pathlib import Path

import pytest
import torch
from torch import Tensor

from lorpman.errors import UsageError
from lorpman.front.choice import Choice
from lorpman.front.front import Front
from lorpman.front.front_file import FORMAT
from lorpman.front.hypervolume import hypervolume


def curve() -> Front:
    """Five points: right falls as left rises; row 4 is dominated by row 2."""
    left = [0.50, 0.80, 0.90, 0.95, 0.85]
    right = [0.95, 0.93, 0.88, 0.60, 0.70]
    alphas = torch.tensor([[0.0, 1.0], [0.25, 0.75], [0.5, 0.5], [1.0, 0.0], [0.7, 0.3]])
    scores = torch.tensor([left, right], dtype=torch.float64).T
    return Front(alphas, scores, ("left", "right"), (True, True), (0.0, 0.0), label="a")


def mixed() -> Front:
    """The same trade-off, with the first task as an error from 0 to 1: smaller is better."""
    front = curve()
    scores = torch.stack([1.0 - front.scores[:, 0], front.scores[:, 1]], dim=1)
    return Front(front.alphas, scores, ("age", "right"), (False, True), (1.0, 0.0))


def assert_same_front(first: Front, second: Front) -> None:
    assert torch.equal(first.alphas, second.alphas)
    assert torch.equal(first.scores, second.scores)
    assert (first.losses is None) == (second.losses is None)
    if first.losses is not None and second.losses is not None:
        assert torch.equal(first.losses, second.losses)
    for name in ("tasks", "maximise", "reference", "label"):
        assert getattr(first, name) == getattr(second, name)


def random_front(losses: bool = True) -> Front:
    generator = torch.Generator().manual_seed(0)
    alphas = torch.rand(7, 3, generator=generator)
    scores = torch.rand(7, 3, generator=generator, dtype=torch.float64) / 3
    extra = torch.rand(7, 3, generator=generator, dtype=torch.float64) if losses else None
    return Front(alphas, scores, ("a", "b", "ç"), (True, False, True), (0.0, 0.5, -1.0), extra, "x")


# The container.


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


# Selection.


def test_bound_and_best_pick_the_best_point_that_keeps_the_bound() -> None:
    choice = curve().select(at_least={"left": 0.8}, best="right")
    assert (choice.index, choice.feasible) == (1, True)
    assert choice.scores == {"left": 0.80, "right": 0.93}
    assert torch.equal(choice.alpha, torch.tensor([0.25, 0.75]))


def test_a_minimised_task_is_bounded_from_above_and_chosen_alike() -> None:
    bound = float(mixed().scores[1, 0])
    for same, mirrored in (
        (curve().select(at_least={"left": 0.8}, best="right"), {"at_most": {"age": bound}}),
        (curve().select(at_least={"left": 0.99}, best="right"), {"at_most": {"age": 0.01}}),
    ):
        choice = mixed().select(**mirrored, best="right")  # type: ignore[arg-type]
        assert (choice.index, choice.feasible) == (same.index, same.feasible)
    assert mixed().select(best="age").index == curve().select(best="left").index == 3


def test_an_impossible_demand_gives_the_nearest_point_and_says_so() -> None:
    choice = curve().select(at_least={"left": 0.99}, best="right")
    assert (choice.index, choice.feasible) == (3, False)
    both = curve().select(at_least={"left": 0.92, "right": 0.92}, best="left")
    # In ranges of the front (0.45 and 0.35), rows 1 to 3 miss by 0.27, 0.16 and 0.91.
    assert (both.index, both.feasible) == (2, False)


def test_knee_is_farthest_from_the_line_between_the_ends() -> None:
    front = curve().non_dominated()
    unit = (front.scores - front.scores.amin(0)) / (front.scores.amax(0) - front.scores.amin(0))
    start, end = unit[0], unit[3]
    line = (end - start) / (end - start).norm()
    away = (unit - start) - ((unit - start) @ line)[:, None] * line
    assert curve().select(knee=True).index == int(away.norm(dim=1).argmax())
    assert curve().select(knee=True).index == mixed().select(knee=True).index


def test_target_is_the_closest_in_ranges_and_may_leave_tasks_out() -> None:
    assert curve().select(target={"left": 0.79, "right": 0.93}).index == 1
    assert curve().select(target={"right": 0.61}).index == 3
    assert mixed().select(target={"age": 0.11, "right": 0.88}).index == 2


def test_utility_sees_scores_by_name_within_bounds() -> None:
    assert curve().select(utility=lambda s: -abs(s["left"] - 0.86)).index == 4
    bounded = curve().select(utility=lambda s: s["left"], at_least={"right": 0.9})
    assert bounded.index == 1


def test_equal_points_are_settled_by_the_other_tasks() -> None:
    scores = torch.tensor([[0.5, 0.2], [0.5, 0.4], [0.1, 0.9]])
    front = Front(torch.full((3, 2), 0.5), scores, ("a", "b"), (True, True), (0.0, 0.0))
    assert front.select(best="a").index == 1


def test_a_single_point_is_always_the_choice() -> None:
    front = Front(torch.ones(1, 2) / 2, torch.ones(1, 2), ("a", "b"), (True, True), (0.0, 0.0))
    for choice in (
        front.select(knee=True),
        front.select(target={"a": 0.0}),
        front.select(best="b"),
    ):
        assert isinstance(choice, Choice)
        assert (choice.index, choice.feasible) == (0, True)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "exactly one of best=.*got 0"),
        ({"best": "age", "knee": True}, "got 2"),
        ({"best": "rigth"}, "unknown task 'rigth'; did you mean 'right'"),
        ({"at_least": {"nose": 1.0}, "knee": True}, "unknown task 'nose'"),
        (
            {"at_least": {"age": 0.1}, "best": "right"},
            r"smaller is better; pass at_most=\{'age': 0.1\}",
        ),
        ({"at_most": {"right": 0.1}, "best": "age"}, r"bigger is better; pass at_least=\{'right'"),
        ({"target": {"age": float("nan")}}, "'age' must be finite, got nan"),
        ({"target": {}}, "target names no task"),
        ({"utility": lambda _: float("nan")}, "utility must return a number"),
    ],
)
def test_a_demand_that_makes_no_sense_is_refused(options: dict[str, object], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        mixed().select(**options)  # type: ignore[arg-type]


# Files.


@pytest.mark.parametrize("losses", [True, False])
def test_files_round_trip_exactly(tmp_path: Path, losses: bool) -> None:
    front = random_front(losses)
    front.save(tmp_path / "front.json")
    assert_same_front(Front.load(tmp_path / "front.json"), front)
    assert [path.name for path in tmp_path.iterdir()] == ["front.json"]


def test_the_file_is_plain_json_with_short_numbers(tmp_path: Path) -> None:
    front = curve()
    front.save(tmp_path / "front.json")
    text = (tmp_path / "front.json").read_text(encoding="utf-8")
    document = json.loads(text)
    assert document["format"] == FORMAT
    assert document["hypervolume"] == {
        "value": float(front.hypervolume()),
        "stderr": 0.0,
        "method": "exact",
    }
    assert "    [0.7, 0.3]\n" in text  # float32, but not as 0.699999988079071


def test_losses_may_be_infinite_without_breaking_the_file(tmp_path: Path) -> None:
    losses = torch.tensor([[float("inf"), 1.0]])
    front = Front(torch.ones(1, 2), torch.ones(1, 2), ("a", "b"), (True, True), (0.0, 0.0), losses)
    front.save(tmp_path / "front.json")
    assert "Infinity" not in (tmp_path / "front.json").read_text()
    loaded = Front.load(tmp_path / "front.json").losses
    assert isinstance(loaded, Tensor)
    assert loaded[0].isfinite().tolist() == [False, True]


def test_scores_are_saved_even_where_no_float_holds_the_volume(tmp_path: Path) -> None:
    names, up = tuple(f"t{i}" for i in range(40)), (True,) * 40
    front = Front(torch.ones(1, 40), torch.full((1, 40), 1e-9), names, up, (0.0,) * 40)
    front.save(tmp_path / "front.json")
    assert_same_front(Front.load(tmp_path / "front.json"), front)


def test_a_file_cut_short_anywhere_is_named_and_refused(tmp_path: Path) -> None:
    curve().save(tmp_path / "front.json")
    content = (tmp_path / "front.json").read_bytes()
    for size in range(0, len(content.rstrip()), 7):
        (tmp_path / "cut.json").write_bytes(content[:size])
        with pytest.raises(UsageError, match=r"cut\.json' is not a front file: no valid JSON"):
            Front.load(tmp_path / "cut.json")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"format": "lorpman-front/9"}, "format is 'lorpman-front/9', expected 'lorpman-front/1'"),
        ({"scores": None}, "it lacks scores"),
        ({"scores": [[1.0], [2.0, 3.0]]}, "expected sequence of length"),
        ({"scores": [[1.0, "x"]]}, "is not a front file"),
        ({"scores": 3}, "is not a front file"),
        ({"scores": [[1.0, None]] * 5}, "must be finite"),
        ({"maximise": ["yes", "no"]}, "maximise must hold True or False"),
        ({"tasks": None}, "it lacks tasks"),
    ],
)
def test_a_wrong_file_is_named_and_explained(
    tmp_path: Path, change: dict[str, object], message: str
) -> None:
    curve().save(tmp_path / "front.json")
    document = json.loads((tmp_path / "front.json").read_text(encoding="utf-8")) | change
    (tmp_path / "front.json").write_text(json.dumps(document))
    with pytest.raises(UsageError, match=message) as caught:
        Front.load(tmp_path / "front.json")
    assert "front.json" in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("content", [b"[1, 2]", b"\xff\xfe\x00", b"null", b""])
def test_other_files_are_not_fronts(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "other").write_bytes(content)
    with pytest.raises(UsageError, match="other' is not a front file"):
        Front.load(tmp_path / "other")


def test_missing_files_and_folders_are_usage_errors(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"cannot read front file .*nowhere"):
        Front.load(tmp_path / "nowhere.json")
    with pytest.raises(UsageError, match=r"cannot write .*No such file"):
        curve().save(tmp_path / "nowhere" / "front.json")
    with pytest.raises(UsageError, match="cannot write"):
        curve().save(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_failed_write_leaves_the_old_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    curve().save(tmp_path / "front.json")
    before = (tmp_path / "front.json").read_bytes()

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(UsageError, match="No space left"):
        mixed().save(tmp_path / "front.json")
    assert (tmp_path / "front.json").read_bytes() == before
    assert [path.name for path in tmp_path.iterdir()] == ["front.json"]
