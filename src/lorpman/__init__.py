"""Choose the trade-off between tasks after training, not before.

One training run learns ``theta(alpha) = theta_0 + s * sum_i alpha_i B_i A_i``: a network for
every preference ``alpha`` between the tasks.
"""

from importlib.metadata import version as _version

from lorpman import rules
from lorpman.errors import TrainingDiverged, UsageError
from lorpman.evaluate import evaluate
from lorpman.export import Exported, export, export_network, recalibrate
from lorpman.fit import Epoch, fit
from lorpman.front import Choice, Front
from lorpman.hypervolume import Hypervolume, hypervolume
from lorpman.hypervolume_gradient import hypervolume_gradient
from lorpman.manifold.base import Manifold, ParameterManifold
from lorpman.manifold.conditioned import Cosmos
from lorpman.manifold.convex import Convex
from lorpman.manifold.film import Film
from lorpman.manifold.finite import Population, Single
from lorpman.manifold.hyper import ChunkedHyper, Hyper
from lorpman.manifold.learned import Learned
from lorpman.manifold.low_rank import LowRank
from lorpman.nets.shared_bottom import SharedBottom
from lorpman.objective import (
    Chebyshev,
    Cosine,
    Linear,
    MultiForward,
    Orthogonality,
    SmoothChebyshev,
    Term,
)
from lorpman.order import Order
from lorpman.preference import Dirichlet, Stratified, as_preference, dirichlet, grid
from lorpman.rule import Rule, Step
from lorpman.rules.balance import Balanced
from lorpman.rules.epo import Epo
from lorpman.rules.hypervolume import HypervolumeAscent
from lorpman.scores import accuracy
from lorpman.select import Selection, select
from lorpman.task import Task

__version__ = _version("lorpman")

__all__ = [
    "Balanced",
    "Chebyshev",
    "Choice",
    "ChunkedHyper",
    "Convex",
    "Cosine",
    "Cosmos",
    "Dirichlet",
    "Epo",
    "Epoch",
    "Exported",
    "Film",
    "Front",
    "Hyper",
    "Hypervolume",
    "HypervolumeAscent",
    "Learned",
    "Linear",
    "LowRank",
    "Manifold",
    "MultiForward",
    "Order",
    "Orthogonality",
    "ParameterManifold",
    "Population",
    "Rule",
    "Selection",
    "SharedBottom",
    "Single",
    "SmoothChebyshev",
    "Step",
    "Stratified",
    "Task",
    "Term",
    "TrainingDiverged",
    "UsageError",
    "accuracy",
    "as_preference",
    "dirichlet",
    "evaluate",
    "export",
    "export_network",
    "fit",
    "grid",
    "hypervolume",
    "hypervolume_gradient",
    "recalibrate",
    "rules",
    "select",
]
