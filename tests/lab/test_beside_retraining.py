"""Runs beside retrained networks: where they are compared, what is kept, and what is told."""

import json
from dataclasses import replace

import pytest
import torch

from lorpman import Front, grid
from lorpman.front.control import NO_TRADE_OFF, compete
from lorpman.lab.beside_retraining import CONTROL_FRONT, control_front, control_preferences
from lorpman.lab.compare import compare
from lorpman.lab.runs.directory import read_spec

QUICK = {"epochs": 1, "batch_size": 1000, "watch_samples": 0, "members": 3}


def _front(alphas):
    m = alphas.shape[1]
    names = tuple(map(str, range(m)))
    return Front(alphas, torch.ones(len(alphas), m), names, (True,) * m, (0.0,) * m)


@pytest.fixture(scope="module")
def done(tmp_path_factory):
    out = tmp_path_factory.mktemp("control")
    methods = ("lorpman", "retrain", "ls")
    table = compare("multidigits", methods, (0,), out, out, isolate=False, overrides=QUICK)
    return out, table


def test_a_front_is_measured_where_networks_were_retrained_and_on_the_grid():
    alphas = control_preferences(_front(grid(2, 5)))
    assert len(alphas) == 13  # 0, 0.5 and 1 are in both
    for part in (grid(2, 5), grid(2)):
        assert all((alphas - alpha).abs().amax(1).min() < 1e-6 for alpha in part)


def test_of_many_tasks_each_is_asked_for_alone():
    alphas = control_preferences(_front(grid(5, 6)))
    for task in range(5):
        assert (alphas[:, task] == 1).sum() == 1
        assert any(
            weights[task] == pytest.approx(0.3) and weights.min() == pytest.approx(0.7 / 4)
            for weights in alphas
        )


def test_the_table_tells_regret_reach_order_and_cost(done):
    out, table = done
    lorpman, retrain, single = table.rows
    retrained = Front.load(out / "retrain-0" / "front.json")
    front = Front.load(out / "lorpman-0" / CONTROL_FRONT)
    assert lorpman.controls == (front.control(retrained),)
    assert retrain.controls == single.controls == ()
    assert retrain.cost == pytest.approx(3.0)
    assert lorpman.cost == pytest.approx(3 * lorpman.seconds_per_epoch / retrain.seconds_per_epoch)
    head, _, first, second, *_ = table.markdown().splitlines()
    assert head.endswith("| regret | reach | order on losses | cost |")
    assert f"{lorpman.controls[0].regret:+.1%}" in first
    assert second.endswith("|  |  |  | 3.0 |")
    assert "better than retraining" in table.markdown()


def test_the_numbers_stand_in_the_files(done):
    out, table = done
    control = table.rows[0].controls[0]
    kept = json.loads((out / "lorpman-0" / "front.json").read_text())
    assert kept["control"]["regret"] == control.regret
    assert len(kept["alphas"]) == 11
    written = json.loads((out / "comparison.json").read_text())
    assert written["rows"][0]["controls"][0]["reach"] == control.reach
    assert written["compete"] == compete([Front.load(out / "retrain-0" / "front.json")])


def test_what_was_measured_is_not_measured_again(done, tmp_path):
    out, _ = done
    run = out / "lorpman-0"
    retrained = Front.load(out / "retrain-0" / "front.json")
    kept = (run / CONTROL_FRONT).stat().st_mtime_ns
    again = control_front(read_spec(run), run, retrained, tmp_path)
    assert (run / CONTROL_FRONT).stat().st_mtime_ns == kept
    assert again.alphas.tolist() == control_preferences(retrained).tolist()


def test_other_retrained_preferences_are_measured_anew(done, tmp_path):
    out, _ = done
    run = out / "lorpman-0"
    other = _front(grid(2, 5))
    assert len(control_front(read_spec(run), run, other, tmp_path)) == 13


def test_a_comparison_says_that_there_is_no_trade_off(done):
    _, table = done
    assert NO_TRADE_OFF in replace(table, compete=False).markdown()
    assert NO_TRADE_OFF not in replace(table, compete=True).markdown()
    assert NO_TRADE_OFF not in replace(table, compete=None).markdown()
