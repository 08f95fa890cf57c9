"""Choose the trade-off between tasks after training, not before.

One training run learns ``theta(alpha) = theta_0 + s * sum_i alpha_i B_i A_i``: a network for
every preference ``alpha`` between the tasks.
"""

from importlib import import_module as _import_module
from importlib.metadata import version as _version
from typing import TYPE_CHECKING as _TYPE_CHECKING
from typing import Any as _Any

from lorpman import rules
from lorpman.errors import TrainingDiverged, UsageError
from lorpman.front.choice import Choice
from lorpman.front.evaluate import evaluate
from lorpman.front.export import Exported, export, export_network
from lorpman.front.front import Front
from lorpman.front.hypervolume import Hypervolume, hypervolume
from lorpman.front.hypervolume_gradient import hypervolume_gradient
from lorpman.front.order import Order
from lorpman.front.recalibration import recalibrate
from lorpman.front.select import Selection, select
from lorpman.manifold.base import Manifold
from lorpman.manifold.convex import Convex
from lorpman.manifold.cosmos import Cosmos
from lorpman.manifold.film import Film
from lorpman.manifold.finite import Population, Single
from lorpman.manifold.hypernetwork import ChunkedHyper, Hyper
from lorpman.manifold.learned_preferences import Learned
from lorpman.manifold.low_rank import LowRank
from lorpman.manifold.parameter_manifold import ParameterManifold
from lorpman.manifold.shared_bottom import SharedBottom
from lorpman.metrics import accuracy
from lorpman.preference import Dirichlet, Stratified, as_preference, dirichlet, grid
from lorpman.rules.base import Rule, Step
from lorpman.rules.chebyshev import Chebyshev, SmoothChebyshev
from lorpman.rules.cosine import Cosine
from lorpman.rules.epo import Epo
from lorpman.rules.hypervolume_ascent import HypervolumeAscent
from lorpman.rules.multi_forward import MultiForward
from lorpman.rules.objective import Linear, Term
from lorpman.rules.orthogonality import Orthogonality
from lorpman.rules.pamal import Balanced
from lorpman.task import Masked, Task
from lorpman.training.fit import Epoch, fit
from lorpman.training.options import Checkpoints, Placement, Validation

if _TYPE_CHECKING:
    from lorpman.explorer.from_python import explore, report
    from lorpman.lab.comparison_table import Comparison
    from lorpman.lab.datasets.splits import Splits
    from lorpman.lab.from_python import Run, Tuned, compare, open_run, train, tune
    from lorpman.lab.methods.method import Method
    from lorpman.lab.problems.problem import Problem
    from lorpman.lab.settings import SettingsGroup

__version__ = _version("lorpman")

# Imported when first asked for: who only fits and evaluates waits for none of it.
_LATER = {
    "Comparison": "lorpman.lab.comparison_table",
    "Method": "lorpman.lab.methods.method",
    "Problem": "lorpman.lab.problems.problem",
    "Run": "lorpman.lab.from_python",
    "SettingsGroup": "lorpman.lab.settings",
    "Splits": "lorpman.lab.datasets.splits",
    "Tuned": "lorpman.lab.from_python",
    "compare": "lorpman.lab.from_python",
    "explore": "lorpman.explorer.from_python",
    "open_run": "lorpman.lab.from_python",
    "report": "lorpman.explorer.from_python",
    "train": "lorpman.lab.from_python",
    "tune": "lorpman.lab.from_python",
}


def __getattr__(name: str) -> _Any:
    if name not in _LATER:
        raise AttributeError(f"module 'lorpman' has no attribute '{name}'")
    return getattr(_import_module(_LATER[name]), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


__all__ = [
    "Balanced",
    "Chebyshev",
    "Checkpoints",
    "Choice",
    "ChunkedHyper",
    "Comparison",
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
    "Masked",
    "Method",
    "MultiForward",
    "Order",
    "Orthogonality",
    "ParameterManifold",
    "Placement",
    "Population",
    "Problem",
    "Rule",
    "Run",
    "Selection",
    "SettingsGroup",
    "SharedBottom",
    "Single",
    "SmoothChebyshev",
    "Splits",
    "Step",
    "Stratified",
    "Task",
    "Term",
    "TrainingDiverged",
    "Tuned",
    "UsageError",
    "Validation",
    "accuracy",
    "as_preference",
    "compare",
    "dirichlet",
    "evaluate",
    "explore",
    "export",
    "export_network",
    "fit",
    "grid",
    "hypervolume",
    "hypervolume_gradient",
    "open_run",
    "recalibrate",
    "report",
    "rules",
    "select",
    "train",
    "tune",
]
