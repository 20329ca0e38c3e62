"""Trees on points with categories and gaps that tree alternating optimization starts from."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from joblib import Parallel, delayed

from treewright.arrays import FloatArray, IntArray
from treewright.budget import Budget
from treewright.data.design import Design
from treewright.search.improve.driver import Node
from treewright.search.improve.tao import SparseNodes
from treewright.splits.points import Points, SplitRule, Splits
from treewright.splits.thresholds import halving_threshold
from treewright.tree import Tree

__all__ = ["grown_side_by_side", "grown_tree", "mixed_tree", "random_mixed_tree", "random_subset"]


def mixed_tree(
    points: Points,
    depth: int,
    alpha: float,
    stakes: Callable[[Any, IntArray], FloatArray | None],
    halves: Callable[[int, int], bool],
    weight: FloatArray,
    budget: Budget,
    n_jobs: int = 1,
    most: int = 200_000,
    seed: int = 0,
    splits: str = "oblique",
    root: SplitRule | None = None,
    features: dict[int, str] | None = None,
) -> Tree:
    """Grow a tree from the root down, whose splits part points by their stakes at the price of alpha.

    At a node it is the step of tree alternating optimization, with stakes by the contrast of the targets in the place
    of losses: a subset of a category, a hyperplane, or a single feature, whichever saves most. Hyperplanes halve their
    points where these are many.

    Parameters
    ----------
    points : Points
        Points with numerical features of about unit size.
    depth : int
        Depth.
    alpha : float
        Price of a split.
    stakes : callable
        Points as numbers and which they are, to how much each of them should go right; None where none should.
    halves : callable
        Number of points and of leaves below a node, to whether a hyperplane halves them.
    weight : ndarray of shape (n_points,)
        Weights.
    budget : Budget
        Once it is over, nodes get no split any more.
    n_jobs : int
        Threads.
    most : int
        Points that a split looks at, at most.
    seed : int
        Seed of the choice of these.
    splits : {"oblique", "axis"}
        Hyperplanes, or thresholds of single features.
    root : SplitRule or None
        Split of the root, None for the best one.
    features : dict of int to str, or None
        Kind of features that the splits of some nodes may have.
    """
    design = Design.of(points.X, weight, points.n_levels)
    solver = SparseNodes(alpha, splits, features=features or {})

    def split(number: int, rows: IntArray, some: IntArray, leaves: int) -> SplitRule | None:
        if budget.over or len(some) < 2:
            return None
        stake = stakes(design.apply(points.X[some]), some)
        if stake is None:
            return None
        rule = SplitRule(np.zeros(points.X.shape[1]), -1.0)  # all go right
        node = Node(number, rule.normal, rule.threshold, some, stake, np.zeros(len(some), dtype=bool), False, rule)
        found = solver.better(points, node, budget)
        if found is None or not np.any(found.normal):
            return None
        if found.category < 0 and halves(len(rows), leaves):
            level = points.levels(rows, found.normal)
            there = ~np.isnan(level)
            if there.any():
                return found._replace(threshold=halving_threshold(level[there], weight[rows[there]]))
        return found

    return grown_side_by_side(points, depth, split, n_jobs, most, seed, root)


def random_mixed_tree(points: Points, depth: int, rng: np.random.Generator, axis: bool, weight: FloatArray) -> Tree:
    """Make a complete tree with random splits that halve their points as well as they can.

    A feature is drawn for each node. If it is a category, its levels are listed at random until half of the points go
    left; else the normal is that feature's or, for oblique splits (not `axis`), random. Missing values go left or right
    at random.
    """
    p = points.X.shape[1]

    def split(rows: IntArray) -> SplitRule | None:
        feature, missing_left = int(rng.integers(p)), bool(rng.integers(2))
        if not len(rows):
            return None
        if points.n_levels is not None and points.n_levels[feature]:
            return random_subset(points, rows, weight, feature, missing_left, rng)
        normal = np.zeros(p)
        number = np.array([feature]) if axis else points.numerical
        normal[number] = 1.0 if axis else rng.standard_normal(len(number))
        level = points.levels(rows, normal)
        there = ~np.isnan(level)
        if not there.any():
            return SplitRule(normal, 0.0, missing_left=missing_left)
        threshold = halving_threshold(level[there], weight[rows[there]])
        return SplitRule(normal, threshold, missing_left=missing_left)

    return grown_tree(points, depth, lambda parts, leaves: [split(rows) for rows in parts])


def random_subset(
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


def grown_side_by_side(
    points: Points,
    depth: int,
    split: Callable[[int, IntArray, IntArray, int], SplitRule | None],
    n_jobs: int,
    most: int,
    seed: int,
    root: SplitRule | None = None,
) -> Tree:
    """Make a complete tree whose nodes are split side by side, and look at `most` of their points, drawn at random.

    `split` takes the number of a node, its points, those that it looks at, and how many leaves are below.
    """
    rng = np.random.default_rng(seed)
    with Parallel(n_jobs=n_jobs, backend="threading") as parallel:

        def split_all(parts: list[IntArray], leaves: int) -> list[SplitRule | None]:
            if root is not None and len(parts) == 1:
                return [root]
            seen = [np.sort(rng.choice(p, most, replace=False)) if len(p) > most else p for p in parts]
            jobs = enumerate(zip(parts, seen, strict=True), start=len(parts) - 1)
            return list(parallel(delayed(split)(number, *pair, leaves) for number, pair in jobs))

        return grown_tree(points, depth, split_all)


def grown_tree(points: Points, depth: int, split_all: Callable[[list[IntArray], int], list[SplitRule | None]]) -> Tree:
    """Make a complete tree level by level.

    `split_all` takes the points of each node of a level, and how many leaves are below each, to their splits; None
    sends all points left.
    """
    branches = 2**depth - 1
    bare = Tree.from_heap(
        np.ones(branches, dtype=bool),
        np.zeros((branches, points.X.shape[1])),
        np.ones(branches),
        np.zeros((2 * branches + 1, 1)),
        None,
    )
    splits = Splits.of(bare, points.n_levels)
    at = [np.arange(points.X.shape[0])]
    for level in range(depth):
        found, below = split_all(at, 2 ** (depth - level)), []
        for k, (rows, rule) in enumerate(zip(at, found, strict=True), start=2**level - 1):
            if rule is not None:
                splits.put(k, rule)
            goes_left = points.sides(rows, splits.rule(k))
            below += [rows[goes_left], rows[~goes_left]]
        at = below
    return splits.tree(bare.left, bare.right, bare.values, None)
