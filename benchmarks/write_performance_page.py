"""Write the measured parts of docs/performance.md from a run of the benchmark.

python benchmarks/write_performance_page.py results/bench docs/performance.md
"""

import argparse
from pathlib import Path

from lorpman._files import Kind, near_start, read_json, write_bytes
from lorpman.lab.bench.performance_page import fill_page
from lorpman.lab.bench.run_benchmark import RESULTS


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else None)
    parser.add_argument("run", type=Path)
    parser.add_argument("page", type=Path)
    options = parser.parse_args()
    described = read_json(options.run / RESULTS, "benchmark")
    page = Kind("a page with marks", near_start(b"<!-- bench: ", within=1 << 20))
    write_bytes(options.page, fill_page(options.page.read_text(), described).encode(), page)


if __name__ == "__main__":
    main()
