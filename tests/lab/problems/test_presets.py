import math

import pytest
import torch

from lorpman import UsageError
from lorpman.lab.methods.registry import METHODS
from lorpman.lab.problems.problem import Preset
from lorpman.lab.problems.registry import PROBLEMS, get_problem
from lorpman.lab.runs.spec import Spec
from lorpman.lab.settings import Training


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
    groups = (Training, METHODS[method].settings, get_problem(problem).settings)
    names = [name for group in groups for name in group.model_fields]
    assert len(names) == len(set(names))


def test_a_reduced_scale_is_remembered():
    assert Spec.make("cifar100", "lorpman", 0, {}, "laptop").scale == "laptop"
    assert Spec.make("toy", "lorpman", 0, {}, "laptop").scale == "paper"


def test_unknown_keys_fail():
    with pytest.raises(ValueError, match="Extra inputs are not permitted"):
        Preset.model_validate({"setings": {}})
    with pytest.raises(UsageError, match="unknown setting 'lamda_o'; did you mean 'lambda_o'"):
        Spec.make("toy", "lorpman", 0, {"lamda_o": 1})


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


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("freeze_epoch", False, "use null for never"),
        ("rank", True, "expected a number"),
        ("learning_rate", True, "expected a number"),
        ("learning_rate", math.inf, "finite number"),
        ("scale", math.nan, "finite number"),
    ],
)
def test_a_number_is_a_finite_number(key, value, message):
    with pytest.raises(UsageError, match=f"setting {key}: .*{message}"):
        Spec.make("toy", "lorpman", 0, {key: value})


@pytest.mark.parametrize(
    ("settings", "rates"),
    [
        ({"scheduler": "cosine", "ramp_epochs": 1}, [0.2, 1, 0.75, 0.25]),
        ({"scheduler": "constant", "ramp_epochs": 2}, [0.2, 0.2, 1, 1]),
        ({"scheduler": "step", "step_epochs": [2, 3], "ramp_epochs": 1}, [0.2, 1, 0.5, 0.25]),
        ({"scheduler": "step", "step_epochs": [2, 3]}, [1, 1, 0.5, 0.25]),
    ],
)
def test_the_rate_of_every_epoch(settings, rates):
    training = Training(epochs=4, optimizer="sgd", learning_rate=1.0, **settings)
    optimizer = training.make_optimizer()([torch.nn.Parameter(torch.zeros(1))])
    scheduler = training.make_scheduler()(optimizer)
    found = []
    for _ in rates:
        found.append(optimizer.param_groups[0]["lr"])
        optimizer.step()
        scheduler.step()
    assert found == pytest.approx(rates)
