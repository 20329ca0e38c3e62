"""Shared parameters of everything that looks at neighbours."""

from __future__ import annotations

from numbers import Integral, Real
from os import PathLike
from typing import Any, ClassVar

from sklearn.utils._param_validation import Interval, StrOptions

from treewright.budget import Budget
from treewright.graph import FoundGraph, check_graph, find_graph
from treewright.graph.neighbors import METHODS

__all__ = ["GraphModel"]


class GraphModel:
    """Mixin of the estimators that use a graph of the training rows; it goes with :class:`TimedModel`."""

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "n_neighbors": [Interval(Integral, 1, None, closed="left")],
        "perplexity": [Interval(Real, 1, None, closed="left")],
        "neighbors": [StrOptions(set(METHODS))],
        "mutual": ["boolean"],
        "graph_cache": [str, PathLike, None],
    }

    n_neighbors: int
    perplexity: float
    neighbors: str
    mutual: bool
    graph_cache: str | PathLike[str] | None
    _threads: int

    def _affinities(self, X: Any, graph: Any, seed: int) -> Any:
        """Affinities of the rows: `graph`, checked, or made from the scaled rows X if it is None."""
        return self._search_graph(X, seed).W if graph is None else check_graph(graph, X.shape[0])

    def _search_graph(self, X: Any, seed: int, budget: Budget | None = None) -> FoundGraph:
        """Graph of the scaled rows X.

        In small tables a row has all others as neighbours, and the perplexity is at most their number.
        """
        others = max(1, X.shape[0] - 1)
        return find_graph(
            X,
            n_neighbors=min(int(self.n_neighbors), others),
            perplexity=min(float(self.perplexity), float(others)),
            mutual=bool(self.mutual),
            method=self.neighbors,
            n_jobs=self._threads,
            seed=seed,
            cache=self.graph_cache,
            budget=budget,
        )
