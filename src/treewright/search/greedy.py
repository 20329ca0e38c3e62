"""Trees grown from the root: CART, and its relative with oblique splits. Starts and baselines for everything else."""

from __future__ import annotations

import numpy as np
from sklearn.tree import DecisionTreeClassifier

from treewright.budget import Budget
from treewright.program import FloatArray, IntArray
from treewright.search.hyperplane import Split, best_threshold, hinge_directions, logistic_direction
from treewright.tree import BoolArray, Tree, leaf_counts, route

__all__ = ["best_stump", "cart_tree", "grow", "tree_from_sklearn"]

_LP_CELLS = 60_000
"""Above this many table cells a hinge LP costs more than what it adds to logistic regression."""


def tree_from_sklearn(model: DecisionTreeClassifier) -> Tree:
    """Copy a fitted scikit-learn decision tree.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> tree = tree_from_sklearn(DecisionTreeClassifier(max_depth=2, random_state=0).fit(X, y))
    >>> tree.n_leaves
    3
    """
    arrays = model.tree_
    weights = np.zeros((arrays.node_count, model.n_features_in_))
    branch = np.flatnonzero(arrays.children_left >= 0)
    weights[branch, arrays.feature[branch]] = 1.0
    # scikit-learn stores class shares; times the node's weight they are class weights again.
    values = arrays.value[:, 0, :] * arrays.weighted_n_node_samples[:, None]
    return Tree(
        left=arrays.children_left,
        right=arrays.children_right,
        weights=weights,
        threshold=np.where(arrays.children_left >= 0, arrays.threshold, 0.0),
        values=values,
        labels=values.argmax(axis=1),
    )


def cart_tree(
    X: FloatArray,
    y: IntArray,
    weight: FloatArray,
    n_classes: int,
    depth: int,
    min_size: int = 1,
    seed: int = 0,
) -> Tree:
    """CART of scikit-learn on class numbers, as a Tree over all `n_classes` classes."""
    model = DecisionTreeClassifier(max_depth=depth, min_samples_leaf=max(1, min_size), random_state=seed)
    model.fit(X, y, sample_weight=weight)
    tree = tree_from_sklearn(model)
    values = np.zeros((tree.n_nodes, n_classes))
    values[:, model.classes_] = tree.values
    return tree.with_leaves(values, values.argmax(axis=1))


def grow(
    tree: Tree,
    X: FloatArray,
    y: IntArray,
    weight: FloatArray,
    depth: int,
    gap: float,
    min_size: int = 1,
    price: float = 0.0,
    budget: Budget | None = None,
) -> Tree:
    """Split impure leaves above `depth` by oblique stumps, as long as that pays.

    Parameters
    ----------
    tree : Tree
        What to grow from; a single leaf to grow a whole tree.
    X, y, weight : ndarray
        Points, class numbers, weights.
    depth : int
        Depth not to exceed.
    gap : float
        Distance between the sides of a split along its normal of 1-norm 1.
    min_size : int
        Smallest number of points in a leaf.
    price : float
        Cost of a feature in a split, in units of weight.
    budget : Budget or None
        Ends the growing early.
    """
    for _ in range(depth - int(tree.level[tree.leaves].min())):
        leaf_of, level = route(tree, X), tree.level
        found: dict[int, Split] = {}
        for leaf in tree.leaves:
            inside = np.flatnonzero(leaf_of == leaf)
            if level[leaf] >= depth or (budget is not None and budget.over):
                continue
            last = level[leaf] == depth - 1
            split = _leaf_split(X[inside], y[inside], weight[inside], tree.n_outputs, gap, min_size, price, last)
            if split is not None:
                found[int(leaf)] = split
        if not found:
            break
        tree = _with_splits(tree, found)
        counts = leaf_counts(tree, X, y, weight, tree.n_outputs)
        tree = tree.with_leaves(counts, counts.argmax(axis=1))
    return tree


def best_stump(
    X: FloatArray, y: IntArray, weight: FloatArray, n_classes: int, gap: float, min_size: int, price: float
) -> Split | None:
    """Best oblique split into two leaves with a label each: least error plus price of its features.

    Directions come from logistic regression and hinge LPs between pairs of the largest classes, and from single
    features; thresholds are exact.
    """
    by_class = np.bincount(y, weight, n_classes)
    classes = [int(k) for k in np.argsort(-by_class, kind="stable")[:3] if by_class[k] > 0]
    pairs = [(i, k) for i in classes for k in classes if i != k]
    best: Split | None = None
    for low, high in pairs:
        cost_left, cost_right = weight * (y != low), weight * (y != high)
        either = (y == low) | (y == high)
        # The mirrored pair finds the mirrored direction: solve only once, by class number.
        normals = (
            candidate_directions(X[either], y[either] == low, weight[either], gap, price > 0) if low < high else []
        )
        best = _better(best, X, normals, cost_left, cost_right, gap, min_size, price)
        best = _better_axis(best, X, cost_left, cost_right, gap, min_size, price)
    return best


def candidate_directions(
    X: FloatArray, goes_left: BoolArray, weight: FloatArray, gap: float, sparse: bool
) -> list[FloatArray]:
    """Directions that part the marked points from the others, by several convex surrogates."""
    if goes_left.all() or not goes_left.any():
        return []
    directions = [logistic_direction(X, goes_left, weight, "l2", strength) for strength in (1e-3, 1.0)]
    if sparse:
        directions += [logistic_direction(X, goes_left, weight, "l1", strength) for strength in (0.1, 1.0, 10.0)]
    if X.size <= _LP_CELLS:
        directions += hinge_directions(X, goes_left, weight, gap)
    return [d for d in directions if np.any(d != 0)]


def _leaf_split(
    X: FloatArray,
    y: IntArray,
    weight: FloatArray,
    n_classes: int,
    gap: float,
    min_size: int,
    price: float,
    last: bool,
) -> Split | None:
    """Split for a leaf: by error where nothing follows, by impurity where more splits will."""
    by_class = np.bincount(y, weight, n_classes)
    error = float(by_class.sum() - by_class.max())
    if error <= 0 or len(y) < 2 * max(1, min_size):
        return None
    if last:
        split = best_stump(X, y, weight, n_classes, gap, min_size, price)
        if split is None or split.cost >= error - 1e-12 or not np.isfinite(split.threshold):
            return None
        return split
    best, best_impurity = None, np.inf
    for k in np.flatnonzero(by_class > 0):
        goes_left = y == k
        for normal in candidate_directions(X, goes_left, weight, gap, price > 0):
            normal = normal / np.abs(normal).sum()
            level = X @ normal
            balance = np.where(goes_left, weight / weight[goes_left].sum(), weight / weight[~goes_left].sum())
            threshold, _ = best_threshold(level, balance * ~goes_left, balance * goes_left, gap, max(1, min_size))
            left = level <= threshold
            if left.all() or not left.any():
                continue
            impurity = _gini(y[left], weight[left]) + _gini(y[~left], weight[~left])
            if impurity < best_impurity - 1e-12:
                best, best_impurity = Split(normal, threshold, impurity), impurity
    return best


def _gini(y: IntArray, weight: FloatArray) -> float:
    by_class = np.bincount(y, weight)
    return float(by_class.sum() - (by_class**2).sum() / by_class.sum())


def _better(
    best: Split | None,
    X: FloatArray,
    normals: list[FloatArray],
    cost_left: FloatArray,
    cost_right: FloatArray,
    gap: float,
    min_size: int,
    price: float,
) -> Split | None:
    """The cheapest of `best` and the splits along `normals` in either orientation."""
    for direction in normals:
        for normal in (direction / np.abs(direction).sum(), -direction / np.abs(direction).sum()):
            split = split_along(X, normal, cost_left, cost_right, gap, min_size, price)
            if best is None or split.cost < best.cost - 1e-12:
                best = split
    return best


def split_along(
    X: FloatArray,
    normal: FloatArray,
    cost_left: FloatArray,
    cost_right: FloatArray,
    gap: float,
    min_size: int,
    price: float,
) -> Split:
    """Best split along a direction of 1-norm 1; with a price, features that do not pay are dropped one by one."""
    threshold, cost = best_threshold(X @ normal, cost_left, cost_right, gap, min_size)
    best = Split(normal, threshold, cost + price * np.count_nonzero(normal))
    if price <= 0:
        return best
    for j in np.argsort(np.abs(normal) * np.ptp(X, axis=0), kind="stable"):
        if np.count_nonzero(best.normal) == 1 or best.normal[j] == 0:
            continue
        thinner = np.where(np.arange(len(normal)) == j, 0.0, best.normal)
        thinner = thinner / np.abs(thinner).sum()
        threshold, cost = best_threshold(X @ thinner, cost_left, cost_right, gap, min_size)
        total = cost + price * np.count_nonzero(thinner)
        if total <= best.cost + 1e-12:
            best = Split(thinner, threshold, total)
    return best


def _better_axis(
    best: Split | None,
    X: FloatArray,
    cost_left: FloatArray,
    cost_right: FloatArray,
    gap: float,
    min_size: int,
    price: float,
) -> Split | None:
    for j in range(X.shape[1]):
        threshold, cost = best_threshold(X[:, j], cost_left, cost_right, gap, min_size)
        if best is None or cost + price < best.cost - 1e-12:
            best = Split(np.eye(1, X.shape[1], j)[0], threshold, cost + price)
    return best


def _with_splits(tree: Tree, splits: dict[int, Split]) -> Tree:
    """Replace leaves by splits with two new leaves each."""
    n, m = tree.n_nodes, len(splits)
    nodes = np.array(list(splits), dtype=np.int64)
    left, right = (np.concatenate([side, np.full(2 * m, -1)]) for side in (tree.left, tree.right))
    left[nodes], right[nodes] = n + 2 * np.arange(m), n + 2 * np.arange(m) + 1
    weights = np.vstack([tree.weights, np.zeros((2 * m, tree.n_features))])
    threshold = np.concatenate([tree.threshold, np.zeros(2 * m)])
    weights[nodes] = [splits[int(k)].normal for k in nodes]
    threshold[nodes] = [splits[int(k)].threshold for k in nodes]
    values = np.vstack([tree.values, np.zeros((2 * m, tree.n_outputs))])
    return Tree(left, right, weights, threshold, values, labels=np.zeros(n + 2 * m, dtype=np.int64))
