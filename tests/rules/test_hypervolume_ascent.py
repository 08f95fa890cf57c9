import pytest
import torch
from torch import nn

import lorpman as lp
from lorpman.front.hypervolume_gradient import hypervolume_weights
from lorpman.rules.cosine import cosines, opposite
from steps import step_of


def _total(rule, alphas, losses, epoch):
    seen = []
    model = lp.Hyper(nn.Linear(1, 1), 2, hidden=2)
    step = step_of(model, alphas, losses, seen.append, epoch)
    rule.backward(step)
    return seen[0]


def test_the_first_epochs_only_raise_the_cosines():
    alphas, losses = lp.dirichlet(2, 4), torch.rand(4, 2, requires_grad=True)
    rule = lp.HypervolumeAscent(warmup_epochs=2)
    aligned = cosines(losses, opposite(alphas)).sum()
    for epoch in (0, 1):
        torch.testing.assert_close(_total(rule, alphas, losses, epoch), -aligned)
    expected = (hypervolume_weights(losses, 2.0) * losses).sum() - 5.0 * aligned
    torch.testing.assert_close(_total(rule, alphas, losses, 2), expected)


def test_more_weight_is_drawn_to_less_loss():
    alphas = torch.tensor([[0.9, 0.1]])
    losses = torch.tensor([[1.0, 1.0]], requires_grad=True)
    _total(lp.HypervolumeAscent(), alphas, losses, 0).backward()
    # Gradient descent lowers the loss whose weight is large, relative to the other.
    assert losses.grad[0, 0] > losses.grad[0, 1]


def test_weights_are_constants():
    losses = torch.tensor([[0.5, 1.5], [1.5, 0.5]], requires_grad=True)
    alphas = torch.tensor([[0.7, 0.3], [0.3, 0.7]])
    _total(lp.HypervolumeAscent(cosine=0.0, warmup_epochs=0), alphas, losses, 0).backward()
    expected = torch.tensor([[0.4472, 0.8944], [0.8944, 0.4472]])
    torch.testing.assert_close(losses.grad, expected, atol=1e-4, rtol=0)


def test_a_negative_warmup_is_refused():
    with pytest.raises(lp.UsageError, match="warmup_epochs"):
        lp.HypervolumeAscent(warmup_epochs=-1)


def test_the_defaults_are_those_of_phn_hvi():
    rule = lp.HypervolumeAscent()
    assert (rule.reference, rule.cosine, rule.warmup_epochs) == (2.0, 5.0, 1)
