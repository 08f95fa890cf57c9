import pytest
import torch
from safetensors.torch import load_file
from torch import nn

import lorpman as lp
from front.exported import ALPHA, Net, exportable, names_in
from lorpman.front.export_formats import FORMATS, _compared
from properties import randomise


@pytest.mark.parametrize("suffix", [".pt2", ".onnx"])
@pytest.mark.parametrize("alpha", [ALPHA, None])
def test_graphs_are_checked_and_take_any_batch(tmp_path, suffix, alpha):
    if suffix == ".onnx":
        pytest.importorskip("onnxruntime")
    model, x = exportable(), torch.randn(6, 1, 8, 8)
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
    assert names_in(tmp_path) == [path.name, path.name + ".card.json"]


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
    assert names_in(tmp_path) == []


def test_weights_in_any_memory_order(tmp_path):
    network = Net().to(memory_format=torch.channels_last)
    model = lp.LowRank(network, 2, rank=2, shared=["conv", "norm"])
    lp.export(model, ALPHA, tmp_path / "m.safetensors")
    loaded = load_file(tmp_path / "m.safetensors")
    for name, value in model.solution(ALPHA).state_dict().items():
        assert torch.equal(loaded[name], value)


def test_every_format_says_what_it_is():
    assert sorted(FORMATS) == [".onnx", ".pt2", ".safetensors"]
    assert [suffix for suffix, one in FORMATS.items() if not one.is_graph] == [".safetensors"]
    assert len({one.kind for one in FORMATS.values()}) == len(FORMATS)


@pytest.mark.parametrize(("off", "refused"), [(0.9e-4, False), (1.2e-4, True)])
def test_a_file_that_differs_is_refused(off, refused):
    network, x = nn.Linear(2, 2), torch.randn(4, 2)
    with torch.no_grad():
        network.weight.zero_()
        network.bias.copy_(torch.tensor([1.0, 0.5]))

    def run(given):
        return [network(*given) + off]

    if refused:
        with pytest.raises(lp.UsageError, match=r"differs from the network by 0\.00012"):
            _compared(network, (x,), run)
    else:
        difference, any_size = _compared(network, (x,), run)
        assert difference == pytest.approx(off, rel=0.01)
        assert any_size


def test_a_file_with_one_preference_baked_in_is_refused():
    class Mix(nn.Module):
        def forward(self, x, alpha):
            return x * alpha[0]

    even = torch.tensor([0.5, 0.5])
    with pytest.raises(lp.UsageError, match=r"differs from the network by 0\.5"):
        _compared(Mix(), (torch.ones(3, 1), even), lambda given: [given[0] * 0.5])


def test_a_file_that_takes_one_size_of_batch_says_so():
    def run(given):
        if len(given[0]) != 4:
            raise RuntimeError("wrong size")
        return [given[0]]

    assert _compared(nn.Identity(), (torch.ones(4, 1),), run) == (0.0, False)
