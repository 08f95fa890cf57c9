import pytest
import torch
from torch import nn

import lorpman as lp
from lorpman.rules.mgda import mgda_weights
from properties import assert_common_descent, assert_permutation_equivariant
from rules.small import (
    assert_left,
    close,
    gradients_of,
    gram_of,
    make_step,
    network,
    random_gram,
    tasks,
)


def _direction(weights, rows):
    return weights @ torch.tensor(rows, dtype=torch.float64)


def test_mgda():
    rows = [[2.0, 0.0], [0.0, 1.0]]
    weights = mgda_weights(gram_of(rows), torch.ones(2))
    close(weights, [0.2, 0.8])
    close(_direction(weights, rows), [0.4, 0.8])


@pytest.mark.parametrize(
    ("normalisation", "sizes"), [("l2", [2, 1]), ("loss", [3, 5]), ("loss+", [6, 5])]
)
def test_mgda_normalises_before_it_chooses(normalisation, sizes):
    rows = [[2.0, 0.0], [0.0, 1.0]]
    weights = mgda_weights(gram_of(rows), torch.tensor([3.0, 5.0]), normalisation)
    divided = [[value / size for value in row] for row, size in zip(rows, sizes, strict=True)]
    close(weights, mgda_weights(gram_of(divided), torch.ones(2)).tolist())


def test_mgda_gives_no_weight_to_a_longer_parallel_gradient():
    close(mgda_weights(gram_of([[1.0, 0.0], [3.0, 0.0]]), torch.ones(2)), [1.0, 0.0])


@pytest.mark.parametrize("normalisation", ["none", "l2", "loss", "loss+"])
def test_a_task_without_gradient_or_loss_divides_by_nothing(normalisation):
    gram = torch.tensor([[0.0, 0.0], [0.0, 4.0]])
    close(mgda_weights(gram, torch.tensor([0.0, 3.0]), normalisation), [1.0, 0.0])


@pytest.mark.parametrize("m", [2, 3, 12, 40])
def test_every_loss_falls_also_where_gradients_conflict(m):
    gram = random_gram(m, shift=-0.6)
    assert_common_descent(gram, mgda_weights(gram, torch.ones(m)))


@pytest.mark.parametrize("m", [2, 5, 40])
def test_renumbering_tasks_changes_nothing(m):
    assert_permutation_equivariant(lambda k: mgda_weights(k, torch.ones(len(k))), random_gram(m))


@pytest.mark.parametrize("normalisation", ["none", "loss"])
def test_feature_mgda_weighs_by_the_gradients_at_the_features(normalisation):
    model = lp.Single(network(3), 3)
    step = make_step(model)
    x, y = step.batch
    z = model.network.bottom(x)
    outputs = [head(z) for head in model.network.heads]
    losses = torch.stack([t.loss(o, v) for t, o, v in zip(tasks(3), outputs, y, strict=True)])
    rows = [torch.autograd.grad(f, z, retain_graph=True)[0].flatten().double() for f in losses]
    weights = mgda_weights(gram_of(torch.stack(rows).tolist()), losses.detach(), normalisation)
    lp.rules.FeatureMGDA(normalisation).backward(step)
    assert_left(model, gradients_of(model, (weights.float() * losses).sum()))


def test_feature_mgda_equals_mgda_where_the_bottom_is_the_identity_in_disguise():
    """For a bottom without weights to mix, the weights at features and parameters agree."""

    class Shift(nn.Module):
        def __init__(self):
            super().__init__()
            self.shift = nn.Parameter(torch.zeros(1, 4))

        def forward(self, x):
            return x + self.shift

    torch.manual_seed(0)
    net = lp.SharedBottom(Shift(), [nn.Linear(4, 1), nn.Linear(4, 1)])
    grads = []
    for rule in (lp.rules.MGDA(), lp.rules.FeatureMGDA()):
        model = lp.Single(net, 2)
        x = torch.randn(1, 4, generator=torch.Generator().manual_seed(1))
        lp.fit(
            model,
            tasks(2),
            [(x, [torch.zeros(1, 1), torch.ones(1, 1)])],
            epochs=1,
            objective=rule,
            progress=False,
            optimizer=lambda p: torch.optim.SGD(p, lr=0.1),
        )
        grads.append(model.network.bottom.shift.detach())
    torch.testing.assert_close(*grads)


def test_feature_mgda_leaves_no_hooks():
    model = lp.Single(network(), 2)
    lp.rules.FeatureMGDA().backward(make_step(model))
    assert not any(module._forward_hooks for module in model.modules())


def test_feature_mgda_refuses_a_bottom_of_several_outputs():
    class Two(nn.Linear):
        def forward(self, x):
            return [super().forward(x)] * 2

    class Head(nn.Linear):
        def forward(self, z):
            return super().forward(z[0])

    model = lp.Single(lp.SharedBottom(Two(4, 6), [Head(6, 1), Head(6, 1)]), 2)
    with pytest.raises(lp.UsageError, match="output is one tensor"):
        lp.rules.FeatureMGDA().backward(make_step(model))
