"""One short run that the tests of all commands share; none of them may change it."""

import pytest

from command_line import QUICK
from lorpman.cli.main import main


@pytest.fixture(scope="session")
def trained(tmp_path_factory):
    """The directory of a run of one epoch."""
    out = tmp_path_factory.mktemp("run") / "digits"
    with pytest.raises(SystemExit) as stop:
        main(["train", "multidigits", "--out", str(out), *QUICK])
    assert stop.value.code == 0
    return out
