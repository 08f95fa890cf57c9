import pytest
import torch

from lorpman import LowRank, UsageError
from lorpman.lab.runs.spec import Spec
from lorpman.preference import Dirichlet, Stratified
from small_training import exactly, same_weights


def test_a_description_makes_the_same_run_again():
    spec = Spec.make("multidigits", "lorpman", 3, {"epochs": 7, "rank": 5}, recipe=None)
    described = spec.described()
    assert list(described) == ["problem", "method", "seed", "settings"]
    assert (described["settings"]["epochs"], described["settings"]["rank"]) == (7, 5)
    assert Spec.make(*described.values()).identity() == spec.identity()


def test_what_is_watched_is_no_part_of_the_identity():
    one, other, longer = (
        Spec.make("multidigits", "lorpman", 0, overrides)
        for overrides in ({}, {"watch_samples": 1, "watch_preferences": 3}, {"epochs": 99})
    )
    assert one.described() != other.described()
    assert one.identity() == other.identity()
    assert one.identity() != longer.identity()
    assert one.identity() != Spec.make("multidigits", "lorpman", 1, {}).identity()


def test_overrides_beat_the_preset_and_the_methods_defaults():
    preset = Spec.make("toy", "lorpman", 0, {}).settings()
    told = Spec.make("toy", "lorpman", 0, {"learning_rate": 0.5}).settings()
    assert told == {**preset, "learning_rate": 0.5}


def test_the_seed_decides_the_start():
    models = [Spec.make("multidigits", "lorpman", seed, {}).build() for seed in (0, 0, 1)]
    assert type(models[0]) is LowRank
    assert same_weights(models[0], models[1])
    assert not same_weights(models[0], models[2])


def test_a_problem_may_set_the_start_itself():
    model = Spec.make("toy", "lorpman", 0, {}).build()
    middle = torch.tensor([0.5, 0.5])
    assert torch.cat([p.flatten() for p in model.theta(middle).values()]).tolist() == [4.5, 4.5]


def test_preferences_can_be_stratified():
    assert type(Spec.make("multidigits", "lorpman", 0, {}).sampler()) is Dirichlet
    options = {"sampling": "stratified", "concentration": 0.25}
    sampler = Spec.make("multidigits", "lorpman", 0, options).sampler()
    assert type(sampler) is Stratified


def test_a_method_that_draws_no_preferences_refuses_a_way_to_draw_them():
    message = "mgda draws no preferences by sampling; leave it out"
    with pytest.raises(UsageError, match=exactly(message)):
        Spec.make("multidigits", "mgda", 0, {"sampling": "stratified"})


def test_the_scale_is_told_only_where_something_is_reduced():
    assert Spec.make("cifar100", "lorpman", 0, {}, "laptop").scale == "laptop"
    assert Spec.make("toy", "lorpman", 0, {}, "laptop").scale == "paper"
