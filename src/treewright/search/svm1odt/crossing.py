r"""Points that change their places in a small tree, with every plane the best one for the points on its two sides.

Once all places are given, a tree of planes falls apart: errors are counted, and the plane of each node is a linear
program. So a tree is searched over the places of its points. Where a point holds a plane up, the dual :math:`\lambda`
of its row says so: without the row the plane would cost less by :math:`(1 + \epsilon) \lambda` at most, as a row that
says nothing has its bound moved by no more than that. Places of such points, and of those that are wrong, are the only
ones worth changing (:meth:`Crossing.cross`). Another way begins anywhere: points take the leaf of their class that they
fall short of least, planes are fitted to that, and so on (:meth:`Crossing.settle`), which is where trees without
errors come from that no way downhill leads to.

Programs have a row for each point and are kept between solves, so this is for some hundreds of points.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import chain

import numpy as np

from treewright.arrays import FloatArray, IntArray
from treewright.budget import Budget
from treewright.formulations.svm1odt import SVM1ODT
from treewright.solvers import Status
from treewright.solvers.linear import LinearProgram
from treewright.tree import Tree, route, side

__all__ = ["Crossing", "Root"]

_MOST_CELLS, _DEEPEST = 120_000, 4
"""Values of all points in the programs of all nodes up to which these are solved fast enough for thousands of them, and
the deepest trees for which there is a table of points, leaves and nodes."""

_EXACT = 1e-9
"""By how much a row of a program may be violated."""

_PRICES, _FITS = (5.0, 50.0), 8
"""What a unit of falling short costs while planes and places are fitted by turns, and how often they are."""

_RELEASES = 0.4
"""Share of the changes in which a whole node lets go of points."""

_FEW = 8
"""Points up to which a program is changed one at a time."""

_GAPS, _ROOTS = 4, 80
"""Gaps of a feature in which roots are tried, and most roots."""


Root = tuple[FloatArray, float]
"""Normal, of the features that planes are made of, and offset of a root."""


@dataclass(frozen=True, eq=False)
class _Solved:
    """A plane, what it costs, and the duals of its rows."""

    value: float
    normal: FloatArray
    offset: float
    dual: FloatArray


class _Program:
    """The plane of a node: columns h+, h-, g, a slack for each point; a row for the value of each point.

    A point on the left has a value and slack of epsilon at least, together, one on the right of minus epsilon at most;
    any other has a value within [-1, 1].
    """

    def __init__(self, model: SVM1ODT, table: FloatArray) -> None:
        (self.n, self.k), self.model = table.shape, model
        k, H = self.k, model.max_coefficient
        upper = np.repeat([H, 1.0 + k * H], [2 * k, 1])
        cost = np.repeat([model.alpha_2, 0.0], [2 * k, 1])
        self.program = LinearProgram(cost, np.repeat([0.0, -upper[-1]], [2 * k, 1]), upper, tolerance=_EXACT)
        self.program.add_rows(np.hstack([-table, table, np.ones((self.n, 1))]), -1.0, 1.0)
        self.program.add_columns(np.zeros(self.n), 0.0, 0.0, rows=np.arange(self.n))

    def put(self, rows: IntArray, sides: IntArray, price: FloatArray, most: float) -> None:
        """Give points their sides, 1 for left, -1 for right, 0 for neither; what a slack costs and how large it is."""
        epsilon, columns = self.model.epsilon, 2 * self.k + 1 + rows
        if len(rows) <= _FEW:
            for row, to, cost in zip(rows.tolist(), sides.tolist(), price.tolist(), strict=True):
                low, high = (epsilon if to == 1 else -1.0), (-epsilon if to == -1 else 1.0)
                slack = (-most if to == -1 else 0.0), (most if to == 1 else 0.0)
                self.program.change_one(row, low, high, 2 * self.k + 1 + row, to * cost, *slack)
            return
        self.program.change_rows(rows, np.where(sides == 1, epsilon, -1.0), np.where(sides == -1, -epsilon, 1.0))
        self.program.change_bounds(columns, np.where(sides == -1, -most, 0.0), np.where(sides == 1, most, 0.0))
        self.program.change_costs(columns, sides * price)

    def solve(self, seconds: float) -> _Solved | None:
        """The best plane; None where there is none, or no time."""
        found = self.program.solve(seconds)
        if found.status is not Status.OPTIMAL or found.x is None:
            return None
        normal = found.x[: self.k] - found.x[self.k : 2 * self.k]
        normal = np.where(np.abs(normal) > 1e-9, normal, 0.0)
        return _Solved(found.objective, normal, float(found.x[2 * self.k]), self.program.duals())


class Crossing:
    """Places of the points of a model, in complete trees.

    Parameters
    ----------
    model : SVM1ODT
        The model; margins are not hard, and numerical features have no gaps. Categorical splits stay as they are.

    Attributes
    ----------
    features : ndarray of int
        Numerical features.
    """

    def __init__(self, model: SVM1ODT) -> None:
        self.model, self.features = model, model.numerical
        self.table = np.ascontiguousarray(model.rows[:, self.features])
        self.weight, self.price = model.group_weight, model.alpha_1 * model.group_size
        self.paths = _paths(model.depth)
        self._programs: list[_Program] = []

    @staticmethod
    def suits(model: SVM1ODT) -> bool:
        """Whether a model is small enough, and one of planes with soft margins and no gaps."""
        if model.hard or not len(model.numerical) or model.has_gaps.any():
            return False
        cells = len(model.rows) * (len(model.numerical) + 5) * model.tree.n_branches
        return model.depth <= _DEEPEST and cells <= _MOST_CELLS

    @property
    def programs(self) -> list[_Program]:
        """The program of each branch, made when they are first needed."""
        if not self._programs:
            self._programs = [_Program(self.model, self.table) for _ in range(self.paths.shape[1])]
        return self._programs

    @property
    def _most(self) -> float:
        # A little less, so that rounding leaves no point nearer to a plane than the model allows.
        return self.model.epsilon - self.model.margin - 10 * _EXACT

    # ------------------------------------------------------------------ from a tree: one point at a time

    def cross(
        self, tree: Tree, rng: np.random.Generator, steps: int, heat: float, budget: Budget
    ) -> tuple[Tree, float]:
        """Let points change their places one at a time, with losses accepted at random, ever more strictly.

        Parameters
        ----------
        tree : Tree
            A complete, feasible tree.
        rng : Generator
            What chance is made of.
        steps : int
            Changes that are tried.
        heat : float
            Loss that is accepted on average, at first, as a share of what planes cost.
        budget : Budget
            Ends the work early.

        Returns
        -------
        Tree, float
            The best tree on the way, and its objective; infinite where the tree given was not feasible.
        """
        state = _Places(self, tree, budget)
        if not np.isfinite(state.value):
            return tree, np.inf
        for step in range(steps):
            if budget.over:
                break
            cold = heat * (1.0 - step / steps) * max(state.planes, 1e-9)
            limit = state.value - cold * float(np.log(1.0 - rng.random()))
            if state.loose and rng.random() < _RELEASES:
                state.release(int(rng.choice(state.loose)), float(rng.random()), rng, limit, budget)
                continue
            moves = state.worthwhile(limit)
            if len(moves):
                point, leaf = moves[rng.integers(len(moves))].tolist()
                state.move(point, leaf, limit, budget)
            elif not state.loose and not len(state.worthwhile(state.value + 3.0 * cold)):
                break
        return state.best_tree(), state.best

    # ------------------------------------------------------------------ from nothing: all points at a time

    def settle(self, start: Tree, labels: IntArray, budget: Budget, keep_root: bool = False) -> Tree:
        """Fit planes to places and places to planes by turns, with given labels of the leaves.

        Parameters
        ----------
        start : Tree
            A complete tree of planes.
        labels : ndarray of int, shape (n_leaves,)
            Labels of the leaves, from the left.
        budget : Budget
            Ends the work early.
        keep_root : bool
            Whether the root stays as it is, and all begins with places: the first leaf of a point's class on its side.
        """
        paths, n_branches, model = self.paths, self.paths.shape[1], self.model
        normals, offsets = start.weights[:n_branches][:, self.features], start.threshold[:n_branches].copy()
        values = offsets - self.table @ normals.T
        lost = self.weight.sum(axis=1)[:, None] - self.weight[:, labels]
        everyone, before = np.arange(len(self.table)), None
        short = self._short(values)
        if keep_root:
            lost = np.where(paths[:, 0] == np.where(values[:, :1] >= 0, 1, -1), lost, np.inf)
            short = np.zeros_like(short)
        for price in _PRICES:
            for _ in range(_FITS):
                leaf = np.argmin(lost + price * model.group_size[:, None] * short, axis=1)
                if budget.over or (before is not None and np.array_equal(leaf, before)):
                    break
                before = leaf
                for b in range(int(keep_root), n_branches):
                    self.programs[b].put(everyone, paths[leaf, b], price * model.group_size, 2.0)
                    found = self.programs[b].solve(budget.remaining)
                    if found is not None:
                        normals[b], offsets[b] = found.normal, found.offset
                short = self._short(offsets - self.table @ normals.T)
        return self.planted(start, dict(enumerate(zip(normals, offsets, strict=True))), labels)

    def _short(self, values: FloatArray) -> FloatArray:
        """By how much each point falls short of the margins on the way to each leaf, in all."""
        short = np.maximum(0.0, self.model.epsilon - self.paths * values[:, None, :])
        return np.asarray(np.einsum("ilb,lb->il", short, np.abs(self.paths)))

    def roots(self) -> list[Root]:
        """Splits by one feature in its widest gaps, those with the shortest normals first."""
        found = [self._in_gaps(np.eye(len(self.features))[k]) for k in range(len(self.features))]
        return sorted(chain.from_iterable(found), key=lambda root: float(np.abs(root[0]).sum()))[:_ROOTS]

    def random_root(self, rng: np.random.Generator) -> Root | None:
        """A split by two or three features of equal weight in a wide gap."""
        some = rng.choice(len(self.features), min(len(self.features), int(rng.integers(2, 4))), replace=False)
        direction = np.zeros(len(self.features))
        direction[some] = rng.choice([-1.0, 1.0], len(some))
        found = self._in_gaps(direction)
        return found[rng.integers(len(found))] if found else None

    def promoted(self, tree: Tree, rng: np.random.Generator) -> Root | None:
        """The plane of a lower node of a tree as a root, or that plane without some of its features."""
        below = tree.branches[(tree.branches > 0) & (tree.category[tree.branches] < 0)]
        if not len(below):
            return None
        node = int(rng.choice(below))
        normal = tree.weights[node, self.features]
        if rng.random() < 0.5:
            return normal, float(tree.threshold[node])
        found = self._in_gaps(normal * (rng.random(len(normal)) < 0.7))
        return found[0] if found else None

    def _in_gaps(self, direction: FloatArray) -> list[Root]:
        """Splits along a direction in its widest gaps, with the margin epsilon where that can be."""
        values = np.unique(self.table @ direction)
        gaps = np.diff(values)
        found = []
        for g in np.argsort(-gaps, kind="stable")[:_GAPS]:
            threshold = float(values[g] + values[g + 1]) / 2
            most = 1.0 / max(threshold - values[0], values[-1] - threshold)
            factor = min(most, self.model.max_coefficient, 2 * self.model.epsilon / float(gaps[g]))
            found.append((factor * direction, factor * threshold))
        return found

    def rooted(self, tree: Tree, root: Root, budget: Budget) -> Tree:
        """A tree with that root, and below it planes that part the heaviest classes of either side."""
        normal, threshold = root
        weights, thresholds, category = tree.weights.copy(), tree.threshold.copy(), tree.category.copy()
        weights[0], thresholds[0], category[0] = 0.0, threshold, -1
        weights[0, self.features] = normal
        left = self.table @ normal <= threshold
        half, labels = len(self.paths) // 2, []
        for part in (left, ~left):
            shares = self.weight[part].sum(axis=0)
            heavy = np.argsort(-shares, kind="stable")[: min(half, int(np.count_nonzero(shares)))]
            labels.append(np.sort(np.resize(heavy, half)))
        start = replace(tree, weights=weights, threshold=thresholds, category=category)
        return self.settle(start, np.concatenate(labels), budget, keep_root=True)

    def planted(self, tree: Tree, planes: dict[int, tuple[FloatArray, float]], labels: IntArray) -> Tree:
        """A complete tree with other planes and labels."""
        weights, threshold, category = tree.weights.copy(), tree.threshold.copy(), tree.category.copy()
        for b, (normal, offset) in planes.items():
            weights[b], category[b] = 0.0, -1
            weights[b, self.features] = normal
            threshold[b] = offset if np.any(normal) else (1.0 if offset >= 0 else -1.0)
        all_labels = np.array(tree.labels)
        all_labels[len(all_labels) - len(labels) :] = labels
        return replace(tree, weights=weights, threshold=threshold, category=category, labels=all_labels)


class _Places:
    """Where all points are, and the best planes for that."""

    def __init__(self, within: Crossing, tree: Tree, budget: Budget) -> None:
        self.within, self.tree = within, tree
        model, paths = within.model, within.paths
        n_branches = paths.shape[1]
        self.leaf = route(tree, model.rows) - n_branches
        self.fixed = tree.category[:n_branches] >= 0
        self.may = np.ones((len(self.leaf), len(paths)), dtype=bool)
        for b in np.flatnonzero(self.fixed).tolist():
            own = np.where(side(tree, model.rows, b), 1, -1)
            self.may &= (paths[:, b] == 0) | (paths[:, b] == own[:, None])
        self.counts = np.zeros((len(paths), model.n_classes))
        np.add.at(self.counts, self.leaf, within.weight)
        self.own = model.alpha_2 * int(np.count_nonzero(self.fixed))
        # What a tree would cost at least, of moves that were tried since the last one that was made.
        self.known = np.full(self.may.shape, -np.inf)
        self.solved: dict[int, _Solved] = {}
        everyone = np.arange(len(self.leaf))
        for b in np.flatnonzero(~self.fixed).tolist():
            within.programs[b].put(everyone, paths[self.leaf, b], within.price, within._most)
            found = within.programs[b].solve(budget.remaining)
            if found is None:
                self.value = self.best = np.inf
                return
            self.solved[b] = found
        self.value = self.best = self._errors(self.counts) + self.own + self.planes
        self._keep()

    @property
    def planes(self) -> float:
        """What the planes that may move cost."""
        return sum(found.value for found in self.solved.values())

    @staticmethod
    def _errors(counts: FloatArray) -> float:
        return float((counts.sum(axis=1) - counts.max(axis=1)).sum())

    def _keep(self) -> None:
        self.best, self.kept = self.value, (dict(self.solved), self.counts.argmax(axis=1))

    def best_tree(self) -> Tree:
        """The best tree so far."""
        solved, labels = self.kept
        return self.within.planted(self.tree, {b: (s.normal, s.offset) for b, s in solved.items()}, labels)

    def worthwhile(self, limit: float) -> IntArray:
        """Points and leaves to move them to, where that may cost less than the limit, as far as duals tell."""
        paths, epsilon = self.within.paths, self.within.model.epsilon
        labels = self.counts.argmax(axis=1)
        hold = np.zeros((len(self.leaf), paths.shape[1]))
        for b, found in self.solved.items():
            hold[:, b] = (1.0 + epsilon) * np.maximum(0.0, paths[self.leaf, b] * found.dual)
        changed = paths[self.leaf][:, None, :] != paths[None, :, :]
        gain = np.einsum("ilb,ib->il", changed, hold)
        gain += self.within.weight[:, labels]
        gain -= gain[np.arange(len(self.leaf)), self.leaf][:, None]
        least = np.maximum(self.value - gain, self.known)
        good = self.may & (least < limit - 1e-9) & (gain > 1e-9)
        good[np.arange(len(self.leaf)), self.leaf] = False
        return np.argwhere(good)

    def move(self, point: int, leaf: int, limit: float, budget: Budget) -> bool:
        """Move a point to a leaf, if the tree costs less than the limit then."""
        places = self.leaf.copy()
        places[point] = leaf
        if self._placed(places, limit, budget, {}):
            return True
        self.known[point, leaf] = limit
        return False

    @property
    def loose(self) -> list[int]:
        """Nodes above the lowest ones whose planes may move."""
        return [b for b in self.solved if 2 * b + 2 < self.within.paths.shape[1]]

    def release(self, node: int, share: float, rng: np.random.Generator, limit: float, budget: Budget) -> bool:
        """Let a plane go where it likes among points that are as right on its other side, if that costs less then.

        A share of those points, drawn at random, has no side while the plane is found, and then the one it is on.
        """
        within, paths = self.within, self.within.paths
        inside = np.flatnonzero(paths[self.leaf, node])
        if not len(inside):
            return False
        other = self._elsewhere(inside, node)
        right = within.weight[:, self.counts.argmax(axis=1)]
        free = (right[inside, other] >= right[inside, self.leaf[inside]]) & self.may[inside, other]
        free &= rng.random(len(inside)) < share
        if not free.any():
            return False
        free, other = inside[free], other[free]
        self._put(node, free, np.zeros(len(free), dtype=np.int64))
        found = within.programs[node].solve(budget.remaining)
        leaf = self.leaf.copy()
        if found is not None:
            goes = np.where(found.offset - within.table[free] @ found.normal >= 0, 1, -1)
            leaf[free] = np.where(goes == paths[self.leaf[free], node], self.leaf[free], other)
        return self._placed(leaf, limit, budget, {node: free})

    def _elsewhere(self, points: IntArray, node: int) -> IntArray:
        """Leaves that points would reach on the other side of a node."""
        within, n_branches = self.within, self.within.paths.shape[1]
        at = np.where(within.paths[self.leaf[points], node] == 1, 2 * node + 2, 2 * node + 1)
        while at[0] < n_branches:
            goes_left = np.empty(len(points), dtype=bool)
            for b in np.unique(at).tolist():
                part = at == b
                if b in self.solved:
                    plane = self.solved[b]
                    goes_left[part] = plane.offset - within.table[points[part]] @ plane.normal >= 0
                else:
                    goes_left[part] = side(self.tree, within.model.rows[points[part]], b)
            at = np.where(goes_left, 2 * at + 1, 2 * at + 2)
        return at - n_branches

    def _put(self, node: int, points: IntArray, sides: IntArray) -> None:
        self.within.programs[node].put(points, sides, self.within.price[points], self.within._most)

    def _placed(self, leaf: IntArray, limit: float, budget: Budget, touched: dict[int, IntArray]) -> bool:
        """Give all points their leaves, if the tree costs less than the limit then; `touched` sides are put again."""
        within, paths = self.within, self.within.paths
        moved = np.flatnonzero(leaf != self.leaf)
        counts = np.zeros_like(self.counts)
        np.add.at(counts, leaf, within.weight)
        value, found = self._errors(counts) + self.own, dict[int, _Solved]()
        for b in self.solved:
            points = moved[paths[leaf[moved], b] != paths[self.leaf[moved], b]]
            points = np.union1d(points, touched[b]) if b in touched else points
            if not len(points) or not value < limit:
                value += self.solved[b].value if not len(points) else 0.0
                continue
            self._put(b, points, paths[leaf[points], b])
            touched = touched | {b: points}
            solved = within.programs[b].solve(budget.remaining)
            found[b] = solved if solved is not None else self.solved[b]
            value += np.inf if solved is None else solved.value
        if not value < limit:
            for b, points in touched.items():
                self._put(b, points, paths[self.leaf[points], b])
            return False
        self.solved |= found
        self.known[:] = -np.inf
        self.counts, self.leaf, self.value = counts, leaf, value
        if value < self.best - 1e-9:
            self._keep()
        return True


def _paths(depth: int) -> IntArray:
    """For each leaf of a complete tree and each branch: 1 where its way goes left there, -1 right, 0 elsewhere."""
    n_branches = 2**depth - 1
    paths = np.zeros((n_branches + 1, n_branches), dtype=np.int64)
    for leaf in range(n_branches + 1):
        node = n_branches + leaf
        while node > 0:
            paths[leaf, (node - 1) // 2] = 1 if node % 2 else -1
            node = (node - 1) // 2
    return paths
