"""The teacher that is made where none is given: several classifiers, pooled by labels left out, refined on their own.

Where labels are few, which classifier is best differs from table to table by many points. So scores of several are
pooled, each with the weight by which labels that it did not see are most likely (:mod:`pool`); where there are labels
enough to tell, classifiers that are not needed are left out. What comes of it are logarithms of probabilities,
comparable between points and between classes, for totals that say nothing of some classes as for those that say all.

On 28 made registers, 30 to 1000 labels biased by class, cut at the exact totals of regions: 72.8 % of the labels are
right, 69.9 by ranks of a forest, extra trees and a kernel machine, 68.6 by a forest alone, 68.5 by boosting.

Refined, where totals say how many of each class there are: extra trees and a kernel machine are fitted again on all
points, the unlabelled ones with the labels so far within the totals, three times. Totals keep this from running away:
whatever is learned, each class keeps its size. With few labels that helps, with many it harms a little. So the share of
refined scores falls with the number of labels.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from sklearn import config_context

from treewright.core.arrays import FloatArray
from treewright.core.budget import Budget
from treewright.core.progress import stage
from treewright.optimize.settings import TeacherSettings
from treewright.teachers.left_out import Asked, LeftOut, left_out_scores
from treewright.teachers.members import COST, MEMBERS, Fitted, Task, kernel_fits, out_of_bag_votes, principal_axes
from treewright.teachers.points import TeacherPoints
from treewright.teachers.record import TeacherMember, TeacherRecord
from treewright.teachers.teacher import Teacher, UnseenLabels, Voter
from treewright.totals.scores import Novelty

__all__ = ["auto_teacher"]

_PLAIN = "tree"
"""What a tree that learns from a teacher would be without one."""
_OWN_WEIGHT = 3.0
"""Weight of a labelled point in refinement."""


@stage("teacher")
def auto_teacher(
    points: TeacherPoints,
    seed: int,
    budget: Budget,
    n_jobs: int = 1,
    examined: bool = False,
    chosen: Sequence[str] | None = None,
    for_tree: bool = False,
    likely: bool = False,
    settings: TeacherSettings = TeacherSettings(),
) -> Teacher:
    """Make a teacher of the classifiers that there is time for.

    Parameters
    ----------
    points : TeacherPoints
        Labelled and unlabelled points.
    seed : int
        Seed of the classifiers.
    budget : Budget
        Once it is over, what there is so far counts; logistic regression in a few steps is there always.
    n_jobs : int
        Threads of the forests.
    examined : bool
        Whether what it says without some of the labels is kept, for whoever wants to know how far to follow it.
    chosen : sequence of str or None
        Names of the classifiers, where they are chosen already.
    for_tree : bool
        Whether a tree is to learn from it. Then normal distributions are among the classifiers, for which model files
        have no place; and where CART alone finds more labels left out than all together, by more than
        chance, it is the teacher.
    likely : bool
        Whether it is to say how likely labels are that it did not see, of all labelled points: `Teacher.likely`.
    settings : TeacherSettings
        How much is done.

    Examples
    --------
    >>> from treewright.data import PointTotals
    >>> X, y = np.array([[0.0], [1.0], [8.0], [9.0]]), np.array([0, 0, 1, 1])
    >>> hidden = np.array([[0.5], [2.0], [7.0], [8.5], [9.5]])
    >>> totals = PointTotals(np.ones((5, 1)), low=[[2, 3]], high=[[2, 3]])
    >>> auto_teacher(TeacherPoints(X, y, np.ones(4), hidden, 2, totals), 0, Budget()).labels().tolist()
    [0, 0, 1, 1, 1]
    """
    # Points are numbers that were checked, and forests are made of many small fits.
    with config_context(assume_finite=True, skip_parameter_validation=True):
        work = _Work(points.standardized(), seed, n_jobs, for_tree, settings)
        cells = len(points.hidden) * points.n_classes * settings.folds
        asked = Asked(
            work.fitted, work.weight, seed, n_jobs, likely, examined and cells <= settings.unseen_cells, settings
        )
        return _made(work, asked, budget, chosen)


def _made(work: _Work, asked: Asked, budget: Budget, chosen: Sequence[str] | None) -> Teacher:
    points = work.points
    # Without totals points may be asked for later that are none of these, even if all of it is labelled.
    if len(points.present) < 2 or (points.totals is not None and not len(points.hidden)):
        return _blind(work)
    names = list(chosen or work.names())
    told = left_out_scores(points, names, asked, budget.share(work.settings.asking_share))
    best = names if chosen else told.needed(COST, work.many, work.settings.telling_labels)
    if work.for_tree and told.finds_more(_PLAIN, best):
        best = [_PLAIN]
    voices = work.first_voices(best, budget)
    kept = [voice.name for voice in voices]
    pool = told.pool(kept)
    scores = _with_new_classes(work, pool.scores([voice.table for voice in voices]))
    voters = [Voter(voice.fitted, float(w)) for voice, w in zip(voices, pool.weights, strict=True)]
    levels, parts = pool.levels, [_alone(told, voice) for voice in voices]
    again = work.refined_voices(scores, budget)
    refined = work.refined_share if again else 0.0
    if again:
        # As far apart as the scores are that labels left out have scaled: they know their own labels all too well.
        share = [refined / len(again) * _spread(scores) / max(_spread(voice.table), 1e-9) for voice in again]
        scores = (1.0 - refined) * scores + sum(w * v.table for w, v in zip(share, again, strict=True))
        voters = [Voter(voter.fitted, (1.0 - refined) * voter.weight) for voter in voters]
        voters += [Voter(voice.fitted, w) for voice, w in zip(again, share, strict=True)]
        levels = (1.0 - refined) * levels
        parts += [voice.table * (w * len(again) / refined) for voice, w in zip(again, share, strict=True)]
    record = TeacherRecord("auto", _compared(told, voices, pool.weights), refined, told.right_pooled(kept))
    unseen_labels = [UnseenLabels(*part) for part in told.unseen_labels(kept)]
    return Teacher(points, scores, record, parts, voters, levels, unseen_labels, told.likely(kept))


def _compared(told: LeftOut, voices: list[_Voice], weights: FloatArray) -> tuple[TeacherMember, ...]:
    """All that were asked, with their shares of the scores: weights, times how far apart their own scores are."""
    apart = np.array([w * _spread(voice.table) for w, voice in zip(weights, voices, strict=True)])
    share = dict(
        zip([v.name for v in voices], apart / apart.sum() if apart.sum() > 0 else weights / weights.sum(), strict=True)
    )
    names = [*share, *(name for name in told.told if name not in share)]
    return tuple(TeacherMember(name, float(share.get(name, 0.0)), told.pairs(name), told.right(name)) for name in names)


def _alone(told: LeftOut, voice: _Voice) -> FloatArray:
    """Scores by one classifier alone, as labels left out say that they are to be taken."""
    return told.pool([voice.name]).scores([voice.table])


def _spread(table: FloatArray) -> float:
    """How far apart the scores of the classes are."""
    return float((table - table.mean(axis=1, keepdims=True)).std()) if table.size else 0.0


def _blind(work: _Work) -> Teacher:
    """Labels of one class only say nothing but how far a point is from them."""
    record = TeacherRecord("auto", (TeacherMember("distance from labelled rows", 1.0, float("nan")),))
    points = work.points
    table = np.repeat(work.novelty()[:, None], points.n_classes, axis=1)
    table[:, points.present] *= -1.0
    return Teacher(points, table, record)


def _with_new_classes(work: _Work, scores: FloatArray) -> FloatArray:
    """Scores in which a class without labels has those points that are farthest from all labels, and no others."""
    points = work.points
    unseen = np.setdiff1d(np.arange(points.n_classes), points.present)
    if not len(unseen) or not len(scores):
        return scores
    known = scores[:, points.present].max(axis=1)
    scores = scores.copy()
    scores[:, unseen] = (known.min() - 1.0 + work.novelty())[:, None]
    return scores


@dataclass(frozen=True, eq=False)
class _Voice:
    """A classifier and what it says of the unlabelled points."""

    name: str
    fitted: Fitted
    table: FloatArray
    """Log-scores in all classes."""


class _Work:
    """The classifiers of a teacher; features have unit spread."""

    def __init__(
        self, points: TeacherPoints, seed: int, n_jobs: int, for_tree: bool, settings: TeacherSettings
    ) -> None:
        self.points, self.seed, self.n_jobs, self.for_tree = points, seed, n_jobs, for_tree
        self.settings = settings
        self.weight: FloatArray = points.weight / points.weight.mean() if len(points.weight) else points.weight
        self.many = points.n_asked > self.settings.many_asked

    @property
    def refined_share(self) -> float:
        """Share of refined scores."""
        labels = len(self.points.y) / self.settings.refined_labels
        return float(1.0 / (1.0 + labels**self.settings.refined_steepness))

    def first_voices(self, names: list[str], budget: Budget) -> list[_Voice]:
        """Those of the classifiers that there is time for, at least one, and what they say."""
        points = self.points
        n_trees = int(np.clip(self.settings.asked_votes / max(1, points.n_asked), 20, self.settings.n_trees))
        task = Task(
            points.X, points.y, self.weight, points.n_asked, n_trees, self.seed, self.n_jobs, settings=self.settings
        )
        found = list[_Voice]()
        for name in names:
            if budget.over and found:
                break
            name = "logistic regression" if budget.over else name
            fitted = self.fitted(name, task, budget)
            if fitted is not None:
                found.append(self._voice(name, fitted))
        return found

    def names(self) -> list[str]:
        """Classifiers for these points, those first that take the least time."""
        points, n_features = self.points, self.points.X.shape[1]
        names = ["logistic regression", "tree"]
        if self.for_tree:
            names += ["discriminant analysis"] if n_features <= self.settings.gaussian_features else []
            names.append("naive Bayes")
        if kernel_fits(len(points.X), points.n_asked, n_features, len(points.present), self.settings):
            names.append("kernel machine")
        names += ["extra trees", "random forest", "boosting"]
        return [*names, "extra trees with principal components"] if n_features >= 2 else names

    @cached_property
    def axes(self) -> FloatArray:
        """Principal axes of labelled and unlabelled points."""
        return principal_axes(self.points.X, self.points.hidden, self.seed, self.settings)

    def fitted(self, name: str, task: Task, budget: Budget) -> Fitted | None:
        """A classifier, fitted; one that sees principal components knows the axes of all points."""
        return MEMBERS[name](
            replace(task, axes=self.axes) if name == "extra trees with principal components" else task, budget
        )

    def novelty(self) -> FloatArray:
        """How far unlabelled points are from the nearest labelled one: 0 for the farthest, less for others."""
        known, hidden = self.points.X, self.points.hidden
        if not len(hidden) or not len(known):
            return np.zeros(len(hidden))
        most = max(100, int(self.settings.nearest_products / hidden.size))
        if len(known) > most:
            known = known[np.random.default_rng(self.seed).choice(len(known), most, replace=False)]
        return Novelty(known, hidden)(hidden)

    # ------------------------------------------------------------------ refinement

    def refined_voices(self, scores: FloatArray, budget: Budget) -> list[_Voice]:
        """Classifiers fitted again on all points and the labels so far.

        None where totals leave any freedom, where labels are many, and where there is no time.
        """
        points = self.points
        many = len(points.X) + len(points.hidden) > self.settings.refined_points
        if not points.exact or many or self.refined_share < self.settings.least_refined or budget.over:
            return []
        kinds = (self._forest_again, self._kernel_again)
        return [voice for kind in kinds if (voice := kind(scores, budget)) is not None]

    def _forest_again(self, scores: FloatArray, budget: Budget) -> _Voice | None:
        found, n_known = None, len(self.points.X)
        for round_ in range(self.settings.refined_rounds):
            made = out_of_bag_votes(self._both(scores, 1.0, self.settings.refined_trees, self.seed + round_), budget)
            if made is None:
                break
            found = self._voice("extra trees", made[0], made[1][n_known:])
            scores = found.table
        return found

    def _kernel_again(self, scores: FloatArray, budget: Budget) -> _Voice | None:
        points, found = self.points, None
        n_known, n_hidden = len(points.X), len(points.hidden)
        for _ in range(self.settings.refined_rounds):
            task = self._both(scores, min(1.0, _OWN_WEIGHT * n_known / n_hidden), 0, self.seed)
            fitted = None if budget.over or len(np.unique(task.y)) < 2 else MEMBERS["kernel machine"](task, budget)
            if fitted is None:
                break
            found = self._voice("kernel machine", fitted)
            scores = found.table
        return found

    def _both(self, scores: FloatArray, weight: float, n_trees: int, seed: int) -> Task:
        """All points, the unlabelled ones with the labels of these scores."""
        points = self.points
        own = points.weight / points.weight.mean()
        return Task(
            np.vstack([points.X, points.hidden]),
            np.concatenate([points.y, points.labels(scores)]),
            np.concatenate([_OWN_WEIGHT * own, np.full(len(points.hidden), weight)]),
            points.n_asked,
            n_trees,
            seed,
            self.n_jobs,
            settings=self.settings,
        )

    def _voice(self, name: str, fitted: Fitted, raw: FloatArray | None = None) -> _Voice:
        """What a classifier says of the unlabelled points, or what it said before it knew their labels."""
        hidden, k, least = self.points.hidden, self.points.n_classes, self.points.least
        if not len(hidden):
            return _Voice(name, fitted, np.zeros((0, k)))
        return _Voice(name, fitted, fitted.logs(hidden, k, least) if raw is None else fitted.as_logs(raw, k, least))
