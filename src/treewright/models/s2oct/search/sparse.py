"""The path from the sparsest taught tree upward: the smallest tree that has learned nearly all that there is to learn.

A tree is there to be read. Each step of the path is a taught tree with more features a split, or more splits; its
thresholds are where the totals are met. What a step has learned is the share of the unlabelled rows on which it agrees
with the teacher, and of the labelled ones, together. The first step that meets the totals and has learned nearly as
much as the best one is taken: what more terms would add is mostly what the teacher itself does not know. Splits of any
number of features are for tables where no others meet the totals.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from treewright.core.arrays import IntArray
from treewright.core.budget import Budget
from treewright.core.progress import note, stage
from treewright.models.s2oct.objective import S2OCT
from treewright.models.s2oct.search.data import Survey
from treewright.models.s2oct.search.labelled_sides import right_planes
from treewright.models.s2oct.search.levelling import MISSED
from treewright.models.s2oct.search.taught import TaughtSettings, levelled_planes, taught_s2oct_tree
from treewright.tree import Tree, n_split_weights, predict_labels, route
from treewright.tree.structure import LEAF

__all__ = ["SizedTree", "all_right_tree", "chosen_size", "pruned_s2oct_tree", "sized_trees", "path_sizes"]

_OWN = 3.0
"""Weight of a labelled point, of a taught one 1."""
_NEARLY = 0.04
"""Share of the rows by which a smaller tree may have learned less than the best one."""
_LOSS = 0.01
"""Share that a tree may lose if it gets all labels right for it."""
_FEW = 0.01
"""Leaves with a smaller share of the unlabelled rows, and no labelled one, are pruned where that costs nothing."""


@dataclass(frozen=True)
class SizedTree:
    """A step of the path from sparse to dense S2OCT trees."""

    tree: Tree
    """In the units of the model, without what no point reaches."""
    most: int | None
    """Features that a split was allowed to have."""
    missed: int
    """Rows that would have to change class for the totals to hold."""
    learned: float
    """Share of what labels and teacher say that it gets right."""
    wrong: int
    """Labelled points that it gets wrong."""
    missed_share: float = 0.0
    """Rows that miss the totals, as a share of all rows."""
    n_classes: int = 0
    """Classes that it gives to unlabelled rows."""

    @property
    def terms(self) -> int:
        """Features of its splits, summed up."""
        return n_split_weights(self.tree)

    @property
    def score(self) -> float:
        """What it has learned, less several times the rows that miss the totals."""
        return self.learned - MISSED * self.missed_share


@stage("trees of several sizes")
def sized_trees(survey: Survey, taught: IntArray, seed: int, budget: Budget) -> list[SizedTree]:
    """Taught S2OCT trees from sparse to dense; at least one whatever the budget.

    Parameters
    ----------
    survey, taught, seed, budget
        See :mod:`treewright.models.s2oct.search`.
    """
    found = list[SizedTree]()
    # A lower price often changes nothing: then the tree that came of it stands for both.
    known = dict[tuple[int | None, bytes, bytes], SizedTree]()
    sizes = path_sizes(survey)
    for number, (most, price) in enumerate(sizes):
        if found and budget.over:
            break
        best = f"{max(step.learned for step in found):.1%} learned" if found else ""
        note(part=(number + 1, len(sizes)), detail=best)
        settings = TaughtSettings(most, _OWN, price, kicks=survey.search.path_kicks)
        tree = taught_s2oct_tree(survey, taught, settings, seed, budget)
        place = (most, tree.weights.tobytes(), tree.threshold.tobytes())
        if place not in known:
            planes = levelled_planes(survey, tree, taught, settings, seed, budget)
            known[place] = measured_s2oct_tree(survey, planes.to_tree(survey.model.n_classes), taught, most)
        found.append(known[place])
    return found


def path_sizes(survey: Survey) -> list[tuple[int | None, float]]:
    """The path of S2OCT tree sizes for so many features: the first step has at most all, others with more go."""
    n_features = survey.model.X.shape[1]
    (most, price), *others = survey.search.path
    first = n_features if most is None else min(most, n_features)
    return [(first, price), *((few, of) for few, of in others if few is None or few <= n_features)]


def measured_s2oct_tree(survey: Survey, tree: Tree, taught: IntArray, most: int | None) -> SizedTree:
    """An S2OCT tree made feasible and pruned, and what it has learned."""
    model = survey.model
    tree = pruned_s2oct_tree(model, model.repair(tree), taught)
    known, hidden = predict_labels(tree, survey.X), predict_labels(tree, survey.hidden)
    own, rows = _OWN * survey.weight / max(survey.weight.mean(), 1e-300), model.totals.rows
    right = float(own @ (known == survey.y) + rows @ (hidden == taught))
    learned = right / max(float(own.sum() + rows.sum()), 1e-300)
    missed = int(model.totals.missed(hidden))
    wrong = int(np.count_nonzero(known != survey.y))
    given = len(np.unique(hidden))
    return SizedTree(tree, most, missed, learned, wrong, missed / max(float(rows.sum()), 1.0), given)


def chosen_size(path: list[SizedTree]) -> SizedTree:
    """The S2OCT tree of the fewest terms that meets the totals and has learned nearly as much as the best of these.

    Where none meets the totals, rows that miss them count as several that were not learned, and of trees that are
    nearly as good those come first that know the most classes: one that never says what few rows are is no summary.
    """
    met = [step for step in path if step.missed == 0]
    # Whatever a split of many features agrees with, nobody reads it.
    good = [step for step in met or path if step.most is not None] or met or path
    enough = max(step.score for step in good) - _NEARLY
    near = [step for step in good if step.score >= enough]
    return min(near, key=lambda step: (0 if met else -step.n_classes, step.terms, -step.score))


@stage("all labels right")
def all_right_tree(survey: Survey, step: SizedTree, taught: IntArray, seed: int, budget: Budget) -> SizedTree:
    """S2OCT tree with all labels right and the totals met, if its features allow that at next to no loss."""
    model = survey.model
    if model.objective(step.tree) <= 0.0 or budget.over:
        return step
    planes = survey.stretched(survey.completed(step.tree))
    support, rng = planes.omega != 0, np.random.default_rng(seed)
    tree = right_planes(survey, planes, taught, rng, budget, support).to_tree(model.n_classes)
    found = measured_s2oct_tree(survey, tree, taught, step.most)
    good = model.objective(found.tree) <= 1e-9 and found.learned >= step.learned - _LOSS
    return found if good and found.terms <= step.terms else step


def pruned_s2oct_tree(model: S2OCT, tree: Tree, taught: IntArray | None = None) -> Tree:
    """An S2OCT tree without splits that nobody needs.

    Splits that send all points one way, or to leaves of the same label, go. So do leaves that no labelled point and
    hardly any other reaches, where the totals are met as well without them and, if `taught` is given, no fewer points
    have the labels that they should have; but each class of labelled points keeps a leaf.
    """
    X, unlabelled = model.X, model.unlabelled
    while True:
        labels = predict_labels(tree, X)
        missed = model.totals.missed(labels[unlabelled])
        simpler = _without_one(model, tree, labels, missed, taught)
        if simpler is None:
            return tree
        tree = simpler


def _without_one(model: S2OCT, tree: Tree, labels: IntArray, missed: float, taught: IntArray | None) -> Tree | None:
    """The tree without one of its lowest splits, None if it needs all of them."""
    leaf, rows = route(tree, model.X), model.rows.astype(np.float64)
    few = _FEW * rows.sum()
    wanted = np.where(model.y >= 0, model.y, -1)
    if taught is not None:
        wanted[model.unlabelled] = taught
    assert tree.labels is not None
    own, counts = tree.labels[tree.leaves], np.bincount(tree.labels[tree.leaves], minlength=model.n_classes)
    # The error of a labelled point is that of a leaf of its class, so each such class keeps one.
    last = tree.leaves[(counts[own] == 1) & np.isin(own, model.present)]
    for branch in tree.branches[::-1]:
        sides = tree.left[branch], tree.right[branch]
        if any(tree.left[side] != LEAF for side in sides):
            continue
        for lost, other in (sides, sides[::-1]):
            label = tree.labels[other]
            here = leaf == lost
            same = tree.labels[lost] == label
            if not same:
                if np.any(model.y[here] >= 0) or rows[here].sum() > few or lost in last:
                    continue
                new = np.where(here, label, labels)
                if model.totals.missed(new[model.unlabelled]) > missed:
                    continue
                if taught is not None and rows @ (new == wanted) < rows @ (labels == wanted):
                    continue
            changed = tree.labels.copy()
            changed[branch] = label
            kept = np.ones(tree.n_nodes, dtype=bool)
            kept[list(sides)] = False
            return tree.with_leaves(tree.values, changed).collapsed(kept)
    return None
