"""Small fronts with known answers, for tests of what is done with a front."""

import torch

from lorpman.front.front import Front


def curve() -> Front:
    """Five points: right falls as left rises; row 4 is dominated by row 2."""
    left = [0.50, 0.80, 0.90, 0.95, 0.85]
    right = [0.95, 0.93, 0.88, 0.60, 0.70]
    alphas = torch.tensor([[0.0, 1.0], [0.25, 0.75], [0.5, 0.5], [1.0, 0.0], [0.7, 0.3]])
    scores = torch.tensor([left, right], dtype=torch.float64).T
    return Front(alphas, scores, ("left", "right"), (True, True), (0.0, 0.0), label="a")


def mixed() -> Front:
    """The same trade-off, with the first task as an error from 0 to 1: smaller is better."""
    front = curve()
    scores = torch.stack([1.0 - front.scores[:, 0], front.scores[:, 1]], dim=1)
    return Front(front.alphas, scores, ("age", "right"), (False, True), (1.0, 0.0))


def random_front(losses: bool = True) -> Front:
    generator = torch.Generator().manual_seed(0)
    alphas = torch.rand(7, 3, generator=generator)
    alphas /= alphas.sum(dim=1, keepdim=True)
    scores = torch.rand(7, 3, generator=generator, dtype=torch.float64) / 3
    extra = torch.rand(7, 3, generator=generator, dtype=torch.float64) if losses else None
    return Front(alphas, scores, ("a", "b", "ç"), (True, False, True), (0.0, 0.5, -1.0), extra, "x")


def spread_front(
    n: int, m: int, label: str = "", seed: int = 0, up: tuple[bool, ...] = ()
) -> Front:
    generator = torch.Generator().manual_seed(seed)
    alphas = torch.rand(n, m, generator=generator)
    alphas /= alphas.sum(dim=1, keepdim=True)
    names = tuple(f"task {i}" for i in range(m))
    scores = 0.6 + 0.3 * alphas.double().sqrt()
    reference = tuple(0.0 if flag else 1.0 for flag in up or (True,) * m)
    return Front(alphas, scores, names, up or (True,) * m, reference, label=label)


def assert_same_front(first: Front, second: Front) -> None:
    assert torch.equal(first.alphas, second.alphas)
    assert torch.equal(first.scores, second.scores)
    assert (first.losses is None) == (second.losses is None)
    if first.losses is not None and second.losses is not None:
        assert torch.equal(first.losses, second.losses)
    for name in ("tasks", "maximise", "reference", "label"):
        assert getattr(first, name) == getattr(second, name)
