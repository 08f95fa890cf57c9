"""The ablations vary one setting each, over the values that the paper prints."""

import pytest

from lorpman.lab.problems.registry import get_problem
from lorpman.lab.reproduce.ablations import FREEZE, ORTHOGONALITY, RANK, SCALE

ABLATIONS = {"lambda_o": ORTHOGONALITY, "rank": RANK, "freeze_epoch": FREEZE, "scale": SCALE}


@pytest.mark.parametrize("setting", ABLATIONS)
def test_every_line_changes_nothing_but_the_setting_it_is_about(setting):
    for line in ABLATIONS[setting]:
        for changes in (line.paper, line.laptop):
            assert set(changes or {}) <= {setting}, line.label


@pytest.mark.parametrize("setting", ABLATIONS)
def test_the_best_line_of_the_paper_is_its_default(setting):
    volumes = {
        line.label: line.reported["hypervolume"].mean
        for line in ABLATIONS[setting]
        if "hypervolume" in line.reported
    }
    (best,) = [line for line in ABLATIONS[setting] if volumes.get(line.label) == 0.314]
    assert max(volumes.values()) == 0.314
    preset = get_problem("utkface").preset()
    settings = preset.settings_for("lorpman")
    assert {**settings, **best.paper}[setting] == settings[setting]


def test_ranks_beyond_the_small_networks_matrices_are_not_run_on_a_laptop():
    ranks = {line.label: (line.paper, line.laptop) for line in RANK}
    assert ranks["rank 2"] == (None, {"rank": 2})
    assert ranks["rank 8"] == ({"rank": 8}, {"rank": 8})
    assert ranks["rank 16"] == ({"rank": 16}, None)


def test_more_rank_takes_more_parameters():
    counts = [line.parameters for line in RANK if line.parameters is not None]
    assert counts == sorted(set(counts))
    assert len(counts) == 6


def test_freezing_comes_after_the_same_share_of_training_at_both_scales():
    epochs = get_problem("utkface").preset().settings_for("lorpman")["epochs"]
    laptop = get_problem("multidigits").preset().settings_for("lorpman")["epochs"]
    for line in FREEZE:
        assert line.paper["freeze_epoch"] / epochs == line.laptop["freeze_epoch"] / laptop


def test_only_the_orthogonality_ablation_reports_a_correlation_and_it_falls():
    without, with_it = ORTHOGONALITY
    assert with_it.reported["correlation"].mean < without.reported["correlation"].mean
    for line in (*RANK, *FREEZE, *SCALE):
        assert "correlation" not in line.reported
