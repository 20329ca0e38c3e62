"""Complete trees level by level, from what splits a node."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from joblib import Parallel, delayed

from treewright.core.arrays import IntArray
from treewright.splits.points import Points, SplitRule, Splits
from treewright.tree import Tree

__all__ = ["grown_side_by_side", "grown_tree"]


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
