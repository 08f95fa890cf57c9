from lorpman.lab.datasets.no_data import load


def test_an_epoch_has_the_asked_steps_and_the_other_splits_one_sample() -> None:
    splits = load(20)
    assert [len(split) for split in (splits.train, splits.validation, splits.test)] == [20, 1, 1]
    x, targets = splits.train[0]
    assert (x.tolist(), [y.tolist() for y in targets]) == ([0.0], [[0.0], [0.0]])
