"""The registry: every table and figure of the issue, valid at both scales."""

import pytest

from lorpman.lab.problems.registry import get_problem
from lorpman.lab.reproduce.registry import REPRODUCTIONS

NAMES = (
    "toy-figure", "similarity-figure", "multimnist-table", "census-table", "multimnist-figure",
    "census-figure", "utkface-table", "utkface-figure", "cifar100-table", "cifar100-loss-figure",
    "cifar100-figure", "celeba-table", "discrete-figure", "cityscapes-table",
    "ablation-orthogonality", "ablation-rank", "ablation-freeze", "ablation-scale",
)  # fmt: skip


def test_the_names_are_those_of_the_paper():
    assert set(REPRODUCTIONS) == set(NAMES)


@pytest.mark.parametrize("scale", ["paper", "laptop"])
@pytest.mark.parametrize("name", NAMES)
def test_every_row_gives_runs_that_differ(name, scale):
    row = REPRODUCTIONS[name]
    plan = row.plan(scale)
    planned = row.planned_runs(scale, plan.seeds)
    assert len(planned) >= len(plan.seeds) > 0
    identities = [one.spec.identity() for one in planned]
    assert all(identity not in identities[:i] for i, identity in enumerate(identities))
    assert len({one.name for one in planned}) == len(planned)
    assert len({line.label for line in row.lines}) == len(row.lines)


@pytest.mark.parametrize("name", NAMES)
def test_laptop_scale_ends_within_an_hour(name):
    plan = REPRODUCTIONS[name].laptop
    assert plan.minutes is not None
    assert plan.minutes <= 60
    assert plan.gibibytes is not None


def test_tables_and_figures_of_one_problem_share_their_runs():
    for problem, scale in (("multimnist", "paper"), ("census", "laptop"), ("cifar100", "laptop")):
        table, figure = (REPRODUCTIONS[f"{problem}-{kind}"] for kind in ("table", "figure"))
        assert [one.spec.identity() for one in table.planned_runs(scale, (0,))] == [
            one.spec.identity() for one in figure.planned_runs(scale, (0,))
        ]
    ablations = [
        [
            one.spec.identity()
            for one in REPRODUCTIONS[f"ablation-{kind}"].planned_runs("laptop", (0,))
        ]
        for kind in ("orthogonality", "rank", "scale")
    ]
    assert [one for one in ablations[0] if one in ablations[1] and one in ablations[2]]


def test_every_ablation_contains_the_preset_itself():
    for name in NAMES:
        if name.startswith("ablation"):
            row = REPRODUCTIONS[name]
            found = [one.spec for one in row.planned_runs("paper", (0,))]
            preset = get_problem("utkface").preset().methods["lorpman"]
            assert any(preset.items() <= spec.settings().items() for spec in found), name


def test_ranks_that_only_the_small_problem_has_claim_no_published_number():
    row = REPRODUCTIONS["ablation-rank"]
    by_label = {line.label: line for line in row.lines}
    assert row.reported(by_label["rank 2"]) == ({}, None)
    assert row.reported(by_label["rank 8"])[1] == 12.8e6
    assert by_label["rank 2"].settings("paper") is None
    assert by_label["rank 128"].settings("laptop") is None
