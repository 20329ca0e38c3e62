"""Labels that look like marks of rows without one, and would be taken for a class."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

import numpy as np

from treewright.core.arrays import BoolArray, IntArray
from treewright.data.columns_checked import listing, show
from treewright.exceptions import ForgottenMarkWarning, InvalidInputError, warn_user

__all__ = ["likely_marks", "mark_words", "refuse_missing", "warn_of_marks"]

_TEXT = re.compile(r"[^\w+]*|n/?a|#n/a|nan|nat|null|none|missing|unknown|not available", re.IGNORECASE)
"""Text that is hardly the name of a class."""
_NUMBER = re.compile(r"-(1|9+)(\.0)?")
"""Numbers below 0 that stand for no answer."""


def likely_marks(classes: Iterable[Any], unlabeled: Any = -1) -> list[Any]:
    """Classes that are more likely marks of rows without a label.

    Of numbers -1, -9, -99 and the like, where it is the only one below 0; but -1 and 1 alone are a usual coding of two
    classes, and who names another mark means -1. Of text what is empty, has no letter, or says that nothing is known;
    but "-" beside "+".

    Parameters
    ----------
    classes : iterable
        The different labels.
    unlabeled : label, default=-1
        The mark that was named.

    Examples
    --------
    >>> likely_marks([-1, 0, 1]), likely_marks([-1, 1]), likely_marks([-1, 0, 1], unlabeled=9)
    ([-1], [], [])
    >>> likely_marks(["", "no", "yes"]), likely_marks(["+", "-"])
    ([''], [])
    """
    names = list(classes)
    if all(isinstance(name, str) for name in names):
        return [name for name in names if _is_mark(name, unlabeled) and not (name == "-" and "+" in names)]
    if any(isinstance(name, str | bool) for name in names):
        return []
    below = [name for name in names if name < 0]
    if len(below) != 1 or not _NUMBER.fullmatch(str(below[0])) or sorted(names) == [-1, 1]:
        return []
    return below if below[0] != -1 or _is_default(unlabeled) else []


def _is_default(unlabeled: Any) -> bool:
    return isinstance(unlabeled, int | float) and unlabeled == -1


def _is_mark(name: str, unlabeled: Any) -> bool:
    return _TEXT.fullmatch(name.strip()) is not None or (name.strip() == "-1" and _is_default(unlabeled))


def mark_words(marks: dict[Any, int], n_rows: int, remedy: str) -> str:
    """What to say of labels in the data that look like marks: how many rows have each, and what to do if they are.

    Parameters
    ----------
    marks : dict of label to int
        Rows of each.
    n_rows : int
        All rows.
    remedy : str
        What to do if they mark rows without a label, with {y} where the condition goes that leaves them out.

    Examples
    --------
    >>> print(mark_words({-1: 40}, 150, "fit to X[{y}] and y[{y}]"))
    y has -1 in 40 of 150 rows, which are taken for rows of a class. If that marks rows without a label, fit to ...
    >>> mark_words({"": 40, "n/a": 1}, 150, "fit to X[{y}]").partition("fit to ")[2]
    "X[~np.isin(y, ['', 'n/a'])]."
    """
    told = " and ".join(f"{show(mark)} in {count}" for mark, count in marks.items())
    one = len(marks) == 1
    kept = f"y != {show(next(iter(marks)))}" if one else f"~np.isin(y, [{listing(marks)}])"
    of = "a class" if one else "classes"
    return (
        f"y has {told} of {n_rows} rows, which are taken for rows of {of}. "
        f"If that marks rows without a label, {remedy.format(y=kept)}."
    )


def refuse_missing(missing: BoolArray) -> None:
    """Refuse rows without a label where every row needs one.

    Examples
    --------
    >>> refuse_missing(np.array([False, True]))
    Traceback (most recent call last):
    ...
    treewright.exceptions.InvalidInputError: Input y contains NaN or None in 1 of 2 rows, first in row 1; ...
    """
    if missing.any():
        raise InvalidInputError(
            f"Input y contains NaN or None in {np.count_nonzero(missing)} of {len(missing)} rows, first in row "
            f"{np.argmax(missing)}; every row needs a label here: give the others alone, or take a model that learns "
            "from all rows: TAOClassifier(teacher='auto'), S2OCTClassifier"
        )


def warn_of_marks(classes: np.ndarray, y: IntArray, remedy: str, unlabeled: Any = -1) -> None:
    """Warn of classes, of which `y` are numbers, that look like marks of rows without a label."""
    names = classes.tolist()
    marks = {name: int(np.count_nonzero(y == names.index(name))) for name in likely_marks(names, unlabeled)}
    if marks:
        warn_user(mark_words(marks, len(y), remedy), ForgottenMarkWarning)
