"""Runs to look at, servers that show them, and a real browser that looks."""

import os
from pathlib import Path

import pytest

from asking import serving
from browser import CHROMIUM, SWITCHES, Window
from lorpman.cli.main import main
from lorpman.explorer.opened_run import open_runs
from lorpman.manifold.base import Manifold
from lorpman.preference import grid
from small_files import write_cifar100, write_utkface


def train(problem, out, *options, data=None):
    """A real, short training; its directory."""
    arguments = ["train", problem, "--out", str(out), "--quiet", *options]
    if data is not None:
        arguments += ["--data", str(data)]
    with pytest.raises(SystemExit) as stop:
        main(arguments)
    assert stop.value.code == 0
    return out


@pytest.fixture(scope="session")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("explored")


@pytest.fixture(scope="session")
def digits(folder):
    settings = ["--set", "watch_samples=100", "--set", "freeze_epoch=1"]
    return train("multidigits", folder / "digits", "--epochs", "2", *settings)


@pytest.fixture(scope="session")
def rivals(folder):
    """One run of each kind of method."""
    short = ["--epochs", "1", "--set", "watch_samples=0"]
    methods = ("pamal", "cosmos", "phn", "pmtl", "ls")
    return {
        method: train("multidigits", folder / method, "--method", method, *short)
        for method in methods
    }


@pytest.fixture(scope="session")
def retrained(folder):
    """Three networks, each trained for one preference alone."""
    short = ["--epochs", "1", "--set", "watch_samples=0", "--set", "members=3"]
    return train("multidigits", folder / "retrained", "--method", "retrain", *short)


@pytest.fixture(scope="session")
def toy(folder):
    return train("toy", folder / "toy", "--epochs", "5")


@pytest.fixture(scope="session")
def cached(folder):
    """Decoded images of generated files must not end up among a user's real ones."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LORPMAN_CACHE", str(folder / "cache"))
        yield


@pytest.fixture(scope="session")
def faces(folder, cached):
    """Three tasks; the run and where its data is."""
    root = write_utkface(folder / "faces-data", 40)
    small = [
        word for s in ("limit=40", "width=4", "rank=2", "watch_samples=0")
        for word in ("--set", s)
    ]  # fmt: skip
    options = ["--scale", "laptop", "--epochs", "1", *small]
    return train("utkface", folder / "faces", *options, data=root), root


@pytest.fixture(scope="session")
def objects(folder, cached):
    """Twenty tasks, each with inputs of its own; the run and where its data is."""
    # Fewer preferences than usual: of twenty tasks, scoring a hundred takes a minute.
    root = write_cifar100(folder / "objects-data", 6, 2)
    small = [
        word
        for s in ("width=4", "train_images=16", "validation_images=5", "watch_samples=0")
        for word in ("--set", s)
    ]
    options = ["--scale", "laptop", "--epochs", "1", *small]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Manifold, "preferences", lambda model: grid(model.num_tasks, 24))
        return train("cifar100", folder / "objects", *options, data=root), root


@pytest.fixture(scope="session")
def served(digits):
    with serving([digits]) as explorer:
        yield explorer


@pytest.fixture(scope="session")
def chromium():
    """The system's Chromium; without it these tests skip, unless that is not allowed."""
    playwright = pytest.importorskip("playwright.sync_api")
    if not Path(CHROMIUM).exists():
        message = "no Chromium at /usr/bin/chromium; install it, or set LORPMAN_CHROMIUM"
        if os.environ.get("LORPMAN_NEED_BROWSER"):
            pytest.fail(message)
        pytest.skip(message)
    with playwright.sync_playwright() as started:
        browser = started.chromium.launch(executable_path=CHROMIUM, args=list(SWITCHES))
        yield browser
        browser.close()


@pytest.fixture
def window(chromium):
    """A function that opens a window of its own; at the end, none may have misbehaved."""
    opened = []

    def open_window(url, width=1440, height=900, scheme="light"):
        context = chromium.new_context(
            viewport={"width": width, "height": height}, color_scheme=scheme
        )
        context.grant_permissions(["clipboard-read", "clipboard-write"])
        page = context.new_page()
        page.set_default_timeout(60_000)
        opened.append((context, Window(page)))
        page.goto(url)
        return opened[-1][1]

    yield open_window
    complaints = [line for _, one in opened for line in one.complaints]
    for context, _ in opened:
        context.close()
    assert complaints == []


@pytest.fixture(scope="session")
def opened(digits):
    """The run of digits, opened without its data."""
    (run,) = open_runs([digits], None)
    return run
