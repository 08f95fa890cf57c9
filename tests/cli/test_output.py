"""How results are printed."""

from types import SimpleNamespace

import pytest

from lorpman.cli.output import hypervolume_text, order_text, progress_printer, warn
from lorpman.front.hypervolume import Hypervolume, hypervolume


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
