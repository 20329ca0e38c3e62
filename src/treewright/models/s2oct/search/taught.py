"""Trees that learn from a teacher: what is taught is kept, sides first, margins second.

1. A tree is fitted by alternating optimization to the labelled points and to the unlabelled ones with the teacher's
   labels, with few features a split if that is asked for. Labelled points that it has wrong gain weight until they are
   right, or until that does not help.
2. Its hyperplanes are stretched, which gives nearly all labelled points their margins of 1 and moves no point.
3. Thresholds move to where the counts meet the totals and most of what was taught is kept
   (:mod:`treewright.models.s2oct.search.levelling`).

Labelled points that still miss their margins are seen to in :mod:`treewright.models.s2oct.search.labelled_sides`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from scipy import sparse

from treewright.core.arrays import FloatArray, IntArray
from treewright.core.budget import Budget
from treewright.engine.cart import cart_tree
from treewright.engine.leaves import ClassLeaves
from treewright.engine.sparse_trees import TAOResult, improved_sparse_tree
from treewright.engine.starts import balanced_tree, random_tree
from treewright.models.s2oct.search.data import Survey
from treewright.models.s2oct.search.levelling import Levelling
from treewright.tree import Tree, predict_labels, relabelled
from treewright.tree.complete import Planes

__all__ = ["TaughtSettings", "TaughtTrees", "levelled_planes", "taught_planes", "taught_s2oct_tree"]

_HEAVIER = 3.0
"""How much more labelled points weigh once a tree has them wrong."""


@dataclass(frozen=True)
class TaughtSettings:
    """How an S2OCT tree is taught."""

    most: int | None = None
    """Most features of a split, None for any number."""
    own: float = 10.0
    """Weight of a labelled point, of a taught one 1."""
    price: float = 0.2
    """Price of a split on a feature, in taught points."""
    raises: int = 0
    """How often labelled points that are wrong gain weight."""
    gentle: bool = True
    """Whether the totals are met by moves that give up little first, and not by the shortest way."""
    kicks: int = 0
    """How often totals that are met are left again to keep more of what was taught."""


@dataclass(eq=False)
class TaughtTrees:
    """Labelled and taught points of an S2OCT in coordinates of [0, 1], and trees that are fitted to them.

    Parameters
    ----------
    survey, taught, seed
        See :mod:`treewright.models.s2oct.search`.
    settings : TaughtSettings
        How they are taught.
    """

    survey: Survey
    taught: IntArray
    settings: TaughtSettings
    seed: int = 0

    def __post_init__(self) -> None:
        survey, rng = self.survey, np.random.default_rng(self.seed)
        known = survey.sample(rng)
        hidden = np.arange(len(self.taught))
        if len(hidden) > survey.search.taught_points:
            hidden = np.sort(rng.choice(hidden, survey.search.taught_points, replace=False))
        rows = survey.totals.rows[hidden].astype(np.float64)
        self.n_known = len(known)
        self.X = np.ascontiguousarray(survey.unit(np.vstack([survey.X[known], survey.hidden[hidden]])))
        self.y = np.concatenate([survey.y[known], self.taught[hidden]])
        own = survey.weight[known] / survey.weight[known].mean()
        self.weight = np.concatenate([self.settings.own * own, rows / max(rows.mean(), 1.0) if len(rows) else rows])

    def tree(self, budget: Budget) -> Tree:
        """The best of several trees that alternating optimization finds, in the units of the model."""
        best: TAOResult | None = None
        for start in self._starts(budget):
            found = self._passes(start, self.weight, budget)
            if best is None or found.objective < best.objective - 1e-9:
                best = found
            if budget.over:
                break
        assert best is not None
        tree = self._heeding_labels(best.tree, budget)
        return tree.unscaled(1.0 / self.survey.width, self.survey.low)

    def _heeding_labels(self, tree: Tree, budget: Budget) -> Tree:
        """Labelled points that are wrong weigh more and more; the tree with the fewest of them, the first of equals."""
        weight, n = self.weight.copy(), self.n_known
        found = self._labelled(tree)
        best, fewest = found, self._wrong(found)
        for _ in range(self.settings.raises):
            if not fewest or budget.over:
                break
            wrong = np.flatnonzero(predict_labels(found, self.X[:n]) != self.y[:n])
            weight[wrong] *= _HEAVIER
            found = self._labelled(self._passes(found, weight, budget).tree)
            now = self._wrong(found)
            if now < fewest:
                best, fewest = found, now
        return best

    def _wrong(self, tree: Tree) -> float:
        n = self.n_known
        return float(self.weight[:n] @ (predict_labels(tree, self.X[:n]) != self.y[:n]))

    def _labelled(self, tree: Tree) -> Tree:
        """The tree with the labels of most weight at its nodes."""
        bare = tree.with_leaves(np.zeros((tree.n_nodes, self.survey.model.n_classes)), None)
        return relabelled(bare, self.X, self.y, self.weight)

    def _passes(self, tree: Tree, weight: FloatArray, budget: Budget) -> TAOResult:
        leaves, settings = ClassLeaves(self.y, weight, self.survey.model.n_classes), self.settings
        return improved_sparse_tree(
            tree,
            self.X,
            leaves,
            settings.price,
            max_split_features=settings.most,
            max_iter=self.survey.search.taught_passes,
            budget=budget,
        )

    def _starts(self, budget: Budget) -> Iterator[Tree]:
        depth, n_classes, n = self.survey.model.depth, self.survey.model.n_classes, len(self.y)
        yield cart_tree(self.X, self.y, self.weight, n_classes, depth)
        if self.settings.most is None and not budget.over:
            one_hot = sparse.csr_array((np.ones(n), (np.arange(n), self.y)), shape=(n, n_classes))
            yield balanced_tree(self.X, one_hot, self.weight, depth, self.settings.price, budget, 1, self.seed)
        rng, search = np.random.default_rng(self.seed), self.survey.search
        for _ in range(search.random_starts if n <= search.few_points else 1):
            yield random_tree(self.X, depth, rng, True, self.weight)


def taught_s2oct_tree(survey: Survey, taught: IntArray, settings: TaughtSettings, seed: int, budget: Budget) -> Tree:
    """A taught S2OCT tree, in the units of the model; its thresholds are not yet where the totals are met.

    Parameters
    ----------
    survey, taught, seed, budget
        See :mod:`treewright.models.s2oct.search`.
    settings : TaughtSettings
        How they are taught.
    """
    return TaughtTrees(survey, taught, settings, seed).tree(budget.share(survey.search.fitting_share))


def levelled_planes(
    survey: Survey, tree: Tree, taught: IntArray, settings: TaughtSettings, seed: int, budget: Budget
) -> Planes:
    """Hyperplanes of a taught S2OCT tree that meets the totals if moves of its thresholds can, stretched."""
    planes = survey.stretched(survey.completed(tree))
    worth = np.concatenate([settings.own * survey.weight / max(survey.weight.mean(), 1e-300), survey.totals.rows])
    levelling = Levelling(survey, taught, worth, np.random.default_rng(seed), budget, settings.most)
    return levelling.level(planes, settings.gentle, settings.kicks)


def taught_planes(survey: Survey, taught: IntArray, settings: TaughtSettings, seed: int, budget: Budget) -> Planes:
    """Hyperplanes of an S2OCT tree that was taught, then meets the totals if moves of its thresholds can."""
    tree = taught_s2oct_tree(survey, taught, settings, seed, budget)
    return levelled_planes(survey, tree, taught, settings, seed, budget)
