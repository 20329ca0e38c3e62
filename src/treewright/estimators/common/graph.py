"""Shared parameters of everything that looks at neighbours."""

from __future__ import annotations

from numbers import Integral, Real
from os import PathLike
from typing import Any, ClassVar

from sklearn.utils._param_validation import Interval, StrOptions

from treewright.graph.neighbors import METHODS

__all__ = ["GraphModel"]


class GraphModel:
    """Mixin of the estimators that use a graph of the training rows."""

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "n_neighbors": [Interval(Integral, 1, None, closed="left")],
        "perplexity": [Interval(Real, 1, None, closed="left")],
        "neighbors": [StrOptions(set(METHODS))],
        "mutual": ["boolean"],
        "graph_cache": [str, PathLike, None],
    }
