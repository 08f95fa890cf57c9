import pytest
import torch

from lorpman.lab.datasets.multidigits import load
from lorpman.lab.problems.registry import get_problem
from lorpman.lab.runs.spec import Spec


@pytest.mark.parametrize(("name", "digits"), [("multidigits", 2), ("threedigits", 3)])
def test_network_gives_one_output_per_task(name, digits):
    spec = Spec.make(name, "lorpman", 0, {})
    outputs = get_problem(name).make_network(spec.data)(load(digits).test.x[:3])
    assert [tuple(out.shape) for out in outputs] == [(3, 10)] * digits
    assert len(spec.tasks()) == digits


def test_fresh_pairs_are_a_setting_of_the_data(tmp_path):
    fixed, fresh = (
        Spec.make("multidigits", "lorpman", 0, {"fresh_pairs": fresh}).load(tmp_path)
        for fresh in (False, True)
    )
    assert len(fresh.train) == len(fixed.train)
    assert torch.equal(fresh.test.x, fixed.test.x)
    assert fresh.train.transform is not None
