"""The graph of the training points: that of their nearest neighbours, or what the user gave for the rows."""

from __future__ import annotations

from dataclasses import dataclass
from os import PathLike
from typing import Any

from treewright.budget import Budget
from treewright.graph import FoundGraph, find_graph

__all__ = ["GraphSettings"]


@dataclass(frozen=True)
class GraphSettings:
    """Which neighbours are joined, and how closely; see :class:`treewright.LapTAOClassifier`."""

    n_neighbors: int = 10
    perplexity: float = 5.0
    neighbors: str = "auto"
    mutual: bool = False
    graph_cache: str | PathLike[str] | None = None

    def search(self, X: Any, threads: int, seed: int, budget: Budget | None = None) -> FoundGraph:
        """Graph of points whose features are scaled.

        In small tables a point has all others as neighbours, and the perplexity is at most their number.
        """
        others = max(1, X.shape[0] - 1)
        return find_graph(
            X,
            n_neighbors=min(int(self.n_neighbors), others),
            perplexity=min(float(self.perplexity), float(others)),
            mutual=bool(self.mutual),
            method=self.neighbors,
            n_jobs=threads,
            seed=seed,
            cache=self.graph_cache,
            budget=budget,
        )
