import dataclasses

import pytest
import torch
from lightning_fabric import Fabric

import lorpman as lp
from lorpman.lab.datasets.splits import batches
from lorpman.training.options import Checkpoints, Placement, Validation, group_options
from small_training import exactly, fit_small, make_data, make_loader, same_weights


def test_the_defaults_are_one_process_and_no_file():
    groups = group_options(None, None, None)
    assert groups.placement == Placement(fabric=None, own_preferences=False, compiled=False)
    assert groups.checkpoints == Checkpoints(path=None, every=None, resume=False)
    assert groups.validation is None


def test_flat_keywords_land_in_their_groups():
    fabric, loader, alphas = object(), [1], torch.eye(2)
    groups = group_options(
        None,
        "c.safetensors",
        loader,
        fabric=fabric,
        own_preferences=True,
        compiled=True,
        checkpoint_every=3,
        resume=True,
        validation_alphas=alphas,
    )
    assert groups.placement == Placement(fabric, True, True)
    assert groups.checkpoints == Checkpoints("c.safetensors", 3, True)
    assert groups.validation.loader is loader
    assert groups.validation.alphas is alphas


def test_objects_are_taken_as_they_are():
    placement, checkpoints, validation = Placement(), Checkpoints("c"), Validation([])
    groups = group_options(placement, checkpoints, validation)
    assert groups.placement is placement
    assert groups.checkpoints is checkpoints
    assert groups.validation is validation


def test_groups_and_flat_keywords_train_bit_for_bit_alike(tmp_path):
    """The whole of what training leaves: weights, history and checkpoint."""
    data, alphas = list(batches(make_data(), 30)), lp.grid(2, 5)
    flat, flat_history = fit_small(
        fabric=Fabric(accelerator="cpu", devices=1),
        own_preferences=True,
        checkpoint=tmp_path / "flat.safetensors",
        checkpoint_every=2,
        resume=False,
        validation=data,
        validation_alphas=alphas,
    )
    grouped, grouped_history = fit_small(
        placement=Placement(Fabric(accelerator="cpu", devices=1), own_preferences=True),
        checkpoint=Checkpoints(tmp_path / "grouped.safetensors", every=2),
        validation=Validation(data, alphas),
    )
    assert same_weights(flat, grouped)
    for ours, theirs in zip(flat_history, grouped_history, strict=True):
        assert ours.losses == theirs.losses
        assert ours.hypervolume == theirs.hypervolume


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"placement": Placement(), "fabric": None}, "fabric belongs into placement"),
        (
            {"placement": Placement(), "own_preferences": True},
            "own_preferences belongs into placement",
        ),
        ({"placement": Placement(), "compiled": False}, "compiled belongs into placement"),
        (
            {"checkpoint": Checkpoints(), "checkpoint_every": 2},
            "checkpoint_every belongs into Checkpoints",
        ),
        ({"checkpoint": Checkpoints(), "resume": True}, "resume belongs into Checkpoints"),
        (
            {"validation": Validation([]), "validation_alphas": None},
            "validation_alphas belongs into Validation",
        ),
    ],
)
def test_a_keyword_beside_its_object_is_refused(options, message):
    with pytest.raises(
        lp.UsageError, match=exactly(f"{message}, which was given too; put it there")
    ):
        fit_small(**options)


def test_a_keyword_beside_another_group_is_no_conflict():
    groups = group_options(Placement(), Checkpoints(), [1], validation_alphas=None)
    assert groups.validation == Validation([1])


def test_an_unknown_keyword_is_a_type_error():
    message = "fit() got an unexpected keyword argument 'epoch'"
    with pytest.raises(TypeError, match=exactly(message)):
        lp.fit(None, [], make_loader(), epochs=1, epoch=1, window_size=3)


@pytest.mark.parametrize("every", [0, -2])
def test_checkpoints_between_less_than_one_step_are_refused(every):
    message = f"checkpoint_every must be a whole number of at least 1 step, got {every}"
    with pytest.raises(lp.UsageError, match=exactly(message)):
        Checkpoints("c", every)
    assert Checkpoints("c", 1).every == 1


@pytest.mark.parametrize("group", [Checkpoints(), Placement(), Validation([])])
def test_a_group_does_not_change(group):
    """It may serve several trainings."""
    name = dataclasses.fields(group)[0].name
    with pytest.raises(dataclasses.FrozenInstanceError):
        setattr(group, name, None)
