"""The paper's theorem as a test: rank-one deltas are enough to feed alpha to a network.

The proof (appendix A) builds a layer whose output holds ``[x, alpha]``; whatever a ReLU network can
make of both, such as the point of a Pareto front, the manifold can then make too. Two slips of the
printed proof are corrected here: ``U_i`` has its one at ``2u + i``, not ``2m + i``, and ``S`` has
``u + m`` rows, of which the last m copy alpha through.
"""

import pytest
import torch
from torch import Tensor, nn

import lorpman as lp


class WithOne(nn.Module):
    """``[x, 1]``: the paper's deltas are of a bias vector, which is a column of this weight."""

    def forward(self, x: Tensor) -> Tensor:
        return torch.cat([x, x.new_ones(*x.shape[:-1], 1)], -1)


def _passing_on(u: int, m: int) -> nn.Sequential:
    """``S relu(R x + U)``, which is ``[x, U]`` for U of at least 0: x as its two halves."""
    first = nn.Linear(u + 1, 2 * u + m, bias=False)
    second = nn.Linear(2 * u + m, u + m, bias=False)
    with torch.no_grad():
        first.weight.zero_()
        second.weight.zero_()
        for i in range(u):
            # relu(x) - relu(-x) is x.
            first.weight[2 * i, i], first.weight[2 * i + 1, i] = 1.0, -1.0
            second.weight[i, 2 * i], second.weight[i, 2 * i + 1] = 1.0, -1.0
        for i in range(m):
            second.weight[u + i, 2 * u + i] = 1.0
    return nn.Sequential(WithOne(), first, nn.ReLU(), second)


def _manifold(u: int, m: int, *further: nn.Module) -> lp.LowRank:
    """``theta_0`` of the proof, with ``U_i = B_i A_i`` of rank one in the first layer alone."""
    model = lp.LowRank(nn.Sequential(*_passing_on(u, m), *further), m, rank=1, shared="1")
    ((_, delta),) = model.low_rank_deltas().items()
    with torch.no_grad():
        delta.B.zero_()
        delta.A.zero_()
        for i in range(m):
            delta.B[2 * u + i, i, 0] = 1.0
            delta.A[i, 0, u] = 1.0
    return model


@pytest.mark.parametrize(("u", "m"), [(1, 2), (3, 2), (2, 5), (7, 3)])
def test_rank_one_deltas_hand_alpha_to_the_network_exactly(u, m):
    model = _manifold(u, m)
    x, alphas = torch.randn(9, u), torch.cat([lp.dirichlet(m, 20), torch.eye(m)])
    for alpha, out in zip(alphas, model(x, alphas), strict=True):
        assert torch.equal(out, torch.cat([x, alpha.expand(9, m)], 1))


def _front_point(x: Tensor, alpha: Tensor) -> Tensor:
    """Where ``alpha_1 (z - x)^2 + alpha_2 (z + x)^2`` is least, the two squares, ``[n, 2]``."""
    z = (alpha[..., :1] - alpha[..., 1:]) * x
    return torch.cat([(z - x) ** 2, (z + x) ** 2], -1)


def _fitted(width: int) -> tuple[nn.Linear, nn.Linear]:
    """M, N and C of the proof: a hidden layer drawn at random, and least squares after it."""
    x = torch.rand(4000, 1, dtype=torch.float64) * 2 - 1
    alphas = lp.dirichlet(2, 4000, 0.7, torch.Generator().manual_seed(0)).double()
    hidden, out = nn.Linear(3, width).double(), nn.Linear(width, 2, bias=False).double()
    with torch.no_grad():
        nn.init.normal_(hidden.weight)
        hidden.bias.uniform_(-2, 2)
        features = hidden(torch.cat([x, alphas], 1)).relu()
        # A little ridge: so many features nearly repeat one another, and floats would cancel out.
        gram = features.T @ features + 1e-4 * torch.eye(width, dtype=torch.float64)
        wanted = features.T @ _front_point(x, alphas)
        out.weight.copy_(torch.linalg.solve(gram, wanted).T)
    return hidden, out


def _largest_error(width: int) -> float:
    hidden, out = _fitted(width)
    model = _manifold(1, 2, hidden.float(), nn.ReLU(), out.float())
    x, alphas = torch.linspace(-1, 1, 41)[:, None], lp.grid(2, 41)
    with torch.no_grad():
        found = model(x, alphas)
    known = torch.stack([_front_point(x, alpha.expand(len(x), 2)) for alpha in alphas])
    return float((found - known).abs().max())


def test_a_known_front_is_approximated_as_closely_as_one_likes():
    """Its points are at most 4, and every preference and input counts, corners included."""
    errors = [_largest_error(width) for width in (8, 60, 400)]
    assert errors[0] > errors[1] > errors[2]
    assert errors[0] > 0.3
    assert errors[2] < 0.05
