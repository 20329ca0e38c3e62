"""Good OCT-H trees without branch and bound: CART and oblique greedy starts, alternating optimization, restarts."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from treewright.arrays import FloatArray, IntArray
from treewright.budget import Budget
from treewright.formulations import OCTH
from treewright.search.grow.cart import cart_tree
from treewright.search.grow.oblique import GapPoints, grow
from treewright.search.improve.gaps import alternate
from treewright.search.incumbent import Incumbent
from treewright.tree import Tree, passing

__all__ = ["search_oct_h"]


def search_oct_h(
    best: Incumbent[Tree], model: OCTH, starts: Iterable[Tree], budget: Budget, seed: int = 0, restarts: int = 15
) -> None:
    """Offer ever better trees to `best`.

    Parameters
    ----------
    best : Incumbent
        Collects the trees; the search ends when it is proven optimal.
    model : OCTH
        The model.
    starts : iterable of Tree
        Trees to begin with, in the units of the model.
    budget : Budget
        Ends the search early. A single leaf and the given starts are offered whatever it says.
    seed : int
        Seed of the restarts.
    restarts : int
        Number of times to improve a perturbed copy of the best tree, or every third time a tree with a random root.

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
    """Replace one split by the bisector of two of its points of different classes, drawn at random."""
    if tree.n_nodes == 1:
        return tree
    node = int(rng.choice(tree.branches))
    inside = np.flatnonzero(passing(tree, model.X, node))
    weights, threshold = tree.weights.copy(), tree.threshold.copy()
    weights[node], threshold[node] = _bisector(model, inside, rng)
    return model.repair(Tree(tree.left, tree.right, weights, threshold, tree.values, tree.labels))


def _random_root(leaf: Tree, model: OCTH, rng: np.random.Generator) -> Tree:
    """A single random split: a start for data in which no split is good alone."""
    normal, threshold = _bisector(model, np.arange(len(model.X)), rng)
    return Tree.stump(normal, threshold, np.vstack([leaf.values, leaf.values]))


def _bisector(model: OCTH, inside: IntArray, rng: np.random.Generator) -> tuple[FloatArray, float]:
    """The hyperplane half-way between two points drawn at random, of different classes if there are any."""
    first = int(rng.choice(inside))
    others = inside[model.y[inside] != model.y[first]]
    second = int(rng.choice(others if len(others) else inside))
    normal = model.X[second] - model.X[first]
    return normal, float(normal @ (model.X[first] + model.X[second]) / 2)
