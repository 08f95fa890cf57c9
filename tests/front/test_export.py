import hashlib
import inspect
import json
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
import torch

import lorpman as lp
from front.exported import ALPHA, Net, exportable, names_in
from lorpman.training import checkpoint


@pytest.mark.slow
def test_a_state_dict_loads_without_lorpman(tmp_path):
    model, x = exportable(), torch.randn(5, 1, 8, 8)
    written = lp.export(model, ALPHA, tmp_path / "model.safetensors", card={"purpose": "a test"})
    expected = model.solution(ALPHA).eval()(x)
    torch.save({"x": x, "y": expected}, tmp_path / "expected.pt")
    code = """
    import sys
    sys.modules["lorpman"] = None  # any import of it fails
    import torch
    from torch import nn
    from safetensors.torch import load_file
    """
    check = f"""
    net = Net()
    net.load_state_dict(load_file({str(written.path)!r}))
    kept = torch.load({str(tmp_path / "expected.pt")!r})
    for ours, theirs in zip(net.eval()(kept["x"]), kept["y"], strict=True):
        assert torch.equal(ours, theirs)
    """
    program = textwrap.dedent(code) + inspect.getsource(Net) + textwrap.dedent(check)
    subprocess.run([sys.executable, "-c", program], check=True)
    card = json.loads(written.card.read_text())
    assert card["alpha"] == pytest.approx([0.3, 0.7])
    assert card["purpose"] == "a test"
    assert model.training
    assert names_in(tmp_path) == [
        "expected.pt",
        "model.safetensors",
        "model.safetensors.card.json",
    ]


def test_bad_targets_are_refused(tmp_path):
    model, x = exportable(), torch.randn(3, 1, 8, 8)
    (tmp_path / "folder.onnx").mkdir()
    for alpha, to, example, message in (
        (ALPHA, "m.pth", x, "unknown file format '.pth'"),
        (ALPHA, "folder.onnx", x, "it is a directory"),
        (ALPHA, "none/m.safetensors", x, "there is no folder"),
        (ALPHA, "onnx", x, "no suffix that tells the file format"),
        (ALPHA, "m.pt2", None, "needs an example"),
        (ALPHA, "m.pt2", x[:1], "at least 2 samples"),
        (None, "m.safetensors", x, "holds one network"),
        ([0.3, 0.3, 0.4], "m.safetensors", x, r"alpha must have shape \[2\]"),
    ):
        with pytest.raises(ValueError, match=message):
            lp.export(model, alpha, tmp_path / to, example)
    assert names_in(tmp_path) == ["folder.onnx"]


@pytest.mark.parametrize("suffix", [".safetensors", ".pt2", ".onnx"])
def test_a_folder_that_cannot_be_written_to_is_named(suffix):
    """/proc refuses new files to everybody, root included."""
    if not Path("/proc/self").is_dir():
        pytest.skip("needs /proc")
    if suffix == ".onnx":
        pytest.importorskip("onnxruntime")
    to, example = Path(f"/proc/self/model{suffix}"), torch.randn(3, 1, 8, 8)
    with pytest.raises(lp.UsageError, match=f"cannot write '{to}'"):
        lp.export(exportable(), ALPHA, to, example)


def test_a_checkpoint_is_never_written_over(tmp_path):
    to = tmp_path / "checkpoint.safetensors"
    checkpoint.save({"weight": torch.zeros(2)}, to)
    before = to.read_bytes()
    with pytest.raises(lp.UsageError, match="is not an exported network"):
        lp.export(exportable(), ALPHA, to)
    assert to.read_bytes() == before
    assert names_in(tmp_path) == [to.name]


def test_a_missing_package_is_named(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    with pytest.raises(lp.UsageError, match=r"pip install 'lorpman\[onnx\]'"):
        lp.export(exportable(), ALPHA, tmp_path / "m.onnx", torch.randn(3, 1, 8, 8))


def test_the_card_says_what_the_file_is(tmp_path):
    written = lp.export(exportable(), ALPHA, tmp_path / "m.safetensors", outputs=["a", "b"])
    card = json.loads(written.card.read_text())
    assert card["file"] == "m.safetensors"
    assert card["kind"] == "state dict of the network's own class"
    assert card["sha256"] == hashlib.sha256(written.path.read_bytes()).hexdigest()
    assert (card["inputs"], card["outputs"]) == ([], ["a", "b"])
    assert (written.difference, written.any_batch_size) == (None, None)
    assert (card["largest_difference"], card["any_batch_size"]) == (None, None)


def test_the_card_of_a_graph_that_takes_alpha_lists_both_inputs(tmp_path):
    written = lp.export(exportable(), None, tmp_path / "m.pt2", torch.randn(3, 1, 8, 8))
    card = json.loads(written.card.read_text())
    assert card["alpha"] == "a second input"
    assert card["inputs"] == ["torch.float32 [3, 1, 8, 8]", "torch.float32 [2]"]
    assert card["any_batch_size"]


@pytest.mark.parametrize("suffix", [".safetensors", ".pt2"])
def test_a_network_that_is_not_finite_is_not_written(tmp_path, suffix):
    model = exportable()
    name, parameter = next(iter(model.network.named_parameters()))
    with torch.no_grad():
        parameter.view(-1)[0] = torch.nan
    message = rf"at preference \(0.3, 0.7\) is not finite: parameter '{name}' holds nan"
    with pytest.raises(lp.UsageError, match=message):
        lp.export(model, ALPHA, tmp_path / f"m{suffix}", torch.randn(3, 1, 8, 8))
    assert names_in(tmp_path) == []


@pytest.mark.parametrize("alpha", [ALPHA, None])
def test_a_network_whose_outputs_are_not_finite_is_not_written(tmp_path, alpha):
    model = exportable()
    with torch.no_grad():
        for parameter in model.network.parameters():
            parameter.fill_(1e30)
    with pytest.raises(lp.UsageError, match=r"the output holds (inf|nan) at "):
        lp.export(model, alpha, tmp_path / "m.pt2", torch.rand(3, 1, 8, 8))
    assert names_in(tmp_path) == []


def test_an_example_that_does_not_fit_is_one_line(tmp_path):
    with pytest.raises(lp.UsageError, match="cannot be exported to a graph"):
        lp.export(exportable(), ALPHA, tmp_path / "m.pt2", torch.randn(3, 5))
    assert names_in(tmp_path) == []
