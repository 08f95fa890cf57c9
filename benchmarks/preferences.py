"""Compare two processes with the same preferences on both with a set of its own on each.

    python benchmarks/preferences.py --out results/multidigits/preferences

trains multidigits with two processes, either way, at two window sizes and several seeds, and
writes the test hypervolumes as Markdown. One thread per process: OMP_NUM_THREADS=1.
"""

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path


def hypervolume(kind: str, window: int, seed: int, epochs: int) -> float:
    """Of one run in a directory that is thrown away."""
    with tempfile.TemporaryDirectory() as folder:
        run = Path(folder) / "run"
        options = ["--epochs", str(epochs), "--seed", str(seed), "--set", f"window={window}"]
        options += ["--devices", "2", "--strategy", "ddp", "--preferences", kind, "--quiet"]
        options += ["--set", "watch_samples=0", "--out", str(run)]
        command = [sys.executable, "-m", "lorpman", "train", "multidigits", *options]
        subprocess.run(command, check=True, capture_output=True)
        return float(json.loads((run / "front.json").read_text())["hypervolume"]["value"])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--epochs", type=int, default=8)
    options = parser.parse_args()
    lines = [
        f"Test hypervolume of multidigits after {options.epochs} epochs with two processes, by "
        f"seed (0 to {options.seeds - 1}), and mean ± standard deviation.",
        "",
        "| window of each process | preferences | by seed | mean |",
        "|---|---|---|---|",
    ]
    options.out.parent.mkdir(parents=True, exist_ok=True)
    for window in (1, 4):
        for kind in ("same", "own"):
            found = [hypervolume(kind, window, s, options.epochs) for s in range(options.seeds)]
            each = ", ".join(f"{value:.4f}" for value in found)
            mean = f"{statistics.mean(found):.4f} ± {statistics.stdev(found):.4f}"
            lines.append(f"| {window} | {kind} | {each} | {mean} |")
            print(lines[-1], flush=True)
            # After every row: the whole takes a while.
            options.out.with_suffix(".md").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
