"""Recipes: settings by name, over any problem's preset and below what the user sets."""

import pytest

from command_line import refused
from lorpman.errors import UsageError
from lorpman.lab.methods.registry import get_method
from lorpman.lab.recipes.recipe import get_recipe, recipe_names
from lorpman.lab.runs.spec import Spec
from lorpman.lab.settings import TrainingSettings


def test_a_recipe_stands_between_preset_and_user():
    best = get_recipe("best").settings_for("lorpman")
    spec = Spec.make("multimnist", "lorpman", 0, {}, recipe="best")
    assert {key: spec.settings()[key] for key in best} == best
    assert spec.recipe == "best"
    key = "learning_rate"
    assert spec.settings()[key] != Spec.make("multimnist", "lorpman", 0, {}).settings()[key]
    told = Spec.make("multimnist", "lorpman", 0, {key: 0.5}, recipe="best")
    assert told.settings()[key] == 0.5


@pytest.mark.parametrize("problem", ["multimnist", "census", "cifar100", "multidigits"])
@pytest.mark.parametrize("recipe", recipe_names())
def test_every_recipe_fits_all_its_methods(problem, recipe):
    for method in map(get_method, get_recipe(recipe).methods):
        settings = Spec.make(problem, method.name, 0, {}, "laptop", recipe).settings()
        asked = get_recipe(recipe).settings_for(method.name, method.defaults)
        if settings["optimizer"] != get_recipe(recipe).optimizer:
            asked = {k: v for k, v in asked.items() if k not in TrainingSettings.OF_THE_OPTIMIZER}
        assert {key: settings[key] for key in asked} == asked, method.name


def test_the_recipe_keeps_network_rank_and_epochs():
    """What the paper fixes: the comparison would mean nothing otherwise."""
    fixed = ("epochs", "batch_size", "rank", "budget", "optimizer")
    for method in get_recipe("best").methods:
        plain, best = (
            Spec.make("multimnist", method, 0, {}, recipe=r).settings() for r in (None, "best")
        )
        assert {k: best[k] for k in fixed if k in best} == {
            k: plain[k] for k in fixed if k in plain
        }


def test_rates_are_multiples_of_the_presets_own():
    def rate(problem, recipe=None, **told):
        return Spec.make(problem, "lorpman", 0, told, recipe=recipe).training.learning_rate

    assert (rate("multimnist"), rate("multimnist", "best")) == (0.001, 0.006)
    assert rate("multimnist", "best", learning_rate=0.5) == 0.5


def test_another_optimizer_keeps_its_rate_schedule_and_weight_decay():
    plain, best = (
        Spec.make("cifar100", "lorpman", 0, {}, recipe=r).settings() for r in (None, "best")
    )
    assert plain["optimizer"] == "sgd"
    assert {key for key in best if best[key] != plain[key]} == {"sampling"}
    assert best["sampling"] == "stratified"


@pytest.mark.parametrize(("problem", "optimizer"), [("multimnist", "sgd"), ("cifar100", "adam")])
def test_an_optimizer_that_the_user_chose_keeps_the_presets_rate(problem, optimizer):
    """Neither are Adam's settings for SGD, nor is SGD's rate one to multiply for Adam."""
    plain, best = (
        Spec.make(problem, "lorpman", 0, {"optimizer": optimizer}, recipe=r).settings()
        for r in (None, "best")
    )
    assert {key for key in best if best[key] != plain[key]} == {"sampling"}


def test_a_method_without_settings_in_the_recipe_is_refused(capsys, tmp_path):
    """Or a table would say that it had the recipe too."""
    out = tmp_path / "r"
    methods = ("--recipe", "best", "--methods", "lorpman,film", "--out", out)
    line = refused(capsys, "compare", "multidigits", *methods)
    assert "no settings for method 'film', only for cosmos, lorpman" in line
    assert not out.exists()


@pytest.mark.parametrize("method", ["phn-hvi", "pmtl", "mgda"])
def test_spreading_preferences_that_a_method_does_not_draw_is_refused(method):
    with pytest.raises(UsageError, match=f"{method} draws no preferences by sampling"):
        Spec.make("multidigits", method, 0, {"sampling": "stratified"})


def test_an_unknown_recipe_is_refused(capsys, tmp_path):
    out = tmp_path / "r"
    line = refused(capsys, "train", "multidigits", "--recipe", "bset", "--out", out)
    assert "unknown recipe 'bset'" in line
    assert "best" in line
    assert not out.exists()
