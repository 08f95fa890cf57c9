import torch
from torch import nn

import lorpman as lp
from lorpman.rules.epo_solver import epo_weights
from steps import step_of


class Point(nn.Module):
    """Two quadratics of one point: the front is the segment between their minima."""

    def __init__(self):
        super().__init__()
        self.point = nn.Parameter(torch.tensor([0.9, 0.8]))

    def forward(self, x):
        return [self.point.expand(len(x), 2)] * 2


def _tasks():
    def to(target):
        return lambda output, _: (output - torch.tensor(target)).square().sum(1).mean()

    options = {"maximise": False, "reference": 10.0}
    pairs = (("first", [0.0, 0.0]), ("second", [1.0, 0.0]))
    return [lp.Task(name, to(target), to(target), **options) for name, target in pairs]


def test_its_gradient_is_that_of_m_times_the_weighted_losses():
    model = lp.Convex(nn.Linear(3, 2), 2)
    alphas = torch.tensor([[0.3, 0.7], [0.8, 0.2]])
    x = torch.randn(5, 3)

    def losses():
        return model(x, alphas).square().mean(1)

    step = step_of(model, alphas, losses())
    lp.rules.Epo().backward(step)
    found = [p.grad.clone() for p in model.stacked.values()]
    model.zero_grad()
    total = 0.0
    for alpha, row in zip(alphas, losses(), strict=True):
        rows = []
        for loss in row:
            grads = torch.autograd.grad(loss, list(model.stacked.values()), retain_graph=True)
            rows.append(torch.cat([g.flatten() for g in grads]))
        jacobian = torch.stack(rows)
        total = total + 2 * (epo_weights(row, jacobian @ jacobian.T, alpha) * row).sum()
    total.backward()
    for ours, parameter in zip(found, model.stacked.values(), strict=True):
        torch.testing.assert_close(ours, parameter.grad)


def test_every_preference_reaches_its_ray():
    torch.manual_seed(0)
    model = lp.Hyper(Point(), 2, hidden=20)
    loader = [(torch.zeros(1, 1), [torch.zeros(1), torch.zeros(1)])] * 200
    lp.fit(
        model,
        _tasks(),
        loader,
        epochs=2,
        window=1,
        objective=lp.rules.Epo(),
        optimizer=lambda p: torch.optim.Adam(p, lr=3e-3),
        progress=False,
        seed=0,
    )
    alphas = torch.tensor([[0.3, 0.7], [0.5, 0.5], [0.7, 0.3]])
    losses = lp.evaluate(model, _tasks(), loader[:1], alphas).losses
    products = alphas * losses
    torch.testing.assert_close(products[:, 0], products[:, 1], atol=0.06, rtol=0, check_dtype=False)
