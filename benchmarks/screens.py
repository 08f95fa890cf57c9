"""The explorer's picture and animation for the docs, taken from the page in Chromium."""

import argparse
import io
import shutil
import threading
from pathlib import Path

from PIL import Image
from playwright.sync_api import Page, sync_playwright

from lorpman.explorer.server import make_explorer

_SWITCHES = ["--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-sync"]
_STEPS = 24
_WIDTH = 900


def settled(page: Page, weight: float = 0.5) -> None:
    """Wait until the second task has this weight, and its scores and the front are shown."""
    page.wait_for_selector(".js-plotly-plot .scatterlayer .trace")
    page.wait_for_function(
        """(weight) => {
            const alpha = new URLSearchParams(location.search).get("alpha") || "";
            const said = document.getElementById("command").textContent;
            const there = Math.abs(Number(alpha.split(",")[1]) - weight) < 1e-3;
            return there && said.includes(`--alpha ${alpha} `);
        }""",
        arg=weight,
    )
    page.wait_for_timeout(120)


def frame(page: Page, width: int) -> Image.Image:
    """What the window shows now."""
    picture = Image.open(io.BytesIO(page.screenshot(timeout=120_000))).convert("RGB")
    return picture.resize((width, round(picture.height * width / picture.width)))


def in_the_same_shades(frames: list[Image.Image]) -> list[Image.Image]:
    """At most 256 colours, chosen once for all frames: otherwise cards change colour on the way."""
    width, height = frames[0].size
    everything = Image.new("RGB", (width, height * len(frames)))
    for place, one in enumerate(frames):
        everything.paste(one, (0, place * height))
    # Few pixels are blue or orange; this way of choosing shades keeps them nevertheless.
    shades = everything.quantize(256, Image.Quantize.MAXCOVERAGE)
    return [one.quantize(palette=shades, dither=Image.Dither.NONE) for one in frames]


def take(url: str, out: Path) -> None:
    """Write ``explore.png`` and ``explore.gif`` into ``out``."""
    with sync_playwright() as started:
        chromium = shutil.which("chromium") or "/usr/bin/chromium"
        browser = started.chromium.launch(executable_path=chromium, args=_SWITCHES)
        page = browser.new_page(viewport={"width": 1440, "height": 1000})
        page.set_default_timeout(120_000)
        page.goto(url)
        settled(page)
        frame(page, 1440).save(out / "explore.png", optimize=True)
        frames = []
        for step in range(_STEPS):
            # There and back again, so that the animation has no jump.
            weight = round(0.05 + 0.9 * abs(2 * step / _STEPS - 1), 2)
            slider = page.locator("#weights input[type=range]")
            slider.fill(str(weight))
            slider.blur()
            settled(page, weight)
            frames.append(frame(page, _WIDTH))
        browser.close()
    first, *others = in_the_same_shades(frames)
    first.save(out / "explore.gif", save_all=True, append_images=others, duration=130, loop=0)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("run", type=Path)
    parser.add_argument("--out", type=Path, required=True)
    given = parser.parse_args()
    explorer = make_explorer([given.run], Path("nowhere"), port=0)
    threading.Thread(target=explorer.server.serve_forever, daemon=True).start()
    take(explorer.url, given.out)
    explorer.server.shutdown()
    explorer.close()
    for name in ("explore.png", "explore.gif"):
        print(given.out / name, f"{(given.out / name).stat().st_size / 1e6:.2f} MB")


if __name__ == "__main__":
    main()
