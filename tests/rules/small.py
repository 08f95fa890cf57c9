"""Small networks and single steps, for testing rules without a training run."""

import torch
from torch import nn
from torch.nn import functional as F

import lorpman as lp
from lorpman.rules.balancer import Row
from lorpman.rules.base import Step
from lorpman.task import task_losses
from steps import step_of


def gram_of(rows):
    matrix = torch.tensor(rows, dtype=torch.float64)
    return matrix @ matrix.T


def random_gram(m, shift=0.0, seed=0):
    """Of gradients that conflict where ``shift`` is below zero."""
    generator = torch.Generator().manual_seed(seed)
    rows = torch.randn(m, 2 * m + 3, generator=generator, dtype=torch.float64)
    rows = rows + shift * rows.mean(0)
    return rows @ rows.T


def spread_gram(seed, m, size, spread=1.0):
    """Of ``m`` random gradients with ``size`` entries whose lengths differ by powers of ten."""
    generator = torch.Generator().manual_seed(seed)
    rows = torch.randn(m, size, generator=generator, dtype=torch.float64)
    rows *= 10 ** (spread * torch.randn(m, 1, generator=generator, dtype=torch.float64))
    return rows @ rows.T


def close(found, expected, tolerance=1e-4):
    """Equal but for rounding, whatever the types."""
    torch.testing.assert_close(
        torch.as_tensor(found).double(), torch.tensor(expected).double(), atol=tolerance, rtol=0
    )


def row_of(gram, losses=None, index=0, alphas=None, epoch=0):
    """One preference of a step as balancers see it, made by hand."""
    m = len(gram)
    losses = torch.ones(1, m) if losses is None else torch.as_tensor(losses)
    alphas = torch.full_like(losses, 1 / m) if alphas is None else alphas
    step = step_of(None, alphas, losses, epoch=epoch)
    return Row(index, step, losses[index].double(), gram.double())


def gradients_of(model, scalar):
    """The gradient of a scalar in every parameter of ``model``, by name."""
    parameters = dict(model.named_parameters())
    reached = torch.autograd.grad(
        scalar, list(parameters.values()), retain_graph=True, allow_unused=True
    )
    return dict(zip(parameters, reached, strict=True))


def assert_left(model, expected):
    """Every parameter of ``model`` was left the gradient that ``expected`` has under its name."""
    for name, parameter in model.named_parameters():
        torch.testing.assert_close(parameter.grad, expected[name], msg=name)


def tasks(m):
    return [
        lp.Task(f"t{i}", F.mse_loss, F.mse_loss, maximise=False, reference=10.0) for i in range(m)
    ]


def network(m=2, norm=False, dropout=0.0, seed=1):
    torch.manual_seed(seed)
    norms = [nn.BatchNorm1d(6)] if norm else []
    layers = [nn.Linear(4, 6), *norms, nn.Tanh(), nn.Dropout(dropout)]
    return lp.SharedBottom(nn.Sequential(*layers), [nn.Linear(6, 1) for _ in range(m)])


def data(m=2, n=24, seed=2):
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(n, 4, generator=generator)
    mixing = torch.randn(4, m, generator=generator)
    return x, [y[:, None].tanh() for y in (x @ mixing).T]


def make_step(model, learning_rate=1e-3, epoch=0, batch=None, optimizer=None):
    m = model.num_tasks
    batch = data(m) if batch is None else batch
    alphas = model.sampler(1.0)(m, 4, None)

    def losses_at(alphas, batch):
        outputs = [model(batch[0], alpha) for alpha in alphas]
        return torch.stack([task_losses(out, batch[1], tasks(m)) for out in outputs])

    return Step(
        alphas=alphas,
        model=model,
        backward=lambda scalar: scalar.backward(),
        losses_at=losses_at,
        batch=batch,
        another_batch=lambda: data(m, seed=9),
        epoch=epoch,
        epochs=10,
        optimizer=optimizer or torch.optim.SGD(model.parameters(), lr=learning_rate),
    )


def one_step(model, rule, learning_rate=1e-3, epoch=0, batch=None, update=True):
    """Run ``rule`` once, and the optimiser if ``update``; the step."""
    model.zero_grad()
    rule.zero_grad()
    step = make_step(model, learning_rate, epoch, batch)
    rule.backward(step)
    if update:
        step.optimizer.step()
    return step


class Point(nn.Module):
    def __init__(self, start):
        super().__init__()
        self.theta = nn.Parameter(start.clone())

    def forward(self, x):
        return self.theta


def point_step(start, targets, learning_rate):
    """A step of a network that is a point, with ``f_i = |theta - a_i|^2 / 2``."""
    model = lp.Single(Point(start), len(targets))
    step = make_step(model, learning_rate, batch=(None, None))

    def losses_at(alphas, batch):
        return 0.5 * (model.network.theta - targets).square().sum(1)[None]

    return Step(**{**step.__dict__, "losses_at": losses_at, "another_batch": lambda: None}), (
        model.network
    )
