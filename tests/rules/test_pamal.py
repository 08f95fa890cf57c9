import pytest
import torch
from torch import nn

from lorpman import Balanced, Convex, Linear, MultiForward, SharedBottom, UsageError
from steps import step_of


def _model():
    return Convex(SharedBottom(nn.Linear(4, 3), [nn.Linear(3, 1), nn.Linear(3, 1)]), 2)


def _losses(model, alphas, scale=(1.0, 1.0)):
    x = torch.arange(20.0).view(5, 4) / 10
    return torch.stack(
        [
            torch.stack(
                [s * out.square().mean() for s, out in zip(scale, model(x, a), strict=True)]
            )
            for a in alphas
        ]
    )


def _step(model, alphas, losses, seen=None):
    def backward(total):
        if seen is not None:
            seen.append(total)
        total.backward()

    return step_of(model, alphas, losses, backward)


def _total(rule, model, alphas, losses):
    seen = []
    rule.backward(_step(model, alphas, losses, seen))
    return seen[0].item()


ALPHAS = torch.tensor([[0.3, 0.7], [0.9, 0.1]])


def test_without_balance_it_is_linear_scalarisation():
    model = _model()
    losses = _losses(model, ALPHAS)
    expected = Linear()(ALPHAS, losses, model).item()
    assert _total(Balanced("none"), model, ALPHAS, losses) == pytest.approx(expected)


def test_gradient_balancing_divides_by_the_norm_over_all_members_of_the_shared_part():
    model = _model()
    losses = _losses(model, ALPHAS)
    expected = 0.0
    for alpha, row in zip(ALPHAS, _losses(model, ALPHAS), strict=True):
        theta = {n: p.detach().requires_grad_() for n, p in model.theta(alpha).items()}
        x = torch.arange(20.0).view(5, 4) / 10
        outputs = torch.func.functional_call(model.network, theta, (x,))
        for a, loss, out in zip(alpha, row, outputs, strict=True):
            bottom = [theta["bottom.weight"], theta["bottom.bias"]]
            found = torch.autograd.grad(out.square().mean(), bottom, retain_graph=True)
            # The chain rule: member i receives alpha_i times the gradient at theta(alpha).
            norm = alpha.norm() * torch.cat([g.flatten() for g in found]).norm()
            expected += (a * loss / (norm + 1e-3)).item()
    assert _total(Balanced("gradnorm"), model, ALPHAS, losses) == pytest.approx(expected, rel=1e-5)


def test_gradient_balancing_makes_the_tasks_pull_equally():
    model = _model()
    alphas = torch.tensor([[0.5, 0.5]])
    rule = Balanced("gradnorm")
    model.zero_grad()
    rule.backward(_step(model, alphas, _losses(model, alphas, (1.0, 1000.0))))
    scaled = model.members()["bottom.weight"].grad.clone()
    model.zero_grad()
    rule.backward(_step(model, alphas, _losses(model, alphas, (1.0, 100.0))))
    torch.testing.assert_close(model.members()["bottom.weight"].grad, scaled, rtol=0.01, atol=1e-4)


def test_loss_balancing_starts_after_25_losses():
    model, rule = _model(), Balanced("rwa")
    losses = torch.tensor([[1.0, 3.0]], requires_grad=True)
    alphas = torch.tensor([[0.5, 0.5]])
    totals = [_total(rule, model, alphas, losses) for _ in range(26)]
    assert totals[:25] == [pytest.approx(2.0)] * 25
    # Weights 1 - 1/4 and 1 - 3/4.
    assert totals[25] == pytest.approx(0.5 * 0.75 * 1 + 0.5 * 0.25 * 3)


def test_loss_balancing_forgets_what_is_older_than_25_losses():
    model, rule = _model(), Balanced("rwa")
    alphas = torch.tensor([[0.5, 0.5]])
    for value in [100.0] * 30 + [1.0] * 25:
        losses = torch.tensor([[value, 1.0]], requires_grad=True)
        total = _total(rule, model, alphas, losses)
    assert total == pytest.approx(0.5)


def test_full_balancing_is_the_norm_of_the_weighted_loss():
    model, rule = _model(), Balanced("full")
    alphas = torch.tensor([[0.5, 0.5]])
    losses = _losses(model, alphas)
    for _ in range(26):
        total = _total(rule, model, alphas, _losses(model, alphas))
    share = 1 - (losses / losses.sum()).detach()[0]
    shared = model.shared_parameters(alphas[0])
    norms = torch.tensor(
        [
            torch.cat(
                [g.flatten() for g in torch.autograd.grad(loss, shared, retain_graph=True)]
            ).norm()
            for loss in losses[0]
        ]
    )
    expected = (0.5 * share * losses[0] / (share * norms + 1e-3)).sum()
    assert total == pytest.approx(expected.item(), rel=1e-5)


@pytest.mark.parametrize(("weight", "added"), [(0.1, True), (100.0, False)])
def test_the_regulariser_is_left_out_where_it_exceeds_the_losses(weight, added):
    model = _model()
    losses = torch.tensor([[0.1, 0.9], [0.9, 0.1]], requires_grad=True)
    alphas = torch.tensor([[0.2, 0.8], [0.8, 0.2]])
    plain = (alphas * losses).sum().item()
    extra = (weight * MultiForward())(alphas, losses, model).item()
    guarded = _total(Balanced("none", weight * MultiForward()), model, alphas, losses)
    assert guarded == pytest.approx(plain + extra if added else plain)
    always = Balanced("none", weight * MultiForward(), guard=False)
    assert _total(always, model, alphas, losses) == pytest.approx(plain + extra)


def test_its_memory_survives_a_checkpoint():
    rule, other = Balanced("rwa"), Balanced("rwa")
    alphas, losses = ALPHAS, torch.rand(2, 2, requires_grad=True)
    for _ in range(20):
        rule.backward(_step(_model(), alphas, losses))
    other.load_state_dict(rule.state_dict())
    model = _model()
    assert _total(rule, model, alphas, losses) == _total(other, model, alphas, losses)


def test_an_unknown_balance_is_refused():
    with pytest.raises(UsageError, match="did you mean 'gradnorm'"):
        Balanced("gradnrm")
