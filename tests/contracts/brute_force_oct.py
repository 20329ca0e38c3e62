"""Optima of tiny OCTs by enumeration. Nothing here uses the package's formulations, searches or solvers."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np


def ways_to_part(X: np.ndarray, y: np.ndarray, weight: np.ndarray, n_levels: Any, n_classes: int) -> list[np.ndarray]:
    """Who goes left, for every split by one feature."""
    found: dict[bytes, np.ndarray] = {}

    def note(left: np.ndarray) -> None:
        found[left.tobytes()] = left

    for j in range(X.shape[1]):
        x, gone = X[:, j], np.isnan(X[:, j])
        if n_levels is None or n_levels[j] == 0:
            for value in np.unique(x[~gone]):
                note(np.where(gone, False, x <= value))
                note(np.where(gone, True, x <= value))
            note(gone)
            continue
        cell = np.where(gone, n_levels[j], x)  # missing values are one more level
        cells = np.unique(cell)
        if len(cells) <= 6:
            for size in range(1, len(cells)):
                for chosen in combinations(cells, size):
                    note(np.isin(cell, chosen))
            continue
        for one in cells:
            note(cell == one)
        for k in [1] if n_classes == 2 else range(n_classes):
            share = [weight[(cell == one) & (y == k)].sum() / weight[cell == one].sum() for one in cells]
            order = cells[np.argsort(share, kind="stable")]
            for size in range(1, len(cells)):
                note(np.isin(cell, order[:size]))
    return list(found.values())


def best_oct(model: Any) -> float:
    """Optimum of OCT: every split at the root, then at its two children, and so on."""
    y, weight, size = model.y, model.weight, np.ones(len(model.y)) if model.size is None else model.size
    parts = ways_to_part(model.X, y, weight, model.n_levels, model.n_classes)
    majority_error = weight.sum() - np.bincount(y, weight).max()
    known: dict[tuple[bytes, int], float] = {}

    def best(inside: np.ndarray, depth: int) -> float:
        key = inside.tobytes(), depth
        if key not in known:
            by_class = np.bincount(y[inside], weight[inside])
            value = (by_class.sum() - by_class.max()) / majority_error
            value = value if size[inside].sum() >= model.min_leaf else np.inf
            for left in parts if depth else []:
                a, b = inside & left, inside & ~left
                if a.any() and b.any():
                    value = min(value, model.complexity + best(a, depth - 1) + best(b, depth - 1))
            known[key] = float(value)
        return known[key]

    return best(np.ones(len(y), dtype=bool), model.depth)
