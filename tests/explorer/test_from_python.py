import urllib.request

import pytest
import torch

import lorpman as lp
from small_problem import TASKS, load, network, small_problem


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    out = tmp_path_factory.mktemp("run") / "small"
    return lp.train(small_problem(), out=out, epochs=1, progress=False)


def _layout(explorer):
    try:
        with urllib.request.urlopen(explorer.url + "_dash-layout") as answer:
            return answer.read().decode()
    finally:
        explorer.close()


def test_a_report_is_written_where_it_is_asked_for(trained, tmp_path):
    assert lp.report(trained, tmp_path / "mine.html") == tmp_path / "mine.html"
    assert "small" in (tmp_path / "mine.html").read_text()
    again = lp.report(trained.path, problem=small_problem())
    assert again == trained.path / "report.html"
    assert again.exists()


def test_the_page_about_a_run(trained):
    assert "number" in _layout(lp.explore(trained, block=False))


def test_the_page_about_a_model_of_ones_own_loop():
    model = lp.LowRank(network(), num_tasks=2, rank=2)
    optimizer = torch.optim.Adam(model.parameters())
    x, targets = load().train.parts
    for _ in range(3):
        alpha = lp.dirichlet(2, 1)
        outputs = model(x, alpha[0])
        losses = [t.loss(o, y) for t, o, y in zip(TASKS, outputs, targets, strict=True)]
        optimizer.zero_grad()
        (alpha[0] * torch.stack(losses)).sum().backward()
        optimizer.step()
    page = _layout(lp.explore(model, tasks=TASKS, data=load().test, block=False))
    assert "lowrank" in page


def test_what_cannot_be_shown_is_refused():
    model = lp.LowRank(network(), num_tasks=2, rank=2)
    with pytest.raises(lp.UsageError, match="needs tasks="):
        lp.explore(model, block=False)
    with pytest.raises(lp.UsageError, match="needs a run, a run directory or a manifold"):
        lp.explore(block=False)
