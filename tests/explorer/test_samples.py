"""Inputs to look at."""

import dataclasses

import torch
from torch import nn

import lorpman as lp
from lorpman.explorer.samples import (
    Prediction,
    _one_per_task,
    choose_samples,
    class_name,
    first_samples,
)


def test_samples_that_depend_on_the_preference_come_first(served):
    live = served.queries.live_runs["digits"]
    x, y = first_samples(live.held[0], 200)
    classes = [
        [output.argmax(1) for output in live.model.solution(alpha).eval()(x)]
        for alpha in (torch.tensor([0.5, 0.5]), *torch.eye(2))
    ]
    moves = sum(
        (classes[0][task] != corner[task]).long() for corner in classes[1:] for task in (0, 1)
    )
    samples = choose_samples(live.model, live.tasks, (x, y))
    shown = [int((x == one).flatten(1).all(1).nonzero()[0]) for one in samples.x]
    assert len(shown) == min(8, len(x))
    assert shown == sorted(shown)
    assert all(moves[row] > 0 for row in shown) or (moves > 0).sum() < len(shown)


def test_of_tasks_with_inputs_of_their_own_the_first_that_moves_is_shown():
    x = [torch.arange(5.0) + 10 * task for task in range(9)]
    y = [torch.arange(5) for _ in x]
    # Task 0 never moves; of every other one, the samples from its number on, modulo 5.
    moved = [torch.arange(5) >= task % 5 if task else torch.zeros(5).bool() for task in range(9)]
    inputs, targets, cards = _one_per_task(x, y, moved)
    assert [float(one) for one in inputs] == [0, 11, 22, 33, 44, 50, 61, 72, 83]
    assert [int(one) for one in targets] == [0, 1, 2, 3, 4, 0, 1, 2, 3]
    assert cards == [[task] for task in range(1, 9)]


def test_only_another_class_is_a_flip():
    seven, one = Prediction(0, "7", True), Prediction(0, "1", False)
    assert one.flipped(seven)
    assert not seven.flipped(seven)
    assert not Prediction(0, "0.31", None).flipped(Prediction(0, "0.32", None))


def _tables(n=40):
    """Rows ``{"income": ..., "place": ...}`` and two tasks: a class with a name, and a number."""

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.body = nn.Linear(3, 6)
            self.kind, self.size = nn.Linear(6, 2), nn.Linear(6, 1)

        def forward(self, x):
            hidden = self.body(torch.cat([x["income"][:, None], x["place"]], 1))
            return [self.kind(hidden), self.size(hidden)]

    torch.manual_seed(0)
    tasks = [
        lp.Task("kind", nn.functional.cross_entropy, lp.accuracy, classes=["cat", "dog"]),
        lp.Task("size", nn.functional.mse_loss, nn.functional.mse_loss, maximise=False,
                show=lambda output: f"{output.item() * 100:.0f} cm"),
    ]  # fmt: skip
    x = {"income": torch.randn(n), "place": torch.randn(n, 2)}
    return Net(), tasks, (x, [torch.randint(2, (n,)), torch.randn(n, 1)])


class _OneNetwork:
    """Enough of a manifold for choosing samples: every preference has the same network."""

    num_tasks = 2

    def __init__(self, network):
        self.solution = lambda alpha: network


def test_names_stand_for_classes_and_words_for_numbers():
    network, tasks, batch = _tables()
    samples = choose_samples(_OneNetwork(network), tasks, batch)
    with torch.no_grad():
        outputs = network(samples.x)
    for card, (kind, size) in enumerate(samples.balanced):
        label = int(outputs[0][card].argmax())
        assert kind.text == ["cat", "dog"][label]
        assert kind.truth == ["cat", "dog"][int(samples.y[0][card])]
        assert kind.right == (kind.text == kind.truth)
        assert size.text == f"{float(outputs[1][card]) * 100:.0f} cm"
        assert size.right is None
    assert class_name(tasks[0], 7) == "7", "a head may be wider than the classes"


def test_inputs_in_a_dict_are_cut_and_shown_as_the_problem_says():
    network, tasks, (x, y) = _tables()
    samples = choose_samples(_OneNetwork(network), tasks, (x, y))
    assert samples.x["place"].shape == (8, 2)
    assert [name for name, _ in samples.inputs[0].row] == ["income", "place"]
    told = choose_samples(
        _OneNetwork(network), tasks, (x, y), lambda one: f"earns {one['income']:.2f}"
    )
    assert [one.text for one in told.inputs] == [f"earns {v:.2f}" for v in told.x["income"]]


def test_a_sample_without_a_label_is_neither_right_nor_wrong():
    network, tasks, (x, (kind, size)) = _tables()
    seen = torch.arange(len(kind)) % 2 == 0
    by_mask = [lp.Masked(kind, seen), lp.Masked(size, seen)]
    gaps = dataclasses.replace(tasks[0], missing=-1), tasks[1]
    by_value = [torch.where(seen, kind, -1), size]
    for its_tasks, y in ((tasks, by_mask), (gaps, by_value)):
        samples = choose_samples(_OneNetwork(network), its_tasks, (x, y))
        answers = [card[0] for card in samples.balanced]
        assert [one.right is None for one in answers] == [row % 2 == 1 for row in range(8)]
        assert [bool(one.truth) for one in answers] == [row % 2 == 0 for row in range(8)]


def test_texts_are_cut_and_given_to_the_network_as_they_are():
    """Alone, or beside numbers in a dict whose keys are the network's own arguments."""
    network, tasks, (x, y) = _tables()
    texts = [f"{number:.3f}" for number in x["income"]]

    class Reads(nn.Module):
        def forward(self, income, place=None):
            place = torch.zeros(len(income), 2) if place is None else place
            return network({"income": torch.tensor([float(t) for t in income]), "place": place})

    for given in (texts, {"income": texts, "place": x["place"]}):
        samples = choose_samples(_OneNetwork(Reads()), tasks, (given, y))
        assert len(samples.balanced) == 8
        shown = samples.x if isinstance(given, list) else samples.x["income"]
        assert set(shown) <= set(texts)
    first = samples.inputs[0].row[0]
    assert first == ("income", samples.x["income"][0])


class _Joined:
    """A batch that cannot be cut, as graph libraries join their samples."""

    def __init__(self, x):
        self.x = x

    def __getitem__(self, row):
        return {"income": self.x["income"][row]}


def test_a_batch_that_cannot_be_cut_is_shown_by_its_rows():
    network, tasks, (x, y) = _tables()

    class Unjoins(nn.Module):
        def forward(self, joined):
            return network(joined.x)

    whole = choose_samples(_OneNetwork(network), tasks, (x, y))
    joined = choose_samples(_OneNetwork(Unjoins()), tasks, (_Joined(x), y))
    assert first_samples((_Joined(x), y), 3)[1][0] is y[0]
    assert joined.balanced == whole.balanced
    assert [one.row[0] for one in joined.inputs] == [one.row[0] for one in whole.inputs]
