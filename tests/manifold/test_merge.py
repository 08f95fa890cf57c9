"""Fast ways to merge give what the simple one gives, values and gradients."""

import copy

import pytest
import torch
from torch import nn
from torch.func import functional_call, grad

import lorpman as lp
from lorpman.lab.networks.resnet import resnet18
from lorpman.manifold import merge as merging
from lorpman.manifold.merge import cheapest, merge

FAST = ["product", "pairs"]
# (shape of the weight, rows of the matrix, tasks, inner size, preferences)
SHAPES = [
    ((4, 6), 4, 2, 3, 4),
    ((7, 5, 3, 3), 21, 3, 2, 1),
    ((10, 1, 5, 5), 50, 2, 5, 4),
    ((300, 9), 300, 5, 4, 3),
    ((1, 8), 1, 1, 1, 2),
]


def _inputs(shape, rows, m, rank, b, seed=0):
    generator = torch.Generator().manual_seed(seed)
    columns = torch.Size(shape).numel() // rows

    def draw(*size):
        return torch.randn(*size, generator=generator, dtype=torch.float64)

    weight, B, A = draw(*shape), draw(rows, m, rank), draw(m, rank, columns)
    alphas = lp.dirichlet(m, b, generator=generator).double()
    return weight, B, A, alphas, [draw(*shape) for _ in range(b)]


def _with_gradients(way, shape, rows, m, rank, b, frozen=()):
    weight, B, A, alphas, slopes = _inputs(shape, rows, m, rank, b)
    tensors = [t.requires_grad_(i not in frozen) for i, t in enumerate((weight, B, A))]
    values = merge(*tensors, alphas, way)
    torch.autograd.backward(values, slopes)
    return values, [t.grad for t in tensors]


@pytest.mark.parametrize("way", FAST)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_values_and_gradients_are_those_of_the_simple_way(way, shape):
    values, gradients = _with_gradients(way, *shape)
    expected, expected_gradients = _with_gradients("simple", *shape)
    torch.testing.assert_close(values, expected)
    torch.testing.assert_close(gradients, expected_gradients)


@pytest.mark.parametrize("way", FAST)
def test_many_blocks_are_one_merge(way, monkeypatch):
    expected = _with_gradients(way, *SHAPES[3])
    monkeypatch.setattr(merging, "_ROWS", 7)
    torch.testing.assert_close(_with_gradients(way, *SHAPES[3]), expected)


@pytest.mark.parametrize("way", FAST)
def test_what_is_frozen_gets_no_gradient(way):
    _, (weight, B, A) = _with_gradients(way, *SHAPES[1], frozen=(0,))
    _, expected = _with_gradients("simple", *SHAPES[1])
    assert weight is None
    torch.testing.assert_close([B, A], expected[1:])


@pytest.mark.parametrize("way", FAST)
def test_a_preference_without_use_has_no_influence(way):
    """Only some of the merged weights may take part in a loss."""
    weight, B, A, alphas, slopes = _inputs(*SHAPES[0])
    B.requires_grad_()
    (merge(weight, B, A, alphas, way)[1] * slopes[1]).sum().backward()
    gradient, B.grad = B.grad, None
    (merge(weight, B, A, alphas[1:2], "simple")[0] * slopes[1]).sum().backward()
    torch.testing.assert_close(gradient, B.grad)


def test_the_preference_itself_can_be_differentiated():
    weight, B, A, alphas, _ = _inputs(*SHAPES[0])
    alphas.requires_grad_()
    sum(value.square().sum() for value in merge(weight, B, A, alphas)).backward()
    assert alphas.grad.abs().min() > 0


def test_autocast_does_not_round_the_main_weight():
    weight, B, A, alphas, _ = (v.float() if torch.is_tensor(v) else v for v in _inputs(*SHAPES[0]))
    with torch.autocast("cpu", dtype=torch.bfloat16):
        merged = merge(weight, 0 * B, A, alphas)
    assert all(torch.equal(value, weight) for value in merged)


def test_the_choice_counts_the_work():
    assert cheapest(b=2, rank=24) == "product"  # 20 tasks, rank 8, 3x3 convolutions
    assert cheapest(b=3, rank=96) == "pairs"  # 40 tasks, rank 32
    assert cheapest(b=1, rank=10_000) == "product"  # nothing to share


@pytest.mark.parametrize("way", FAST)
def test_a_training_step_with_batch_norm_and_dropout_is_the_same(way):
    def step(chosen):
        torch.manual_seed(0)
        network = resnet18((2, 3), width=4, size=32, dropout=0.5)
        model = lp.LowRank(network, 2, rank=3, merge=chosen)
        for delta in model.low_rank_deltas().values():
            nn.init.normal_(delta.B, std=0.1)
        torch.manual_seed(1)
        outputs = model(torch.randn(5, 3, 32, 32), lp.dirichlet(2, 3))
        sum(out.square().mean() for out in outputs).backward()
        return outputs, [p.grad for p in model.parameters()], dict(model.named_buffers())

    torch.testing.assert_close(step(way), step("simple"), atol=1e-5, rtol=1e-3)


def test_transforms_of_functions_still_work():
    model = lp.LowRank(nn.Linear(5, 4), 2, rank=2)
    nn.init.normal_(model.low_rank_deltas()["weight"].B)
    x, alphas = torch.randn(3, 5), lp.dirichlet(2, 6)

    def loss(parameters):
        return functional_call(model, parameters, (x, alphas)).square().sum()

    slopes = grad(loss)(dict(model.named_parameters()))
    loss({}).backward()
    torch.testing.assert_close(slopes, {n: p.grad for n, p in model.named_parameters()})


def test_a_copy_merges_the_same_way():
    model = lp.LowRank(nn.Linear(5, 4), 2, rank=2, merge="pairs")
    assert copy.deepcopy(model).merge == "pairs"


def test_an_unknown_way_is_refused():
    with pytest.raises(lp.UsageError, match="unknown merge 'quick'"):
        lp.LowRank(nn.Linear(5, 4), 2, merge="quick")
