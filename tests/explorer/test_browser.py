"""The page in a real browser: every control does what it says, for every kind of run."""

import io
import json
import re
import shlex
import shutil
import threading
import zipfile
from dataclasses import replace
from pathlib import Path

import onnxruntime
import pytest
import torch
from safetensors.torch import load

from asking import serving
from lorpman.front.front import Front
from lorpman.lab.runs.directory import open_run

ROOT = Path(__file__).parents[2]
SLIDER = "#weights input[type=range]"


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


def test_moving_the_slider_evaluates_in_between_and_moves_the_point(window, served, digits):
    view = window(served.url)
    view.settled()
    axes = "document.querySelector('#front .js-plotly-plot')._fullLayout.xaxis.range"
    before = view.page.evaluate(axes)
    move(view, 0.335)
    assert view.page.evaluate(axes) == pytest.approx(before)
    assert view.alpha() == [0.665, 0.335]
    model, live = open_run(digits)[1], served.answers.lives["digits"]
    x, y = live.held[0]
    with torch.no_grad():
        outputs = model(x, torch.tensor([0.665, 0.335]))
    right = [(o.argmax(1) == t).float().mean().item() for o, t in zip(outputs, y, strict=True)]
    assert list(view.scores().values()) == pytest.approx(right, abs=1e-4)
    assert here(view) == pytest.approx(right, abs=1e-4)
    assert "held-out test samples" in view.page.text_content("#status")
    # By keys alone: the slider is reached with Tab and moved with the arrows.
    view.page.locator("#find").focus()
    view.page.locator(SLIDER).focus()
    assert view.page.evaluate("getComputedStyle(document.activeElement).outlineStyle") == "solid"
    view.page.keyboard.press("ArrowRight")
    view.arrived(0.66)
    assert view.alpha() == [0.66, 0.34]


def test_a_click_on_the_front_and_a_row_of_the_table_set_the_preference(window, served, digits):
    front = Front.load(digits / "front.json")
    view = window(served.url)
    view.settled()
    for place in (2, 8):
        wanted = f"alpha={front.alphas[place, 0]:.1f},{front.alphas[place, 1]:.1f}"
        click_point(view, "digits", place, wanted)
    view.page.locator("summary", has_text="as a table").click()
    view.page.locator("button", has_text="move here").first.click()
    view.page.wait_for_function("location.search.includes('alpha=0,1')")
    view.settled()
    assert view.alpha() == [0.0, 1.0]


def test_the_samples_show_predictions_and_frame_what_flips(window, served):
    live = served.answers.lives["digits"]
    view = window(served.url + "?alpha=1,0")
    view.settled()
    point = live.point((1.0, 0.0))
    flips = [
        any(new.flipped(old) for new, old in zip(now, balanced, strict=True))
        for now, balanced in zip(point.predictions, live.samples.balanced, strict=True)
    ]
    assert any(flips)
    cards = view.page.locator("figure").all()
    assert [card.get_attribute("class") == "flip" for card in cards] == flips
    shown = [card.locator("b").first.text_content() for card in cards]
    assert shown == [now[0].text for now in point.predictions]
    assert view.page.evaluate("document.querySelector('figure img').naturalWidth") > 8


def test_a_demand_moves_the_preference_there_or_to_the_nearest(window, served):
    view = window(served.url)
    view.settled()
    bound = view.page.locator(".bound input").first
    for asked, said in ((0.2, "Found."), (0.999, "this is the nearest")):
        bound.fill(str(asked))
        view.page.locator("#find").click()
        view.page.wait_for_function(
            "said => document.getElementById('answer').textContent.includes(said)", arg=said
        )
        assert f"--at-least left={asked:g} --best right" in view.page.text_content("#answer")
    view.page.wait_for_function("location.search.split(/[=,&]/)[1] > 0.5")
    view.settled()
    assert "need=left:0.999" in view.page.evaluate("location.search")


def taken(view, suffix):
    """What the button of a format saves: the network's file and its card."""
    with view.page.expect_download() as waiting:
        view.page.locator("button.take", has_text=f".{suffix}").click()
    assert waiting.value.suggested_filename == f"multidigits-lorpman-{suffix}.zip"
    with zipfile.ZipFile(waiting.value.path()) as archive:
        card = json.loads(archive.read(f"model.{suffix}.card.json"))
        return io.BytesIO(archive.read(f"model.{suffix}")), card


def test_every_export_button_saves_the_chosen_network(window, served, digits):
    view = window(served.url + "?alpha=0.3,0.7")
    view.settled()
    network = open_run(digits)[1].solution(torch.tensor([0.3, 0.7])).eval()
    x = served.answers.lives["digits"].held[0][0][:3]
    with torch.no_grad():
        expected = network(x)
    for suffix, outputs in (("safetensors", None), ("pt2", run_pt2), ("onnx", run_onnx)):
        content, card = taken(view, suffix)
        assert card["alpha"] == pytest.approx([0.3, 0.7])
        if outputs is None:
            weights = load(content.read())
            for name, value in network.state_dict().items():
                assert torch.allclose(weights[name], value, atol=1e-6)
            continue
        for found, right in zip(outputs(content, x), expected, strict=True):
            assert torch.allclose(found, right, atol=1e-5)


def run_pt2(content, x):
    with torch.no_grad():
        return torch.export.load(content).module()(x)


def run_onnx(content, x):
    session = onnxruntime.InferenceSession(content.read(), providers=["CPUExecutionProvider"])
    return map(torch.from_numpy, session.run(None, {session.get_inputs()[0].name: x.numpy()}))


def test_the_command_can_be_copied(window, served, digits):
    view = window(served.url + "?alpha=0.3,0.7")
    view.settled()
    command = view.page.text_content("#command")
    assert command == f"lorpman export {digits} --alpha 0.3,0.7 --to model.onnx"
    view.page.locator("[data-copy=command]").click()
    view.page.wait_for_function(
        "document.querySelector('[data-copy=command]').textContent == 'copied'"
    )
    assert view.page.evaluate("navigator.clipboard.readText()") == command


def test_two_windows_share_nothing_and_a_link_gives_the_same_view(window, served):
    first, second = window(served.url), window(served.url)
    first.settled()
    second.settled()
    for a, b in ((0.1, 0.9), (0.25, 0.75)):
        move(first, a)
        move(second, b)
    assert first.alpha() == [0.75, 0.25]
    assert second.alpha() == [0.25, 0.75]
    assert first.scores() != second.scores()
    again = window(first.page.text_content("#link"))
    again.settled()
    assert again.scores() == first.scores()


def test_a_bad_address_is_named_and_left_out(window, served):
    view = window(served.url + "?run=../x&alpha=<img src=x onerror=a()>&need=left:much&hide=%00")
    view.settled()
    assert "cannot be read (run and alpha and need)" in view.page.text_content("#notice")
    assert view.alpha() == [0.5, 0.5]


def test_a_run_may_have_any_name(window, digits, tmp_path):
    strange = tmp_path / """a b#1?&"'<b>%2e..{x}\\é"""
    shutil.copytree(digits, strange)
    with serving([digits, strange]) as explorer:
        view = window(explorer.url)
        view.settled()
        view.page.locator("#run label").nth(1).click()
        view.page.wait_for_function("location.search.includes('run=a')")
        view.settled()
        again = window(view.page.text_content("#link"))
        again.settled()
        assert again.page.text_content("#notice") == ""
        source = again.page.locator("figure img").first.get_attribute("src")
        assert source.startswith("pictures/a%20b%231")
        again.page.wait_for_function("document.querySelector('figure img').naturalWidth > 8")
        assert shlex.quote(str(strange)) in again.page.text_content("#command")


def test_a_slow_answer_has_a_spinner_and_a_silent_server_is_named(window, served, monkeypatch):
    live, gate = served.answers.lives["digits"], threading.Event()
    quick = live.point
    view = window(served.url)
    view.settled()
    spinner = view.page.locator(".spinner")
    assert not spinner.is_visible()
    monkeypatch.setattr(live, "point", lambda alpha: gate.wait(60) and quick(alpha))
    # The page waits for 15 seconds before it says something; a test need not.
    view.page.evaluate(
        """() => {
            const plain = window.setTimeout;
            window.setTimeout = (work, after, ...more) =>
                plain(work, after === 15000 ? 1500 : after, ...more);
        }"""
    )
    try:
        view.page.locator(SLIDER).fill("0.455")
        spinner.wait_for(state="visible")
        assert view.page.get_attribute("#preference-card", "aria-busy") == "true"
        view.page.locator("#notice", has_text="No answer yet").wait_for(state="visible")
    finally:
        gate.set()
    spinner.wait_for(state="hidden")
    view.arrived(0.455, 1)
    view.page.locator("#notice").wait_for(state="hidden")


def test_runs_lie_over_one_another_and_each_kind_moves_in_its_way(window, digits, rivals):
    with serving([digits, *rivals.values()]) as explorer:
        view = window(explorer.url)
        view.settled()
        drawn = """() => [...new Set(document.querySelector("#front .js-plotly-plot").data
                        .map((trace) => trace.meta.run).filter(Boolean))]"""
        assert view.page.evaluate(drawn) == ["digits", *rivals]
        view.page.locator("#shown label", has_text="pamal").click()
        view.page.wait_for_function("location.search.includes('hide=pamal')")
        view.page.wait_for_function(f"!({drawn})().includes('pamal')")
        view.page.locator("#run label", has_text="pmtl").click()
        view.page.wait_for_selector("#places:not(.absent)")
        assert "separate networks" in view.page.text_content("#moving")
        assert not view.page.locator("#weights").is_visible()
        view.page.locator("#place").fill("1")
        alphas = Front.load(rivals["pmtl"] / "front.json").alphas
        view.arrived(alphas[1, 0].item())
        assert view.alpha() == pytest.approx(alphas[1].tolist(), abs=1e-3)
        view.page.locator("#run label", has_text="ls,").click()
        view.page.wait_for_function(
            "document.getElementById('moving').textContent.includes('one network')"
        )
        assert not view.page.locator("#place").is_visible()


def test_a_run_without_weights_shows_its_front_and_says_why_it_stands_still(window):
    """MultiMNIST, as kept in the repository."""
    with serving([ROOT / "results/multimnist/lorpman-0"]) as explorer:
        view = window(explorer.url)
        view.settled()
        assert "weights are not here" in view.page.text_content("#moving")
        front = Front.load(ROOT / "results/multimnist/lorpman-0/front.json")
        click_point(view, "lorpman-0", 3, "alpha=0.3,0.7")
        view.settled()
        assert list(view.scores().values()) == pytest.approx(front.scores[3].tolist(), abs=1e-4)
        view.page.locator("button.take", has_text=".onnx").click()
        view.page.wait_for_function(
            "document.getElementById('taken').textContent.includes('nothing to export')"
        )
    # The refused export is the one complaint that there should be.
    assert [line for line in view.complaints if "/export" not in line and "409" not in line] == []
    view.complaints.clear()


def test_the_toy_problem(window, toy):
    with serving([toy]) as explorer:
        view = window(explorer.url)
        view.settled()
        move(view, 0.8)
        assert set(view.scores()) == {"f1", "f2"}
        assert "lower is better" in view.page.text_content("#scores")


def test_three_tasks_have_a_surface_a_triangle_and_linked_sliders(window, faces, tmp_path):
    front, root = Front.load(faces[0] / "front.json"), faces[1]
    run = with_scores(faces[0], tmp_path / "run", curved(front))
    with serving([run], root) as explorer:
        view = window(explorer.url)
        view.settled()
        kinds = "() => document.querySelector('#front .js-plotly-plot').data.map((t) => t.type)"
        assert {"mesh3d", "scatter3d"} <= set(view.page.evaluate(kinds))
        move(view, 0.5, slider=1)
        assert view.alpha() == pytest.approx([0.25, 0.5, 0.25], abs=1e-3)
        box = view.page.locator("#ternary svg").bounding_box()
        view.page.mouse.click(box["x"] + box["width"] * 0.5, box["y"] + box["height"] * 0.3)
        view.page.wait_for_function("location.search.split(',').pop() > 0.5")
        view.settled()
        assert sum(view.alpha()) == pytest.approx(1)
        flat = "document.querySelectorAll('#flat .subplot').length"
        assert view.page.evaluate(flat) == 3
        for task in (2, 0):
            corner = int(front.alphas[:, task].argmax())
            click_point(view, "run", corner, ("alpha=1,0,0", "", "alpha=0,0,1")[task])
        narrowed(view)
        rows = "document.querySelector('#flat .js-plotly-plot')._fullLayout.grid.rows === 3"
        view.page.wait_for_function(rows)
        assert fits(view)


def narrowed(view):
    """The same window, as wide as a phone."""
    view.page.set_viewport_size({"width": 390, "height": 800})


def curved(front):
    """Scores on a curved surface: so short a training leaves all of them equal."""
    high = 0.6 + 0.3 * front.alphas.double().sqrt()
    return torch.where(torch.tensor(front.maximise), high, 1 - high)


def test_twenty_tasks_have_parallel_axes_that_can_be_brushed(window, objects, tmp_path):
    front, root = Front.load(objects[0] / "front.json"), objects[1]
    run = with_scores(objects[0], tmp_path / "run", torch.rand(front.scores.shape).double())
    with serving([run], root) as explorer:
        view = window(explorer.url)
        view.settled()
        assert view.page.locator(SLIDER).count() == 20
        move(view, 0.62, slider=4)
        assert view.alpha()[4] == pytest.approx(0.62)
        assert sum(view.alpha()) == pytest.approx(1)
        assert view.alpha()[0] == pytest.approx(0.02, abs=1e-3)
        assert len(view.scores()) == 20
        axis, kept = brushed_axis(Front.load(run / "front.json"))
        at = view.page.evaluate(
            """(axis) => {
                const plot = document.querySelector("#front .js-plotly-plot");
                const box = plot.getBoundingClientRect(), {xaxis, yaxis} = plot._fullLayout;
                return [box.left + xaxis._offset + xaxis.d2p(axis), box.top + yaxis._offset,
                        yaxis._length];
            }""",
            axis,
        )
        view.page.mouse.move(at[0] - 8, at[1] + 2)
        view.page.mouse.down()
        view.page.mouse.move(at[0] + 8, at[1] + at[2] / 2, steps=4)
        view.page.mouse.up()
        bold = """() => [...new Set(document.querySelector("#front .js-plotly-plot").data
            .filter((trace) => trace.customdata && trace.opacity === 1)
            .flatMap((trace) => trace.customdata.map((what) => what[1])))].sort((a, b) => a - b)"""
        view.page.wait_for_function(f"({bold})().length > 0")
        # It stays while the preference moves on.
        move(view, 0.3, slider=0)
        shown = set(view.page.evaluate(bold))
        assert kept[0] <= shown <= kept[1]
        view.page.mouse.dblclick(at[0] + 30, at[1] + at[2] / 2)
        view.page.wait_for_function(f"({bold})().length === 0")
        narrowed(view)
        angle = "document.querySelector('#front .js-plotly-plot').layout.xaxis.tickangle === -90"
        view.page.wait_for_function(angle)
        assert fits(view)


def with_scores(run, copy, scores):
    """The same run with other stored scores."""
    shutil.copytree(run, copy)
    replace(Front.load(run / "front.json"), scores=scores).save(copy / "front.json")
    return copy


def brushed_axis(front):
    """An axis, and the lines that surely, and perhaps, pass through its upper half."""
    scores = front.scores
    height = (scores - scores.amin(0)) / (scores.amax(0) - scores.amin(0)).clamp_min(1e-9)
    # A line that passes within a pixel of the brush's end may fall on either side.
    above = [set((height[:, 0] > edge).nonzero().flatten().tolist()) for edge in (0.52, 0.48)]
    assert 0 < len(above[0]) <= len(above[1]) < len(front)
    return 0, above


@pytest.mark.parametrize("width", [1440, 390])
def test_it_fits_wide_and_narrow_light_and_dark(window, served, tmp_path, width):
    view = window(served.url, width=width, scheme="dark")
    view.settled()
    for scheme, text in (("dark", "#e9ecf2"), ("light", "#1d2230")):
        # It also changes with the system while it is open.
        view.page.emulate_media(color_scheme=scheme)
        view.page.wait_for_function(
            "(text) => [...document.querySelectorAll('#front, .panel')].every((one) =>"
            "one.querySelector('.js-plotly-plot').layout.font.color === text)",
            arg=text,
        )
        assert fits(view)
        ground = view.page.evaluate("getComputedStyle(document.body).backgroundColor")
        shade = sum(map(int, re.findall(r"\d+", ground)[:3]))
        assert (shade > 600) == (scheme == "light")
        view.page.screenshot(path=tmp_path / f"{scheme}.png", full_page=True, timeout=60_000)


def test_words_that_outsiders_need_are_explained_where_they_stand(window, served):
    view = window(served.url)
    view.settled()
    assert "nothing on offer beats them" in view.page.text_content("#front-card")
    assert "Hypervolume measures a whole front" in view.page.text_content("#front-card")
    assert "how much each task matters to you" in view.page.text_content("#preference-card")
    unnamed = """() => [...document.querySelectorAll("input, button, summary")].filter((one) =>
        !(one.labels && one.labels.length) && !one.textContent.trim()
        && !one.getAttribute("aria-label")).map((one) => one.outerHTML)"""
    assert view.page.evaluate(unnamed) == []


def test_the_report_works_from_a_file(window, digits, faces, objects, tmp_path):
    from plotly.offline import get_plotlyjs

    from lorpman.explorer.report import write_report

    for path, figures in ((digits, 6), (faces[0], 6), (objects[0], 5)):
        to = tmp_path / f"{path.name}.html"
        write_report(path, to)
        # The library of pictures is in it once.
        assert len(get_plotlyjs()) < to.stat().st_size < 1.3 * len(get_plotlyjs())
        view = window(to.as_uri())
        view.page.wait_for_function(
            "count => document.querySelectorAll('.main-svg').length >= count", arg=figures
        )
        assert fits(view)
        front = Front.load(path / "front.json")
        assert view.page.locator("tbody").first.locator("tr").count() == len(front)
        assert f"{front.scores[0, 0]:.4f}" in view.page.text_content("table")
        assert "learning_rate" in view.page.text_content("body")


def test_a_report_of_strange_names_holds_no_markup_of_theirs(digits, tmp_path):
    from lorpman.explorer.report import write_report

    run = tmp_path / "run"
    shutil.copytree(digits, run)
    for name in ("front.json", "metrics.jsonl"):
        text = (run / name).read_text().replace('"left"', '"</script><b>left"')
        (run / name).write_text(text)
    write_report(run, tmp_path / "report.html")
    assert "<b>left" not in (tmp_path / "report.html").read_text()
