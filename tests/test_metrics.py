"""Scores: right over a split whatever the batches, and right against a plain computation."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from lorpman.errors import UsageError
from lorpman.metrics import (
    AbsoluteDepthError,
    Mean,
    MeanIoU,
    PixelAccuracy,
    RelativeDepthError,
    Score,
    accuracy,
    as_score,
    cross_entropy,
    depth_l1,
    huber,
)

CLASSES = 4


def over(score: Score, output: Tensor, target: Tensor, batch: int) -> float:
    parts = zip(output.split(batch), target.split(batch), strict=True)
    return float(score.value(torch.stack([score.statistics(o, t) for o, t in parts]).sum(0)))


def segmentation(seed: int) -> tuple[Tensor, Tensor]:
    g = torch.Generator().manual_seed(seed)
    output = torch.randn(7, CLASSES, 3, 5, generator=g)
    return output, torch.randint(-1, CLASSES, (7, 3, 5), generator=g)


def depth(seed: int) -> tuple[Tensor, Tensor]:
    g = torch.Generator().manual_seed(seed)
    target = torch.rand(7, 1, 3, 5, generator=g)
    known = torch.rand(target.shape, generator=g) > torch.linspace(0, 0.9, 7).view(-1, 1, 1, 1)
    return torch.rand(target.shape, generator=g), target * known


def classification(seed: int) -> tuple[Tensor, Tensor]:
    g = torch.Generator().manual_seed(seed)
    return torch.randn(7, CLASSES, generator=g), torch.randint(0, CLASSES, (7,), generator=g)


CASES = [
    (MeanIoU(CLASSES), segmentation),
    (PixelAccuracy(), segmentation),
    (AbsoluteDepthError(), depth),
    (RelativeDepthError(), depth),
    (as_score(accuracy), classification),
    (as_score(torch.nn.functional.cross_entropy), classification),
]


@given(seed=st.integers(0, 50), batch=st.integers(1, 7), case=st.sampled_from(CASES))
@settings(max_examples=60, deadline=None)
def test_batches_do_not_change_a_score(seed: int, batch: int, case) -> None:  # type: ignore[no-untyped-def]
    score, data = case
    output, target = data(seed)
    assert over(score, output, target, batch) == pytest.approx(over(score, output, target, 7))


def test_mean_iou_and_pixel_accuracy_against_sets() -> None:
    output, target = segmentation(3)
    predicted = output.argmax(1)
    ious = []
    for c in range(CLASSES):
        a, b = (predicted == c) & (target != -1), target == c
        ious.append(((a & b).sum() / (a | b).sum()).item())
    assert over(MeanIoU(CLASSES), output, target, 2) == pytest.approx(sum(ious) / CLASSES)
    share = (predicted == target)[target != -1].float().mean().item()
    assert over(PixelAccuracy(), output, target, 2) == pytest.approx(share)


def test_mean_iou_leaves_out_classes_that_never_occur() -> None:
    output = torch.tensor([[5.0, 0.0, 0.0], [5.0, 0.0, 0.0]])
    assert over(MeanIoU(3), output, torch.tensor([0, 1]), 2) == pytest.approx(0.25)


def test_depth_errors_against_a_plain_computation() -> None:
    output, target = depth(5)
    mask = target != 0
    error = (output - target).abs()[mask].double()
    assert over(AbsoluteDepthError(), output, target, 3) == pytest.approx(error.mean().item())
    relative = (error / target[mask]).mean().item()
    assert over(RelativeDepthError(), output, target, 3) == pytest.approx(relative)
    assert depth_l1(output, target).item() == pytest.approx(error.mean().item())
    assert depth_l1(output, target[:, 0]) == depth_l1(output, target)


def test_losses_of_a_void_batch_are_zero_with_gradient() -> None:
    output = torch.randn(2, CLASSES, 3, 3, requires_grad=True)
    loss = cross_entropy(output, torch.full((2, 3, 3), -1)) + depth_l1(
        output[:, :1], torch.zeros(2, 1, 3, 3)
    )
    loss.backward()
    assert loss.item() == 0.0
    assert output.grad is not None
    assert output.grad.abs().max() == 0.0


def test_cross_entropy_ignores_void() -> None:
    output, target = segmentation(1)
    expected = torch.nn.functional.cross_entropy(output, target, ignore_index=-1)
    torch.testing.assert_close(cross_entropy(output, target), expected)


@pytest.mark.parametrize("shape", [(4,), (4, 1)])
def test_accuracy_of_binary_logits(shape: tuple[int, ...]) -> None:
    logits = torch.tensor([-1.0, 2.0, 0.5, -3.0]).reshape(shape)
    assert accuracy(logits, torch.tensor([0, 1, 0, 1])).tolist() == [1, 1, 0, 0]


def test_huber_accepts_a_column_and_never_broadcasts() -> None:
    output, target = torch.tensor([[0.5], [3.0]]), torch.tensor([0.0, 0.0])
    assert huber(output, target).item() == pytest.approx((0.125 + 2.5) / 2)
    with pytest.raises(UsageError, match=r"\(3, 1\) and \(2,\)"):
        huber(torch.zeros(3, 1), target)


def test_counts_stay_exact_beyond_float32() -> None:
    score = PixelAccuracy()
    total = torch.tensor([2**24 + 1, 2**25 + 2])
    assert score.value(total).item() == 0.5


def test_errors_say_what_is_wrong() -> None:
    with pytest.raises(UsageError, match=r"labels must lie in 0\.\.3, found 0\.\.9"):
        MeanIoU(4).statistics(torch.rand(2, 4), torch.tensor([0, 9]))
    with pytest.raises(UsageError, match="outputs of 7 classes, got 4"):
        MeanIoU(7).statistics(torch.rand(2, 4), torch.tensor([0, 1]))
    with pytest.raises(UsageError, match=r"got shape \(2, 3\)"):
        Mean(torch.outer).statistics(torch.rand(2), torch.rand(3))
    with pytest.raises(UsageError, match="a score must be"):
        as_score("accuracy")  # type: ignore[arg-type]
