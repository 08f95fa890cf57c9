import math
from typing import get_args

import pytest
import torch

from lorpman import UsageError
from lorpman.lab.runs.spec import Spec
from lorpman.lab.settings import (
    DEFAULT_SAMPLING,
    SAMPLERS,
    Sampling,
    TrainingSettings,
    distribute,
    format_assignments,
    parse_assignments,
)
from lorpman.preference import Dirichlet, Stratified


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
    training = TrainingSettings(epochs=4, optimizer="sgd", learning_rate=1.0, **settings)
    optimizer = training.make_optimizer()([torch.nn.Parameter(torch.zeros(1))])
    scheduler = training.make_scheduler()(optimizer)
    observed = []
    for _ in rates:
        observed.append(optimizer.param_groups[0]["lr"])
        optimizer.step()
        scheduler.step()
    assert observed == pytest.approx(rates)


@pytest.mark.parametrize(
    ("name", "kind"),
    [("adam", torch.optim.Adam), ("adamw", torch.optim.AdamW), ("sgd", torch.optim.SGD)],
)
def test_the_optimizer_has_the_settings(name, kind):
    training = TrainingSettings(optimizer=name, learning_rate=0.3, weight_decay=0.2, momentum=0.5)
    optimizer = training.make_optimizer()([torch.nn.Parameter(torch.zeros(1))])
    assert type(optimizer) is kind
    (group,) = optimizer.param_groups
    assert (group["lr"], group["weight_decay"]) == (0.3, 0.2)
    assert group.get("momentum", 0.5) == 0.5


def test_the_table_has_a_sampler_for_every_value_of_the_setting():
    assert set(SAMPLERS) == set(get_args(Sampling))
    assert DEFAULT_SAMPLING in SAMPLERS


@pytest.mark.parametrize(
    ("sampling", "kind"), [("dirichlet", Dirichlet), ("stratified", Stratified)]
)
def test_the_sampler_has_the_concentration(sampling, kind):
    sampler = TrainingSettings(sampling=sampling, concentration=3.0).make_sampler()
    assert type(sampler) is kind
    assert sampler.concentration == 3.0


def test_what_is_written_is_read_again():
    values = {"rank": 4, "freeze_epoch": None, "optimizer": "sgd", "step_epochs": [1, 2]}
    assert parse_assignments(format_assignments(values)) == values


@pytest.mark.parametrize("assignment", ["rank", "=4", "rank=", "rank=[1"])
def test_an_assignment_that_cannot_be_read_is_refused(assignment):
    with pytest.raises(UsageError, match="--set"):
        parse_assignments([assignment])


def test_a_setting_of_no_group_is_refused_with_the_nearest_name():
    with pytest.raises(UsageError, match="unknown setting 'epoch'; did you mean 'epochs'"):
        distribute({"epoch": 3}, {"training": TrainingSettings})


@pytest.mark.parametrize(
    "text",
    [
        "2020-13-45",
        "!!int a",
        "9" * 5000,
        "[" * 3000,
        "&a [*a]",
        "x" * 20_000,
        "!!python/name:os.x",
    ],
    ids=range(7),
)
def test_a_value_that_cannot_be_read_is_one_short_line(text):
    with pytest.raises(UsageError, match=r"^--set rank: cannot read the value '") as refused:
        parse_assignments([f"rank={text}"])
    assert len(str(refused.value)) < 120


@pytest.mark.parametrize(
    ("key", "value"),
    [("window", 10**12), ("batch_size", 10**21), ("epochs", 10**7), ("ramp_epochs", 2**31)],
)
def test_a_number_beyond_all_use_is_refused(key, value):
    with pytest.raises(UsageError, match=f"^setting {key}: .* got "):
        distribute({key: value}, {"training": TrainingSettings})
    assert TrainingSettings(learning_rate=10**30).learning_rate == 1e30


def test_two_values_for_one_setting_are_refused():
    assert parse_assignments(["rank=4", "rank=4"]) == {"rank": 4}
    with pytest.raises(UsageError, match=r"^--set rank is given twice, as 4 and 5$"):
        parse_assignments(["rank=4", "rank=5"])
