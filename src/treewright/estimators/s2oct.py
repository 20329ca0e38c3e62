"""S2OCT as a scikit-learn classifier."""

from __future__ import annotations

from dataclasses import replace
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils._param_validation import Interval, StrOptions

from treewright.budget import Budget
from treewright.data import ClassTotals, MergedRows, Problem, merge_rows, s2oct_scaling, weight_unit
from treewright.estimators._input import semi_supervised_problem
from treewright.estimators._optimize import Outcome, optimize
from treewright.estimators._program import ProgramClassifier
from treewright.exceptions import ModelFileError
from treewright.formulations import S2OCT
from treewright.formulations.s2oct import default_bound, default_depth, largest_distance
from treewright.search import Incumbent
from treewright.search.choice import choose, committee
from treewright.search.s2oct import Pool, search_s2oct
from treewright.tree import FloatArray, IntArray, Tree, predict_labels, visited
from treewright.tree.serialize import tree_from_dict, tree_to_dict

__all__ = ["S2OCTClassifier"]


class S2OCTClassifier(ProgramClassifier):
    r"""Semi-supervised optimal classification tree with class totals (S2OCT).

    Takes labelled and unlabelled rows and, where known, how many of the unlabelled rows belong to each class: a survey
    and the totals of a census. Minimizes

    .. math:: \sum_{i\ labelled} w_i \min_{t:\ label(t) = y_i} LE(x_i, t) + C u \sum_g dev_g

    over trees with hyperplane splits, where LE adds up by how much a row misses a margin of 1 at the splits on its way
    to a leaf of its class, and :math:`dev_g` is the number of unlabelled rows of group g that would have to
    change class for the totals to hold (Burgard, Pinheiro and Schmidt 2024). Several classes, intervals and groups
    are ours.

    An objective of 0 is its own proof: all labelled rows are right with margin, and all totals are met. There are
    usually many such trees. The search samples several and takes the most typical one; with ``n_trees`` above 1
    they vote. Without totals it is a plain semi-supervised tree.

    Parameters
    ----------
    max_depth : int or None, default=None
        Depth of the tree; None is the paper's rule, 2 below 1000 rows and 3 from there on.
    penalty : float, default=1.0
        The price C of an unlabelled row that would have to change class, in errors of 1 of a labelled row of weight u:
        the smallest weight if all are whole multiples of it (numbers of equal rows), else
        :math:`\sum w_i^2 / \sum w_i`. So weights that are all multiplied by a number give the same tree.
    bound : float or None, default=None
        Largest entry of a split's normal, for features scaled into [-100, 100]; None is the paper's rule.
    margin : {"tolerance", "reached", "paper"}, default="tolerance"
        How far unlabelled rows must be from splits: a numerical tolerance at the splits they reach, 1 at those, or 1
        at every split (the paper's). Optimality is always about the variant asked for.
    formulation : {"tight", "paper"}, default="tight"
        The program for branch and bound; "paper" is the printed one (two classes, one exact total,
        ``margin="paper"``), and then the search is left out.
    prefer : {"typical", "margin", "sparse", "first"}, default="typical"
        Which of equally good trees to take.
    n_trees : int, default=1
        Most trees of the committee; 1 for a single tree.
    unlabeled : label, default=-1
        Mark of unlabelled rows in y; NaN and None are marks too.
    solver : {"highs", "scip", "gurobi"}, default="highs"
        Solver of the mixed-integer program.
    time_limit : float or None, default=60.0
        Seconds for the whole fit.
    gap : float, default=1e-4
        Relative gap between objective and bound that counts as optimal.
    n_jobs : int or None, default=None
        Processes of the search and threads of the solver: None for one, -1 for all cores.
    random_state : int, RandomState or None, default=None
        Seed of the search and the solver.
    verbose : int, default=0
        Above 0, progress goes to standard error.
    warm_start : bool, Tree or fitted estimator, default=False
        Tree to start from; True goes on from the last fit.

    Attributes
    ----------
    tree_ : Tree
        The tree, in the units of the data.
    trees_ : list of Tree
        The committee; only `tree_` with ``n_trees=1``.
    classes_ : ndarray
        The labels.
    transduction_ : ndarray of shape (n_samples,)
        Labels of all training rows: the given ones, and the predicted ones of unlabelled rows. A committee's labels
        are the most voted ones within the totals.
    totals_ : list of dict
        Group, class, low, high, reached and deviation, for each group and class; empty without totals.
    objective_, bound_, gap_, status_, solve_time_, trace_, n_features_in_, feature_names_in_
        As for every solved model.

    Examples
    --------
    >>> import numpy as np
    >>> from treewright import S2OCTClassifier
    >>> X = np.arange(8.0)[:, None]
    >>> y = [0, -1, -1, -1, -1, -1, -1, 1]
    >>> model = S2OCTClassifier(max_depth=1, random_state=0).fit(X, y, totals={1: 4})
    >>> model.transduction_.tolist(), model.status_
    ([0, 0, 0, 1, 1, 1, 1, 1], 'optimal')
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **ProgramClassifier._parameter_constraints,
        "max_depth": [Interval(Integral, 1, 12, closed="both"), None],
        "penalty": [Interval(Real, 0, None, closed="neither")],
        "bound": [Interval(Real, 0, None, closed="neither"), None],
        "margin": [StrOptions({"tolerance", "reached", "paper"})],
        "formulation": [StrOptions({"tight", "paper"})],
        "prefer": [StrOptions({"typical", "margin", "sparse", "first"})],
        "n_trees": [Interval(Integral, 1, None, closed="left")],
        "unlabeled": "no_validation",  # type: ignore[dict-item]
    }

    def __init__(
        self,
        max_depth: int | None = None,
        *,
        penalty: float = 1.0,
        bound: float | None = None,
        margin: str = "tolerance",
        formulation: str = "tight",
        prefer: str = "typical",
        n_trees: int = 1,
        unlabeled: Any = -1,
        solver: str = "highs",
        time_limit: float | None = 60.0,
        gap: float = 1e-4,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
        warm_start: Any = False,
    ) -> None:
        self.max_depth = max_depth
        self.penalty = penalty
        self.bound = bound
        self.margin = margin
        self.formulation = formulation
        self.prefer = prefer
        self.n_trees = n_trees
        self.unlabeled = unlabeled
        self.solver = solver
        self.time_limit = time_limit
        self.gap = gap
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose
        self.warm_start = warm_start

    def fit(
        self,
        X: ArrayLike,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        totals: Any = None,
        groups: ArrayLike | None = None,
    ) -> Self:
        """Fit the tree.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Labelled and unlabelled rows.
        y : array-like of shape (n_samples,)
            Labels; unlabelled rows have the mark ``unlabeled``, NaN or None.
        sample_weight : array-like of shape (n_samples,) or None
            Weights of the errors of labelled rows; 0 leaves one out. Unlabelled rows always count once.
        totals : int, mapping or frame, or None
            What is known of the classes of the *unlabelled* rows: the number in ``classes_[1]``, ``{label: n}``,
            ``{label: (low, high)}``, ``{label: share}``, or with `groups` a mapping or frame of groups and classes.
        groups : array-like of shape (n_samples,) or None
            Group of each row, for totals by group.

        Returns
        -------
        S2OCTClassifier
            The fitted estimator.
        """
        budget, solver = self._begin()
        rows = self._check_fit_rows(X, y)
        problem = semi_supervised_problem(rows, y, sample_weight, self.unlabeled, totals, groups)
        with budget.stop_on_interrupt():
            scaling = s2oct_scaling(problem.X)
            # Searches and solvers have tolerances of their own, so rows weigh about 1 to them.
            unit = weight_unit(problem.weight_labelled)
            merged = self._merged(problem, scaling.apply(problem.X), unit)
            model = self._model(problem, merged)
            seed = self._seed()
            starts = self._given_starts(problem.n_features, scaling)
            pool = Pool()

            def search(best: Incumbent[Tree], time: Budget) -> None:
                nonlocal pool
                few = 20 if self.n_trees == 1 else max(20, self.n_trees)
                guided = self.formulation == "tight"
                pool = search_s2oct(best, model, starts, time, seed, samples=few, n_jobs=self._threads, guided=guided)

            outcome = optimize(
                model,
                search,
                solver,
                budget,
                self.gap,
                self._threads,
                seed,
                search_share=0.6 if self.margin == "tolerance" else 0.85,
                on_progress=self._progress_printer(unit),
            )
            outcome, trees, guess = self._chosen(model, outcome, pool)
            outcome = outcome.times(unit)
        tree = self._tree_of(problem, outcome, scaling)
        members = [tree, *(scaling.invert_tree(other) for other in trees)]
        fitted = {"tree_": tree, "trees_": members, **self._transduced(problem, merged, model, guess)}
        self._finish(problem, outcome, scaling, budget, fitted)
        return self

    def predict(self, X: ArrayLike) -> np.ndarray:
        """Predict the class of each row; a committee by majority.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows to classify.

        Returns
        -------
        ndarray of shape (n_samples,)
            Labels from ``classes_``.
        """
        if len(getattr(self, "trees_", [None])) == 1:
            return super().predict(X)
        return np.asarray(self.classes_[self.predict_proba(X).argmax(axis=1)])

    def predict_proba(self, X: ArrayLike) -> FloatArray:
        """Predict class probabilities: shares in the leaf, or of the committee's votes.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows to classify.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            Shares, columns in the order of ``classes_``.
        """
        if len(getattr(self, "trees_", [None])) == 1:
            return super().predict_proba(X)
        rows = self._check_rows(X)
        votes = np.zeros((len(rows), len(self.classes_)))
        for tree in self.trees_:
            votes[np.arange(len(rows)), predict_labels(tree, rows)] += 1.0 / len(self.trees_)
        return votes

    # ------------------------------------------------------------------ data to model

    @staticmethod
    def _merged(problem: Problem, X: FloatArray, unit: float) -> MergedRows:
        weight = np.where(problem.labelled, problem.weight / unit, 1.0)
        return merge_rows(X, problem.y, weight)

    def _model(self, problem: Problem, merged: MergedRows) -> S2OCT:
        n_rows, n_features = problem.X.shape
        totals = problem.totals or _free_totals(problem)
        size = np.zeros((len(merged.X), len(totals.groups)))
        np.add.at(size, (merged.inverse[problem.unlabelled], totals.group_of), 1.0)
        bound = self.bound or default_bound(n_rows, largest_distance(merged.X), n_features)
        return S2OCT(
            X=merged.X,
            y=merged.y,
            weight=merged.weight,
            size=size,
            low=totals.low,
            high=totals.high,
            n_classes=problem.n_classes,
            depth=self.max_depth or default_depth(n_rows),
            penalty=float(self.penalty),
            bound=float(bound),
            margin=self.margin,  # type: ignore[arg-type]
            formulation=self.formulation,  # type: ignore[arg-type]
        )

    # ------------------------------------------------------------------ which of the best trees

    def _chosen(self, model: S2OCT, outcome: Outcome[Tree], pool: Pool) -> tuple[Outcome[Tree], list[Tree], IntArray]:
        """The preferred tree as outcome, the other members of the committee, labels of the unlabelled points."""
        as_good = pool.trees and pool.objective <= outcome.objective + 1e-6 * max(1.0, abs(outcome.objective))
        hidden = model.X[model.y < 0]
        if not as_good:
            tree = outcome.solution.collapsed(visited(outcome.solution, model.X))
            return replace(outcome, solution=tree), [], predict_labels(tree, hidden)
        first = choose(pool, model, self.prefer)
        tree = pool.trees[first].collapsed(visited(pool.trees[first], model.X))
        if self.n_trees == 1:
            return replace(outcome, solution=tree), [], pool.labels[first]
        others = [t.collapsed(visited(t, model.X)) for k, t in enumerate(pool.trees) if k != first]
        others = others[: self.n_trees - 1]
        return replace(outcome, solution=tree), others, committee(pool, model)

    @staticmethod
    def _transduced(problem: Problem, merged: MergedRows, model: S2OCT, guess: IntArray) -> dict[str, Any]:
        """Labels of all rows, and the totals they reach."""
        label_of_point = np.zeros(len(merged.X), dtype=np.int64)
        label_of_point[model.y < 0] = guess
        numbers = np.where(problem.labelled, problem.y, label_of_point[merged.inverse])
        totals = problem.totals
        reached = [] if totals is None else totals.table(numbers[problem.unlabelled], problem.classes)
        return {"transduction_": problem.classes[numbers], "totals_": reached}

    # ------------------------------------------------------------------ model files

    def _fitted_state(self) -> dict[str, Any]:
        committee_trees = [tree_to_dict(tree) for tree in self.trees_[1:]]
        return super()._fitted_state() | {"totals": [_plain(row) for row in self.totals_], "committee": committee_trees}

    def _restore_state(self, state: dict[str, Any]) -> None:
        super()._restore_state(state)
        if not isinstance(state["totals"], list) or not isinstance(state["committee"], list):
            raise ModelFileError("totals and committee must be lists")
        self.totals_ = state["totals"]
        self.trees_ = [self.tree_, *(tree_from_dict(tree) for tree in state["committee"])]


def _plain(row: dict[str, Any]) -> dict[str, Any]:
    """A row of totals with labels that JSON knows."""
    return {key: value.item() if isinstance(value, np.generic) else value for key, value in row.items()}


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
