"""Instances of OCT and trees for them, for the contracts and for the tests of search and estimator."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np

from tests.contracts.svm1odt import random_mixed_tree
from treewright.models.oct.objective import OCT
from treewright.tree import Tree


def oct_model(
    n: int, p: int, n_classes: int = 2, levels: tuple[int, ...] = (), gaps: float = 0.0, **settings: Any
) -> Callable[[int], OCT]:
    """Points on a grid, two of them equal, with categorical features of so many levels and a share of missing values.

    They have weights from 1 to 3 and stand for one to three rows.
    """

    def make(seed: int) -> OCT:
        rng = np.random.default_rng(seed)
        codes = [rng.integers(0, k, (n, 1)).astype(float) for k in levels]
        X = np.hstack([rng.integers(0, 6, (n, p)) / 5.0, *codes])
        X[n - 1] = X[n - 2]
        X[rng.random(X.shape) < gaps] = np.nan
        y = rng.integers(0, n_classes, n)
        y[:n_classes] = np.arange(n_classes)
        weight, size = rng.integers(1, 4, n).astype(float), rng.integers(1, 4, n).astype(float)
        table = np.array([0] * p + list(levels)) if levels else None
        return OCT(X, y, weight, n_classes, size=size, n_levels=table, **({"depth": 2} | settings))

    return make


def random_oct_tree(model: OCT, rng: np.random.Generator) -> Tree:
    """A tree with random splits, of hyperplanes and of levels, most of which are not feasible as they are."""
    levels = np.zeros(model.X.shape[1], dtype=int) if model.n_levels is None else model.n_levels
    like = SimpleNamespace(
        depth=model.depth, X=model.X, n_classes=model.n_classes, categorical=levels > 0, levels=levels
    )
    return random_mixed_tree(like, rng)
