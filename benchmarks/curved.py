"""Alpha beyond the affine family: deltas that bend with alpha, beside straight ones.

    python benchmarks/curved.py multidigits --set rank=8 --out results/control/curved

trains LORPMAN as it is, with a half more rank, and on a quadratic patch, whose deltas have the
Bernstein weights ``alpha_i^2`` and ``2 alpha_i alpha_j`` (they lie on a simplex again). Each is
measured against networks retrained for single preferences, on validation data. The larger rank is
there since the patch has more parameters too. None has the orthogonality term, which is about
tasks.
"""

import argparse
import shlex
import statistics
import sys
from itertools import combinations
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

import lorpman as lp
from lorpman.lab.beside_retraining import control_preferences
from lorpman.lab.datasets.splits import Splits, batches
from lorpman.lab.reproduce.run_record import compact_json
from lorpman.lab.runs.directory import data_root
from lorpman.lab.runs.spec import Spec
from lorpman.lab.runs.train import fit_spec
from lorpman.lab.settings import parse_assignments
from lorpman.manifold.base import Manifold
from lorpman.training.devices import Engine
from lorpman.training.options import Placement

HEAD = ["family", "hypervolume", "regret", "reach", "order on losses", "parameters"]


def bernstein(alpha: Tensor) -> Tensor:
    """``alpha [..., m]`` to its quadratic Bernstein weights ``[..., m (m + 1) / 2]``."""
    pairs = [2 * alpha[..., i] * alpha[..., j] for i, j in combinations(range(alpha.shape[-1]), 2)]
    return torch.cat([alpha**2, torch.stack(pairs, -1)], -1)


class Plain(nn.Module):
    """A SharedBottom that does not show its heads: there are more deltas than tasks."""

    def __init__(self, inner: nn.Module) -> None:
        super().__init__()
        self.inner = inner

    def forward(self, x: Any) -> Any:
        return self.inner(x)


class Quadratic(Manifold):
    """``theta_0 + s * sum_k bernstein_k(alpha) B_k A_k``."""

    def __init__(self, network: nn.Module, num_tasks: int, rank: int, scale: float) -> None:
        super().__init__(num_tasks)
        count = num_tasks * (num_tasks + 1) // 2
        self.inner = lp.LowRank(Plain(network), count, rank, scale, shared="inner.bottom")

    def forward(self, x: Any, alpha: Tensor) -> Any:
        return self.inner(x, bernstein(alpha))

    def solution(self, alpha: Tensor) -> nn.Module:
        return self.inner.solution(bernstein(alpha))


def trained(spec: Spec, model: Manifold, splits: Splits) -> Manifold:
    fit_spec(spec, model, splits, placement=Placement(Engine().start([])), progress=False)
    return model


def quadratic(spec: Spec) -> Manifold:
    torch.manual_seed(spec.seed)
    network = spec.problem.make_network(spec.data)
    own = spec.settings()
    return Quadratic(network, len(spec.tasks()), rank=own["rank"], scale=own["scale"])


def measured(model: Manifold, spec: Spec, splits: Splits, retrained: lp.Front) -> dict[str, Any]:
    loader = batches(splits.validation, 1000)
    control = lp.evaluate(model, spec.tasks(), loader, control_preferences(retrained)).control(
        retrained
    )
    front = lp.evaluate(model, spec.tasks(), loader)
    volume, count = float(front.hypervolume()), model.num_parameters()
    return {"hypervolume": volume, "parameters": count, "control": control.to_json()}


def cells(name: str, found: list[dict[str, Any]]) -> list[str]:
    volumes = [one["hypervolume"] for one in found]
    controls = [one["control"] for one in found]
    deviation = f" ± {statistics.stdev(volumes):.2g}" if len(volumes) > 1 else ""
    return [
        name,
        f"{statistics.fmean(volumes):.4f}{deviation}",
        f"{statistics.fmean(c['regret'] for c in controls):+.1%}",
        f"{statistics.fmean(c['reach'] for c in controls):+.4f}",
        f"{statistics.fmean(c['order_on_losses']['correlation'] for c in controls):.2f}",
        f"{found[0]['parameters']:,}",
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("problem")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE")
    parser.add_argument("--retrain", action="append", default=[], metavar="KEY=VALUE")
    parser.add_argument("--seeds", default="0,1,2")
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    given = {**parse_assignments(options.set), "lambda_o": 0.0, "watch_samples": 0}
    larger = {**given, "rank": given["rank"] * 3 // 2}
    found: dict[str, list[dict[str, Any]]] = {}
    for seed in map(int, options.seeds.split(",")):
        base = {**parse_assignments(options.retrain), "watch_samples": 0}
        reference = Spec.make(options.problem, "retrain", seed, base)
        splits = reference.load(data_root(None))
        loader = batches(splits.validation, 1000)
        networks = trained(reference, reference.build(), splits)
        retrained = lp.evaluate(networks, reference.tasks(), loader)
        spec, wide = (
            Spec.make(options.problem, "lorpman", seed, settings) for settings in (given, larger)
        )
        families = {
            f"affine, rank {given['rank']}": (spec, Spec.build),
            f"affine, rank {larger['rank']}": (wide, Spec.build),
            f"quadratic, rank {given['rank']}": (spec, quadratic),
        }
        for name, (used, make) in families.items():
            model = trained(used, make(used), splits)
            found.setdefault(name, []).append(measured(model, used, splits, retrained))
            print(seed, name, found[name][-1]["hypervolume"], flush=True)
    write(options.out, found)


def write(out: Path, found: dict[str, list[dict[str, Any]]]) -> None:
    command = shlex.join(["python", *sys.argv])
    lines = [HEAD, ["---"] + ["---:"] * (len(HEAD) - 1)]
    lines += [cells(name, runs) for name, runs in found.items()]
    text = ["| " + " | ".join(line) + " |" for line in lines]
    out.parent.mkdir(parents=True, exist_ok=True)
    out.with_suffix(".md").write_text("\n".join([*text, "", "Made by:", "", f"    {command}", ""]))
    rows = [{"family": name, "runs": runs} for name, runs in found.items()]
    out.with_suffix(".json").write_text(compact_json({"command": command, "rows": rows}))


if __name__ == "__main__":
    main()
