"""Write docs/results.md, and the tables and pictures of results/reproduce, from the JSONs there.

    python benchmarks/write_results_page.py

Nothing is trained. What people have to say about a table is in results/reproduce/remarks.md.
"""

from pathlib import Path

from lorpman.lab.reproduce.registry import REPRODUCTIONS
from lorpman.lab.reproduce.results_page import read_outcome, results_page
from lorpman.lab.reproduce.train_and_measure import write

ROOT = Path(__file__).parent.parent
RESULTS = ROOT / "results"
PAGE = ROOT / "docs" / "results.md"


def main() -> None:
    for name in REPRODUCTIONS:
        outcome = read_outcome(name, RESULTS)
        if outcome is not None:
            print(write(outcome, RESULTS / "reproduce")[0])
    PAGE.write_text(results_page(RESULTS))
    print(PAGE)


if __name__ == "__main__":
    main()
