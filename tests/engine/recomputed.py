"""The objective of a tree, recomputed from its arrays and the points."""

import numpy as np

from treewright.tree import route


def recomputed(tree, X, weight, alpha, target, ridge=0.0):
    """Errors of classes, which are numbers, or squared errors of a table, and prices of normals, subsets and slopes."""
    leaf = route(tree, X)
    if target.ndim == 1:
        loss = weight @ (tree.labels[leaf] != target)
    else:
        fitted, slopes = tree.values[leaf], 0.0
        if tree.slopes is not None:
            fitted = fitted + np.einsum("ikj,ij->ik", tree.slopes[leaf], X)
            slopes = (tree.slopes[tree.leaves] ** 2).sum()
        loss = weight @ ((fitted - target) ** 2).sum(axis=1) + ridge * slopes
    normals = [w for w in tree.weights[tree.branches] if np.any(w)]
    categories = 0 if tree.category is None else np.count_nonzero(tree.category >= 0)
    return loss + alpha * (sum(np.abs(w).sum() / np.linalg.norm(w) for w in normals) + categories)
