"""Warnings of a whole job: which of them users see, and what its report says of them."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Iterator
from typing import Any

from treewright.exceptions import AlikeNamesWarning, ForgottenMarkWarning

__all__ = ["noted_warnings", "without_own_words"]


def without_own_words() -> None:
    """Ignore what a job says in words of its own: how fits ended, classes that look like marks or one another."""
    from sklearn.exceptions import ConvergenceWarning

    for category in (ConvergenceWarning, ForgottenMarkWarning, AlikeNamesWarning):
        warnings.simplefilter("ignore", category)
    # tables are matched to features by name before they become arrays
    warnings.filterwarnings("ignore", message="X does not have valid feature names")


@contextlib.contextmanager
def noted_warnings() -> Iterator[list[str]]:
    """Note the texts of the warnings of the block, each once; they are shown as usual.

    Examples
    --------
    >>> with warnings.catch_warnings(record=True), noted_warnings() as noted:
    ...     warnings.warn("half of the rows", UserWarning)
    >>> noted
    ['half of the rows']
    """
    noted: list[str] = []
    with warnings.catch_warnings():
        without_own_words()
        shown = warnings.showwarning

        def show(message: Warning | str, category: type[Warning], *where: Any, **how: Any) -> None:
            text = " ".join(str(message).split())
            if issubclass(category, UserWarning) and text not in noted:
                noted.append(text)
            shown(message, category, *where, **how)

        warnings.showwarning = show
        yield noted
