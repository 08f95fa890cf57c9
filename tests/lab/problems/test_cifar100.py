from lorpman.lab.datasets.cifar100 import TASKS
from small_files import write_cifar100


def test_it_trains_and_evaluates(trains_and_evaluates):
    settings = ["width=4", "train_images=16", "validation_images=5", "watch_preferences=2"]
    front = trains_and_evaluates("cifar100", lambda root: write_cifar100(root, 6, 2), settings)
    assert tuple(front.tasks) == TASKS


def test_missing_files_are_named_with_the_command_that_gets_them(names_the_missing_files):
    names_the_missing_files("cifar100")
