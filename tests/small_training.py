"""A small regression with two tasks that want opposite values: trained in tests of training."""

import re

import torch
from torch import nn
from torch.nn import functional as F

import lorpman as lp
from lorpman.lab.datasets.splits import Arrays, batches


def exactly(message):
    """The pattern that only the whole of ``message`` matches, for ``pytest.raises``."""
    return f"^{re.escape(message)}$"


def make_tasks():
    options = {"maximise": False, "reference": 10.0}
    return [lp.Task(name, F.mse_loss, F.mse_loss, **options) for name in ("left", "right")]


def make_network():
    """Always with the same weights; with a norm layer's statistics and with random numbers."""
    torch.manual_seed(1)
    bottom = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.Tanh(), nn.Dropout(0.1))
    return lp.SharedBottom(bottom, [nn.Linear(8, 1), nn.Linear(8, 1)])


def make_model(**options):
    return lp.LowRank(make_network(), 2, **options)


def make_data(transform=None):
    x = torch.randn(60, 4, generator=torch.Generator().manual_seed(2))
    return Arrays(x, [x[:, :1].clone(), -x[:, :1].clone()], transform=transform)


def make_loader():
    """Three batches per epoch, in an order of its own generator."""
    return batches(make_data(), 20, shuffle=True, generator=torch.Generator().manual_seed(3))


def fit_small(model=None, loader=None, **options):
    """Train for three epochs unless told otherwise; the model and its history."""
    model = model or make_model()
    torch.manual_seed(4)
    settings = {"epochs": 3, "progress": False, "seed": 5, **options}
    history = lp.fit(model, make_tasks(), loader or make_loader(), **settings)
    return model, history


def same_weights(left, right):
    """Whether two modules, or their state dictionaries, have the same bits."""
    left, right = (m.state_dict() if isinstance(m, nn.Module) else m for m in (left, right))
    return left.keys() == right.keys() and all(torch.equal(left[k], right[k]) for k in left)


class Noisy:
    """A transform with a generator of its own, as augmentation has."""

    def __init__(self, seed):
        self.generator = torch.Generator().manual_seed(seed)

    def __call__(self, x, targets):
        return x + 0.1 * torch.randn(x.shape, generator=self.generator), targets


class LooksAtOtherData(lp.Rule):
    """A rule that measures on other batches, and has state and a parameter of its own."""

    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(2))
        self.register_buffer("seen", torch.zeros(()))

    def backward(self, step):
        for _ in range(int(self.seen) % 3):
            self.seen += step.losses_at(step.alphas, step.another_batch()).detach().sum() * 0
        self.seen += 1
        step.backward((step.alphas * step.losses * self.weight).sum())


def make_random_loader(own_generator=True):
    """Six batches per epoch, in random order and with random noise."""
    order = torch.Generator().manual_seed(3) if own_generator else None
    return batches(make_data(Noisy(7)), 10, shuffle=True, generator=order)


def fit_with_all_state(path=None, loader=None, **options):
    """Train with everything that a checkpoint must hold: three epochs, frozen in the third."""
    settings = {"objective": LooksAtOtherData(), "freeze_epoch": 2, "checkpoint": path}
    settings["scheduler"] = lambda o: torch.optim.lr_scheduler.CosineAnnealingLR(o, 3)
    return fit_small(loader=loader or make_random_loader(), **{**settings, **options})


class Stopped(Exception):
    """Training was ended from outside."""


def stopping_after(steps):
    """A sampler of the usual preferences that ends training after so many steps."""
    left = [steps]

    def draw(num_tasks, count, generator):
        if left[0] == 0:
            raise Stopped
        left[0] -= 1
        return lp.dirichlet(num_tasks, count, 1.0, generator)

    return draw
