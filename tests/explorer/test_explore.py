"""The explorer from Python."""

import subprocess
import sys
import urllib.request

import pytest
import torch

import lorpman as lp
from lorpman.errors import UsageError
from lorpman.explorer.explore import explore, in_notebook


def _model():
    network = lp.SharedBottom(torch.nn.Linear(4, 8), [torch.nn.Linear(8, 2), torch.nn.Linear(8, 2)])
    entropy = torch.nn.functional.cross_entropy
    tasks = [lp.Task(name, entropy, lp.accuracy) for name in ("a", "b")]
    data = (torch.randn(20, 4), [torch.randint(2, (20,)) for _ in tasks])
    return lp.LowRank(network, num_tasks=2, rank=1), tasks, data


def test_a_model_opens_and_its_page_answers(capsys):
    model, tasks, data = _model()
    explorer = explore(model, tasks=tasks, data=data, wait=False)
    try:
        with urllib.request.urlopen(explorer.url) as answer:
            headers, page = answer.headers, answer.read()
    finally:
        explorer.close()
    assert b"lorpman" in page
    assert headers["X-Frame-Options"] == "DENY"
    told = capsys.readouterr().err.splitlines()
    assert told[0] == "scoring the model"
    assert told[-1] == f"page: {explorer.url}"


def test_a_run_opens_by_its_directory(digits, capsys):
    explorer = explore(digits, wait=False)
    explorer.close()
    told = capsys.readouterr().err.splitlines()
    assert told[:2] == ["digits: reading its weights", "multidigits: loading its data"]


@pytest.mark.parametrize(
    ("runs", "message"),
    [((), "needs a run, or a model"), ("model", "needs tasks="), ("two", "one model at a time")],
)
def test_what_cannot_be_opened_is_refused(runs, message):
    model = _model()[0]
    given = {"model": (model,), "two": (model, model)}.get(runs, runs)
    with pytest.raises(UsageError, match=message):
        explore(*given)


def test_here_is_no_notebook():
    assert not in_notebook()


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
from lorpman.explorer.explore import explore
loss = torch.nn.functional.mse_loss
tasks = [lp.Task(n, loss, loss, maximise=False, reference=9.0) for n in "ab"]
model = lp.LowRank(torch.nn.Sequential(torch.nn.Linear(4, 2)), 2, rank=1)
with capture_output() as shown:
    explorer = explore(model, tasks=tasks, data=(torch.randn(9, 4), torch.randn(9, 2)))
assert f'src="{explorer.url}"' in shown.outputs[0].data["text/html"], shown.outputs
with urllib.request.urlopen(explorer.url) as answer:
    assert "X-Frame-Options" not in answer.headers
    policy = answer.headers["Content-Security-Policy"]
assert "frame-ancestors http://localhost:*" in policy, policy
explorer.close()
"""
    ended = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert ended.returncode == 0, ended.stderr
