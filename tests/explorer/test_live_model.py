"""A model that no run directory holds."""

import io
import zipfile

import pytest
import torch
from torch.utils.data import DataLoader, TensorDataset

import lorpman as lp
from asking import Asker
from lorpman.errors import UsageError
from lorpman.explorer.live_model import gather_samples, open_model
from lorpman.explorer.server import serve_runs


def _own(n=60):
    torch.manual_seed(0)
    network = lp.SharedBottom(torch.nn.Linear(4, 8), [torch.nn.Linear(8, 3), torch.nn.Linear(8, 2)])
    entropy = torch.nn.functional.cross_entropy
    tasks = [
        lp.Task("colour", entropy, lp.accuracy, classes=["red", "green", "blue"]),
        lp.Task("size", entropy, lp.accuracy, classes=["small", "large"]),
    ]
    x = torch.randn(n, 4)
    y = [(x[:, :3].argmax(1)), (x.sum(1) > 0).long()]
    model = lp.LowRank(network, num_tasks=2, rank=2)
    batches = [(x, y)]
    lp.fit(model, tasks, batches, epochs=40, progress=False)
    return model, tasks, x, y


@pytest.fixture(scope="module")
def own():
    return _own()


def test_every_form_of_data_gives_the_same_samples(own):
    _, tasks, x, y = own
    pairs = TensorDataset(x, torch.stack(y, 1))
    forms = [
        (x, y),
        (x, {"colour": y[0], "size": y[1]}),
        pairs,
        DataLoader(pairs, batch_size=7),
        [(x[:10], [t[:10] for t in y]), (x[10:], [t[10:] for t in y])],
    ]
    for form in forms:
        samples = gather_samples(form, tasks)
        assert torch.equal(samples.x, x)
        assert all(torch.equal(a, b) for a, b in zip(samples.targets, y, strict=True))
        assert torch.equal(samples[3][0], x[3])


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ([], "data is empty"),
        (7, "data must be a Dataset"),
        (iter([]), "iterable more than once"),
        ((torch.zeros(3, 4), [torch.zeros(2), torch.zeros(2)]), "must have one length"),
    ],
)
def test_other_data_is_refused(own, data, message):
    with pytest.raises(UsageError, match=message):
        gather_samples(data, own[1])


def test_a_model_is_scored_shown_searched_and_taken_away(own):
    model, tasks, x, y = own
    run = open_model(model, tasks, (x, y), name="mine")
    assert run.mode == "any"
    expected = lp.evaluate(model, tasks, [(x, y)])
    assert torch.allclose(run.front.scores, expected.scores)
    explorer = serve_runs([run], port=0)
    try:
        asker = Asker(explorer)
        assert asker.ask("mine", [1.0, 0.0]) == pytest.approx(run.front.scores[-1].tolist())
        archive = asker.get("export?run=mine&alpha=0.5,0.5&format=safetensors")
        names = zipfile.ZipFile(io.BytesIO(archive.data)).namelist()
        assert "model.safetensors" in names
        page = asker.get("_dash-layout").text
        assert "given samples" in page
        assert "test samples" not in page
    finally:
        explorer.close()


def test_the_page_of_a_model_works_in_a_browser(own, window):
    model, tasks, x, y = own
    show = lambda row: {"red": row[0], "green": row[1], "blue": row[2]}  # noqa: E731
    explorer = serve_runs([open_model(model, tasks, (x, y), name="mine", show=show)], port=0)
    explorer.start()
    try:
        view = window(explorer.url + "?alpha=1,0")
        view.settled()
        cards = view.page.locator("figure").all_text_contents()
        assert all("green" in card for card in cards)
        assert "lp.export(model, [1,0]" in view.page.text_content("#command")
        assert "Against equal weights" in view.page.text_content("#scores")
    finally:
        explorer.close()


def test_one_network_for_all_preferences_says_so():
    model = lp.Single(torch.nn.Sequential(torch.nn.Linear(4, 2)), 2)
    tasks = [lp.Task(n, torch.nn.functional.mse_loss, torch.nn.functional.mse_loss,
                     maximise=False, reference=9.0) for n in "ab"]  # fmt: skip
    data = (torch.randn(5, 4), torch.randn(5, 2))
    run = open_model(model, tasks, data)
    assert (run.mode, run.origin.kind) == ("members", "single")
