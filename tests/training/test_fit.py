import copy
import math
import warnings

import pytest
import torch
from torch import nn
from torch.nn import functional as F

import lorpman as lp
from lorpman.lab.datasets.splits import Arrays, batches
from properties import assert_frozen_do_not_move


def _tasks():
    options = {"maximise": False, "reference": 10.0}
    return [lp.Task(name, F.mse_loss, F.mse_loss, **options) for name in ("left", "right")]


def _network():
    torch.manual_seed(1)
    bottom = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.Tanh(), nn.Dropout(0.1))
    return lp.SharedBottom(bottom, [nn.Linear(8, 1), nn.Linear(8, 1)])


def _data(n=60):
    generator = torch.Generator().manual_seed(2)
    x = torch.randn(n, 4, generator=generator)
    return Arrays(x, [x[:, :1].clone(), -x[:, :1].clone()])


def _loader(seed=3):
    generator = torch.Generator().manual_seed(seed)
    return batches(_data(), 20, shuffle=True, generator=generator)


def _fit(model=None, **options):
    model = model or lp.LowRank(_network(), 2)
    torch.manual_seed(4)
    defaults = {"epochs": 3, "progress": False, "seed": 5}
    history = lp.fit(model, _tasks(), _loader(), **{**defaults, **options})
    return model, history


def _same(left, right):
    return all(torch.equal(a, b) for a, b in zip(left.values(), right.values(), strict=True))


def test_training_lowers_every_loss():
    _, history = _fit(epochs=40, optimizer=lambda p: torch.optim.Adam(p, lr=1e-2))
    assert [record.number for record in history] == list(range(1, 41))
    for task in ("left", "right"):
        assert history[-1].losses[task] < 0.8 * history[0].losses[task]


def test_conflicting_tasks_are_traded_by_alpha():
    class Same(nn.Module):
        """One output for two tasks that want opposite values of it."""

        def __init__(self):
            super().__init__()
            self.layer = nn.Linear(4, 1)

        def forward(self, x):
            return [self.layer(x)] * 2

    model, _ = _fit(
        lp.LowRank(Same(), 2, rank=1), epochs=150, optimizer=lambda p: torch.optim.Adam(p, lr=0.02)
    )
    front = lp.evaluate(model, _tasks(), batches(_data(), 60), lp.grid(2, 3))
    # The best output is (alpha_1 - alpha_2) x, so the losses are 4 alpha_2^2 and 4 alpha_1^2.
    size = _data().x[:, 0].square().mean()
    expected = size * torch.tensor([[4.0, 0.0], [1.0, 1.0], [0.0, 4.0]])
    torch.testing.assert_close(front.scores.float(), expected, atol=0.1, rtol=0.1)


def test_the_same_seed_repeats_bit_by_bit():
    first, second = _fit()[0].state_dict(), _fit()[0].state_dict()
    assert _same(first, second)
    assert not _same(first, _fit(seed=6)[0].state_dict())


def test_freezing_really_stops_theta_0():
    seen = []
    model = lp.LowRank(_network(), 2)
    made = []

    def adam(parameters):
        made.append(torch.optim.Adam(parameters, lr=1e-2, weight_decay=0.1))
        return made[0]

    def note(record):
        parameters = {**dict(model.named_parameters())}
        seen.append({name: p.detach().clone() for name, p in parameters.items()})
        assert record.frozen is (record.number > 2)

    _fit(model, epochs=4, freeze_epoch=2, optimizer=adam, on_epoch=note)
    assert_frozen_do_not_move(seen[1], seen[3], lambda name: name.startswith("network.bottom"))
    held = {id(p) for group in made[0].param_groups for p in group["params"]}
    frozen = {id(p) for p in model.network.bottom.parameters()}
    assert not held & frozen
    assert not {id(p) for p in made[0].state} & frozen


def test_frozen_from_the_first_step_leaves_the_given_weights():
    network = _network()
    model, _ = _fit(lp.LowRank(network, 2), freeze_epoch=0)
    for name, value in network.bottom.named_parameters():
        assert torch.equal(value, dict(model.network.bottom.named_parameters())[name])


@pytest.mark.parametrize(
    "optimizer",
    [
        lambda p: torch.optim.SGD(p, lr=1e-2, momentum=0.9),
        lambda p: torch.optim.AdamW(p, lr=1e-3),
        lambda p: torch.optim.RMSprop(p, lr=1e-3),
    ],
)
def test_any_optimiser(optimizer):
    _, history = _fit(optimizer=optimizer)
    assert history[-1].losses["left"] < history[0].losses["left"]


def test_an_optimiser_of_ones_own():
    model = lp.LowRank(_network(), 2)
    before = model.network.bottom[0].weight.detach().clone()
    _fit(model, optimizer=torch.optim.SGD(model.parameters(), lr=0.1))
    assert not torch.equal(before, model.network.bottom[0].weight)


def test_an_optimiser_of_the_users_network_is_refused():
    network = _network()
    with pytest.raises(lp.UsageError, match=r"make the optimizer from model.parameters\(\)"):
        _fit(lp.LowRank(network, 2), optimizer=torch.optim.SGD(network.parameters(), lr=0.1))


def test_schedulers_step_once_per_epoch():
    _, history = _fit(scheduler=lambda o: torch.optim.lr_scheduler.StepLR(o, 1, gamma=0.5))
    rates = [record.learning_rate for record in history]
    assert rates == pytest.approx([1e-3, 5e-4, 2.5e-4])
    plateau = torch.optim.lr_scheduler.ReduceLROnPlateau
    _fit(scheduler=lambda o: plateau(o, patience=0))


def test_schedulers_can_move_with_every_step():
    moved = {"scheduler": lambda o: torch.optim.lr_scheduler.StepLR(o, 1, gamma=0.5)}
    _, history = _fit(scheduler_interval="step", **moved)
    steps = len(_loader())
    rates = [record.learning_rate for record in history]
    assert rates == pytest.approx([1e-3 / 2 ** (steps * epoch - 1) for epoch in (1, 2, 3)])
    plateau = torch.optim.lr_scheduler.ReduceLROnPlateau
    with pytest.raises(lp.UsageError, match="ReduceLROnPlateau looks at the loss of an epoch"):
        _fit(scheduler=plateau, scheduler_interval="step")
    with pytest.raises(lp.UsageError, match="unknown scheduler_interval 'stp'"):
        _fit(scheduler_interval="stp")


def test_validation_reports_hypervolume():
    model, history = _fit(validation=batches(_data(), 30))
    front = lp.evaluate(model, _tasks(), batches(_data(), 60))
    assert history[-1].hypervolume == pytest.approx(float(front.hypervolume()), rel=1e-6)


@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_a_loss_that_is_not_finite_stops_the_run(bad):
    data = _data()
    data.targets[1][:] = bad
    model = lp.LowRank(_network(), 2)
    before = {n: p.detach().clone() for n, p in model.named_parameters()}
    with pytest.raises(
        lp.TrainingDiverged, match=r"task 'right' .* epoch 1, step 1, preference \("
    ):
        lp.fit(model, _tasks(), batches(data, 20), epochs=1, progress=False)
    assert _same(before, dict(model.named_parameters()))


def test_per_task_inputs_and_mappings():
    class Network(nn.Module):
        def __init__(self):
            super().__init__()
            self.shared = nn.Linear(4, 1)

        def forward(self, x):
            return {"left": self.shared(x[0]), "right": self.shared(x[1])}

    x = [torch.randn(5, 4), torch.randn(3, 4)]
    loader = [(x, {"right": torch.zeros(3, 1), "left": torch.zeros(5, 1)})] * 2
    history = lp.fit(lp.LowRank(Network(), 2), _tasks(), loader, epochs=2, progress=False)
    assert history[1].losses["left"] < history[0].losses["left"]


@pytest.mark.parametrize(
    ("network", "message"),
    [
        (nn.Linear(4, 3), "must hold one entry per task"),
        (lp.SharedBottom(nn.Linear(4, 3), [nn.Linear(3, 1)] * 2), None),
        (nn.Sequential(nn.Linear(4, 2), nn.Flatten(0)), "must hold one entry per task"),
    ],
)
def test_a_network_whose_output_does_not_match_the_tasks(network, message):
    model = lp.LowRank(network, 2)
    if message is None:
        _fit(model, epochs=1)
    else:
        with pytest.raises(lp.UsageError, match=message):
            _fit(model, epochs=1)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"epochs": 0}, "epochs must be at least 1"),
        ({"window": 0}, "window must be at least 1"),
        ({"freeze_epoch": -1}, "freeze_epoch must be 0 or more"),
        ({"concentration": 0.0}, "concentration must be positive"),
    ],
)
def test_bad_settings_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        _fit(**options)


@pytest.mark.parametrize(
    ("loader", "message"),
    [
        ([], "the loader is empty"),
        ([(torch.zeros(2, 4), torch.zeros(2, 1), torch.zeros(2, 1))], "found 3 parts"),
        ([torch.zeros(2, 4)], r"a batch must be \(x, y\)"),
        ([(torch.zeros(2, 4), [torch.zeros(2, 1)])], "one entry per task"),
    ],
)
def test_bad_loaders_are_refused(loader, message):
    with pytest.raises(lp.UsageError, match=message):
        lp.fit(lp.LowRank(_network(), 2), _tasks(), loader, epochs=1, progress=False)


def test_tasks_must_fit_the_model():
    with pytest.raises(lp.UsageError, match="num_tasks=3, but 2 tasks"):
        lp.fit(lp.LowRank(nn.Linear(4, 3), 3), _tasks(), _loader(), epochs=1)


@pytest.mark.parametrize("stop", [1, 2, 3])
def test_a_resumed_run_equals_an_uninterrupted_one(tmp_path, stop):
    class Stopped(Exception):
        pass

    def interrupt(record):
        # Told of an epoch before it is saved: this one is lost.
        if record.number == stop + 1:
            raise Stopped

    options = {
        "epochs": 4,
        "freeze_epoch": 2,
        "scheduler": lambda o: torch.optim.lr_scheduler.CosineAnnealingLR(o, 4),
        "objective": lp.Linear() + lp.Orthogonality(),
    }
    path = tmp_path / "checkpoint.safetensors"
    whole, _ = _fit(**options)
    with pytest.raises(Stopped):
        _fit(**options, checkpoint=path, on_epoch=interrupt)
    torch.manual_seed(99)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        resumed, history = _fit(**options, checkpoint=path, resume=True)
    assert [record.number for record in history] == list(range(stop + 1, 5))
    assert _same(whole.state_dict(), resumed.state_dict())


def test_resuming_another_network_is_refused(tmp_path):
    path = tmp_path / "checkpoint.safetensors"
    _fit(checkpoint=path)
    with pytest.raises(lp.UsageError, match="of another network"):
        _fit(lp.LowRank(_network(), 2, rank=2), checkpoint=path, resume=True)


class Wrapped(dict):
    """A mapping that no one has told pytree about."""


def test_an_output_that_cannot_be_split_is_refused():
    class Network(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.Linear(4, 1)

        def forward(self, x):
            return Wrapped(left=self.layer(x), right=self.layer(x))

    with pytest.raises(lp.UsageError, match="holds a Wrapped, which cannot be split"):
        _fit(lp.LowRank(Network(), 2), epochs=1)


def test_an_optimiser_without_the_deltas_is_refused():
    model = lp.LowRank(_network(), 2)
    partial = torch.optim.SGD(model.network.parameters(), lr=0.1)
    with pytest.raises(lp.UsageError, match=r"lacks .* among them deltas"):
        _fit(model, optimizer=partial)


def test_a_scheduler_of_another_optimiser_is_refused():
    model = lp.LowRank(_network(), 2)
    other = torch.optim.SGD(model.parameters(), lr=0.1)
    with pytest.raises(lp.UsageError, match="moves another optimizer"):
        _fit(model, scheduler=torch.optim.lr_scheduler.StepLR(other, 1))


def test_an_optimiser_that_needs_a_closure_is_refused():
    with pytest.raises(lp.UsageError, match="LBFGS evaluates the loss several times"):
        _fit(optimizer=torch.optim.LBFGS)


def test_a_frozen_model_stays_frozen_and_says_so():
    model, _ = _fit(freeze_epoch=1)
    before = model.network.bottom[0].weight.detach().clone()
    _, history = _fit(model)
    assert torch.equal(before, model.network.bottom[0].weight)
    assert all(record.frozen for record in history)


def test_a_loader_that_one_pass_uses_up_is_refused():
    model = lp.LowRank(_network(), 2)
    with pytest.raises(lp.UsageError, match="iterable more than once, found a generator"):
        lp.fit(model, _tasks(), (batch for batch in _loader()), epochs=2, progress=False)
    with pytest.raises(lp.UsageError, match="iterable more than once"):
        lp.evaluate(model, _tasks(), iter([]))


@pytest.mark.parametrize("precision", ["bf16-mixed", "bf16-true"])
def test_reduced_precision(precision):
    from lightning_fabric import Fabric

    fabric = Fabric(accelerator="cpu", devices=1, precision=precision)
    model, history = _fit(fabric=fabric, validation=batches(_data(), 30))
    assert history[-1].hypervolume > 0
    assert model.network.bottom[0].weight.isfinite().all()


def test_task_names_are_not_markup(capsys):
    tasks = [lp.Task(name, F.mse_loss, F.mse_loss, False, 10.0) for name in ("v [m/s]", "r [/s]")]
    lp.fit(lp.LowRank(_network(), 2), tasks, _loader(), epochs=1)
    assert "v [m/s] " in capsys.readouterr().err


def test_a_task_is_checked_when_it_is_made():
    with pytest.raises(lp.UsageError, match="maximise must be True or False"):
        lp.Task("a", F.mse_loss, F.mse_loss, maximise=1)
    with pytest.raises(lp.UsageError, match="must be finite"):
        lp.Task("a", F.mse_loss, F.mse_loss, reference=math.nan)


def test_a_batch_of_three_parts_is_refused_by_both_verbs():
    batch = [(torch.zeros(2, 4), torch.zeros(2, 1), torch.zeros(2, 1))]
    with pytest.raises(lp.UsageError, match="found 3 parts"):
        lp.evaluate(lp.LowRank(_network(), 2), _tasks(), batch)


def test_a_score_may_be_a_plain_number():
    def score(output, target):
        return (output - target).abs().mean().item()

    tasks = [lp.Task(name, F.mse_loss, score, False, 10.0) for name in ("left", "right")]
    assert lp.evaluate(lp.LowRank(_network(), 2), tasks, batches(_data(), 30)).hypervolume() > 0


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # of the compiler itself
def test_compiled_networks_train_alike_through_the_freeze_epoch():
    from torch._dynamo.utils import counters

    start = lp.LowRank(_network(), 2)
    start.network.bottom[3].p = 0.0  # the compiler draws other random numbers
    _, plain = _fit(copy.deepcopy(start), freeze_epoch=1, epochs=2)
    counters.clear()
    _, compiled = _fit(start, freeze_epoch=1, epochs=2, compiled=True)
    assert counters["stats"]["unique_graphs"] > 0
    for ours, expected in zip(compiled, plain, strict=True):
        assert ours.losses == pytest.approx(expected.losses, rel=1e-5)
    assert compiled[1].frozen
