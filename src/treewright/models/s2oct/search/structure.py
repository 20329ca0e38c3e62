"""Hyperplanes to begin with: of trees grown on labelled and guided points, or of logistic regressions alone.

Then by linear programs at the nodes: labelled points on their sides with margin 1, guided points as far as possible.
"""

from __future__ import annotations

import numpy as np

from treewright.core.arrays import FloatArray, IntArray
from treewright.core.budget import Budget
from treewright.engine.gap_trees import grown_gap_tree, improved_gap_tree
from treewright.models.s2oct.search.data import Survey, planes_errors
from treewright.splits.directions import logistic_direction, separating_plane
from treewright.splits.gap_splits import GapPoints
from treewright.splits.thresholds import best_threshold
from treewright.tree import Tree
from treewright.tree.complete import CompleteTree, Planes, labels_on_either_side, leaves_reached, passes

__all__ = ["grown_planes", "logistic_planes", "separated_planes", "simplified_planes"]


def grown_planes(
    survey: Survey,
    guided: IntArray,
    guidance: float,
    depth: int,
    random_root: bool,
    rng: np.random.Generator,
    budget: Budget,
) -> Planes:
    """Hyperplanes to begin an S2OCT with, of a tree on labelled and guided points.

    Parameters
    ----------
    survey, guided, rng, budget
        See :mod:`treewright.models.s2oct.search`.
    guidance : float
        Weight of all guided points, relative to all labelled ones.
    depth : int
        Depth of the tree, at most that of the model.
    random_root : bool
        Whether to begin with a split at random.
    """
    n_guided = min(survey.search.guided_points, len(survey.hidden)) if guidance > 0 else 0
    chosen = np.sort(rng.choice(len(survey.hidden), n_guided, replace=False))
    known, n_classes = survey.sample(rng), survey.model.n_classes
    X = survey.unit(np.vstack([survey.X[known], survey.hidden[chosen]]))
    y = np.concatenate([survey.y[known], guided[chosen]])
    weight = survey.weight[known]
    weight = np.concatenate([weight, np.full(n_guided, guidance * weight.sum() / max(1, n_guided))])
    start = Tree.leaf(np.bincount(y, weight, n_classes), X.shape[1])
    if random_root:
        start = _random_root(X, y, len(known), start, rng)
    points = GapPoints(X, y, weight, n_classes, gap=survey.gap)
    tree = improved_gap_tree(grown_gap_tree(start, points, depth, budget), points, budget, rounds=2)
    tree = tree.unscaled(1.0 / survey.width, survey.low)
    return survey.stretched(survey.completed(tree))


def _random_root(X: FloatArray, y: IntArray, n_known: int, leaf: Tree, rng: np.random.Generator) -> Tree:
    """A split half-way between two labelled points drawn at random, of different classes if there are any."""
    first = int(rng.integers(n_known))
    others = np.flatnonzero(y[:n_known] != y[first])
    second = int(rng.choice(others)) if len(others) else int(rng.integers(n_known))
    normal = X[second] - X[first]
    if not np.any(normal):
        return leaf
    threshold = normal @ (X[first] + rng.uniform(0.2, 0.8) * normal)
    left = X @ normal <= threshold
    by_side = [np.bincount(y[side], minlength=leaf.n_outputs) for side in (left, ~left)]
    return Tree.stump(normal, float(threshold), by_side)


def _single(survey: Survey, normal: FloatArray, threshold: float) -> Planes:
    """Two classes: one hyperplane at the first of the lowest nodes; the nodes above send everything to it."""
    shape = CompleteTree(survey.model.depth)
    omega, gamma = np.zeros((shape.n_branches, len(normal))), np.ones(shape.n_branches)
    lowest = shape.n_leaves // 2 - 1
    omega[lowest], gamma[lowest] = normal, threshold
    return survey.stretched(Planes(omega, gamma, np.arange(shape.n_leaves) % 2))


def logistic_planes(survey: Survey, budget: Budget) -> tuple[Planes, list[int]]:
    """Hyperplanes to begin an S2OCT with: logistic regressions part the classes half by half; and their nodes.

    Two classes are one hyperplane, which is hard to beat on large noisy data. It takes no guide and little time: what
    a search ends with where time is short. When time is over, directions are differences of means.
    """
    model, known = survey.model, survey.sample(np.random.default_rng(0))
    X, y, weight = survey.unit(survey.X[known]), survey.y[known], survey.weight[known]
    classes = np.unique(y)
    mean = np.array([np.average(X[y == k], axis=0, weights=weight[y == k]) for k in classes])
    shape, levels = CompleteTree(model.depth), int(np.ceil(np.log2(len(classes))))
    omega, gamma = np.zeros((shape.n_branches, X.shape[1])), np.ones(shape.n_branches)
    labels, nodes = np.arange(shape.n_leaves) % 2, list[int]()
    # The classes below each node; nodes above the first send everything left.
    todo = [(2 ** (model.depth - levels) - 1, np.arange(len(classes)))]
    while todo:
        node, below = todo.pop(0)
        if len(below) == 1:
            first, last = _leaves_below(node, shape)
            labels[first:last] = classes[below[0]] if model.n_classes > 2 else labels[first:last]
            continue
        left, right = _halves(mean, below)
        here = np.isin(y, classes[below])
        goes_left = np.isin(y[here], classes[left])
        normal = mean[right].mean(axis=0) - mean[left].mean(axis=0)
        if not budget.over:
            normal = logistic_direction(X[here], goes_left, weight[here], strength=1.0)
        cost = weight[here]
        threshold, _ = best_threshold(X[here] @ normal, cost * ~goes_left, cost * goes_left)
        normal = normal / survey.width
        if np.any(normal) and np.isfinite(threshold):
            omega[node], gamma[node] = normal, threshold + normal @ survey.low
            nodes.append(node)
        todo += [(2 * node + 1, left), (2 * node + 2, right)]
    return survey.stretched(Planes(omega, gamma, labels)), nodes


def _leaves_below(node: int, shape: CompleteTree) -> tuple[int, int]:
    """First leaf (from 0) below a node (from 0, leaves after the branches), and one after the last."""
    first, last = node, node
    while first < shape.n_branches:
        first, last = 2 * first + 1, 2 * last + 2
    return first - shape.n_branches, last + 1 - shape.n_branches


def _halves(mean: FloatArray, below: IntArray) -> tuple[IntArray, IntArray]:
    """Classes in two halves along the direction in which their means differ most; two classes stay in order."""
    if len(below) == 2:
        return below[:1], below[1:]
    centred = mean[below] - mean[below].mean(axis=0)
    along = centred @ np.linalg.svd(centred, full_matrices=False)[2][0]
    order = below[np.argsort(along, kind="stable")]
    middle = (len(order) + 1) // 2
    return order[:middle], order[middle:]


def separated_planes(
    survey: Survey, planes: Planes, guided: IntArray, rng: np.random.Generator, budget: Budget
) -> Planes:
    """S2OCT hyperplanes by linear programs, lowest nodes first; again while labels remain wrong and errors fall.

    Parameters
    ----------
    survey, planes, guided, rng, budget
        See :mod:`treewright.models.s2oct.search`. Each labelled point stays on the way to its nearest leaf of its own
        class.
    """
    for _ in range(survey.search.separating_passes):
        error, leaf = planes_errors(planes, survey.X, survey.y)
        for node in range(len(planes.gamma) - 1, -1, -1):
            if budget.over:
                return planes
            planes = _separated_node(survey, planes, node, leaf, guided, rng, budget)
        after, _ = planes_errors(planes, survey.X, survey.y)
        if after.max(initial=0.0) > 1e-6 and after.sum() >= error.sum() * 0.999:
            break
    return planes


def _separated_node(
    survey: Survey,
    planes: Planes,
    node: int,
    leaf: IntArray,
    guided: IntArray,
    rng: np.random.Generator,
    budget: Budget,
) -> Planes:
    """Hyperplane of a node by linear program: labelled points hard if they can be, guided points soft."""
    here, left = passes(leaf, node, planes.shape)
    chosen = survey.sample(rng, here)
    X, side, weight = survey.X[chosen], np.where(left[chosen], -1.0, 1.0), survey.weight[chosen]
    if not len(X) or (not np.any(planes.omega[node]) and np.ptp(side) == 0):
        return planes
    values = planes.values(survey.hidden)
    inside = np.flatnonzero(passes(leaves_reached(values), node, planes.shape)[0])
    inside, wish = _wishes(planes, node, values, inside, guided)
    if len(inside) > survey.search.guided_points:
        sample = rng.choice(len(inside), survey.search.guided_points, replace=False)
        inside, wish = inside[sample], wish[sample]
    few = np.full(len(inside), 1.0)
    hidden, bound = survey.hidden[inside], survey.model.max_coefficient
    found = separating_plane(X, side, hidden, wish, few, bound, seconds=budget.remaining)
    if found is None:
        # The labelled error is what counts; guided points only choose among equals.
        price = np.concatenate([weight, 1e-3 * few * weight.mean()])
        soft, sides = np.vstack([X, hidden]), np.concatenate([side, wish])
        found = separating_plane(X[:0], side[:0], soft, sides, price, bound, seconds=budget.remaining)
    return planes if found is None else planes.replaced(node, *found)


def _wishes(
    planes: Planes, node: int, values: FloatArray, inside: IntArray, guided: IntArray
) -> tuple[IntArray, FloatArray]:
    """Points that the guide wants on a side of the node, and the side: where their label would come out right."""
    if_left, if_right = labels_on_either_side(planes, node, values[inside])
    right_left, right_right = if_left == guided[inside], if_right == guided[inside]
    caring = right_left != right_right
    return inside[caring], np.where(right_left[caring], -1.0, 1.0)


def simplified_planes(
    survey: Survey, planes: Planes, guided: IntArray, alone: bool, rng: np.random.Generator, budget: Budget
) -> Planes:
    """Fewer hyperplanes of an S2OCT that part the labelled points as well: each has to find room between points.

    Nodes that send all labelled points one way send all points there. With `alone` and two classes a single hyperplane
    is tried first.
    """
    if alone and survey.model.n_classes == 2:
        found = _alone(survey, guided, rng, budget)
        if found is not None and survey.all_right(found):
            return found
    for node in range(len(planes.gamma) - 1, -1, -1):
        at_node, left = passes(planes_errors(planes, survey.X, survey.y)[1], node, planes.shape)
        if left[at_node].all() or not left[at_node].any():
            way = 1.0 if left[at_node].all() else -1.0
            planes = planes.replaced(node, np.zeros(planes.omega.shape[1]), way)
    return planes


def _alone(survey: Survey, guided: IntArray, rng: np.random.Generator, budget: Budget) -> Planes | None:
    """One hyperplane on labelled and guided points, None where all are of one class or time is over."""
    known, n_hidden, most = survey.sample(rng), len(guided), survey.search.sampled_points
    hidden = np.arange(n_hidden) if n_hidden <= most else rng.choice(n_hidden, most, replace=False)
    label = np.concatenate([survey.y[known], guided[hidden]])
    if budget.over or np.all(label == label[0]):
        return None
    points = survey.unit(np.vstack([survey.X[known], survey.hidden[hidden]]))
    normal = logistic_direction(points, label == 0, np.ones(len(label)), strength=1.0) / survey.width
    planes = _single(survey, normal, float(np.median(survey.X @ normal)))
    return separated_planes(survey, planes, guided, rng, budget)
