"""The best OCT by exact search, offered as it is found, with a bound at any time."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import numpy as np

from treewright.core.arrays import FloatArray, IntArray
from treewright.core.budget import Budget
from treewright.engine.cart import cart_tree
from treewright.models.oct.branch import Branching, Plan
from treewright.models.oct.objective import OCT
from treewright.models.oct.sweeps import Block, Rules
from treewright.optimize.incumbent import Incumbent
from treewright.splits.thresholds import Cuts
from treewright.tree import Tree
from treewright.tree.structure import BEYOND

__all__ = ["oct_block", "exact_oct_tree", "plan_tree", "oct_rules", "search_oct", "start_oct"]

_MANY_CELLS, _CART_SECONDS = 100_000, 1.5e-7
"""Values of a table from which on CART is a start: of fewer the search has a better tree by then. And what CART takes
about for a value and level."""

_PAUSE = 0.5
"""Seconds between trees that are offered on the way; it takes some milliseconds to make and measure one."""

_ROUNDING, _MOST_ROUNDING = 1e-15, 1e-11
"""Share of the weight of all points, for each of them and at most, by which sums of weights may differ."""

_NOTICED = 1e-6
"""Share of an objective from which on rounding is a gap."""


def search_oct(best: Incumbent[Tree], model: OCT, starts: Iterable[Tree], budget: Budget) -> None:
    """Offer ever better OCT trees to `best`, and bounds; a single leaf and the given starts in any case.

    If the budget is enough, the last tree is the best one there is, and its objective the bound.

    Examples
    --------
    >>> X = np.array([[0.0, 0.0], [1.0, 1.0], [0.0, 1.0], [1.0, 0.0]])
    >>> model = OCT(X, np.array([0, 0, 1, 1]), np.ones(4), n_classes=2, depth=2, complexity=0.1)
    >>> best = Incumbent(model)
    >>> search_oct(best, model, [], Budget(10.0))
    >>> round(best.objective, 9), round(best.floor, 9)  # three splits
    (0.3, 0.3)
    """
    start_oct(best, model, starts, budget, with_cart=model.depth > 2 and model.X.size > _MANY_CELLS)
    if best.proven or budget.over:
        return
    block, rules, unit = oct_block(model), oct_rules(model), model.baseline
    work, told = Branching(rules, budget), [budget.elapsed]

    def better(plan: Plan) -> None:
        if budget.elapsed >= told[0] + _PAUSE:
            _offer(best, model, work, block, plan)
            told[0] = budget.elapsed

    work.on_better = better
    work.on_bound = lambda bound: best.raise_floor(bound / unit)
    answer = work.solve(block, model.depth, best.objective * unit, first=True)
    if answer.plan is not None:
        _offer(best, model, work, block, answer.plan)
    floor = min(answer.floor / unit, best.objective)
    # Trees better by no more than rounding are not looked for: much, where a few points outweigh all others by far.
    rounding = rules.tolerance * (2**model.depth - 1) / unit
    best.raise_floor(floor if rounding <= _NOTICED * best.objective else floor - rounding)


def exact_oct_tree(X: FloatArray, y: IntArray, weight: FloatArray, n_classes: int, depth: int, budget: Budget) -> Tree:
    """The OCT tree that misclassifies the least weight, one feature a split; or the best one that time allows.

    Parameters
    ----------
    X, y, weight : ndarray
        Points of numbers, their class numbers and weights.
    n_classes, depth : int
        Classes; most splits on a way.
    budget : Budget
        Ends the search early.
    """
    model = OCT(X, y, weight, n_classes, depth=depth)
    best: Incumbent[Tree] = Incumbent(model)
    search_oct(best, model, [], budget)
    assert best.solution is not None
    return best.solution


def start_oct(
    best: Incumbent[Tree], model: OCT, starts: Iterable[Tree], budget: Budget, with_cart: bool = True
) -> None:
    """Offer what an OCT search starts with: a single leaf, the given trees, and that of CART if time allows."""
    leaf = Tree.leaf(np.bincount(model.y, model.weight, model.n_classes), model.X.shape[1])
    for tree in [*starts, leaf]:
        best.offer(tree)
    if with_cart and not best.proven and budget.allows(5.0 * _CART_SECONDS * model.X.size * model.depth):
        best.offer(_cart(model))


def _offer(best: Incumbent[Tree], model: OCT, work: Branching, block: Block, plan: Plan) -> None:
    best.offer(plan_tree(model, work.resolved(block, plan)))


def _cart(model: OCT) -> Tree:
    """CART on ranks, which unlike values keep all they have to say in single precision."""
    X, values = model.X.copy(), {}
    for feature, known, _ in model.columns.sources:
        if known is not None and feature not in values:
            values[feature] = known
            there = ~np.isnan(X[:, feature])
            X[there, feature] = np.searchsorted(known, X[there, feature])
    # CART counts points, of which a leaf that is large enough has at least so many; the repair looks at rows.
    fewest = int(np.ceil(model.min_leaf / model.sizes.max()))
    tree = cart_tree(X, model.y, model.weight, model.n_classes, model.depth, fewest, n_levels=model.n_levels)
    threshold = tree.threshold.copy()
    for node in tree.branches[tree.category[tree.branches] < 0].tolist():
        known = values[int(np.flatnonzero(tree.weights[node])[0])]
        k = int(np.floor(threshold[node])) + 1
        threshold[node] = Cuts(known).threshold(k) if 0 < k < len(known) else np.copysign(BEYOND, threshold[node])
    return replace(tree, threshold=threshold)


def oct_rules(model: OCT) -> Rules:
    """What the trees of an OCT cost, in the weight of its points."""
    tolerance = min(_ROUNDING * len(model.weight), _MOST_ROUNDING) * float(model.weight.sum())
    return Rules(model.n_classes, float(model.min_leaf), model.complexity * model.baseline, tolerance)


def oct_block(model: OCT) -> Block:
    """All points of an OCT, sorted by every column."""
    rank = model.columns.rank
    order = np.argsort(rank, axis=1, kind="stable").astype(np.int32)
    ordered = np.take_along_axis(rank, order, axis=1)
    last = np.ones(rank.shape, dtype=np.uint8)
    last[:, :-1] = ordered[:, 1:] != ordered[:, :-1]
    return Block(
        order,
        np.ascontiguousarray(rank),
        last,
        model.columns.n_ranks.astype(np.int64),
        np.ascontiguousarray(model.y, dtype=np.int64),
        np.ascontiguousarray(model.weight, dtype=np.float64),
        np.ascontiguousarray(model.sizes, dtype=np.float64),
        np.arange(len(model.y), dtype=np.int64),
    )


def plan_tree(model: OCT, plan: Plan) -> Tree:
    """The OCT tree of a plan all of whose cuts are known."""
    column, cut = np.full(model.tree.n_branches, -1), np.full(model.tree.n_branches, -1)
    todo = [(0, plan)]
    while todo:
        place, node = todo.pop()
        if node.column >= 0:
            assert node.left is not None and node.right is not None
            column[place], cut[place] = node.column, node.cut
            todo += [(2 * place + 1, node.left), (2 * place + 2, node.right)]
    return model.planted(column, cut, np.zeros(model.tree.n_leaves, dtype=np.int64))
