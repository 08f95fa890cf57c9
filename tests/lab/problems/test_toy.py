import json

import pytest
import torch

from lorpman.lab.problems.toy import objectives, pareto_set
from lorpman.lab.runs.spec import Spec
from lorpman.lab.runs.train import train


def test_objectives_at_known_points():
    # The correct sign of tanh in h_2: the point (0, 4.5) is fair to both objectives.
    torch.testing.assert_close(objectives(torch.tensor([0.0, 4.5])), torch.full((2,), 6.76441))


def test_the_true_set_and_front():
    points = pareto_set()
    torch.testing.assert_close(
        points[100], torch.tensor([0.0, -8.35511]).double(), atol=1e-3, rtol=0
    )
    torch.testing.assert_close(
        points[-1], torch.tensor([7.0, -8.43446]).double(), atol=1e-3, rtol=0
    )
    front = objectives(points[[-1, 100]])
    expected = torch.tensor([[-19.98943, -0.39794], [-15.09164, -15.09164]]).double()
    torch.testing.assert_close(front, expected, atol=1e-4, rtol=0)


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    out = tmp_path_factory.mktemp("toy") / "run"
    return train(Spec.make("toy", "lorpman", 0, {}), out, out, progress=False), out


@pytest.mark.parametrize(
    ("alpha", "expected"),
    [((1.0, 0.0), (7, -8.43)), ((0.5, 0.5), (0, -8.36)), ((0.0, 1.0), (-7, -8.43))],
)
def test_lorpman_finds_the_pareto_set(finished, alpha, expected):
    theta = finished[0].model.theta(torch.tensor(alpha))
    point = torch.cat([theta["first"].flatten(), theta["second"]])
    assert torch.linalg.vector_norm(point - torch.tensor(expected)).item() < 0.2


def test_the_run_starts_where_the_paper_does_and_draws_its_figure(finished):
    _, out = finished
    first = json.loads((out / "metrics.jsonl").read_text().splitlines()[0])
    assert first["theta"] == [
        [pytest.approx(a, abs=1e-5), pytest.approx(4.5)] for a in (4.5, 0.0, 9.0)
    ]
    assert (out / "toy.png").stat().st_size > 10_000
