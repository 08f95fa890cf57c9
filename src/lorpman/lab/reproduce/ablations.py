"""The paper's four ablations on UTKFace, and the smaller ones that fit a laptop."""

from lorpman.lab.reproduce.reproduction import Line, Reported

SMALL = "on multidigits, a small problem, instead of UTKFace"


def _line(
    label: str,
    paper: dict[str, float] | None,
    laptop: dict[str, float] | None,
    reported: tuple[float, float] | None = None,
    **more: Reported,
) -> Line:
    volume = {"hypervolume": Reported(*reported)} if reported else {}
    return Line(label, "lorpman", paper, laptop, {**volume, **more})


ORTHOGONALITY = (
    _line(
        "without orthogonal regularisation",
        {"lambda_o": 0.0},
        {"lambda_o": 0.0},
        (0.309, 0.002),
        correlation=Reported(0.466, 0.045),
    ),
    _line(
        "with orthogonal regularisation", {}, {}, (0.314, 0.001), correlation=Reported(0.067, 0.012)
    ),
)


def _rank(
    rank: int, reported: tuple[float, float] | None = None, parameters: float | None = None
) -> Line:
    # The matrices of the small network have a rank of 10 at most: more would change nothing.
    laptop = {"rank": rank} if rank <= 8 else None
    volume = {"hypervolume": Reported(*reported)} if reported else {}
    paper = {"rank": rank} if reported else None
    return Line(f"rank {rank}", "lorpman", paper, laptop, volume, parameters)


RANK = (
    _rank(1),
    _rank(2),
    _rank(4, (0.306, 0.002), 12.1e6),
    _rank(8, (0.310, 0.001), 12.8e6),
    _rank(16, (0.310, 0.002), 14.5e6),
    _rank(32, (0.311, 0.001), 17.6e6),
    _rank(64, (0.314, 0.001), 24.0e6),
    _rank(128, (0.313, 0.002), 35.5e6),
)

# The small problem has 20 epochs where UTKFace has 100: the same shares of training.
FREEZE = tuple(
    _line(
        f"frozen after {epoch} % of the epochs" if epoch < 100 else "never frozen",
        {"freeze_epoch": epoch},
        {"freeze_epoch": epoch // 5},
        reported,
    )
    for epoch, reported in {
        20: (0.305, 0.001),
        40: (0.311, 0.001),
        60: (0.312, 0.002),
        80: (0.314, 0.001),
        100: (0.307, 0.003),
    }.items()
)

SCALE = tuple(
    _line(f"scale {scale:g}", {"scale": scale}, {"scale": scale}, reported)
    for scale, reported in {
        0.1: (0.313, 0.001),
        0.5: (0.313, 0.001),
        1.0: (0.314, 0.001),
        1.5: (0.312, 0.002),
        2.0: (0.310, 0.002),
    }.items()
)
