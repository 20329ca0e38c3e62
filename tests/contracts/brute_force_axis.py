"""Optima of trees with splits of single features on tiny tables, by enumeration. Nothing here uses the package."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np

from tests.contracts.brute_force import once


def best_binoct(model: Any) -> float:
    """Least weight of errors of any tree of the depth: every threshold of every feature, then the same on each side."""
    return once(model, ("X", "y", "weight"), ("n_classes", "depth"), _best_binoct)


def _best_binoct(model: Any) -> float:
    def best(rows: np.ndarray, depth: int) -> float:
        by_class = np.bincount(model.y[rows], model.weight[rows], model.n_classes)
        least = float(by_class.sum() - by_class.max())
        if depth and least:
            for column in model.X[rows].T:
                for value in np.unique(column)[:-1]:
                    sides = rows[column <= value], rows[column > value]
                    least = min(least, sum(best(side, depth - 1) for side in sides))
        return least

    return best(np.arange(len(model.X)), model.depth)


def partitions(X: np.ndarray, rows: tuple[int, ...], depth: int) -> dict[frozenset[tuple[int, ...]], int]:
    """All sets of leaves, as rows, that trees of the depth can have, with the fewest splits that give them."""
    found = {frozenset([rows]): 0}
    if not depth:
        return found
    for column in X[list(rows)].T:
        for value in np.unique(column)[:-1]:
            sides = [
                tuple(r for r, v in zip(rows, column, strict=True) if (v <= value) == low) for low in (True, False)
            ]
            for left, right in product(*(partitions(X, side, depth - 1).items() for side in sides)):
                leaves, splits = left[0] | right[0], left[1] + right[1] + 1
                found[leaves] = min(splits, found.get(leaves, splits))
    return found


def discrimination(predicted: np.ndarray, protected: np.ndarray, weight: np.ndarray, n_classes: int) -> float:
    """Sum over classes and protected groups of how far their shares of predictions are from those of all rows."""
    index = 0.0
    for k in range(n_classes):
        among_all = weight[predicted == k].sum() / weight.sum()
        for g in np.unique(protected):
            here = protected == g
            index += abs(weight[here & (predicted == k)].sum() / weight[here].sum() - among_all)
    return float(index)


def best_fair(model: Any) -> float:
    """Optimum of the fair tree: every partition of the rows into leaves, every labelling of these."""
    numbers = ("n_classes", "depth", "complexity", "fairness_weight")
    return once(model, ("X", "y", "weight", "protected"), numbers, _best_fair)


def _best_fair(model: Any) -> float:
    """Rows have a column of weights for each protected group; each entry is a row of its own."""
    row, group = np.nonzero(model.protected)
    y, weight = model.y[row], model.protected[row, group]
    best = np.inf
    for leaves, splits in partitions(model.X, tuple(range(len(model.X))), model.depth).items():
        place = np.empty(len(model.X), dtype=int)
        for t, members in enumerate(leaves):
            place[list(members)] = t
        for labels in product(range(model.n_classes), repeat=len(leaves)):
            predicted = np.array(labels)[place[row]]
            cost = float(weight[predicted != y].sum() / weight.sum()) + model.complexity * splits
            if model.fairness_weight and cost < best:
                cost += model.fairness_weight * discrimination(predicted, group, weight, model.n_classes)
            best = min(best, cost)
    return best
