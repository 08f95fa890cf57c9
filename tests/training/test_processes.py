"""Several processes that train one model: they end with the same weights as one."""

import subprocess
import sys
from types import SimpleNamespace

import pytest
import torch
from torch import nn

from lorpman.training.processes import agree, average_gradients, from_every_process


class TwoProcesses:
    """Fabric as the first of two processes sees it; ``other`` is what the second one has."""

    world_size, device = 2, torch.device("cpu")

    def __init__(self, other):
        self.other, self.messages = other, []
        self.strategy = SimpleNamespace(all_reduce=self._all_reduce)

    def _all_reduce(self, value, reduce_op):
        self.messages.append((value.clone(), reduce_op))
        both = torch.stack([value, self.other])
        return both.mean(0) if reduce_op == "mean" else both.max(0).values


ALONE = SimpleNamespace(world_size=1)


def test_one_process_agrees_with_itself():
    value = torch.tensor([1.0, 2.0])
    assert agree(ALONE, value) is value
    assert from_every_process(ALONE, value) == [value]


def test_two_processes_agree_on_the_mean_or_on_the_maximum():
    fabric = TwoProcesses(torch.tensor([3.0, 0.0]))
    assert agree(fabric, torch.tensor([1.0, 2.0])).tolist() == [2.0, 1.0]
    assert agree(fabric, torch.tensor([1.0, 2.0]), "max").tolist() == [3.0, 2.0]


def test_what_every_process_has_is_gathered_in_order(monkeypatch):
    def gather(into, value):
        into[:] = [value, "theirs"]

    monkeypatch.setattr(torch.distributed, "all_gather_object", gather)
    assert from_every_process(TwoProcesses(None), "ours") == ["ours", "theirs"]


def test_gradients_become_their_mean_in_one_message():
    layer, still = nn.Linear(3, 2), nn.Parameter(torch.ones(4))
    layer.weight.grad = torch.arange(6.0).view(2, 3)
    layer.bias.grad = torch.tensor([6.0, 7.0])
    kept = layer.weight.grad
    fabric = TwoProcesses(torch.zeros(8))
    average_gradients(fabric, [still, *layer.parameters()])
    assert len(fabric.messages) == 1
    assert fabric.messages[0][0].tolist() == [0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0]
    assert layer.weight.grad is kept
    assert torch.equal(layer.weight.grad, torch.arange(6.0).view(2, 3) / 2)
    assert layer.bias.grad.tolist() == [3.0, 3.5]
    assert still.grad is None


def test_without_gradients_there_is_no_message():
    fabric = TwoProcesses(None)
    average_gradients(fabric, [nn.Parameter(torch.ones(4))])
    assert fabric.messages == []


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


@pytest.mark.parametrize(("rule", "rank"), [("by hand", "1"), ("linear", "auto")])
@pytest.mark.slow
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
