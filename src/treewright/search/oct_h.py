"""Good OCT-H trees without branch and bound: CART and oblique greedy starts, alternating optimization, restarts."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from treewright.budget import Budget
from treewright.formulations import OCTH
from treewright.search.grow.cart import cart_tree
from treewright.search.grow.oblique import GapPoints, bisector, grow
from treewright.search.improve.gaps import alternate
from treewright.search.incumbent import Incumbent
from treewright.tree import Tree, passing

__all__ = ["search_oct_h"]


def search_oct_h(
    best: Incumbent[Tree], model: OCTH, starts: Iterable[Tree], budget: Budget, seed: int = 0, restarts: int = 15
) -> None:
    """Offer ever better trees to `best`; a single leaf and the given starts in any case.

    So many `restarts` improve a perturbed copy of the best tree, or every third time a tree with a random root.

    Examples
    --------
    >>> X = np.array([[0.0, 0.0], [1.0, 1.0], [0.0, 1.0], [1.0, 0.0]])
    >>> model = OCTH(X, np.array([0, 0, 1, 1]), np.ones(4), n_classes=2, depth=2)
    >>> best = Incumbent(model)
    >>> search_oct_h(best, model, [], Budget(10.0))
    >>> best.objective
    0.0
    """
    given = list(starts)
    leaf = Tree.leaf(np.bincount(model.y, model.weight, model.n_classes), model.X.shape[1])
    for tree in [*given, leaf]:
        best.offer(tree)
    if budget.over:
        return
    # Tolerances of the search are absolute: weights have mean 1 there.
    unit = float(model.weight.mean())
    points = GapPoints(
        model.X,
        model.y,
        model.weight / unit,
        model.n_classes,
        gap=model.margin,
        min_size=max(1.0, model.min_leaf),
        price=model.complexity * model.baseline / unit,
        size=model.sizes,
    )
    # CART counts points, of which a leaf that is large enough has at least so many; the repair looks at rows.
    fewest = int(np.ceil(model.min_leaf / model.sizes.max()))
    cart = cart_tree(model.X, model.y, points.weight, model.n_classes, model.depth, fewest)
    best.offer(cart)
    for start in [*given, cart, leaf]:
        _improve(best, points, model.depth, model.repair(start), budget)
    rng = np.random.default_rng(seed)
    for attempt in range(restarts):
        if _finished(best, budget) or best.solution is None:
            return
        fresh = attempt % 3 == 2 and model.depth > 1
        start = _random_root(leaf, model, rng) if fresh else _perturbed(best.solution, model, rng)
        _improve(best, points, model.depth, start, budget)


def _finished(best: Incumbent[Tree], budget: Budget) -> bool:
    return best.proven or budget.over


def _improve(best: Incumbent[Tree], points: GapPoints, depth: int, tree: Tree, budget: Budget) -> None:
    """Improve the splits a tree has, then grow the ones it lacks and improve again."""
    for growing in (False, True):
        if _finished(best, budget):
            return
        tree = grow(tree, points, depth, budget) if growing else tree
        best.offer(tree)
        tree = alternate(tree, points, budget)
        best.offer(tree)


def _perturbed(tree: Tree, model: OCTH, rng: np.random.Generator) -> Tree:
    """Replace one split by the plane half-way between two of its points."""
    if tree.n_nodes == 1:
        return tree
    node = int(rng.choice(tree.branches))
    inside = np.flatnonzero(passing(tree, model.X, node))
    weights, threshold = tree.weights.copy(), tree.threshold.copy()
    weights[node], threshold[node] = bisector(model.X, model.y, inside, rng)
    return model.repair(Tree(tree.left, tree.right, weights, threshold, tree.values, tree.labels))


def _random_root(leaf: Tree, model: OCTH, rng: np.random.Generator) -> Tree:
    """A single random split: a start for data in which no split is good alone."""
    normal, threshold = bisector(model.X, model.y, np.arange(len(model.X)), rng)
    return Tree.stump(normal, threshold, np.vstack([leaf.values, leaf.values]))
