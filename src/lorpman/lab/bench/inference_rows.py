"""The rows about what comes after training, and about terms: none of them takes a step."""

import statistics
import time
from collections.abc import Callable

import torch
from torch import Tensor, nn

from lorpman.front.evaluate import evaluate
from lorpman.lab.bench.benchmark_row import Measurement
from lorpman.lab.bench.fresh_process import run_python
from lorpman.lab.bench.timing import Conditions, Times, interleave, ratio
from lorpman.lab.bench.workload import Workload, census, lenet, resnet
from lorpman.lab.datasets.splits import Arrays, Batch, batches
from lorpman.lab.runs.evaluation import EVALUATION_BATCH
from lorpman.manifold.low_rank import LowRank
from lorpman.preference import dirichlet
from lorpman.rules.orthogonality import Orthogonality, orthogonality
from lorpman.task import Task

_TOLERANCE = 1e-5


def front_evaluation(conditions: Conditions) -> Measurement:
    """``lp.evaluate`` at 11 preferences against 11 passes of a plain network.

    Both get ready batches, so that neither pays for cutting them; the plain network gets images
    in PyTorch's usual layout, ``evaluate`` as a run's loader gives them.

    Args:
        conditions: How to measure; a quick run has half the images.

    Returns:
        The ratio.
    """
    workload = lenet(batch=EVALUATION_BATCH * (1 if conditions.quick else 2))
    model, network = _low_rank(workload), workload.network().eval()
    ours = list(batches(Arrays(workload.x, workload.targets), EVALUATION_BATCH))
    plain: list[Batch] = [(x.contiguous(), y) for x, y in _nchw(workload)]
    alphas = model.preferences()
    times = interleave(
        {
            "plain": lambda: [_plain_pass(network, workload.tasks, plain) for _ in alphas],
            "plain, channels last": lambda: [
                _plain_pass(network, workload.tasks, ours) for _ in alphas
            ],
            "lorpman": lambda: evaluate(model, workload.tasks, ours),
        },
        conditions,
    )
    also = {
        "against plain passes with channels-last images": ratio(
            times, "lorpman", "plain, channels last"
        )
    }
    return Measurement(ratio(times, "lorpman", "plain"), times, also)


def _nchw(workload: Workload) -> list[tuple[Tensor, list[Tensor]]]:
    parts = [y.split(EVALUATION_BATCH) for y in workload.targets]
    inputs = workload.x.split(EVALUATION_BATCH)
    return [(x, [part[k] for part in parts]) for k, x in enumerate(inputs)]


@torch.no_grad()
def _plain_pass(network: nn.Module, tasks: list[Task], loader: list[Batch]) -> list[float]:
    """Mean loss and accuracy of every task, as anybody would write it down."""
    totals = [0.0] * (2 * len(tasks))
    for x, targets in loader:
        for i, (output, target) in enumerate(zip(network(x), targets, strict=True)):
            totals[2 * i] += float(tasks[i].loss(output, target)) * len(target)
            totals[2 * i + 1] += float((output.argmax(1) == target).sum())
    return totals


def switching(conditions: Conditions) -> Measurement:
    """``theta(alpha)`` loaded into a plain network that is already there, against a forward pass.

    A program that serves many preferences keeps one network and changes its weights. The time
    of ``model.solution(alpha)``, which makes a new network, is noted too.

    Args:
        conditions: How to measure.

    Returns:
        The ratio, for LeNet.
    """
    note = "theta(alpha) and load_state_dict on LeNet, against its forward pass at batch 256"
    contenders = _switching(lenet(), "")
    contenders |= _switching(census(), ", census")
    times = interleave(contenders, conditions)
    also = {
        "model.solution(alpha), a new network": ratio(times, "solution", "forward"),
        "theta(alpha) and load_state_dict on the census network": ratio(
            times, "switch, census", "forward, census"
        ),
    }
    return Measurement(ratio(times, "switch", "forward"), times, also, note)


def _switching(workload: Workload, suffix: str) -> dict[str, Callable[[], object]]:
    model = _low_rank(workload)
    network = model.solution(model.preferences()[0]).eval()
    # Another one for each call, drawn before the clock runs.
    alphas = iter(dirichlet(model.num_tasks, 100_000))

    @torch.no_grad()
    def forward() -> None:
        network(workload.x)

    @torch.no_grad()
    def switch() -> None:
        # Not strict: theta holds the parameters, but not the statistics of norm layers.
        network.load_state_dict(model.theta(next(alphas)), strict=False)

    return {
        f"forward{suffix}": forward,
        f"switch{suffix}": switch,
        f"solution{suffix}": lambda: model.solution(next(alphas)),
    }


def orthogonality_term(conditions: Conditions) -> Measurement:
    """The term as presets use it, with its gradient, against a way that builds every ``B_i A_i``.

    Both look at the same three of 40 tasks, as the method has it above three tasks; the other
    way first builds all 40 deltas of a layer, as the naive merge would. How it compares with a
    way that builds only those three is noted too.

    Args:
        conditions: How to measure; a quick run has the network at half its width.

    Returns:
        The ratio.
    """
    workload = resnet(width=32 if conditions.quick else 64)
    model = _low_rank(workload)
    _check_equal(model)
    everything = range(model.num_tasks)
    times = interleave(
        {
            "every B A": lambda: _built(model, _three(model), everything).backward(),
            "three B A": lambda: _built(model, _three(model), None).backward(),
            "lorpman": lambda: _term(model).backward(),
        },
        conditions,
    )
    also = {"against building only three B A": ratio(times, "lorpman", "three B A")}
    note = f"ResNet-18, rank 32, with the gradient; the values agree to {_TOLERANCE:g}"
    return Measurement(ratio(times, "lorpman", "every B A"), times, also, note)


def _three(model: LowRank) -> list[int]:
    return torch.randperm(model.num_tasks)[:3].tolist()


def _term(model: LowRank) -> Tensor:
    nothing = torch.zeros(0, model.num_tasks)
    return Orthogonality()(nothing, nothing, model)


def _built(model: LowRank, chosen: list[int], build: range | None) -> Tensor:
    """The term from dense deltas, of the ``chosen`` tasks; ``build`` says which are built."""
    terms = []
    for delta in model.low_rank_deltas().values():
        tasks = chosen if build is None else list(build)
        dense = torch.stack([(delta.B[:, i] @ delta.A[i]).flatten() for i in tasks])
        if build is not None:
            dense = dense[chosen]
        terms.append(orthogonality(dense @ dense.T))
    return torch.stack(terms).mean()


def _check_equal(model: LowRank) -> None:
    """Both ways must find the same value, or their times mean nothing."""
    with torch.no_grad():
        torch.manual_seed(1)
        ours = float(_term(model))
        torch.manual_seed(1)
        theirs = float(_built(model, _three(model), None))
    if not abs(ours - theirs) <= _TOLERANCE * max(1.0, abs(theirs)):
        raise RuntimeError(f"the orthogonality term is {ours}, but from dense deltas {theirs}")


def _low_rank(workload: Workload) -> LowRank:
    """A manifold whose ``B`` is not zero, as after some training."""
    model = workload.manifold()
    assert isinstance(model, LowRank)
    with torch.no_grad():
        for delta in model.low_rank_deltas().values():
            delta.B.normal_(std=0.01)
    return model.eval()


def import_time(conditions: Conditions) -> Measurement:
    """Seconds that ``import lorpman`` takes in a process that has imported torch.

    Args:
        conditions: How to measure.

    Returns:
        The median over rounds.
    """
    clock = "process_time" if conditions.cpu_time else "perf_counter"
    code = (
        "import time, torch\n"
        f"began = time.{clock}()\n"
        "import lorpman\n"
        f"print(time.{clock}() - began)\n"
    )
    began = time.perf_counter()
    run_python(code, [], conditions.threads)  # the first one may have to read from the disk
    rounds = conditions.rounds(time.perf_counter() - began)
    seconds = [float(run_python(code, [], conditions.threads).output) for _ in range(rounds)]
    times: Times = {"import lorpman": seconds}
    return Measurement(statistics.median(seconds), times)
