import pytest

from lorpman import UsageError
from lorpman.lab.problems.preset import Preset, SettingsLayer
from lorpman.lab.runs.spec import Spec


def test_a_layer_for_all_methods_leaves_what_belongs_to_a_method():
    layer = SettingsLayer(settings={"window": 4, "epochs": 9}, methods={"a": {"epochs": 2}})
    assert layer.settings_for("a", {"window"}) == {"epochs": 2}
    assert layer.settings_for("b") == {"window": 4, "epochs": 9}
    assert layer.laid_over({"window": 1, "rank": 8}, "a") == {"window": 4, "rank": 8, "epochs": 2}


def test_settings_for_one_method_change_what_belongs_to_it():
    layer = SettingsLayer(methods={"a": {"window": 2}})
    assert layer.settings_for("a", {"window"}) == {"window": 2}


def test_laptop_scale_comes_on_top_but_leaves_what_belongs_to_the_method():
    paper, laptop = (Spec.make("utkface", "cosmos", 0, {}, scale) for scale in ("paper", "laptop"))
    assert (paper.training.epochs, laptop.training.epochs) == (100, 10)
    assert (paper.training.window, laptop.training.window) == (1, 1)


def test_a_reduced_scale_is_remembered():
    assert Spec.make("cifar100", "lorpman", 0, {}, "laptop").scale == "laptop"
    assert Spec.make("toy", "lorpman", 0, {}, "laptop").scale == "paper"


def test_unknown_keys_fail():
    with pytest.raises(ValueError, match="Extra inputs are not permitted"):
        Preset.model_validate({"setings": {}})
    with pytest.raises(UsageError, match="unknown setting 'lamda_o'; did you mean 'lambda_o'"):
        Spec.make("toy", "lorpman", 0, {"lamda_o": 1})
