"""What a teacher says of the points of a fit that knows no totals: shares of the classes for those without a label."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.neighbors import NearestNeighbors
from sklearn.utils import get_tags

from treewright.core.arrays import FloatArray, IntArray
from treewright.core.budget import Budget
from treewright.data import Reduction, Sample, of_unit_spread
from treewright.data.design import design_of_points
from treewright.exceptions import InvalidInputError
from treewright.optimize.conduct import Conduct
from treewright.teachers.auto import auto_teacher
from treewright.teachers.given import EstimatorTeacher, GivenTeacher, TableTeacher
from treewright.teachers.points import TeacherPoints
from treewright.teachers.pool import pooled_scores
from treewright.teachers.record import TeacherRecord

__all__ = ["PointTeacher", "Taught", "imagined_points", "label_folds", "label_shares", "refuse_unteachable"]

_NEIGHBORS = 5
"""Neighbours between which imagined points are."""

_FEW_VALUES = 10
"""A feature with at most so many values is taken for a scale of steps, between which there is nothing to imagine."""

_FOLDS = 5
"""Folds of labelled points in which a teacher is examined."""

_DENSE_CELLS = 50_000_000
"""Sparse tables with more cells are not made dense for a teacher."""


@dataclass(frozen=True, eq=False)
class Taught:
    """What a teacher said."""

    shares: FloatArray
    """Shares of the classes at each point, those of its labels where it has some; shape (n_points, n_classes). Imagined
    points come after the others."""
    record: TeacherRecord
    """Who it was."""
    unseen_labels: tuple[tuple[IntArray, FloatArray], ...] = ()
    """Points whose labels were left out, and shares at all points by a teacher who did not see them."""
    likely: FloatArray | None = None
    """Calibrated probabilities of the classes at each point, as often right as they say by labels left out; at labelled
    ones by a teacher who did not see their labels. None of one who gave labels or scores, and may have seen all, of
    labels too few to be left out, and where time was over before."""

    @property
    def lead(self) -> FloatArray:
        """By how much the share of the most likely class exceeds that of the next one, at each point.

        If shares are probabilities, it is what a tree that says the next one errs more than one that says the best.
        """
        if self.shares.shape[1] < 2:
            return np.ones(len(self.shares))
        ordered = np.sort(self.shares, axis=1)
        return np.asarray(ordered[:, -1] - ordered[:, -2])


@dataclass(frozen=True, eq=False)
class _Rows:
    """Points as a teacher sees them (:class:`~treewright.teachers.given.PartlyLabelled`)."""

    X: Any
    y: IntArray
    weight_labelled: FloatArray
    classes: Any


@dataclass(frozen=True, eq=False)
class PointTeacher:
    """Points, their labels, and whom to ask for the labels of the others.

    Attributes
    ----------
    X : ndarray or csr_array of shape (n_points, n_features)
        The points as the teacher takes them.
    shares, mass : ndarray
        Shares of the classes among the labels of a point, 0 without any, and the weight of these labels.
    classes : ndarray
        The labels, sorted.
    given_teacher : GivenTeacher or None
        Who says something of points; None for the teacher that is made of them.
    conduct : Conduct
        Seed and threads.
    n_imagined : int
        How many of the points are imagined, the last ones.
    """

    X: Any
    shares: FloatArray
    mass: FloatArray
    classes: Any
    given_teacher: GivenTeacher | None
    conduct: Conduct
    n_imagined: int = 0

    @classmethod
    def of(
        cls,
        reduction: Reduction,
        y: IntArray,
        weight: FloatArray,
        classes: Any,
        given_teacher: GivenTeacher | None,
        conduct: Conduct,
        imagined: FloatArray | None = None,
    ) -> PointTeacher:
        """The classroom of the points of rows with class numbers, -1 for none.

        A teacher who was given says of a point what he says of its rows on average, and nothing of imagined points.
        """
        shares, mass = label_shares(reduction, y, weight, len(classes))
        points = reduction.points
        if imagined is not None and len(imagined):
            more = np.ones(len(imagined))
            points = Sample.of(np.vstack([points.X, imagined]), None, np.append(points.weight, more), points.n_levels)
            shares, mass = np.vstack([shares, np.zeros((len(imagined), len(classes)))]), np.append(mass, 0.0 * more)
        X = _features(points, given_teacher)
        if isinstance(given_teacher, TableTeacher):
            mean = reduction.members((y < 0).astype(np.float64)) @ given_teacher.table
            counts = np.bincount(reduction.place[reduction.kept], y[reduction.kept] < 0, len(reduction.points))
            given_teacher = TableTeacher(mean / np.maximum(counts, 1.0)[:, None], given_teacher.name)
        return cls(X, shares, mass, classes, given_teacher, conduct, len(points) - len(reduction.points))

    def taught(self, budget: Budget, examined: bool = False) -> Taught:
        """What the teacher says; if he is to be examined, also what he says without some of the labels.

        One who was given cannot be: he may have seen all of them.
        """
        y = np.where(self.mass > 0, self.shares.argmax(axis=1), -1)
        known = y >= 0
        present = np.unique(y[known])
        if known.all() or len(present) < 2:
            shares = np.where(known[:, None], self.shares, np.eye(len(self.classes))[present[0]])
            return Taught(shares, TeacherRecord("none" if known.all() else "the only class"))
        if self.given_teacher is None:
            return self._blended(y, budget, examined)
        scores, record = self._scores(y, budget), TeacherRecord(self.given_teacher.name)
        shares = self._with_labels(np.flatnonzero(y < 0), scores, self.given_teacher.logarithmic)
        if isinstance(self.given_teacher, TableTeacher):
            return Taught(shares, record)
        unseen_labels: list[tuple[IntArray, FloatArray]] = []
        left_out = np.full(self.shares.shape, np.nan)
        for left in label_folds(y, self.conduct.seed):
            if budget.over:
                return Taught(shares, record, tuple(unseen_labels) if examined else ())
            fewer = y.copy()
            fewer[left] = -1
            others = np.flatnonzero(fewer < 0)
            said = self._scores(fewer, budget)
            left_out[left] = said[np.isin(others, left)]
            unseen_labels.append((left, self._with_labels(others, said, self.given_teacher.logarithmic)))
        return Taught(shares, record, tuple(unseen_labels) if examined else (), self._likely(y, scores, left_out))

    def _likely(self, y: IntArray, scores: FloatArray, left_out: FloatArray) -> FloatArray:
        """Calibrated probabilities of a teacher's scores, and of those of labelled points that did not see the label.

        The only label of a class cannot be left out: its point has the shares of the classes among all labels.
        """
        assert self.given_teacher is not None
        known, logarithmic = y >= 0, self.given_teacher.logarithmic
        asked = known & np.isfinite(left_out).all(axis=1)
        least = 0.5 / (np.count_nonzero(known) + 1.0)

        def logs(table: FloatArray) -> FloatArray:
            return table if logarithmic else np.log(np.maximum(table, least))

        found = pooled_scores([logs(left_out[asked])], y[asked], self.mass[asked])
        likely = np.empty(self.shares.shape)
        likely[known] = np.average(np.eye(len(self.classes))[y[known]], axis=0, weights=self.mass[known])
        likely[asked] = found.shares([logs(left_out[asked])])
        likely[~known] = found.shares([logs(scores)])
        return likely

    def _blended(self, y: IntArray, budget: Budget, examined: bool) -> Taught:
        """By the teacher that is made of the points."""
        conduct, n_points = self.conduct, len(y) - self.n_imagined
        labelled, hidden = np.flatnonzero(y >= 0), np.flatnonzero(y[:n_points] < 0)
        teacher_points = TeacherPoints(
            self.X[labelled], y[labelled], self.mass[labelled], self.X[hidden], len(self.classes)
        )
        teacher = auto_teacher(
            teacher_points,
            conduct.seed,
            budget,
            conduct.threads,
            examined,
            for_tree=True,
            likely=True,
            settings=conduct.search.teacher,
        )
        unseen_labels = tuple(
            (left, self._with_labels(np.append(left, hidden), np.vstack([unseen.scores, unseen.hidden]), True))
            for unseen in teacher.unseen_labels
            for left in [labelled[unseen.left_out]]
        )
        # Imagined points are no part of the teacher_points: features have the spread of those that are there.
        centre, spread = teacher_points.spread
        others = teacher.asked(of_unit_spread(self.X[n_points:], centre, spread))
        asked = np.append(hidden, np.arange(n_points, len(y)))
        told, said = teacher.likely(), np.vstack([teacher.scores, others])
        shares, likely = self._with_labels(asked, said, True), None
        if told is not None:
            likely = np.empty(shares.shape)
            likely[labelled], likely[asked] = told.known, shares[asked]
        return Taught(shares, teacher.record, unseen_labels, likely)

    def _scores(self, y: IntArray, budget: Budget) -> FloatArray:
        """What somebody says of points without a label."""
        assert self.given_teacher is not None
        return self.given_teacher.scores(_Rows(self.X, y, self.mass[y >= 0], self.classes), budget)

    def _with_labels(self, points: IntArray, scores: FloatArray, logarithmic: bool = False) -> FloatArray:
        """Shares of the classes: by these scores at these points, by their labels at the others."""
        shares = self.shares.copy()
        shares[points] = _as_shares(scores, logarithmic)
        return shares


def label_folds(y: IntArray, seed: int) -> list[IntArray]:
    """Folds of labelled points to score a teacher, classes dealt out in turn; no class loses its only label."""
    order = np.random.default_rng(seed).permutation(np.flatnonzero(y >= 0))
    order = order[np.argsort(y[order], kind="stable")]
    order = order[np.bincount(y[order])[y[order]] > 1]
    fold = np.arange(len(order)) % _FOLDS
    return [np.sort(order[fold == k]) for k in range(min(_FOLDS, len(order)))]


def label_shares(
    reduction: Reduction, y: IntArray, weight: FloatArray, n_classes: int
) -> tuple[FloatArray, FloatArray]:
    """Shares of the classes among the labels of each point for a teacher, 0 without any, and these labels' weight."""
    rows, n_points = reduction.kept[y[reduction.kept] >= 0], len(reduction.points)
    place = reduction.place[rows] * n_classes + y[rows]
    table = np.bincount(place, weight[rows], n_points * n_classes).reshape(n_points, n_classes)
    mass = np.asarray(table.sum(axis=1))
    return table / np.where(mass > 0, mass, 1.0)[:, None], mass


def imagined_points(
    points: Sample, given_teacher: GivenTeacher | None, conduct: Conduct, times: float = 1.0, steps: bool = False
) -> FloatArray:
    """Points between a point and one of its neighbours, so that a tree has enough to learn from a teacher.

    Numbers lie between those of the two, categories and gaps are those of one of them, and so are features with few
    values if these are `steps`. There are none where points are many, where they are sparse, and where the teacher was
    given, who cannot be asked for others; `times` is a factor of what is many.
    """
    X, n_points, settings = points.X, len(points), conduct.search.teacher
    more = int(times * min(settings.imagined_rows, settings.imagined_cells // max(1, X.shape[1]))) - n_points
    if more <= 0 or n_points < 2 or sparse.issparse(X) or isinstance(given_teacher, TableTeacher):
        return np.zeros((0, X.shape[1]))
    design = design_of_points(points)
    numbers = X if design is None else design.apply(X)
    spread = numbers.std(axis=0)
    numbers = numbers / np.where(spread > 0, spread, 1.0)
    near = NearestNeighbors(n_neighbors=min(_NEIGHBORS + 1, n_points)).fit(numbers)
    neighbours = near.kneighbors(numbers, return_distance=False)[:, 1:]
    rng = np.random.default_rng(conduct.seed)
    one = rng.integers(n_points, size=more)
    left, right = X[one], X[neighbours[one, rng.integers(neighbours.shape[1], size=more)]]
    between = left + rng.random((more, 1)) * (right - left)
    either = np.where(rng.random(left.shape) < 0.5, left, right)
    chosen = np.isnan(between) if points.categorical is None else np.isnan(between) | points.categorical
    if steps:
        ordered = np.sort(X, axis=0)
        chosen = chosen | ((ordered[1:] > ordered[:-1]).sum(axis=0) < _FEW_VALUES)
    return np.asarray(np.where(chosen, either, between), dtype=X.dtype)


def refuse_unteachable(X: Any, given_teacher: GivenTeacher | None) -> None:
    """Refuse a sparse table that would have to be made dense for its teacher and is too large for that."""
    if not sparse.issparse(X) or X.shape[0] * X.shape[1] <= _DENSE_CELLS or isinstance(given_teacher, TableTeacher):
        return
    if isinstance(given_teacher, EstimatorTeacher) and get_tags(given_teacher.estimator).input_tags.sparse:
        return
    raise InvalidInputError(
        f"X is sparse with {X.shape[0]} rows and {X.shape[1]} features, too large to be made dense for this teacher; "
        "give an estimator that takes sparse rows, such as LogisticRegression()"
    )


def _features(points: Sample, given_teacher: GivenTeacher | None) -> Any:
    """The points as the teacher takes them: an estimator gets gaps or a sparse table where its tags say so."""
    X = points.X
    tags = get_tags(given_teacher.estimator).input_tags if isinstance(given_teacher, EstimatorTeacher) else None
    if sparse.issparse(X):
        taken = isinstance(given_teacher, TableTeacher) or (tags is not None and tags.sparse)
        return X if taken else X.toarray()
    design = None if tags is not None and tags.allow_nan and points.n_levels is None else design_of_points(points)
    numbers = X if design is None else design.apply(X)
    return numbers.toarray() if sparse.issparse(numbers) and not (tags is not None and tags.sparse) else numbers


def _as_shares(scores: FloatArray, logarithmic: bool) -> FloatArray:
    """Scores as shares: of logarithms their exponentials, else what is below 0 is cut off; the best has all of 0."""
    if logarithmic:
        scores = np.exp(scores - scores.max(axis=1, keepdims=True))
    positive = np.maximum(scores, 0.0)
    total = positive.sum(axis=1, keepdims=True)
    largest = np.eye(scores.shape[1])[scores.argmax(axis=1)]
    return np.asarray(np.where(total > 0, positive / np.where(total > 0, total, 1.0), largest))
