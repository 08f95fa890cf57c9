"""Training by Lightning's Trainer."""

import subprocess
import sys

import pytest
import torch

import lorpman as lp
from lorpman.errors import TrainingDiverged, UsageError
from lorpman.lab.datasets.splits import batches
from small_training import (
    exactly,
    make_data,
    make_loader,
    make_model,
    make_tasks,
    same_weights,
)

pl = pytest.importorskip("pytorch_lightning")
from lorpman.integrations.lightning import ParetoModule  # noqa: E402

# Of Lightning, about workers of loaders and short epochs; and of what it imports.
pytestmark = pytest.mark.filterwarnings("ignore")


def _fit(module, epochs=3, validation=None, loader=None, **options):
    options = {"logger": False, "enable_checkpointing": False, **options}
    trainer = pl.Trainer(
        max_epochs=epochs,
        accelerator="cpu",
        enable_progress_bar=False,
        enable_model_summary=False,
        **options,
    )
    trainer.fit(module, loader or make_loader(), validation)
    return trainer


def _without_dropout():
    """Lightning draws from torch's global generator too, so dropout would differ."""
    model = make_model()
    model.network.bottom[3].p = 0.0
    return model


def _adam(parameters):
    return torch.optim.Adam(parameters, 1e-2)


def test_the_weights_are_those_of_fit():
    """The same preferences, batches and steps: the same bits."""
    loader = batches(make_data(), 20)  # in order: Lightning starts shuffling loaders more often
    options = {"optimizer": _adam, "freeze_epoch": 2, "seed": 5}
    objective = lp.Linear() + lp.MultiForward() + lp.Orthogonality()
    module = ParetoModule(_without_dropout(), make_tasks(), objective=objective, **options)
    _fit(module, loader=loader)
    model = _without_dropout()
    options |= {"epochs": 3, "progress": False}
    lp.fit(model, make_tasks(), loader, objective=objective, **options)
    assert same_weights(module.model, model)


def test_after_the_freeze_epoch_the_main_weights_stay(monkeypatch):
    module = ParetoModule(make_model(), make_tasks(), optimizer=_adam, freeze_epoch=1)
    seen = []
    weight = module.model.network.bottom[0].weight
    monkeypatch.setattr(module, "on_train_epoch_end", lambda: seen.append(weight.detach().clone()))
    start = weight.detach().clone()
    trainer = _fit(module)
    assert module.model.frozen
    assert not torch.equal(seen[0], start)
    assert torch.equal(seen[1], seen[0])
    assert torch.equal(seen[2], seen[0])
    (optimizer,) = trainer.optimizers
    held = {id(p) for group in optimizer.param_groups for p in group["params"]}
    assert id(weight) not in held
    assert weight not in optimizer.state


def test_the_hypervolume_of_the_validation_front_is_logged():
    module = ParetoModule(make_model(), make_tasks(), optimizer=_adam)
    trainer = _fit(module, validation=make_loader())
    front = lp.evaluate(module.model, make_tasks(), make_loader())
    assert torch.allclose(module.front.scores, front.scores)
    assert float(trainer.callback_metrics["hypervolume"]) == pytest.approx(
        float(front.hypervolume()), rel=1e-5
    )
    assert {"loss/left", "loss/right"} <= set(trainer.callback_metrics)


def test_callbacks_can_watch_the_hypervolume(tmp_path):
    saver = pl.callbacks.ModelCheckpoint(tmp_path, monitor="hypervolume", mode="max")
    module = ParetoModule(make_model(), make_tasks(), optimizer=_adam)
    _fit(module, validation=make_loader(), enable_checkpointing=True, callbacks=[saver])
    assert saver.best_model_score > 0
    saved = torch.load(saver.best_model_path, weights_only=True)["state_dict"]
    again = ParetoModule(make_model(), make_tasks())
    again.load_state_dict(saved)
    assert float(lp.evaluate(again.model, make_tasks(), make_loader()).hypervolume()) == (
        pytest.approx(float(saver.best_model_score), rel=1e-5)
    )


def test_gradient_balancers_train_too():
    model = lp.Single(make_model().network, 2)
    before = [p.detach().clone() for p in model.parameters()]
    _fit(ParetoModule(model, make_tasks(), objective=lp.rules.MGDA(), optimizer=_adam), epochs=1)
    assert any(not torch.equal(a, b) for a, b in zip(before, model.parameters(), strict=True))


def test_a_loss_that_is_not_finite_ends_training():
    tasks = make_tasks()
    broken = lp.Task("broken", lambda output, target: output.mean() * torch.nan, tasks[0].score)
    with pytest.raises(TrainingDiverged, match="NaN or infinite in epoch 1"):
        _fit(ParetoModule(make_model(), [tasks[0], broken]))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"window": 0}, "window must be at least 1, got 0"),
        (
            {"tasks": 1},
            "the model was built for num_tasks=2, but 1 tasks were given; give one Task per task",
        ),
    ],
)
def test_bad_input_is_refused(options, message):
    tasks = make_tasks()[: options.pop("tasks", 2)]
    with pytest.raises(UsageError, match=exactly(message)):
        ParetoModule(make_model(), tasks, **options)


def test_lightning_is_imported_only_when_it_is_used():
    check = "import sys, lorpman; sys.exit('pytorch_lightning' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", check]).returncode == 0
