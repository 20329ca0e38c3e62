r"""Semi-supervised classification trees: greedy splits that part both the labels and the points (SSCT).

The impurity of a set E of rows is, with its labelled rows :math:`E_l` and the training rows D,

.. math:: I(E) = w \frac{Gini(E_l)}{Gini(D_l)} + \frac{1 - w}{p} \sum_j \frac{Var_j(E)}{Var_j(D)}

and a split is the better the more it lowers that, children weighted by their shares of the rows (Levatic, Ceci, Kocev
and Dzeroski 2017). Features are standardized, so that the second term is a mean of squared distances to the mean, and
one running sum of the points serves all features. Constant features do not count in p.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from joblib import Parallel, delayed

from treewright.core.arrays import FloatArray, IntArray
from treewright.core.budget import Budget
from treewright.core.progress import stage
from treewright.data import unit_scaling
from treewright.models.baselines.ssct_sweep import best_cuts
from treewright.tree import Tree

__all__ = ["SSCTRows", "SSCTResult", "grow_ssct"]

_SWEEP = 100_000_000
"""Cells that a sweep over some candidate features looks at, before the clock is looked at: a tenth of a second."""

_VARIED = 1e-9
"""Least deviation of a feature from its mean, in its range: less is the rounding of that mean."""
_ROUNDING = 1e-10
"""What a gain of nothing may be below 0. Such splits are made too, as in CART: classes may be parted further below."""


@dataclass(frozen=True)
class SSCTRows:
    """Training rows of positive weight of an SSCT."""

    X: FloatArray
    """Points; shape (n_rows, n_features)."""
    y: IntArray
    """Class numbers, -1 for unlabelled rows; shape (n_rows,)."""
    weight: FloatArray
    """Weights; shape (n_rows,)."""
    size: FloatArray
    """How many rows each stands for, where leaves have a least size; shape (n_rows,)."""
    n_classes: int
    """Number of classes."""

    def counts(self, at: IntArray) -> FloatArray:
        """Weights of the classes among some rows."""
        known = at[self.y[at] >= 0]
        return np.bincount(self.y[known], self.weight[known], self.n_classes).astype(np.float64)

    def standardized(self) -> FloatArray:
        """Features that are not constant, with mean 0 and variance 1."""
        scaled = unit_scaling(self.X).apply(self.X)  # neither squares nor sums overflow
        scaled = scaled - np.average(scaled, axis=0, weights=self.weight)
        deviation = np.sqrt(np.average(scaled**2, axis=0, weights=self.weight))
        varied = deviation > _VARIED
        return np.ascontiguousarray(scaled[:, varied] / deviation[varied])


class SSCTResult(NamedTuple):
    """What the growing of an SSCT ended with."""

    tree: Tree
    """The tree in the units of `X`, with labels; a node without labelled rows has that of its parent."""
    objective: float
    """Impurity of the leaves, weighted by their shares of the labelled and of all rows; 1 for a single leaf."""
    complete: bool
    """Whether time sufficed for all splits."""
    trace: FloatArray
    """Seconds, objective and leaves after each level; shape (n_levels, 3)."""


@stage("tree")
def grow_ssct(
    rows: SSCTRows,
    w: float,
    *,
    max_depth: int | None = None,
    min_samples_leaf: int = 1,
    min_samples_split: int = 2,
    n_candidates: int | None = None,
    label_shares: str = "labelled",
    rng: np.random.Generator | None = None,
    budget: Budget | None = None,
    n_jobs: int = 1,
    on_level: Callable[[float, float, float], None] | None = None,
) -> SSCTResult:
    """Grow a semi-supervised classification tree (SSCT) level by level.

    Nodes whose labelled rows have one class, and nodes without any, are not split: nothing below would predict
    anything else. Other nodes are, also where no split gains anything, as for classes like the fields of a chessboard.

    Parameters
    ----------
    rows : Rows
        Training rows.
    w : float
        Part of the labels in the impurity, between 0 and 1. With 1, unlabelled rows are left out.
    max_depth : int or None
        Largest depth.
    min_samples_leaf, min_samples_split : int
        Fewest rows of a leaf, and of a node that is split.
    n_candidates : int or None
        Features that are drawn for each node, None for all.
    label_shares : {"labelled", "all"}
        Whether the children's impurities of labels are weighted by shares of the labelled rows or of all.
    rng : numpy Generator or None
        Where candidates come from.
    budget : Budget or None
        Ends the work early with the tree so far.
    n_jobs : int
        Threads, over candidates.
    on_level : callable or None
        Told seconds, objective and leaves after each level.

    Examples
    --------
    The labels alone do not say where to cut, the points do:

    >>> X = np.array([[0.0], [1.0], [2.0], [8.0], [9.0], [10.0]])
    >>> y = np.array([-1, 0, -1, -1, -1, 1])
    >>> result = grow_ssct(SSCTRows(X, y, np.ones(6), np.ones(6), 2), w=0.5)
    >>> float(result.tree.threshold[0]), result.tree.labels.tolist()
    (5.0, [0, 0, 1])
    """
    if w == 1:
        known = rows.y >= 0
        rows = SSCTRows(rows.X[known], rows.y[known], rows.weight[known], rows.size[known], rows.n_classes)
    growth = _Growth(
        rows, w, label_shares == "labelled", min_samples_leaf, min_samples_split, n_candidates, rng, budget or Budget()
    )
    trace: list[tuple[float, float, float]] = []

    def record() -> None:
        trace.append((growth.budget.elapsed, growth.objective(), float(len(growth.nodes) - growth.n_splits)))
        if on_level is not None:
            on_level(*trace[-1])

    record()
    level, waiting = 0, [0]
    with Parallel(n_jobs=n_jobs, backend="threading") as parallel:
        while waiting and level != max_depth and not growth.cut_short:
            waiting = [child for node in waiting for child in growth.split(node, parallel)]
            level += 1
            if waiting:
                record()
    return SSCTResult(growth.tree(), trace[-1][1], not growth.cut_short, np.array(trace))


@dataclass
class _Node:
    """A node while the tree grows."""

    at: IntArray
    counts: FloatArray
    label: int
    left: int = -1
    right: int = -1
    feature: int = 0
    threshold: float = 0.0


@dataclass
class _Growth:
    """A tree while it grows, and where its rows are."""

    rows: SSCTRows
    w: float
    own_shares: bool
    least: int
    least_to_split: int
    n_candidates: int | None
    rng: np.random.Generator | None
    budget: Budget
    nodes: list[_Node] = field(default_factory=list)
    n_splits: int = 0
    cut_short: bool = False

    def __post_init__(self) -> None:
        X = self.rows.X
        self.candidates = np.flatnonzero(X.min(axis=0) < X.max(axis=0))
        self.Z = self.rows.standardized() if self.w < 1 else np.zeros((len(X), 0))
        everyone = np.arange(len(X))
        counts = self.rows.counts(everyone)
        gini = _gini(counts)
        self.label_factor = self.w / gini if gini > 0 else 0.0
        self.spread_factor = (1.0 - self.w) / self.Z.shape[1] if self.Z.shape[1] else 0.0
        self.mass, self.labelled = float(self.rows.weight.sum()), float(counts.sum())
        self.nodes.append(_Node(everyone, counts, int(counts.argmax())))

    def objective(self) -> float:
        """Impurity of the leaves."""
        total = 0.0
        for leaf in (node for node in self.nodes if node.left < 0):
            weight = self.rows.weight[leaf.at]
            Z = self.Z[leaf.at]
            away = Z - np.average(Z, axis=0, weights=weight)
            total += self.spread_factor * float(weight @ np.einsum("ij,ij->i", away, away)) / self.mass
            total += self.label_factor * _gini(leaf.counts) * float(leaf.counts.sum()) / self.labelled
        return total

    def split(self, number: int, parallel: Parallel) -> list[int]:
        """Split a node where that gains most; its children, if there are any."""
        node = self.nodes[number]
        n_rows = self.rows.size[node.at].sum()
        if np.count_nonzero(node.counts) < 2 or n_rows < max(self.least_to_split, 2 * self.least):
            return []
        found = self._best_cut(node.at, parallel)
        if found is None:
            return []
        node.feature, node.threshold = found
        goes_left = self.rows.X[node.at, node.feature] <= node.threshold
        children = [len(self.nodes), len(self.nodes) + 1]
        node.left, node.right = children
        for at in (node.at[goes_left], node.at[~goes_left]):
            counts = self.rows.counts(at)
            self.nodes.append(_Node(at, counts, int(counts.argmax()) if counts.any() else node.label))
        self.n_splits += 1
        return children

    def _best_cut(self, at: IntArray, parallel: Parallel) -> tuple[int, float] | None:
        """Feature and threshold of the split that gains most."""
        candidates = self.candidates
        if self.n_candidates is not None and self.rng is not None and self.n_candidates < len(candidates):
            candidates = np.sort(self.rng.choice(candidates, self.n_candidates, replace=False))
        X = self.rows.X[at]
        weight, Z = self.rows.weight[at], self.Z[at]
        Z = Z - np.average(Z, axis=0, weights=weight)
        width = max(1, _SWEEP // (len(at) * (Z.shape[1] + 10)))
        blocks = [candidates[first : first + width] for first in range(0, len(candidates), width)]
        found = parallel(delayed(self._sweep)(block, X, at, weight, Z) for block in blocks)
        if self.cut_short or not found:
            return None
        gain = np.concatenate([part[0] for part in found])
        threshold = np.concatenate([part[1] for part in found])
        # of splits that are equally good the first, whatever the rounding
        best = int(np.argmax(gain >= gain.max() - 1e-12))
        return (int(candidates[best]), float(threshold[best])) if gain[best] >= -_ROUNDING else None

    def _sweep(
        self, candidates: IntArray, X: FloatArray, at: IntArray, weight: FloatArray, Z: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Largest gain along each of some features, and its threshold."""
        if self.budget.over:
            self.cut_short = True
            return np.empty(0), np.empty(0)
        table = np.ascontiguousarray(X[:, candidates].T)
        order = np.argsort(table, axis=1, kind="stable")
        table = np.take_along_axis(table, order, axis=1)
        rows = self.rows
        gain, place = best_cuts(
            table,
            order,
            Z,
            rows.y[at],
            weight,
            rows.size[at],
            rows.n_classes,
            self.label_factor,
            self.spread_factor,
            self.own_shares,
            float(self.least),
        )
        each = np.arange(len(candidates))
        low, high = table[each, place], table[each, np.minimum(place + 1, len(at) - 1)]
        middle = low / 2 + high / 2
        # between neighbours in floating point there is no middle
        return gain, np.where((middle >= low) & (middle < high), middle, low)

    def tree(self) -> Tree:
        """The tree so far."""
        nodes = self.nodes
        inner = np.array([node.left >= 0 for node in nodes])
        weights = np.zeros((len(nodes), self.rows.X.shape[1]))
        weights[np.flatnonzero(inner), [node.feature for node in nodes if node.left >= 0]] = 1.0
        return Tree(
            left=np.array([node.left for node in nodes]),
            right=np.array([node.right for node in nodes]),
            weights=weights,
            threshold=np.array([node.threshold for node in nodes]),
            values=np.array([node.counts for node in nodes]),
            labels=np.array([node.label for node in nodes]),
        )


def _gini(counts: FloatArray) -> float:
    """Probability that two rows drawn with replacement have different classes."""
    total = counts.sum()
    return float(1.0 - (counts**2).sum() / total**2) if total > 0 else 0.0
