import math

import pytest
import torch

from lorpman.lab.methods.registry import METHODS
from lorpman.lab.problems.registry import PROBLEMS, get_problem
from lorpman.lab.runs.spec import Spec
from lorpman.lab.settings import TrainingSettings


@pytest.mark.parametrize("scale", ["paper", "laptop"])
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("problem", PROBLEMS)
def test_every_preset_is_valid_for_every_method(problem, method, scale):
    spec = Spec.make(problem, method, 0, {}, scale)
    again = Spec.make(problem, method, 0, spec.settings())
    assert again.identity() == spec.identity()


@pytest.mark.parametrize("problem", PROBLEMS)
def test_a_preset_names_only_methods_and_settings_that_exist(problem):
    preset = get_problem(problem).preset()
    layers = [preset] + ([preset.laptop] if preset.laptop else [])
    for layer in layers:
        assert set(layer.methods) <= set(METHODS)
    assert set(preset.search) <= set(Spec.make(problem, "lorpman", 0, {}).settings())
    assert all(0 < row.hypervolume < 1 < row.parameters for row in preset.published.values())


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("problem", PROBLEMS)
def test_no_two_groups_of_settings_share_a_name(problem, method):
    groups = (TrainingSettings, METHODS[method].settings, get_problem(problem).options)
    names = [name for group in groups for name in group.model_fields]
    assert len(names) == len(set(names))


# Parameters of LORPMAN as published; the last column is how exactly they are printed.
COUNTS = [
    ("multimnist", {}, 45_920, 0),
    ("census", {}, 132_676, 0),
    ("cifar100", {}, 26.358e6, 0.0005e6),
    ("celeba", {}, 96.82e6, 0.005e6),
    ("utkface", {"rank": 4}, 12.02e6, 0.005e6),
    ("utkface", {"rank": 8}, 12.81e6, 0.005e6),
    ("utkface", {"rank": 16}, 14.41e6, 0.005e6),
    ("utkface", {"rank": 32}, 17.60e6, 0.005e6),
    ("utkface", {}, 23.97e6, 0.005e6),
    ("utkface", {"rank": 128}, 35.48e6, 0.005e6),
]


@pytest.mark.parametrize(("problem", "overrides", "expected", "within"), COUNTS)
def test_lorpman_has_the_published_number_of_parameters(problem, overrides, expected, within):
    with torch.device("meta"):
        model = Spec.make(problem, "lorpman", 0, overrides).build()
    assert model.num_parameters() == pytest.approx(expected, abs=within, rel=0)


@pytest.mark.parametrize(
    ("problem", "rank", "scale", "window", "concentration", "lambda_p", "epochs", "freeze"),
    [
        ("multimnist", 8, None, 4, 1, 0, 10, None),
        ("census", 8, None, 2, 1, 5, 10, None),
        ("utkface", 64, 1, 3, 2, 1, 100, 80),
        ("cifar100", 8, 1, 2, 2, 1, 300, 250),
        ("celeba", 32, 1, 3, 2, 1, 50, 40),
        ("cityscapes", None, None, 3, 7, 1, 100, None),
    ],
)
def test_presets_are_the_papers(
    problem, rank, scale, window, concentration, lambda_p, epochs, freeze
):
    """None: the paper gives a range, and the choice was made on validation data."""
    settings = Spec.make(problem, "lorpman", 0, {}).settings()
    expected = {
        "rank": rank,
        "scale": scale,
        "window": window,
        "concentration": concentration,
        "lambda_p": lambda_p,
        "epochs": epochs,
        "freeze_epoch": freeze,
    }
    search = get_problem(problem).preset().search
    for key, value in expected.items():
        if value is None:
            assert settings[key] in search[key]
        else:
            assert math.isclose(settings[key], value)
