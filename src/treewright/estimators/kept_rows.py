"""Rows of a fit that a model keeps, as those have to that look up their nearest neighbours."""

from __future__ import annotations

from typing import Any

from scipy import sparse
from sklearn.kernel_approximation import Nystroem

from treewright.core.names import counted
from treewright.estimators.fitted_trees import fitted_parts

__all__ = ["kept_rows", "kept_rows_words"]

_KEEPERS = ("_fit_X", "X_fit_", "X_train_", "X_", "support_vectors_", "points_")
"""What estimators of scikit-learn, and ours, call the rows that they keep."""


def kept_rows(model: Any) -> dict[str, int]:
    """Rows of the fit in a model, by the classes of the estimators that keep them; the most of each class.

    Examples
    --------
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn.neighbors import KNeighborsClassifier
    >>> X, y = [[0.0], [1.0], [2.0], [9.0]], [0, 0, 1, 1]
    >>> kept_rows(KNeighborsClassifier(1).fit(X, y)), kept_rows(LogisticRegression().fit(X, y))
    ({'KNeighborsClassifier': 4}, {})
    """
    found: dict[str, int] = {}
    for part in fitted_parts(model):
        known = vars(part) if hasattr(part, "__dict__") and not isinstance(part, type) else {}
        names = [*_KEEPERS, *(["components_"] if isinstance(part, Nystroem) else [])]
        for rows in [known[name] for name in names if name in known]:
            if sparse.issparse(rows) or getattr(rows, "ndim", 0) == 2:
                kind = type(part).__name__
                found[kind] = max(found.get(kind, 0), int(rows.shape[0]))
    return found


def kept_rows_words(model: Any) -> str:
    """How many rows of the fit a model keeps, in words, "none" where there are none."""
    told = [f"{counted(n, 'row')} ({kind})" for kind, n in kept_rows(model).items() if n]
    return f"{', '.join(told)}: whoever has the model can read them" if told else "none"
