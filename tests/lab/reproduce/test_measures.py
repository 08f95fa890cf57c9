"""What columns measure."""

import json

import pytest
import torch

from lorpman import Front, LowRank
from lorpman.lab.problems.toy import TRACED, optimum
from lorpman.lab.reproduce.measures import DISTANCE, chosen, correlation
from lorpman.lab.reproduce.reproduction import FinishedRun


def test_correlation_is_the_mean_cosine_of_the_products():
    torch.manual_seed(0)
    model = LowRank(torch.nn.Linear(4, 3), 3, rank=2)
    (delta,) = model.low_rank_deltas().values()
    assert correlation(model) == 0.0
    torch.nn.init.normal_(delta.B)
    products = [(delta.B[:, i] @ delta.A[i]).flatten() for i in range(3)]
    pairs = [(0, 1), (0, 2), (1, 2)]
    cosines = [torch.cosine_similarity(products[i], products[j], dim=0) for i, j in pairs]
    assert correlation(model) == pytest.approx(torch.stack(cosines).mean().item(), abs=1e-6)


def test_a_front_is_shown_by_its_knee_and_single_tasks_by_their_own_network():
    scores = torch.tensor([[0.9, 0.1], [0.8, 0.8], [0.1, 0.9]])
    alphas = torch.tensor([[1.0, 0.0], [0.5, 0.5], [0.0, 1.0]])
    front = Front(alphas, scores, ("a", "b"), (True, True), (0.0, 0.0))
    assert chosen(front, single=False).tolist() == [1, 1]
    assert chosen(front, single=True).tolist() == [0, 2]


def test_scenes_have_their_four_metrics(noise):
    for record in noise[1].records:
        values = record.values
        assert set(values) == {"miou", "pixels", "absolute", "relative"}
        assert 0 <= values["miou"] <= values["pixels"] <= 100
        errors = record.front.scores[:, 1].tolist()
        assert any(values["absolute"] == pytest.approx(error) for error in errors)
        assert values["relative"] > values["absolute"] > 0


def test_the_toys_distance_is_that_of_its_worst_preference(tmp_path):
    places = torch.stack([optimum(alpha) for alpha in TRACED])
    places[1] += torch.tensor([0.3, -0.4])
    note = {"number": 1, "theta": places.tolist()}
    (tmp_path / "metrics.jsonl").write_text(json.dumps(note) + "\n")
    run = FinishedRun(tmp_path, None, None, tmp_path)
    assert DISTANCE.measure(run) == pytest.approx(0.5)
