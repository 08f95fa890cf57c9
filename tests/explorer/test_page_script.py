"""The page's own script and what it is tied to."""

import json
import re
from pathlib import Path

import lorpman.explorer.page_script
from asking import Asker

SCRIPT = Path(lorpman.explorer.page_script.__file__).parent / "assets" / "explorer.js"


def test_every_function_of_the_script_gets_the_arguments_that_it_names(served):
    written = SCRIPT.read_text()
    tied = {}
    for one in json.loads(Asker(served).get("_dash-dependencies").text):
        if function := one["clientside_function"]:
            assert function["namespace"] == "lorpman"
            tied[function["function_name"]] = len(one["inputs"]) + len(one["state"])
    offered = re.search(r"lorpman: \{ ([\w, ]+) \}", written)[1].split(", ")
    assert set(tied) == set(offered)
    for name, count in tied.items():
        arguments = re.search(rf"function {name}\(([^)]*)\)", written)[1].split(", ")
        assert len(arguments) == count, name
