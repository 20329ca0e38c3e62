"""Numbers of rules as text: as many digits as tell them apart, and no more."""

from __future__ import annotations

import math

import numpy as np

from treewright.tree.structure import Tree

__all__ = ["MAX_PRECISION", "NOISE", "format_number", "threshold_digits"]

MAX_PRECISION = 17
"""Significant digits that tell any number."""
NOISE = 1e-9
"""Numbers that differ by less than this, relatively, differ by rounding: no digits are spent on that."""


def format_number(value: float, precision: int = 4, keep_fraction: bool = False) -> str:
    """Write a number of a rule with some significant digits, all before the decimal point, no trailing zeros.

    Parameters
    ----------
    value : float
        The number.
    precision : int, default=4
        Significant digits. 17 gives the shortest text that reads back as the same number.
    keep_fraction : bool, default=False
        Whether to spend more digits on a number that would otherwise be rounded to a whole one.

    Examples
    --------
    >>> [format_number(x) for x in (2.0, 0.123456, 123456.7, -0.0, 1e-7)]
    ['2', '0.1235', '123457', '0', '1e-07']
    >>> format_number(2019.5), format_number(2019.5, keep_fraction=True)
    ('2020', '2019.5')
    """
    value = float(value)
    size = abs(value)
    if size == 0.0 or not math.isfinite(value):
        return "0" if size == 0.0 else str(value)
    if not 1e-4 <= size < 1e16:
        return _scientific(value, precision)
    if precision >= MAX_PRECISION:
        return np.format_float_positional(value, trim="-")
    decimals = max(0, precision - 1 - math.floor(math.log10(size)))
    if keep_fraction and abs(value - round(value)) > NOISE * max(1.0, size):
        while float(f"{value:.{decimals}f}").is_integer():
            decimals += 1
    text = f"{value:.{decimals}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def _scientific(value: float, precision: int) -> str:
    if precision >= MAX_PRECISION:
        return repr(value)
    mantissa, exponent = f"{value:.{precision - 1}e}".split("e")
    return f"{mantissa.rstrip('0').rstrip('.') if '.' in mantissa else mantissa}e{exponent}"


def threshold_digits(tree: Tree, precision: int) -> dict[int, int]:
    """Digits for each feature that tell thresholds of a tree from one another, at least `precision`."""
    rows = np.flatnonzero(np.count_nonzero(tree.weights, axis=1) == 1)
    columns = np.argmax(tree.weights[rows] != 0.0, axis=1)
    with np.errstate(all="ignore"):
        thresholds = tree.threshold[rows] / tree.weights[rows, columns]
    digits = {}
    for feature in np.unique(columns):
        values = np.unique(thresholds[columns == feature])
        values = values[np.isfinite(values)]
        apart = np.diff(values) > NOISE * np.abs(values[1:])
        values = values[np.concatenate([[True], apart])[: len(values)]]
        enough = precision
        while enough < MAX_PRECISION:
            if len({format_number(value, enough, keep_fraction=True) for value in values}) == len(values):
                break
            enough += 1
        digits[int(feature)] = enough
    return digits
