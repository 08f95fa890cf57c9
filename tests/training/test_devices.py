"""Several processes on one machine, over gloo."""

import json
import os
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest
import torch

import lorpman as lp
from command_line import command, notes, settings
from lorpman.errors import ProcessLost
from lorpman.lab.datasets.process_shares import shared_batches
from lorpman.lab.datasets.splits import Arrays
from lorpman.rules import IMTL, MGDA, AutoLambda, FeatureMGDA
from lorpman.training import checkpoint
from lorpman.training.devices import Engine

SETTINGS = ("watch_samples=50", "freeze_epoch=1", "batch_size=512", "lambda_p=0")
OPTIONS = ["--epochs", "3", *settings(*SETTINGS)]
TWO = ["--devices", "2", "--strategy", "ddp"]


def _command(out, *more):
    return command("train", "multidigits", "--out", out, *OPTIONS, *more)


def _assert_same_curve(left, right, tolerance=1e-5):
    for ours, theirs in zip(notes(left), notes(right), strict=True):
        assert ours["frozen"] == theirs["frozen"]
        for task, loss in ours["losses"].items():
            assert loss == pytest.approx(theirs["losses"][task], rel=tolerance)


@pytest.fixture(scope="module")
def alone(tmp_path_factory):
    out = tmp_path_factory.mktemp("alone") / "run"
    subprocess.run(_command(out, "--quiet"), check=True, capture_output=True)
    return out


@pytest.mark.slow
def test_two_processes_give_the_loss_curve_of_one(tmp_path, alone):
    out = tmp_path / "run"
    done = subprocess.run(
        _command(out, "--quiet", *TWO, "--preferences", "same"), capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("test hypervolume") == 1  # only the first process speaks and writes
    assert [note["frozen"] for note in notes(out)] == [False, True, True]
    _assert_same_curve(out, alone)
    described = json.loads((out / "run.json").read_text())
    assert described["engine"]["devices"] == 2
    refused = subprocess.run(_command(out, "--resume"), capture_output=True, text=True)
    assert refused.returncode == 2
    assert "was trained with other devices or precision" in refused.stderr


@pytest.mark.soak
def test_the_same_under_torchrun(tmp_path, alone):
    out = tmp_path / "run"
    launcher = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2"]
    started = _command(out, "--quiet", "--preferences", "same")[1:]
    done = subprocess.run(
        [*launcher, "--master-port", "29617", *started], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    _assert_same_curve(out, alone)


def _children(pid):
    """Processes whose parent is ``pid``, from /proc."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):  # it may be gone by now
            fields = (entry / "stat").read_text().rpartition(")")[2].split()
            if int(fields[1]) == pid:
                found.append(int(entry.name))
    return found


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self").is_dir(), reason="finds processes in /proc")
@pytest.mark.parametrize("first_dies", [False, pytest.param(True, marks=pytest.mark.soak)])
def test_one_process_dying_ends_the_run_with_a_message(tmp_path, first_dies):
    out = tmp_path / "run"
    started = _command(out, *TWO, "--epochs", 200)
    with subprocess.Popen(started, stderr=subprocess.PIPE, text=True) as process:
        for _ in range(2):  # when the second epoch ends, the first one is saved
            assert process.stderr.readline().startswith("epoch ")
        (child,) = _children(process.pid)
        os.kill(process.pid if first_dies else child, signal.SIGKILL)
        rest = process.stderr.read()  # ends when both processes have
    assert process.returncode == (-signal.SIGKILL if first_dies else ProcessLost.code)
    (said,) = [line for line in rest.splitlines() if not line.startswith("epoch ")]
    assert said.startswith("lorpman: ")
    assert said.endswith("this run is ended, continue it with --resume")
    checkpoint.load(out / "checkpoint.safetensors")


LOSING = """
import os, sys, time
from lorpman.training.devices import Engine
from lorpman.training.lost_processes import one_line_for_lost_processes as together
fabric = Engine(devices=2).start([])
with together(fabric):
    if fabric.global_rank == 1:
        os._exit(3)
    if sys.argv[1] == "waits":
        time.sleep(200)  # as in a message that never comes
    raise SystemExit(7)
"""


@pytest.mark.slow
def test_a_death_is_noticed_without_a_message(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(LOSING)
    for how, code in (("waits", ProcessLost.code), ("ends", 7)):
        done = subprocess.run([sys.executable, script, how], capture_output=True, text=True)
        assert done.returncode == code, done.stderr
        lines = [line for line in done.stderr.splitlines() if line.startswith("lorpman: ")]
        assert len(lines) == (how == "waits"), done.stderr


@pytest.mark.slow
def test_nobody_waits_for_a_first_process_that_died_before_they_met(tmp_path):
    script = tmp_path / "script.py"
    script.write_text("from lorpman.training.devices import Engine\nEngine(devices=2).start([])\n")
    place = {"LOCAL_RANK": "1", "NODE_RANK": "0", "WORLD_SIZE": "2"}
    place |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "29618"}  # where nobody answers
    first = {"LORPMAN_FIRST_PROCESS": "1"}  # not the parent: that is this test
    done = subprocess.run(
        [sys.executable, script],
        env={**os.environ, **place, **first},
        capture_output=True,
        text=True,
    )
    assert done.returncode == ProcessLost.code, done.stderr
    assert "lorpman: a process of this run has died" in done.stderr


@pytest.mark.soak
def test_two_processes_resume_bit_by_bit(tmp_path):
    whole, cut = tmp_path / "whole", tmp_path / "cut"
    subprocess.run(_command(whole, "--quiet", *TWO), check=True, capture_output=True)
    started = _command(cut, *TWO)
    with subprocess.Popen(started, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr.readline().startswith("epoch 1/3")
        process.send_signal(signal.SIGTERM)  # to the first process alone
        rest = process.stderr.read()
    assert process.returncode == 143
    assert rest.count("stopped by signal 15") == 1
    assert "has died" not in rest
    subprocess.run([*started, "--resume", "--quiet"], check=True, capture_output=True)
    for name in ("checkpoint.safetensors", "front.json"):
        assert (cut / name).read_bytes() == (whole / name).read_bytes()


SCRIPT = """
import sys
import torch
from lightning_fabric import Fabric
import lorpman as lp
from lorpman.lab.datasets.splits import Arrays
from lorpman.lab.datasets.process_shares import shared_batches

class ByHand(lp.Rule):
    '''Sets gradients without a backward pass that the wrapper could see.'''
    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(2))
    def backward(self, step):
        loss = (step.alphas * step.losses * self.weight).sum()
        parameters = [p for p in (*step.model.parameters(), *self.parameters()) if p.requires_grad]
        for p, g in zip(parameters, torch.autograd.grad(loss, parameters)):
            p.grad = g

torch.manual_seed(0)
devices, rule = int(sys.argv[1]), {"by hand": ByHand, "linear": lp.Linear}[sys.argv[3]]()
fabric = Fabric(accelerator="cpu", devices=devices, strategy="ddp" if devices > 1 else "auto")
fabric.launch()
x = torch.randn(64, 4)
data = Arrays(x, [x[:, :1] * 2, -x[:, :1]])
net = lp.SharedBottom(torch.nn.Linear(4, 3), [torch.nn.Linear(3, 1), torch.nn.Linear(3, 1)])
options = {"rank": "auto", "budget": 14} if sys.argv[4] == "auto" else {"rank": 1}
model = lp.LowRank(net, 2, **options)
loss = torch.nn.functional.mse_loss
tasks = [lp.Task(n, loss, loss, False, 10.0) for n in ("a", "b")]
order = torch.Generator().manual_seed(1)
loader = shared_batches(data, 16, order, fabric.global_rank, fabric.world_size)
options = dict(objective=rule, seed=0, fabric=fabric, progress=False, freeze_epoch=1)
lp.fit(model, tasks, loader, epochs=3, **options)
values = torch.cat([p.detach().flatten() for p in (*model.parameters(), *rule.parameters())])
torch.save(values, f"{sys.argv[2]}/{sys.argv[1]}-{fabric.global_rank}.pt")
"""


@pytest.mark.slow
@pytest.mark.parametrize(("rule", "rank"), [("by hand", "1"), ("linear", "auto")])
def test_processes_agree_on_gradients_that_a_rule_sets_by_hand_and_on_ranks(tmp_path, rule, rank):
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    for devices in ("1", "2"):
        done = subprocess.run(
            [sys.executable, script, devices, tmp_path, rule, rank], capture_output=True, text=True
        )
        assert done.returncode == 0, done.stderr
    one, first, second = (torch.load(tmp_path / f"{n}.pt") for n in ("1-0", "2-0", "2-1"))
    assert torch.equal(first, second)
    torch.testing.assert_close(first, one, atol=1e-5, rtol=1e-4)


def test_shares_make_up_the_batches_of_one_process():
    data = Arrays(torch.arange(22), [torch.arange(22)])

    def run(rank, world):
        generator = torch.Generator().manual_seed(0)
        loader = shared_batches(data, 8, generator, rank, world)
        return [[set(x.tolist()) for x, _ in loader] for _ in range(2)]

    for whole, left, right in zip(run(0, 1), run(0, 2), run(1, 2), strict=True):
        for batch, ours, theirs in zip(whole, left, right, strict=True):
            assert len(ours) == len(theirs)
            assert ours | theirs == batch
            assert not ours & theirs


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"strategy": "fsdp"}, "strategy fsdp cannot be used: it cuts weights into pieces"),
        ({"strategy": "deepspeed_stage_2"}, "cannot be used"),
        ({"strategy": "dpp"}, "unknown strategy 'dpp'; did you mean 'ddp'?"),
        ({"precision": "8"}, "unknown precision '8'"),
        ({"devices": 0}, "devices must be at least 1, got 0"),
    ],
)
def test_what_cannot_be_run_is_refused(options, message):
    with pytest.raises(lp.UsageError, match=message.replace("?", r"\?")):
        Engine(**options)


def test_a_batch_that_cannot_be_shared_is_refused():
    with pytest.raises(lp.UsageError, match="set it to a multiple of 3"):
        Engine(devices=3).check_batch(128)


def _fit_small(model, objective, precision, epochs=4, fabric=None):
    """The history of a small regression with two tasks."""
    x = torch.randn(16, 4, dtype=torch.float64 if precision == "64-true" else torch.float32)
    tasks = [lp.Task(n, torch.nn.functional.mse_loss, lambda o, t: o.mean()) for n in "ab"]
    loader = [(x, [x[:, :1], x[:, 1:2]])] * 3
    fabric = fabric or Engine(precision=precision).start([])
    options = {"objective": objective, "fabric": fabric, "progress": False, "seed": 0}
    return lp.fit(model, tasks, loader, epochs=epochs, **options)


def _small_network():
    return lp.SharedBottom(torch.nn.Linear(4, 3), [torch.nn.Linear(3, 1), torch.nn.Linear(3, 1)])


@pytest.mark.parametrize("precision", ["bf16-mixed", "64-true"])
@pytest.mark.parametrize("rule", [None, MGDA, FeatureMGDA, AutoLambda, IMTL])
def test_precision(precision, rule):
    """Also with rules that take gradients themselves."""
    model = lp.LowRank(_small_network(), 2) if rule is None else lp.Single(_small_network(), 2)
    seen = []
    model.register_forward_hook(lambda module, args, output: seen.append(output))
    history = _fit_small(model, None if rule is None else rule(), precision)
    assert history[-1].losses["a"] < history[0].losses["a"]
    dtype = torch.float64 if precision == "64-true" else torch.bfloat16
    assert {part.dtype for output in seen for part in output} == {dtype}


def test_rules_that_take_gradients_refuse_scaled_losses(monkeypatch):
    """As in half precision, which no CPU has: a scaler on Fabric's own plugin stands for it."""
    fabric = Engine(precision="bf16-mixed").start([])
    monkeypatch.setattr(fabric.strategy.precision, "scaler", torch.amp.GradScaler("cpu"))
    with pytest.raises(lp.UsageError, match="MGDA takes gradients itself"):
        _fit_small(lp.Single(_small_network(), 2), MGDA(), "16-mixed", fabric=fabric)
