"""How one input looks to people: a picture, a row of a table, or a text."""

import io
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from torch import Tensor

from lorpman.errors import UsageError

Show = Callable[[Any], Any]
"""An input to an image ``[1 or 3, h, w]``, a mapping by column, or a text."""
_PICTURE_SIDE = 96  # pixels; smaller inputs are enlarged
_MOST_COLUMNS = 8
_LONGEST_TEXT = 400


@dataclass(frozen=True)
class ShownInput:
    """An input on a card; one of these, or nothing where it cannot be shown."""

    picture: bytes | None = None
    """A PNG."""
    row: tuple[tuple[str, str], ...] = ()
    """Names of columns and their values."""
    text: str = ""
    """For inputs that are read."""


def shown_input(x: Any, show: Show | None) -> ShownInput:
    """How one input is shown.

    Args:
        x: The input, without a dimension for the batch.
        show: What its problem says about that; None for the usual way, by shape: images as
            pictures, short rows as tables, long ones as shades, texts as they are.

    Raises:
        UsageError: If ``show`` fails, or gives something that cannot be shown.
    """
    if show is None:
        return _by_shape(x)
    try:
        given = show(x)
    except Exception as error:
        raise UsageError(f"show of the problem failed: {type(error).__name__}: {error}") from None
    shown = _by_shape(given)
    if shown == ShownInput():
        found = list(given.shape) if isinstance(given, Tensor) else type(given).__name__
        raise UsageError(
            "show of the problem must give an image [1 or 3, h, w], a dict or a text, "
            f"found {found}"
        )
    return shown


def _by_shape(x: Any) -> ShownInput:
    if isinstance(x, str):
        return ShownInput(text=x if len(x) <= _LONGEST_TEXT else x[:_LONGEST_TEXT] + " ...")
    if isinstance(x, Mapping):
        return ShownInput(row=tuple((str(key), _cell(value)) for key, value in x.items()))
    if not isinstance(x, Tensor):
        return ShownInput()
    if x.ndim == 1 and 1 < len(x) <= _MOST_COLUMNS:
        return ShownInput(row=tuple((str(i + 1), _cell(v)) for i, v in enumerate(x)))
    return ShownInput(picture=picture(x))


def _cell(value: Any) -> str:
    """A value of a table in few digits."""
    if isinstance(value, Tensor):
        if value.numel() != 1:
            shown = ", ".join(f"{one:.4g}" for one in value.flatten()[:4].tolist())
            return shown + (" ..." if value.numel() > 4 else "")
        value = value.item()
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def picture(x: Tensor) -> bytes | None:
    """An input as a PNG.

    Args:
        x: An image ``[1 or 3, h, w]``, or a row of a table ``[k]``.

    Returns:
        The file's content; None for anything else, such as a single number.
    """
    from PIL import Image

    values = x.detach().float()
    if values.ndim == 1 and len(values) > 1:
        values = _square_of_shades(values)
    if values.ndim != 3 or values.shape[0] not in (1, 3):
        return None
    # Normalised images hold any numbers: the darkest becomes black, the brightest white.
    low, high = values.amin(), values.amax()
    pixels = ((values - low) / (high - low).clamp_min(1e-9) * 255).round().byte()
    array = pixels.permute(1, 2, 0).squeeze(2).contiguous().numpy()
    factor = max(1, _PICTURE_SIDE // max(array.shape[:2]))
    image = Image.fromarray(array)
    image = image.resize((image.width * factor, image.height * factor), Image.Resampling.NEAREST)
    file = io.BytesIO()
    image.save(file, format="PNG")
    return file.getvalue()


def _square_of_shades(values: Tensor) -> Tensor:
    """A row of a table as a small square of shades, one per column."""
    # Rounded up, so that every column has a place.
    side = int(len(values) ** 0.5 + 0.999)
    square = values.new_zeros(side * side)
    # Columns are standardised; beyond three deviations, one would hide all others.
    square[: len(values)] = values.clamp(-3, 3)
    return square.view(1, side, side)
