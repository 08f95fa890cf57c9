"""Adapters: PEFT's own loader gives the networks of the front, and the front comes back."""

import copy
import warnings

import pytest
import torch
from torch import nn

import lorpman as lp
from hugging_face import gpt2, language_front, language_model, moved, tokens

ALPHA = torch.tensor([0.3, 0.7])


def _front():
    network = nn.Sequential(nn.Embedding(9, 6), nn.Linear(6, 5), nn.ReLU(), nn.Linear(5, 2))
    return moved(lp.LowRank(network, 2, rank={"": 2, "1": 3}, scale=1.5, frozen=True))


@pytest.mark.parametrize("shared", ["model.layers", None], ids=["layers", "all"])
@pytest.mark.parametrize("tied", [False, True])
def test_pefts_own_loader_gives_the_networks_of_the_front(shared, tied, tmp_path):
    peft = pytest.importorskip("peft")
    model, x = language_front(shared, tied), tokens()
    model.save_adapters(tmp_path, ["a", "b"])
    model.save_adapter(tmp_path / "one", ALPHA)
    model.save_adapter(tmp_path / "padded", ALPHA, padded=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of names that its own libraries have deprecated
        network = peft.PeftModel.from_pretrained(
            language_model(tied), tmp_path / "a", adapter_name="a"
        )
        for name in ("b", "one", "padded"):
            network.load_adapter(tmp_path / name, name)
        network.add_weighted_adapter(["a", "b"], ALPHA.tolist(), "mixed", combination_type="cat")
    alphas = {"a": torch.eye(2)[0], "b": torch.eye(2)[1]}
    for name in ("a", "b", "one", "padded", "mixed"):
        network.set_adapter(name)
        expected = model(x, alphas.get(name, ALPHA)).logits
        assert (network(**x).logits - expected).abs().max() < 1e-5
    with network.disable_adapter():
        assert (network(**x).logits - expected).abs().max() > 0.01


def test_layers_of_gpt2_use_factors_and_have_adapters(tmp_path):
    peft = pytest.importorskip("peft")
    model, x = moved(lp.LowRank(gpt2(), 2, rank=3, frozen=True, shared="transformer.h")), tokens(2)
    assert model.lends_weights
    expected = model(x, ALPHA).logits
    assert (model.solution(ALPHA)(**x).logits - expected).abs().max() < 1e-5
    with model.at(torch.stack([ALPHA, ALPHA.flip(0)])) as network:
        assert (network(**x).logits[0] - expected[0]).abs().max() < 1e-5
    model.save_adapters(tmp_path)
    model.save_adapter(tmp_path / "one", ALPHA)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        network = peft.PeftModel.from_pretrained(gpt2(), tmp_path / "one")
    assert (network(**x).logits - expected).abs().max() < 1e-5
    again = lp.LowRank.from_adapters(gpt2(), [tmp_path / "task1", tmp_path / "task2"])
    assert (again.eval()(x, ALPHA).logits - expected).abs().max() < 1e-5


def test_adapters_that_peft_trained_become_a_front(tmp_path):
    peft = pytest.importorskip("peft")
    x, networks = tokens(), []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for i, settings in enumerate(
            [
                {"r": 4, "lora_alpha": 6, "target_modules": ["q_proj", "down_proj"]},
                {
                    "r": 3,
                    "use_rslora": True,
                    "target_modules": ["q_proj", "embed_tokens"],
                    "rank_pattern": {"layers.1.self_attn.q_proj": 5},
                    "alpha_pattern": {"layers.1.self_attn.q_proj": 2},
                },
            ]
        ):
            network = peft.get_peft_model(language_model(), peft.LoraConfig(**settings)).eval()
            for name, parameter in network.named_parameters():
                if "lora" in name:
                    nn.init.normal_(parameter, std=0.2)
            network.save_pretrained(tmp_path / str(i))
            networks.append(network)
    model = lp.LowRank.from_adapters(language_model(), [tmp_path / "0", tmp_path / "1"]).eval()
    assert model.frozen
    for corner, network in zip(torch.eye(2), networks, strict=True):
        assert (model(x, corner).logits - network(**x).logits).abs().max() < 1e-5


def test_a_front_comes_back_from_its_adapters(tmp_path):
    model, x = _front(), torch.arange(9)
    folders = model.save_adapters(tmp_path)
    assert [folder.name for folder in folders] == ["task1", "task2"]
    again = lp.LowRank.from_adapters(copy.deepcopy(model.network), folders)
    assert again.ranks() == model.ranks()
    for alpha in lp.grid(2):
        torch.testing.assert_close(again(x, alpha), model(x, alpha), atol=1e-5, rtol=1e-5)


def test_what_an_adapter_cannot_hold_is_refused_and_nothing_is_written(tmp_path):
    unfrozen = lp.LowRank(nn.Linear(3, 3), 2)
    with pytest.raises(lp.UsageError, match=r"'weight' is trained; build .* frozen=True"):
        unfrozen.save_adapters(tmp_path)
    convolution = lp.LowRank(nn.Conv2d(3, 3, 3), 2, frozen=True)
    with pytest.raises(lp.UsageError, match="PEFT has no LoRA like that of 'weight'"):
        convolution.save_adapters(tmp_path)
    with pytest.raises(lp.UsageError, match="names must be 2, one per task, got 1"):
        _front().save_adapters(tmp_path, ["one"])
    with pytest.raises(ValueError, match=r"takes one preference \[m\]"):
        _front().save_adapter(tmp_path, torch.eye(2))
    assert list(tmp_path.iterdir()) == []


def test_a_head_that_is_trained_goes_with_the_adapter(tmp_path):
    network = lp.SharedBottom(nn.Linear(3, 4), [nn.Linear(4, 1), nn.Linear(4, 1)])
    model = lp.LowRank(network, 2, frozen=True)
    folders = model.save_adapters(tmp_path)
    with pytest.raises(lp.UsageError, match=r"brings whole weights along \('heads.0.bias'\)"):
        lp.LowRank.from_adapters(nn.Sequential(nn.Linear(3, 4)), folders)


def test_adapters_of_another_network_are_refused(tmp_path):
    folders = _front().save_adapters(tmp_path)
    with pytest.raises(lp.UsageError, match="the adapters change '0', which Sequential does not"):
        lp.LowRank.from_adapters(nn.Sequential(nn.ReLU(), nn.Linear(6, 5)), folders)
    tied = nn.ModuleList([nn.Linear(5, 5), nn.Linear(5, 5)])
    lp.LowRank(tied, 2, frozen=True).save_adapter(tmp_path, [0.5, 0.5])
    tied[1].weight = tied[0].weight
    with pytest.raises(lp.UsageError, match="'1', whose weight is tied to another layer's"):
        lp.LowRank.from_adapters(tied, [tmp_path])
    with pytest.raises(lp.UsageError, match="one adapter per task, got none"):
        lp.LowRank.from_adapters(nn.Linear(3, 3), [])
