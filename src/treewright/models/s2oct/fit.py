"""Semi-supervised optimal trees with class totals: rows to points, search, branch and bound, choice among optima."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from treewright.core.arrays import FloatArray, IntArray
from treewright.core.budget import Budget
from treewright.core.names import counted
from treewright.core.progress import relative_gap, stage
from treewright.data import (
    ClassTotals,
    Merge,
    Problem,
    Reduction,
    Sample,
    Scale,
    Weighted,
    reduced_sample,
    refuse_narrow,
    s2oct_scaling,
    weight_unit,
)
from treewright.data.columns_checked import listing
from treewright.engine.leaf_probabilities import smoothed_tree
from treewright.models.s2oct.distances import largest_distance
from treewright.models.s2oct.leaf_shares import likely_trees
from treewright.models.s2oct.objective import S2OCT, default_depth, default_max_coefficient
from treewright.models.s2oct.search.attempts import TeacherMaker, search_s2oct
from treewright.models.s2oct.search.choice import LEEWAY, TreePool, committee_labels, committee_trees
from treewright.models.s2oct.search.data import Survey
from treewright.models.s2oct.search.sparse import (
    SizedTree,
    all_right_tree,
    chosen_size,
    measured_s2oct_tree,
    path_sizes,
    sized_trees,
)
from treewright.models.s2oct.search.taught import TaughtSettings, taught_planes
from treewright.optimize.conduct import Conduct
from treewright.optimize.course import Outcome, optimize, solved_tree
from treewright.optimize.incumbent import Incumbent
from treewright.optimize.record import PROVEN, FitRecord, FitStatus, cut_short, named_trace
from treewright.solvers import Progress, require_capabilities
from treewright.teachers.auto import auto_teacher
from treewright.teachers.given import GivenTeacher
from treewright.teachers.points import TeacherPoints
from treewright.teachers.record import TeacherRecord
from treewright.teachers.teacher import Teacher
from treewright.tree import Tree, predict_labels
from treewright.tree.rounding import rounded_tree

if TYPE_CHECKING:
    from treewright.models.s2oct.estimator import S2OCTClassifier

__all__ = ["S2OCTFit", "train_s2oct"]

_GRACE = 0.2
"""Seconds in which numbers are rounded where less than that is left."""
_CHANCE, _MEMBER_FEATURES = 0.4, (3, 5, None)
"""Committees: how far variations of the teacher go, and features of a split, in turn. Variations that go all the
way label worse than the tree on some tables by ten points and more."""
_MODELS = {
    "paper": "the paper's model, unlabelled rows being at least 1 from every split",
    "reached": "the model in which unlabelled rows are at least 1 from the splits that they reach",
    "tolerance": "the model in which unlabelled rows are at least {tolerance:g} from the splits that they reach",
}
"""What a proof is about, by the rule of margins."""
_NOT_THE_PAPERS = " (margin_rule='paper' is the paper's model)"
_PRINTED = (
    "the printed program, whose constant M can cut off better trees: nothing is proven of the model, for which "
    "there is formulation='tight'"
)


def _takes_smallest(settings: S2OCTClassifier) -> bool:
    """Whether the smallest tree that has learned enough is taken, and not the best one of a size.

    Where points are to keep margins of 1 there is one size only, that of the paper.
    """
    roomy = settings.margin_rule != "tolerance" or settings.formulation == "paper"
    return settings.max_split_features == "auto" and not roomy


@dataclass(frozen=True)
class S2OCTFit:
    """What training of an S2OCT ended with."""

    tree: Tree
    """The tree, in the units of the data."""
    others: list[Tree]
    """The other members of the committee."""
    numbers: IntArray
    """Class numbers of all rows: the given ones, and those of the tree or the committee; shape (n_rows,)."""
    record: FitRecord
    """How it went."""
    teacher: TeacherRecord | None
    """Whom the trees learned from; None where there was no time, or no search."""


@dataclass
class _Search:
    """The search as branch and bound calls it, and the equally good trees of its last call."""

    model: S2OCT
    starts: list[Tree]
    samples: int
    make_teacher: TeacherMaker | None
    conduct: Conduct
    pool: TreePool = field(default_factory=TreePool)

    def __call__(self, best: Incumbent[Tree], budget: Budget) -> None:
        self.pool = search_s2oct(
            best,
            self.model,
            self.starts,
            budget,
            self.make_teacher,
            self.conduct.seed,
            samples=self.samples,
            n_jobs=self.conduct.threads,
            search=self.conduct.search.s2oct,
        )


def train_s2oct(
    problem: Problem,
    settings: S2OCTClassifier,
    conduct: Conduct,
    budget: Budget,
    start: Tree | None = None,
    given_teacher: GivenTeacher | None = None,
) -> S2OCTFit:
    """Find the best S2OCT trees for labelled and unlabelled rows and their totals, and choose among them.

    The teacher is made of the points themselves unless `given_teacher` brings one.
    """
    # Searches and solvers have tolerances of their own, so rows weigh about 1 to them, whatever they weigh to the user.
    began, unit = budget.elapsed, weight_unit(problem.weight_labelled)
    refuse_narrow(problem.X, problem.feature_names)
    conduct = conduct.told_in_units(unit)
    rows = Sample.of(problem.X, problem.y, np.where(problem.labelled, problem.weight / unit, 1.0))
    reduction = reduced_sample(rows, Scale(s2oct_scaling), Weighted(), Merge())
    model = _model(problem, reduction, settings)
    starts = [] if start is None else [reduction.apply_tree(start)]
    make_teacher = _teacher_maker(problem, reduction, model, conduct, given_teacher)
    train = partial(_sparse, size=reduction.points.size) if _takes_smallest(settings) else _optimal
    # What follows passes over all rows about as often as what was done so far.
    time = budget.leaving(budget.elapsed - began)
    outcome, others, guess, teacher = train(model, starts, settings, conduct, time, make_teacher)

    def of_rows(labels: IntArray) -> IntArray:
        of_points = np.zeros(len(reduction.points), dtype=np.int64)
        of_points[model.y < 0] = labels
        return np.where(problem.labelled, problem.y, reduction.invert(of_points))

    taught = None if teacher is None else of_rows(teacher.labels())
    if settings.prefer != "margin":  # the widest gap is where its middle is
        outcome = _readable(model, reduction, problem, outcome, budget)
    found = solved_tree(problem, reduction, outcome, taught)
    told, numbers = None if teacher is None else teacher.record, of_rows(guess)
    trees = [found.tree, *(reduction.invert_tree(tree) for tree in others)]
    if problem.n_unlabelled:

        def of_hidden(table: FloatArray) -> FloatArray:
            of_points = np.zeros((len(reduction.points), problem.n_classes))
            of_points[model.y < 0] = table
            return reduction.invert(of_points)[problem.unlabelled]

        scores = None if teacher is None else of_hidden(teacher.scores)
        trees = likely_trees(problem, trees, scores, given_teacher, budget)
    else:
        trees = [smoothed_tree(tree, problem) for tree in trees]
    record = _absent_told(problem, _model_told(model, found.record.times(unit)), numbers)
    return S2OCTFit(trees[0], trees[1:], numbers, record, told)


def _model_told(model: S2OCT, record: FitRecord) -> FitRecord:
    """The record, with a word on the model that its proof, or the printed program that its bound is about."""
    if model.formulation == "paper":
        what = f" for {_PRINTED}" if record.status == FitStatus.OPTIMAL else f"; the bound is one of {_PRINTED}"
        return replace(record, reason=record.reason + what)
    if record.status != FitStatus.OPTIMAL:
        return record
    most = model.max_split_features
    few = f", of trees with at most {counted(most, 'feature')} a split" if model.restricted and most else ""
    other = "" if model.margin_rule == "paper" else _NOT_THE_PAPERS
    name = _MODELS[model.margin_rule].format(tolerance=model.tolerance)
    return replace(record, reason=f"{record.reason} for {name}{few}{other}")


def _absent_told(problem: Problem, record: FitRecord, numbers: IntArray) -> FitRecord:
    """The record, with a word on classes that the totals ask for and no unlabelled row has."""
    if problem.totals is None:
        return record
    asked = problem.totals.low.sum(axis=0)
    given = np.bincount(numbers[problem.unlabelled], minlength=len(asked))
    absent = np.flatnonzero((asked > 0) & (given == 0))
    if not len(absent):
        return record
    rows = counted(int(asked[absent].sum()), "row is", "rows are")
    told = f"no row is labelled {listing(problem.classes[absent])}, which {rows} by the totals"
    return replace(record, reason=f"{record.reason}; {told}")


_Trained = tuple[Outcome[Tree], list[Tree], IntArray, Teacher | None]
"""What was found, the other members of the committee, labels of the unlabelled points, the teacher."""


def _optimal(
    model: S2OCT,
    starts: list[Tree],
    settings: S2OCTClassifier,
    conduct: Conduct,
    budget: Budget,
    make_teacher: TeacherMaker,
) -> _Trained:
    """The best tree of the model: search, then branch and bound, then the choice among equally good ones."""
    few = 1 if settings.prefer in ("first", "taught") else conduct.search.s2oct.samples
    printed = settings.formulation == "paper"
    search = _Search(model, starts, max(few, settings.n_estimators), None if printed else make_teacher, conduct)
    share = 0.6 if settings.margin_rule == "tolerance" else 0.85
    outcome = optimize(model, search, conduct, budget, search_share=share)
    outcome, others, guess = _chosen(model, outcome, search, settings)
    missed, record = model.totals.missed(guess), outcome.record
    if missed and record.status != FitStatus.OPTIMAL:  # what users look at first
        told = f"{record.reason}; {counted(missed, 'row misses', 'rows miss')} the totals"
        outcome = Outcome(outcome.solution, replace(record, reason=told))
    return outcome, others, guess, search.pool.teacher


def _sparse(
    model: S2OCT,
    starts: list[Tree],
    settings: S2OCTClassifier,
    conduct: Conduct,
    budget: Budget,
    make_teacher: TeacherMaker,
    *,
    size: FloatArray,
) -> _Trained:
    """The smallest taught tree that has learned enough; there is nothing to prove but what its objective proves.

    Points stand for so many rows each as `size` says.
    """
    require_capabilities(conduct.prover.name, conduct.prover.capabilities, model.needs)
    survey = Survey(model, conduct.search.s2oct)
    teacher = make_teacher(survey.teacher_points, budget.share(0.4))
    taught = teacher.labels()
    path = [measured_s2oct_tree(survey, tree, taught, None) for tree in starts]
    tried = sized_trees(survey, taught, conduct.seed, budget)
    path += tried
    best = all_right_tree(survey, chosen_size(path), taught, conduct.seed, budget)
    if conduct.told is not None:
        conduct.told(Progress(budget.elapsed, model.objective(best.tree), model.lower_bound()))
    trees = _members(survey, teacher, best, path, settings.n_estimators, conduct.seed, budget)
    labels = [predict_labels(step.tree, survey.hidden) for step in trees]
    pool = TreePool(0.0, [step.tree for step in trees], labels, teacher, taught)
    guess = committee_labels(pool, model, list(range(len(trees))))
    objective, bound = model.objective(best.tree), model.lower_bound()
    trace = named_trace([(budget.elapsed, objective, bound)], "seconds", "objective", "bound")
    status, reason = FitStatus.LOCAL, _words(best, survey, size, len(tried))
    if relative_gap(objective, bound) <= conduct.gap:
        status, reason = FitStatus.OPTIMAL, PROVEN
    elif budget.interrupted or (budget.over and len(path) < 2):
        status, reason = cut_short(budget, f"{counted(len(path), 'size')} of trees")
    record = FitRecord(status, reason, budget.elapsed, objective, bound, trace, conduct.gap)
    return Outcome(best.tree, record), [step.tree for step in trees[1:]], guess, teacher


@stage("members of the committee")
def _members(
    survey: Survey, teacher: Teacher, best: SizedTree, path: list[SizedTree], n_trees: int, seed: int, budget: Budget
) -> list[SizedTree]:
    """The best tree, then the other ones of the path, then more that variations of what the teacher says have taught.

    Only the first is there to be read, so the others may have any size.
    """
    others = sorted((step for step in path if step.missed <= best.missed), key=lambda step: -step.learned)
    found = [best, *(step for step in others if step.tree is not best.tree)][:n_trees]
    rng = np.random.default_rng(seed)
    for number in range(n_trees - len(found)):
        if budget.over:
            break
        taught, most = teacher.varied(rng, _CHANCE), _MEMBER_FEATURES[number % len(_MEMBER_FEATURES)]
        settings = TaughtSettings(most, 3.0, 1.0, kicks=survey.search.path_kicks)
        planes = taught_planes(survey, taught, settings, seed + 1 + number, budget)
        step = measured_s2oct_tree(survey, planes.to_tree(survey.model.n_classes), taught, most)
        if step.missed <= best.missed:
            found.append(step)
    return found


def _words(best: SizedTree, survey: Survey, size: FloatArray, n_tried: int) -> str:
    model = survey.model
    rows = size[model.labelled]
    wrong = predict_labels(best.tree, model.X[model.labelled]) != model.y[model.labelled]
    given = counted(int(rows.sum()), "labelled row")
    right = f"{int(rows[wrong].sum())} of {given} are not as labelled" if wrong.any() else "all labels are right"
    met = "the totals are met" if not best.missed else f"{counted(best.missed, 'row misses', 'rows miss')} the totals"
    n_sizes = len(path_sizes(survey))
    time = f"; the time was over after {n_tried} of {n_sizes} sizes of trees" if n_tried < n_sizes else ""
    words = f"the smallest tree that has learned enough: {met}, {right}{time}"
    return f"{words}; max_split_features=None asks for an optimum, margin_rule='paper' for that of the paper's model"


def _teacher_maker(
    problem: Problem, reduction: Reduction, model: S2OCT, conduct: Conduct, given_teacher: GivenTeacher | None
) -> TeacherMaker:
    """What makes the teacher of points: of the points themselves, or of what somebody says of the rows."""

    def make_teacher(teacher_points: TeacherPoints, budget: Budget) -> Teacher:
        if given_teacher is None:
            settings = conduct.search.teacher
            return auto_teacher(teacher_points, conduct.seed, budget, conduct.threads, settings=settings)
        of_rows = np.zeros((len(problem.X), problem.n_classes))
        of_rows[problem.unlabelled] = given_teacher.scores(problem, budget)
        total = reduction.members() @ of_rows
        counts = np.maximum(np.bincount(reduction.place[reduction.kept], minlength=len(reduction.points)), 1)
        return Teacher.told(teacher_points, (total / counts[:, None])[model.y < 0], given_teacher.name)

    return make_teacher


@stage("shorter numbers")
def _readable(
    model: S2OCT, reduction: Reduction, problem: Problem, outcome: Outcome[Tree], budget: Budget
) -> Outcome[Tree]:
    """The tree with shorter numbers in the units of the data, where objective and margins stay as they are."""
    tree, most = outcome.solution, outcome.record.objective
    assert most is not None and tree.labels is not None
    claimed, proven = outcome.record.status != FitStatus.LOCAL, outcome.record.status == FitStatus.OPTIMAL
    limit = most + (1e-9 if proven else 1e-6) * max(1.0, abs(most))
    # Also for fits that used up their time, as most do that end without a proof. Without a limit no clock decides.
    grace = budget if budget.remaining > _GRACE else Budget(_GRACE)

    def on_points(found: Tree) -> Tree:
        points = reduction.apply_tree(found)
        largest = np.abs(points.weights).max(axis=1, initial=0.0)
        factor = np.minimum(1.0, model.max_coefficient / np.where(largest > 0, largest, 1.0))
        return replace(points, weights=points.weights * factor[:, None], threshold=points.threshold * factor)

    def as_good(found: Tree) -> bool:
        # Without a claim to be optimal sides alone matter: any digit less changes by how much a wrong label is wrong.
        if not claimed:
            return True
        points = on_points(found)
        return model.keeps_margins(points) and model.objective(points) <= limit

    if budget.interrupted:
        return outcome
    rounded = on_points(rounded_tree(reduction.invert_tree(tree), problem.X, as_good, grace))
    if claimed and (not model.keeps_margins(rounded) or model.objective(rounded) > limit):
        return outcome
    return Outcome(rounded, outcome.record.with_objective(model.objective(rounded)))


def _model(problem: Problem, reduction: Reduction, settings: S2OCTClassifier) -> S2OCT:
    n_rows, n_features = problem.X.shape
    points, totals = reduction.points, problem.totals or _free_totals(problem)
    assert points.y is not None
    place = np.cumsum(points.y < 0) - 1  # of a point among the unlabelled ones
    largest = settings.max_coefficient or default_max_coefficient(n_rows, largest_distance(points.X), n_features)
    return S2OCT(
        X=points.X,
        y=points.y,
        weight=points.weight,
        totals=totals.of_points(place[reduction.place[problem.unlabelled]], int(np.count_nonzero(points.y < 0))),
        depth=settings.max_depth or default_depth(n_rows, problem.n_classes),
        penalty=float(settings.penalty),
        max_coefficient=float(largest),
        margin_rule=settings.margin_rule,  # type: ignore[arg-type]
        formulation=settings.formulation,  # type: ignore[arg-type]
        max_split_features=settings.max_split_features if isinstance(settings.max_split_features, int) else None,
    )


def _chosen(
    model: S2OCT, outcome: Outcome[Tree], search: _Search, settings: S2OCTClassifier
) -> tuple[Outcome[Tree], list[Tree], IntArray]:
    """The preferred tree as outcome, the other members of the committee, labels of the unlabelled points.

    Of trees that are not proven to be optimal one with a slightly larger objective may be preferred, but never one that
    is worse than a tree the user began with.
    """
    least = outcome.record.objective
    assert least is not None
    limit, proven = least, outcome.record.status == FitStatus.OPTIMAL
    if settings.prefer == "taught" and not proven:
        limit = min([(1.0 + LEEWAY) * least, *(model.objective(model.repair(tree)) for tree in search.starts)])
    pool = search.pool.up_to(max(limit, least))
    hidden = model.hidden
    if search.pool.objective > least + 1e-6 * max(1.0, abs(least)):  # branch and bound has found a better one
        pool.trees.insert(0, outcome.solution)
        pool.labels.insert(0, predict_labels(outcome.solution, hidden))
    if not pool.trees:
        return _simplified(model, outcome, outcome.solution), [], predict_labels(outcome.solution, hidden)
    first, *others = chosen = committee_trees(pool, model, settings.prefer, settings.n_estimators)
    trees = [model.simplified(pool.trees[k]) for k in others]
    found = _simplified(model, outcome, pool.trees[first])
    return _least_told(found, least), trees, committee_labels(pool, model, chosen)


def _least_told(outcome: Outcome[Tree], least: float) -> Outcome[Tree]:
    """The outcome, with a word on the least objective that was found where another tree was preferred."""
    record = outcome.record
    assert record.objective is not None
    if record.objective <= least + 1e-6 * max(1.0, abs(least)):
        return outcome
    told = f"a tree with the objective {least:.4g} agrees less with the teacher (prefer='first' takes the least)"
    return Outcome(outcome.solution, replace(record, reason=f"{record.reason}; {told}"))


def _simplified(model: S2OCT, outcome: Outcome[Tree], tree: Tree) -> Outcome[Tree]:
    """The outcome with `tree` as solution, without what it can do without, and the objective of just that tree."""
    tree = model.simplified(tree)
    return Outcome(tree, outcome.record.with_objective(model.objective(tree)))


def _free_totals(problem: Problem) -> ClassTotals:
    """Totals that ask for nothing."""
    n = problem.n_unlabelled
    return ClassTotals(
        groups=(None,),
        group_of=np.zeros(n, dtype=np.int64),
        low=np.zeros((1, problem.n_classes), dtype=np.int64),
        high=np.full((1, problem.n_classes), n),
        size=np.array([n]),
        asked={},
    )
