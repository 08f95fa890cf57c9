"""The examples of loops that people already have run as they stand."""

import pytest


@pytest.fixture(scope="module")
def few_epochs():
    """A third of what the examples train: enough to be better than guessing."""
    return 10


def test_a_plain_loop(few_epochs, capsys):
    import plain_loop

    front = plain_loop.main(few_epochs)
    assert front.hypervolume() > 0.4
    assert "hypervolume 0." in capsys.readouterr().out


@pytest.mark.filterwarnings("ignore")
def test_lightning(few_epochs):
    pytest.importorskip("pytorch_lightning")
    import lightning_trainer

    quiet = {"logger": False, "enable_checkpointing": False, "enable_progress_bar": False}
    module = lightning_trainer.main(few_epochs, **quiet)
    assert module.front.hypervolume() > 0.4
    assert module.model.frozen


@pytest.mark.filterwarnings("ignore")
def test_accelerate(few_epochs):
    accelerate = pytest.importorskip("accelerate")
    import accelerate_loop

    front = accelerate_loop.main(few_epochs, accelerate.Accelerator(cpu=True))
    assert front.hypervolume() > 0.4
