"""The versions that pyproject.toml allows, those that are pinned, and the lowest ones."""

import tomllib
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parent.parent


def _requirements():
    """Every direct dependency, of the package and of its extras, by canonical name."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    listed = [project["dependencies"], *project["optional-dependencies"].values()]
    requirements = [Requirement(line) for lines in listed for line in lines]
    by_name = {canonicalize_name(one.name): one for one in requirements}
    # The extra "dev" asks for the other extras by the package's own name.
    del by_name[project["name"]]
    return by_name


def _pins(name):
    """The one version that a file of constraints names for each package."""
    lines = (ROOT / name).read_text().splitlines()
    requirements = [Requirement(line) for line in lines if line and not line.startswith("#")]
    pins = {}
    for requirement in requirements:
        (exact,) = requirement.specifier
        assert exact.operator == "==", f"{name}: {requirement}"
        assert canonicalize_name(requirement.name) not in pins, f"{name}: {requirement} twice"
        pins[canonicalize_name(requirement.name)] = exact.version
    return pins


def test_floors_are_the_lower_bounds_of_the_project():
    bounds = {
        name: [one.version for one in requirement.specifier if one.operator == ">="]
        for name, requirement in _requirements().items()
    }
    assert {name: [version] for name, version in _pins("floors.txt").items()} == bounds


def test_constraints_pin_every_dependency_within_its_range():
    pins = _pins("constraints.txt")
    for name, requirement in _requirements().items():
        assert name in pins, f"constraints.txt does not name {name}"
        assert requirement.specifier.contains(pins[name]), f"{name}=={pins[name]} is {requirement}"
