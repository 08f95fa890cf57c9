"""Tables that several tests read: made once."""

from dataclasses import replace

import pytest

from lorpman.lab.reproduce.data_requirements import GENERATED
from lorpman.lab.reproduce.registry import REPRODUCTIONS
from lorpman.lab.reproduce.train_and_measure import reproduce, write
from small_files import write_cityscapes
from small_reproduction import make_small


@pytest.fixture(scope="session")
def made(tmp_path_factory):
    """The folder with ``runs`` and ``out``, and the outcome."""
    folder = tmp_path_factory.mktemp("reproduce")
    outcome = make_small(folder / "runs")
    write(outcome, folder / "out")
    return folder, outcome


@pytest.fixture(scope="session")
def noise(tmp_path_factory):
    """Generated files and one cheap table from them."""
    root = tmp_path_factory.mktemp("noise")
    write_cityscapes(root, 6, 2, 32, 64)
    (root / "cityscapes" / GENERATED).write_text("noise")
    table = REPRODUCTIONS["cityscapes-table"]
    settings = {"validation_scenes": 2, "width": 1}
    kept = [line for line in table.lines if line.method in ("stl", "lorpman")]
    row = replace(table, lines=tuple(replace(line, laptop=settings) for line in kept))
    return root, reproduce(row, "laptop", root / "runs", root, isolate=False)
