import pytest

from lorpman.lab.problems.census import PROBLEM


@pytest.mark.parametrize(
    ("given", "inputs", "names"),
    [
        ({}, 468, ["age", "education"]),
        ({"leak": False}, 466, ["age", "education"]),
        ({"questions": "income-married"}, 477, ["income", "married"]),
        ({"questions": "income-married", "leak": False}, 477, ["income", "married"]),
    ],
)
def test_tasks_and_inputs_follow_the_questions(given, inputs, names):
    settings = PROBLEM.options(**given)
    assert [task.name for task in PROBLEM.make_tasks(settings)] == names
    assert PROBLEM.make_network(settings).bottom[0].in_features == inputs


def test_missing_files_are_named_with_the_command_that_gets_them(names_the_missing_files):
    names_the_missing_files("census")
