"""The one-layer network of the Census problem."""

from collections.abc import Sequence

from torch import nn

from lorpman.manifold.shared_bottom import SharedBottom


def mlp(in_features: int = 468, hidden: int = 256, outputs: Sequence[int] = (2, 2)) -> SharedBottom:
    """Rows ``[n, in_features]`` to one ``[n, outputs[i]]`` per task; 121,092 parameters.

    Args:
        in_features: Columns of a row.
        hidden: Units of the hidden layer, which all tasks share.
        outputs: The outputs of each task's head.
    """
    bottom = nn.Sequential(nn.Linear(in_features, hidden), nn.ReLU())
    return SharedBottom(bottom, (nn.Linear(hidden, width) for width in outputs))
