import hashlib
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from torch import nn

import lorpman as lp
import small_problem
from lorpman.lab.problems.registry import PROBLEMS, get_problem
from lorpman.lab.runs.spec import Spec
from lorpman.lab.settings import NoSettings


class Width(lp.SettingsGroup):
    width: int = 8


def test_ours_are_the_same_object_as_yours():
    assert all(type(get_problem(name)) is lp.Problem for name in PROBLEMS)


def test_parts_are_given_what_they_name(tmp_path):
    seen = []
    problem = small_problem.small_problem(
        options=Width,
        tasks=lambda options: [*small_problem.TASKS] if options.width == 3 else [],
        network=lambda options: nn.Linear(4, options.width),
        data=lambda root, options: (seen.append((root, options.width)), small_problem.load())[1],
    )
    options = Width(width=3)
    assert problem.make_network(options).out_features == 3
    assert len(problem.make_tasks(options)) == 2
    assert isinstance(problem.load(tmp_path, options), lp.Splits)
    assert seen == [(tmp_path, 3)]


def test_an_argument_with_another_name_keeps_its_default():
    problem = small_problem.small_problem(network=lambda width=5: nn.Linear(4, width))
    assert problem.make_network(NoSettings()).out_features == 5


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"name": "a/b"}, "name of a problem must be letters"),
        ({"network": nn.Linear(2, 2)}, "must be a function that makes it, got a Linear"),
        ({"data": 3}, "data of problem 'small' must be a function"),
        ({"settings": 3}, "settings of problem 'small' must be a dict"),
        ({"tasks": []}, "must be a list of two lp.Task or more"),
        ({"tasks": [small_problem.TASKS[0]] * 2}, "task names must differ"),
    ],
)
def test_a_wrong_part_is_named_at_once(changes, message):
    with pytest.raises(lp.UsageError, match=message):
        small_problem.small_problem(**changes)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"network": lambda: 3}, "must return an nn.Module, got int"),
        ({"data": lambda: 3}, r"must return lp.Splits\(train="),
        ({"data": lambda: 1 / 0}, "data of problem 'small' fails: ZeroDivisionError"),
        ({"tasks": lambda: [3, 4]}, "must be a list of two lp.Task"),
    ],
)
def test_a_part_that_gives_something_else_is_named(changes, message):
    spec = Spec.make(small_problem.small_problem(**changes), "lorpman", 0, {})
    with pytest.raises(lp.UsageError, match=message):
        [make() for make in (spec.tasks, spec.build, lambda: spec.load(Path()))]


def test_its_settings_go_to_the_methods_that_have_them():
    problem = small_problem.small_problem()
    lorpman, pamal = (Spec.make(problem, method, 0, {}) for method in ("lorpman", "pamal"))
    assert (lorpman.training.epochs, lorpman.own.rank) == (2, 2)
    assert pamal.training.epochs == 2
    assert "rank" not in pamal.settings()


def test_a_setting_that_no_method_has_is_refused():
    with pytest.raises(lp.UsageError, match="unknown setting 'epoch'; did you mean 'epochs'"):
        Spec.make(small_problem.small_problem(settings={"epoch": 3}), "pamal", 0, {})


def test_it_knows_the_file_that_it_was_made_in():
    expected = hashlib.sha256(Path(small_problem.__file__).read_bytes()).hexdigest()
    problem = small_problem.small_problem()
    assert problem.source == expected
    assert replace(problem, reference="elsewhere").source == expected
    assert get_problem("toy").source == ""


def test_data_split_at_random_without_a_seed_is_the_same_for_every_run():
    def load():
        x = torch.rand(9, 4)
        return lp.Splits(*((part, [part[:, :1], part[:, 1].long()]) for part in x.split(3)))

    problem = small_problem.small_problem(data=load)
    first, second = (Spec.make(problem, "lorpman", s, {}).load(Path()).test for s in (0, 1))
    assert torch.equal(first[0][0], second[0][0])
