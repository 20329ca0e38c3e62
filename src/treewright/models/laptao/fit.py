"""LapTAO from rows to a model in the units of the data: points, graph, rounds of labels and tree, what predicts."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import has_fit_parameter

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
    Scaling,
    Weighted,
    reduced_sample,
    target_spread,
    unit_scaling,
    weight_unit,
    weighted_mean,
)
from treewright.data.design import Design, design_of_points
from treewright.engine.leaf_probabilities import smoothed_tree, taught_tree
from treewright.engine.sparse_trees import automatic_alpha
from treewright.engine.starts import StartTask, starting_tree
from treewright.engine.stretch import Stretch
from treewright.exceptions import InvalidInputError
from treewright.graph import FoundGraph, GraphSettings, affordable_points, check_graph, nearest_mean
from treewright.models.laptao.graph_teacher import GraphTeacher, SoftLabels
from treewright.models.laptao.likely import GraphLikely, graph_probabilities
from treewright.models.laptao.rounds import GraphTask, LapResult, Schedule, TreeStep, clearest_labels, smooth_and_fit
from treewright.models.laptao.tree_steps import (
    AlternatingStep,
    CartStep,
    ForestStep,
    ImaginedStep,
    NoStep,
    RegressorStep,
)
from treewright.optimize.conduct import Conduct
from treewright.optimize.record import FitRecord, FitStatus, cut_short, named_trace
from treewright.splits.points import Points
from treewright.teachers.ensemble import seed_where_unset
from treewright.teachers.taught_points import label_folds, refuse_unteachable
from treewright.tree import Tree, averaged, leaf_counts, predict_values, settled, visited

if TYPE_CHECKING:
    from treewright.models.laptao.estimator import LapTAOModel

__all__ = ["LapTAOFit", "SmoothModel", "train_laptao"]

_TRACE = ("seconds", "objective", "mu", "label_loss", "smoothness", "price", "residual", "moved")
"""What is told of each round."""

_REASONS = {"rounds": "all rounds are done", "settled": "the model did not change any more"}

_PLANNED, _SEARCH = 0.25, 0.5
"""Shares of the time that the search for neighbours is planned to take, with fewer rows if need be, and may take."""

_LEAVING_OUT = 0.1
"""Share of the time in which labels are left out, so that the graph's probabilities are as often right as they say."""

_ENOUGH = 0.1
"""Share of the points whose neighbours must have been searched for: with less, the model is fitted to labels alone. Of
200 000 rows with 48 features, 1 % of them labelled, a tree errs on 4.1 % of others with all neighbours, on 4.0 with
those of half of the rows, 5.0 of a quarter, 5.7 of a tenth; and on 9.7 to 14.6 with labels alone."""

_BLOCK_CELLS = 4_000_000
"""Cells of sparse rows that are made dense at once, for models that were fitted on dense ones."""


def _takes_weights(settings: LapTAOModel) -> bool:
    """Whether the model knows weights of rows."""
    return isinstance(settings.estimator, str) or has_fit_parameter(settings.estimator, "sample_weight")


def _schedule(settings: LapTAOModel) -> Schedule:
    """Rounds and penalties."""
    rounds = 0 if settings.estimator == "graph" else int(settings.max_iter)
    full = settings.multiplier_rule == "full"
    return Schedule(rounds, float(settings.mu), float(settings.mu_factor), full, float(settings.tol))


@dataclass(frozen=True)
class SmoothModel:
    """What a LapTAO predicts with, in the units of the data: a tree, trees, a regressor, or the points themselves."""

    tree: Tree | None = None
    """One tree."""
    leaf_values: FloatArray | None = None
    """What it predicts at each of its nodes: scores of classes, which may be below 0 or sum to more than 1, or
    outputs."""
    split_price: float | None = None
    """What the objective charges for each unit of the norms of its splits."""
    trees: list[Tree] | None = None
    """A forest, which predicts the mean of its trees."""
    estimator: Any = None
    """A regressor of scikit-learn, for scaled features and centred targets of unit spread."""
    points: Any = None
    values: FloatArray | None = None
    """Scaled points and their values; other rows are averages of their neighbours."""
    scaling: Scaling | None = None
    """Scaling of the features."""
    mean: FloatArray | None = None
    """Mean of the labels."""
    scale: float | None = None
    """Spread of the targets; None for classes."""
    dense: bool = True
    """Whether regressor or points know dense rows alone."""
    design: Design | None = None
    """What makes numbers of scaled rows with categories or gaps, for regressor and points."""
    slope: float | None = None
    """What logarithms of shares of the points' values are multiplied by; with `levels` they are of probabilities."""
    levels: FloatArray | None = None

    def scores(self, rows: Any, n_neighbors: int = 10, perplexity: float = 5.0, threads: int = 1) -> FloatArray:
        """Values that are predicted for rows, in the units of the targets."""
        if self.tree is not None:
            return predict_values(self.tree, rows)
        if self.trees is not None:
            return np.asarray(sum(predict_values(tree, rows) for tree in self.trees) / len(self.trees))
        if self.dense and sparse.issparse(rows):
            width = max(1, _BLOCK_CELLS // rows.shape[1])
            blocks = (rows[first : first + width].toarray() for first in range(0, rows.shape[0], width))
            return np.concatenate([self.scores(block, n_neighbors, perplexity, threads) for block in blocks])
        assert self.scaling is not None and self.mean is not None
        scaled = self.scaling.apply(rows)
        if self.design is not None:
            scaled = self.design.apply(scaled)
        if self.estimator is not None:
            values = np.asarray(self.estimator.predict(scaled), dtype=np.float64).reshape(scaled.shape[0], -1)
            return values * (1.0 if self.scale is None else self.scale) + self.mean
        assert self.values is not None
        scaled = scaled.astype(self.points.dtype)
        return nearest_mean(self.points, self.values, scaled, n_neighbors, perplexity, threads)


@dataclass(frozen=True)
class LapTAOFit:
    """What training of a LapTAO ended with."""

    model: SmoothModel
    """What predicts."""
    smooth: FloatArray
    """Labels smoothed along the graph, in the units of the targets; predictions for rows of weight 0; shape (n_rows,
    n_outputs)."""
    targets: FloatArray
    """What the loss of the objective is of: labels given, trusted or taught, in the units of the targets, 0 where there
    is none; shape (n_rows, n_outputs)."""
    target_weight: FloatArray
    """Their weights; shape (n_rows,)."""
    alpha: float
    """The price of a split that was used."""
    n_iter: int
    best_iter: int
    """Rounds, and the best one."""
    record: FitRecord
    """How it went."""
    taught: SoftLabels | None = None
    """Who the teacher was and how much it counted; None without one."""


def train_laptao(
    rows: Sample,
    labelled: BoolArray,
    classes: bool,
    graph: Any,
    settings: LapTAOModel,
    graph_settings: GraphSettings,
    conduct: Conduct,
    budget: Budget,
    start: Tree | None = None,
    graph_teacher: GraphTeacher | None = None,
) -> LapTAOFit:
    """Fit a LapTAO model to few labels and the graph between all rows.

    Targets are in columns, anything where a row is not `labelled`. Those of `classes` have a 1 in the column of the
    class, and their tree gets labels; others are divided by their spread. The graph has the affinities of the rows,
    None for those of nearest neighbours. What is too deep in a start is cut off. A model is fitted whatever the budget.
    GraphTeacher are for classes alone.
    """
    assert rows.y is not None
    _check_weights(rows.weight, labelled, settings)
    if graph_teacher is not None:
        refuse_unteachable(rows.X, graph_teacher.given_teacher)
    known = graph if graph is None else check_graph(graph, len(rows))
    scale = None if classes else target_spread(rows.y[labelled], rows.weight[labelled])
    Y = rows.y if scale is None else rows.y / scale
    needed = labelled if graph_teacher is None else np.ones(len(rows), dtype=bool)
    with one_thread():
        bare = replace(rows, y=None)
        reduction, near = _points_and_graph(bare, labelled, needed, known, graph_settings, conduct, budget)
    kept, points = reduction.kept, reduction.points
    label_weight = np.where(labelled[kept], rows.weight[kept], 0.0)
    centred, mean = _centred(Y[kept], label_weight)
    means, mass = _by_point(centred, label_weight, reduction.place[kept], len(points))
    task = GraphTask(points.X, near.W, means, mass, points.weight, float(settings.gamma))
    taught = None
    if graph_teacher is not None:
        task, taught = graph_teacher.added_to(task, reduction, rows, labelled, mean, near.searched > 0, conduct, budget)
    unit, n_imagined = weight_unit(rows.weight[kept]), 0 if taught is None else len(taught.imagined)
    automatic = unit * automatic_alpha(float(points.weight.sum()) / unit + n_imagined, least=0.0)
    alpha = automatic if settings.alpha == "auto" else float(settings.alpha)
    likely = None
    if classes and taught is None and near.searched:
        folds = label_folds(np.where(mass > 0, means.argmax(axis=1), -1), conduct.seed)
        likely = graph_probabilities(task, mean, folds, budget.share(_LEAVING_OUT))
    step = _step(reduction, alpha, settings, conduct, budget, start, unit, taught)
    # Of labels alone there is nothing to smooth, and nothing to alternate with.
    schedule = _schedule(settings)
    if not near.searched:
        schedule = replace(schedule, rounds=0)
    sharpen = _sharpener(mean, mass > 0, settings) if near.searched else None
    with one_thread(), stage("labels and tree in turn"):
        result = smooth_and_fit(task, step, schedule, budget, conduct.told, sharpen)
    model = _in_units(result, reduction, rows, mean, scale, classes)
    if model.tree is not None:
        model = replace(model, split_price=step.alpha if isinstance(step, AlternatingStep | ImaginedStep) else 0.0)
    if classes and model.tree is not None:
        class_rows = replace(rows, y=np.where(labelled, rows.y.argmax(axis=1), -1))
        model = replace(model, tree=_likely_tree(model.tree, class_rows, reduction, likely, taught))
    if likely is not None and model.points is not None:
        model = replace(model, slope=likely.slope, levels=likely.levels)
    smooth = reduction.invert((result.smooth + mean) * (1.0 if scale is None else scale))
    left_out = np.flatnonzero(reduction.place < 0)
    if len(left_out):
        around = int(graph_settings.n_neighbors), float(graph_settings.perplexity), conduct.threads
        smooth[left_out] = model.scores(rows.X[left_out], *around)
    n_iter = 1 if settings.estimator == "graph" else result.n_rounds
    status, reason = _ended(result, settings, budget, near.note)
    trace = named_trace(([getattr(now, name) for name in _TRACE] for now in result.rounds), *_TRACE)
    # What equal rows with different labels cost whatever is fitted: the rounds know the mean of a point alone.
    unavoidable = float(label_weight @ ((centred - means[reduction.place[kept]]) ** 2).sum(axis=1))
    for name in ("objective", "label_loss"):
        trace[name] += unavoidable
    record = FitRecord(status, reason, budget.elapsed, result.objective + unavoidable, None, trace)
    targets, target_weight = _row_targets(result, reduction, rows, labelled, Y, mean, mass > 0)
    targets *= 1.0 if scale is None else scale
    return LapTAOFit(model, smooth, targets, target_weight, alpha, n_iter, result.best, record, taught)


def _check_weights(weight: FloatArray, labelled: BoolArray, settings: LapTAOModel) -> None:
    used = weight > 0
    if not np.any(labelled & used):
        raise InvalidInputError("no labelled row has a weight above 0; at least one must count")
    if not _takes_weights(settings) and np.ptp(weight[used]) > 0:
        raise InvalidInputError(
            f"sample_weight differs between rows, but estimator={settings.estimator!r} has no sample_weight in its "
            "fit; use another regressor, or weights of 0 and 1"
        )


# ---------------------------------------------------------------------- labels and graph of the points


def _centred(Y: FloatArray, label_weight: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Labels less their mean, 0 without one, and the mean."""
    known = label_weight[:, None] > 0
    mean = weighted_mean(Y[known[:, 0]], label_weight[known[:, 0]])
    away = Y - mean
    # What is left of equal targets is the rounding of their mean, which a tree would fit.
    return np.where(known & (np.abs(away) > 1e-15 * np.abs(Y)), away, 0.0), mean


def _by_point(
    centred: FloatArray, label_weight: FloatArray, place: IntArray, n_points: int
) -> tuple[FloatArray, FloatArray]:
    """Mean label of each point, 0 without one, and the weight of its labels."""
    mass = np.asarray(np.bincount(place, label_weight, n_points), dtype=np.float64)
    sums = np.column_stack([np.bincount(place, label_weight * column, n_points) for column in centred.T])
    return sums / np.where(mass > 0, mass, 1.0)[:, None], mass


@stage("graph")
def _points_and_graph(
    rows: Sample,
    labelled: BoolArray,
    needed: BoolArray,
    graph: Any,
    settings: GraphSettings,
    conduct: Conduct,
    budget: Budget,
) -> tuple[Reduction, FoundGraph]:
    """Points of the rows and their graph; of fewer rows, or of those needed without a graph, where time is short."""
    reduction = _points_of(rows, unit_scaling)
    if graph is not None:
        members = reduction.members()
        return reduction, FoundGraph(check_graph(members @ graph @ members.T, len(reduction.points)))
    scaling, n_rows, note = reduction.scaling, len(reduction.kept), ""
    assert scaling is not None
    design = design_of_points(reduction.points)
    numbers = _numbers(reduction.points.X, design)
    some = _rows_in_time(reduction, numbers, labelled, settings, conduct, budget)
    if len(some) < n_rows:
        note = f"the search for neighbours of {n_rows} rows takes too long, so {len(some)} of them were used"
        warnings.warn(note.replace("were", "are"), ConvergenceWarning, stacklevel=2)
        reduction = _points_of(_only(rows, some), lambda X: scaling)
        numbers = _numbers(reduction.points.X, design)
    found = FoundGraph(None, 0.0)
    if not note or not np.all(labelled[some]):
        found = settings.search(numbers, conduct.threads, conduct.seed, budget.share(_SEARCH))
    note = "; ".join(part for part in (note, found.note) if part)
    if found.searched >= _ENOUGH:
        return reduction, found._replace(note=note)
    reduction = _points_of(_only(rows, np.flatnonzero(needed)), lambda X: scaling)
    n, counts = len(reduction.points), "only labels and teacher count" if needed.all() else "only labelled rows count"
    return reduction, FoundGraph(sparse.csr_array((n, n)), 0.0, f"{note}; there is no graph, {counts}")


def _numbers(X: Any, design: Design | None) -> Any:
    return X if design is None else design.apply(X)


def _points_of(rows: Sample, make_scaling: Callable[[Any], Scaling]) -> Reduction:
    """Distinct points of rows that count."""
    return reduced_sample(rows, Weighted(), Scale(make_scaling), Compact(), Merge(labels=False))


def _only(rows: Sample, some: IntArray) -> Sample:
    """The same rows, of which only some count."""
    weight = np.zeros(len(rows))
    weight[some] = rows.weight[some]
    return replace(rows, weight=weight)


def _rows_in_time(
    reduction: Reduction, X: Any, labelled: BoolArray, settings: GraphSettings, conduct: Conduct, budget: Budget
) -> IntArray:
    """Rows that count, or labelled ones and so many others that the search for neighbours leaves time for the rest.

    X are the points as numbers.
    """
    used = reduction.kept
    if budget.seconds is None or settings.graph_cache is not None:  # what is on disk takes no time
        return used
    n, seconds = len(reduction.points), _PLANNED * budget.remaining
    most = affordable_points(X, int(settings.n_neighbors), settings.neighbors, conduct.threads, seconds)
    if most == n:
        return used
    budget.hurry()
    known = labelled[used]
    count = max(0, most * len(used) // n - np.count_nonzero(known))
    others = np.random.default_rng(conduct.seed).permutation(used[~known])[:count]
    return np.sort(np.concatenate([used[known], others]))


def _sharpener(
    mean: FloatArray, given: BoolArray, settings: LapTAOModel
) -> Callable[[GraphTask, FloatArray], GraphTask] | None:
    """What makes more labels of the smoothed ones; numbers have no clear ones, and `trust` is 0 for them.

    Points with a `given` label keep it; those of a teacher are soft.
    """
    if not settings.trust or settings.estimator == "graph":
        return None
    share, weight = float(settings.trust), float(settings.trust_weight)
    return lambda task, smooth: clearest_labels(task, smooth, mean, share, weight, given)


# ---------------------------------------------------------------------- the tree step


def _step(
    reduction: Reduction,
    alpha: float,
    settings: LapTAOModel,
    conduct: Conduct,
    budget: Budget,
    start: Tree | None,
    unit: float,
    taught: SoftLabels | None,
) -> TreeStep:
    points = reduction.points
    if settings.estimator == "graph":
        return NoStep()
    if settings.estimator == "cart":
        return CartStep(points.X, points.weight, int(settings.max_depth), conduct.seed, points.n_levels)
    if settings.estimator != "tao":
        return _regressor_step(points, settings, conduct)
    if start is not None:
        start = reduction.apply_tree(start.collapsed(start.level <= settings.max_depth))
    members, table = _Members(alpha, settings, budget, start), Points(points.X, points.n_levels)
    if settings.n_estimators == 1 and taught is not None and len(taught.imagined):
        table = Points(np.vstack([points.X, taught.imagined]), points.n_levels)
        weight = np.append(points.weight, np.full(len(taught.imagined), unit))
        return ImaginedStep(members(table, weight, conduct.seed, conduct.threads), taught.targets)
    if settings.n_estimators == 1:
        return members(table, points.weight, conduct.seed, conduct.threads)
    shares, work = (float(settings.max_samples), float(settings.max_features)), (conduct.seed, conduct.threads)
    return ForestStep(table, points.weight, members, settings.n_estimators, *shares, *work)


def _regressor_step(points: Sample, settings: LapTAOModel, conduct: Conduct) -> RegressorStep:
    model, X = clone(settings.estimator), _numbers(points.X, design_of_points(points))
    seed_where_unset(model, conduct.seed)
    # Regressors that take weights may wrap one that does not: they get none unless there are some.
    if _takes_weights(settings) and not np.array_equal(points.size, points.weight):
        return RegressorStep(X, model, weight=points.weight)
    return RegressorStep(X, model, copies=points.size.astype(np.int64))


@dataclass(frozen=True)
class _Members:
    """What makes the tree step of one tree, alone or in a forest."""

    alpha: float
    settings: LapTAOModel
    budget: Budget
    given: Tree | None

    def __call__(self, points: Points, weight: FloatArray, seed: int, n_jobs: int = 1) -> AlternatingStep:
        """The step of a tree on some points."""
        settings = self.settings

        def start(targets: FloatArray, alpha: float) -> Tree:
            if self.given is not None:
                return self.given
            depth, most = int(settings.max_depth), settings.max_split_features
            task = StartTask(points, targets, weight, depth, alpha, most, False, seed, n_jobs)
            return starting_tree(task, settings.init, self.budget)

        stretch = Stretch(float(settings.stretch), seed) if settings.stretch else None
        passes = settings.init_passes, settings.passes
        most = settings.max_split_features
        return AlternatingStep(points, weight, start, self.alpha, *passes, most, n_jobs, stretch)


# ---------------------------------------------------------------------- back to the units of the data


def _in_units(
    result: LapResult, reduction: Reduction, rows: Sample, mean: FloatArray, scale: float | None, classes: bool
) -> SmoothModel:
    """What predicts, in the units of the data."""
    factor = 1.0 if scale is None else scale
    kept, design = (
        SmoothModel(scaling=reduction.scaling, mean=mean * factor, scale=scale),
        design_of_points(reduction.points),
    )
    kept = replace(kept, dense=not sparse.issparse(reduction.points.X))
    found, inside, weight = result.model, rows.X[reduction.kept], rows.weight[reduction.kept]
    if isinstance(found, Tree):
        place = reduction.place[reduction.kept]
        tree = reduction.invert_tree(found)
        tree = tree.collapsed(visited(tree, inside))
        # Routing in the units of the data may round a point to the other side, so values come from the points.
        shares = (reduction.points.weight / reduction.points.size)[place]
        tree = settled(averaged(tree, inside, (result.values + mean)[place], shares), inside, weight)
        kept = replace(kept, leaf_values=tree.values * factor)
        if classes:
            return replace(kept, tree=_labelled_tree(tree, inside, weight))
        return replace(kept, tree=tree.with_leaves(tree.values * factor, None))
    if isinstance(found, list):
        trees = [settled(reduction.invert_tree(tree), inside, weight) for tree in found]
        return replace(kept, trees=[tree.with_leaves((tree.values + mean) * factor, None) for tree in trees])
    kept = replace(kept, design=design)
    if found is not None:
        return replace(kept, estimator=found)
    return replace(kept, points=_numbers(reduction.points.X, design), values=(result.values + mean) * factor)


def _labelled_tree(tree: Tree, rows: Any, weight: FloatArray) -> Tree:
    """A tree of scores as one of classes: shares of the classes times the weight of the rows of each node."""
    shares = np.maximum(tree.values, 0.0)
    total = shares.sum(axis=1, keepdims=True)
    shares = np.where(total > 0, shares / np.where(total > 0, total, 1.0), 1.0 / shares.shape[1])
    mass = leaf_counts(tree, rows, np.zeros(len(weight), dtype=np.int64), weight, 1)
    return tree.with_leaves(shares * mass, tree.values.argmax(axis=1))


def _likely_tree(
    tree: Tree, rows: Sample, reduction: Reduction, by_graph: GraphLikely | None, taught: SoftLabels | None
) -> Tree:
    """The tree with probabilities, by teacher or graph; by the labels alone where neither says any."""
    if taught is not None:
        return taught_tree(tree, rows, reduction.invert(taught.likely), judged=taught.judged)
    if by_graph is None:
        return smoothed_tree(tree, rows, agree=True)
    return taught_tree(tree, rows, reduction.invert(by_graph.points))


def _row_targets(
    result: LapResult,
    reduction: Reduction,
    rows: Sample,
    labelled: BoolArray,
    Y: FloatArray,
    mean: FloatArray,
    given: BoolArray,
) -> tuple[FloatArray, FloatArray]:
    """Targets of the rows and their weights: given ones, and at points that have none those that were added."""
    task, points = result.task, reduction.points
    added = np.where(given, 0.0, task.label_weight / points.weight)
    own = labelled & (rows.weight > 0)
    weight = np.where(own, rows.weight, reduction.invert(added) * rows.weight)
    targets = np.where(own[:, None], Y, reduction.invert(task.Y + mean))
    return np.where(weight[:, None] > 0, targets, 0.0), weight


def _ended(result: LapResult, settings: LapTAOModel, budget: Budget, cut: str) -> tuple[FitStatus, str]:
    """Status and reason; `cut` says how the search for neighbours was cut short."""
    done = "" if settings.estimator == "graph" else counted(result.n_rounds, "round")
    if budget.interrupted or result.reason == "stopped" or cut:
        status, reason = cut_short(budget, done)
        return status, cut or reason
    return FitStatus.LOCAL, _REASONS[result.reason]
