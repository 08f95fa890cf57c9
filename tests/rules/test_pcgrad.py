import pytest
import torch

import lorpman as lp
from lorpman.rules.pcgrad import pcgrad_weights
from rules.small import close, gram_of, row_of


def _direction(weights, rows):
    return weights @ torch.tensor(rows, dtype=torch.float64)


def test_pcgrad():
    rows = [[1.0, 0.0], [-1.0, 1.0]]
    weights = pcgrad_weights(gram_of(rows), torch.tensor([[0, 1], [1, 0]]))
    close(_direction(weights, rows), [0.5, 1.5])


def test_pcgrad_leaves_gradients_that_agree():
    close(pcgrad_weights(torch.eye(3) + 0.1, torch.arange(3).expand(3, 3)), [1.0, 1.0, 1.0])


def test_pcgrad_projects_in_turn_off_the_originals():
    rows = torch.randn(4, 6, dtype=torch.float64)
    orders = torch.stack([torch.randperm(4) for _ in range(4)])
    total = torch.zeros(6, dtype=torch.float64)
    for i in range(4):
        own = rows[i].clone()
        for j in orders[i].tolist():
            if j != i and own @ rows[j] < 0:
                own = own - (own @ rows[j]) / (rows[j] @ rows[j]) * rows[j]
        total += own
    torch.testing.assert_close(pcgrad_weights(rows @ rows.T, orders) @ rows, total)


def test_a_gradient_of_length_zero_is_not_projected_off():
    assert pcgrad_weights(torch.zeros(2, 2), torch.tensor([[0, 1], [1, 0]])).tolist() == [1.0, 1.0]


def test_every_task_is_looked_at_in_a_random_order():
    gram = gram_of([[1.0, 0.0], [-1.0, 0.2], [0.1, -1.0]])
    drawn = {tuple(lp.rules.PCGrad().weights(row_of(gram)).tolist()) for _ in range(50)}
    assert len(drawn) > 2


@pytest.mark.parametrize(("reduction", "share"), [("sum", 1.0), ("mean", 0.25)])
def test_the_reduction_is_that_of_heads_too(reduction, share):
    rule = lp.rules.PCGrad(reduction)
    weights = rule.weights(row_of(torch.eye(4)))
    close(weights, [share] * 4)
    close(rule.head_weights(weights), [share] * 4)
