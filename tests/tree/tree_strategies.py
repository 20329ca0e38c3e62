"""Random trees and points for property tests, and a router that knows nothing of the library's."""

from __future__ import annotations

import math

import numpy as np
from hypothesis import strategies as st

from treewright.tree import Tree

KINDS = ("axis", "oblique", "categorical", "empty")


def random_tree(
    rng: np.random.Generator,
    n_splits: int,
    n_features: int = 3,
    n_outputs: int = 2,
    classification: bool = True,
    kinds: tuple[str, ...] = KINDS,
    n_categories: int = 4,
    exact: bool = True,
    linear: bool = False,
) -> Tree:
    """Grow a tree by splitting a random leaf, then number it parents first.

    With `exact`, all numbers are small multiples of 1/4, so that sums and products have no rounding and
    points lie on thresholds often. Otherwise they are of all magnitudes.
    """

    def numbers(*shape: int) -> np.ndarray:
        if exact:
            return rng.integers(-8, 9, size=shape) / 4
        return rng.normal(size=shape) * 10.0 ** rng.integers(-200, 200, size=shape)

    left, right = [-1], [-1]
    for _ in range(n_splits):
        leaf = int(rng.choice([k for k, child in enumerate(left) if child == -1]))
        left[leaf], right[leaf] = len(left), len(left) + 1
        left += [-1, -1]
        right += [-1, -1]
    n = len(left)
    weights, threshold = np.zeros((n, n_features)), np.zeros(n)
    category, table = np.full(n, -1), np.zeros((n, n_categories), dtype=bool)
    for node in range(n):
        if left[node] == -1:
            continue
        kind = str(rng.choice(kinds))
        if kind == "categorical":
            category[node] = rng.integers(n_features)
            table[node] = rng.random(n_categories) < 0.5
            continue
        threshold[node] = numbers(1)[0]
        if kind == "axis":
            weights[node, rng.integers(n_features)] = rng.choice([-2.0, -1.0, -0.5, 0.25, 1.0, 4.0])
        elif kind == "oblique":
            weights[node] = numbers(n_features) * (rng.random(n_features) < 0.8)
    is_branch = np.array(left) != -1
    values = np.abs(numbers(n, n_outputs)) if classification else numbers(n, n_outputs)
    return Tree(
        left=np.array(left),
        right=np.array(right),
        weights=weights,
        threshold=threshold,
        values=values,
        labels=rng.integers(n_outputs, size=n) if classification else None,
        category=category,
        left_categories=table,
        missing_left=(rng.random(n) < 0.5) & is_branch,
        slopes=numbers(n, n_outputs, n_features) * (rng.random((n, 1, n_features)) < 0.6) if linear else None,
    )


@st.composite
def trees(draw, kinds: tuple[str, ...] = KINDS, exact: bool = True, max_splits: int = 8) -> Tree:
    """Classification trees, and regression trees with constant and with linear leaves."""
    seed = draw(st.integers(0, 2**32 - 1))
    leaves = draw(st.sampled_from(["classes", "constant", "linear"]))
    return random_tree(
        np.random.default_rng(seed),
        n_splits=draw(st.integers(0, max_splits)),
        n_features=draw(st.integers(1, 4)),
        n_outputs=draw(st.integers(1, 3)),
        classification=leaves == "classes",
        kinds=kinds,
        n_categories=draw(st.integers(0, 5)),
        exact=exact,
        linear=leaves == "linear",
    )


def random_points(rng: np.random.Generator, n: int, n_features: int, missing: float = 0.1) -> np.ndarray:
    """Points on the grid of the exact trees: half of the values are codes, some are missing."""
    grid = rng.integers(-8, 9, size=(n, n_features)) / 4
    codes = rng.integers(-1, 7, size=(n, n_features)).astype(float)
    X = np.where(rng.random((n, n_features)) < 0.5, grid, codes)
    return np.where(rng.random((n, n_features)) < missing, np.nan, X)


def slow_values(tree: Tree, point: list[float]) -> list[float]:
    """Outputs of one point, in plain Python."""
    leaf = slow_path(tree, point)[-1]
    outputs = []
    for k, value in enumerate(tree.values[leaf].tolist()):
        slopes = [0.0] * tree.n_features if tree.slopes is None else tree.slopes[leaf, k].tolist()
        outputs.append(value + sum(slope * x for slope, x in zip(slopes, point, strict=True) if slope != 0))
    return outputs


def slow_path(tree: Tree, point: list[float]) -> list[int]:
    """Nodes one point visits, in plain Python."""

    def walk(node: int) -> list[int]:
        if tree.left[node] == -1:
            return [node]
        if tree.category[node] >= 0:
            value = point[tree.category[node]]
            if math.isnan(value):
                goes_left = bool(tree.missing_left[node])
            else:
                listed = {code for code, is_left in enumerate(tree.left_categories[node].tolist()) if is_left}
                goes_left = value in listed
        else:
            used = [(w, x) for w, x in zip(tree.weights[node].tolist(), point, strict=True) if w != 0]
            if any(math.isnan(x) for _, x in used):
                goes_left = bool(tree.missing_left[node])
            else:
                goes_left = sum(w * x for w, x in used) <= tree.threshold[node]
        return [node, *walk(int(tree.left[node] if goes_left else tree.right[node]))]

    return walk(0)
