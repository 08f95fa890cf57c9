"""Training, epoch by epoch."""

from dataclasses import replace

import plotly.graph_objects as go

from lorpman.explorer.figures.training_curves import draw_hypervolumes, draw_losses
from lorpman.explorer.opened_run import open_runs


def test_every_task_has_its_losses(opened):
    figure = draw_losses(opened)
    go.Figure(figure)
    for trace, task in zip(figure["data"], opened.front.tasks, strict=True):
        assert trace["name"] == task
        assert trace["y"] == [epoch["losses"][task] for epoch in opened.epochs]


def test_the_freeze_stands_before_the_first_frozen_epoch(opened):
    assert [bool(epoch.get("frozen")) for epoch in opened.epochs] == [False, True]
    (line,) = draw_losses(opened)["layout"]["shapes"]
    assert line["x0"] == line["x1"] == 1.5


def test_many_tasks_are_a_mean_in_a_band(objects):
    (run,) = open_runs([objects[0]], None)
    highest, lowest, mean = draw_losses(run)["data"]
    assert all(
        low <= middle <= high
        for low, middle, high in zip(lowest["y"], mean["y"], highest["y"], strict=True)
    )


def test_what_was_not_watched_has_no_curve(opened):
    assert draw_hypervolumes(opened)["data"][0]["y"] == [e["hypervolume"] for e in opened.epochs]
    unwatched = [epoch | {"hypervolume": None} for epoch in opened.epochs]
    assert draw_hypervolumes(replace(opened, epochs=unwatched)) is None
