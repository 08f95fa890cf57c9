"""How alike PaMaL's members are, as a picture."""

import numpy as np
import pytest

from lorpman import UsageError
from lorpman.lab.reproduce.similarity_figure import _half_width, plot_similarity, similarities
from lorpman.lab.runs.epoch_log import read_epoch_log
from lorpman.lab.runs.spec import Spec
from lorpman.lab.runs.train import train


def _notes(values):
    return [{"number": k, "similarity": row} for k, row in enumerate(values)]


def test_a_pamal_run_can_be_drawn(tmp_path):
    settings = {"epochs": 1, "batch_size": 200, "watch_samples": 0}
    train(Spec.make("multidigits", "pamal", 0, settings), tmp_path / "r", tmp_path, progress=False)
    notes = read_epoch_log(tmp_path / "r")
    epochs, layers = similarities([notes])
    assert epochs == [0, 1]
    assert list(layers) == ["bottom.0", "bottom.3", "bottom.6", "heads.0", "heads.1"]
    # Independent at the start, more alike after training.
    start, end = layers["bottom.3"][0]
    assert abs(start) < 0.15
    assert end > start + 0.02
    plot_similarity([notes], tmp_path / "similarity.png")
    assert (tmp_path / "similarity.png").stat().st_size > 10_000


def test_several_seeds_give_means_and_bands(tmp_path):
    runs = [_notes([{"x": 0.0}, {"x": 0.2}, {"x": 0.5}]), _notes([{"x": 0.1}, {"x": 0.4}])]
    epochs, layers = similarities(runs)
    assert epochs == [0, 1]
    assert layers["x"].tolist() == [[0.0, 0.2], [0.1, 0.4]]
    # Two values: half their distance times t = 12.706.
    assert _half_width(layers["x"]).tolist() == pytest.approx([0.05 * 12.706, 0.1 * 12.706], 1e-3)
    assert _half_width(np.zeros((1, 2))).tolist() == [0, 0]
    plot_similarity(runs, tmp_path / "similarity.svg")


def test_other_runs_are_refused():
    with pytest.raises(UsageError, match="noted no similarity"):
        similarities([[{"number": 1}]])
    with pytest.raises(UsageError, match="at least one run"):
        similarities([])
    with pytest.raises(UsageError, match="of one network"):
        similarities([_notes([{"x": 0.0}]), _notes([{"y": 0.0}])])
