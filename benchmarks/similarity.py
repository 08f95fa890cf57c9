"""Draw the paper's figure of PaMaL's members from the runs of a comparison.

python benchmarks/similarity.py results/multimnist/similarity.png results/multimnist/pamal-*
"""

import argparse
from pathlib import Path

from lorpman.plot_similarity import plot_similarity

if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("to", type=Path)
    parser.add_argument("runs", type=Path, nargs="+")
    options = parser.parse_args()
    plot_similarity(options.runs, options.to)
