"""``make mutants``: a seeded sample of mutmut's mutants, and whether the tests kill nine of ten.

mutmut has no sampling of its own: the names of all mutants are drawn from here, and given to it.
What it mutates and which tests it runs stands in ``pyproject.toml``. A survivor is shown by
``.venv/bin/mutmut show NAME``.
"""

import argparse
import os
import random
import shutil
import subprocess
import sys
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

from mutmut.configuration import config
from mutmut.mutation.data import SourceFileMutationData
from mutmut.mutation.file_mutation import mutate_file_contents
from mutmut.stats import status_by_exit_code
from mutmut.utils.format_utils import get_mutant_name

KILLED = ("killed", "timeout", "segfault")
LEAST = 0.9


def _mutants(path):
    """The names of all mutants of a source file, as ``mutmut run`` takes them."""
    mutated = mutate_file_contents(str(path), path.read_text())
    return [get_mutant_name(path, name) for name in mutated.mutant_names]


def _files():
    """The source files that the configuration lets mutmut change."""
    return [path for path in sorted(Path("src").rglob("*.py")) if config().should_mutate(path)]


def _draw(number, seed):
    """The same mutants for the same source, seed and version of mutmut."""
    with ProcessPoolExecutor(2) as pool:
        names = [name for of_a_file in pool.map(_mutants, _files()) for name in of_a_file]
    print(f"{number} of {len(names)} mutants, seed {seed}", flush=True)
    return random.Random(seed).sample(names, number)


def _outcomes(names):
    """What became of each mutant, from the files that mutmut keeps."""
    outcomes = {}
    for path in _files():
        data = SourceFileMutationData(path=path)
        data.load()
        codes = data.exit_code_by_key
        outcomes |= {name: status_by_exit_code[codes[name]] for name in codes if name in names}
    return outcomes


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--number", type=int, default=300)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--workers", type=int, default=2)
    options = parser.parse_args()
    shutil.rmtree("mutants", ignore_errors=True)
    names = set(_draw(options.number, options.seed))
    command = [Path(sys.executable).with_name("mutmut"), "run"]
    command += ["--max-children", str(options.workers), *sorted(names)]
    subprocess.run(command, check=True, env={**os.environ, "OMP_NUM_THREADS": "1"})
    outcomes = _outcomes(names)
    for name, outcome in sorted(outcomes.items()):
        if outcome not in KILLED:
            print(f"{outcome:10} {name}")
    killed = sum(outcome in KILLED for outcome in outcomes.values())
    print(f"killed {killed} of {len(names)}: {dict(Counter(outcomes.values()))}")
    return 0 if killed >= LEAST * len(names) else 1


if __name__ == "__main__":
    sys.exit(main())
