"""A table that trains in seconds, for the tests of what is made from tables."""

from lorpman.lab.reproduce.figures import draw_sweep
from lorpman.lab.reproduce.measures import CORRELATION, HYPERVOLUME
from lorpman.lab.reproduce.reproduction import Line, Plan, Reported, Reproduction
from lorpman.lab.reproduce.train_and_measure import reproduce

QUICK = {"epochs": 1, "batch_size": 1000, "watch_samples": 0, "freeze_epoch": None}
SMALL = Reproduction(
    "small-ablation",
    "Table: two ranks",
    (
        Line("rank 1", "lorpman", None, {**QUICK, "rank": 1}, {"hypervolume": Reported(0.5, 0.01)}),
        Line("rank 2", "lorpman", None, {**QUICK, "rank": 2}, {}),
        Line("rank 99", "lorpman", {"rank": 99}, None, {"hypervolume": Reported(0.6)}, 3e6),
    ),
    (HYPERVOLUME, CORRELATION),
    draw_sweep,
    Plan("utkface", (0, 1)),
    Plan("multidigits", (0, 1), "much smaller"),
    history="losses",
)


def make_small(runs, reproduction=SMALL, **options):
    """Train what ``runs`` lacks, in this process, and measure it."""
    return reproduce(reproduction, "laptop", runs, runs, isolate=False, **options)
