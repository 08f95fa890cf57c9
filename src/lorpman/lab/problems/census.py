"""Census-Income (KDD): two yes-or-no questions about a person, from a table."""

from typing import Literal

from torch.nn import functional as F

from lorpman.lab.datasets import census
from lorpman.lab.networks.mlp import mlp
from lorpman.lab.problems.preset import read_preset
from lorpman.lab.problems.problem import Problem
from lorpman.lab.settings import SettingsGroup
from lorpman.manifold.shared_bottom import SharedBottom
from lorpman.metrics import accuracy
from lorpman.task import Task

# Inputs by choice of tasks, with and without the income field among them.
_INPUTS = {("age-education", True): 468, ("age-education", False): 466}


class CensusSettings(SettingsGroup):
    """The paper's protocol by default; each quirk of it has a switch."""

    questions: Literal["age-education", "income-married"] = "age-education"
    leak: bool = True
    """Keep the income field among the inputs, as the published code does."""
    masters_typo: bool = True
    """Count Masters as not educated, as a misspelt prefix in the published code does."""


def _network(options: CensusSettings) -> SharedBottom:
    return mlp(_INPUTS.get((options.questions, options.leak), 477))


PROBLEM = Problem(
    name="census",
    summary="age and education of a person from a census table, 2 tasks",
    settings=read_preset("census"),
    tasks=lambda options: [
        Task(name, F.cross_entropy, accuracy) for name in options.questions.split("-")
    ],
    network=_network,
    data=lambda root, options: census.load(
        root, options.questions, options.leak, options.masters_typo
    ),
    options=CensusSettings,
)
