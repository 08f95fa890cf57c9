import copy

import pytest
import torch
from torch.nn import functional as F

import lorpman as lp
from lorpman import Film, LowRank
from lorpman.lab.methods.discrete import DISCRETE
from lorpman.lab.methods.registry import get_method
from lorpman.lab.networks.lenet import lenet


@pytest.mark.parametrize("method", DISCRETE, ids=lambda method: method.name)
def test_there_are_as_many_members_as_the_setting_says(method):
    model = method.manifold(lenet(), 2, None, method.settings(members=3))
    assert len(model.preferences()) == 3


@pytest.mark.parametrize(("conditioning", "kind"), [("film", Film), ("low-rank", LowRank)])
def test_gmooar_is_conditioned_as_the_setting_says(conditioning, kind):
    method = get_method("gmooar-u")
    settings = method.settings(conditioning=conditioning, rank=3, members=2)
    inner = method.manifold(lenet(), 2, None, settings).inner
    assert type(inner) is kind
    if conditioning == "low-rank":
        sizes = {delta.A.shape[-2] for delta in inner.low_rank_deltas().values()}
        assert 3 in sizes


@pytest.mark.parametrize(("num_tasks", "members"), [(2, 5), (3, 5), (7, 15)])
def test_retraining_has_the_corners_and_the_centre(num_tasks, members):
    method = get_method("retrain")
    model = method.manifold(lenet(num_tasks), num_tasks, None, method.settings())
    alphas = model.preferences().tolist()
    assert len(alphas) == members
    assert all(corner in alphas for corner in torch.eye(num_tasks).tolist())
    assert [1 / num_tasks] * num_tasks in [pytest.approx(alpha) for alpha in alphas]


def test_a_retrained_network_is_that_of_training_for_its_preference_alone():
    """The other members change nothing about it."""
    x, y = torch.rand(6, 1, 28, 28), [torch.arange(6), torch.arange(6)]
    tasks = [lp.Task(name, F.cross_entropy, lp.accuracy) for name in ("a", "b")]
    method, network = get_method("retrain"), lenet()
    model = method.manifold(network, 2, None, method.settings())
    settings = {"epochs": 3, "progress": False, "optimizer": lambda p: torch.optim.SGD(p, 0.1)}
    lp.fit(model, tasks, [(x, y)], objective=method.rule(method.settings()), **settings)
    alone, alpha = copy.deepcopy(network), torch.tensor([0.25, 0.75])
    optimizer = torch.optim.SGD(alone.parameters(), 0.1)
    for _ in range(3):
        optimizer.zero_grad()
        losses = torch.stack([F.cross_entropy(o, t) for o, t in zip(alone(x), y, strict=True)])
        (alpha * losses).sum().backward()
        optimizer.step()
    for mine, its in zip(alone.parameters(), model.solution(alpha).parameters(), strict=True):
        torch.testing.assert_close(mine, its)


def test_both_forms_of_gmooar_have_a_quality_of_their_own():
    uniform, volume = (get_method(f"gmooar-{name}") for name in ("u", "hv"))
    assert uniform.rule(uniform.settings()).quality == "uniform"
    assert volume.rule(volume.settings()).quality == "hypervolume"


def test_settings_reach_the_rules():
    pmtl, png = get_method("pmtl"), get_method("png")
    assert pmtl.rule(pmtl.settings(cone_epochs=7)).cone_epochs == 7
    assert png.rule(png.settings(tolerance=0.4)).tolerance == 0.4
