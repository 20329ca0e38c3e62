"""Objectives of fitted models, written out from their formulas. Nothing here uses the package: a tree is its arrays."""

from __future__ import annotations

from typing import Any

import numpy as np


def reached_leaves(tree: Any, X: np.ndarray) -> np.ndarray:
    """Node number of the leaf of each row: left where ``weights @ x <= threshold``."""
    at = np.zeros(len(X), dtype=int)
    for node in range(len(tree.left)):  # a child has a larger number than its parent
        if tree.left[node] >= 0:
            here = at == node
            assert tree.category[node] < 0, "a split on categories"
            goes_left = X[here] @ tree.weights[node] <= tree.threshold[node]
            at[here] = np.where(goes_left, tree.left[node], tree.right[node])
    return at


def ways(tree: Any) -> dict[int, list[tuple[int, float]]]:
    """Nodes on the way to each leaf, with -1 where it goes left and 1 where it goes right."""
    way: dict[int, list[tuple[int, float]]] = {0: []}
    for node in range(len(tree.left)):
        if tree.left[node] >= 0:
            way[int(tree.left[node])] = [*way[node], (node, -1.0)]
            way[int(tree.right[node])] = [*way[node], (node, 1.0)]
            del way[node]
    return way


# ---------------------------------------------------------------------- class totals


def counts(labels: np.ndarray, groups: np.ndarray, names: list[Any], classes: list[Any]) -> np.ndarray:
    """Rows of each group and class."""
    return np.array([[np.sum((groups == g) & (labels == k)) for k in classes] for g in names]).reshape(len(names), -1)


def deviation(count: np.ndarray, low: np.ndarray, high: np.ndarray) -> int:
    """Fewest rows that have to change class, group by group: each change mends one excess, one shortage, or both."""
    above = np.maximum(count - high, 0).sum(axis=1)
    below = np.maximum(low - count, 0).sum(axis=1)
    return int(np.maximum(above, below).sum())


# ---------------------------------------------------------------------- S2OCT


def hinge_error(tree: Any, X: np.ndarray, y: np.ndarray, weight: np.ndarray) -> float:
    """Weighted sum over rows of the least error among the leaves of the own class; infinite without such a leaf."""
    value = X @ tree.weights.T - tree.threshold
    least = np.full(len(X), np.inf)
    for leaf, way in ways(tree).items():
        error = np.zeros(len(X))
        for node, side in way:
            error += np.maximum(0.0, 1.0 - side * value[:, node])
        least = np.where(tree.labels[leaf] == y, np.minimum(least, error), least)
    counted = weight > 0
    return float(weight[counted] @ least[counted])


def s2oct_objective(
    tree: Any, X: np.ndarray, y: np.ndarray, weight: np.ndarray, size: np.ndarray, low: Any, high: Any, penalty: float
) -> float:
    """Hinge errors of the labelled rows and the price of rows that would have to change class.

    `y` has class numbers, -1 for unlabelled rows; `size` has a row for each unlabelled one, a column for each group.
    """
    known = y >= 0
    label = tree.labels[reached_leaves(tree, X[~known])]
    count = np.array([size[label == k].sum(axis=0) for k in range(low.shape[1])]).T
    return hinge_error(tree, X[known], y[known], weight[known]) + penalty * deviation(count, low, high)


def least_margin(tree: Any, X: np.ndarray, everywhere: bool) -> float:
    """Smallest ``|w'x - t|`` over rows and the splits on their ways, or over all splits."""
    value = np.abs(X @ tree.weights.T - tree.threshold)
    if everywhere:
        inner = tree.left >= 0
        return float(value[:, inner].min(initial=np.inf))
    way, leaf = ways(tree), reached_leaves(tree, X)
    return min((value[i, node] for i in range(len(X)) for node, _ in way[leaf[i]]), default=np.inf)


def way_margin(tree: Any, X: np.ndarray) -> float:
    """Smallest distance of a row from a split on its way, in units of the largest entry of the split's normal."""
    size = np.abs(tree.weights).max(axis=1)
    way, leaf = ways(tree), reached_leaves(tree, X)
    value = np.abs(X @ tree.weights.T - tree.threshold)
    return min(
        (value[i, node] / size[node] for i in range(len(X)) for node, _ in way[leaf[i]] if size[node] > 0),
        default=np.inf,
    )


# ---------------------------------------------------------------------- supervised trees


def oct_h_objective(tree: Any, X: np.ndarray, y: np.ndarray, weight: np.ndarray, complexity: float) -> float:
    """Error relative to that of the majority class, and a price for each feature in a split."""
    wrong = weight @ (tree.labels[reached_leaves(tree, X)] != y)
    majority = max(weight[y == k].sum() for k in np.unique(y))
    return float(wrong / (weight.sum() - majority) + complexity * np.count_nonzero(tree.weights[tree.left >= 0]))


def fair_objective(
    tree: Any, X: np.ndarray, y: np.ndarray, weight: np.ndarray, complexity: float, fairness: float, protected: Any
) -> float:
    """Share of misclassified weight, a price a split, and a price for shares of predictions that differ by group."""
    label = tree.labels[reached_leaves(tree, X)]
    value = weight @ (label != y) / weight.sum() + complexity * np.count_nonzero(tree.left >= 0)
    for k in range(tree.values.shape[1]) if fairness else ():
        of_all = weight @ (label == k) / weight.sum()
        for g in set(np.asarray(protected)[weight > 0].tolist()):
            here = weight * (np.asarray(protected) == g)
            value += fairness * abs(here @ (label == k) / here.sum() - of_all)
    return float(value)


def split_price(tree: Any, X: np.ndarray) -> float:
    """Sum over splits of the 1-norm over the 2-norm of the normal, for features scaled to [0, 1]."""
    normals = tree.weights[tree.left >= 0] * np.ptp(X, axis=0)
    return float(sum(np.abs(w).sum() / np.linalg.norm(w) for w in normals))


def tao_loss(tree: Any, X: np.ndarray, y: np.ndarray, weight: np.ndarray, leaf_ridge: float = 0.0) -> float:
    """Weight of the misclassified rows, or squared error over the variance and the price of slopes."""
    leaf = reached_leaves(tree, X)
    if tree.labels is not None:
        return float(weight @ (tree.labels[leaf] != y))
    Y = y.reshape(len(X), -1)
    fitted, slope_price = tree.values[leaf], 0.0
    variance = np.average(((Y - np.average(Y, axis=0, weights=weight)) ** 2).sum(axis=1), weights=weight)
    if tree.slopes is not None:
        fitted = fitted + np.einsum("ikj,ij->ik", tree.slopes[leaf], X)
        ends = tree.slopes[tree.left < 0] * np.ptp(X, axis=0)
        slope_price = leaf_ridge * float((ends**2).sum()) / variance
    return float(weight @ ((Y - fitted) ** 2).sum(axis=1)) / variance + slope_price


# ---------------------------------------------------------------------- semi-supervised models without totals


def weight_of_a_row(weight: np.ndarray) -> float:
    """The unit of prices in rows: the smallest weight if all are whole multiples of it, else the weighted mean."""
    used = weight[weight > 0]
    copies = used / used.min()
    return float(used.min() if np.allclose(copies, np.round(copies)) else used @ used / used.sum())


def svm1odt_objective(
    tree: Any, X: np.ndarray, y: np.ndarray, weight: np.ndarray, epsilon: float, alpha_1: float, alpha_2: float
) -> float:
    """Errors, hinge errors on the way, and norms on the scale on which features are in [0, 1]; no categories, no gaps.

    Prices are in rows: `alpha_2` is that of the weight of a row.
    """
    used = weight > 0
    X, y, weight = X[used], y[used], weight[used]
    leaf = reached_leaves(tree, X)
    value = float(weight[tree.labels[leaf] != y].sum())
    for end, way in ways(tree).items():
        for node, _ in way:
            distance = np.abs(X @ tree.weights[node] - tree.threshold[node])
            value += alpha_1 * float((weight * np.maximum(0.0, epsilon - distance))[leaf == end].sum())
    norms = np.abs(tree.weights * np.ptp(X, axis=0)).sum()
    return value + alpha_2 * weight_of_a_row(weight) * float(norms)


def graph_objective(predicted: np.ndarray, target: np.ndarray, weight: np.ndarray, W: np.ndarray, gamma: float) -> Any:
    """Squared error at the labels (rows of `target` without NaN) plus the price of differences along edges."""
    known = ~np.isnan(target).any(axis=1)
    loss = weight[known] @ ((predicted - target)[known] ** 2).sum(axis=1)
    apart = ((predicted[:, None] - predicted[None]) ** 2).sum(axis=2)
    return float(loss + gamma * 0.5 * (W * apart).sum())


def gini(y: np.ndarray, weight: np.ndarray) -> float:
    """Gini index of labelled rows."""
    total = weight.sum()
    return 0.0 if total <= 0 else 1.0 - sum((weight[y == k].sum() / total) ** 2 for k in np.unique(y))


def ssct_objective(tree: Any, X: np.ndarray, y: np.ndarray, weight: np.ndarray, supervision: float) -> float:
    """Impurity of the leaves: labels by shares of the labelled rows, features by shares of all rows."""

    def variance(rows: np.ndarray, c: np.ndarray) -> np.ndarray:
        return np.average((rows - np.average(rows, axis=0, weights=c)) ** 2, axis=0, weights=c)

    leaf, known = reached_leaves(tree, X), y >= 0
    scale = variance(X, weight)
    varied, whole, total = scale > 0, gini(y[known], weight[known]), 0.0
    for t in np.unique(leaf[weight > 0]):
        at = (leaf == t) & (weight > 0)
        labels = at & known
        share = weight[labels].sum() / weight[known].sum()
        if share > 0:
            total += supervision * share * gini(y[labels], weight[labels]) / whole
        spread = (variance(X[at], weight[at])[varied] / scale[varied]).mean() if varied.any() else 0.0
        total += (1 - supervision) * weight[at].sum() / weight.sum() * spread
    return float(total)


def octsvm_objective(
    tree: Any, X: np.ndarray, y: np.ndarray, weight: np.ndarray, depth: int, prices: dict[str, float], norm: Any = 2
) -> float:
    """Objective of a maximum-margin tree of two classes in the units of the data, features of range 1 in the formula.

    `prices` has c1, c2, c3, and "margin", the price of the longest normal, or "square", that of half its square.
    """
    span = np.ptp(X, axis=0)
    longest, value = 0.0, 0.0
    sign = 2.0 * y - 1.0
    for i in range(len(X)):
        node, level = 0, 0
        while tree.left[node] >= 0:
            f = float(X[i] @ tree.weights[node] - tree.threshold[node])
            keep, flip = max(0.0, 1 - sign[i] * f), max(0.0, 1 + sign[i] * f)
            value += weight[i] * min(prices["c1"] * keep, prices["c2"] + prices["c1"] * flip)
            node, level = int(tree.left[node] if f <= 0 else tree.right[node]), level + 1
        if level <= depth and tree.labels[node] != y[i]:
            value += weight[i] * min(2 * prices["c1"], prices["c2"]) * (depth + 1 - level)
    for node in range(len(tree.left)):
        if tree.left[node] >= 0:
            value += prices["c3"]
            longest = max(longest, float(np.linalg.norm(tree.weights[node] * span, norm)))
    return value + prices.get("margin", 0.0) * longest + prices.get("square", 0.0) * longest**2 / 2
