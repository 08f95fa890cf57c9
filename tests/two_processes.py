"""Steps of fine-tuning, in one process or as one of two: python two_processes.py FOLDER RANK."""

import sys
from pathlib import Path

import torch
from torch import distributed, nn
from torch.distributed import checkpoint
from torch.distributed.checkpoint.state_dict import (
    StateDictOptions,
    get_state_dict,
    set_state_dict,
)
from torch.distributed.fsdp import fully_shard
from torch.nn import functional as F
from torch.utils._python_dispatch import TorchDispatchMode

import lorpman as lp

STEPS = 4
ALPHAS = torch.tensor([[0.2, 0.8], [0.7, 0.3]])
# A checkpoint holds what is trained; the base is loaded from where it came from.
TRAINED = StateDictOptions(ignore_frozen_params=True, strict=False)


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.LayerNorm(12)
        self.up, self.down = nn.Linear(12, 20), nn.Linear(20, 12)

    def forward(self, x):
        return x + self.down(F.gelu(self.up(self.norm(x))))


class Words(nn.Module):
    """A small network as transformers are built, with one number for each of two tasks."""

    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(30, 12)
        self.blocks = nn.ModuleList([Block(), Block(), Block()])
        self.output = nn.Linear(12, 2)

    def forward(self, words):
        x = self.embedding(words)
        for block in self.blocks:
            x = block(x)
        return self.output(x).mean(1).unbind(1)


def make_front(**options):
    torch.manual_seed(0)
    return lp.LowRank(Words(), 2, rank=4, frozen=True, shared="blocks", **options)


def batch(share=slice(None)):
    """Words and the two numbers that the tasks would like to read from them."""
    words = torch.randint(30, (8, 5), generator=torch.Generator().manual_seed(1))
    x = words[share]
    return {"words": x}, [x.float().mean(1) / 10, -x.float().mean(1) / 10]


def tasks():
    options = {"maximise": False, "reference": 9.0}
    return [lp.Task(name, F.mse_loss, F.mse_loss, **options) for name in ("up", "down")]


class Trainer:
    """A loop of one's own around a front, wrapped in any way."""

    def __init__(self, model, run=None, share=slice(None)):
        self.model, self.run, self.share = model, run or model, share
        trained = [p for p in model.parameters() if p.requires_grad]
        self.optimizer = torch.optim.AdamW(trained, lr=1e-2)

    def step(self):
        """The loss before the step, of all processes together."""
        x, y = batch(self.share)
        outputs = self.run(x, ALPHAS)
        losses = [F.mse_loss(outputs[i][j], y[i]) for j in (0, 1) for i in (0, 1)]
        loss = (ALPHAS.flatten() * torch.stack(losses)).sum()
        loss.backward()
        self.optimizer.step()
        self.optimizer.zero_grad()
        shown = loss.detach().clone()
        if distributed.is_initialized():
            distributed.all_reduce(shown)
            shown /= distributed.get_world_size()
        return float(shown)

    def save(self, folder):
        weights, optimizer = get_state_dict(self.model, self.optimizer, options=TRAINED)
        checkpoint.save({"weights": weights, "optimizer": optimizer}, checkpoint_id=folder)

    def load(self, folder):
        weights, optimizer = get_state_dict(self.model, self.optimizer, options=TRAINED)
        state = {"weights": weights, "optimizer": optimizer}
        checkpoint.load(state, checkpoint_id=folder)
        set_state_dict(
            self.model,
            self.optimizer,
            model_state_dict=state["weights"],
            optim_state_dict=state["optimizer"],
            options=TRAINED,
        )


class Messages(TorchDispatchMode):
    """Notes what processes send each other: the kind of message, and how many numbers."""

    def __init__(self):
        super().__init__()
        self.seen = []

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        if function.namespace == "c10d":
            self.seen.append((function.__name__.partition(".")[0], _largest(args)))
        return function(*args, **(kwargs or {}))


def _largest(values):
    """The size of the largest tensor among nested arguments: the whole of what is gathered."""
    if isinstance(values, torch.Tensor):
        return values.numel()
    return max(map(_largest, values), default=0) if isinstance(values, list | tuple) else 0


def sharded(share, **options):
    model = make_front(**options)
    for block in model.network.blocks:
        fully_shard(block)
    fully_shard(model)
    return Trainer(model, share=share)


def main(folder, rank):
    torch.set_num_threads(1)
    distributed.init_process_group("gloo", f"file://{folder / 'meeting'}", rank=rank, world_size=2)
    share = slice(4 * rank, 4 * rank + 4)
    found = {"numbers": sum(p.numel() for p in make_front().deltas.parameters())}
    model = make_front()
    parallel = Trainer(model, nn.parallel.DistributedDataParallel(model), share)
    for name, trainer in {
        "ddp": parallel,
        "fsdp": sharded(share),
        "batched": sharded(share, batched=True),
    }.items():
        with Messages() as messages:
            losses = [trainer.step()]
        losses += [trainer.step()]
        trainer.save(folder / name)
        losses += [trainer.step() for _ in range(STEPS - 2)]
        found[name] = {"losses": losses, "messages": messages.seen}
    # Another process group would go on from here: with other weights, and then those of before.
    resumed = sharded(share)
    resumed.step()
    resumed.load(folder / "fsdp")
    found["resumed"] = [resumed.step() for _ in range(STEPS - 2)]
    found["fit"] = fit(share)
    if rank == 0:
        torch.save(found, folder / "found.pt")
    distributed.destroy_process_group()


def fit(share=slice(None)):
    """The losses of the epochs of lp.fit."""
    from lightning_fabric import Fabric

    fabric = None
    if distributed.is_initialized():
        fabric = Fabric(accelerator="cpu", devices=2, strategy="ddp")
        fabric.launch()
    history = lp.fit(
        make_front(),
        tasks(),
        [batch(share)] * 2,
        epochs=3,
        window=2,
        seed=0,
        fabric=fabric,
        own_preferences=False,
        progress=False,
    )
    return [list(epoch.losses.values()) for epoch in history]


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
