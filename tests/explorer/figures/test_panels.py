"""Figures with sentences."""

from dataclasses import replace

import plotly.graph_objects as go

from lorpman.explorer.figures.panels import (
    count_network_parameters,
    layer_panels,
    storage_panel,
    training_panels,
)
from lorpman.explorer.opened_run import open_runs


def test_counts_are_the_network_s_own(opened):
    run = opened
    assert count_network_parameters(run) == sum(p.numel() for p in run.model.network.parameters())


def test_every_panel_explains_itself(opened, faces, objects):
    for run in (opened, *open_runs([faces[0]], None), *open_runs([objects[0]], None)):
        panels = [*training_panels(run), *layer_panels(run), storage_panel([run])]
        for panel in panels:
            go.Figure(panel.figure)
            assert panel.why.endswith(".")
        assert len({panel.name for panel in panels}) == len(panels)


def test_what_a_run_lacks_has_no_panel(opened):
    bare = replace(opened, epochs=[], model=None)
    assert training_panels(bare) == []
    assert layer_panels(bare) == []
