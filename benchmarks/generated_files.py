"""Write noise in the layout of a dataset that cannot be shipped, to try its commands with.

    python benchmarks/generated_files.py utkface DIR
    lorpman reproduce utkface-table --data DIR

Problems: utkface, celeba, cityscapes. A file called GENERATED in the dataset's folder says what
it is, and every table made from it repeats that.
"""

import argparse
import sys
from collections.abc import Callable
from pathlib import Path

from lorpman.lab.reproduce.data_requirements import GENERATED

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))
from small_files import write_celeba, write_cityscapes, write_utkface

WRITERS: dict[str, Callable[[Path], Path]] = {
    "utkface": lambda root: write_utkface(root, 200),
    "celeba": lambda root: write_celeba(root, (96, 24, 24)),
    # 475 scenes are for validation, as in the protocol.
    "cityscapes": lambda root: write_cityscapes(root, 499, 16, 32, 64),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else None)
    parser.add_argument("problem", choices=WRITERS)
    parser.add_argument("root", type=Path)
    options = parser.parse_args()
    WRITERS[options.problem](options.root)
    marker = options.root / options.problem / GENERATED
    marker.write_text("Noise, written by benchmarks/generated_files.py.\n")
    print(f"{options.problem}: generated files in {marker.parent}")


if __name__ == "__main__":
    main()
