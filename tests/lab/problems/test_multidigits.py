from lorpman.lab.datasets.multidigits import load
from lorpman.lab.problems.multidigits import network


def test_network_gives_one_output_per_task():
    assert [tuple(out.shape) for out in network()(load().test.x[:3])] == [(3, 10), (3, 10)]
