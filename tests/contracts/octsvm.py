"""Instances of OCTSVM and RE-SVM and trees for them, for the contracts and for the tests of the formulation."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from treewright.models.octsvm.objective import OCTSVM
from treewright.tree import Tree, route


def octsvm(n: int, p: int, kind: type[OCTSVM] = OCTSVM, twins: bool = True, **settings: Any) -> Callable[[int], OCTSVM]:
    """Points on a grid with weights from 1 to 3; `twins` are two that are equal but of different classes."""

    def make(seed: int) -> OCTSVM:
        rng = np.random.default_rng(seed)
        X = rng.integers(0, 6, (n, p)) / 5.0
        X[0], X[1] = 0.0, 1.0
        y = rng.integers(0, 2, n)
        y[:2] = 0, 1
        if twins:
            X[n - 1], y[n - 1] = X[n - 2], 1 - y[n - 2]
        return kind(X, y, rng.integers(1, 4, n).astype(float), **settings)

    return make


def random_svm_tree(model: Any, rng: np.random.Generator) -> Tree:
    """A tree that is a level too deep, with random splits, some of them without a normal, and random labels."""
    n_branches, (n, p) = 2 ** (model.depth + 2) - 1, model.X.shape
    weights = 5 * rng.normal(size=(n_branches, p)) * rng.integers(0, 2, (n_branches, p))
    threshold = np.einsum("ij,ij->i", weights, model.X[rng.integers(0, n, n_branches)])
    values = rng.random((2 * n_branches + 1, 2))
    return Tree.from_heap(rng.random(n_branches) < 0.8, weights, threshold, values, values.argmax(axis=1))


def svm_leaves_agree(model: Any, x: np.ndarray) -> bool:
    """Whether the decoded tree sends every point to the leaf that the solution names, or to a node above it."""
    tree = model.decode(x)
    leaf = route(tree, model.X)
    above = model.leaves_of(x) >> (model.depth + 1 - tree.level[leaf])
    return np.array_equal(np.array(tree.heap_numbers)[leaf], above)
