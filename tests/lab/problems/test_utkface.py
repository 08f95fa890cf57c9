from small_files import write_utkface


def test_it_trains_and_evaluates(trains_and_evaluates):
    settings = ["limit=40", "width=4", "rank=2"]
    front = trains_and_evaluates("utkface", lambda root: write_utkface(root, 40), settings)
    assert front.tasks == ("age", "gender", "race")
    assert front.maximise == (False, True, True)


def test_missing_files_are_named_with_the_command_that_gets_them(names_the_missing_files):
    names_the_missing_files("utkface")
