"""Every continuous method beside us, on MultiMNIST's network: a step, and an epoch."""

from collections.abc import Callable
from functools import partial
from typing import Any

from torch.utils.data import DataLoader

from lorpman.lab.bench.member_layers import member_layers_step
from lorpman.lab.bench.steps import fit_step, mean_loss, plain_steps
from lorpman.lab.bench.timing import Conditions, interleave, ratio
from lorpman.lab.bench.workload import Workload, lenet
from lorpman.lab.datasets.process_shares import USUAL_BATCH
from lorpman.lab.datasets.splits import Arrays, Batch, batches
from lorpman.training.fit import fit

METHODS = ("lorpman", "pamal", "cosmos", "film", "phn", "phn-hvi", "chunked-phn")
STRAIGHTFORWARD = "pamal, layers of members"


def rivals(conditions: Conditions) -> dict[str, Any]:
    """Ratios to a plain step, and to a plain epoch, of every method with its own window.

    Args:
        conditions: How to measure; a quick run has shorter epochs.

    Returns:
        A row for each method, our PaMaL against the straightforward one, and all rounds.
    """
    workload = lenet()
    steps = interleave(_steps(workload), conditions)
    epochs = interleave(_epochs(workload, 2 if conditions.quick else 4), conditions)
    rows = []
    for name in (*METHODS, STRAIGHTFORWARD):
        window = workload.spec_of(name.partition(",")[0]).training.window
        step = ratio(steps, name, "plain")
        row: dict[str, Any] = {"method": name, "window": window, "step": step}
        row["step per network"] = step / window
        if name in epochs:
            row["epoch"] = ratio(epochs, name, "plain")
        rows.append(row)
    against = ratio(steps, "pamal", STRAIGHTFORWARD)
    return {
        "methods": rows,
        "our PaMaL by the straightforward one": against,
        "rounds": {"steps": steps, "epochs": epochs},
    }


def _steps(workload: Workload) -> dict[str, Callable[[], object]]:
    contenders: dict[str, Callable[[], object]] = {"plain": plain_steps(workload, 1)}
    contenders |= {name: fit_step(workload, name) for name in METHODS}
    contenders[STRAIGHTFORWARD] = member_layers_step(workload)
    return contenders


def _epochs(workload: Workload, count: int) -> dict[str, Callable[[], object]]:
    """Whole epochs of ``count`` batches, without looking at the front at their end.

    What an epoch costs beside its batches is little, so that few of them will do.
    """
    size = workload.spec.training.batch_size or USUAL_BATCH
    x = workload.x.repeat(count, 1, 1, 1)
    targets = [target.repeat(count) for target in workload.targets]
    data, usual = Arrays(x, targets), Arrays(x, targets, channels_last=False)
    contenders: dict[str, Callable[[], object]] = {
        "plain": _plain_epoch(workload, batches(usual, size, shuffle=True))
    }
    for name in METHODS:
        contenders[name] = _fit_epoch(workload, name, batches(data, size, shuffle=True))
    return contenders


def _plain_epoch(workload: Workload, loader: "DataLoader[Batch]") -> Callable[[], None]:
    network = workload.network().train()
    optimizer = workload.spec.training.make_optimizer()(network.parameters())

    def epoch() -> None:
        for batch in loader:
            optimizer.zero_grad()
            mean_loss(network(batch[0]), batch, workload.tasks).backward()
            optimizer.step()

    return epoch


def _fit_epoch(
    workload: Workload, method: str, loader: "DataLoader[Batch]"
) -> Callable[[], object]:
    spec, model = workload.spec_of(method), workload.manifold(method)
    # Made once: a fresh one would make its state anew in every epoch.
    optimizer = spec.training.make_optimizer()([p for p in model.parameters() if p.requires_grad])
    return partial(
        fit,
        model,
        workload.tasks,
        loader,
        epochs=1,
        objective=spec.method.rule(spec.own),
        window=spec.training.window,
        concentration=spec.training.concentration,
        sampler=spec.sampler(),
        optimizer=optimizer,
        progress=False,
    )


def markdown(study: dict[str, Any]) -> str:
    """The study as a table.

    Args:
        study: What :func:`rivals` gave.
    """
    head = [
        "| method | networks a step (b) | step / plain step | the same per network | "
        "epoch / plain epoch |",
        "|---|---|---|---|---|",
    ]
    body = [
        f"| {row['method']} | {row['window']} | {row['step']:.2f} | "
        f"{row['step per network']:.2f} | {_or_dash(row.get('epoch'))} |"
        for row in study["methods"]
    ]
    ours = study["our PaMaL by the straightforward one"]
    return "\n".join([*head, *body, "", f"Our PaMaL takes {ours:.2f} of the straightforward one."])


def _or_dash(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}"
