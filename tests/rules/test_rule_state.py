import pytest
import torch

import lorpman as lp
from lorpman.rules.rule_state import BufferedAdam, ensure_buffer, ensure_parameter


@pytest.mark.parametrize(
    ("ensure", "kept"), [(ensure_parameter, "parameters"), (ensure_buffer, "buffers")]
)
def test_a_tensor_of_the_same_shape_is_kept_and_another_replaced(ensure, kept):
    rule = lp.Linear()
    ensure(rule, "scales", torch.tensor([1.0, 2.0]))
    assert [value.tolist() for value in getattr(rule, kept)()] == [[1.0, 2.0]]
    ensure(rule, "scales", torch.zeros(2))
    assert rule.scales.tolist() == [1.0, 2.0]
    ensure(rule, "scales", torch.zeros(3))
    assert rule.scales.tolist() == [0.0, 0.0, 0.0]


def test_it_is_adam():
    generator = torch.Generator().manual_seed(0)
    value = torch.nn.Parameter(torch.zeros(4, dtype=torch.float64))
    theirs, ours = torch.optim.Adam([value], lr=0.1), BufferedAdam(value.detach())
    moved = torch.zeros(4, dtype=torch.float64)
    for _ in range(5):
        gradient = torch.randn(4, generator=generator, dtype=torch.float64)
        value.grad = gradient.clone()
        theirs.step()
        moved += ours.change(gradient, 0.1)
        torch.testing.assert_close(moved, value.detach(), rtol=1e-9, atol=0)
    assert int(ours.steps) == 5
    assert sorted(ours.state_dict()) == ["mean", "square", "steps"]
