"""Instances of SVM1-ODT and trees for them, for the contracts and for the tests of the formulation."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from treewright.models.svm1odt.objective import SVM1ODT
from treewright.tree import Tree


def svm1odt(
    n: int, p: int, n_classes: int = 2, levels: tuple[int, ...] = (), gaps: float = 0.0, **settings: Any
) -> Callable[[int], SVM1ODT]:
    """Points on a grid, two of them equal, with categorical features of so many levels and a share of missing values.

    They have weights from 1 to 3 and stand for one or two rows.
    """

    def make(seed: int) -> SVM1ODT:
        rng = np.random.default_rng(seed)
        X = rng.integers(0, 6, (n, p)) / 5.0
        X[0], X[1] = 0.0, 1.0
        codes = [rng.integers(0, k, (n, 1)).astype(float) for k in levels]
        X = np.hstack([X, *codes])
        X[n - 1] = X[n - 2]
        X[rng.random(X.shape) < gaps] = np.nan
        y = rng.integers(0, n_classes, n)
        y[:n_classes] = np.arange(n_classes)
        weight, size = rng.integers(1, 4, n).astype(float), rng.integers(1, 3, n).astype(float)
        categorical = np.repeat([False, True], [p, len(levels)])
        given = {"depth": 2, "epsilon": 0.25, "alpha_1": 4.0, "alpha_2": 0.1} | settings
        table = np.array([0] * p + list(levels))
        return SVM1ODT(X, y, weight, n_classes, size=size, categorical=categorical, levels=table, **given)

    return make


def random_mixed_tree(model: Any, rng: np.random.Generator) -> Tree:
    """A tree with random splits, of hyperplanes and of levels, most of which are not feasible as they are."""
    n_branches, (n, p) = 2**model.depth - 1, model.X.shape
    categories = np.flatnonzero(model.categorical)
    weights = rng.normal(size=(n_branches, p)) * rng.integers(0, 2, (n_branches, p)) * ~model.categorical
    threshold = np.einsum("ij,ij->i", weights, np.nan_to_num(model.X[rng.integers(0, n, n_branches)]))
    category = np.full(n_branches, -1)
    if len(categories):
        by_level = rng.random(n_branches) < 0.5
        category[by_level] = rng.choice(categories, by_level.sum())
        weights[by_level], threshold[by_level] = 0.0, 0.0
    values = rng.random((2 * n_branches + 1, model.n_classes))
    leaves, k = n_branches + 1, np.arange(2 * n_branches + 1)
    return Tree(
        left=np.where(k < n_branches, 2 * k + 1, -1),
        right=np.where(k < n_branches, 2 * k + 2, -1),
        weights=np.vstack([weights, np.zeros((leaves, p))]),
        threshold=np.concatenate([threshold, np.zeros(leaves)]),
        values=values,
        labels=values.argmax(axis=1),
        category=np.concatenate([category, np.full(leaves, -1)]),
        left_categories=rng.random((len(k), int(model.levels.max(initial=0)))) < 0.5,
        missing_left=rng.random(len(k)) < 0.5,
    )
