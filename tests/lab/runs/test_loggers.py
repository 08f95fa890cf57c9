from pathlib import Path

import pytest

from lorpman import UsageError
from lorpman.lab.runs.loggers import make_loggers
from small_training import exactly


def test_every_logger_has_a_folder_of_its_own(tmp_path):
    pytest.importorskip("tensorboard")
    made = make_loggers(["csv", "tensorboard"], tmp_path)
    assert [Path(logger.log_dir) for logger in made] == [
        tmp_path / "csv",
        tmp_path / "tensorboard",
    ]
    assert [type(logger).__name__ for logger in made] == ["CSVLogger", "TensorBoardLogger"]
    assert list(tmp_path.iterdir()) == []


def test_unknown_loggers_are_refused(tmp_path):
    message = "unknown logger 'cvs'; did you mean 'csv'? known: csv, tensorboard"
    with pytest.raises(UsageError, match=exactly(message)):
        make_loggers(["csv", "cvs"], tmp_path)
    assert make_loggers([], tmp_path) == []
