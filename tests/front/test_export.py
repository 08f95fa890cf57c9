import inspect
import json
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file
from torch import nn

import lorpman as lp
from lorpman.training import checkpoint
from properties import randomise

ALPHA = torch.tensor([0.3, 0.7])


class Net(nn.Module):
    """A user's own class: convolution, BatchNorm, dropout, two heads."""

    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(1, 4, 3)
        self.norm = nn.BatchNorm2d(4)
        self.drop = nn.Dropout(0.5)
        self.heads = nn.ModuleList([nn.Linear(4 * 36, 3), nn.Linear(4 * 36, 2)])

    def forward(self, x):
        features = self.drop(self.norm(self.conv(x)).relu().flatten(1))
        return [head(features) for head in self.heads]


def _model():
    model = lp.LowRank(Net(), 2, rank=2, shared=["conv", "norm"])
    randomise(model)
    with torch.no_grad():
        model(torch.randn(64, 1, 8, 8), ALPHA)  # moves the running statistics
    return model


def _files(folder):
    return sorted(path.name for path in folder.iterdir())


@pytest.mark.slow
def test_a_state_dict_loads_without_lorpman(tmp_path):
    model, x = _model(), torch.randn(5, 1, 8, 8)
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
    assert _files(tmp_path) == [
        "expected.pt",
        "model.safetensors",
        "model.safetensors.card.json",
    ]


@pytest.mark.parametrize("suffix", [".pt2", ".onnx"])
@pytest.mark.parametrize("alpha", [ALPHA, None])
def test_graphs_are_checked_and_take_any_batch(tmp_path, suffix, alpha):
    if suffix == ".onnx":
        pytest.importorskip("onnxruntime")
    model, x = _model(), torch.randn(6, 1, 8, 8)
    path = tmp_path / f"model{suffix}"
    written = lp.export(model, alpha, path, x, outputs=["left", "right"])
    assert written.difference < 1e-5
    assert written.any_batch_size
    model.eval()
    for other in ([1.0, 0.0], [0.25, 0.75]):
        given = ALPHA if alpha is not None else torch.tensor(other)
        expected = model(x[:4], given)
        if suffix == ".pt2":
            inputs = (x[:4],) if alpha is not None else (x[:4], given)
            found = torch.export.load(path).module()(*inputs)
        else:
            import onnxruntime

            session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
            inputs = {"x": x[:4].numpy()} | ({} if alpha is not None else {"alpha": given.numpy()})
            found = [torch.from_numpy(v) for v in session.run(["left", "right"], inputs)]
        for ours, theirs in zip(expected, found, strict=True):
            torch.testing.assert_close(ours, theirs, atol=1e-5, rtol=1e-4)
    assert _files(tmp_path) == [path.name, path.name + ".card.json"]


def test_per_task_inputs(tmp_path):
    pytest.importorskip("onnxruntime")
    model = lp.LowRank(lp.SharedBottom(nn.Linear(4, 3), [nn.Linear(3, 2), nn.Linear(3, 1)]), 2)
    randomise(model)
    x = [torch.randn(5, 4), torch.randn(5, 4)]
    assert lp.export(model, ALPHA, tmp_path / "m.onnx", x).difference < 1e-5
    assert lp.export(model, ALPHA, tmp_path / "m.pt2", x).difference < 1e-5


class Stubborn(nn.Module):
    """Control flow that depends on the data: no graph can hold it."""

    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 2)

    def forward(self, x):
        return self.layer(x) if x.sum().item() > 0 else self.layer(-x)


@pytest.mark.parametrize("suffix", [".pt2", ".onnx"])
def test_a_network_that_cannot_be_exported_leaves_nothing(tmp_path, suffix):
    pytest.importorskip("onnxruntime")
    with pytest.raises(lp.UsageError, match="Stubborn cannot be exported to a graph: ") as error:
        lp.export(lp.LowRank(Stubborn(), 2), ALPHA, tmp_path / f"m{suffix}", torch.randn(3, 4))
    assert "\n" not in str(error.value)
    assert _files(tmp_path) == []


def test_bad_targets_are_refused(tmp_path):
    model, x = _model(), torch.randn(3, 1, 8, 8)
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
    assert _files(tmp_path) == ["folder.onnx"]


@pytest.mark.parametrize("suffix", [".safetensors", ".pt2", ".onnx"])
def test_a_folder_that_cannot_be_written_to_is_named(suffix):
    """/proc refuses new files to everybody, root included."""
    if not Path("/proc/self").is_dir():
        pytest.skip("needs /proc")
    if suffix == ".onnx":
        pytest.importorskip("onnxruntime")
    to, example = Path(f"/proc/self/model{suffix}"), torch.randn(3, 1, 8, 8)
    with pytest.raises(lp.UsageError, match=f"cannot write '{to}'"):
        lp.export(_model(), ALPHA, to, example)


def test_a_checkpoint_is_never_written_over(tmp_path):
    to = tmp_path / "checkpoint.safetensors"
    checkpoint.save({"weight": torch.zeros(2)}, to)
    before = to.read_bytes()
    with pytest.raises(lp.UsageError, match="is the checkpoint of a run"):
        lp.export(_model(), ALPHA, to)
    assert to.read_bytes() == before
    assert _files(tmp_path) == [to.name]


def test_weights_in_any_memory_order(tmp_path):
    network = Net().to(memory_format=torch.channels_last)
    model = lp.LowRank(network, 2, rank=2, shared=["conv", "norm"])
    lp.export(model, ALPHA, tmp_path / "m.safetensors")
    loaded = load_file(tmp_path / "m.safetensors")
    for name, value in model.solution(ALPHA).state_dict().items():
        assert torch.equal(loaded[name], value)


def test_a_missing_package_is_named(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    with pytest.raises(lp.UsageError, match=r"pip install 'lorpman\[onnx\]'"):
        lp.export(_model(), ALPHA, tmp_path / "m.onnx", torch.randn(3, 1, 8, 8))


def test_recalibration_gives_the_statistics_of_the_chosen_network():
    network = _model().solution(ALPHA).train()
    batches = [(torch.randn(32, 1, 8, 8) * 3 + 1, None) for _ in range(4)]
    assert lp.recalibrate(network, batches, 3) == 1
    features = [network.conv(x) for x, _ in batches[:3]]
    mean = torch.stack([f.mean((0, 2, 3)) for f in features]).mean(0)
    torch.testing.assert_close(network.norm.running_mean, mean, atol=1e-5, rtol=1e-4)
    assert network.norm.momentum == 0.1
    assert network.training
    assert lp.recalibrate(nn.Linear(2, 2), batches) == 0
    with pytest.raises(lp.UsageError, match="no batches"):
        lp.recalibrate(network, [])


def test_recalibration_helps_where_preferences_disagree_about_statistics():
    """The measured effect: a network whose alphas move the features has blended statistics."""
    torch.manual_seed(0)
    network = nn.Sequential(nn.Linear(4, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Linear(16, 1))
    x = torch.randn(512, 4)
    y = [(x[:, :1] - 1), (1 - x[:, :1])]
    tasks = [
        lp.Task(f"t{i}", lambda o, t: (o - t).square().mean(), lambda o, t: -(o - t).square())
        for i in range(2)
    ]
    split = [(x[k : k + 64], [v[k : k + 64] for v in y]) for k in range(0, 512, 64)]

    class Same(nn.Module):
        """One output for two tasks that want opposite values of it."""

        def __init__(self):
            super().__init__()
            self.net = network

        def forward(self, x):
            out = self.net(x)
            return [out, out]

    model = lp.LowRank(Same(), 2, rank=4, scale=4.0)
    lp.fit(model, tasks, split, epochs=30, progress=False, seed=0)
    corner = model.solution(torch.tensor([1.0, 0.0])).eval()
    before = (corner(x)[0] - y[0]).square().mean().item()
    lp.recalibrate(corner, split)
    after = (corner(x)[0] - y[0]).square().mean().item()
    assert after < 0.9 * before, (before, after)
