"""What a table needs, and whether it is here."""

import pytest

from lorpman import UsageError
from lorpman.lab.reproduce.data_requirements import (
    GENERATED,
    check_data,
    data_state,
    describe,
    is_generated,
    runs_folder,
)
from lorpman.lab.reproduce.registry import REPRODUCTIONS
from small_files import write_utkface


def test_the_state_of_data_is_missing_then_here_then_noise(tmp_path):
    assert data_state("toy", tmp_path) == "none needed"
    assert data_state("utkface", tmp_path) == "missing"
    with pytest.raises(UsageError, match="lorpman data utkface"):
        check_data("utkface", tmp_path)
    write_utkface(tmp_path, 3)
    check_data("utkface", tmp_path)
    assert "laptop: utkface (data here)" in describe(REPRODUCTIONS["utkface-table"], tmp_path)
    (tmp_path / "utkface" / GENERATED).write_text("noise")
    assert data_state("utkface", tmp_path) == "generated files"


def test_runs_on_noise_have_a_folder_of_their_own(tmp_path):
    data, runs = tmp_path / "data", tmp_path / "runs"
    write_utkface(data, 3)
    assert not is_generated(runs_folder(runs, "utkface", data))
    (data / "utkface" / GENERATED).write_text("noise")
    assert is_generated(runs_folder(runs, "utkface", data))
    # Without any data, what is there decides.
    (runs / "utkface-generated").mkdir(parents=True)
    assert is_generated(runs_folder(runs, "utkface", tmp_path))
    (runs / "utkface").mkdir()
    assert not is_generated(runs_folder(runs, "utkface", tmp_path))


def test_the_list_says_what_a_table_costs(tmp_path):
    assert "toy (data none needed); 3 seeds; about 2 min; 0.5 GiB" in describe(
        REPRODUCTIONS["toy-figure"], tmp_path
    )
    # Weights, gradients and two moments of 453.3 million parameters.
    assert "not measured); more than 6.8 GiB" in describe(REPRODUCTIONS["celeba-table"], tmp_path)
