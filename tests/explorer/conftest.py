"""Runs to look at, servers that show them, and a real browser that looks."""

import os
import shutil
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from asking import serving
from lorpman.cli.main import main
from small_files import write_cifar100, write_utkface

_CHROMIUM = os.environ.get("LORPMAN_CHROMIUM") or shutil.which("chromium") or "/usr/bin/chromium"
_SWITCHES = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
    # Three tasks are drawn with WebGL, here without a graphics card.
    "--enable-unsafe-swiftshader",
)  # fmt: skip


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
    root = write_cifar100(folder / "objects-data", 6, 2)
    small = [
        word
        for s in ("width=4", "train_images=16", "validation_images=5", "watch_samples=0")
        for word in ("--set", s)
    ]
    options = ["--scale", "laptop", "--epochs", "1", *small]
    return train("cifar100", folder / "objects", *options, data=root), root


@pytest.fixture(scope="session")
def served(digits):
    with serving([digits]) as explorer:
        yield explorer


@pytest.fixture(scope="session")
def chromium():
    """The system's Chromium; without it these tests skip, unless that is not allowed."""
    playwright = pytest.importorskip("playwright.sync_api")
    if not Path(_CHROMIUM).exists():
        message = "no Chromium at /usr/bin/chromium; install it, or set LORPMAN_CHROMIUM"
        if os.environ.get("LORPMAN_NEED_BROWSER"):
            pytest.fail(message)
        pytest.skip(message)
    with playwright.sync_playwright() as started:
        browser = started.chromium.launch(executable_path=_CHROMIUM, args=list(_SWITCHES))
        yield browser
        browser.close()


_IS_SETTLED = """() => {
    const address = new URLSearchParams(location.search).get("alpha");
    const card = document.getElementById("preference-card");
    if (!address || !card || card.getAttribute("aria-busy") !== "false") return false;
    const said = /--alpha (\\S+)/.exec(document.getElementById("command").textContent);
    const plot = document.querySelector("#front .js-plotly-plot");
    const drawn = (plot && plot.data || []).find((one) => one.meta && one.meta.here);
    if (!said || !drawn) return false;
    const asked = address.split(",").map(Number);
    const near = (alpha) => asked.every((weight, i) => Math.abs(weight - alpha[i]) < 2e-3);
    return near(said[1].split(",").map(Number)) && near(drawn.meta.here.alpha);
}"""


@dataclass
class Window:
    """A page, and everything it did that it should not have done."""

    page: object
    complaints: list = field(default_factory=list)

    def __post_init__(self):
        self.page.on("console", self._console)
        self.page.on("pageerror", lambda error: self.complaints.append(f"error: {error}"))
        self.page.on("request", self._request)
        self.page.on("response", self._response)

    def _console(self, message):
        if message.type == "error":
            self.complaints.append(f"console: {message.text}")

    def _request(self, request):
        inside = ("http://127.0.0.1:", "data:", "blob:http://127.0.0.1:", "file:", "blob:null")
        if not request.url.startswith(inside):
            self.complaints.append(f"left this machine: {request.url}")

    def _response(self, response):
        if response.status >= 400:
            self.complaints.append(f"{response.status}: {response.url}")

    def scores(self):
        """The scores on the tiles."""
        tiles = self.page.locator("[data-score]").all()
        return {tile.get_attribute("data-score"): float(tile.text_content()) for tile in tiles}

    def settled(self):
        """Wait until what the address asks for is answered, said and drawn."""
        self.page.wait_for_function(_IS_SETTLED)
        # Drawn in this frame, on the screen in the next one.
        self.page.evaluate("new Promise((done) => requestAnimationFrame(() => setTimeout(done)))")

    def arrived(self, weight, task=0):
        """Wait until a task has this weight, and then until that is answered and drawn."""
        self.page.wait_for_function(
            """([weight, task]) => {
                const alpha = new URLSearchParams(location.search).get("alpha") || "";
                return Math.abs(Number(alpha.split(",")[task]) - weight) < 1e-3;
            }""",
            arg=[weight, task],
        )
        self.settled()

    def alpha(self):
        address = self.page.evaluate("new URLSearchParams(location.search).get('alpha')")
        return [float(part) for part in address.split(",")]


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
