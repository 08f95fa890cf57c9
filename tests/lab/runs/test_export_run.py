from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

import lorpman as lp
from lorpman.lab.runs.directory import open_run
from lorpman.lab.runs.export_run import export_from_run
from small_training import exactly

KEPT = Path(__file__).parents[2] / "kept" / "multidigits"


@pytest.fixture(scope="module")
def opened():
    spec, model = open_run(KEPT)
    return spec, model, spec.load(KEPT)


def test_a_network_has_its_weights_and_a_card_of_its_scores(tmp_path, opened):
    spec, model, splits = opened
    alpha = torch.tensor([0.5, 0.5])
    exported = export_from_run(spec, model, splits, alpha, tmp_path / "m.safetensors")
    weights = load_file(tmp_path / "m.safetensors")
    for name, value in model.solution(alpha).state_dict().items():
        torch.testing.assert_close(weights[name], value)
    described = spec.described()
    assert {key: exported.card[key] for key in described} == described
    # The same as in the front that the run left.
    front = lp.Front.load(KEPT / "front.json")
    expected = dict(zip(front.tasks, front.scores[5].tolist(), strict=True))
    assert exported.card["scores"]["test"] == pytest.approx(expected, abs=1e-3)
    assert exported.card["scores"]["validation"] != exported.card["scores"]["test"]
    assert "recalibrated" not in exported.card


def test_a_whole_front_has_a_card_of_all_its_points(tmp_path, opened):
    exported = export_from_run(*opened, None, tmp_path / "front.pt2")
    front = lp.Front.load(KEPT / "front.json")
    assert [point["alpha"] for point in exported.card["front"]] == front.alphas.tolist()
    for point, scores in zip(exported.card["front"], front.scores.tolist(), strict=True):
        assert list(point["test"].values()) == pytest.approx(scores, abs=1e-3)
    assert "scores" not in exported.card


def test_without_batch_norm_there_is_nothing_to_recalibrate(tmp_path, opened):
    message = "--recalibrate: the network has no BatchNorm; leave the option out"
    alpha = torch.tensor([0.5, 0.5])
    with pytest.raises(lp.UsageError, match=exactly(message)):
        export_from_run(*opened, alpha, tmp_path / "m.safetensors", recalibrate_from=2)
    assert list(tmp_path.iterdir()) == []
