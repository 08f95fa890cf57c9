"""What all pictures share: colours, labels, legends and how a file is written."""

import io
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lorpman._files import Kind, near_start, write_bytes
from lorpman.errors import UsageError
from lorpman.front.front import Front

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# Okabe and Ito's palette without black and yellow: colour-blind readers tell these apart.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#882255", "#999933")
# One more than colours: a pair of both comes again only after 72 fronts.
MARKERS = "osD^vPX*h"
COLOUR_MAP = "viridis"
_DPI = 150
# By suffix, what stands near the beginning of every such file.
_SIGNATURES = {
    ".png": b"\x89PNG\r\n",
    ".pdf": b"%PDF",
    ".svg": b"<svg",
    ".svgz": b"\x1f\x8b",
    ".jpg": b"\xff\xd8\xff",
    ".jpeg": b"\xff\xd8\xff",
    ".gif": b"GIF8",
    ".webp": b"WEBP",
    ".tif": b"II*\x00",
    ".tiff": b"II*\x00",
    ".avif": b"ftypavif",
    ".eps": b"%!PS",
    ".ps": b"%!PS",
    ".pgf": b"Matplotlib",
}


def _is_picture(path: Path) -> bool:
    signature = _SIGNATURES.get(path.suffix.lower())
    # An SVG file has its kind and its data type first, up to a kilobyte of text.
    within = 2048 if path.suffix.lower() in (".svg", ".pgf") else 16
    return signature is not None and near_start(signature, within=within)(path)


PICTURE = Kind("a picture of the kind that its name says", _is_picture, in_runs=True)


def volume_text(front: Front) -> str:
    """The hypervolume of a front, with its standard error if it has one.

    Args:
        front: The front.
    """
    try:
        volume = front.hypervolume()
    except UsageError:  # a picture is worth having where the volume fits no float
        return "hypervolume out of range"
    error = f" ± {volume.stderr:.1g}" if volume.stderr else ""
    return f"hypervolume {significant(volume.value, 4)}{error}"


def significant(value: float, digits: int) -> str:
    """A number with a fixed number of significant digits, zeros included: 0.950 beside 0.948.

    Args:
        value: The number.
        digits: How many digits it gets.

    >>> significant(0.95, 3), significant(12.0, 2)
    ('0.950', '12')
    """
    return f"{value:#.{digits}g}".rstrip(".")


def plain_text(name: str) -> str:
    """``name`` as matplotlib prints it: a dollar sign would start a formula.

    Args:
        name: A name as people gave it.
    """
    return name.replace("$", r"\$")


def axis_label(front: Front, task: int) -> str:
    """The name of a task, by its column, and which way is better.

    Args:
        front: The front.
        task: The place of the task in it.
    """
    # Turned with the label of an upright axis, the arrow still points along that axis.
    name = front.tasks[task]
    return f"{plain_text(name)}  ({front.direction(name).axis_words})"


def front_name(front: Front, k: int) -> str:
    """The label of front number ``k``, counted from 0, or a number in its place.

    Args:
        front: The front.
        k: Its place among those that are drawn, from 0.
    """
    return plain_text(front.label) or f"front {k + 1}"


def draw_legend(figure: "Figure", handles: Any, labels: Any) -> None:
    """Draw a legend below everything, in as many columns as the width has room for.

    Args:
        figure: The figure.
        handles: What matplotlib shows for each line.
        labels: What it is called.
    """
    widest = 0.085 * max(map(len, labels)) + 0.6  # inches
    columns = max(1, min(len(labels), int(figure.get_figwidth() / widest)))
    figure.legend(handles, labels, loc="outside lower center", ncols=columns, frameon=False)


def save_figure(figure: "Figure", path: Path) -> None:
    """Write a figure into a file, all of it or nothing.

    Args:
        figure: The figure.
        path: The file; its suffix picks the format.

    Raises:
        UsageError: If the suffix is unknown, or the file cannot be written.
    """
    formats = figure.canvas.get_supported_filetypes()
    kind = path.suffix[1:].lower()
    if kind not in formats:
        known = ", ".join(sorted(formats))
        raise UsageError(f"cannot draw into '{path}': the file name must end in one of {known}")
    # In memory first, so that a failure leaves no half picture behind.
    picture = io.BytesIO()
    figure.savefig(picture, format=kind, dpi=_DPI)
    write_bytes(path, picture.getvalue(), PICTURE)
