"""A real browser for tests of the page: a window, and what a person does in it."""

import os
import shutil
from dataclasses import dataclass, field

CHROMIUM = os.environ.get("LORPMAN_CHROMIUM") or shutil.which("chromium") or "/usr/bin/chromium"
SWITCHES = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
    # Three tasks are drawn with WebGL, here without a graphics card.
    "--enable-unsafe-swiftshader",
)  # fmt: skip
SLIDER = "#weights input[type=range]"

_IS_SETTLED = """() => {
    const address = new URLSearchParams(location.search).get("alpha");
    const card = document.getElementById("preference-card");
    if (!address || !card || card.getAttribute("aria-busy") !== "false") return false;
    const command = document.getElementById("command").textContent;
    const said = /(?:--alpha |model, \\[)([^\\s\\]]+)/.exec(command);
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


def move(view, value, slider=0):
    """What dragging a slider to ``value`` does."""
    sliders = view.page.locator(SLIDER)
    sliders.nth(slider).fill(str(value))
    # Between two tasks there is one slider, with the weight of the second.
    view.arrived(value, slider if sliders.count() > 1 else 1)


def here(view):
    """Where the diamond stands on the front."""
    return view.page.evaluate(
        """() => {
            const plot = document.querySelector("#front .js-plotly-plot");
            const trace = plot.data.find((one) => one.meta && one.meta.here);
            return trace && [trace.x[0], trace.y[0]];
        }"""
    )


def place_of(view, run, place):
    """Where on the screen a stored point of a front is drawn."""
    return view.page.evaluate(
        """([run, place]) => {
            const plot = document.querySelector("#front .js-plotly-plot");
            const named = (what) => what[0] === run && what[1] === place;
            const trace = plot.data.find((one) => (one.customdata || []).some(named));
            const at = trace.customdata.findIndex(named);
            const box = plot.getBoundingClientRect(), {xaxis, yaxis, scene} = plot._fullLayout;
            if (!scene) return [box.left + xaxis._offset + xaxis.d2p(trace.x[at]),
                                box.top + yaxis._offset + yaxis.d2p(trace.y[at])];
            // A surface: through the camera, whose matrices are stored column by column.
            const {dataScale, glplot} = scene._scene, rows = [0, 1, 2, 3];
            const {model, view, projection} = glplot.cameraParams;
            let at4 = [...["x", "y", "z"].map((axis, i) => trace[axis][at] * dataScale[i]), 1];
            for (const matrix of [model, view, projection]) {
                const from = at4;
                at4 = rows.map((r) => rows.reduce((s, c) => s + matrix[4 * c + r] * from[c], 0));
            }
            return [box.left + box.width * (1 + at4[0] / at4[3]) / 2,
                    box.top + box.height * (1 - at4[1] / at4[3]) / 2];
        }""",
        [run, place],
    )


def click_point(view, run, place, wanted):
    """Click a stored point, once the plot says that the pointer is on it."""
    view.page.locator("#front").scroll_into_view_if_needed()
    x, y = place_of(view, run, place)
    view.page.mouse.move(x - 3, y)
    view.page.mouse.move(x, y)
    view.page.wait_for_function(
        """(what) => {
            const plot = document.querySelector("#front .js-plotly-plot");
            const {scene} = plot._fullLayout;
            const found = scene ? (scene._scene.oldEventData || {}).points : plot._hoverdata;
            return (found || []).some((point) => String(point.customdata) === String(what));
        }""",
        arg=[run, place],
    )
    view.page.mouse.click(x, y)
    view.page.wait_for_function("wanted => location.search.includes(wanted)", arg=wanted)
    view.settled()


def fits(view):
    """Nothing sticks out of the page to the right."""
    return view.page.evaluate(
        "document.documentElement.scrollWidth <= document.documentElement.clientWidth"
    )


def narrowed(view):
    """The same window, as wide as a phone."""
    view.page.set_viewport_size({"width": 390, "height": 800})
