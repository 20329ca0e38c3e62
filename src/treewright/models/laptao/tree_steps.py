"""Models for the tree step of LapTAO: alternating trees, forests of them, CART, any regressor."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from sklearn.base import clone
from sklearn.multioutput import MultiOutputRegressor
from sklearn.utils import get_tags

from treewright.core.arrays import FloatArray, IntArray
from treewright.core.budget import Budget
from treewright.data import target_spread
from treewright.engine.alternate import Alternation
from treewright.engine.cart import cart_rows, cart_tree
from treewright.engine.leaves import MeanLeaves
from treewright.engine.stretch import Stretch, improve_stretched
from treewright.engine.thinning import thinned_tree
from treewright.models.laptao.rounds import FittedStep
from treewright.splits.points import Points, Splits
from treewright.splits.sparse_nodes import SparseNodes
from treewright.tree import Tree, route
from treewright.tree.structure import Shape

__all__ = ["AlternatingStep", "CartStep", "ForestStep", "ImaginedStep", "NoStep", "RegressorStep"]

_LAST_TREES = 3
"""Trees that a forest has at least, however little time there is."""


class AlternatingStep:
    """LapTAO step: a tree by alternating optimization, improved by a few passes each time.

    Parameters
    ----------
    points : Points
        Points.
    weight : ndarray of shape (n_points,)
        Weights.
    make_start : callable
        Targets and alpha to the tree to start from.
    relative_alpha : float
        Price of a split for targets that vary by 1; it is multiplied by the variance of the first targets.
    first_passes, passes : int
        Passes of the first fit and of each later one.
    max_split_features : int or None
        Most features of a split, None for any number.
    n_jobs : int
        Threads.
    stretch : Stretch or None
        How points are stretched once the rounds are over, None for not at all.
    """

    def __init__(
        self,
        points: Points,
        weight: FloatArray,
        make_start: Callable[[FloatArray, float], Tree],
        relative_alpha: float,
        first_passes: int,
        passes: int,
        max_split_features: int | None = None,
        n_jobs: int = 1,
        stretch: Stretch | None = None,
    ) -> None:
        self.X, self.n_levels = points.X, points.n_levels
        self.weight, self.make_start, self.relative_alpha = weight, make_start, relative_alpha
        self.first_passes, self.passes, self.n_jobs = first_passes, passes, n_jobs
        self.max_split_features, self.stretch = max_split_features, stretch
        self.state: Alternation | None = None
        self.nodes: SparseNodes
        self.targets: FloatArray
        self.alpha = relative_alpha

    def fit(self, targets: FloatArray, budget: Budget) -> FittedStep:
        """Fit targets of the points; after the first time, from where the last fit ended."""
        leaves = MeanLeaves(targets, self.weight)
        self.targets, passes = targets, self.passes
        if self.state is None:
            self.alpha = self.relative_alpha * target_spread(targets, self.weight) ** 2
            start = self.make_start(targets, self.alpha)
            start = thinned_tree(start, self.X, self.max_split_features, self.n_levels)
            self.nodes = SparseNodes(self.alpha, self.max_split_features)
            self.state = Alternation(start, self.X, leaves, self.nodes, self.n_jobs, self.n_levels)
            passes = self.first_passes
        else:
            self.state.retarget(leaves)
        for _ in range(passes):
            if budget.over or not self.state.improve(budget):
                break
        return self._fitted(self.state)

    def finish(self, model: Tree, budget: Budget) -> FittedStep | None:
        """Improve a tree on stretched points, whose targets are those of the last fit."""
        if self.stretch is None or self.state is None:
            return None
        state = improve_stretched(
            model,
            self.X,
            self.targets,
            self.weight,
            lambda X, targets, weight: MeanLeaves(targets, weight),
            self.alpha,
            self.stretch,
            budget,
            max_split_features=self.max_split_features,
            n_jobs=self.n_jobs,
            starts=self.nodes.starts,
            n_levels=self.n_levels,
        )
        return self._fitted(state)

    @staticmethod
    def _fitted(state: Alternation) -> FittedStep:
        return FittedStep(state.leaves.table()[0][state.leaf], state.price, state.leaf.copy(), state.tree())


class ImaginedStep:
    """A LapTAO tree step that also sees imagined points, whose targets stay what they are.

    Parameters
    ----------
    inner : TreeStep
        Step of a tree on the points and then the imagined ones.
    targets : ndarray of shape (n_imagined, n_outputs)
        Targets of the imagined points.
    """

    def __init__(self, inner: AlternatingStep, targets: FloatArray) -> None:
        self.inner, self.targets = inner, targets

    @property
    def alpha(self) -> float:
        """Price of a split."""
        return self.inner.alpha

    def fit(self, targets: FloatArray, budget: Budget) -> FittedStep:
        """Fit targets of the points; after the first time, from where the last fit ended."""
        return self._of_points(self.inner.fit(np.vstack([targets, self.targets]), budget))

    def finish(self, model: Tree, budget: Budget) -> FittedStep | None:
        """Improve a tree on stretched points."""
        found = self.inner.finish(model, budget)
        return None if found is None else self._of_points(found)

    def _of_points(self, found: FittedStep) -> FittedStep:
        n = len(found.values) - len(self.targets)
        assert found.leaf is not None
        return found._replace(values=found.values[:n], leaf=found.leaf[:n])


class ForestStep:
    """LapTAO step: a forest of alternating trees, each on some points and features; it predicts their mean.

    Parameters
    ----------
    points, weight
        As for :class:`AlternatingStep`.
    make_member : callable
        Points, weights and seed of a member to its step.
    n_estimators : int
        Members.
    max_samples, max_features : float
        Shares of points and features of a member.
    seed : int
        Seed of all that is drawn.
    n_jobs : int
        Threads, over the members.
    """

    def __init__(
        self,
        points: Points,
        weight: FloatArray,
        make_member: Callable[[Points, FloatArray, int], AlternatingStep],
        n_estimators: int,
        max_samples: float,
        max_features: float,
        seed: int,
        n_jobs: int = 1,
    ) -> None:
        rng, X, n_levels = np.random.default_rng(seed), points.X, points.n_levels
        n, p = X.shape
        self.points, self.n_jobs = points, n_jobs
        self.rows, self.features, self.members = [], [], []
        for _ in range(n_estimators):
            rows = np.sort(rng.choice(n, max(1, round(max_samples * n)), replace=False))
            features = np.sort(rng.choice(p, max(1, round(max_features * p)), replace=False))
            part = X[rows][:, features]
            part = part if hasattr(part, "tocsr") else np.ascontiguousarray(part)
            self.rows.append(rows)
            self.features.append(features)
            levels = n_levels[features] if n_levels is not None and n_levels[features].any() else None
            self.members.append(make_member(Points(part, levels), weight[rows], int(rng.integers(2**31 - 1))))

    def fit(self, targets: FloatArray, budget: Budget) -> FittedStep:
        """Fit all members, side by side; once time is over, there are no new ones but for the first few."""

        def work(number: int) -> FittedStep | None:
            member = self.members[number]
            if number >= _LAST_TREES and member.state is None and budget.over:
                return None
            return member.fit(targets[self.rows[number]], budget)

        found = self._each(work)
        assert found is not None
        return found

    def finish(self, model: list[Tree], budget: Budget) -> FittedStep | None:
        """Improve all members on stretched points."""

        def work(number: int) -> FittedStep | None:
            tree, features = model[number], self.features[number]
            place = np.append(np.searchsorted(features, np.arange(tree.n_features)), -1)  # of -1, no category, -1
            part = replace(tree, weights=tree.weights[:, features], category=place[tree.category])
            return self.members[number].finish(part, budget)

        return self._each(work)

    def _each(self, work: Callable[[int], FittedStep | None]) -> FittedStep | None:
        """What the forest predicts after some work on each member, side by side; None where there was none to do."""

        def one(number: int) -> tuple[Tree, IntArray, float] | None:
            done = work(number)
            if done is None:
                return None
            tree = self._whole(done.model, self.features[number])
            shape, everyone = Shape.of(tree), np.arange(self.points.X.shape[0])
            splits = Splits.of(tree, self.points.n_levels)
            leaf = self.points.walk(shape, splits, everyone, np.zeros_like(everyone))
            return tree, leaf, done.price

        with Parallel(n_jobs=self.n_jobs, backend="threading") as parallel:
            found = [done for done in parallel(map(delayed(one), range(len(self.members)))) if done is not None]
        if not found:
            return None
        values = np.mean([tree.values[leaf] for tree, leaf, _ in found], axis=0)
        price = sum(price for _, _, price in found) / len(found)
        return FittedStep(
            values, price, np.column_stack([leaf for _, leaf, _ in found]), [tree for tree, _, _ in found]
        )

    def _whole(self, tree: Tree, features: IntArray) -> Tree:
        """The tree on all features."""
        weights = np.zeros((tree.n_nodes, self.points.X.shape[1]))
        weights[:, features] = tree.weights
        return replace(tree, weights=weights, category=np.append(features, -1)[tree.category])


class _GrownAnew:
    """What is fitted anew each time has nothing to finish."""

    def finish(self, model: Any, budget: Budget) -> FittedStep | None:
        """Leave the model as it is."""
        return None


class CartStep(_GrownAnew):
    """LapTAO step: CART, grown anew each time; it needs a seed for ties."""

    def __init__(self, X: Any, weight: FloatArray, max_depth: int, seed: int, n_levels: IntArray | None = None) -> None:
        self.X, self.weight, self.max_depth, self.seed, self.n_levels = X, weight, max_depth, seed, n_levels

    def fit(self, targets: FloatArray, budget: Budget) -> FittedStep:
        """Grow a tree on the targets; where time is short, on those of some points."""
        some = cart_rows(self.X, self.max_depth, self.seed, budget)
        part = slice(None) if len(some) == len(targets) else some
        X, weight = self.X[part], self.weight[part]
        tree = cart_tree(X, targets[part], weight, None, self.max_depth, seed=self.seed, n_levels=self.n_levels)
        leaf = route(tree, self.X)
        return FittedStep(tree.values[leaf], 0.0, leaf, tree)


class RegressorStep(_GrownAnew):
    """LapTAO step: any regressor of scikit-learn, fitted anew each time.

    Parameters
    ----------
    X : ndarray or csr_array of shape (n_points, n_features)
        Points.
    estimator : estimator
        The regressor; one that does not know several outputs is fitted to each of them.
    weight : ndarray of shape (n_points,) or None
        Weights, for a regressor whose ``fit`` takes ``sample_weight``.
    copies : ndarray of int, shape (n_points,), or None
        How often each point is there, for a regressor that gets no weights.
    """

    def __init__(
        self, X: Any, estimator: Any, weight: FloatArray | None = None, copies: IntArray | None = None
    ) -> None:
        self.X, self.estimator = X, estimator
        self.extra = {} if weight is None else {"sample_weight": weight}
        self.rows: Any = slice(None)
        if copies is not None and np.any(copies != 1):
            self.rows = np.repeat(np.arange(X.shape[0]), copies)

    def fit(self, targets: FloatArray, budget: Budget) -> FittedStep:
        """Fit a copy of the regressor."""
        wanted, model = targets, clone(self.estimator)
        knows = get_tags(model).target_tags
        if targets.shape[1] == 1 and knows.single_output:
            wanted = targets[:, 0]
        elif targets.shape[1] > 1 and not knows.multi_output:
            model = MultiOutputRegressor(model)
        model.fit(self.X[self.rows], wanted[self.rows], **self.extra)
        values = np.asarray(model.predict(self.X), dtype=np.float64).reshape(targets.shape)
        return FittedStep(values, 0.0, None, model)


class NoStep(_GrownAnew):
    """LapTAO step without a model at all: what the graph says is all there is."""

    def fit(self, targets: FloatArray, budget: Budget) -> FittedStep:
        """Take the targets as they are."""
        return FittedStep(targets, 0.0, None, None)
