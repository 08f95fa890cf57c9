"""Means over seeds, and how they are printed."""

import statistics
from collections.abc import Sequence

from lorpman.lab.reproduce.reproduction import Reported


def spread(values: Sequence[float]) -> Reported | None:
    """Mean and standard deviation over seeds; one seed has no deviation, none nothing.

    Args:
        values: One number per seed.

    >>> spread([0.5, 0.7]), spread([])
    (Reported(mean=0.6, deviation=0.14142135623730948), None)
    """
    if not values:
        return None
    deviation = statistics.stdev(values) if len(values) > 1 else None
    return Reported(statistics.fmean(values), deviation)


def format_ours(number: Reported) -> str:
    """Our number: so many digits that four of them say something.

    Args:
        number: A mean, and a deviation if there is one.

    >>> format_ours(Reported(0.92266, 0.0005)), format_ours(Reported(2.412e-6))
    ('0.9227 ± 0.0005', '2.412e-06')
    >>> format_ours(Reported(54.9))
    '54.90'
    """
    size = abs(number.mean)
    if size >= 10:
        return _both(number, "{:.2f}")
    if size >= 0.01:
        return _both(number, "{:.4f}")
    return _both(number, "{:.4g}", "{:.2g}")


def format_paper(number: Reported) -> str:
    """The paper's number, with the digits that stand there.

    Args:
        number: A mean, and a deviation if the paper has one.

    >>> format_paper(Reported(0.9, 0.0068)), format_paper(Reported(70.2))
    ('0.900 ± 0.0068', '70.20')
    >>> format_paper(Reported(124.061))
    '124.061'
    """
    least = 2 if number.mean >= 10 else 3
    mean = f"{number.mean:.6g}"
    if len(mean.partition(".")[2]) < least:
        mean = f"{number.mean:.{least}f}"
    return mean if number.deviation is None else f"{mean} ± {number.deviation:.6g}"


def _both(number: Reported, form: str, form_of_deviation: str | None = None) -> str:
    if number.deviation is None:
        return form.format(number.mean)
    return f"{form.format(number.mean)} ± {(form_of_deviation or form).format(number.deviation)}"


def format_millions(count: float) -> str:
    """A count of parameters in millions, as the paper prints it.

    Args:
        count: The number of parameters.

    >>> format_millions(0.046e6), format_millions(15e6)
    ('0.046M', '15.0M')
    """
    text = f"{count / 1e6:.6g}"
    return f"{text}M" if "." in text else f"{text}.0M"
