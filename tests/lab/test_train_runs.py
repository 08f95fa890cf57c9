import json
import os
import signal
import threading
import time
from pathlib import Path

import pytest
import torch

from lorpman import Front
from lorpman.errors import UsageError
from lorpman.lab.problems.own_problem import find_problem
from lorpman.lab.runs.spec import Spec
from lorpman.lab.sweep import Sweep
from lorpman.lab.train_runs import train_runs
from lorpman.lab.tune import tune
from lorpman.lab.workers import Workers
from small_problem import SOURCE

pytestmark = pytest.mark.slow
# Two epochs, so that a run can be lost between them.
QUICK = {"epochs": 2, "batch_size": 500, "watch_samples": 0}
SEEDS = (0, 1, 2)


@pytest.fixture(autouse=True)
def _one_thread():
    """Sums in another order end in other bits: the same number of threads everywhere."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("OMP_NUM_THREADS", "1")
        yield
    torch.set_num_threads(before)


def _specs(folder, **more):
    settings = {**QUICK, **more}
    return {folder / f"pamal-{s}": Spec.make("multidigits", "pamal", s, settings) for s in SEEDS}


def _scores(specs):
    return [Front.load(run / "front.json").scores.tolist() for run in specs]


@pytest.fixture(scope="module")
def alone(tmp_path_factory):
    """What one process gives."""
    folder = tmp_path_factory.mktemp("alone")
    torch.set_num_threads(1)
    assert train_runs(_specs(folder), folder, Workers(), isolate=False) == {}
    return _scores(_specs(folder))


def test_two_jobs_give_what_one_process_gives(tmp_path, alone):
    told = []
    specs = _specs(tmp_path)
    assert train_runs(specs, tmp_path, Workers(jobs=2), tell=told.append) == {}
    assert _scores(specs) == alone
    assert any("running: pamal-0, pamal-1" in line for line in told)
    assert "3 of 3 done" in told[-1]


def test_a_failure_stops_no_other(tmp_path):
    specs = _specs(tmp_path)
    bad = tmp_path / "bad-0"
    specs = {bad: Spec.make("multimnist", "pamal", 0, QUICK), **specs}
    failures = train_runs(specs, tmp_path, Workers(jobs=2))
    assert list(failures) == [bad]
    assert "lorpman data multimnist" in failures[bad]
    assert all((run / "front.json").exists() for run in specs if run != bad)


def test_a_process_that_is_killed_loses_only_its_run_which_is_done_again(tmp_path, alone):
    specs = _specs(tmp_path)
    killer = threading.Thread(target=_kill_one_training, args=(tmp_path, _children(os.getpid())))
    killer.start()
    assert train_runs(specs, tmp_path, Workers(jobs=2)) == {}
    killer.join()
    assert (tmp_path / "killed").exists()
    assert _scores(specs) == alone


def _kill_one_training(folder, others):
    """Kill a process that trains: none of the ``others``, such as a browser, from before."""
    _wait_for(lambda: list(folder.glob("*/metrics.jsonl")))
    new = [pid for pid in _children(os.getpid()) if pid not in others]
    trains = [pid for pid in new if b"tracker" not in Path(f"/proc/{pid}/cmdline").read_bytes()]
    os.kill(int(trains[0]), signal.SIGKILL)
    (folder / "killed").touch()


def _children(pid):
    tasks = Path(f"/proc/{pid}/task").iterdir()
    return [child for task in tasks for child in (task / "children").read_text().split()]


def _wait_for(holds, seconds=120):
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.02)


@pytest.fixture(scope="module")
def cluster():
    """Two workers of this machine, as ``dask scheduler`` and ``dask worker`` start them."""
    distributed = pytest.importorskip("distributed")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("OMP_NUM_THREADS", "1")
        with distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=":0"
        ) as started:
            yield started


def test_a_cluster_gives_what_one_process_gives_also_when_a_worker_dies(tmp_path, alone, cluster):
    specs, told = _specs(tmp_path), []

    def kill_a_worker():
        _wait_for(lambda: len(list(tmp_path.glob("*/run.json"))) == 2)
        nanny = next(iter(cluster.workers.values()))
        told.append("killed")
        os.kill(nanny.process.pid, signal.SIGKILL)

    killer = threading.Thread(target=kill_a_worker)
    killer.start()
    workers = Workers(scheduler=cluster.scheduler_address)
    assert train_runs(specs, tmp_path, workers, tell=told.append) == {}
    killer.join()
    assert "killed" in told[:-1]
    assert _scores(specs) == alone
    described = json.loads((tmp_path / "pamal-0" / "run.json").read_text())
    assert described["seed"] == 0
    assert any("begins" in line for line in told), "what begins elsewhere is noticed"


def test_a_cluster_trains_into_whole_paths(tmp_path, alone, cluster, monkeypatch):
    """The workers were started in another folder."""
    monkeypatch.chdir(tmp_path)
    run = Path("here/pamal-0")
    specs = {run: Spec.make("multidigits", "pamal", 0, QUICK)}
    workers = Workers(scheduler=cluster.scheduler_address)
    assert train_runs(specs, Path("data"), workers) == {}
    assert _scores(specs) == alone[:1]


@pytest.fixture
def unreadable(tmp_path):
    """A problem whose file is gone: what it made must go to the workers, and not its name."""
    file = tmp_path / "elsewhere.py"
    file.write_text(SOURCE)
    problem = find_problem(str(file))
    file.unlink()
    return problem


def test_a_cluster_is_given_a_problem_file_by_value(tmp_path, unreadable, cluster):
    workers = Workers(scheduler=cluster.scheduler_address)
    spec = Spec.make(unreadable, "lorpman", 0, {})
    (theirs,) = workers.each(lambda given: len(given.load(tmp_path).train), [(spec,)])
    assert theirs == 40


@pytest.mark.soak
def test_a_cluster_trains_and_searches_a_problem_file(tmp_path, unreadable, cluster):
    problem, fronts = unreadable, []
    for workers in (Workers(), Workers(scheduler=cluster.scheduler_address)):
        folder = tmp_path / ("alone" if workers.scheduler is None else "cluster")
        specs = {folder / f"lorpman-{s}": Spec.make(problem, "lorpman", s, {}) for s in (0, 1)}
        assert train_runs(specs, tmp_path, workers, isolate=False) == {}
        sweep = Sweep.make(problem, "lorpman", 0, {}, {"rank": [1, 2]})
        study = tune(sweep, 2, folder / "study", tmp_path, print, workers)
        tried = {trial.params["rank"]: trial.value for trial in study.trials}
        fronts.append((_scores(specs), tried))
    assert fronts[0] == fronts[1]


def test_no_scheduler_is_said_at_once_and_nothing_is_written(tmp_path):
    pytest.importorskip("distributed")
    with pytest.raises(UsageError, match="no Dask scheduler answers"):
        train_runs(_specs(tmp_path), tmp_path, Workers(scheduler="tcp://127.0.0.1:1"))
    assert list(tmp_path.iterdir()) == []
