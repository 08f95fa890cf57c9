"""Files of fronts: they round-trip exactly, or say why not."""

import json
from pathlib import Path

import pytest
import torch

from front.fronts import assert_same_front, curve, mixed, random_front
from lorpman.errors import UsageError
from lorpman.front.front import Front
from lorpman.front.front_file import FORMAT


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


def test_losses_that_were_not_finite_are_refused(tmp_path: Path) -> None:
    """Older files hold null there."""
    front = Front(torch.full((1, 2), 0.5), torch.ones(1, 2), ("a", "b"), (True, True), (0.0, 0.0))
    front.save(tmp_path / "front.json")
    text = (tmp_path / "front.json").read_text().rstrip().removesuffix("}").rstrip()
    (tmp_path / "front.json").write_text(text + ', "losses": [[null, 1.0]]}')
    with pytest.raises(UsageError, match="losses must be finite, got nan at row 0, task 'a'"):
        Front.load(tmp_path / "front.json")


def test_scores_are_saved_even_where_no_float_holds_the_volume(tmp_path: Path) -> None:
    names, up = tuple(f"t{i}" for i in range(40)), (True,) * 40
    front = Front(torch.full((1, 40), 1 / 40), torch.full((1, 40), 1e-9), names, up, (0.0,) * 40)
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


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("alphas", [[0.5, 0.7]] * 5),
        ("alphas", [[-1.0, 2.0]] * 5),
        ("alphas", [[10**400, 0]] * 5),
        ("scores", [[10**400, 0]] * 5),
        ("reference", [10**400, 0]),
        ("label", [[[]]]),
    ],
)
def test_numbers_that_no_front_has_are_refused(tmp_path: Path, key: str, value: object) -> None:
    path = tmp_path / "front.json"
    curve().save(path)
    path.write_text(json.dumps({**json.loads(path.read_text()), key: value}))
    if key == "label":
        Front.load(path)  # a label is any text
        return
    with pytest.raises(UsageError, match=r"front\.json' is not a front file"):
        Front.load(path)


def test_a_front_never_replaces_something_else(tmp_path: Path) -> None:
    path = tmp_path / "thesis.txt"
    path.write_text("years of work")
    with pytest.raises(UsageError, match="not a front of lorpman"):
        curve().save(path)
    assert path.read_text() == "years of work"


def test_missing_files_and_folders_are_usage_errors(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"cannot read front file .*nowhere"):
        Front.load(tmp_path / "nowhere.json")
    with pytest.raises(UsageError, match=r"cannot write .*there is no folder"):
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
