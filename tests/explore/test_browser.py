"""The page in a real browser: every control does what it says, for every kind of run."""

import io
import json
import re
import zipfile
from pathlib import Path

import pytest
import torch
from safetensors.torch import load

from lorpman.front import Front
from lorpman.runs import open_run

SLIDER = "#weights input[type=range]"


def move(window, value, slider=0):
    """What dragging a slider to ``value`` does."""
    window.page.locator(SLIDER).nth(slider).fill(str(value))
    window.settled()


def here(window):
    """Where the diamond stands on the front."""
    return window.page.evaluate(
        """() => {
            const plot = document.querySelector("#front .js-plotly-plot");
            const trace = plot.data.find((one) => one.meta && one.meta.here);
            return trace && [trace.x[0], trace.y[0]];
        }"""
    )


def test_moving_the_slider_evaluates_in_between_and_moves_the_point(window, served, digits):
    view = window(served.url)
    view.settled()
    move(view, 0.335)
    assert view.alpha() == [0.665, 0.335]
    model = open_run(digits)[1]
    live = next(iter(served.answers.lives.values()))
    x, y = live.held[0]
    with torch.no_grad():
        outputs = model(x, torch.tensor([0.665, 0.335]))
    expected = [
        (out.argmax(1) == t).float().mean().item() for out, t in zip(outputs, y, strict=True)
    ]
    assert list(view.scores().values()) == pytest.approx(expected, abs=1e-4)
    assert here(view) == pytest.approx(expected, abs=1e-4)
    assert "held-out test samples" in view.page.text_content("#status")
