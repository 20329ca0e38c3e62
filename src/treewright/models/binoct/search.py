"""Good trees with splits of single features without branch and bound: CART, alternating optimization, restarts."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from treewright.core.arrays import FloatArray
from treewright.core.budget import Budget
from treewright.engine.cart import cart_start, cart_tree
from treewright.models.binoct.axis import AxisPoints, single_feature_tree
from treewright.models.binoct.nodes import improved_binoct_tree
from treewright.optimize.incumbent import Incumbent
from treewright.optimize.settings import BinOCTSearch
from treewright.tree import Tree

__all__ = ["search_binoct"]


def search_binoct(
    best: Incumbent[Tree],
    model: AxisPoints,
    starts: Iterable[Tree],
    budget: Budget,
    seed: int = 0,
    price: float = 0.0,
    search: BinOCTSearch = BinOCTSearch(),
) -> None:
    """Offer ever better BinOCT trees to `best`; a single leaf and the given starts in any case.

    Every start is improved for its error plus `price` for a split, in units of the weights. Restarts begin with
    CART, in turn below a random root, as where no split is good alone, and on points of random weights.

    Examples
    --------
    >>> from treewright.models.binoct.objective import BinOCT
    >>> X = np.array([[0.0, 0.0], [1.0, 1.0], [0.0, 1.0], [1.0, 0.0]])
    >>> model = BinOCT(X, np.array([0, 0, 1, 1]), np.ones(4), n_classes=2, depth=2)
    >>> best = Incumbent(model)
    >>> search_binoct(best, model, [], Budget(10.0))
    >>> best.objective
    0.0
    """
    given = list(starts)
    for tree in [*given, Tree.leaf(np.bincount(model.y, model.weight, model.n_classes), model.X.shape[1])]:
        best.offer(tree)
    by_class = np.zeros((len(model.X), model.n_classes))
    by_class[np.arange(len(model.X)), model.y] = model.weight
    rng, labels = np.random.default_rng(seed), model.y[:, None].astype(np.float64)
    ranks = model.rank[model.group].astype(np.float64)  # CART has single precision, which not all values can be told by

    def improve(tree: Tree) -> None:
        best.offer(tree)
        # Splits that are idle stay here: they are room for better ones.
        straight = single_feature_tree(tree, model.X, model.depth)
        best.offer(improved_binoct_tree(straight, model.X, model.y, by_class, budget, price))

    for tree in given:
        improve(tree)
    for attempt in range(search.restarts + 1):
        if best.proven or budget.over:
            return
        if attempt % 2 and model.depth > 1 and len(model.varied):
            improve(model.from_ranks(_below_random_root(model, ranks, rng)))
            continue
        weight = model.weight * rng.exponential(size=len(model.X)) if attempt else model.weight
        grown = cart_start(ranks, labels, weight, model.depth, True, seed, budget)
        if grown is None:
            return
        improve(model.from_ranks(grown))


def _below_random_root(model: AxisPoints, ranks: FloatArray, rng: np.random.Generator) -> Tree:
    """A tree on value numbers with a random split at its root and CART on both sides."""
    feature = int(rng.choice(model.varied))
    threshold = float(rng.integers(1, len(model.values[feature]))) - 0.5
    lower = ranks[:, feature] <= threshold
    sides = [
        cart_tree(ranks[side], model.y[side], model.weight[side], model.n_classes, model.depth - 1)
        for side in (lower, ~lower)
    ]
    stump = Tree.stump(np.eye(ranks.shape[1])[feature], threshold, [side.values[0] for side in sides])
    left, right, below = [np.array([1])], [np.array([1 + sides[0].n_nodes])], 1
    for side in sides:
        left.append(np.where(side.left >= 0, side.left + below, -1))
        right.append(np.where(side.right >= 0, side.right + below, -1))
        below += side.n_nodes
    parts = [
        (stump.weights[:1], stump.threshold[:1], stump.values[:1]),
        *((t.weights, t.threshold, t.values) for t in sides),
    ]
    weights, thresholds, values = (np.concatenate(part) for part in zip(*parts, strict=True))
    return Tree(np.concatenate(left), np.concatenate(right), weights, thresholds, values, values.argmax(axis=1))
