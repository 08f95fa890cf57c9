"""Exports and pictures."""

import io
import json
import shlex
import shutil
import zipfile

import onnxruntime
import pytest
import torch
from safetensors.torch import load

from asking import Asker, serving
from lorpman.lab.runs.directory import open_run


def taken(view, suffix):
    """What the button of a format saves: the network's file and its card."""
    with view.page.expect_download() as waiting:
        view.page.locator("button.take", has_text=f".{suffix}").click()
    assert waiting.value.suggested_filename == f"multidigits-lorpman-{suffix}.zip"
    with zipfile.ZipFile(waiting.value.path()) as archive:
        card = json.loads(archive.read(f"model.{suffix}.card.json"))
        return io.BytesIO(archive.read(f"model.{suffix}")), card


def run_pt2(content, x):
    with torch.no_grad():
        return torch.export.load(content).module()(x)


def run_onnx(content, x):
    session = onnxruntime.InferenceSession(content.read(), providers=["CPUExecutionProvider"])
    return map(torch.from_numpy, session.run(None, {session.get_inputs()[0].name: x.numpy()}))


def test_every_export_button_saves_the_chosen_network(window, served, digits):
    view = window(served.url + "?alpha=0.3,0.7")
    view.settled()
    network = open_run(digits)[1].solution(torch.tensor([0.3, 0.7])).eval()
    x = served.queries.live_runs["digits"].held[0][0][:3]
    with torch.no_grad():
        expected = network(x)
    for suffix, outputs in (("safetensors", None), ("pt2", run_pt2), ("onnx", run_onnx)):
        content, card = taken(view, suffix)
        assert card["alpha"] == pytest.approx([0.3, 0.7])
        if outputs is None:
            weights = load(content.read())
            for name, value in network.state_dict().items():
                assert torch.allclose(weights[name], value, atol=1e-6)
            continue
        for output, right in zip(outputs(content, x), expected, strict=True):
            assert torch.allclose(output, right, atol=1e-5)


def test_a_run_may_have_any_name(window, digits, tmp_path):
    strange = tmp_path / """a b#1?&"'<b>%2e..{x}\\é"""
    shutil.copytree(digits, strange)
    with serving([digits, strange]) as explorer:
        view = window(explorer.url)
        view.settled()
        view.page.locator("#run label").nth(1).click()
        view.page.wait_for_function("location.search.includes('run=a')")
        view.settled()
        again = window(view.page.text_content("#link"))
        again.settled()
        assert again.page.text_content("#notice") == ""
        source = again.page.locator("figure img").first.get_attribute("src")
        assert source.startswith("pictures/a%20b%231")
        again.page.wait_for_function("document.querySelector('figure img').naturalWidth > 8")
        assert shlex.quote(str(strange)) in again.page.text_content("#command")


def test_pictures_are_those_of_the_samples(served):
    live = served.queries.live_runs["digits"]
    for card, content in enumerate(one.picture for one in live.samples.inputs):
        answer = Asker(served).get(f"pictures/digits/{card}")
        assert answer.mimetype == "image/png"
        assert answer.data == content
