"""Maximum-margin trees from labels of which some are wrong: committee, length of the normals, search, branch and bound.

The model of the paper relabels points where that makes its tree cheaper. A tree that is fitted to wrong labels finds
them as far as it cannot fit them; a committee whose trees judge rows that they did not see finds more. So by default
the committee's suspects get the label that it suggests, and the model of the paper is solved on these labels, on which
it may relabel further.

The length that normals may have, the one setting that depends on the data much, is chosen by cross-validation on the
corrected labels, in favour of the middle where it makes no clear difference.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from joblib import Parallel, delayed

from treewright.core.arrays import BoolArray, FloatArray, IntArray
from treewright.core.budget import Budget
from treewright.core.progress import stage
from treewright.data import (
    Merge,
    Problem,
    Reduction,
    Sample,
    Scale,
    Weighted,
    reduced_sample,
    unit_scaling,
    weight_unit,
)
from treewright.data.columns_checked import show
from treewright.data.folds import folds_of
from treewright.models.octsvm.against import last_split_values, tree_against_others
from treewright.models.octsvm.committee import FEWEST, find_suspects, unfinished_committee_words
from treewright.models.octsvm.loss import Norm, octsvm_split_loss, relabelled_points
from treewright.models.octsvm.machines import NORMS, Prices
from treewright.models.octsvm.node_loops import last_values
from treewright.models.octsvm.objective import OCTSVM, RESVM
from treewright.models.octsvm.search import grown_octsvm, search_octsvm
from treewright.optimize.conduct import Conduct
from treewright.optimize.course import Outcome, optimize
from treewright.optimize.incumbent import Incumbent
from treewright.optimize.record import PROVEN, FitRecord, FitStatus, named_trace
from treewright.tree import Tree, leaf_counts, route
from treewright.tree.trimming import without_idle_terms

__all__ = [
    "OCTSVMFit",
    "OCTSVMSettings",
    "chosen_length",
    "octsvm_model",
    "train_octsvm",
    "tree_without_residue",
]

LENGTHS = (1.0, 2.0, 4.0, 8.0, 16.0)
"""Lengths of normals that cross-validation chooses from."""

_MIDDLE = 1
"""The one that is taken where others are not clearly better, or where there is no time to choose."""

_RELABEL_COST = {"tree": 1.0, "committee": 2.0}
"""Price of a relabelled row, by who finds wrong labels. A committee has corrected them; where it could not, a tree that
may relabel cheaply would rather relabel a class than part it."""

_FOLDS = 5
"""Folds of the choice."""

_COMMITTEE_SHARE, _CHOICE_SHARE, _SEARCH_SHARE = 0.4, 0.3, 0.5
"""Shares of the time that is left: for the committee, then for the choice, then for the search."""

_RESIDUE = 1e-4
"""Share of the term that moves a split most up to which another one may be what a solver leaves of 0."""


@dataclass(frozen=True)
class OCTSVMSettings:
    """What is optimized; see :class:`treewright.OCTSVMClassifier` and :class:`treewright.RESVMClassifier`."""

    max_depth: int = 2
    max_norm: float | str = "auto"
    relabel_cost: float | str = "auto"
    split_cost: float = 0.04
    c1: float | None = None
    c2: float | None = None
    c3: float | None = None
    norm: Norm = "l2"
    relabel: str = "committee"
    n_estimators: int = 60
    machine: bool = False
    """Whether it is RE-SVM."""


@dataclass(frozen=True, eq=False)
class OCTSVMFit:
    """What training of an OCTSVM ended with.

    Attributes
    ----------
    trees : list of Tree
        The tree in the units of the data; one a class against all others, if there are more than two.
    record : FitRecord
        How it went; objective and bound are sums over the trees.
    max_norm, relabel_cost : float or None
        Bound of the lengths of normals and price of a relabelled row, None where the margin has a price.
    relabeled : ndarray of bool, shape (n_rows,)
        Labels that are held for wrong.
    suspicion : ndarray of shape (n_rows,)
        How much speaks against each label; NaN for rows of weight 0.
    suggested : ndarray of int, shape (n_rows,)
        Class numbers that the rows should have.
    by_committee : bool
        Whether a committee judged; otherwise the tree did, on the rows it was fitted to.
    """

    trees: list[Tree]
    record: FitRecord
    max_norm: float | None
    relabel_cost: float | None
    relabeled: BoolArray
    suspicion: FloatArray
    suggested: IntArray
    by_committee: bool


@dataclass
class _Labels:
    """What is known of the labels of points."""

    y: IntArray
    suspicion: FloatArray
    suggested: IntArray
    by_committee: bool = False
    n_rounds: int = 0


def train_octsvm(
    problem: Problem, settings: OCTSVMSettings, conduct: Conduct, budget: Budget, starts: list[Tree] | None = None
) -> OCTSVMFit:
    """Find the best OCTSVM tree within a budget, or one a class, and the labels that are wrong.

    Parameters
    ----------
    problem : Problem
        Labelled rows.
    settings : OCTSVMSettings
        What is optimized.
    conduct : Conduct
        Solver and gap.
    budget : Budget
        Time for all of it.
    starts : list of Tree or None
        Trees to start from, in the units of the data, as many as are fitted.
    """
    # Prices are those of rows of weight 1, whatever rows weigh to the user.
    unit = weight_unit(problem.weight)
    conduct = conduct.told_in_units(unit)
    rows = Sample.of(problem.X, problem.y, problem.weight / unit)
    reduction = reduced_sample(rows, Weighted(), Scale(unit_scaling), Merge())
    points = reduction.points
    labels = _judged(points, problem.n_classes, settings, conduct, budget)
    if settings.relabel_cost == "auto":
        settings = replace(settings, relabel_cost=_RELABEL_COST[settings.relabel])
    X, weight = np.ascontiguousarray(points.X, dtype=np.float64), points.weight
    classes = [1] if problem.n_classes == 2 else list(range(problem.n_classes))
    given = [reduction.apply_tree(tree) for tree in starts or []]
    if problem.n_classes > 2:
        given = [tree_against_others(tree, label) for label, tree in enumerate(given)]
    max_norm = _length(X, labels.y, weight, classes, settings, conduct, budget)
    outcomes, found, losses = list[Outcome[Tree]](), list[Tree](), list[FloatArray]()
    for k, label in enumerate(classes):
        model = octsvm_model(X, (labels.y == label).astype(np.int64), weight, settings, max_norm)
        start = given[k : k + 1] if len(given) == len(classes) else []
        outcome = tree_without_residue(
            model, _optimized(model, start, conduct, budget.share(1 / (len(classes) - k))), X
        )
        outcomes.append(outcome)
        found.append(_in_rows(problem, reduction, outcome.solution, label))
        losses.append(_cheaper(model, outcome.solution))
    if not labels.by_committee:
        _judge_by_trees(labels, outcomes, losses, X, settings, problem.n_classes)
    record = _record(outcomes, conduct, budget).times(unit)
    record = replace(record, note=_note(settings, labels, problem, points, found))
    return OCTSVMFit(
        found,
        _checked_units(record, problem, reduction, found, outcomes),
        max_norm,
        None if max_norm is None else float(settings.relabel_cost),
        np.asarray(reduction.invert(labels.suggested != _y(points), left_out=False)),
        np.asarray(reduction.invert(labels.suspicion, left_out=np.nan)),
        np.where(
            reduction.invert(np.ones(len(points), dtype=bool), left_out=False),
            reduction.invert(labels.suggested),
            problem.y,
        ),
        labels.by_committee,
    )


def tree_without_residue(model: OCTSVM, outcome: Outcome[Tree], X: FloatArray) -> Outcome[Tree]:
    """An OCTSVM tree without what interior points leave of weights that are 0, where it stays as good."""
    most = outcome.record.objective
    assert most is not None
    limit = most + (1e-9 if outcome.record.status == FitStatus.OPTIMAL else 1e-6) * max(1.0, abs(most))
    tree = without_idle_terms(outcome.solution, X, _RESIDUE, lambda found: model.objective(found) <= limit)
    if tree is outcome.solution:
        return outcome
    return Outcome(tree, outcome.record.with_objective(model.objective(tree)))


def _note(settings: OCTSVMSettings, labels: _Labels, problem: Problem, points: Sample, trees: list[Tree]) -> str:
    """What the user should know of the labels that are held for wrong."""
    notes = []
    if settings.relabel == "committee" and not labels.by_committee:
        counts = np.bincount(_y(points), minlength=problem.n_classes)
        few = f"class {show(problem.classes[counts.argmin()])} has {counts.min()} different rows, and it needs {FEWEST}"
        why = few if counts.min() < FEWEST else "it had too little time; a longer time_limit may help"
        notes.append(
            f"the committee that looks for wrong labels could not judge: {why}. So the tree judged the rows that it "
            "was fitted to, as with relabel='tree': suspicion_ is what the other label would save"
        )
    if labels.by_committee and labels.n_rounds < settings.n_estimators:
        notes.append(unfinished_committee_words(labels.n_rounds, settings.n_estimators))
    held = np.bincount(_y(points), weights=labels.suggested != _y(points), minlength=problem.n_classes)
    if not labels.by_committee and len(trees) == 1 and not len(trees[0].branches) and held.any():
        label = show(problem.classes[int(held.argmax())])
        notes.append(
            f"the tree has no split, so that all labels {label} are held for wrong: at these prices relabelling a "
            "class is cheaper than parting it. Raise relabel_cost or max_norm (c1, c2), or lower split_cost (c3)"
        )
    return "; ".join(notes)


def _y(points: Sample) -> IntArray:
    assert points.y is not None
    return points.y


@stage("committee")
def _judged(points: Sample, n_classes: int, settings: OCTSVMSettings, conduct: Conduct, budget: Budget) -> _Labels:
    """Labels as the committee corrects them, or as they are."""
    y = _y(points)
    own = _Labels(y, np.zeros(len(y)), y)
    if settings.relabel != "committee":
        return own
    X = np.asarray(points.X, dtype=np.float64)
    n, time = settings.n_estimators, budget.share(_COMMITTEE_SHARE)
    found = find_suspects(X, y, points.weight, n_classes, n, conduct, time)
    if found is None:
        return own
    # a class that would lose all its points keeps them: a tree must be able to say it
    kept = np.bincount(found.suggested, minlength=n_classes) > 0
    corrected = found.suggested if kept.all() else y
    return _Labels(corrected, found.suspicion, found.suggested, by_committee=True, n_rounds=found.n_rounds)


def octsvm_model(
    X: FloatArray, y: IntArray, weight: FloatArray, settings: OCTSVMSettings, max_norm: float | None
) -> OCTSVM:
    """The OCTSVM on points of two classes: with prices of the margin as in the paper, or with bounded normals."""
    if settings.machine:
        assert settings.c1 is not None and settings.c2 is not None
        return RESVM(X, y, weight, c1=settings.c1, c2=settings.c2, norm=settings.norm)
    if max_norm is None:
        assert settings.c1 is not None and settings.c2 is not None and settings.c3 is not None
        c1, c2, c3 = settings.c1, settings.c2, settings.c3
        return OCTSVM(X, y, weight, settings.max_depth, c1, c2, c3, settings.norm)
    return OCTSVM(
        X,
        y,
        weight,
        settings.max_depth,
        c1=1.0,
        c2=float(settings.relabel_cost),
        c3=settings.split_cost * float(weight.sum()),
        norm=settings.norm,
        max_norm=max_norm,
        margin_price=0.0,
    )


# ---------------------------------------------------------------------- how long normals may be


@stage("choice of the norm")
def _length(
    X: FloatArray,
    y: IntArray,
    weight: FloatArray,
    classes: list[int],
    settings: OCTSVMSettings,
    conduct: Conduct,
    budget: Budget,
) -> float | None:
    if settings.machine or settings.c1 is not None:
        return None
    if settings.max_norm != "auto":
        return float(settings.max_norm)
    errors, total = np.zeros(len(LENGTHS)), 0.0
    time = budget.share(_CHOICE_SHARE)
    for k, label in enumerate(classes):
        sign = np.where(y == label, 1.0, -1.0)
        found = length_errors(X, sign, weight, settings, conduct, time.share(1 / (len(classes) - k)))
        if found is None:
            return LENGTHS[_MIDDLE]
        errors, total = errors + found, total + float(weight.sum())
    return chosen_length(errors, total)


def length_errors(
    X: FloatArray, sign: FloatArray, weight: FloatArray, settings: OCTSVMSettings, conduct: Conduct, budget: Budget
) -> FloatArray | None:
    """OCTSVM errors at points left out, by weight, for each length of normals; None if time or points are too few."""
    rng = np.random.default_rng(conduct.seed)
    search = conduct.search.octsvm
    some = rng.permutation(len(X))[: search.choice_points] if len(X) > search.choice_points else np.arange(len(X))
    total = float(weight.sum())
    X, sign, weight = X[some], sign[some], weight[some]
    if min(np.count_nonzero(sign > 0), np.count_nonzero(sign < 0)) < _FOLDS:
        return None
    fold = folds_of((sign > 0).astype(np.int64), _FOLDS, rng)

    def wrong_at(k: int, j: int) -> float | None:
        if budget.over:
            return None
        inside, outside = fold != k, fold == k
        r3 = settings.split_cost * float(weight[inside].sum())
        prices = Prices(settings.max_depth, float(settings.relabel_cost), r3, LENGTHS[j], NORMS[settings.norm])
        own, draws = np.ascontiguousarray(X[inside]), np.random.default_rng([conduct.seed, k, j])
        tree = grown_octsvm(own, sign[inside], weight[inside], prices, draws, budget, search.choice_restarts)
        wrong = (last_values(np.ascontiguousarray(X[outside]), tree) >= 0) != (sign[outside] > 0)
        return None if budget.over else float(weight[outside] @ wrong)

    jobs = [(k, j) for k in range(_FOLDS) for j in range(len(LENGTHS))]
    with Parallel(n_jobs=conduct.threads, backend="threading") as parallel:
        found = parallel(delayed(wrong_at)(*job) for job in jobs)
    if any(value is None for value in found):
        return None
    errors = np.array(found, dtype=np.float64).reshape(_FOLDS, len(LENGTHS)).sum(axis=0)
    return errors * (total / float(weight.sum()))


def chosen_length(errors: FloatArray, total: float) -> float:
    """The length of OCTSVM normals nearest to the middle whose errors are within a standard error of the fewest.

    Parameters
    ----------
    errors : ndarray
        Weight of the errors of each length.
    total : float
        Weight of all points.

    Examples
    --------
    >>> chosen_length(np.array([12.0, 11.0, 10.0, 10.0, 11.0]), 100.0)
    2.0
    >>> chosen_length(np.array([40.0, 30.0, 10.0, 4.0, 4.0]), 100.0)
    8.0
    """
    share = errors / total
    best = share.min()
    near = np.flatnonzero(share <= best + np.sqrt(best * (1 - best) / total) + 1e-12)
    return LENGTHS[int(near[np.argmin(np.abs(near - _MIDDLE))])]


# ---------------------------------------------------------------------- one tree


def _optimized(model: OCTSVM, starts: list[Tree], conduct: Conduct, budget: Budget) -> Outcome[Tree]:
    if model.margin_price > 0:
        # The better a tree at hand, the shorter are the normals of better ones, and the tighter is the program.
        best = Incumbent(model, floor=0.0)
        search_octsvm(best, model, starts, budget.share(0.2), conduct.seed, conduct.search.octsvm.first_patience)
        assert best.solution is not None
        model, starts = replace(model, cutoff=best.objective * (1 + 1e-6)), [best.solution]

    def search(best: Incumbent[Tree], time: Budget) -> None:
        search_octsvm(best, model, starts, time, conduct.seed, conduct.search.octsvm.patience)

    return optimize(model, search, conduct, budget, _SEARCH_SHARE)


def _cheaper(model: OCTSVM, tree: Tree) -> FloatArray:
    """How much cheaper the tree would be if the label of a point were the other one, per unit of weight."""
    assert tree.labels is not None
    total = np.zeros(len(model.X))
    at = route(tree, model.X)
    levels = np.maximum(0, model.depth + 1 - tree.level[at])
    total += model.leaf_price * levels * np.where(tree.labels[at] != model.y, 1.0, -1.0)
    node = tree.parent[at]
    while np.any(node >= 0):
        on = np.flatnonzero(node >= 0)
        value = np.einsum("ij,ij->i", model.X[on], tree.weights[node[on]]) - tree.threshold[node[on]]
        margin = model.sign[on] * value
        total[on] += octsvm_split_loss(margin, model.c1, model.c2) - octsvm_split_loss(-margin, model.c1, model.c2)
        node = np.where(node >= 0, tree.parent[node], -1)
    return total


def _judge_by_trees(
    labels: _Labels,
    outcomes: list[Outcome[Tree]],
    losses: list[FloatArray],
    X: FloatArray,
    settings: OCTSVMSettings,
    n_classes: int,
) -> None:
    """Let the trees judge the points that they were fitted to."""
    y, depth = labels.y, 0 if settings.machine else settings.max_depth
    values = np.stack([last_split_values(outcome.solution, X, depth) for outcome in outcomes], axis=1)
    if n_classes == 2:
        values = np.concatenate([-values, values], axis=1)
    own = values[np.arange(len(y)), y]
    if n_classes == 2:
        labels.suspicion = losses[0]
    else:
        other = values.copy()
        other[np.arange(len(y)), y] = -np.inf
        labels.suspicion = np.stack(losses, axis=1)[np.arange(len(y)), y] + np.clip(other.max(axis=1), -1.0, 1.0)
        values = np.where(
            values > 0, values, -np.inf
        )  # a class that no tree speaks for is no better than the given one
    c1, c2 = (1.0, float(settings.relabel_cost)) if settings.c1 is None else (settings.c1, settings.c2 or 0.0)
    best = values.argmax(axis=1)
    wrong = (best != y) & np.isfinite(values.max(axis=1)) & relabelled_points(own, c1, c2)
    labels.suggested = np.where(wrong, best, y)


def _in_rows(problem: Problem, reduction: Reduction, tree: Tree, label: int) -> Tree:
    """The tree of a class in the units of the data, its leaves with the weights of all classes as they are labelled.

    With more than two classes, leaves of "all others" say which of these is heaviest there.
    """
    found = reduction.invert_tree(tree)
    assert tree.labels is not None
    yes = tree.labels > 0
    labels = tree.labels.copy()
    # only the shape is needed to count
    blank = found.with_leaves(np.zeros((found.n_nodes, problem.n_classes)), np.zeros(found.n_nodes, dtype=np.int64))
    counts = leaf_counts(blank, problem.X, problem.y, problem.weight, problem.n_classes)
    if problem.n_classes > 2:
        others = counts.copy()
        others[:, label] = -1.0
        labels = np.where(yes, label, others.argmax(axis=1))
    else:
        counts[counts.argmax(axis=1) != labels] = 0.0  # shares of leaves agree with their labels
    return found.with_leaves(counts, labels)


def _record(outcomes: list[Outcome[Tree]], conduct: Conduct, budget: Budget) -> FitRecord:
    """One record of all trees: objectives and bounds add up, and the fit ended as its worst tree did."""
    records = [outcome.record for outcome in outcomes]
    if len(records) == 1:
        return records[0]
    objective = sum(float(record.objective or 0.0) for record in records)
    bound = sum(float(record.bound or 0.0) for record in records)
    left = [record for record in records if record.status != FitStatus.OPTIMAL]
    status, reason = (left[0].status, left[0].reason) if left else (FitStatus.OPTIMAL, PROVEN)
    trace = named_trace([(budget.elapsed, objective, bound)], "seconds", "objective", "bound")
    return FitRecord(status, reason, budget.elapsed, objective, bound, trace, float(conduct.gap))


def _checked_units(
    record: FitRecord, problem: Problem, reduction: Reduction, trees: list[Tree], outcomes: list[Outcome[Tree]]
) -> FitRecord:
    """The record, unproven where rounding makes rows go another way than their points."""
    scaled = problem.X if reduction.scaling is None else reduction.scaling.apply(problem.X)
    differing = 0
    for tree, outcome in zip(trees, outcomes, strict=True):
        assert tree.labels is not None and outcome.solution.labels is not None
        there = route(outcome.solution, scaled)
        differing += int(np.count_nonzero(route(tree, problem.X) != there))
    if not differing:
        return record
    return record.unproven(
        f"{differing} training rows go another way in the original units than in the scaled ones, for which objective "
        "and bound hold: a feature varies too little for its size. Subtract a constant from such features"
    )
