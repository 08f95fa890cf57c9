from lorpman.lab.problems import multifashion, multimnist


def test_it_differs_from_multimnist_by_its_pictures_only(names_the_missing_files):
    fashion, mnist = multifashion.PROBLEM, multimnist.PROBLEM
    names = [[task.name for task in problem.make_tasks(None)] for problem in (fashion, mnist)]
    assert names[0] == names[1]
    shapes = [
        [p.shape for p in problem.make_network(None).parameters()] for problem in (fashion, mnist)
    ]
    assert shapes[0] == shapes[1]
    names_the_missing_files("multifashion")


def test_digits_and_clothing_need_both_sets(names_the_missing_files):
    names_the_missing_files("multifashion-mnist")
