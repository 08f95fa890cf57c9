import io
import json
import time

from rich.console import Console

from lorpman.lab.run_board import RunBoard, WatchedRun, watching_runs


def _log(folder, epochs):
    folder.mkdir(exist_ok=True)
    lines = [{"number": 0}, *({"number": n + 1, "seconds": 2.0} for n in range(epochs))]
    (folder / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))


def test_lines_say_what_is_done_what_runs_and_the_time_left(tmp_path):
    told = []
    names = [tmp_path / "pamal-0", tmp_path / "pamal-1", tmp_path / "pamal-2"]
    board = RunBoard({path.name: WatchedRun(path, "pamal", 2) for path in names}, 1, told.append)
    board.begins("pamal-0")
    _log(names[0], 2)
    board.ends("pamal-0", None)
    board.begins("pamal-1")
    board.ends("pamal-1", "no memory")
    assert told == [
        f"{names[0]} begins (0 of 3 done; running: pamal-0)",
        f"{names[0]} done (1 of 3 done; about 8 s left)",
        f"{names[1]} begins (1 of 3 done; running: pamal-1; about 8 s left)",
        f"{names[1]} failed: no memory (1 of 3 done; 1 failed; about 4 s left)",
    ]


def test_a_run_that_is_trained_elsewhere_is_noticed_once_its_directory_changes(tmp_path):
    told = []
    _log(tmp_path / "old", 1)
    time.sleep(0.05)
    watched = {name: WatchedRun(tmp_path / name, "pamal", 3) for name in ("old", "new")}
    with watching_runs(watched, None, told.append, live=False):
        _log(tmp_path / "new", 1)
        end = time.monotonic() + 20
        while not told and time.monotonic() < end:
            time.sleep(0.05)
    assert [line.split()[0] for line in told] == [str(tmp_path / "new")]
    old = watched["old"].progress
    assert (old.state, old.epochs_done) == ("waits", 1)


def test_a_table_shows_what_the_directories_hold(tmp_path):
    runs = {f"pamal-{n}": WatchedRun(tmp_path / f"pamal-{n}", "pamal", 4) for n in range(5)}
    board = RunBoard(runs, 2, lambda line: None)
    board.begins("pamal-0")
    board.ends("pamal-0", "it diverged")
    board.begins("pamal-1")
    _log(tmp_path / "pamal-1", 3)
    console = Console(width=100, file=io.StringIO())
    console.print(board.table())
    text = console.file.getvalue()
    assert "epoch 3/4" in text
    assert "failed" in text
    assert "3 waiting" in text
