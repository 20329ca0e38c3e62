"""Optima of tiny instances by enumeration. Nothing here uses the package's formulations, searches or solvers."""

from __future__ import annotations

from functools import cache
from itertools import combinations
from typing import Any

import numpy as np
from scipy.optimize import linprog


def best_oct_h(model: Any) -> float:
    """Optimum of OCT-H: every way to part the points at the root, then at its two children, and so on."""
    X, y, weight, gap = model.X, model.y, model.weight, model.margin

    @cache
    def features_needed(left: frozenset[int], right: frozenset[int]) -> float:
        """Fewest features of a split with these sides, infinite if there is none."""
        for n_features in range(1, X.shape[1] + 1):
            for chosen in combinations(range(X.shape[1]), n_features):
                if widest_gap(X[:, chosen], sorted(left), sorted(right)) >= gap - 1e-9:
                    return n_features
        return np.inf

    @cache
    def best(points: frozenset[int], depth: int) -> float:
        inside = sorted(points)
        by_class = np.bincount(y[inside], weight[inside], model.n_classes)
        value = np.inf
        if len(inside) >= model.min_leaf:
            value = (by_class.sum() - by_class.max()) / model.baseline
        if depth == 0:
            return value
        first, *others = inside
        for n_left in range(len(others)):
            for moved in combinations(others, n_left + 1):  # sides are interchangeable: the first point stays
                left = frozenset(moved)
                right = points - left
                split = features_needed(left, right)
                if not np.isfinite(split):
                    continue
                value = min(value, model.complexity * split + best(left, depth - 1) + best(right, depth - 1))
        return value

    return float(best(frozenset(range(len(X))), model.depth))


def widest_gap(X: np.ndarray, left: list[int], right: list[int]) -> float:
    """Largest gap between two sides along a normal of 1-norm at most 1."""
    p = X.shape[1]
    # Columns: a+, a-, top of the left side, bottom of the right side.
    rows = [[*X[i], *-X[i], -1, 0] for i in left] + [[*-X[i], *X[i], 0, 1] for i in right]
    rows.append([1] * (2 * p) + [0, 0])
    found = linprog(
        c=[0] * (2 * p) + [1, -1],
        A_ub=rows,
        b_ub=[0] * (len(left) + len(right)) + [1],
        bounds=[(0, None)] * (2 * p) + [(None, None)] * 2,
    )
    return -found.fun
