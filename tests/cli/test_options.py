"""How the texts in options are read."""

import pytest
import torch

from lorpman.cli.options import read_alpha, read_names, read_overrides, read_scores, read_seeds
from lorpman.errors import UsageError


def test_epochs_are_given_once():
    assert read_overrides(["rank=4"], epochs=2) == {"epochs": 2, "rank": 4}
    assert read_overrides(["epochs=2"], epochs=2) == {"epochs": 2}
    assert read_overrides(None) == {}
    with pytest.raises(UsageError, match="given twice, found --epochs 2 and --set epochs=5"):
        read_overrides(["epochs=5", "rank=4"], epochs=2)


@pytest.mark.parametrize("text", ["-1", "x", str(2**63), "9" * 5000, "1,,2", "1.0"])
def test_a_seed_that_no_generator_takes_is_refused(text):
    with pytest.raises(UsageError, match="--seeds expects"):
        read_seeds(text)


def test_a_preference_has_one_weight_per_task():
    assert torch.equal(read_alpha("0.25, 0.75", 2), torch.tensor([0.25, 0.75]))
    for text in ("0.25,0.75,0", "0.5", "a,b", "0.5,0.6", "nan,1", ""):
        with pytest.raises(UsageError, match="--alpha expects 2 weights with sum 1"):
            read_alpha(text, 2)


@pytest.mark.parametrize("text", ["left", "=0.5", "left=", "left=much", " =1"])
def test_what_is_no_score_is_refused_with_an_example(text):
    with pytest.raises(UsageError, match=r"--target expects task=number, .* --target left=0\.94"):
        read_scores("--target", [text])


def test_a_task_has_one_score():
    assert read_scores("--target", ["left=1", "right = 0.5"]) == {"left": 1.0, "right": 0.5}
    with pytest.raises(UsageError, match="each task once"):
        read_scores("--target", ["left=1", "left=0.5"])


def test_names_differ_and_seeds_are_whole_numbers():
    for text in ("", "a,", "a,a", "a, a"):
        with pytest.raises(UsageError, match="--methods expects different names"):
            read_names(text, "--methods")
    for text in ("-1", "1.5", "x"):
        with pytest.raises(UsageError, match="--seeds expects whole numbers"):
            read_seeds(text)
