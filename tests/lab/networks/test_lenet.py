import torch

from lorpman.lab.networks.lenet import lenet


def test_per_task_batches_equal_separate_calls() -> None:
    net = lenet()
    x = [torch.rand(4, 1, 28, 28), torch.rand(2, 1, 28, 28)]
    for i, out in enumerate(net(x)):
        torch.testing.assert_close(out, net(x[i])[i])


def test_tasks_and_classes_are_as_asked() -> None:
    outputs = lenet(num_tasks=3, num_classes=4)(torch.rand(2, 1, 28, 28))
    assert [tuple(out.shape) for out in outputs] == [(2, 4)] * 3
