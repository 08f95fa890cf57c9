"""What is timed after training gives the right answers, too."""

import pytest
import torch

from lorpman.lab.bench import inference_rows
from lorpman.lab.bench.workload import from_preset


@pytest.fixture
def workload():
    return from_preset("multidigits", (1, 12, 12), 10, batch=8)


def test_the_orthogonality_term_is_that_of_dense_deltas(workload, monkeypatch):
    model = inference_rows._low_rank(workload)
    inference_rows._check_equal(model)
    monkeypatch.setattr(inference_rows, "orthogonality", lambda gram: gram.sum())
    with pytest.raises(RuntimeError, match="from dense deltas"):
        inference_rows._check_equal(model)


def test_switching_gives_the_network_of_the_preference(workload):
    calls = inference_rows._switching(workload, ", small")
    assert set(calls) == {"forward, small", "switch, small", "solution, small"}
    for call in calls.values():
        call()


def test_a_plain_pass_sums_loss_and_hits_over_batches(workload):
    network = workload.network().eval()
    x, targets = workload.plain_batch()
    halves = [(x[:4], [t[:4] for t in targets]), (x[4:], [t[4:] for t in targets])]
    whole = inference_rows._plain_pass(network, workload.tasks, [(x, targets)])
    split = inference_rows._plain_pass(network, workload.tasks, halves)
    assert split == pytest.approx(whole, rel=1e-5)
    hits = (network(x)[0].argmax(1) == targets[0]).sum()
    assert whole[1] == hits
    assert torch.is_grad_enabled()
