import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from lorpman import UsageError
from lorpman.training import checkpoint
from properties import assert_round_trips

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


def test_foreign_and_missing_files_are_refused(tmp_path):
    from safetensors.torch import save_file

    save_file({"a": torch.zeros(2)}, tmp_path / "foreign.safetensors")
    with pytest.raises(UsageError, match="not a checkpoint of this version"):
        checkpoint.load(tmp_path / "foreign.safetensors")
    with pytest.raises(UsageError, match="no checkpoint at"):
        checkpoint.load(tmp_path / "none.safetensors")
    with pytest.raises(UsageError, match="cannot put a set"):
        checkpoint.save({"a": {1}}, tmp_path / "c.safetensors")


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
