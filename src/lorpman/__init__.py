"""Choose the trade-off between tasks after training, not before.

One training run learns ``theta(alpha) = theta_0 + s * sum_i alpha_i B_i A_i``: a network for
every preference ``alpha`` between the tasks.
"""

from importlib.metadata import version as _version

from lorpman import rules
from lorpman.errors import TrainingDiverged, UsageError
from lorpman.evaluate import evaluate
from lorpman.fit import Epoch, fit
from lorpman.front import Choice, Front
from lorpman.hypervolume import Hypervolume, hypervolume
from lorpman.manifold.base import Manifold, ParameterManifold
from lorpman.manifold.finite import Population, Single
from lorpman.manifold.learned import Learned
from lorpman.manifold.low_rank import LowRank
from lorpman.nets.shared_bottom import SharedBottom
from lorpman.objective import (
    Chebyshev,
    Linear,
    MultiForward,
    Orthogonality,
    SmoothChebyshev,
    Term,
)
from lorpman.preference import as_preference, dirichlet, grid
from lorpman.rule import Rule, Step
from lorpman.scores import accuracy
from lorpman.task import Task

__version__ = _version("lorpman")

__all__ = [
    "Chebyshev",
    "Choice",
    "Epoch",
    "Front",
    "Hypervolume",
    "Learned",
    "Linear",
    "LowRank",
    "Manifold",
    "MultiForward",
    "Orthogonality",
    "ParameterManifold",
    "Population",
    "Rule",
    "SharedBottom",
    "Single",
    "SmoothChebyshev",
    "Step",
    "Task",
    "Term",
    "TrainingDiverged",
    "UsageError",
    "accuracy",
    "as_preference",
    "dirichlet",
    "evaluate",
    "fit",
    "grid",
    "hypervolume",
    "rules",
]
