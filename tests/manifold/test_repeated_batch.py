"""One pass for all preferences: the same outputs and gradients as one pass for each."""

import pytest
import torch
from torch import nn

import lorpman as lp
from hugging_face import language_front, tokens
from lorpman.manifold.repeated_batch import count_samples, repeat_batch, split_batch
from networks import NETWORKS, frozen_front

ALPHAS = torch.tensor([[0.2, 0.8], [0.7, 0.3], [1.0, 0.0]])


def _outputs_and_gradients(model, x, batched):
    model.batched = batched
    model.zero_grad()
    outputs = model(x, ALPHAS)
    tensor = outputs["logits"] if isinstance(outputs, dict) else outputs
    tensor.square().sum().backward()
    return [tensor, *(p.grad for p in model.deltas.parameters())]


def _calls(model):
    """How often the first layer runs from now on, as a list that grows."""
    seen = []
    next(m for m in model.network.modules() if not list(m.children())).register_forward_hook(
        lambda *args: seen.append(1)
    )
    return seen


@pytest.mark.parametrize("kind", ["tied", "layer norm", "embedding"])
def test_outputs_and_gradients_are_those_of_one_pass_each(kind):
    make, x = NETWORKS[kind]
    model, x = frozen_front(make(), batched=True).eval(), x()
    seen = _calls(model)
    together = _outputs_and_gradients(model, x, True)
    assert len(seen) == 1
    alone = _outputs_and_gradients(model, x, False)
    assert len(seen) == 1 + len(ALPHAS)
    for mine, its in zip(together, alone, strict=True):
        torch.testing.assert_close(mine, its, atol=1e-4, rtol=1e-4)


def test_a_language_model_answers_at_all_preferences_in_one_pass():
    pytest.importorskip("transformers")
    model, x = language_front(batched=True), tokens(3)
    x |= {"use_cache": False, "attention_mask": torch.ones(3, 7)}
    outputs = model(x, ALPHAS)
    assert outputs.logits.shape == (3, 3, 7, 50)
    for j, alpha in enumerate(ALPHAS):
        torch.testing.assert_close(outputs.logits[j], model(x, alpha).logits, atol=1e-5, rtol=1e-5)
    with pytest.raises(lp.UsageError, match=r"found DynamicCache; ask .* use_cache=False"):
        model(x | {"use_cache": True}, ALPHAS)
    with pytest.raises(lp.UsageError, match=r"found a tensor \[\]; ask"):
        model(x | {"labels": x["input_ids"]}, ALPHAS)


def test_a_batch_is_repeated_and_taken_apart():
    x = {"a": torch.tensor([1, 2]), "b": [torch.zeros(2, 3)], "mode": "plain"}
    assert count_samples(x) == 2
    repeated = repeat_batch(x, 3)
    assert repeated["a"].tolist() == [1, 2] * 3
    assert repeated["b"][0].shape == (6, 3)
    assert repeated["mode"] == "plain"
    apart = split_batch(repeated, 3)
    assert apart["a"].tolist() == [[1, 2]] * 3
    assert apart["mode"] == ["plain"] * 3


@pytest.mark.parametrize(
    ("x", "found"),
    [
        ({"a": torch.zeros(2), "b": torch.zeros(1, 2)}, r"\[2\], \[1, 2\]"),
        ({"a": torch.zeros(())}, r"\[\]"),
        ("words", "no tensor"),
    ],
)
def test_inputs_that_are_not_led_by_samples_are_refused(x, found):
    with pytest.raises(lp.UsageError, match=f"led by the samples, found {found}; leave"):
        count_samples(x)


def test_what_mixes_samples_or_is_trained_whole_is_refused():
    network = nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4))
    with pytest.raises(lp.UsageError, match="BatchNorm1d '1' normalises over them"):
        lp.LowRank(network, 2, frozen=True, batched=True)
    with pytest.raises(lp.UsageError, match="batched=True belongs to frozen=True"):
        lp.LowRank(nn.Linear(4, 4), 2, batched=True)
