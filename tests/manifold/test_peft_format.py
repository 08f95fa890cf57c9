"""The files of a PEFT adapter."""

import json

import pytest
import torch
from safetensors.torch import load_file
from torch import nn

import lorpman as lp
from lorpman.manifold.peft_format import CONFIG, WEIGHTS, Adapter, read_adapter, write_adapter

NETWORK = nn.ModuleDict({"up": nn.Linear(5, 4), "down": nn.Linear(5, 4), "other": nn.Linear(5, 4)})


def _adapter(ranks, scale=1.5, saved=None):
    factors = {name: (torch.randn(r, 5), torch.randn(4, r)) for name, r in ranks.items()}
    return Adapter(factors, dict.fromkeys(factors, scale), saved or {})


def _config(folder):
    return json.loads((folder / CONFIG).read_text())


def test_an_adapter_comes_back_as_it_went(tmp_path):
    written = _adapter({"up": 2, "down": 3}, saved={"other.bias": torch.ones(4)})
    write_adapter(written, NETWORK, tmp_path, padded=False)
    read = read_adapter(tmp_path)
    assert read.scales == pytest.approx(written.scales)
    assert torch.equal(read.saved["other.bias"], torch.ones(4))
    for name, pair in written.factors.items():
        assert all(map(torch.equal, read.factors[name], pair))


def test_equal_ranks_need_no_patterns(tmp_path):
    write_adapter(_adapter({"up": 2, "down": 2}), NETWORK, tmp_path, padded=False)
    config = _config(tmp_path)
    assert (config["r"], config["lora_alpha"]) == (2, 3)
    assert (config["rank_pattern"], config["alpha_pattern"]) == ({}, {})
    assert config["use_rslora"] is False
    assert config["target_modules"] == ["down", "up"]
    assert sorted(load_file(tmp_path / WEIGHTS))[0] == "base_model.model.down.lora_A.weight"


def test_other_ranks_keep_the_scale_by_patterns(tmp_path):
    write_adapter(_adapter({"up": 2, "down": 4}), NETWORK, tmp_path, padded=False)
    config = _config(tmp_path)
    assert (config["r"], config["lora_alpha"]) == (4, 6)
    assert (config["rank_pattern"], config["alpha_pattern"]) == ({"up": 2}, {"up": 3})


def test_padded_ranks_are_one_that_is_served_and_change_nothing(tmp_path):
    written = _adapter({"up": 2, "down": 9})
    write_adapter(written, NETWORK, tmp_path, padded=True)
    assert (_config(tmp_path)["r"], _config(tmp_path)["rank_pattern"]) == (16, {})
    for name, (A, B) in read_adapter(tmp_path).factors.items():
        torch.testing.assert_close(B @ A, written.factors[name][1] @ written.factors[name][0])
    with pytest.raises(lp.UsageError, match="rank 600 cannot be padded"):
        write_adapter(_adapter({"up": 600}), NETWORK, tmp_path, padded=True)


def test_modules_of_one_last_name_are_told_apart(tmp_path):
    network = nn.ModuleList([nn.ModuleDict({"up": nn.Linear(5, 4)}) for _ in range(2)])
    write_adapter(_adapter({"1.up": 2}), network, tmp_path, padded=False)
    assert _config(tmp_path)["target_modules"] == ["1.up"]


@pytest.mark.parametrize(
    ("key", "value"),
    [("peft_type", "LOHA"), ("use_dora", True), ("bias", "all")],
)
def test_more_than_plain_factors_is_refused(tmp_path, key, value):
    write_adapter(_adapter({"up": 2}), NETWORK, tmp_path, padded=False)
    (tmp_path / CONFIG).write_text(json.dumps(_config(tmp_path) | {key: value}))
    with pytest.raises(lp.UsageError, match=f"has {key}={value!r}, expected"):
        read_adapter(tmp_path)


def test_a_folder_without_an_adapter_is_refused(tmp_path):
    with pytest.raises(lp.UsageError, match="holds no PEFT adapter, expected adapter_config"):
        read_adapter(tmp_path)
    write_adapter(_adapter({"up": 2}), NETWORK, tmp_path, padded=False)
    (tmp_path / WEIGHTS).write_bytes(b"no tensors")
    with pytest.raises(lp.UsageError, match="holds no PEFT adapter"):
        read_adapter(tmp_path)
