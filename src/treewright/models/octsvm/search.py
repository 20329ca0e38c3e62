"""Good OCTSVMs without branch and bound: several starts, improved node by node, kicked and improved again.

How long normals may be is a part of the problem where the margin has a price. For a given length the rest is a matter
of ratios, so lengths are tried from short to long, each from the tree of the last one, and later near the best one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from treewright.core.arrays import FloatArray
from treewright.core.budget import Budget
from treewright.engine.cart import cart_tree
from treewright.engine.draws import draws_of
from treewright.engine.leaves import ClassLeaves
from treewright.engine.sparse_trees import improved_sparse_tree
from treewright.models.octsvm.loss import normal_lengths
from treewright.models.octsvm.machines import NORMS, Machines, Prices
from treewright.models.octsvm.node_loops import improve_node, kicked, total_cost
from treewright.models.octsvm.objective import OCTSVM
from treewright.models.octsvm.repair import best_scaled_tree
from treewright.optimize.incumbent import Incumbent
from treewright.solvers.conic import fixed_conic
from treewright.tree import Tree

__all__ = [
    "grown_octsvm",
    "improved_machines",
    "leaf_machines",
    "machines_of_tree",
    "search_octsvm",
    "single_leaf_octsvm",
    "tree_of_machines",
]

_PASSES = 10
"""Most passes over a tree."""

_WORTH = 1e-4
"""Share of the objective that a restart must save to be worth more of them."""

_NOISE = 0.5
"""Power of the random factors that what points have at stake gets in a restart."""

_LENGTHS = 6
"""Lengths of normals that are tried, each twice the last one."""

_MANY = 20_000
"""Points that the search looks at; of more it draws so many. The trees are measured on all."""

_TAO_ALPHA = 0.3
"""Price of a normal in the tree of alternating optimization that is a start."""

_POLISHED_CELLS = 150_000
"""Non-zeros of a program up to which the best tree is finished with its integers fixed."""


def search_octsvm(
    best: Incumbent[Tree],
    model: OCTSVM,
    starts: Iterable[Tree],
    budget: Budget,
    seed: int = 0,
    patience: int = 4,
) -> None:
    """Offer ever better OCTSVM trees to `best`.

    Parameters
    ----------
    best : Incumbent
        Collects the trees; the search ends when it is proven optimal.
    model : OCTSVM
        The model, or RE-SVM.
    starts : iterable of Tree
        Trees to begin with, in the units of the model.
    budget : Budget
        Ends the search early. A single leaf and the given starts are offered whatever it says.
    seed : int
        Seed of everything random.
    patience : int
        Restarts without a better tree after which the search ends, or three times as many in all; 0 for the starts
        alone.

    Examples
    --------
    A band, which one hyperplane cannot cut out:

    >>> X, y = np.array([[0.0], [0.1], [0.4], [0.6], [0.9], [1.0]]), np.array([0, 0, 1, 1, 0, 0])
    >>> model = OCTSVM(X, y, np.ones(6), depth=1, c2=1.0, c3=0.1, max_norm=10.0, margin_price=0.0)
    >>> best = Incumbent(model)
    >>> search_octsvm(best, model, [], Budget(10.0))
    >>> len(best.solution.branches), best.objective < 3
    (2, True)
    """
    given = list(starts)
    for tree in [*given, single_leaf_octsvm(model)]:
        best.offer(tree)
    if budget.over or best.proven:
        return
    work = _Work(best, model, budget, np.random.default_rng(seed))
    work.from_starts(given)
    work.restarts(patience)
    work.polish()


def single_leaf_octsvm(model: OCTSVM) -> Tree:
    """The OCTSVM tree that is a leaf."""
    return Tree.leaf(np.bincount(model.y, model.weight, 2), model.X.shape[1])


@dataclass
class _Work:
    """A search under way."""

    best: Incumbent[Tree]
    model: OCTSVM
    budget: Budget
    rng: np.random.Generator

    def __post_init__(self) -> None:
        model = self.model
        some = np.arange(len(model.X))
        if len(some) > _MANY:
            some = np.sort(self.rng.choice(len(some), _MANY, replace=False))
        self.y, self.sign = model.y[some], np.ascontiguousarray(model.sign[some])
        self.X = np.ascontiguousarray(model.X[some], dtype=np.float64)
        # what some points stand for is all of it
        self.weight = model.weight[some] * (model.weight.sum() / max(model.weight[some].sum(), 1e-300))
        self.lengths = _lengths(model)
        self.shape = (2 ** (model.depth + 1) - 1, model.X.shape[1])

    @property
    def over(self) -> bool:
        return self.budget.over or self.best.proven

    def prices(self, limit: float) -> Prices:
        model = self.model
        return Prices(model.depth, model.c2 / model.c1, model.c3 / model.c1, limit, NORMS[model.norm])

    def from_starts(self, given: list[Tree]) -> None:
        """Improve every start; a leaf at every length, from the tree of the last one, others at the best lengths."""
        for number, tree in enumerate(self._starts(given)):
            start = tree
            for limit in self.lengths if number == 0 else self._best_lengths():
                if self.over:
                    return
                start = self._improved(start, float(limit))

    def _starts(self, given: list[Tree]) -> Iterator[Tree]:
        model = self.model
        yield single_leaf_octsvm(model)
        yield from given
        if model.depth == 0 or self.over or len(np.unique(self.y)) < 2:
            return
        cart = cart_tree(self.X, self.y, self.weight, 2, model.depth + 1)
        yield best_scaled_tree(model, cart)  # its normals have length 1, which means nothing
        if not self.over:
            # normals have a price in rows there: weights of mean 1
            leaves = ClassLeaves(self.y, self.weight / self.weight.mean(), 2)
            found = improved_sparse_tree(cart, self.X, leaves, _TAO_ALPHA, budget=self.budget.share(0.2)).tree
            yield best_scaled_tree(model, found)

    def _improved(self, tree: Tree, limit: float, noise: float = 0.0) -> Tree:
        """Improve a tree and offer it."""
        machines = machines_of_tree(self.model.repair(tree), self.model.depth)
        found = tree_of_machines(self._run(machines, limit, noise))
        self.best.offer(found)
        return found

    def _run(self, machines: Machines, limit: float, noise: float) -> Machines:
        prices = self.prices(limit)
        shortened_normals(machines, prices)
        return improved_machines(self.X, self.sign, self.weight, machines, prices, self.rng, self.budget, noise)

    def _best_lengths(self) -> FloatArray:
        """The length that is nearest to that of the best tree, and the next one."""
        assert self.best.solution is not None
        longest = float(normal_lengths(self.best.solution.weights, self.model.norm).max(initial=0.0))
        at = int(np.argmin(np.abs(np.log(self.lengths / max(longest, 1e-9)))))
        return self.lengths[at : at + 2]

    def restarts(self, patience: int) -> None:
        """Kick the best tree, or begin anew, and improve that, until it no longer helps."""
        failures, number = 0, 0
        while failures < patience and number < 3 * patience and not self.over:
            assert self.best.solution is not None
            machines = machines_of_tree(self.best.solution, self.model.depth)
            nearest = self._best_lengths()[0]
            limit = float(nearest * 2.0 ** self.rng.uniform(-0.5, 0.5)) if len(self.lengths) > 1 else float(nearest)
            kicked(self.X, self.sign, machines, self.prices(limit), number % 3 == 0, draws_of(self.rng))
            machines = self._run(machines, limit, _NOISE)
            before = self.best.objective
            self.best.offer(tree_of_machines(self._run(machines, limit, 0.0)))
            better = self.best.objective < before * (1 - _WORTH)
            failures, number = 0 if better else failures + 1, number + 1

    def polish(self) -> None:
        """Finish the best tree: ways and labels fixed, the rest is convex."""
        model, tree = self.model, self.best.solution
        assert tree is not None
        if self.over or not len(tree.branches) or model.program_cells > _POLISHED_CELLS:
            return
        program = model.build()
        point = fixed_conic(program, model.encode(tree), max(0.01, self.budget.remaining))
        if point is not None:
            self.best.offer(model.decode(point))


def _lengths(model: OCTSVM) -> FloatArray:
    """Lengths of normals that are worth a try, the shortest first: the one that is given if it costs nothing."""
    limit = model.norm_limit
    if model.margin_price == 0 or not np.isfinite(limit) or limit <= 0:
        return np.array([min(limit, model.max_norm or limit) if np.isfinite(limit) and limit > 0 else 1.0])
    # a margin wider than the data, of which the unit cube is the most, serves nobody
    least = 0.5 / np.sqrt(model.X.shape[1])
    most = max(limit, 2 * least)
    return np.unique(np.minimum(most, np.geomspace(least, min(most, least * 4.0**_LENGTHS), _LENGTHS)))


def shortened_normals(machines: Machines, prices: Prices) -> None:
    """Shorten normals of an OCTSVM that are longer than they may be; no point changes sides."""
    order = {0: 2, 1: 1, 2: np.inf}[prices.norm]
    long = np.linalg.norm(machines.w, order, axis=1)
    factor = np.where(long > prices.limit, prices.limit / np.maximum(long, 1e-300), 1.0)
    machines.w[:], machines.b[:] = machines.w * factor[:, None], machines.b * factor


def improved_machines(
    X: FloatArray,
    sign: FloatArray,
    weight: FloatArray,
    machines: Machines,
    prices: Prices,
    rng: np.random.Generator,
    budget: Budget,
    noise: float = 0.0,
    passes: int = _PASSES,
) -> Machines:
    """Improve the machines of an OCTSVM in place, deepest nodes first, until a pass changes nothing or time ends."""
    before, draws = np.inf, draws_of(rng)
    for _ in range(passes):
        changed = False
        for t in range(len(machines.b) - 1, -1, -1):
            if budget.over:
                return machines
            changed |= improve_node(X, sign, weight, machines, prices, t, noise, draws)
        cost = total_cost(X, sign, weight, machines, prices)
        if not changed or (noise == 0.0 and cost >= before - 1e-7 * max(1.0, cost)):
            break
        before = cost
    return machines


def leaf_machines(depth: int, n_features: int, sign: FloatArray, weight: FloatArray) -> Machines:
    """The machines of an OCTSVM that is a leaf of the heavier class, to begin with."""
    n = 2 ** (depth + 1) - 1
    label = 1.0 if sign @ weight >= 0 else -1.0
    return Machines(np.zeros((n, n_features)), np.zeros(n), np.zeros(n, dtype=bool), np.full(n, label))


def grown_octsvm(
    X: FloatArray,
    sign: FloatArray,
    weight: FloatArray,
    prices: Prices,
    rng: np.random.Generator,
    budget: Budget,
    restarts: int = 0,
) -> Machines:
    """An OCTSVM tree grown from a leaf, and the best of some restarts, without the other starts of a search."""
    best = improved_machines(
        X, sign, weight, leaf_machines(prices.depth, X.shape[1], sign, weight), prices, rng, budget
    )
    least = total_cost(X, sign, weight, best, prices)
    for number in range(restarts):
        if budget.over:
            break
        other = Machines(best.w.copy(), best.b.copy(), best.split.copy(), best.label.copy())
        kicked(X, sign, other, prices, number % 3 == 0, draws_of(rng))
        improved_machines(X, sign, weight, other, prices, rng, budget, _NOISE)
        improved_machines(X, sign, weight, other, prices, rng, budget)
        cost = total_cost(X, sign, weight, other, prices)
        if cost < least:
            best, least = other, cost
    return best


def machines_of_tree(tree: Tree, depth: int) -> Machines:
    """The splits of an OCTSVM tree of depth ``depth + 1`` at most as arrays.

    Examples
    --------
    >>> machines = machines_of_tree(Tree.stump([2.0], 0.5, [[1.0, 0.0], [0.0, 1.0]]), depth=1)
    >>> machines.b.tolist(), machines.label.tolist()
    ([-0.5, 0.0, 0.0], [1.0, -1.0, 1.0])
    """
    n = 2 ** (depth + 1) - 1
    machines = Machines(np.zeros((n, tree.n_features)), np.zeros(n), np.zeros(n, dtype=bool), np.ones(n))
    assert tree.labels is not None
    for node, heap in enumerate(tree.heap_numbers):
        if heap <= n and tree.left[node] >= 0:
            machines.w[heap - 1], machines.b[heap - 1] = tree.weights[node], -tree.threshold[node]
            machines.split[heap - 1] = True
        elif heap <= n:
            machines.label[heap - 1] = 1.0 if tree.labels[node] == 1 else -1.0
    return machines


def tree_of_machines(machines: Machines) -> Tree:
    """Arrays of an OCTSVM search as a tree, whose leaves have labels and no weights yet.

    Examples
    --------
    >>> tree_of_machines(machines_of_tree(Tree.stump([2.0], 0.5, [[1.0, 0.0], [0.0, 1.0]]), depth=1)).threshold[0]
    np.float64(0.5)
    """
    n = len(machines.b)
    labels = np.empty(2 * n + 1, dtype=np.int64)
    labels[:n] = machines.label > 0
    labels[n:] = np.tile([0, 1], (n + 1) // 2)
    return Tree.from_heap(machines.split, machines.w, -machines.b, np.zeros((2 * n + 1, 2)), labels)
