from small_files import write_cityscapes


def test_it_trains_and_evaluates(trains_and_evaluates):
    settings = ["width=4", "rank=2", "validation_scenes=2", "limit=6"]
    front = trains_and_evaluates(
        "cityscapes", lambda root: write_cityscapes(root, 8, 3, 32, 64), settings
    )
    assert front.tasks == ("segmentation", "depth")
    assert front.maximise == (True, False)


def test_missing_files_are_named_with_the_command_that_gets_them(names_the_missing_files):
    names_the_missing_files("cityscapes")
