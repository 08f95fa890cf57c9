"""What can be asked about runs, checked against the library without a browser."""

import pytest
import torch

from asking import Asker
from lorpman.explorer.queries import LiveScores, Queries, StoredScores
from lorpman.explorer.request_guard import RequestRefused
from lorpman.lab.runs.directory import open_run


def test_scores_are_those_of_the_network_in_any_position(served, digits):
    model, live = open_run(digits)[1], served.queries.live_runs["digits"]
    x, y = live.held[0]
    for alpha in ([0.123, 0.877], [1, 0]):
        with torch.no_grad():
            outputs = model(x, torch.tensor(alpha, dtype=torch.float32))
        expected = [(o.argmax(1) == t).double().mean() for o, t in zip(outputs, y, strict=True)]
        assert Asker(served).ask("digits", alpha) == pytest.approx([float(e) for e in expected])


@pytest.fixture
def stored(opened):
    """Of a run without data: the stored front alone."""
    queries = Queries([opened], {})
    yield queries
    queries.close()


def test_without_data_the_nearest_stored_point_answers(stored, opened):
    alpha = stored.read_alpha(opened, [0.33, 0.67])
    assert alpha == pytest.approx([0.3, 0.7])
    answer = stored.scores_at(opened, alpha)
    assert isinstance(answer, StoredScores)
    assert answer.scores == opened.front.scores[answer.place].tolist()
    with pytest.raises(RequestRefused, match="nothing to export") as refused:
        stored.export(opened, alpha, "onnx")
    assert refused.value.code == 409


def test_a_search_without_data_is_the_library_s_own(stored, opened):
    bound = opened.front.scores[:, 0].median().item()
    choice = stored.find(opened, {"left": bound})
    expected = opened.front.select(at_least={"left": bound}, best="right")
    assert torch.equal(choice.alpha, expected.alpha)


def test_the_same_question_is_computed_once(served):
    run = served.queries.run_named("digits")
    live = served.queries.live_runs["digits"]
    first = served.queries.scores_at(run, (0.4321, 0.5679))
    hits = live.point.cache_info().hits
    second = served.queries.scores_at(run, (0.4321, 0.5679))
    assert isinstance(first, LiveScores)
    assert first.scores == second.scores
    assert live.point.cache_info().hits == hits + 1
