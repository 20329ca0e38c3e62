"""Algorithms 1 and 2: which points of each cluster are worth training on (Zhu et al. 2020, 3.2 and B.1)."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np

from treewright.core.arrays import BoolArray, FloatArray, IntArray
from treewright.core.budget import Budget
from treewright.exceptions import InvalidInputError
from treewright.models.svm1odt.selection.balanced import BLOCK, balanced_points
from treewright.models.svm1odt.selection.clusters import Cluster, ClusteredRows, clustered_rows, feature_widths
from treewright.models.svm1odt.selection.hull import Hull, convex_hull
from treewright.models.svm1odt.selection.room import SelectionWithRoom, selected_with_room
from treewright.tree import Tree

__all__ = ["ChoiceSettings", "ClusterChoice", "Made", "Rule", "Selection", "rows_worth_training", "split_categories"]

Rule = Literal["extreme", "used", "used and nearest", "balanced", "balanced and nearest", "nearest"]
"""What was selected: all extreme points; those with a share of at least 1 / (d + 1) in a point inside; these and the
points nearest to the splits; what balances selected points and points between them; without time, nearest points
alone."""

Made = Hull | SelectionWithRoom
"""What tells points inside from the others and writes them by those."""


@dataclass(frozen=True)
class ChoiceSettings:
    """Parameters of a selection of rows worth training on.

    Attributes
    ----------
    method : "hull" or "balanced"
        Algorithm 1 or 2.
    epsilon : float
        Room of the program (7), as a share of the features' widths.
    beta_1 : float
        Extreme points are all taken where they are at most this share of a cluster.
    beta_2 : float
        Share of a cluster that is taken at least, where extreme points are more than `beta_1` of it.
    block : int
        Most points of a program of balanced selection.
    """

    method: Literal["hull", "balanced"] = "hull"
    epsilon: float = 0.0
    beta_1: float = 0.2
    beta_2: float = 0.05
    block: int = BLOCK

    def __post_init__(self) -> None:
        if self.method not in ("hull", "balanced"):
            raise InvalidInputError(f"method={self.method!r}; use 'hull' or 'balanced'")
        if not 0.0 <= self.epsilon < np.inf:
            raise InvalidInputError(f"epsilon={self.epsilon!r}; expected a finite number from 0 on")
        if self.method == "balanced" and self.epsilon > 0:
            raise InvalidInputError(f"epsilon={self.epsilon!r} has no meaning with method='balanced'; leave it at 0")
        for name in ("beta_1", "beta_2"):
            if not 0.0 < getattr(self, name) < 1.0:
                raise InvalidInputError(f"{name}={getattr(self, name)!r}; expected a number between 0 and 1")
        if self.block < 3:
            raise InvalidInputError(f"block={self.block!r}; a block needs 3 points at least")


@dataclass(frozen=True)
class ClusterChoice:
    """What the selection of SVM1-ODT took from one cluster.

    Attributes
    ----------
    leaf, label : int
        Leaf, and class number.
    n_rows, n_points : int
        Rows, and distinct rows.
    n_inside : int
        Points between others, of which none is selected; 0 where time was over.
    n_selected : int
        Points selected.
    rule : str
        How, see :data:`Rule`; "nearest" is the fallback.
    seconds : float
        Time it took.
    """

    leaf: int
    label: int
    n_rows: int
    n_points: int
    n_inside: int
    n_selected: int
    rule: Rule
    seconds: float


@dataclass(frozen=True, eq=False)
class Selection:
    """Rows worth training on.

    Attributes
    ----------
    rows : ndarray of int
        Their numbers, ascending; of equal rows one.
    weight : ndarray or None
        Their weights, where weights were given.
    clusters : tuple of ClusterChoice
        What was done with each cluster, by leaf and class.
    n_rows : int
        Rows that were selected from; those of weight 0 do not count.
    seconds : float
        Time it took.
    interrupted : bool
        Whether somebody asked it to stop.
    """

    rows: IntArray
    weight: FloatArray | None
    clusters: tuple[ClusterChoice, ...]
    n_rows: int
    seconds: float
    interrupted: bool = False

    @property
    def fallback(self) -> bool:
        """Whether time was over before all clusters were looked at, so that the points nearest to splits were taken."""
        return any(cluster.rule == "nearest" for cluster in self.clusters)

    def figures(self) -> dict[str, float]:
        """Numbers for tables: rows, distinct rows and points inside, what was selected, its share, and the time."""
        points = sum(cluster.n_points for cluster in self.clusters)
        return {
            "n_rows": self.n_rows,
            "n_points": points,
            "n_inside": sum(cluster.n_inside for cluster in self.clusters),
            "n_selected": len(self.rows),
            "share": len(self.rows) / max(1, self.n_rows),
            "fallback": float(self.fallback),
            "seconds": self.seconds,
        }

    @property
    def reason(self) -> str:
        """What was done, in words."""
        rules = Counter(cluster.rule for cluster in self.clusters)
        ways = ", ".join(f"{rule} in {count}" for rule, count in sorted(rules.items()))
        words = f"{len(self.rows)} of {self.n_rows} rows from {len(self.clusters)} clusters: {ways}"
        why = "stopped" if self.interrupted else "time was over"
        return f"{words}; {why}, the rest by distance to the splits" if self.fallback else words


def rows_worth_training(
    X: FloatArray,
    y: IntArray,
    tree: Tree,
    settings: ChoiceSettings | None = None,
    *,
    weight: FloatArray | None = None,
    categorical: BoolArray | None = None,
    width: FloatArray | None = None,
    budget: Budget | None = None,
    told: Callable[[ClusterChoice], None] | None = None,
) -> Selection:
    """Select rows worth training on from the clusters of a tree; any rows will do, those of a subtree say.

    Parameters
    ----------
    X : ndarray of shape (n_rows, n_features)
        Rows; categories as codes, NaN where a value is missing.
    y : ndarray of int, shape (n_rows,)
        Class numbers.
    tree : Tree
        Its leaves and the classes make the clusters.
    settings : ChoiceSettings or None
        Parameters.
    weight : ndarray or None
        Weights of the rows; those of weight 0 are as if they were not there.
    categorical : ndarray of bool, shape (n_features,), or None
        Which features are categories; None for those that the tree splits so.
    width : ndarray of shape (n_features,) or None
        Widths of the features, that distances and epsilon are relative to; None for their ranges.
    budget : Budget or None
        Once it is over, the clusters that are left get the points nearest to the splits.
    told : callable or None
        Told of each cluster.

    Examples
    --------
    >>> X = np.arange(20.0)[:, None]
    >>> y = (X[:, 0] > 9).astype(int)
    >>> chosen = rows_worth_training(X, y, Tree.stump([1.0], 9.5, [[10.0, 0.0], [0.0, 10.0]]))
    >>> chosen.rows.tolist()
    [0, 9, 10, 19]
    >>> chosen.reason
    '4 of 20 rows from 2 clusters: extreme in 2'
    """
    settings, budget, started = settings or ChoiceSettings(), budget or Budget(), time.perf_counter()
    counted = np.arange(len(X)) if weight is None else np.flatnonzero(weight > 0)
    categories = split_categories(tree) if categorical is None else categorical
    width = feature_widths(X[counted]) if width is None else width
    data = clustered_rows(X[counted], y[counted], tree, categories, width)
    copies = np.bincount(data.place, minlength=len(data.first))
    rows, records = [np.zeros(0, dtype=np.int64)], []
    for cluster in data.clusters:
        begun = time.perf_counter()
        points, n_inside, rule = _chosen_points(cluster, data, settings, budget)
        rows.append(counted[data.first[points]])
        records.append(
            ClusterChoice(
                leaf=cluster.leaf,
                label=cluster.label,
                n_rows=int(copies[cluster.points].sum()),
                n_points=len(cluster.points),
                n_inside=n_inside,
                n_selected=len(points),
                rule=rule,
                seconds=time.perf_counter() - begun,
            )
        )
        if told is not None:
            told(records[-1])
    chosen = np.sort(np.concatenate(rows))
    return Selection(
        rows=chosen,
        weight=None if weight is None else weight[chosen],
        clusters=tuple(sorted(records, key=lambda record: (record.leaf, record.label))),
        n_rows=len(counted),
        seconds=time.perf_counter() - started,
        interrupted=budget.interrupted,
    )


def split_categories(tree: Tree) -> BoolArray:
    """Features that a tree splits as categories, for the selection of SVM1-ODT."""
    return np.isin(np.arange(tree.n_features), tree.category[tree.category >= 0])


def _made_of(X: FloatArray, epsilon: float, budget: Budget) -> Made | None:
    """Which points are inside, with or without room; None if time was over."""
    hull = convex_hull(X, budget)
    if not hull.complete:
        return None
    return selected_with_room(X, hull, epsilon, budget) if epsilon > 0 else hull


def _chosen_points(
    cluster: Cluster, data: ClusteredRows, settings: ChoiceSettings, budget: Budget
) -> tuple[IntArray, int, Rule]:
    """Points that are selected from a cluster, how many are inside, and by which rule."""
    found = None
    if not budget.over:
        found = (_by_hull if settings.method == "hull" else _by_balance)(cluster, data, settings, budget)
    if found is None:
        return _nearest(cluster.points, data, settings.beta_2 * len(cluster.points)), 0, "nearest"
    return found


def _nearest(points: IntArray, data: ClusteredRows, count: float) -> IntArray:
    """The hyperplane rule: so many points that are nearest to a split."""
    return points[np.argsort(data.distance[points], kind="stable")][: max(0, int(np.ceil(count)))]


def _by_hull(
    cluster: Cluster, data: ClusteredRows, settings: ChoiceSettings, budget: Budget
) -> tuple[IntArray, int, Rule] | None:
    """Algorithm 1; None if time was over."""
    parts, n = [], len(cluster.points)
    for part in cluster.parts:
        X = data.coordinates(part)
        made = _made_of(X, settings.epsilon, budget)
        if made is None:
            return None
        parts.append((part, X.shape[1], made))
    outside = np.concatenate([cluster.lone, *(part[~made.inside] for part, _, made in parts)])
    n_inside = n - len(outside)
    if n_inside >= (1 - settings.beta_1) * n:
        return outside, n_inside, "extreme"
    used = [np.zeros(0, dtype=np.int64)]
    for part, d, made in parts:
        shares = made.combinations(np.flatnonzero(made.inside), budget)
        if shares is None:
            return None
        # Rounding must not lose the point that Caratheodory's theorem promises.
        used.append(part[np.unique(shares.indices[shares.data >= 1 / (d + 1) - 1e-9])])
    J = np.concatenate(used)
    if len(J) > settings.beta_2 * n:
        return J, n_inside, "used"
    rest = np.setdiff1d(outside, J)
    return np.append(J, _nearest(rest, data, settings.beta_2 * n - len(J))), n_inside, "used and nearest"


def _by_balance(
    cluster: Cluster, data: ClusteredRows, settings: ChoiceSettings, budget: Budget
) -> tuple[IntArray, int, Rule] | None:
    """Algorithm 2, then the nearest points up to `beta_2` as in Algorithm 1; None if time was over."""
    none = np.zeros(0, dtype=np.int64)
    chosen, left, n = [none], [cluster.lone], len(cluster.points)
    for part in cluster.parts:
        found = balanced_points(data.coordinates(part), budget, settings.block)
        if found is None:
            return None
        selected, inside = found
        chosen.append(part[selected])
        left.append(part[~selected & ~inside])
    points, rest = np.concatenate(chosen), np.concatenate(left)
    n_inside = n - len(points) - len(rest)
    more = _nearest(rest, data, settings.beta_2 * n - len(points))
    return np.append(points, more), n_inside, "balanced and nearest" if len(more) else "balanced"
