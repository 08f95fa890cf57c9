"""LeNet for two overlaid digits: the MultiMNIST network of PaMaL and LORPMAN."""

from torch import nn

from lorpman.manifold.shared_bottom import SharedBottom


def lenet(num_tasks: int = 2, num_classes: int = 10) -> SharedBottom:
    """Images ``[n, 1, 28, 28]`` to ``num_tasks`` logits ``[n, num_classes]``; 27,450 parameters.

    Pooling comes before ReLU (the two commute; this order does a quarter of the work). The two
    layers of a head have a ReLU between them: without it they would be one linear map.

    Args:
        num_tasks: The number of heads.
        num_classes: The outputs of each head.
    """
    bottom = nn.Sequential(
        nn.Conv2d(1, 10, 5),
        nn.MaxPool2d(2),
        nn.ReLU(),
        nn.Conv2d(10, 20, 5),
        nn.MaxPool2d(2),
        nn.ReLU(),
        nn.Flatten(),
        nn.Linear(320, 50),
        nn.ReLU(),
    )
    heads = (
        nn.Sequential(nn.Linear(50, 50), nn.ReLU(), nn.Linear(50, num_classes))
        for _ in range(num_tasks)
    )
    return SharedBottom(bottom, heads)
