from lorpman.lab.problems.multimnist import PROBLEM


def test_the_tasks_are_the_two_pictures():
    assert [task.name for task in PROBLEM.make_tasks(PROBLEM.options())] == ["left", "right"]


def test_missing_files_are_named_with_the_command_that_gets_them(names_the_missing_files):
    names_the_missing_files("multimnist")
