import json
import os
import random

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from safetensors import SafetensorError
from safetensors.torch import save_file

from lorpman import UsageError
from lorpman.training import checkpoint
from lorpman.training.checkpoint import CheckpointWarning, previous
from lorpman.training.resumable_batches import capture
from properties import assert_round_trips
from small_training import exactly

plain = (
    st.none()
    | st.booleans()
    | st.integers(-(2**53), 2**53)
    | st.text()
    | st.floats(allow_nan=False)
)
nested = st.recursive(
    plain,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.integers() | st.text(), inner, max_size=3)
        | st.tuples(inner, inner)
    ),
    max_leaves=8,
)


@given(state=nested)
def test_plain_state_round_trips(state, tmp_path_factory):
    assert_round_trips({"state": state}, tmp_path_factory.mktemp("state") / "c.safetensors")


def test_tensors_round_trip_even_when_shared(tmp_path):
    weight = torch.randn(3, 4)
    state = {"a": weight, "b": weight.T, "c": [weight[1], (torch.tensor(7), torch.zeros(0))]}
    assert_round_trips(state, tmp_path / "c.safetensors")


@pytest.mark.parametrize("keep", [0, 4, 40, -1])
def test_a_truncated_file_is_named(tmp_path, keep):
    path = tmp_path / "c.safetensors"
    checkpoint.save({"a": torch.randn(100)}, path)
    path.write_bytes(path.read_bytes()[:keep])
    with pytest.raises(UsageError, match=r"c.safetensors is damaged or truncated"):
        checkpoint.load(path)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "c.safetensors"


def test_foreign_and_missing_files_are_refused(tmp_path, path):
    said = f"{path} is not a checkpoint of this version: expected lorpman-checkpoint-2, found "
    for metadata, kind in ((None, "no description"), ({"a": "1", "b": "2"}, None)):
        save_file({"a": torch.zeros(2)}, path, metadata=metadata)
        with pytest.raises(UsageError) as refused:
            checkpoint.load(path)
        assert type(refused.value) is UsageError
        # The order of several keys is random.
        assert str(refused.value) in ([said + kind] if kind else [f"{said}a, b", f"{said}b, a"])
    with pytest.raises(UsageError, match=exactly(f"no checkpoint at {tmp_path / 'none'}")):
        checkpoint.load(tmp_path / "none")


def test_what_json_cannot_hold_is_refused(path):
    with pytest.raises(UsageError, match=exactly("cannot put a set into a checkpoint")):
        checkpoint.save({"a": {1}}, path)
    assert not path.exists()


def test_equal_states_give_equal_files(tmp_path):
    state = {"a": torch.arange(3.0), "b": [1, (2, "x")], 3: None}
    for name in ("one", "two"):
        checkpoint.save(state, tmp_path / name)
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()


def test_files_of_the_first_format_open(path):
    """They have no checksum; nothing was wrapped around the state."""
    state = {"$dict": [["epochs_done", 4], ["weight", {"$tensor": "0"}]]}
    save_file({"0": torch.ones(2)}, path, metadata={"lorpman-checkpoint-1": json.dumps(state)})
    loaded = checkpoint.load(path)
    assert loaded["epochs_done"] == 4
    assert torch.equal(loaded["weight"], torch.ones(2))
    assert checkpoint.epochs_done(path) == 4


def test_epochs_are_counted_without_reading_tensors(path, tmp_path):
    checkpoint.save({"epochs_done": 7, "weight": torch.ones(3)}, path)
    assert checkpoint.epochs_done(path) == 7
    assert checkpoint.epochs_done(tmp_path / "none") == 0
    checkpoint.save({"weight": torch.ones(3)}, path)
    assert checkpoint.epochs_done(path) == 0
    path.write_bytes(b"nothing")
    assert checkpoint.epochs_done(path) == 0


def test_two_checkpoints_are_kept(tmp_path, path):
    for value in range(4):
        checkpoint.save({"value": value, "weight": torch.full((3,), float(value))}, path)
    assert checkpoint.load(path)["value"] == 3
    assert checkpoint.load(previous(path))["value"] == 2
    assert sorted(p.name for p in tmp_path.iterdir()) == ["c.previous.safetensors", path.name]


def test_two_are_kept_where_there_are_no_hard_links(tmp_path, path, monkeypatch):
    def refuse(*args):
        raise OSError("no links here")

    monkeypatch.setattr(os, "link", refuse)
    test_two_checkpoints_are_kept(tmp_path, path)


def _training(epochs, **more):
    """The state of a training, as far as a checkpoint looks at it."""
    return {
        "epochs_done": epochs,
        "steps_done": 0,
        "losses": torch.zeros(2),
        "seconds": 1.0,
        "frozen": False,
        "model": {"weight": torch.ones(100)},
        "rule": {},
        "optimizer": {
            "state": {0: {"step": torch.tensor(1.0)}},
            "param_groups": [{"lr": 0.1, "params": [0]}],
        },
        "scheduler": None,
        "processes": [{"preferences": torch.get_rng_state(), "random": capture(()), "data": None}],
        **more,
    }


def test_either_of_the_two_is_something_to_resume_from(path):
    assert not checkpoint.exists(path)
    checkpoint.save(_training(1), path)
    assert checkpoint.exists(path)
    path.rename(previous(path))
    assert checkpoint.exists(path)
    assert checkpoint.load_latest(path)["epochs_done"] == 1


def test_every_flipped_bit_is_found(path):
    state = {"weight": torch.randn(4, 4), "steps": 17, "more": [torch.arange(3), "text"]}
    checkpoint.save(state, path)
    content = path.read_bytes()
    draw = random.Random(0)
    for _ in range(300):
        position, bit = draw.randrange(len(content)), draw.randrange(8)
        damaged = bytearray(content)
        damaged[position] ^= 1 << bit
        path.write_bytes(damaged)
        try:
            loaded = checkpoint.load(path)
        except UsageError:
            continue
        # Only padding may change unseen.
        assert torch.equal(loaded["weight"], state["weight"])
        assert loaded["steps"] == 17


def _rewrite(path, change):
    """Change what the metadata says, without its checksum."""
    from safetensors import safe_open

    with safe_open(path, framework="pt") as file:
        text = file.metadata()["lorpman-checkpoint-2"]
        tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    save_file(change(tensors) or tensors, path, metadata={"lorpman-checkpoint-2": text})


@pytest.mark.parametrize(
    "change",
    [
        lambda tensors: {**tensors, "0": tensors["0"] + 1},
        lambda tensors: {**tensors, "0": tensors["0"].view(3, 2)},
        lambda tensors: {**tensors, "0": tensors["0"].view(torch.int32)},
        lambda tensors: {"0": tensors["1"], "1": tensors["0"]},
    ],
    ids=["value", "shape", "type", "names"],
)
def test_the_checksum_holds_values_shapes_types_and_names(path, change):
    checkpoint.save({"a": torch.ones(2, 3), "b": torch.zeros(2, 3)}, path)
    _rewrite(path, lambda tensors: None)
    assert torch.equal(checkpoint.load(path)["a"], torch.ones(2, 3))
    _rewrite(path, change)
    message = f"checkpoint {path} is damaged: its checksum is wrong"
    with pytest.raises(checkpoint.DamagedCheckpoint, match=exactly(message)):
        checkpoint.load(path)


@pytest.mark.parametrize("damage", ["truncate", "flip"])
def test_a_damaged_checkpoint_falls_back_to_the_one_before(path, damage):
    for value in (1, 2):
        checkpoint.save(_training(value), path)
    content = bytearray(path.read_bytes())
    if damage == "truncate":
        content = content[: len(content) // 2]
    else:
        content[-20] ^= 4
    path.write_bytes(content)
    said = r"^checkpoint .*damaged.*; continuing from the one before, c\.previous\.safetensors$"
    with pytest.warns(CheckpointWarning, match=said):
        assert checkpoint.load_latest(path)["epochs_done"] == 1
    previous(path).write_bytes(b"nothing")
    with pytest.raises(
        UsageError, match=r"damaged.*; and so is the one before: checkpoint .*previous.*damaged"
    ):
        checkpoint.load_latest(path)


def test_leftovers_of_a_killed_writer_are_removed(tmp_path, path):
    checkpoint.save(_training(1), path)
    (tmp_path / f".c.{'0123456789abcdef' * 2}.safetensors").write_bytes(b"half a file")
    others = tmp_path / ".c.backup.safetensors"
    others.write_bytes(b"of somebody else")
    assert checkpoint.load_latest(path)["epochs_done"] == 1
    assert sorted(tmp_path.iterdir()) == [others, path]


def test_a_folder_or_another_file_is_never_taken_for_a_checkpoint(tmp_path, path):
    (tmp_path / "folder").mkdir()
    (tmp_path / "thesis.txt").write_text("years of work")
    previous(path).write_text("more of it")
    for target in (tmp_path / "folder", tmp_path / "thesis.txt", path):
        before = sorted(tmp_path.rglob("*"))
        for write in (checkpoint.check_writable, lambda target: checkpoint.save({"a": 1}, target)):
            with pytest.raises(UsageError, match="cannot write"):
                write(target)
        assert sorted(tmp_path.rglob("*")) == before
    assert (tmp_path / "thesis.txt").read_text() == "years of work"
    assert previous(path).read_text() == "more of it"


def test_a_damaged_checkpoint_may_be_written_over_where_one_before_it_shows_what_it_was(path):
    for epochs in (1, 2):
        checkpoint.save(_training(epochs), path)
    path.write_bytes(b"nothing")
    checkpoint.check_writable(path)
    checkpoint.save(_training(2), path)
    assert checkpoint.load(path)["epochs_done"] == 2


def test_a_damaged_checkpoint_comes_with_the_whole_one_before_it(path):
    for epochs in (1, 2):
        checkpoint.save(_training(epochs), path)
    assert torch.equal(checkpoint.load_model(path)["weight"], torch.ones(100))
    path.write_bytes(path.read_bytes()[:-3])
    said = r"damaged.*; the one before is whole: .* rename .*c\.previous\.safetensors to c\."
    with pytest.raises(checkpoint.DamagedCheckpoint, match=said):
        checkpoint.load_model(path)
    previous(path).unlink()
    with pytest.raises(checkpoint.DamagedCheckpoint) as refused:
        checkpoint.load_model(path)
    assert "the one before" not in str(refused.value)


def test_a_forged_checkpoint_is_not_resumed_from(path):
    checkpoint.save(_training(1), path)
    checkpoint.save(_training("x"), path)
    with pytest.warns(CheckpointWarning, match="epochs_done: Input should be a valid integer"):
        assert checkpoint.load_latest(path)["epochs_done"] == 1


def test_a_failed_write_keeps_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "c.safetensors"
    checkpoint.save({"a": 1}, path)

    def full(*args, **kwargs):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(checkpoint, "save_file", full)
    with pytest.raises(UsageError, match="No space left"):
        checkpoint.save({"a": 2}, path)
    assert checkpoint.load(path) == {"a": 1}
    assert list(tmp_path.iterdir()) == [path]


def test_a_writer_that_fails_in_its_own_way_is_one_line(path, monkeypatch):
    def full(*args, **kwargs):
        raise SafetensorError("no space")

    monkeypatch.setattr(checkpoint, "save_file", full)
    message = (
        f"cannot write checkpoint {path}: no space; what was saved before is intact: make room and "
        "resume"
    )
    with pytest.raises(UsageError, match=exactly(message)):
        checkpoint.save({"a": 2}, path)
