"""What training depends on: frozen at its time, and the same bits after any interruption."""

import warnings

import pytest
import torch
from lightning_fabric import Fabric
from torch import nn

import lorpman as lp
from lorpman.training import checkpoint
from lorpman.training.options import Placement
from lorpman.training.state import TrainingState, load_weights
from properties import assert_frozen_do_not_move, assert_resumes_to_the_same_bits
from small_training import (
    Stopped,
    exactly,
    fit_small,
    fit_with_all_state,
    make_loader,
    make_model,
    make_network,
    make_random_loader,
    same_weights,
    stopping_after,
)

GOLDEN = 0x9E3779B97F4A7C15


@pytest.fixture
def path(tmp_path):
    return tmp_path / "c.safetensors"


def _seed_of_rank(monkeypatch, rank, own_preferences, seed=5):
    monkeypatch.setattr(Fabric, "global_rank", property(lambda self: rank))
    placement = Placement(own_preferences=own_preferences)
    return TrainingState(make_model(), placement=placement, seed=seed).generator.initial_seed()


def test_processes_draw_preferences_of_their_own_if_asked(monkeypatch):
    assert _seed_of_rank(monkeypatch, 0, True) == 5
    assert _seed_of_rank(monkeypatch, 1, True) == (5 + GOLDEN) % 2**63
    assert _seed_of_rank(monkeypatch, 3, True, seed=7) == (7 + 3 * GOLDEN) % 2**63
    assert _seed_of_rank(monkeypatch, 3, False) == 5


def test_without_a_seed_torch_decides():
    model, seeds = make_model(), []
    for start in (1, 1, 2):
        torch.manual_seed(start)
        seeds.append(TrainingState(model).generator.initial_seed())
    assert seeds[0] == seeds[1] != seeds[2]
    assert min(seeds) > 2**40  # from the whole range


def test_the_default_is_linear_scalarisation():
    default, _ = fit_small()
    linear, _ = fit_small(objective=lp.Linear())
    assert same_weights(default, linear)


def test_a_rule_is_prepared_for_the_model():
    class Prepared(lp.Linear):
        def prepare(self, model):
            self.model = [model]

    model, rule = make_model(), Prepared()
    TrainingState(model, rule)
    assert rule.model[0] is model


def test_the_mean_loss_is_over_steps_and_preferences():
    state = TrainingState(make_model())
    state.finish_step(torch.tensor([[1.0, 2.0], [3.0, 6.0]]))
    state.finish_step(torch.tensor([[4.0, 0.0], [4.0, 0.0]]))
    assert state.steps == 2
    assert state.losses.tolist() == [6.0, 4.0]
    state.seconds = 3.0
    assert state.finish_epoch() == [3.0, 2.0]
    assert (state.epoch, state.steps, state.seconds) == (1, 0, 0.0)
    assert state.losses.tolist() == [0.0, 0.0]
    assert state.batches is None


def test_an_epoch_without_a_step_is_refused():
    with pytest.raises(lp.UsageError, match=exactly("the loader is empty: nothing to train on")):
        TrainingState(make_model()).finish_epoch()


def test_a_plateau_is_one_of_the_sum_of_all_losses():
    class Noted(torch.optim.lr_scheduler.ReduceLROnPlateau):
        def step(self, metrics):
            seen.append(metrics)

    seen = []
    _, history = fit_small(scheduler=Noted)
    assert seen == pytest.approx([sum(epoch.losses.values()) for epoch in history])


def test_a_rule_can_ask_for_more_data_only_within_an_epoch():
    with pytest.raises(AssertionError, match="no step outside an epoch"):
        TrainingState(make_model()).another_batch()


def test_batches_are_taken_in_training_mode():
    model = make_model().eval()
    state = TrainingState(model)
    batches = state.remaining_batches(make_loader())
    assert model.training
    assert state.remaining_batches(make_loader()) is batches


def _snapshots(model, **options):
    seen = []

    def look(record):
        seen.append({name: p.detach().clone() for name, p in model.named_parameters()})

    _, history = fit_small(model, on_epoch=look, **options)
    return seen, [record.frozen for record in history]


@pytest.mark.parametrize("heads", [False, True])
def test_freezing_really_stops_theta_0(heads):
    """Weight decay and momentum would move what only lacks a gradient."""
    model, made = make_model(), []

    def adam(parameters):
        made.append(torch.optim.Adam(parameters, lr=1e-2, weight_decay=0.1))
        return made[0]

    options = {"freeze_heads": True} if heads else {}
    seen, frozen = _snapshots(model, epochs=4, freeze_epoch=2, optimizer=adam, **options)
    assert frozen == [False, False, True, True]
    still = ("network.",) if heads else ("network.bottom.",)
    assert_frozen_do_not_move(seen[1], seen[3], lambda name: name.startswith(still))
    assert_frozen_do_not_move(seen[0], seen[1], lambda name: False)
    held = {id(p) for group in made[0].param_groups for p in group["params"]}
    bottom = {id(p) for p in model.network.bottom.parameters()}
    assert not held & bottom
    assert not {id(p) for p in made[0].state} & bottom


def test_frozen_from_the_first_step_leaves_the_given_weights():
    network = make_network()
    model, history = fit_small(lp.LowRank(network, 2), freeze_epoch=0)
    for name, value in network.bottom.named_parameters():
        assert torch.equal(value, dict(model.network.bottom.named_parameters())[name])
    assert all(record.frozen for record in history)


def test_a_frozen_model_stays_frozen_and_says_so():
    model, _ = fit_small(freeze_epoch=1)
    before = model.network.bottom[0].weight.detach().clone()
    _, history = fit_small(model)
    assert torch.equal(before, model.network.bottom[0].weight)
    assert all(record.frozen for record in history)


def test_a_model_may_shrink_before_the_first_step_of_an_epoch_only(monkeypatch):
    state, asked = TrainingState(make_model()), []
    monkeypatch.setattr(
        state.model, "begin_epoch", lambda epoch, epochs: asked.append((epoch, epochs)) or {}
    )
    state.begin_epoch(7, None, False)
    state.steps = 1
    state.begin_epoch(7, None, False)
    state.steps, state.epoch = 0, 1
    state.begin_epoch(7, None, False)
    assert asked == [(0, 7), (1, 7)]


def test_what_shrinks_takes_optimiser_and_mean_with_it():
    options = {"rank": "auto", "budget": 40}
    model = make_model(**options)
    before = sum(p.numel() for p in model.parameters())
    fit_small(model, epochs=4, averaging=0.5)
    assert sum(p.numel() for p in model.parameters()) < before


@pytest.mark.parametrize("stop", [1, 2, 3])
def test_a_run_resumed_after_an_epoch_equals_an_uninterrupted_one(path, stop):
    def fit(model, **more):
        return fit_small(
            model,
            epochs=4,
            freeze_epoch=2,
            scheduler=lambda o: torch.optim.lr_scheduler.CosineAnnealingLR(o, 4),
            objective=lp.Linear() + lp.Orthogonality(),
            **more,
        )

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert_resumes_to_the_same_bits(make_model, fit, path, stop)


@pytest.mark.parametrize("own_generator", [True, False])
@pytest.mark.parametrize("after", [1, 2, 5, 6, 7, 11, 13, 17])
def test_interrupted_at_any_step_and_resumed(path, after, own_generator):
    """Six steps in an epoch, the main weights frozen after twelve."""

    def fit(*args, **more):
        objective = {} if own_generator else {"objective": lp.Linear() + lp.Orthogonality()}
        return fit_with_all_state(*args, **objective, **more)

    whole, records = fit(loader=make_random_loader(own_generator))
    with pytest.raises(Stopped):
        fit(
            path,
            make_random_loader(own_generator),
            checkpoint_every=1,
            sampler=stopping_after(after),
        )
    saved = checkpoint.load(path)
    assert saved["epochs_done"] * 6 + saved["steps_done"] == after
    torch.manual_seed(99)
    resumed, later = fit(path, make_random_loader(own_generator), resume=True)
    assert same_weights(whole, resumed)
    assert [(r.number, r.losses, r.learning_rate, r.frozen) for r in later] == [
        (r.number, r.losses, r.learning_rate, r.frozen) for r in records[-len(later) :]
    ]
    assert len(later) == 3 - after // 6


def test_time_before_an_interruption_counts(path):
    with pytest.raises(Stopped):
        fit_small(sampler=stopping_after(2), checkpoint=path, checkpoint_every=1)
    content = checkpoint.load(path)
    assert 0 < content["seconds"] < 60
    content["seconds"] = 1000.0
    checkpoint.save(content, path)
    _, history = fit_small(checkpoint=path, resume=True)
    assert 1000 < history[0].seconds < 1060
    assert history[1].seconds < 60


def test_a_schedule_of_steps_goes_on_where_it_was(path):
    def fit(*args, **options):
        scheduler = torch.optim.lr_scheduler.OneCycleLR
        make = {"scheduler": lambda o: scheduler(o, 0.01, total_steps=19)}
        return fit_with_all_state(*args, scheduler_interval="step", **make, **options)[0]

    with pytest.raises(Stopped):
        fit(path, sampler=stopping_after(7), checkpoint_every=1)
    message = (
        f"the schedule of checkpoint {path} moves with every step, and this one with every epoch; "
        "resume with the settings it was begun with"
    )
    with pytest.raises(lp.UsageError, match=exactly(message)):
        fit_with_all_state(path, resume=True)
    assert same_weights(fit(path, resume=True), fit())


def test_resuming_another_network_is_refused(path):
    fit_small(checkpoint=path)
    said = rf"^checkpoint {path} is of another network: \S.*rank|size mismatch for"
    with pytest.raises(lp.UsageError, match=said) as refused:
        fit_small(make_model(rank=2), checkpoint=path, resume=True)
    assert "\n" not in str(refused.value)


def test_the_first_weight_that_does_not_fit_is_named(path):
    message = f"checkpoint {path} is of another network: size mismatch for weight: "
    with pytest.raises(lp.UsageError) as refused:
        load_weights(nn.Linear(2, 2), nn.Linear(3, 2).state_dict(), path)
    assert str(refused.value).startswith(message)

    class Refuses(nn.Linear):
        def load_state_dict(self, weights):
            raise RuntimeError("not these")

    message = f"checkpoint {path} is of another network: not these"
    with pytest.raises(lp.UsageError, match=exactly(message)):
        load_weights(Refuses(2, 2), {}, path)


def _edited(path, **changes):
    content = {**checkpoint.load(path), **changes}
    checkpoint.save({k: v for k, v in content.items() if v != "absent"}, path)


def test_checkpoints_that_cannot_be_continued_are_refused(path):
    fit_small(checkpoint=path)
    mine = checkpoint.load(path)["processes"]
    _edited(path, processes=mine * 2)
    message = f"checkpoint {path} is of 2 processes, found 1; resume with as many devices as before"
    with pytest.raises(lp.UsageError, match=exactly(message)):
        fit_small(checkpoint=path, resume=True)
    _edited(path, processes="absent")
    message = f"checkpoint {path} is of another version and cannot be resumed"
    with pytest.raises(lp.UsageError, match=exactly(message)):
        fit_small(checkpoint=path, resume=True)


def test_checkpoints_from_before_some_fields_go_on(path):
    whole, _ = fit_with_all_state()
    with pytest.raises(Stopped):
        fit_with_all_state(path, sampler=stopping_after(7), checkpoint_every=1)
    _edited(path, averaging="absent", last_rate="absent", scheduler_interval="absent")
    assert same_weights(fit_with_all_state(path, resume=True)[0], whole)


def test_without_resume_a_checkpoint_is_written_over(path):
    first, _ = fit_small(checkpoint=path)
    second, history = fit_small(checkpoint=path)
    assert len(history) == 3
    assert same_weights(first, second)


def test_there_need_be_nothing_to_resume_from(path):
    assert same_weights(fit_small(checkpoint=path, resume=True)[0], fit_small()[0])
    assert path.exists()


def test_a_damaged_checkpoint_costs_one_epoch(path):
    whole, _ = fit_with_all_state(path)
    path.write_bytes(path.read_bytes()[:-100])
    with pytest.warns(checkpoint.CheckpointWarning, match="continuing from the one before"):
        resumed, history = fit_with_all_state(path, resume=True)
    assert [record.number for record in history] == [3]
    assert same_weights(whole, resumed)
