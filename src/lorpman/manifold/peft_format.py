"""LoRA adapters as PEFT reads and writes them: a folder with a JSON and a safetensors file.

PEFT itself is not needed. It computes ``W x + (lora_alpha / r) B A x``; here ``lora_alpha`` is the
scale times ``r``. What serving engines may not know (``rank_pattern``, rsLoRA) is left out wherever
it says nothing.
"""

import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from lorpman._files import Kind, json_with, near_start, replacing, write_json
from lorpman.errors import UsageError
from lorpman.manifold.applied_factors import is_turned_linear

CONFIG, WEIGHTS = "adapter_config.json", "adapter_model.safetensors"
_PREFIX = "base_model.model."
_CONFIG_KIND = Kind("an adapter's description", json_with("peft_type"), (".json",))
_WEIGHTS_KIND = Kind("the weights of an adapter", near_start(_PREFIX.encode()), (".safetensors",))
SERVED_RANKS = (8, 16, 32, 64, 128, 256, 320, 512)
"""The ranks that vLLM takes."""


@dataclass(frozen=True)
class Adapter:
    """One adapter: factors of modules, and whole weights of what was trained beside them."""

    factors: Mapping[str, tuple[Tensor, Tensor]]
    """By module name, ``A [r, in]`` and ``B [out, r]``; of embeddings ``[r, V]`` and ``[d, r]``."""
    scales: Mapping[str, float]
    """By module name, what ``B A`` is multiplied with."""
    saved: Mapping[str, Tensor]
    """By parameter name, weights that the adapter brings with it."""


def write_adapter(adapter: Adapter, network: nn.Module, folder: Path, padded: bool) -> None:
    """Write an adapter of ``network``, all of whose scales are equal.

    Args:
        adapter: What is written.
        network: The network with the modules that the adapter names.
        folder: Where; made if it is not there.
        padded: Whether all ranks become one that serving engines take, by directions of zero.

    Raises:
        UsageError: If ``padded`` is asked of a rank that none of them takes.
    """
    ranks = {name: len(A) for name, (A, _) in adapter.factors.items()}
    if padded:
        ranks = dict.fromkeys(ranks, _served_rank(max(ranks.values())))
    (scale,) = set(adapter.scales.values())
    tensors = {f"{_PREFIX}{name}": value for name, value in adapter.saved.items()}
    modules = dict(network.named_modules())
    for name, (A, B) in adapter.factors.items():
        more = ranks[name] - len(A)
        A, B = nn.functional.pad(A, (0, 0, 0, more)), nn.functional.pad(B, (0, more))
        tensors |= _as_stored(f"{_PREFIX}{name}", modules[name], A, B)
    folder.mkdir(parents=True, exist_ok=True)
    with (
        replacing(folder / CONFIG, _CONFIG_KIND) as config,
        replacing(folder / WEIGHTS, _WEIGHTS_KIND) as weights,
    ):
        # safetensors refuses views that do not lie in one piece, such as transposed factors.
        whole = {name: value.detach().cpu().contiguous() for name, value in tensors.items()}
        save_file(whole, weights, metadata={"format": "pt"})
        write_json(config, _config(network, ranks, scale, adapter.saved), _CONFIG_KIND)


def _served_rank(rank: int) -> int:
    found = [served for served in SERVED_RANKS if served >= rank]
    if not found:
        raise UsageError(
            f"an adapter of rank {rank} cannot be padded, the largest rank that is served is "
            f"{SERVED_RANKS[-1]}; train with a smaller rank"
        )
    return found[0]


def _as_stored(name: str, module: nn.Module, A: Tensor, B: Tensor) -> dict[str, Tensor]:
    if isinstance(module, nn.Embedding):
        return {f"{name}.lora_embedding_A": A, f"{name}.lora_embedding_B": B}
    weight = module.get_parameter("weight")
    if weight.ndim > 2:
        ones = [1] * (weight.ndim - 2)
        A, B = A.reshape(-1, *weight.shape[1:]), B.reshape(*B.shape, *ones)
    return {f"{name}.lora_A.weight": A, f"{name}.lora_B.weight": B}


def _config(
    network: nn.Module, ranks: Mapping[str, int], scale: float, saved: Mapping[str, Tensor]
) -> dict[str, Any]:
    rank = max(ranks.values())
    others = {name: value for name, value in ranks.items() if value != rank}
    own = getattr(network, "config", None)
    # By name, as transformers calls its classes, so that it need not be imported.
    language = type(network).__name__.endswith("ForCausalLM")
    heads = sorted({name.rpartition(".")[0] for name in saved})
    return {
        "peft_type": "LORA",
        "task_type": "CAUSAL_LM" if language else None,
        "base_model_name_or_path": getattr(own, "_name_or_path", None) or None,
        "r": rank,
        "lora_alpha": _number(scale * rank),
        "target_modules": _targets(network, set(ranks)),
        "lora_dropout": 0.0,
        "bias": "none",
        "fan_in_fan_out": any(is_turned_linear(network.get_submodule(name)) for name in ranks),
        "use_rslora": False,
        "use_dora": False,
        "inference_mode": True,
        "modules_to_save": heads or None,
        "rank_pattern": others,
        # Beside another rank, the same scale is another lora_alpha.
        "alpha_pattern": {name: _number(scale * value) for name, value in others.items()},
    }


def _number(value: float) -> float | int:
    return int(value) if value == int(value) else value


def _targets(network: nn.Module, names: set[str]) -> list[str]:
    """The last parts of the modules' names where these say all, as people write them."""
    last = {name.rpartition(".")[2] for name in names}
    meant = {name for name, _ in network.named_modules() if name.rpartition(".")[2] in last}
    return sorted(last if meant == names else names)


def read_adapter(folder: Path) -> Adapter:
    """Read a LoRA adapter of PEFT.

    Args:
        folder: Holds ``adapter_config.json`` and ``adapter_model.safetensors``.

    Returns:
        Its factors, their scales, and the whole weights that it brings along.

    Raises:
        UsageError: If there is none, or one that is more than low-rank factors.
    """
    try:
        config = json.loads((folder / CONFIG).read_text())
        tensors = load_file(folder / WEIGHTS)
    except (OSError, ValueError, SafetensorError) as error:
        reason = str(error).splitlines()[0]
        raise UsageError(
            f"'{folder}' holds no PEFT adapter, expected {CONFIG} and {WEIGHTS}: {reason}"
        ) from None
    _check_plain(folder, config)
    found: dict[str, dict[str, Tensor]] = {}
    saved = {}
    for key, value in tensors.items():
        match = re.fullmatch(r"(.+)\.lora_(?:embedding_)?([AB])(?:\.weight)?", key)
        if match is None:
            saved[key.removeprefix(_PREFIX)] = value
        else:
            found.setdefault(match[1].removeprefix(_PREFIX), {})[match[2]] = value.flatten(1)
    factors = {name: (pair["A"], pair["B"]) for name, pair in found.items()}
    scales = {name: _scale(config, name, len(A)) for name, (A, _) in factors.items()}
    return Adapter(factors, scales, saved)


def _check_plain(folder: Path, config: Mapping[str, Any]) -> None:
    wanted = {"peft_type": "LORA", "use_dora": False, "bias": "none"}
    for key, expected in wanted.items():
        if config.get(key, expected) != expected:
            raise UsageError(
                f"the adapter '{folder}' has {key}={config[key]!r}, expected {expected!r}: only "
                "plain LoRA can be mixed exactly"
            )


def _scale(config: Mapping[str, Any], name: str, rank: int) -> float:
    patterns = config.get("alpha_pattern") or {}
    # PEFT takes the keys for regular expressions of the end of a name.
    matching = [v for key, v in patterns.items() if re.fullmatch(rf"(.*\.)?({key})", name)]
    alpha = matching[0] if matching else config["lora_alpha"]
    return alpha / (math.sqrt(rank) if config.get("use_rslora") else rank)
