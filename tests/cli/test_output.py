"""How results are printed."""

from types import SimpleNamespace

import pytest
import torch

from lorpman.cli.output import hypervolume_text, order_text, progress_printer, trade_off_text, warn
from lorpman.front.control import NO_TRADE_OFF
from lorpman.front.front import Front
from lorpman.front.hypervolume import Hypervolume, hypervolume
from lorpman.preference import grid


def test_warnings_and_progress_go_to_standard_error(capsys):
    warn("careful")
    progress_printer(quiet=False)("epoch 1")
    captured = capsys.readouterr()
    assert (captured.out, captured.err) == ("", "lorpman: careful\nepoch 1\n")
    assert progress_printer(quiet=True) is None


@pytest.mark.parametrize(
    ("point", "shown"), [([0.5, 0.5], "0.2500"), ([0.0, 0.0], "0.0000"), ([0.01, 0.012], "0.00012")]
)
def test_a_small_hypervolume_does_not_look_like_zero(point, shown):
    assert hypervolume_text(hypervolume([point], 0.0)) == shown


def test_an_estimate_has_its_standard_error():
    assert hypervolume_text(Hypervolume(0.5, 0.0012, "monte carlo")) == "0.5000 ± 0.001"


def test_order_names_the_pairs_that_disobey():
    order = SimpleNamespace(correlation=0.987, violations=2, pairs=110)
    front = SimpleNamespace(order=lambda: order)
    expected = "0.99  (more weight scores worse in 2 of 110 pairs of preferences)"
    assert order_text(front) == expected


def test_a_front_without_trade_off_is_named_but_only_retraining_blames_the_tasks():
    alphas, level = grid(2), torch.ones(11, 2)
    flat = Front(alphas, level, ("a", "b"), (True, True), (0.0, 0.0), level)
    assert trade_off_text(flat, "retrain") == NO_TRADE_OFF
    said = trade_off_text(flat, "lorpman")
    assert said is not None
    assert "none on this front" in said
    assert said.endswith("--methods lorpman,retrain")
    real = Front(alphas, alphas.double(), ("a", "b"), (True, True), (0.0, 0.0), level)
    assert trade_off_text(real, "lorpman") is None
