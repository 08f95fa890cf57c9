"""How a front shows itself in a notebook: a table and a picture, as HTML."""

import base64
import html
import tempfile
from collections.abc import Sequence
from pathlib import Path

from lorpman.front.front import Front
from lorpman.front.plot import plot_front
from lorpman.front.plot_style import volume_text

_MOST_ROWS = 11


def front_html(front: Front) -> str:
    """A front as HTML: its hypervolume, scores by preference, and the picture.

    Args:
        front: The front; of a large one only some evenly chosen rows are shown.
    """
    step = max(1, -(-len(front) // _MOST_ROWS))
    rows = [
        [*(f"{w:.3g}" for w in alpha), *(f"{s:.4g}" for s in scores)]
        for alpha, scores in zip(front.alphas.tolist(), front.scores.tolist(), strict=True)
    ][::step]
    head = [*(f"weight of {task}" for task in front.tasks), *front.tasks]
    shown = "" if len(rows) == len(front) else f"; {len(rows)} of {len(front)} points"
    title = f"{front.label}: " if front.label else ""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "front.png"
        plot_front(front, file)
        picture = file.read_bytes()
    caption = html.escape(f"{title}{volume_text(front)}{shown}")
    return f"<p>{caption}</p>{html_picture(picture)}{html_table(head, rows)}"


def html_table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table as HTML, with every text escaped.

    Args:
        head: The titles of the columns.
        rows: The cells of every row.

    >>> html_table(["a"], [["<1"]])
    '<table><thead><tr><th>a</th></tr></thead><tbody><tr><td>&lt;1</td></tr></tbody></table>'
    """
    top = "".join(f"<th>{html.escape(cell)}</th>" for cell in head)
    body = "".join(
        "<tr>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in row) + "</tr>" for row in rows
    )
    return f"<table><thead><tr>{top}</tr></thead><tbody>{body}</tbody></table>"


def html_picture(png: bytes) -> str:
    """A PNG as HTML, inside the text itself.

    Args:
        png: The content of the file.
    """
    data = base64.b64encode(png).decode()
    return f'<img alt="the front" style="max-width:480px" src="data:image/png;base64,{data}">'
