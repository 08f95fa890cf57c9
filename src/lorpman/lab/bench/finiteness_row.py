"""What looking for numbers that are not finite costs, as a share of an epoch."""

from lorpman.lab.bench.benchmark_row import Measurement
from lorpman.lab.bench.steps import FitStep
from lorpman.lab.bench.timing import Conditions, interleave, ratio
from lorpman.lab.bench.watching_rows import MULTIMNIST_TRAINING_IMAGES
from lorpman.lab.bench.workload import lenet
from lorpman.lab.datasets.process_shares import USUAL_BATCH
from lorpman.training.divergence import check_checkpoint, check_epoch


def finiteness(conditions: Conditions) -> Measurement:
    """MultiMNIST's preset: everything that is checked after the last epoch, against an epoch.

    Args:
        conditions: How to measure.

    Returns:
        The share of an epoch that the checks take.
    """
    workload = lenet()
    training = workload.spec.training
    step = FitStep(workload.spec, workload.manifold(), workload.tasks, workload.fit_batch())
    step()  # the checks need a step that was taken

    def check() -> None:
        check_epoch(step.run, workload.tasks, epochs=1)
        check_checkpoint(step.run.as_checkpoint([]))

    def check_weights_only() -> None:
        check_epoch(step.run, workload.tasks, epochs=2)

    times = interleave(
        {"step": step, "check": check, "weights only": check_weights_only}, conditions
    )
    steps = -(-MULTIMNIST_TRAINING_IMAGES // (training.batch_size or USUAL_BATCH))
    also = {"of any epoch but the last": ratio(times, "weights only", "step") / steps}
    note = f"the last epoch, whose losses are taken once more; {steps} steps an epoch"
    return Measurement(ratio(times, "check", "step") / steps, times, also, note)
