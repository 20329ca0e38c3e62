"""S2OCT as a scikit-learn classifier."""

from __future__ import annotations

from copy import copy
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils._param_validation import HasMethods, Interval, StrOptions

from treewright.core.arrays import BoolArray, FloatArray, IntArray
from treewright.core.budget import Budget
from treewright.data import Problem
from treewright.engine.leaf_probabilities import agreeing_probabilities
from treewright.estimators.model import SolvedModel
from treewright.estimators.parameters import estimator, parameter
from treewright.estimators.totals_model import TotalsModel, log_shares, transduced_attributes
from treewright.estimators.tree_model import TreeClassifier
from treewright.exceptions import ModelFileError
from treewright.optimize.record import FitRecord
from treewright.teachers.record import teacher_record_from_dict, teacher_record_to_dict
from treewright.tree import Tree, predict_labels, route
from treewright.tree.serialize import tree_from_dict, tree_to_dict

if TYPE_CHECKING:
    from treewright.optimize.conduct import Conduct


__all__ = ["S2OCTClassifier"]

_GRACE = 0.2
"""Seconds for the shifts of probabilities where less than that is left."""


@estimator
class S2OCTClassifier(TotalsModel, SolvedModel, TreeClassifier):
    r"""Semi-supervised optimal classification tree with class totals (S2OCT).

    Takes labelled and unlabelled rows and, where known, how many of the unlabelled rows belong to each class: a survey
    and the totals of a census. Minimizes

    .. math:: \sum_{i\ labelled} w_i \min_{t:\ label(t) = y_i} LE(x_i, t) + C u \sum_g dev_g

    over trees with hyperplane splits, where LE adds up by how much a row misses a margin of 1 at the splits on its way
    to a leaf of its class, and :math:`dev_g` is the number of unlabelled rows of group g that would have to
    change class for the totals to hold (Burgard, Pinheiro and Schmidt 2024). Several classes, intervals and groups
    are ours.

    Trees learn from a teacher: classifiers fitted on the labels and cut at the totals. By default
    (``max_split_features="auto"``) the fit takes the smallest tree that has learned nearly all that the teacher and the
    labels say and that meets the totals: a few terms a split. Where labels are noisy it does not get all of them right,
    and ``reason_`` says how many; it claims no proof beyond that of an objective of 0.

    ``margin_rule="paper"`` is the published model: splits of any number of features, unlabelled rows at least 1 from
    every one of them, proven by branch and bound. With `max_split_features` a number or None the objective above is
    minimized and proven too, but where nothing is said of margins unlabelled rows only keep a tolerance, which allows
    more trees than the published model. ``reason_`` names the model of a proof. An objective of 0 is its own proof: all
    labelled rows are right with margin, and all totals are met. There are usually many such trees; the search takes the
    one that agrees most with the teacher. With ``n_estimators`` above 1 several trees vote. Without totals it is a
    plain semi-supervised tree.

    Parameters
    ----------
    max_depth : int or None
        Depth of the tree; None is the paper's rule, 2 below 1000 rows and 3 from there on, and as much more as a leaf
        for each class takes.
    max_split_features : int, None or "auto"
        Most features of a split, None for any number; "auto" takes the smallest tree that has learned enough. With
        ``margin_rule`` "reached" or "paper", "auto" is None.
    teacher : "auto", classifier, regressor or array
        Whom trees learn from. "auto" pools logistic regression, a tree, forests, boosting and a kernel machine by what
        they say of labels left out, refined on their own labels where labels are few and totals exact. An estimator of
        scikit-learn is fitted on the labelled rows.
        An array has a label for each row, or a row of scores in the order of ``classes_``.
    penalty : float
        The price C of an unlabelled row that would have to change class, in errors of 1 of a labelled row of weight u:
        the smallest weight if all are whole multiples of it (numbers of equal rows), else
        :math:`\sum w_i^2 / \sum w_i`. So weights that are all multiplied by a number give the same tree.
    max_coefficient : float or None
        Largest entry of a split's normal, for features scaled into [-100, 100]; None is the paper's rule.
    margin_rule : {"tolerance", "reached", "paper"}
        How far unlabelled rows must be from splits: a numerical tolerance (0.001) at the splits they reach, 1 at those,
        or 1 at every split. "paper" is all it takes for the published model; what the others prove is of other models.
    formulation : {"tight", "paper"}
        The program for branch and bound; "paper" is the printed one (two classes, one exact total,
        ``margin_rule="paper"``), and then the search is left out. Its constant M can cut off the optimum of the
        published model, so it warns (``UnsoundModelWarning``); "optimal" and ``bound_`` are about the program alone.
    prefer : {"taught", "typical", "margin", "sparse", "first"}
        Which of equally good trees to take: the one that agrees most with the teacher, the one that agrees most with
        all of them, the one with the widest margin, the one with the fewest features in its splits, the first one. It
        does not matter to ``max_split_features="auto"``. Where no optimum was proven, "taught" also takes a tree with
        an objective up to 15 % above the least one found that agrees more, and ``reason_`` says so.
    n_estimators : int
        Most trees of the committee; 1 for a single tree.
    unlabeled, solver, time_limit, gap
    n_jobs
        Processes of the search and threads of the solver: None for one, -1 for all cores.
    random_state, verbose, warm_start

    Attributes
    ----------
    tree_
    teacher_ : TeacherRecord or None
        What the teacher was, and how it scored on labels left out; None where there was no time for one.
    trees_ : list of Tree
        The committee; only `tree_` with ``n_estimators=1``.
    classes_
    transduction_
        Labels of all training rows: the given ones, and the predicted ones of unlabelled rows. A committee's labels
        are the most voted ones within the totals.
    transduction_proba_ : ndarray of shape (n_samples, n_classes)
        Probabilities of all training rows: 1 for a given label, those of unlabelled rows are those of the leaf (of a
        committee their mean over its trees), shifted so that they sum to the totals, in each group.
    totals_, objective_, bound_, gap_, status_, reason_, solve_time_, trace_, random_state_, record_, n_features_in_
    feature_names_in_
    feature_importances_

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

    max_depth: int | None = parameter(
        default=None, allowed=[Interval(Integral, 1, 12, closed="both"), None], kw_only=False
    )
    max_split_features: Any = parameter(
        default="auto", allowed=[Interval(Integral, 1, None, closed="left"), StrOptions({"auto"}), None]
    )
    teacher: Any = parameter(
        default="auto", allowed=[StrOptions({"auto"}), HasMethods(["fit", "predict"]), "array-like"]
    )
    penalty: float = parameter(default=1.0, allowed=[Interval(Real, 0, None, closed="neither")])
    max_coefficient: float | None = parameter(default=None, allowed=[Interval(Real, 0, None, closed="neither"), None])
    margin_rule: str = parameter(default="tolerance", allowed=[StrOptions({"tolerance", "reached", "paper"})])
    formulation: str = parameter(default="tight", allowed=[StrOptions({"tight", "paper"})])
    prefer: str = parameter(default="taught", allowed=[StrOptions({"taught", "typical", "margin", "sparse", "first"})])
    n_estimators: int = parameter(default=1, allowed=[Interval(Integral, 1, None, closed="left")])
    unlabeled: Any = parameter(default=-1, allowed="no_validation")
    warm_start: Any = parameter(default=False, allowed=["boolean", Tree, TreeClassifier])

    _local = True  # small trees claim no proof

    def _trained_on(self, problem: Problem, prepared: Conduct, budget: Budget) -> tuple[FitRecord, dict[str, Any]]:
        from treewright.models.s2oct.fit import train_s2oct
        from treewright.teachers.given import teacher_of_parameter

        start, settings = self._given_tree(problem.n_features), self
        given_teacher = teacher_of_parameter(self.teacher, problem, self._seed())
        with budget.stop_on_interrupt():
            found = train_s2oct(problem, settings, prepared, budget, start, given_teacher)
        fitted = {"tree_": found.tree, "trees_": [found.tree, *found.others], "teacher_": found.teacher}
        fitted |= transduced_attributes(problem, found.numbers)
        return found.record, fitted | {"transduction_proba_": self._shares(problem, fitted, budget)}

    def _shares(self, problem: Problem, fitted: dict[str, Any], budget: Budget) -> FloatArray:
        """Probabilities of all rows after a fit, those of unlabelled ones shifted to the totals."""
        from treewright.totals.division import class_shifts, row_shares

        other = copy(self)
        other.__dict__ = {**vars(self), **fitted}
        scores = log_shares(other._class_shares(problem.X_unlabelled))
        if problem.totals is None:
            return row_shares(problem, scores, np.zeros(problem.n_classes))
        left = budget if budget.remaining > _GRACE and not budget.interrupted else Budget(_GRACE)
        return row_shares(problem, scores, class_shifts(scores, problem.totals, left)[1])

    def _own_numbers(self, X: ArrayLike, hidden: BoolArray, priced: FloatArray) -> IntArray:
        """Those of the tree, or the votes, whose class need not be the most likely one where there are totals."""
        if not hidden.any():
            return super()._own_numbers(X, hidden, priced)
        return self._class_numbers(self._check_rows(X)[hidden])

    def _class_numbers(self, rows: Any) -> IntArray:
        if self._alone:
            return super()._class_numbers(rows)
        votes = np.zeros((len(rows), len(self.classes_)))
        for tree in self.trees_:
            votes[np.arange(len(rows)), predict_labels(tree, rows)] += 1.0
        return votes.argmax(axis=1)

    def _class_shares(self, rows: Any) -> FloatArray:
        """How likely classes are in the leaf, or of a committee on average in the leaves: votes are far too sure."""
        found = np.mean([tree.likely()[route(tree, rows)] for tree in self.trees_], axis=0)
        if self._alone or self.totals_:  # with totals the label need not be the most likely class
            return np.asarray(found)
        return agreeing_probabilities(found, self._class_numbers(rows))

    def _joining(self) -> dict[str, Any]:
        return {} if self._alone else {"trees": self.trees_, "way": "votes", "agree": not self.totals_}

    @property
    def _alone(self) -> bool:
        return len(self.trees_) == 1

    # ------------------------------------------------------------------ model files

    def _fitted_state(self) -> dict[str, Any]:
        committee_trees = [tree_to_dict(tree) for tree in self.trees_[1:]]
        state = {"totals": [_plain(row) for row in self.totals_], "committee": committee_trees}
        return super()._fitted_state() | state | {"teacher": teacher_record_to_dict(self.teacher_)}

    def _restore_state(self, state: dict[str, Any]) -> None:
        super()._restore_state(state)
        if not isinstance(state["totals"], list) or not isinstance(state["committee"], list):
            raise ModelFileError("totals and committee must be lists")
        self.totals_ = state["totals"]
        self.teacher_ = teacher_record_from_dict(state.get("teacher"))
        self.trees_ = [self.tree_, *(tree_from_dict(tree) for tree in state["committee"])]


def _plain(row: dict[str, Any]) -> dict[str, Any]:
    """A row of totals with labels that JSON knows."""
    return {key: value.item() if isinstance(value, np.generic) else value for key, value in row.items()}
