"""Write the measured parts of docs/performance.md from a run of the benchmark.

python benchmarks/write_performance_page.py results/bench docs/performance.md
"""

import argparse
from pathlib import Path

from lorpman._files import read_json, write_bytes
from lorpman.lab.bench.performance_page import fill_page
from lorpman.lab.bench.run_benchmark import RESULTS


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else None)
    parser.add_argument("run", type=Path)
    parser.add_argument("page", type=Path)
    options = parser.parse_args()
    described = read_json(options.run / RESULTS, "benchmark")
    write_bytes(options.page, fill_page(options.page.read_text(), described).encode())


if __name__ == "__main__":
    main()
