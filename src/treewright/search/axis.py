"""Good trees with splits of single features without branch and bound: CART, alternating optimization, restarts."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from treewright.budget import Budget
from treewright.formulations.axis import AxisPoints, straightened
from treewright.search.grow.cart import cart_start
from treewright.search.improve.axis import alternate_axis
from treewright.search.incumbent import Incumbent
from treewright.tree import Tree

__all__ = ["search_axis"]


def search_axis(
    best: Incumbent[Tree],
    model: AxisPoints,
    starts: Iterable[Tree],
    budget: Budget,
    seed: int = 0,
    price: float = 0.0,
    restarts: int = 30,
) -> None:
    """Offer ever better trees to `best`; a single leaf and the given starts in any case.

    Every start is improved for its error plus `price` for a split, in units of the weights. So many `restarts` begin
    with CART on points of random weights.

    Examples
    --------
    >>> from treewright.formulations import BinOCT
    >>> X = np.array([[0.0, 0.0], [1.0, 1.0], [0.0, 1.0], [1.0, 0.0]])
    >>> model = BinOCT(X, np.array([0, 0, 1, 1]), np.ones(4), n_classes=2, depth=2)
    >>> best = Incumbent(model)
    >>> search_axis(best, model, [], Budget(10.0))
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
        straight = straightened(tree, model.X, model.depth)
        best.offer(alternate_axis(straight, model.X, model.y, by_class, budget, price))

    for tree in given:
        improve(tree)
    for attempt in range(restarts + 1):
        if best.proven or budget.over:
            return
        weight = model.weight * rng.exponential(size=len(model.X)) if attempt else model.weight
        grown = cart_start(ranks, labels, weight, model.depth, True, seed, budget)
        if grown is None:
            return
        improve(model.from_ranks(grown))
