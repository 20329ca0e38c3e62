"""1-norm support vector trees: rows to points, prices, search, rows worth a program, branch and bound."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np

from treewright.core.arrays import BoolArray, FloatArray, IntArray
from treewright.core.budget import Budget
from treewright.core.progress import stage
from treewright.data import Merge, Problem, Sample, Scale, Weighted, reduced_sample, unit_scaling, weight_unit
from treewright.data.folds import folds_of
from treewright.models.svm1odt.layers import train_layers
from treewright.models.svm1odt.objective import SVM1ODT
from treewright.models.svm1odt.prices import (
    beats_leaf,
    fold_errors,
    leaf_errors,
    prices_in_the_race,
    strongest_best_price,
)
from treewright.models.svm1odt.search import search_svm1odt
from treewright.models.svm1odt.selection.choice import ChoiceSettings, rows_worth_training
from treewright.models.svm1odt.selection.rounds import round_rows
from treewright.models.tao.estimator import TAOClassifier
from treewright.models.tao.fit import train_tao
from treewright.optimize.conduct import Conduct
from treewright.optimize.course import Relaxation, optimize, solved_tree
from treewright.optimize.incumbent import Incumbent
from treewright.optimize.record import FitRecord, FitStatus
from treewright.tree import Tree, predict_labels, settled
from treewright.tree.trimming import trimmed_tree

__all__ = ["SVM1ODTFit", "SVM1ODTSettings", "chosen_settings", "svm1odt_model", "train_rounds", "train_svm1odt"]

_PROGRAM_CELLS = 300_000
"""Non-zeros of a program up to which "auto" selects no rows: branch and bound gets somewhere."""

_SEARCH_SHARE = 0.6
"""Share of the time for the search, before branch and bound."""

_SOLVING_SHARE = 0.97
"""Share of the time for search and branch and bound of large tables; the rest is for terms that are of no use."""

_START_SHARES = 0.1, 0.35
"""Shares of the time for each start by alternating optimization: of large tables and of those with categories or gaps,
where the search here seldom finds a better root."""

_STRETCHES = (0.0, 0.25), (0.0,)
"""By how much rows are stretched in these: passes over stretched rows may end with fewer errors on the rows themselves
(of large tables at depth 2, skin_segmentation: 97.9 % are right without, 99.3 with)."""

_CHOICE_SHARES = 0.6, 0.4
"""Shares of the time for the choice of prices, of tables that are not large, and of large ones."""

_PATH = (2.0, 1.0, 0.5, 0.25, 0.12, 0.06, 0.02)
"""Prices of a norm of ``1 / epsilon``, in rows, that cross-validation chooses from, the strongest first; weaker for
margins that are finer than the widest one, see :meth:`SVM1ODTSettings.path`."""

_DEFAULT = 3
"""Place on that path of the price where there is no time to choose, or where classes have too few rows for it."""

_FOLDS, _ENOUGH, _MANY = 4, 2000, 5000
"""Folds of the choice; of tables from so many points (the large ones) two folds of one partition are enough, and of
larger ones than so many some points are drawn."""

_MARGIN, _LEAST_MARGIN, _SEVERAL = 0.05, 2e-4, 500
"""Widest and finest margin that is chosen; points from which on finer ones than the widest are tried in any case."""

_SQUEEZED = 0.002
"""Share of the range of a feature below which its middle half is too narrow for the finest margin."""

_LEAST_DISTANCE = 1e-8
"""Least distance of points from splits, far above what rounding is off by."""


@dataclass(frozen=True)
class SVM1ODTSettings:
    """What is optimized; see :class:`treewright.SVM1ODTClassifier`."""

    max_depth: int = 2
    epsilon: float | str = "auto"
    alpha_1: float | str = "auto"
    alpha_2: float | str = "auto"
    selection: str | None = "auto"
    max_iter: int = 1

    def path(self) -> list[SVM1ODTSettings]:
        """The settings along the path of prices of norms, the strongest first.

        No value leaves [-1, 1], so that norms are seldom above 2 or 3, whatever the margin. In units of a fine margin
        that is much, and even the weakest price of a wide one would be too dear for it. So the weakest price is the
        same for a norm of 1 whatever the margin, the strongest one the geometric mean of that and of what is the same
        for a norm of ``1 / epsilon``.

        Examples
        --------
        >>> [round(s.alpha_2 * s.epsilon, 3) for s in SVM1ODTSettings(epsilon=0.05).path()]
        [2.0, 1.0, 0.5, 0.25, 0.12, 0.06, 0.02]
        >>> [round(s.alpha_2, 1) for s in SVM1ODTSettings(epsilon=0.0005).path()]
        [400.0, 136.3, 46.4, 15.8, 5.2, 1.8, 0.4]
        """
        fine = min(1.0, float(self.epsilon) / _MARGIN)
        return [self.priced(norm * fine ** (0.5 + 0.5 * k / (len(_PATH) - 1))) for k, norm in enumerate(_PATH)]

    def priced(self, norm: float) -> SVM1ODTSettings:
        """The settings with numbers for prices that are "auto", at a price of `norm` for a norm of ``1 / epsilon``."""
        epsilon = float(self.epsilon)
        alpha_1 = 1.0 / epsilon if self.alpha_1 == "auto" else float(self.alpha_1)
        alpha_2 = norm / epsilon if self.alpha_2 == "auto" else float(self.alpha_2)
        return replace(self, epsilon=epsilon, alpha_1=alpha_1, alpha_2=alpha_2)


@dataclass(frozen=True, eq=False)
class SVM1ODTFit:
    """What training of an SVM1-ODT ended with."""

    tree: Tree
    record: FitRecord
    """How it went; the objective is that of all rows."""
    settings: SVM1ODTSettings
    """With the prices that were used."""
    selected: BoolArray
    """Rows that branch and bound had."""
    n_iter: int
    """Rounds of selection, the last one included."""
    squeezed: IntArray
    """Features in whose range values far off leave next to no room for splits."""


def train_svm1odt(
    problem: Problem, settings: SVM1ODTSettings, conduct: Conduct, budget: Budget, start: Tree | None = None
) -> SVM1ODTFit:
    """Find the best SVM1-ODT tree for labelled rows within a budget."""
    # Prices are those of rows of weight 1, whatever rows weigh to the user.
    unit = weight_unit(problem.weight)
    conduct = conduct.told_in_units(unit)
    rows = Sample.of(problem.X, problem.y, problem.weight / unit, problem.n_levels)
    reduction = reduced_sample(rows, Weighted(), Scale(unit_scaling), Merge())
    starts = [] if start is None else [reduction.apply_tree(start)]
    mixed = bool((rows.n_levels is not None and rows.n_levels.any()) or np.isnan(rows.X).any())
    if (mixed or len(reduction.points) > _ENOUGH) and not budget.over:
        made = _alternated(rows, problem.n_classes, settings, conduct, budget, mixed)
        with stage("trees to start from"):
            starts += [reduction.apply_tree(tree) for tree in made]
    settings = chosen_settings(reduction.points, problem.n_classes, settings, conduct, budget, starts)
    model = svm1odt_model(reduction.points, problem.n_classes, settings)
    n_iter = 1
    if settings.max_iter > 1 and settings.selection is not None:
        with stage("rounds of selection"):
            trained = list(train_rounds(model, starts, conduct, budget.share(0.4), settings.max_iter - 1))
        n_iter = len(trained)  # the first one is where rounds begin, the last round is still to come
        starts = [min([*starts, *trained], key=lambda tree: model.objective(model.repair(tree)))]
    chosen = _Chosen(model, settings)
    if settings.selection == "layers":
        tree, chosen.before = train_layers(model, starts, conduct, budget.share(0.5))
        starts = [tree]

    def search(best: Incumbent[Tree], time: Budget) -> None:
        search_svm1odt(best, model, starts, time, conduct.seed, conduct.threads, conduct.search.svm1odt)

    large = len(reduction.points) > _ENOUGH
    time = budget.share(_SOLVING_SHARE) if large else budget
    outcome = optimize(model, search, conduct, time, _SEARCH_SHARE, chosen.relaxed(time))
    if large and outcome.record.status != FitStatus.OPTIMAL:
        time = budget.grace(1 - _SOLVING_SHARE)
        tree = trimmed_tree(outcome.solution, model.X, model.objective, model.repair, time)
        outcome = replace(outcome, solution=tree, record=outcome.record.with_objective(model.objective(tree)))
    found = solved_tree(problem, reduction, outcome)
    tree = settled(found.tree, problem.X, problem.weight)
    selected = reduction.invert(chosen.points, left_out=False)
    spread = middle_halves(reduction.points)
    squeezed = np.flatnonzero((spread > 0) & (spread < _SQUEEZED))
    record = found.record.outweighed(model.weight, 1.0).times(unit)
    return SVM1ODTFit(tree, record, settings, selected, n_iter, squeezed)


def _alternated(
    rows: Sample, n_classes: int, settings: SVM1ODTSettings, conduct: Conduct, budget: Budget, mixed: bool
) -> Iterator[Tree]:
    """Trees of alternating optimization, which on mixed and large tables makes more starts than a search here."""
    for stretch in _STRETCHES[int(mixed)]:
        tao, time = (
            TAOClassifier(max_depth=settings.max_depth, stretch=stretch),
            budget.share(_START_SHARES[int(mixed)]),
        )
        whole = time.remaining
        yield train_tao(rows, n_classes, tao, Conduct(conduct.threads, conduct.seed), time).tree
        if time.remaining < 0.5 * whole:  # the search improves all that it is given, and would take as long for it
            return


@stage("choice of prices")
def chosen_settings(
    points: Sample,
    n_classes: int,
    settings: SVM1ODTSettings,
    conduct: Conduct,
    budget: Budget,
    starts: Sequence[Tree] = (),
) -> SVM1ODTSettings:
    """SVM1-ODT settings with numbers for what is "auto", by cross-validation on these points alone.

    The margin is chosen first where there is more than one to choose from, then alpha_2 along a path. Of two classes
    there must be a point in every fold. Where there is none, or no time, it is the middle margin and the default price.
    Where points are many, trees of all of them, `starts`, are what folds start from too: what a split can learn of the
    points of a fold does not matter then, and prices are compared on trees such as the fit will have.
    """
    assert points.y is not None
    margins = [float(settings.epsilon)] if settings.epsilon != "auto" else margin_choices(points, settings.alpha_1)
    settings = replace(settings, epsilon=margins[len(margins) // 2])
    plain = settings.path()[_DEFAULT]
    if plain.alpha_1 == 0 or budget.over or (settings.alpha_2 != "auto" and len(margins) == 1):
        return plain
    rng = np.random.default_rng(conduct.seed)
    some = np.sort(rng.choice(len(points), _MANY, replace=False)) if len(points) > _MANY else np.arange(len(points))
    inside = points.taken(some)
    assert inside.y is not None
    if np.sort(np.bincount(inside.y, minlength=max(2, n_classes)))[-2] < _FOLDS:
        return plain
    folding = _Folding(inside, n_classes, conduct, rng, starts if len(inside) >= _ENOUGH else ())
    time = budget.share(_CHOICE_SHARES[int(folding.large)])
    if len(margins) > 1:
        each = [replace(settings, epsilon=m).path()[_DEFAULT] for m in margins]
        finest = folding.best_of(each, time.share(0.5))
        plain = plain if finest is None else finest
        settings = replace(settings, epsilon=plain.epsilon)
    if settings.alpha_2 != "auto":
        return plain
    return folding.best_of(settings.path(), time, guarded=True) or plain


@dataclass(frozen=True, eq=False)
class _Folding:
    """Cross-validation on points."""

    points: Sample
    n_classes: int
    conduct: Conduct
    rng: np.random.Generator
    starts: Sequence[Tree] = ()

    @property
    def large(self) -> bool:
        """Whether there are so many points that chance is no concern, and time is."""
        return len(self.points) >= _ENOUGH

    def best_of(self, path: list[SVM1ODTSettings], time: Budget, guarded: bool = False) -> SVM1ODTSettings | None:
        """The settings with the least errors, the first of several; None without time for all of them.

        With `guarded`, the first ones where none is clearly better than a single leaf. Points are parted anew as long
        as there is time for all folds of another partition. Settings that are clearly worse than the best ones are left
        out then, so that more partitions tell the others apart.
        """
        points, conduct = self.points, self.conduct
        assert points.y is not None
        models = [partial(_on_some, points, self.n_classes, settings) for settings in path]
        found, leaf, racing = np.empty((len(path), 0)), np.empty(0), np.arange(len(path))
        held_out = 2 if self.large else _FOLDS
        for _ in range(1 if self.large else conduct.search.svm1odt.choice_partitions):
            before = time.remaining
            fold = folds_of(points.y, _FOLDS, self.rng)
            errors = fold_errors(
                [models[k] for k in racing.tolist()],
                svm1odt_model(points, self.n_classes, path[0]),
                fold,
                time,
                conduct.seed,
                conduct.threads,
                replace(conduct.search.svm1odt, patience=conduct.search.svm1odt.choice_patience),
                held_out=held_out,
                given=self.starts,
            )
            if errors is None or not np.isfinite(errors).all():
                break  # what was measured are the strong prices, and the best of these is no choice
            part = np.full((len(path), errors.shape[1]), np.inf)
            part[racing] = errors
            found = np.hstack([found, part])
            leaf = np.append(leaf, leaf_errors(points.y, points.weight, fold, held_out))
            racing = np.flatnonzero(prices_in_the_race(found, _FOLDS))
            if len(racing) == 1 or time.over or time.remaining < before - time.remaining:
                break
        if not found.size or not np.isfinite(found).any(axis=1).all():
            return None
        best = strongest_best_price(found)
        return path[best if not guarded or beats_leaf(found[best], leaf, _FOLDS) else 0]


def margin_choices(points: Sample, alpha_1: float | str = "auto") -> list[float]:
    """Margins of an SVM1-ODT to choose from, the widest first.

    No value of a split leaves [-1, 1], whatever row has it. Where a few rows are far off, as in features that are
    skewed, all others lie within a small part of the range, and a margin of 0.05 is wider than that: every split would
    have to pay for most rows. So there are finer ones for points whose middle half, in the median feature, takes less
    than a fifth of its range, and where that of any feature takes much less than these allow for. The more points
    there are, the more of them are near any split, and the less there is to guard against: from 500 on finer ones are
    tried in any case (banknote, 1000 rows: 98.9 % right on new rows with 0.05, 99.7 with 0.01), and from 2000 on all
    shrink with the root of their number.

    Examples
    --------
    >>> x = np.linspace(0.0, 1.0, 101)[:, None]
    >>> margin_choices(Sample.of(x, None, np.ones(101))), margin_choices(Sample.of(x**9, None, np.ones(101)))
    ([0.05], [0.019, 0.0038, 0.00075])
    >>> margin_choices(Sample.of(np.linspace(0.0, 1.0, 8000)[:, None], None, np.ones(8000)))
    [0.025, 0.005, 0.001]
    """
    spread = middle_halves(points)
    told = spread[~np.isnan(spread)]
    shrink = min(1.0, np.sqrt(_ENOUGH / len(points)))
    width = min(_MARGIN, float(np.median(told)) / 4 if len(told) else 1.0) * shrink
    wide = width >= _MARGIN and len(points) < _SEVERAL
    found = [_MARGIN] if wide else [max(_LEAST_MARGIN, width / part) for part in (1, 5, 25)]
    narrow = max(_LEAST_MARGIN, float(told[told > 0].min(initial=1.0)) / 4 * shrink)
    if narrow < found[-1] / 3:
        found += [np.sqrt(narrow * found[-1]), narrow] if narrow < found[-1] / 25 else [narrow]
    least = 1.0 / float(alpha_1) if alpha_1 not in ("auto", 0) else 0.0
    kept = sorted({float(f"{margin:.2g}") for margin in found if margin >= least}, reverse=True)
    return kept or [min(1.0, max(_MARGIN, least))]


def middle_halves(points: Sample) -> FloatArray:
    """SVM1-ODT: share of its range that the middle half of a numerical feature takes; NaN of two values or fewer."""
    X, spread = np.asarray(points.X), np.full(np.shape(points.X)[1], np.nan)
    numerical = np.ones(X.shape[1], dtype=bool) if points.categorical is None else ~points.categorical
    for j in np.flatnonzero(numerical).tolist():
        known = ~np.isnan(X[:, j])
        values, weight = X[known, j], points.weight[known]
        order = np.argsort(values, kind="stable")
        if not weight.any() or np.count_nonzero(np.diff(values[order])) < 2:  # 0 and 1 are never near
            continue
        share = np.cumsum(weight[order]) / weight.sum()
        low, high = values[order][np.searchsorted(share, [0.25, 0.75])]
        spread[j] = (high - low) / np.ptp(values)
    return spread


def _on_some(points: Sample, n_classes: int, settings: SVM1ODTSettings, rows: IntArray) -> SVM1ODT:
    return svm1odt_model(points.taken(rows), n_classes, settings)


def svm1odt_model(points: Sample, n_classes: int, settings: SVM1ODTSettings) -> SVM1ODT:
    """The SVM1-ODT on points; near splits they are charged by weight, as errors are: a weight of 2 is a row twice."""
    assert points.y is not None
    return SVM1ODT(
        X=np.asarray(points.X),
        y=points.y,
        weight=points.weight,
        n_classes=n_classes,
        depth=settings.max_depth,
        epsilon=float(settings.epsilon),
        alpha_1=float(settings.alpha_1),
        alpha_2=float(settings.alpha_2),
        size=points.weight,
        categorical=points.categorical,
        levels=points.n_levels,
        tolerance=least_distance(points),
    )


def least_distance(points: Sample) -> float:
    """The distance that SVM1-ODT points keep from splits, in a range of 1: 1e-4, and less where they lie closer.

    With 200 000 points of a column of numbers no gap is wider than 1e-4 but at its ends, and splits would have to go
    there; likewise with a hundred where one that is far off takes up most of the range. So it is at most half of the
    mean distance of the points in the middle half of any feature. What solvers blur below their tolerances does not
    matter: trees are made feasible and measured anew.

    Examples
    --------
    >>> x = np.linspace(0.0, 1.0, 50_001)[:, None]
    >>> [round(least_distance(Sample.of(values, None, np.ones(len(values)))), 9) for values in (x[::500], x, x**99)]
    [0.0001, 5e-06, 1e-08]
    """
    spread = middle_halves(points)
    narrow = float(spread[spread > 0].min(initial=0.5))
    return max(_LEAST_DISTANCE, min(1e-4, 0.5 * narrow / max(1, len(points))))


def restricted_svm1odt(model: SVM1ODT, points: IntArray, weight: FloatArray | None = None) -> SVM1ODT:
    """An SVM1-ODT on some of its points, whose errors may have other weights."""
    weight = model.weight[points] if weight is None else weight
    return replace(model, X=model.X[points], y=model.y[points], weight=weight, size=model.sizes[points])


@dataclass
class _Chosen:
    """Points for branch and bound: all, or those that are worth it by the best tree that the search found.

    A tree costs at least as much on all points as on some of them, and what some points forbid all of them forbid: the
    program of some points is a relaxation, and its bound holds.
    """

    model: SVM1ODT
    settings: SVM1ODTSettings
    points: BoolArray = field(init=False)
    before: BoolArray = field(init=False)
    """Points that layers had chosen."""

    def __post_init__(self) -> None:
        self.points = np.ones(len(self.model.X), dtype=bool)
        self.before = np.zeros(len(self.model.X), dtype=bool)

    def relaxed(self, budget: Budget) -> Callable[[Incumbent[Tree]], Relaxation[Tree] | None] | None:
        """What names the program of some points, None if that of all is to be solved at once."""
        method = self.settings.selection
        if method is None or (method == "auto" and self.model.program_cells <= _PROGRAM_CELLS):
            return None

        def relaxation(best: Incumbent[Tree]) -> Relaxation[Tree] | None:
            assert best.solution is not None
            if budget.over:  # no row is worth a program that nobody solves
                return None
            model = self.model
            found = rows_worth_training(
                model.X,
                model.y,
                best.solution,
                ChoiceSettings("balanced" if method == "balanced" else "hull"),
                categorical=model.is_categorical,
                width=np.ones(model.X.shape[1]),
                budget=budget.share(0.3),
            )
            self.points[:] = self.before
            self.points[found.rows] = True
            return Relaxation(restricted_svm1odt(model, found.rows), lambda bound: bound, share=0.5)

        return relaxation


def train_rounds(model: SVM1ODT, starts: list[Tree], conduct: Conduct, budget: Budget, rounds: int) -> Iterator[Tree]:
    """Algorithm 3 of SVM1-ODT: train on the rows that the last tree makes worth it, again and again.

    The training accuracy never falls (what Proposition 2 promises; see :func:`.round_rows` for what it overlooks).
    Yields the tree to start with, in the units of the model, then that of each round; rounds end where one changes
    nothing.
    """
    best = Incumbent(model)
    search_svm1odt(
        best, model, starts, budget.share(1 / (rounds + 1)), conduct.seed, conduct.threads, conduct.search.svm1odt
    )
    tree = best.solution
    assert tree is not None
    yield tree
    for number in range(rounds):
        if budget.over:
            return
        found = _round(model, tree, conduct, budget.share(1 / (rounds - number)))
        if found is None or found == tree:
            return
        tree = found
        yield tree


def _round(model: SVM1ODT, tree: Tree, conduct: Conduct, budget: Budget) -> Tree | None:
    """A round of Algorithm 3; None if time was too short for a tree that is as accurate as the last one.

    Rows between others are right with them only if these share a leaf. Those that are lost are therefore put back,
    and the round is made again, until none is.
    """
    held = np.zeros(0, dtype=np.int64)
    quiet = replace(conduct, told=None)
    errors = float(model.weight @ (predict_labels(tree, model.X) != model.y))
    while not budget.over:
        rows = round_rows(
            model.X,
            model.y,
            tree,
            weight=model.weight,
            categorical=model.is_categorical,
            held=held,
            width=np.ones(model.X.shape[1]),
            budget=budget.share(0.3),
        )
        some = restricted_svm1odt(model, rows.rows, rows.weight)

        def search(best: Incumbent[Tree], time: Budget, some: SVM1ODT = some) -> None:
            search_svm1odt(best, some, [tree], time, conduct.seed, conduct.threads, conduct.search.svm1odt)

        found = optimize(some, search, quiet, budget.share(0.5), _SEARCH_SHARE).solution
        wrong = predict_labels(found, model.X) != model.y
        lost = rows.inside[wrong[rows.inside]]
        if model.weight @ wrong <= errors + 1e-9 * max(1.0, errors):
            return found
        if not len(lost):
            return None
        held = np.concatenate([held, lost])
    return None
