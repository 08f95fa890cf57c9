"""Agreement with torchjd, which somebody else wrote, wherever both have a method."""

import pytest
import torch

import lorpman as lp
from lorpman.rules.cagrad import cagrad_weights
from lorpman.rules.graddrop import graddrop
from lorpman.rules.imtl import impartial_weights
from lorpman.rules.mgda import mgda_weights
from lorpman.rules.nash_mtl import nash_weights
from lorpman.rules.pcgrad import pcgrad_weights
from rules.small import make_step, network

oracle = pytest.importorskip("torchjd.aggregation", reason="the oracle torchjd is not installed")
SIZES = [2, 3, 7]


def _matrix(m, shift=-0.4):
    generator = torch.Generator().manual_seed(m)
    rows = torch.randn(m, 2 * m + 3, generator=generator, dtype=torch.float64)
    return rows + shift * rows.mean(0)


def _aggregator(name, **options):
    try:
        return getattr(oracle, name)(**options)
    except (ImportError, NameError) as error:  # it swallows failed imports of its solvers
        pytest.skip(f"torchjd's {name} needs packages that are not installed: {error}")


@pytest.mark.parametrize("m", SIZES)
def test_mgda(m):
    rows = _matrix(m)
    aggregator = _aggregator("MGDA", epsilon=1e-9, max_iters=100_000)
    ours = mgda_weights(rows @ rows.T, torch.ones(m)) @ rows
    # Theirs is Frank-Wolfe, which stops near the answer; ours may only be shorter.
    theirs = aggregator(rows)
    torch.testing.assert_close(ours, theirs, atol=2e-2, rtol=0)
    assert ours.norm() <= theirs.norm() + 1e-9


@pytest.mark.parametrize("m", SIZES)
def test_imtl_g(m):
    rows = _matrix(m)
    torch.testing.assert_close(
        impartial_weights(rows @ rows.T) @ rows, _aggregator("IMTLG")(rows), atol=1e-6, rtol=1e-6
    )


@pytest.mark.parametrize("m", SIZES)
def test_cagrad(m):
    rows = _matrix(m)
    theirs = _aggregator("CAGrad", c=0.4)(rows)
    torch.testing.assert_close(
        cagrad_weights(rows @ rows.T, 0.4) @ rows, theirs, atol=2e-3, rtol=2e-3
    )


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("m", SIZES)
def test_nash_mtl(m):
    rows = _matrix(m)
    aggregator = _aggregator(
        "NashMTL", n_tasks=m, max_norm=0.0, update_weights_every=1, optim_niter=100
    )
    theirs = aggregator(rows.float()).double()
    ours = nash_weights(rows @ rows.T) @ rows

    def bargain(direction):
        """What the Nash solution maximises over directions of one length."""
        gains = rows @ (direction / direction.norm())
        return gains.clamp_min(1e-300).log().sum().item()

    # Theirs may stop early (its test mixes scales), so it is near ours and never better.
    assert bargain(ours) >= bargain(theirs) - 1e-6
    assert torch.cosine_similarity(ours, theirs, 0).item() > 0.9


def test_pcgrad_of_two_tasks():
    rows = torch.tensor([[1.0, 0.0], [-1.0, 1.0]], dtype=torch.float64)
    ours = pcgrad_weights(rows @ rows.T, torch.tensor([[0, 1], [0, 1]])) @ rows
    torch.testing.assert_close(ours, _aggregator("PCGrad")(rows))


def test_graddrop_in_expectation():
    rows = _matrix(3)
    theirs = _aggregator("GradDrop")
    times = 4000
    mean = sum(theirs(rows) for _ in range(times)) / times
    ours = torch.stack(
        [graddrop(rows, torch.rand(rows.shape[1], dtype=torch.float64)) for _ in range(times)]
    ).mean(0)
    torch.testing.assert_close(ours, mean, atol=0.15, rtol=0)


@pytest.mark.parametrize(
    ("name", "aggregator"), [("UPGrad", "UPGrad"), ("AlignedMTL", "AlignedMTL")]
)
def test_the_adapter_trains_in_the_direction_of_torchjd(name, aggregator):
    step = make_step(lp.Single(network(3), 3))
    shared = step.model.shared_parameters(step.alphas[0])
    rows = [torch.autograd.grad(loss, shared, retain_graph=True) for loss in step.losses[0]]
    jacobian = torch.stack([torch.cat([g.flatten() for g in row]) for row in rows])
    lp.rules.TorchJD(name).backward(step)
    ours = torch.cat([p.grad.flatten() for p in shared])
    theirs = _aggregator(name)(jacobian.double())
    torch.testing.assert_close(ours.double(), theirs, atol=1e-5, rtol=1e-4)


def test_the_adapter_refuses_what_a_resume_would_forget():
    with pytest.raises(lp.UsageError, match="GradVacWeighting remembers earlier steps"):
        lp.rules.TorchJD("GradVac")


def test_the_adapter_says_what_it_cannot_make():
    with pytest.raises(lp.UsageError, match="torchjd has no NoneWeighting"):
        lp.rules.TorchJD("None")
    with pytest.raises(lp.UsageError, match="KrumWeighting needs arguments"):
        lp.rules.TorchJD("Krum")
