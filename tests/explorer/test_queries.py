"""What the page is told, checked against the library without a browser."""

import json

import plotly.graph_objects as go
import pytest
import torch

from asking import Asker, serving
from lorpman.errors import UsageError
from lorpman.explorer.bounds import demand_of, select_command
from lorpman.explorer.front_figures import front_figure, projections
from lorpman.explorer.learned_layers import layers
from lorpman.explorer.live_evaluation import Busy, Turns, rounded
from lorpman.explorer.opened_run import open_runs
from lorpman.explorer.panels import cost, one_network
from lorpman.explorer.run_figures import correlations, energies, losses
from lorpman.lab.runs.directory import open_run


def test_scores_are_those_of_the_network_in_any_position(served, digits):
    model, live = open_run(digits)[1], served.answers.lives["digits"]
    x, y = live.held[0]
    for alpha in ([0.123, 0.877], [1, 0]):
        with torch.no_grad():
            outputs = model(x, torch.tensor(alpha, dtype=torch.float32))
        expected = [(o.argmax(1) == t).double().mean() for o, t in zip(outputs, y, strict=True)]
        assert Asker(served).ask("digits", alpha) == pytest.approx([float(e) for e in expected])


def test_every_kind_of_run_says_what_can_be_chosen(digits, rivals, toy, tmp_path):
    runs = open_runs([digits, *rivals.values()], tmp_path)
    modes = {run.spec.method.name: run.mode for run in runs}
    assert modes == {
        "lorpman": "any",
        "pamal": "any",
        "cosmos": "any",
        "phn": "any",
        "pmtl": "members",
        "ls": "members",
    }
    with serving([digits, *rivals.values()]) as explorer:
        asker = Asker(explorer)
        for run in runs:
            assert all(0 <= score <= 1 for score in asker.ask(run.key, [0.3, 0.7]))
        # Between members there is nothing: a preference is answered by the nearest one.
        members = next(run for run in runs if run.spec.method.name == "pmtl")
        near = members.front.alphas[0] * 0.99 + 0.005
        assert asker.ask("pmtl", near.tolist()) == asker.ask(
            "pmtl", members.front.alphas[0].tolist()
        )
    with pytest.raises(UsageError, match="must have the same tasks"):
        open_runs([digits, toy], tmp_path)


def test_runs_of_one_name_get_keys_of_their_own(digits, tmp_path):
    twin = tmp_path / "digits"
    twin.mkdir()
    for name in ("run.json", "front.json", "metrics.jsonl"):
        (twin / name).write_bytes((digits / name).read_bytes())
    first, second = open_runs([digits, twin], tmp_path)
    assert first.key != second.key
    assert (first.mode, second.mode) == ("any", "stored")
    assert "weights are not here" in second.still


def test_a_run_without_a_front_is_refused_with_the_way_out(digits, tmp_path):
    (tmp_path / "run.json").write_bytes((digits / "run.json").read_bytes())
    with pytest.raises(UsageError, match="has no front yet"):
        open_runs([tmp_path], tmp_path)


def test_figures_are_valid_and_hold_every_point_once(digits, faces, objects, tmp_path):
    for path in (digits, faces[0], objects[0]):
        (run,) = open_runs([path], None)
        figure = front_figure([run])
        go.Figure(figure)
        found = {tuple(what) for trace in figure["data"] for what in trace.get("customdata", [])}
        assert found == {(run.key, place) for place in range(len(run.front))}
        shown = layers(run.model)
        for drawn in (losses(run), correlations(shown, run.front.tasks), cost([run]).figure):
            go.Figure(drawn)
        go.Figure(energies(shown, run.front.tasks))
    (run,) = open_runs([faces[0]], None)
    assert len(go.Figure(projections([run])).data) == 6


def test_layers_are_what_the_dense_matrices_say(digits):
    model = open_run(digits)[1]
    shown = {layer.name: layer for layer in layers(model)}
    for name, delta in model.low_rank_deltas().items():
        flat = delta.dense().flatten(1).double()
        cosine = torch.nn.functional.cosine_similarity(flat[0], flat[1], dim=0).item()
        assert shown[name].correlation[0][1] == pytest.approx(cosine, abs=1e-4)
        main = dict(model.network.named_parameters())[name].double()
        energy = (model.scale * flat).square().sum(1) / main.square().sum()
        assert shown[name].energy == pytest.approx(energy.tolist(), rel=1e-4)


def test_counts_are_the_network_s_own(digits):
    (run,) = open_runs([digits], None)
    assert one_network(run) == sum(p.numel() for p in run.model.network.parameters())


def test_the_demand_is_the_command_line_s(digits, faces):
    (run,) = open_runs([digits], None)
    assert demand_of(run.front, {"left": 0.3})["best"] == "right"
    assert select_command(run, {"left": 0.3}).endswith("--at-least left=0.3 --best right")
    (run,) = open_runs([faces[0]], None)
    demand = demand_of(run.front, {"age": 0.4})
    assert demand["at_most"] == {"age": 0.4}
    assert "utility" in demand
    command = select_command(run, {"age": 0.4})
    assert "--at-most age=0.4" in command
    assert "--utility gender=" in command
    better = {"age": 0.4, "gender": 0.9, "race": 0.9}
    assert demand["utility"](better) > demand["utility"]({**better, "race": 0.1})


def test_addresses_hold_preferences_that_sum_to_one():
    for alpha in (torch.tensor([1 / 3, 2 / 3]), torch.full((20,), 0.05), torch.eye(7)[3]):
        parts = rounded(alpha)
        assert sum(parts) == pytest.approx(1, abs=1e-9)
        assert parts == pytest.approx(alpha.tolist(), abs=1e-3)


def test_too_many_at_once_are_turned_away():
    turns = Turns(1)

    def ask_again():
        with pytest.raises(Busy):
            turns.run(lambda: None)
        return "done"

    assert turns.run(ask_again) == "done"
    assert turns.run(lambda: "again") == "again"
    turns.close()


def test_the_layout_names_no_other_machine(served):
    layout = Asker(served).get("_dash-layout").text
    assert "http" not in layout.replace("http://www.w3.org", "")
    json.loads(layout)
