from lorpman.lab.datasets.celeba import ATTRIBUTES
from small_files import write_celeba


def test_it_trains_and_evaluates(trains_and_evaluates):
    settings = ["limit=40", "width=4", "rank=2", "watch_preferences=2"]
    front = trains_and_evaluates("celeba", lambda root: write_celeba(root, (24, 8, 8)), settings)
    assert tuple(front.tasks) == ATTRIBUTES


def test_missing_files_are_named_with_the_command_that_gets_them(names_the_missing_files):
    names_the_missing_files("celeba")
