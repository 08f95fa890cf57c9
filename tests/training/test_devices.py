import logging

import pytest
from lightning_fabric import Fabric

import lorpman as lp
from lorpman.training import devices
from lorpman.training.devices import Engine, is_first_process
from small_training import exactly

FSDP = "it cuts weights into pieces, but theta(alpha) is computed from whole ones"
DEEPSPEED = "it replaces the optimiser, but freezing must take theta_0 out of it"


@pytest.fixture(autouse=True)
def _alone(monkeypatch):
    for name in (
        *["TORCHELASTIC_RUN_ID", "RANK", "LOCAL_RANK", "NODE_RANK", "MASTER_ADDR", "MASTER_PORT"],
        *["SLURM_NTASKS", "LSB_JOBID", "WORLD_SIZE", "LOCAL_WORLD_SIZE"],
    ):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def torchrun(monkeypatch):
    """The environment of one process of two on each of three machines."""
    for name, value in {"LOCAL_WORLD_SIZE": 2, "WORLD_SIZE": 6, "TORCHELASTIC_RUN_ID": 1}.items():
        monkeypatch.setenv(name, str(value))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"strategy": "fsdp"}, f"strategy fsdp cannot be used: {FSDP}; use ddp"),
        (
            {"strategy": "deepspeed_stage_2"},
            f"strategy deepspeed_stage_2 cannot be used: {DEEPSPEED}; use ddp",
        ),
        ({"strategy": "dpp"}, "unknown strategy 'dpp'; did you mean 'ddp'? known: auto, ddp"),
        (
            {"precision": "8"},
            "unknown precision '8'; known: 16-mixed, 32-true, 64-true, bf16-mixed, bf16-true",
        ),
        ({"devices": 0}, "devices must be at least 1, got 0"),
        ({"nodes": -1}, "nodes must be at least 1, got -1"),
    ],
)
def test_what_cannot_be_run_is_refused(options, message):
    with pytest.raises(lp.UsageError, match=exactly(message)):
        Engine(**options)


def test_the_description_holds_all_but_how_work_is_shared():
    expected = {
        "devices": 1,
        "nodes": 1,
        "precision": "32-true",
        "own_preferences": True,
        "compiled": False,
    }
    assert Engine().described() == expected
    assert Engine(strategy="ddp").described() == expected
    assert Engine(devices=2, nodes=3).described() == {**expected, "devices": 2, "nodes": 3}


def test_under_torchrun_there_are_as_many_as_it_started(torchrun):
    described = Engine(devices=5).described()
    assert (described["devices"], described["nodes"]) == (2, 3)


@pytest.mark.parametrize(("size", "batch"), [((3, 1), 128), ((2, 2), 6)])
def test_a_batch_that_cannot_be_shared_is_refused(size, batch):
    count = size[0] * size[1]
    message = (
        f"batch_size is {batch}, which {count} processes cannot share evenly; set it to a multiple "
        f"of {count}"
    )
    with pytest.raises(lp.UsageError, match=exactly(message)):
        Engine(*size).check_batch(batch)
    Engine(*size).check_batch(2 * count)


def test_one_process_is_started_without_a_launch(monkeypatch):
    monkeypatch.setattr(Fabric, "launch", lambda self: pytest.fail("launched"))
    monkeypatch.setattr(devices, "watch_for_deaths", lambda fabric: pytest.fail("watched"))
    logger = object()
    fabric = Engine(precision="bf16-mixed").start([logger])
    assert fabric.world_size == 1
    assert fabric.strategy.precision.precision == "bf16-mixed"
    assert fabric.loggers == [logger]
    assert logging.getLogger("lightning_fabric").level == logging.WARNING


class _Recorded:
    """Stands for Fabric, and keeps what it was made with and what happened to it."""

    def __init__(self, **options):
        self.options, self.events = options, []

    def launch(self):
        self.events.append("launched")


def test_machines_that_nobody_told_of_each_other_are_refused_at_once(monkeypatch):
    Engine(1, 1).check_environment()
    # A rank alone is no launcher: Fabric would wait for machines that never come.
    monkeypatch.setenv("RANK", "0")
    with pytest.raises(lp.UsageError, match="MASTER_ADDR, MASTER_PORT, NODE_RANK"):
        Engine(1, 2).start([])
    monkeypatch.setenv("MASTER_ADDR", "10.0.0.1")
    with pytest.raises(lp.UsageError, match="but MASTER_PORT, NODE_RANK of"):
        Engine(1, 2).check_environment()
    monkeypatch.setenv("MASTER_PORT", "29500")
    monkeypatch.setenv("NODE_RANK", "1")
    Engine(1, 2).check_environment()


def test_torchrun_tells_machines_of_each_other(torchrun):
    Engine(1, 2).check_environment()


@pytest.mark.parametrize("text", ["x", "-1", "", "1.5", "9" * 5000, "\u0663"])
@pytest.mark.parametrize("name", ["RANK", "LOCAL_RANK", "NODE_RANK", "MASTER_PORT"])
def test_a_variable_that_is_no_number_is_named(monkeypatch, name, text):
    for other in ("MASTER_ADDR", "MASTER_PORT", "NODE_RANK"):
        monkeypatch.setenv(other, "0")
    monkeypatch.setenv(name, text)
    with pytest.raises(lp.UsageError, match=f"^the environment variable {name} must be a whole"):
        Engine(1, 2).check_environment()


def test_what_counts_as_a_launcher_is_what_fabric_finds(monkeypatch):
    from lightning_fabric.plugins.environments.slurm import SLURMEnvironment

    monkeypatch.setenv("SLURM_NTASKS", "2")
    for job, found in (("training", True), ("bash", False), ("interactive", False)):
        monkeypatch.setenv("SLURM_JOB_NAME", job)
        assert SLURMEnvironment.detect() == devices._has_launcher() == found


def test_torchrun_without_its_numbers_is_refused(torchrun, monkeypatch):
    monkeypatch.delenv("LOCAL_WORLD_SIZE")
    with pytest.raises(lp.UsageError, match="LOCAL_WORLD_SIZE must be a whole number"):
        Engine().check_environment()


def test_a_machine_beyond_the_last_is_refused(monkeypatch):
    for name in ("MASTER_ADDR", "MASTER_PORT", "NODE_RANK"):
        monkeypatch.setenv(name, "2")
    with pytest.raises(lp.UsageError, match="NODE_RANK must be a whole number of at most 1, got"):
        Engine(1, 2).check_environment()


@pytest.mark.parametrize(("size", "strategy"), [((1, 1), "auto"), ((2, 1), "ddp"), ((1, 2), "ddp")])
def test_several_processes_are_watched_before_they_are_started(monkeypatch, size, strategy):
    monkeypatch.setattr("lightning_fabric.Fabric", _Recorded)
    monkeypatch.setattr(devices, "watch_for_deaths", lambda fabric: fabric.events.append("watched"))
    for name in ("MASTER_ADDR", "MASTER_PORT", "NODE_RANK"):
        monkeypatch.setenv(name, "0")
    fabric = Engine(*size).start([])
    assert fabric.options == {
        "devices": size[0],
        "num_nodes": size[1],
        "strategy": strategy,
        "precision": "32-true",
        "loggers": [],
    }
    assert fabric.events == ([] if size == (1, 1) else ["watched", "launched"])


@pytest.mark.parametrize("kind", [ValueError, RuntimeError])
def test_a_machine_that_lacks_something_is_one_line(monkeypatch, kind):
    def refuse(**options):
        raise kind("no such\n   device")

    monkeypatch.setattr("lightning_fabric.Fabric", refuse)
    message = exactly("this machine cannot run so: no such device")
    with pytest.raises(lp.UsageError, match=message):
        Engine().start([])


@pytest.mark.parametrize("name", ["RANK", "LOCAL_RANK", "NODE_RANK"])
def test_the_first_process_has_no_rank_but_zero(monkeypatch, name):
    assert is_first_process()
    monkeypatch.setenv(name, "0")
    assert is_first_process()
    monkeypatch.setenv(name, "1")
    assert not is_first_process()
