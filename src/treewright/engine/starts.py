r"""Trees that tree alternating optimization starts from: balanced, random, or CART.

Where a fit ends depends on where it starts, and what counts is how well the end predicts. Measured on images of digits,
a tree whose splits halve their points along informative directions beats CART, which spends its depth on what a
hyperplane does at once. Where points are many, it also beats oblique splits that part the targets as well as they can:
these peel off one class after the other and leave half of the nodes without work. Where points are few, they are best.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from treewright.core.arrays import FloatArray, IntArray
from treewright.core.budget import Budget
from treewright.data.design import Design
from treewright.engine.cart import cart_start
from treewright.engine.grown import grown_side_by_side, grown_tree
from treewright.splits.few import few_features, keep_largest, restricted_to
from treewright.splits.node import Node
from treewright.splits.points import Points, SplitRule, Splits
from treewright.splits.sparse_nodes import SparseNodes, logistic_node
from treewright.splits.thresholds import best_threshold, halving_threshold
from treewright.tree import Tree

__all__ = ["StartTask", "balanced_tree", "random_tree", "several_starts", "starting_tree"]

_BALANCED_ROWS = 200_000
"""Points that a split of a balanced tree looks at, at most: a start need not be the best tree."""

_ROOM = 100
"""Points for each leaf below a node from which on its split halves them. With fewer, what a leaf learns is worth less
than a good cut above it, and splits part the targets as well as they can."""

_TURNS = 20
"""Steps of power iteration for the contrast of the targets; its leading direction need not be exact."""

_SHALLOW, _ROOTS = 4, 4
"""Trees up to this depth are also started from random subsets at the root, of so many categories."""

_BELOW, _TRIES = (("numbers", "categories"), ("numbers", "numbers"), ("all", "all")), 12
"""Kinds of features on the two sides of such roots, in turn, and most starts of a category."""

_TIE = 1e-3
"""Entries of that direction that differ by less than this share are equal in size."""


@dataclass(frozen=True, eq=False)
class StartTask:
    """What a start is made for.

    Attributes
    ----------
    points : Points
        Points with numerical features of about unit size.
    targets : ndarray of shape (n_points, n_outputs)
        Outputs, or class numbers in one column.
    weight : ndarray of shape (n_points,)
        Weights.
    depth : int
        Depth.
    alpha : float
        Price of a split.
    max_split_features : int or None
        Most features of a split, None for any number.
    classify : bool
        Whether targets are classes.
    seed : int
        Seed of everything random.
    n_jobs : int
        Threads.
    """

    points: Points
    targets: FloatArray
    weight: FloatArray
    depth: int
    alpha: float
    max_split_features: int | None
    classify: bool
    seed: int
    n_jobs: int = 1

    @property
    def outputs(self) -> Any:
        """Targets in columns, those of classes sparse."""
        return _one_hot(self.targets) if self.classify else self.targets


def starting_tree(task: StartTask, kind: str, budget: Budget) -> Tree:
    """Make a start by its name: "balanced", "cart" or "random".

    "auto" is balanced, or CART where a split has one feature only.

    Once the budget is over, it is CART on a few rows, unless a random tree is asked for. With categories or gaps a
    balanced tree takes subsets, hyperplanes and sides of missing values as the later passes do, CART has its categories
    ranked, and random trees list levels.
    """
    points, depth, seed = task.points, task.depth, task.seed
    rows, tree = (points.X, task.targets, task.weight), None
    if kind != "random" and kind != "cart" and task.max_split_features != 1 and not budget.over:
        more = points.n_levels, task.max_split_features
        tree = balanced_tree(points.X, task.outputs, task.weight, depth, task.alpha, budget, task.n_jobs, seed, *more)
        if not budget.over:
            return tree
    if kind != "random":  # also where the time was over before a balanced tree was whole
        whole = cart_start(*rows, depth, task.classify, seed, budget, points.n_levels, hasty=budget.over)
        tree = tree if whole is None else whole
    if tree is not None:
        return tree
    rng = np.random.default_rng(seed)
    return random_tree(points.X, depth, rng, task.max_split_features, task.weight, points.n_levels)


def several_starts(task: StartTask, budget: Budget) -> Iterator[tuple[Tree, dict[int, str]]]:
    """Starts to choose from, one after the other until the budget is over.

    For points with categories or gaps, and for splits on few features: neither balanced trees nor CART are better there
    throughout. Shallow trees are also grown with the levels of categories ranked anew at each node, from the best split
    of all, from that of a category, and from gaps of a feature against the rest. A category that matters only together
    with what lies below it does not show to a tree that is grown split by split: so they are also grown below random
    subsets, which passes then turn into better ones. So that the two sides differ, a third of these have numbers on one
    side and categories on the other, and a third numbers on both.

    Yields
    ------
    Tree
        A start.
    dict of int to str
        Kinds of features that the splits of some of its nodes should keep in the first passes.
    """
    yield starting_tree(task, "cart", budget), {}  # first, as it is soon there
    if task.max_split_features != 1 and not budget.over:
        yield starting_tree(task, "auto", budget), {}
    points, weight, depth = task.points, task.weight, task.depth
    for root in _roots(points) if points.mixed and depth <= _SHALLOW else ():
        if not budget.over:
            yield _greedy_tree(task, root, budget), {}
    rng, everyone, outputs = np.random.default_rng(task.seed), np.arange(points.X.shape[0]), task.outputs
    for feature in points.categorical[:_ROOTS].tolist() if depth <= _SHALLOW else []:
        subsets = 2 ** min(30, int(points.n_levels[feature]) - 1) - 1 if points.n_levels is not None else 0
        for number in range(min(_TRIES, len(_BELOW) * subsets)):
            if budget.over:
                return
            below = _BELOW[number % len(_BELOW)] if len(points.numerical) else ("all", "all")
            root = _random_subset(points, everyone, weight, feature, bool(rng.integers(2)), rng)
            kinds = _kinds_below(depth, below)
            more = budget, 1, task.seed, task.max_split_features, root, kinds
            yield _balanced_mixed(points, outputs, weight, depth, task.alpha, *more), kinds


def _roots(points: Points) -> list[int | SplitRule | None]:
    """What greedy trees begin with: the best split of all, that of a category, gaps of a feature against the rest."""
    p, roots = points.X.shape[1], list[int | SplitRule | None]([None, *points.categorical[:_ROOTS].tolist()])
    gaps = np.isnan(points.X).sum(axis=0)
    for j in np.argsort(-gaps, kind="stable")[:_ROOTS].tolist():
        if not 0 < gaps[j] < len(points.X):
            continue
        if points.n_levels is not None and points.n_levels[j]:
            roots.append(SplitRule.subset(j, np.ones(int(points.n_levels[j]), dtype=bool), False, p))
        else:
            top = float(np.nanmax(points.X[:, j]))
            roots.append(SplitRule(np.eye(p)[j], top + max(1.0, abs(top)), missing_left=False))
    return roots


def _greedy_tree(task: StartTask, root: int | SplitRule | None, budget: Budget) -> Tree:
    """CART that ranks the levels of categories anew at each node, below a root that may be a feature or a rule."""
    points, everything = task.points, np.arange(task.points.X.shape[1])

    def split(rows: IntArray, columns: IntArray) -> SplitRule | None:
        if budget.over or len(rows) < 2:
            return None
        levels = None if points.n_levels is None else points.n_levels[columns]
        given = points.X[np.ix_(rows, columns)], task.targets[rows], task.weight[rows]
        stump = cart_start(*given, 1, task.classify, task.seed, budget, levels)
        if stump is None or stump.n_nodes == 1:
            return None
        rule, normal = Splits.of(stump, levels).rule(0), np.zeros(len(everything))
        normal[columns] = rule.normal
        return rule._replace(normal=normal, category=int(columns[rule.category]) if rule.category >= 0 else -1)

    def split_all(parts: list[IntArray], leaves: int) -> list[SplitRule | None]:
        if len(parts) > 1 or root is None:
            return [split(rows, everything) for rows in parts]
        return [root if isinstance(root, SplitRule) else split(parts[0], np.array([root]))]

    return grown_tree(points, task.depth, split_all)


def _kinds_below(depth: int, below: tuple[str, str]) -> dict[int, str]:
    """Kinds of features of the nodes on the left and on the right of the root of a complete tree."""
    kinds: dict[int, str] = {}
    for level in range(1, depth):
        first, half = 2**level - 1, 2 ** (level - 1)
        kinds |= {first + k: below[0 if k < half else 1] for k in range(2 * half)}
    return {node: kind for node, kind in kinds.items() if kind != "all"}


def _balanced_mixed(
    points: Points,
    targets: Any,
    weight: FloatArray,
    depth: int,
    alpha: float,
    budget: Budget,
    n_jobs: int,
    seed: int,
    max_split_features: int | None = None,
    root: SplitRule | None = None,
    features: dict[int, str] | None = None,
) -> Tree:
    """A balanced tree on points with categories or gaps, below a root that may be given.

    At a node it is the step of tree alternating optimization at the price of alpha, with stakes by the contrast of the
    targets in the place of losses: a subset of a category, a hyperplane, or a single feature, whichever saves most.
    Hyperplanes halve their points where these are many. `features` are the kinds that the splits of some nodes have.
    """
    design = Design.of(points.X, weight, points.n_levels)
    solver = SparseNodes(alpha, max_split_features, features=features or {})

    def split(number: int, rows: IntArray, some: IntArray, leaves: int) -> SplitRule | None:
        if budget.over or len(some) < 2:
            return None
        stake = _stakes(design.apply(points.X[some]), targets[some], weight[some])
        if stake is None:
            return None
        rule = SplitRule(np.zeros(points.X.shape[1]), -1.0)  # all go right
        node = Node(number, rule.normal, rule.threshold, some, stake, np.zeros(len(some), dtype=bool), False, rule)
        found = solver.better(points, node, budget)
        if found is None or not np.any(found.normal):
            return None
        if found.category < 0 and len(rows) >= _ROOM * leaves:
            level = points.levels(rows, found.normal)
            there = ~np.isnan(level)
            if there.any():
                return found._replace(threshold=halving_threshold(level[there], weight[rows[there]]))
        return found

    return grown_side_by_side(points, depth, split, n_jobs, _BALANCED_ROWS, seed, root)


def _one_hot(codes: FloatArray) -> Any:
    n = len(codes)
    return sparse.csr_array((np.ones(n), codes[:, 0].astype(np.int64), np.arange(n + 1)))


def balanced_tree(
    X: Any,
    targets: Any,
    weight: FloatArray,
    depth: int,
    alpha: float,
    budget: Budget,
    n_jobs: int = 1,
    seed: int = 0,
    n_levels: IntArray | None = None,
    max_split_features: int | None = None,
) -> Tree:
    r"""Grow a tree from the root down whose splits halve their points, if these are many.

    At a node, the contrast of the targets is the direction v in the space of the targets that varies most with the
    points, the leading right singular vector of :math:`X^\top Z` for centred Z. Points above the mean along v should
    go right: l1-logistic regression finds the normal, the weighted median along it the threshold. Where points are few
    for the leaves below, the threshold parts them by their places along v instead. Of several normals on few features
    it is the one that parts them best.

    Parameters
    ----------
    X : ndarray (C order) or csr_array of shape (n_points, n_features)
        Points with features of about unit size.
    targets : ndarray or csr_array of shape (n_points, n_outputs)
        Targets; for classes one column a class with a 1 in it, which may be sparse.
    weight : ndarray of shape (n_points,)
        Weights.
    depth : int
        Depth.
    alpha : float
        Price of the 1-norm in the regressions, in units of the squared targets.
    budget : Budget
        Once it is over, nodes get no split any more.
    n_jobs : int
        Threads.
    seed : int
        Seed of the points that large nodes look at.
    n_levels : ndarray of int, shape (n_features,), or None
        Levels of each categorical feature, 0 for a numerical one.
    max_split_features : int or None
        Most features of a split, None for any number.

    Examples
    --------
    >>> X = np.random.default_rng(0).random((200, 2))
    >>> tree = balanced_tree(X, X[:, :1] + X[:, 1:], np.ones(200), 1, 0.01, Budget())
    >>> normal = tree.weights[0] / tree.weights[0, 0]
    >>> bool(0.8 < normal[1] < 1.2), round(float(tree.threshold[0] / tree.weights[0, 0]), 1)
    (True, 1.0)
    """
    points = Points(X, n_levels)
    if points.mixed:
        return _balanced_mixed(points, targets, weight, depth, alpha, budget, n_jobs, seed, max_split_features)

    def split(number: int, rows: IntArray, some: IntArray, leaves: int) -> SplitRule | None:
        if budget.over:
            return None
        stake = _stakes(points.take(some), targets[some], weight[some])
        normals = [] if stake is None else _normals(points.take(some), stake, alpha, max_split_features)
        if not normals or stake is None:
            return None
        costs = np.maximum(stake, 0.0), np.maximum(-stake, 0.0), points.least_gap
        if len(normals) == 1 and len(rows) >= _ROOM * leaves:
            return SplitRule(normals[0], halving_threshold(points.levels(rows, normals[0]), weight[rows]))
        cuts = [best_threshold(points.levels(some, normal), *costs) for normal in normals]
        best = int(np.argmin([cost for _, cost in cuts]))
        normal, threshold = normals[best], cuts[best][0]
        if len(rows) >= _ROOM * leaves:
            return SplitRule(normal, halving_threshold(points.levels(rows, normal), weight[rows]))
        return SplitRule(normal, threshold) if np.isfinite(threshold) else None

    return grown_side_by_side(points, depth, split, n_jobs, _BALANCED_ROWS, seed)


def _stakes(X: Any, targets: Any, weight: FloatArray) -> FloatArray | None:
    """How much each point should go right: its place along the contrast of the targets; None where there is none."""
    if len(weight) < 2:
        return None
    mean = np.asarray(targets.T @ weight).ravel() / weight.sum()
    weighted = targets.multiply(weight[:, None]).tocsr() if sparse.issparse(targets) else targets * weight[:, None]
    cross = X.T @ weighted.astype(X.dtype) if sparse.issparse(X) else (weighted.T.astype(X.dtype) @ X).T
    cross = np.asarray(cross.toarray() if sparse.issparse(cross) else cross, dtype=np.float64)
    cross -= np.outer(np.asarray(X.T @ weight.astype(X.dtype), dtype=np.float64), mean)
    v = _leading(cross)
    return None if v is None else weight * (np.asarray(targets @ v).ravel() - float(mean @ v))


def _normals(X: Any, stake: FloatArray, alpha: float, most: int | None) -> list[FloatArray]:
    """Normals of 2-norm 1 that part points by their stakes; none where none pays."""
    goes_right = stake > 0
    busy = np.abs(stake) > 1e-12 * np.abs(stake).max()
    if not (goes_right & busy).any() or not (~goes_right & busy).any():
        return []
    task = X[busy], goes_right[busy], np.abs(stake[busy]), alpha
    few = restricted_to(most, X.shape[1])
    found = [logistic_node(*task, None)[0]] if few is None else few_features(*task, few, logistic_node)
    return [weights / np.sqrt(weights @ weights) for weights in found if np.any(weights)]


def _leading(table: FloatArray) -> FloatArray | None:
    """Leading right singular vector by power iteration, its largest entry positive; None for a table of zeros.

    Of two classes the entries are equal in size: the first one counts then, and not how it was rounded.
    """
    square = np.einsum("ij,ij->j", table, table)
    if not square.max() > 0:
        return None
    v = table.T @ table[:, int(square.argmax())]
    for _ in range(_TURNS):
        v = table.T @ (table @ (v / np.sqrt(v @ v)))
    largest = int(np.argmax(np.abs(v) > (1 - _TIE) * np.abs(v).max()))
    return np.asarray(v * np.sign(v[largest]) / np.sqrt(v @ v))


def random_tree(
    X: Any,
    depth: int,
    rng: np.random.Generator,
    max_split_features: int | None = None,
    weight: FloatArray | None = None,
    n_levels: IntArray | None = None,
) -> Tree:
    """Make a complete tree with random normals; each split halves the points that reach it.

    Parameters
    ----------
    X : ndarray or csr_array of shape (n_points, n_features)
        Points.
    depth : int
        Depth.
    rng : numpy Generator
        Where normals come from.
    max_split_features : int or None
        Most features of a split, None for any number.
    weight : ndarray of shape (n_points,) or None
        Weights, None for ones.
    n_levels : ndarray of int, shape (n_features,), or None
        Levels of each categorical feature, 0 for a numerical one.
    """
    n, p = X.shape
    weight = np.ones(n) if weight is None else weight
    points, branches = Points(X, n_levels), 2**depth - 1
    if points.mixed:
        return _random_mixed_tree(points, depth, rng, max_split_features, weight)
    useful = _useful(points)
    if max_split_features == 1:
        normals = np.eye(p)[useful[rng.integers(0, len(useful), branches)]]
    else:
        normals = np.zeros((branches, p))
        normals[:, useful] = _held(rng.standard_normal((branches, p))[:, useful], max_split_features)

    def split(rows: IntArray, normal: FloatArray) -> SplitRule:
        return SplitRule(normal, halving_threshold(points.levels(rows, normal), weight[rows]) if len(rows) else 0.0)

    def split_all(parts: list[IntArray], leaves: int) -> list[SplitRule | None]:
        return [split(rows, normals[len(parts) - 1 + k]) for k, rows in enumerate(parts)]

    return grown_tree(points, depth, split_all)


def _useful(points: Points) -> IntArray:
    """Features that differ between points, all where none does: a weight of another one costs and says nothing."""
    X = points.X
    if points.sparse:
        low, high = (np.asarray(ends.toarray()).ravel() for ends in (X.min(axis=0), X.max(axis=0)))
        useful = low < high
    else:
        low, high = np.fmin.reduce(X, axis=0), np.fmax.reduce(X, axis=0)
        useful = (low < high) | (np.isnan(X).any(axis=0) & ~np.isnan(low))
    return np.flatnonzero(useful) if useful.any() else np.arange(X.shape[1])


def _held(normals: FloatArray, most: int | None) -> FloatArray:
    """Random normals with so many features at most."""
    return normals if most is None else keep_largest(normals, most)


def _random_mixed_tree(
    points: Points, depth: int, rng: np.random.Generator, max_split_features: int | None, weight: FloatArray
) -> Tree:
    """Make a complete tree with random splits that halve their points as well as they can.

    A feature is drawn for each node. If it is a category, its levels are listed at random until half of the points go
    left; else the normal is that feature's or, where splits may have more, random. Missing values go left or right at
    random.
    """
    p, useful = points.X.shape[1], _useful(points)
    number = np.intersect1d(points.numerical, useful)

    def split(rows: IntArray) -> SplitRule | None:
        feature, missing_left = int(useful[rng.integers(len(useful))]), bool(rng.integers(2))
        if not len(rows):
            return None
        if points.n_levels is not None and points.n_levels[feature]:
            return _random_subset(points, rows, weight, feature, missing_left, rng)
        normal = np.zeros(p)
        if max_split_features == 1:
            normal[feature] = 1.0
        else:
            normal[number] = _held(rng.standard_normal(len(number)), max_split_features)
        level = points.levels(rows, normal)
        there = ~np.isnan(level)
        if not there.any():
            return SplitRule(normal, 0.0, missing_left=missing_left)
        threshold = halving_threshold(level[there], weight[rows[there]])
        return SplitRule(normal, threshold, missing_left=missing_left)

    return grown_tree(points, depth, lambda parts, leaves: [split(rows) for rows in parts])


def _random_subset(
    points: Points, rows: IntArray, weight: FloatArray, feature: int, missing_left: bool, rng: np.random.Generator
) -> SplitRule:
    """Make a split that lists levels of a category at random until half of the points go left."""
    assert points.n_levels is not None
    codes, n_cells = points.codes(rows, feature) + 1, int(points.n_levels[feature]) + 1
    mass = np.bincount(codes, weight[rows], n_cells)[1:]
    # Levels are drawn by what their points are: other names of the levels give the same split.
    numbers = np.nan_to_num(points.X[np.ix_(rows, points.numerical)]).sum(axis=1, dtype=np.float64)
    order = np.lexsort((np.bincount(codes, weight[rows] * numbers, n_cells)[1:], mass))
    order = order[rng.permutation(len(mass))]
    listed = np.zeros(len(mass), dtype=bool)
    listed[order[np.cumsum(mass[order]) <= mass.sum() / 2]] = True
    return SplitRule.subset(feature, listed, missing_left, points.X.shape[1])
