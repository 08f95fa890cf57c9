import pytest
import torch

from lorpman.lab.methods.registry import get_method
from lorpman.lab.methods.single import SINGLE
from lorpman.lab.networks.lenet import lenet
from lorpman.rules.rotograd import Rotation


@pytest.mark.parametrize("method", SINGLE, ids=lambda method: method.name)
def test_there_is_one_network_or_one_per_task(method):
    model = method.manifold(lenet(), 2, None, method.settings())
    assert len(model.preferences()) == (2 if method.name == "stl" else 1)


def test_stl_gives_every_network_one_task_alone():
    method = get_method("stl")
    model = method.manifold(lenet(), 2, None, method.settings())
    assert torch.equal(model.preferences(), torch.eye(2))


def test_rotograd_puts_a_rotation_of_the_asked_size_before_every_head():
    method = get_method("rotograd")
    model = method.manifold(lenet(), 2, None, method.settings(rotation_size=6))
    rotations = [module for module in model.modules() if isinstance(module, Rotation)]
    assert [rotation.skew.shape for rotation in rotations] == [(6, 6), (6, 6)]


@pytest.mark.parametrize(
    ("name", "setting", "value", "attribute"),
    [
        ("uw", "initial_scale", 0.5, "initial"),
        ("dwa", "temperature", 3.0, "temperature"),
        ("mgda", "normalisation", "l2", "normalisation"),
        ("pcgrad", "reduction", "mean", "reduction"),
        ("graddrop", "let_through", 0.25, "leak"),
        ("cagrad", "c", 0.7, "c"),
        ("nash-mtl", "update_every", 9, "update_every"),
    ],
)
def test_settings_reach_the_rules(name, setting, value, attribute):
    method = get_method(name)
    assert getattr(method.rule(method.settings(**{setting: value})), attribute) == value
