"""The registry: one row for each table and figure of the paper.

Minutes are processor time with one thread, measured where the data was at hand; memory is the
peak of one run. Census counts the whole data, whichever part of it is there.
"""

from dataclasses import replace

from lorpman.errors import unknown
from lorpman.lab.reproduce import ablations
from lorpman.lab.reproduce.figures import (
    draw_fronts,
    draw_losses,
    draw_similarity,
    draw_sweep,
    draw_table,
    draw_toy,
)
from lorpman.lab.reproduce.measures import CORRELATION, DISTANCE, HYPERVOLUME, LOSS, SCENES
from lorpman.lab.reproduce.reproduction import Column, Line, Plan, Reported, Reproduction

_THREE = (0, 1, 2)
_SIX = (0, 1, 2, 3, 4, 5)
_NAMES = {
    "lorpman": "LORPMAN", "pamal": "PaMaL", "cosmos": "COSMOS", "phn": "PHN",
    "phn-hvi": "PHN-HVI", "film": "FiLM", "epo": "EPO", "pmtl": "PMTL", "png": "PNG",
    "moo-svgd": "MOO-SVGD", "gmooar-u": "GMOOAR-U", "gmooar-hv": "GMOOAR-HV",
}  # fmt: skip


def _lines(*methods: str) -> tuple[Line, ...]:
    return tuple(Line(_NAMES[method], method) for method in methods)


_MULTIMNIST = _lines("phn", "phn-hvi", "cosmos", "pamal", "lorpman")
_MULTIMNIST_PAPER = Plan("multimnist", _THREE, minutes=70, gibibytes=0.9)
_MULTIMNIST_LAPTOP = Plan("multimnist", (0,), minutes=25, gibibytes=0.9)
_CENSUS = _MULTIMNIST
_CENSUS_PAPER = Plan("census", _THREE, minutes=150, gibibytes=1.2)
_CENSUS_LAPTOP = replace(_MULTIMNIST_LAPTOP, problem="census", minutes=50, gibibytes=1.2)

_UTKFACE_PAPER = Plan("utkface", _THREE)
_UTKFACE_LAPTOP = Plan("utkface", (0,), minutes=25, gibibytes=1.0)

_CIFAR = _lines("cosmos", "pamal", "lorpman")
_CIFAR_PAPER = Plan("cifar100", _THREE)
_CIFAR_LAPTOP = Plan("cifar100", (0,), minutes=40, gibibytes=1.6)

# Which learning rates the paper tried is in its picture only; these are ours. Half of the
# laptop scale's epochs, so that any one run takes less than ten minutes.
_RATES = (0.01, 0.05, 0.1)
_LOSSES = (
    *(
        Line(
            f"PaMaL, learning rate {rate}",
            "pamal",
            {"learning_rate": rate},
            {"learning_rate": rate, "epochs": 5},
        )
        for rate in _RATES
    ),
    Line("LORPMAN, learning rate 0.01", "lorpman", laptop={"epochs": 5, "freeze_epoch": 4}),
)

_CELEBA = (
    Line("PHN-Chunking (original)", "chunked-phn"),
    Line(
        "PHN-Chunking (scaled)",
        "chunked-phn",
        {"hidden": 500},
        {"hidden": 500},
        {"hypervolume": Reported(0.681e-2, 0.048e-2)},
        92.3e6,
    ),
    *_lines("film", "cosmos", "pamal", "lorpman"),
)


def _scene(label: str, method: str, *metrics: float) -> Line:
    names = (column.key for column in SCENES)
    return Line(label, method, reported=dict(zip(names, map(Reported, metrics), strict=True)))


# All but LORPMAN's numbers are PaMaL's, as the paper says.
_CITYSCAPES = (
    _scene("STL", "stl", 70.96, 92.12, 0.0141, 38.644),
    _scene("LS", "ls", 70.12, 91.90, 0.0192, 124.061),
    _scene("UW", "uw", 70.20, 91.93, 0.0189, 125.943),
    _scene("MGDA", "mgda", 66.45, 90.79, 0.0141, 53.138),
    _scene("DWA", "dwa", 70.10, 91.89, 0.0192, 127.659),
    _scene("PCGrad", "pcgrad", 70.02, 91.84, 0.0188, 126.255),
    _scene("IMTL", "imtl", 70.77, 92.12, 0.0151, 74.230),
    _scene("GradDrop", "graddrop", 70.07, 91.93, 0.0189, 127.146),
    _scene("CAGrad", "cagrad", 69.23, 91.61, 0.0168, 110.139),
    _scene("RLW", "rlw", 68.79, 91.52, 0.0213, 126.942),
    _scene("Nash-MTL", "nash-mtl", 71.13, 92.23, 0.0157, 78.499),
    _scene("RotoGrad", "rotograd", 69.92, 91.85, 0.0193, 127.281),
    _scene("Auto-λ", "auto-lambda", 70.47, 92.01, 0.0177, 116.959),
    _scene("COSMOS", "cosmos", 69.78, 91.79, 0.0539, 136.614),
    _scene("PaMaL", "pamal", 70.35, 91.99, 0.0141, 54.520),
    _scene("LORPMAN", "lorpman", 72.13, 92.57, 0.0135, 54.942),
)


def _ablation(name: str, what: str, lines: tuple[Line, ...], *more: Column) -> Reproduction:
    return Reproduction(
        name,
        f"{what}, on UTKFace",
        lines,
        (HYPERVOLUME, *more),
        draw_sweep,
        Plan("utkface", _SIX),
        Plan("multidigits", _THREE, ablations.SMALL, minutes=15, gibibytes=0.6),
    )


REPRODUCTIONS = {
    row.name: row
    for row in (
        Reproduction(
            "toy-figure",
            "Figure: how the toy problem's solutions move to its known Pareto set",
            _lines("lorpman"),
            (HYPERVOLUME, DISTANCE),
            draw_toy,
            Plan("toy", _THREE, minutes=2, gibibytes=0.5),
            Plan("toy", _THREE, minutes=2, gibibytes=0.5),
            history="theta",
        ),
        Reproduction(
            "similarity-figure",
            "Figure: how alike the layers of PaMaL's members become, on MultiMNIST",
            _lines("pamal"),
            (HYPERVOLUME,),
            draw_similarity,
            Plan("multimnist", _THREE, minutes=12, gibibytes=0.7),
            Plan("multimnist", _THREE, minutes=12, gibibytes=0.7),
            history="similarity",
        ),
        Reproduction(
            "multimnist-table",
            "Table: hypervolume on MultiMNIST",
            _MULTIMNIST,
            (HYPERVOLUME,),
            draw_table,
            _MULTIMNIST_PAPER,
            _MULTIMNIST_LAPTOP,
        ),
        Reproduction(
            "multimnist-figure",
            "Figure: fronts on MultiMNIST",
            _MULTIMNIST,
            (HYPERVOLUME,),
            draw_fronts,
            _MULTIMNIST_PAPER,
            _MULTIMNIST_LAPTOP,
        ),
        Reproduction(
            "census-table",
            "Table: hypervolume on Census",
            _CENSUS,
            (HYPERVOLUME,),
            draw_table,
            _CENSUS_PAPER,
            _CENSUS_LAPTOP,
        ),
        Reproduction(
            "census-figure",
            "Figure: fronts on Census",
            _CENSUS,
            (HYPERVOLUME,),
            draw_fronts,
            _CENSUS_PAPER,
            _CENSUS_LAPTOP,
        ),
        Reproduction(
            "utkface-table",
            "Table: hypervolume on UTKFace",
            _lines("cosmos", "pamal", "lorpman"),
            (HYPERVOLUME,),
            draw_table,
            _UTKFACE_PAPER,
            _UTKFACE_LAPTOP,
        ),
        Reproduction(
            "utkface-figure",
            "Figure: fronts on UTKFace (COSMOS left out, as in the paper)",
            _lines("pamal", "lorpman"),
            (HYPERVOLUME,),
            draw_fronts,
            _UTKFACE_PAPER,
            _UTKFACE_LAPTOP,
        ),
        Reproduction(
            "cifar100-table",
            "Table: hypervolume on CIFAR-100",
            _CIFAR,
            (HYPERVOLUME,),
            draw_table,
            _CIFAR_PAPER,
            _CIFAR_LAPTOP,
        ),
        Reproduction(
            "cifar100-loss-figure",
            "Figure: PaMaL's training loss on CIFAR-100 for several learning rates",
            _LOSSES,
            (LOSS,),
            draw_losses,
            Plan("cifar100", (0,)),
            Plan("cifar100", (0,), "5 epochs instead of 20", minutes=15, gibibytes=1.6),
            history="losses",
        ),
        Reproduction(
            "cifar100-figure",
            "Figure: fronts on CIFAR-100",
            _CIFAR,
            (HYPERVOLUME,),
            draw_fronts,
            _CIFAR_PAPER,
            _CIFAR_LAPTOP,
        ),
        Reproduction(
            "celeba-table",
            "Table: hypervolume on CelebA",
            _CELEBA,
            (HYPERVOLUME,),
            draw_table,
            Plan("celeba", _THREE),
            Plan("celeba", (0,), minutes=45, gibibytes=2.0),
        ),
        Reproduction(
            "discrete-figure",
            "Figure: LORPMAN beside discrete fronts on MultiMNIST",
            _lines("lorpman", "epo", "pmtl", "png", "moo-svgd", "gmooar-u", "gmooar-hv"),
            (HYPERVOLUME,),
            draw_fronts,
            Plan("multimnist", (0,), minutes=45, gibibytes=0.7),
            Plan("multimnist", (0,), minutes=45, gibibytes=0.7),
        ),
        Reproduction(
            "cityscapes-table",
            "Table: one solution of each method on CityScapes",
            _CITYSCAPES,
            SCENES,
            draw_table,
            Plan("cityscapes", _THREE),
            Plan("cityscapes", (0,), minutes=60, gibibytes=2.0),
        ),
        _ablation(
            "ablation-orthogonality",
            "Table: with and without orthogonal regularisation",
            ablations.ORTHOGONALITY,
            CORRELATION,
        ),
        _ablation("ablation-rank", "Table: the rank of the deltas", ablations.RANK),
        _ablation("ablation-freeze", "Table: when the main network freezes", ablations.FREEZE),
        _ablation("ablation-scale", "Table: the scale of the deltas", ablations.SCALE),
    )
}


def get_reproduction(name: str) -> Reproduction:
    """The table or figure called ``name``.

    Args:
        name: A key of :data:`REPRODUCTIONS`.

    Raises:
        UsageError: If there is none; the message suggests the nearest name.
    """
    if name not in REPRODUCTIONS:
        raise unknown("table or figure", name, REPRODUCTIONS)
    return REPRODUCTIONS[name]
