"""Tree alternating optimization from rows to a tree in the units of the data: classes, means and linear leaves."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse

from treewright.core.arrays import BoolArray, FloatArray, IntArray
from treewright.core.budget import Budget
from treewright.core.names import counted
from treewright.core.progress import stage
from treewright.core.threads import one_thread
from treewright.data import (
    Compact,
    Merge,
    Reduction,
    Sample,
    Scale,
    Weighted,
    reduced_sample,
    unit_scaling,
    weight_unit,
)
from treewright.data.columns_checked import show
from treewright.engine.leaf_probabilities import taught_tree
from treewright.engine.sparse_trees import TAOResult, automatic_alpha, improved_sparse_tree, split_price, turned_tree
from treewright.engine.starts import StartTask, several_starts, starting_tree
from treewright.engine.stretch import Stretch, improve_stretched
from treewright.exceptions import InvalidInputError
from treewright.models.tao.leaves import ClassGoal, LeafGoal, LineGoal, MeanGoal
from treewright.optimize.conduct import Conduct
from treewright.optimize.record import FitRecord, FitStatus, cut_short, named_trace
from treewright.splits.few import restricted_to
from treewright.splits.points import Points
from treewright.teachers.given import GivenTeacher
from treewright.teachers.record import TeacherRecord
from treewright.teachers.taught_points import PointTeacher, imagined_points, refuse_unteachable
from treewright.tree import Tree, predict_labels, predict_values, settled, visited
from treewright.tree.trimming import trimmed_tree

if TYPE_CHECKING:
    from treewright.models.tao.estimator import TAOModel

__all__ = ["TAOFit", "TaughtTAOFit", "train_tao", "train_taught_tao"]

_OWN_WEIGHT = 3.0
"""What the weight of a row with a label of its own is multiplied by, among rows with labels of a teacher."""

_LEAST_LEAD = 0.05
"""Least weight of a row with a label of a teacher, relative to one he is sure of: what he doubts counts a little."""

_IMAGINED = 5.0
"""How many times as many points as serve a model on a graph one tree learns from, imagined ones included. On 27 tables
with 5 % labels, two draws, the errors on new rows that the teacher expects of the tree exceed his own by 0.70 points
with a factor of 2.5 and by 0.59 with this one; true errors are 0.25 lower (0.26 is what that may be off)."""

_TEACHING = 0.5
"""Share of the time that the teacher may take."""

_TRIAL_ROWS, _TRIAL_PASSES = 20_000, 4
"""Points and passes with which starts are compared."""

_TRIAL_CELLS = 4_000_000
"""Cells of the table of a trial up to which numbers without gaps are tried from several starts: 20 000 rows of 200."""

_ROWS_A_LEAF = 100
"""Rows for each leaf of a complete tree below which starts for numbers are compared on points that were left out."""

_FIRST_ROWS, _BEST_STARTS = 5000, 4
"""Of larger tables all starts are compared on so many points first, and so many of them again on more: a subset of
hundreds of levels is found among thirty starts or not at all, and a second of time should be enough for these."""

_MANY = 2000
"""Points from which on terms of splits that hardly move a row are taken for chance, and are dropped."""

_TIDYING = 0.03
"""Share of the time limit for that at least, also where passes used it up."""

_SPOILED = 1.25
"""By how much passes over stretched rows may raise the objective on the rows themselves: what they are for, better
predictions, does not come of a tree that is much worse on what it has seen (rare rows of large weight, say)."""

_ROUNDING = 1e-3
"""Share of the objective by which single precision may change it when a tree is turned back to units of the data."""


def _stretches(settings: TAOModel) -> bool:
    """Whether passes over stretched rows follow; copies with the target of a row would flatten linear leaves."""
    return bool(settings.stretch) and settings.leaves == "constant"


@dataclass(frozen=True)
class TAOFit:
    """What training of a TAO tree ended with."""

    tree: Tree
    alpha: float
    """The price of a split that was used."""
    n_iter: int
    """Passes over the tree on the rows alone."""
    record: FitRecord


def train_tao(
    rows: Sample,
    n_classes: int | None,
    settings: TAOModel,
    conduct: Conduct,
    budget: Budget,
    start: Tree | None = None,
    imagined: Sample | None = None,
    alpha: float | str | None = None,
) -> TAOFit:
    """Fit a TAO tree to class numbers, or to targets in columns (`n_classes` is None).

    Told seconds, objective and loss of each pass, and words for passes over stretched rows. What is too deep in a start
    is cut off. Imagined rows, of classes alone, are there for the search; leaves and objective are those of the rows.
    `alpha` is the price of a split where it is not that of the settings.
    """
    rows = reduced_sample(rows, Weighted()).points
    if not len(rows):
        raise InvalidInputError("all weights are zero; at least one row must count")
    with np.errstate(over="ignore"):
        if not np.isfinite(rows.weight.sum()):
            largest = show(rows.weight.max())
            raise InvalidInputError(f"the weights sum to infinity, the largest is {largest}; divide all")
    # The search has tolerances of its own, so rows weigh about 1 to it, whatever they weigh to the user.
    unit = weight_unit(rows.weight)
    rows, conduct = replace(rows, weight=rows.weight / unit), _told_in_units(conduct, unit)
    goal: LeafGoal
    if n_classes is not None:
        goal = ClassGoal(rows, n_classes)
    elif settings.leaves == "linear":
        goal = LineGoal(rows, settings.leaf_ridge)
    else:
        goal = MeanGoal(rows)
    sample = Sample.of(rows.X, goal.targets, rows.weight, rows.n_levels)
    if imagined is not None and len(imagined):
        sample = _with_imagined(sample, imagined, unit)
    reduction = reduced_sample(sample, Scale(unit_scaling))
    close = Points(reduction.points.X, rows.n_levels).close  # which want double precision
    reduction = reduction.then(Compact(exact=len(close) > 0)).then(Merge(large=False))
    points = reduction.points
    alpha = settings.alpha if alpha is None else alpha
    alpha = automatic_alpha(float(points.weight.sum())) if alpha == "auto" else float(alpha) / unit
    work = _Work(points, n_classes is not None, goal, alpha, settings, conduct, budget)
    if start is not None:
        start = reduction.apply_tree(start.collapsed(start.level <= settings.max_depth))
    # One thread a node: products that are shared out would be rounded otherwise with another number of threads.
    with one_thread():
        first = work.start() if start is None else start
        with stage("passes"):
            result = work.passes(first, settings.max_iter, told=conduct.told)
        if start is None and settings.init == "auto" and not split_price(result.tree):
            result = work.passes_from_cart(result)
        found, reached = work.stretched(result)
    if len(points) > _MANY and not sparse.issparse(points.X):  # rules without chance, and the best of their kind

        def cost(tree: Tree) -> float:
            there = reduction.invert_tree(tree)
            return goal.finished(there.collapsed(visited(there, rows.X)))[1] + alpha * split_price(tree)

        leaves, time = goal.leaves(points.X, points.y, points.weight), budget.grace(_TIDYING)
        with stage("splits of few terms"):
            for _ in range(2):  # what is turned to its place often needs fewer terms
                if time.over:  # of many rows each step takes a while, whatever it finds
                    break
                found = trimmed_tree(found, points.X, cost, budget=time)
                found, reached = turned_tree(found, points.X, leaves, alpha, time, points.n_levels)
    tree = reduction.invert_tree(found)
    kept = visited(tree, rows.X)
    tree, loss = goal.finished(tree.collapsed(kept))
    tree, objective = settled(tree, rows.X, rows.weight), loss + alpha * split_price(found.collapsed(kept))
    status, reason = _ended(result, settings, budget)
    trace = named_trace(result.trace, "seconds", "objective", "loss")
    note = _note(objective, reached, unit)
    record = FitRecord(status, reason, budget.elapsed, objective, None, trace, note=note).times(unit)
    if n_classes is not None:  # values are weights of classes
        tree = tree.with_leaves(tree.values * unit, tree.labels)
    return TAOFit(tree, alpha * unit, result.n_iter, record)


@dataclass(frozen=True)
class TaughtTAOFit:
    """What training of a TAO tree ended with where a teacher labelled rows."""

    fit: TAOFit
    numbers: IntArray
    """Class numbers of all rows: those given, and those of the teacher."""
    teacher: TeacherRecord


def train_taught_tao(
    rows: Sample,
    classes: Any,
    given_teacher: GivenTeacher | None,
    factors: Callable[[IntArray], FloatArray],
    settings: TAOModel,
    conduct: Conduct,
    budget: Budget,
    start: Tree | None = None,
) -> TaughtTAOFit:
    """Fit a TAO tree to class numbers, -1 for none, and to what a teacher says of rows that have none.

    The teacher is made of the points themselves unless `given_teacher` brings one; `factors` are those of the weights
    of rows by their class. Where rows are few, the teacher is asked for others between them, which the search sees too.
    A row that he labels weighs the lead of its class over the next one: what the errors that he expects grow by, if the
    tree says another.
    """
    assert rows.y is not None
    labelled = rows.y >= 0
    if not np.any(labelled & (rows.weight > 0)):
        raise InvalidInputError("no labelled row has a weight above 0; at least one must count")
    refuse_unteachable(rows.X, given_teacher)
    reduction = reduced_sample(rows, Weighted(), Scale(unit_scaling), Compact(), Merge(labels=False))
    imagined = imagined_points(reduction.points, given_teacher, conduct, _IMAGINED, steps=True)
    point_teacher = PointTeacher.of(reduction, rows.y, rows.weight, classes, given_teacher, conduct, imagined)
    with one_thread():
        taught = point_teacher.taught(budget.share(_TEACHING))
    said, n_points = taught.shares.argmax(axis=1), len(reduction.points)
    lead = np.maximum(taught.lead, _LEAST_LEAD)
    numbers = np.where(labelled, rows.y, reduction.invert(said[:n_points]))
    sure = rows.weight * np.where(labelled, _OWN_WEIGHT, 1.0) * factors(numbers)
    weight = sure * np.where(labelled, 1.0, reduction.invert(lead[:n_points]))
    extra, more = None, np.zeros(0)
    if len(imagined):
        more = weight_unit(rows.weight[rows.weight > 0]) * factors(said[n_points:])
        extra = _between_rows(rows, reduction, imagined, said[n_points:], more * lead[n_points:])
    alpha = settings.alpha
    if alpha == "auto":
        alpha = _taught_alpha(sure, weight, ~labelled, more, more * lead[n_points:])
    every = replace(rows, y=numbers, weight=weight)
    found = train_tao(every, len(classes), settings, conduct, budget, start, extra, alpha)
    unseen = np.flatnonzero(~labelled & (reduction.place < 0))
    if len(unseen):
        numbers[unseen] = predict_labels(found.tree, rows.X[unseen])
    likely = reduction.invert((taught.shares if taught.likely is None else taught.likely)[:n_points])
    equal = bool(np.all(factors(np.arange(len(classes))) == 1.0))
    tree = taught_tree(found.tree, rows, likely, judged=taught.likely is not None, agree=equal)
    return TaughtTAOFit(replace(found, tree=tree), numbers, taught.record)


def _taught_alpha(
    sure: FloatArray, weight: FloatArray, taught: BoolArray, more_sure: FloatArray, more: FloatArray
) -> float:
    """The automatic price of a split in rows that weigh what those with labels of a teacher do on average.

    `sure` are the weights of rows and imagined points if he were sure of everything.
    """
    with np.errstate(over="ignore", invalid="ignore"):  # weights that sum to infinity are refused later
        unit, full = weight_unit(sure), sure[taught].sum() + more_sure.sum()
        mean = (weight[taught].sum() + more.sum()) / full if full > 0 else 1.0
        return float(unit * automatic_alpha((sure.sum() + more_sure.sum()) / unit) * mean)


def _between_rows(
    rows: Sample, reduction: Reduction, imagined: FloatArray, numbers: IntArray, weight: FloatArray
) -> Sample:
    """Imagined points with these class numbers and weights in the units of the data."""
    assert reduction.scaling is not None
    X: Any = reduction.scaling.invert_points(imagined)
    return Sample.of(sparse.csr_array(X) if sparse.issparse(rows.X) else X, numbers, weight, rows.n_levels)


def _stacked(X: Any, other: Any) -> Any:
    return sparse.vstack([X, other], format="csr") if sparse.issparse(X) else np.vstack([X, other])


def _with_imagined(sample: Sample, imagined: Sample, unit: float) -> Sample:
    assert sample.y is not None and imagined.y is not None
    return Sample.of(
        _stacked(sample.X, imagined.X),
        np.vstack([sample.y, imagined.y[:, None].astype(np.float64)]),
        np.append(sample.weight, imagined.weight / unit),
        sample.n_levels,
    )


def _told_in_units(conduct: Conduct, unit: float) -> Conduct:
    """The same, with an objective of 1 told as one of `unit`."""
    told = conduct.told
    if told is None:
        return conduct

    def heard(seconds: float, objective: float, loss: float, *words: str) -> None:
        told(seconds, objective * unit, loss * unit, *words)

    return replace(conduct, told=heard)


@dataclass(frozen=True)
class _Work:
    """Points, what is to be fitted to them, and how: starts, passes, passes over stretched points."""

    points: Sample
    classify: bool
    goal: LeafGoal
    alpha: float
    settings: TAOModel
    conduct: Conduct
    budget: Budget

    @stage("trees to start from")
    def start(self) -> Tree:
        """A tree by the settings; "auto" is the best of some after some passes on mixed tables and for few features.

        So it is where values far off squeeze a feature: balanced trees, which see it as constant, may be hopeless. And
        of tables with many rows and not too many cells, where passes from one start often end far above the others.
        """
        points = Points(self.points.X, self.points.n_levels)
        few = restricted_to(self.settings.max_split_features, len(points.numerical))
        hard = points.mixed or (few or 1) > 1 or len(points.squeezed) > 0
        if self.settings.init != "auto" or not (hard or self._many_rows):
            return starting_tree(self._start_task(self.conduct.threads), self.settings.init, self.budget)
        work, others = self, None
        if not hard and len(self.points) < _ROWS_A_LEAF * 2.0**self.settings.max_depth:
            work, others = self._parted()
        whole, work = work, work._on_some(_TRIAL_ROWS)
        first = whole._on_some(_FIRST_ROWS) if work is not whole else work
        found = list[TAOResult]()
        for tree, features in several_starts(first._start_task(1), self.budget.share(0.5)):
            kept = first.passes(tree, _TRIAL_PASSES, features).tree if features else tree
            found.append(first.passes(kept, _TRIAL_PASSES))
        if first is not work:
            best = sorted(found, key=lambda tried: tried.objective)[:_BEST_STARTS]
            found = [work.passes(tried.tree, _TRIAL_PASSES) for tried in best]
        return min(found, key=lambda tried: tried.objective if others is None else others._lost_by(tried.tree)).tree

    def _parted(self) -> tuple[_Work, _Work]:
        """The same on three quarters of the points, and on the others, by which a deep tree is judged.

        With few rows a leaf the lower objective is as often the one that has learned more by heart.
        """
        order = np.random.default_rng(self.conduct.seed).permutation(len(self.points))
        part = np.sort(order[: len(order) // 4]), np.sort(order[len(order) // 4 :])
        judges, learners = (replace(self, points=self.points.taken(rows)) for rows in part)
        return learners, judges

    def _lost_by(self, tree: Tree) -> float:
        """Loss of a tree that was fitted to other points."""
        X, y = self.points.X, self.points.y
        assert y is not None
        wrong = predict_labels(tree, X)[:, None] != y if self.classify else (predict_values(tree, X) - y) ** 2
        return float(self.points.weight @ wrong.sum(axis=1))

    @property
    def _many_rows(self) -> bool:
        """Whether rows are so many that the better tree on them is the better one, and trials take little time."""
        n, p = np.shape(self.points.X)
        dense = not sparse.issparse(self.points.X)
        return dense and n > _MANY and min(n, _TRIAL_ROWS) * p <= _TRIAL_CELLS

    def _on_some(self, n_points: int) -> _Work:
        """The same on so many points, drawn, or on all if these are not more."""
        n = len(self.points)
        if n <= n_points:
            return self
        rows = np.sort(np.random.default_rng(self.conduct.seed).choice(n, n_points, replace=False))
        return replace(self, points=self.points.taken(rows))

    def _start_task(self, n_jobs: int) -> StartTask:
        points, settings = self.points, self.settings
        assert points.y is not None
        return StartTask(
            Points(points.X, points.n_levels),
            points.y,
            points.weight,
            settings.max_depth,
            self.alpha,
            settings.max_split_features,
            classify=self.classify,
            seed=self.conduct.seed,
            n_jobs=n_jobs,
        )

    def passes(
        self,
        tree: Tree,
        most: int,
        features: dict[int, str] | None = None,
        told: Callable[..., Any] | None = None,
    ) -> TAOResult:
        """So many passes over a tree at most."""
        points = self.points
        return improved_sparse_tree(
            tree,
            points.X,
            self.goal.leaves(points.X, points.y, points.weight),
            self.alpha,
            max_split_features=self.settings.max_split_features,
            max_iter=most,
            budget=self.budget,
            n_jobs=self.conduct.threads,
            on_pass=told,
            n_levels=points.n_levels,
            features=features,
        )

    @stage("passes from CART")
    def passes_from_cart(self, result: TAOResult) -> TAOResult:
        """The better of a tree without a split and of what passes make of CART.

        Where a class is rare, all leaves of a balanced tree give the other one, and no row minds where it goes.
        """
        if self.budget.over:
            return result
        cart = starting_tree(self._start_task(self.conduct.threads), "cart", self.budget)
        found = self.passes(cart, self.settings.max_iter, told=self.conduct.told)
        return found if found.objective < result.objective else result

    @stage("passes over stretched rows")
    def stretched(self, result: TAOResult) -> tuple[Tree, float]:
        """The tree of the passes, improved on stretched points if that is asked for, and its objective."""
        points, settings, conduct, budget = self.points, self.settings, self.conduct, self.budget
        if not _stretches(settings) or budget.over:
            return result.tree, result.objective
        assert points.y is not None
        state = improve_stretched(
            result.tree,
            points.X,
            points.y,
            points.weight,
            self.goal.leaves,
            self.alpha,
            Stretch(float(settings.stretch), conduct.seed),
            budget,
            max_split_features=settings.max_split_features,
            n_jobs=conduct.threads,
            n_levels=points.n_levels,
        )
        if conduct.told is not None:
            conduct.told(budget.elapsed, state.objective, state.loss, "  after passes over stretched rows")
        if len(points) > _MANY and state.objective > _SPOILED * result.objective:
            return result.tree, result.objective
        return state.tree(), state.objective


def _ended(result: TAOResult, settings: TAOModel, budget: Budget) -> tuple[FitStatus, str]:
    passes_left = not result.converged and result.n_iter < settings.max_iter
    if budget.interrupted or passes_left or (_stretches(settings) and budget.over):
        return cut_short(budget, counted(result.n_iter, "pass", "passes"))
    reason = "no single node can be improved" if result.converged else "all passes are made"
    # what the tree that is returned was improved on are other rows then, and it may be improved on its own
    return FitStatus.LOCAL, f"{reason}; passes over stretched rows followed" if _stretches(settings) else reason


def _note(objective: float, reached: float, unit: float) -> str:
    if objective <= reached + _ROUNDING * max(1.0, reached):
        return ""
    return (
        f"the tree has objective {objective * unit:.6g} in the units of the data, {reached * unit:.6g} on scaled "
        "features: a feature "
        "varies too little for its size, or features differ too much in size. Subtract constants from such features, "
        "or rescale them."
    )
