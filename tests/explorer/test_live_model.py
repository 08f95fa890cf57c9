"""A model that no run directory holds."""

import io
import subprocess
import sys
import urllib.request
import zipfile

import pytest
import torch
from torch.utils.data import DataLoader, TensorDataset

import lorpman as lp
from asking import Asker
from lorpman.errors import UsageError
from lorpman.explorer.live_model import open_model
from lorpman.explorer.live_run import LiveRun
from lorpman.explorer.server import serve_runs


def _own(n=60):
    torch.manual_seed(0)
    network = lp.SharedBottom(torch.nn.Linear(4, 8), [torch.nn.Linear(8, 3), torch.nn.Linear(8, 2)])
    entropy = torch.nn.functional.cross_entropy
    tasks = [
        lp.Task("colour", entropy, lp.accuracy, classes=["red", "green", "blue"]),
        lp.Task("size", entropy, lp.accuracy, classes=["small", "large"]),
    ]
    x = torch.randn(n, 4)
    y = [(x[:, :3].argmax(1)), (x.sum(1) > 0).long()]
    model = lp.LowRank(network, num_tasks=2, rank=2)
    batches = [(x, y)]
    lp.fit(model, tasks, batches, epochs=40, progress=False)
    return model, tasks, x, y


@pytest.fixture(scope="module")
def own():
    return _own()


def test_every_form_of_data_gives_the_same_page(own):
    model, tasks, x, y = own
    pairs = TensorDataset(x, torch.stack(y, 1))
    named = (x, {"colour": y[0], "size": y[1]})
    for form in ((x, y), named, pairs, DataLoader(pairs, batch_size=7), lp.Splits(*[pairs] * 3)):
        run = open_model(model, tasks, form)
        live = LiveRun(run, 50)
        assert live.held_samples == 50
        # A loader's batches stay as they are.
        inputs, targets = zip(*live.held, strict=True)
        assert torch.equal(torch.cat(inputs), x[:50])
        parts = [torch.cat(part) for part in zip(*targets, strict=True)]
        assert all(torch.equal(a, b[:50]) for a, b in zip(parts, y, strict=True))


def test_tasks_that_do_not_fit_are_refused(own):
    with pytest.raises(UsageError, match="1 tasks were given"):
        open_model(own[0], own[1][:1], own[2:])


def test_a_model_is_scored_shown_searched_and_taken_away(own):
    model, tasks, x, y = own
    run = open_model(model, tasks, (x, y), name="mine")
    assert run.mode == "any"
    expected = lp.evaluate(model, tasks, [(x, y)])
    assert torch.allclose(run.front.scores, expected.scores)
    explorer = serve_runs([run], port=0)
    try:
        asker = Asker(explorer)
        assert asker.ask("mine", [1.0, 0.0]) == pytest.approx(run.front.scores[-1].tolist())
        archive = asker.get("export?run=mine&alpha=0.5,0.5&format=safetensors")
        names = zipfile.ZipFile(io.BytesIO(archive.data)).namelist()
        assert "model.safetensors" in names
        page = asker.get("_dash-layout").text
        assert "given samples" in page
        assert "test samples" not in page
    finally:
        explorer.close()


def test_the_page_of_a_model_works_in_a_browser(own, window):
    model, tasks, x, y = own
    show = lambda row: {"red": row[0], "green": row[1], "blue": row[2]}  # noqa: E731
    explorer = serve_runs([open_model(model, tasks, (x, y), name="mine", show=show)], port=0)
    explorer.start()
    try:
        view = window(explorer.url + "?alpha=1,0")
        view.settled()
        cards = view.page.locator("figure").all_text_contents()
        assert all("green" in card for card in cards)
        assert "lp.export(model, [1,0]" in view.page.text_content("#command")
        assert "Against equal weights" in view.page.text_content("#scores")
    finally:
        explorer.close()


def test_one_network_for_all_preferences_says_so():
    model = lp.Single(torch.nn.Sequential(torch.nn.Linear(4, 2)), 2)
    tasks = [lp.Task(n, torch.nn.functional.mse_loss, torch.nn.functional.mse_loss,
                     maximise=False, reference=9.0) for n in "ab"]  # fmt: skip
    data = (torch.randn(5, 4), torch.randn(5, 2))
    run = open_model(model, tasks, data)
    assert (run.mode, run.origin.kind) == ("members", "single")


def test_a_model_opens_and_its_page_answers(capsys):
    model, tasks, *data = _own(20)
    explorer = lp.explore(model, tasks=tasks, data=tuple(data), block=False)
    try:
        with urllib.request.urlopen(explorer.url) as answer:
            headers, page = answer.headers, answer.read()
    finally:
        explorer.close()
    assert b"lorpman" in page
    assert headers["X-Frame-Options"] == "DENY"
    told = capsys.readouterr().err.splitlines()
    assert told[0] == "scoring the model"
    assert told[-1] == "drawing the page"


def test_a_run_opens_by_its_directory(digits, capsys):
    explorer = lp.explore(digits, block=False)
    explorer.close()
    told = capsys.readouterr().err.splitlines()
    assert told[:2] == ["digits: reading its weights", "multidigits: loading its data"]


@pytest.mark.parametrize(
    ("runs", "message"),
    [
        ((), "needs a run, a run directory or a manifold"),
        ("model", "needs tasks="),
        ("two", "one model at a time"),
    ],
)
def test_what_cannot_be_opened_is_refused(runs, message):
    model, tasks, *data = _own(20)
    given = {"model": (model,), "two": (model, model)}.get(runs, runs)
    options = {"tasks": tasks, "data": tuple(data)} if runs == "two" else {}
    with pytest.raises(UsageError, match=message):
        lp.explore(*given, **options)


def test_a_notebook_shows_the_page_in_a_frame():
    """With the class of shell that kernels have; what it displays is caught."""
    pytest.importorskip("IPython")
    script = """
import torch, urllib.request
from IPython.core.interactiveshell import InteractiveShell
from IPython.utils.capture import capture_output

class ZMQInteractiveShell(InteractiveShell):
    pass

shell = ZMQInteractiveShell.instance()
import lorpman as lp
loss = torch.nn.functional.mse_loss
tasks = [lp.Task(n, loss, loss, maximise=False, reference=9.0) for n in "ab"]
model = lp.LowRank(torch.nn.Sequential(torch.nn.Linear(4, 2)), 2, rank=1)
with capture_output() as shown:
    explorer = lp.explore(model, tasks=tasks, data=(torch.randn(9, 4), torch.randn(9, 2)))
assert f'src="{explorer.url}"' in " ".join(o.data["text/html"] for o in shown.outputs)
with urllib.request.urlopen(explorer.url) as answer:
    assert "X-Frame-Options" not in answer.headers
    policy = answer.headers["Content-Security-Policy"]
assert "frame-ancestors http://localhost:*" in policy, policy
explorer.close()
"""
    ended = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert ended.returncode == 0, ended.stderr
