"""Re-verify what an S2OCT fit claims, from X, y, the totals and the tree alone; nothing of the package is imported.

A tree is any object with the arrays ``left``, ``right``, ``weights``, ``threshold`` and ``labels``, in the units of X.
"""

from __future__ import annotations

from typing import Any

import numpy as np


def scaling_of(X: np.ndarray) -> np.ndarray:
    """Factor by which the paper scales each feature after centring: 1, or 200 / range where |x| exceeds 100."""
    low, high = X.min(axis=0), X.max(axis=0)
    half = (high - low) / 2
    return np.where(half > 100.0, 100.0 / np.where(half > 0, half, 1.0), 1.0)


def paper_bound(X: np.ndarray) -> float:
    """The paper's bound s of the weights."""
    scaled = (X - (X.min(axis=0) + X.max(axis=0)) / 2) * scaling_of(X)
    n, p = scaled.shape
    if n > 20_000:
        return {True: 10.0, False: 20.0}[n < 650] if n < 1500 else 40.0
    widest = 0.0
    square = (scaled**2).sum(axis=1)
    for start in range(0, n, 500):
        part = square[start : start + 500, None] + square - 2 * scaled[start : start + 500] @ scaled.T
        widest = max(widest, float(part.max()))
    least = 10.0 if n < 650 else 20.0 if n < 1500 else 40.0
    return max(least, 499.0 / (np.sqrt(max(widest, 1e-300)) * np.sqrt(p)))


def walk(tree: Any, X: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Leaf of each row, its hinge error on the way there, and its least distance |f| on the way."""
    n = len(X)
    node, hinge, nearest = np.zeros(n, dtype=int), np.zeros(n), np.full(n, np.inf)
    while np.any(tree.left[node] >= 0):
        for b in np.unique(node[tree.left[node] >= 0]):
            here = np.flatnonzero(node == b)
            f = X[here] @ tree.weights[b] - tree.threshold[b]
            left = f <= 0
            hinge[here] += np.maximum(0.0, np.where(left, 1 + f, 1 - f))
            nearest[here] = np.minimum(nearest[here], np.abs(f))
            node[here] = np.where(left, tree.left[b], tree.right[b])
    return node, hinge, nearest


def verify_zero(
    tree: Any, X: np.ndarray, y: np.ndarray, positive: int, margin: str, tolerance: float = 1e-3
) -> list[str]:
    """What contradicts the claim that the objective is 0; an empty list if nothing does.

    Parameters
    ----------
    tree : object
        The tree, labels as class numbers.
    X, y : ndarray
        Rows and class numbers, -1 unlabelled.
    positive : int
        Known number of unlabelled rows in class 1.
    margin : {"tolerance", "reached", "paper"}
        What unlabelled rows must keep.
    tolerance : float
        The margin of "tolerance".
    """
    wrong = []
    leaf, hinge, nearest = walk(tree, X)
    known = y >= 0
    label = np.asarray(tree.labels)[leaf]
    if np.any(label[known] != y[known]):
        wrong.append(f"{np.sum(label[known] != y[known])} labelled rows are misclassified")
    if hinge[known].sum() > 1e-6:
        wrong.append(f"labelled rows miss their margins by {hinge[known].sum():.3g}")
    count = int(np.sum(label[~known] == 1))
    if count != positive:
        wrong.append(f"{count} unlabelled rows in class 1, not {positive}")
    required = tolerance if margin == "tolerance" else 1.0
    away = nearest[~known]
    if margin == "paper":
        branches = np.flatnonzero(np.asarray(tree.left) >= 0)
        values = X[~known] @ np.asarray(tree.weights)[branches].T - np.asarray(tree.threshold)[branches]
        away = np.abs(values).min(axis=1, initial=np.inf)
    if np.any(away < required * (1 - 1e-6)):
        wrong.append(f"an unlabelled row is {away.min():.3g} from a split, not {required}")
    factor = scaling_of(X)
    steepest = np.abs(np.asarray(tree.weights) / factor).max(initial=0.0)
    if steepest > paper_bound(X) * (1 + 1e-6):
        wrong.append(f"a weight of {steepest:.6g} exceeds {paper_bound(X):.6g}")
    return wrong
