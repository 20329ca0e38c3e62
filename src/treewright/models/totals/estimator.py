"""Any classifier of scikit-learn, cut at known class totals."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin, clone, is_classifier
from sklearn.pipeline import Pipeline
from sklearn.utils import Tags, get_tags
from sklearn.utils._param_validation import HasMethods, StrOptions
from sklearn.utils.validation import check_is_fitted

from treewright.core.arrays import FloatArray
from treewright.core.budget import Budget
from treewright.data import Problem
from treewright.estimators.frames import (
    encoded_rows,
    handed_rows,
    hands_through,
    needs_encoding,
    new_encoded_rows,
    new_handed_rows,
)
from treewright.estimators.model import Given, new_rows, wrapped_kind
from treewright.estimators.parameters import estimator, parameter
from treewright.estimators.tables import model_of_own_columns
from treewright.estimators.totals_model import PricedModel, transduced_attributes
from treewright.exceptions import InvalidInputError
from treewright.optimize.record import FitRecord

__all__ = ["TotalsClassifier"]


@estimator
class TotalsClassifier(PricedModel, ClassifierMixin, MetaEstimatorMixin, BaseEstimator):
    r"""Any classifier with scores, whose labels of the unlabelled rows meet known class totals.

    The estimator is fitted on the labelled rows and scores the unlabelled ones: by the logarithm of ``predict_proba``
    or, without that, by ``decision_function``. Of all labels whose counts are within the totals those are taken whose
    scores have the largest sum. With two classes this is a cut of the sorted score, with several a transport problem.
    Totals are counted in rows and always met, in each group. A price for each class and group is kept, with which new
    rows are labelled:

    .. math:: label(x) = \arg\max_k \; score_k(x) + price_k

    Probabilities are shifted so that they sum to the totals; they are as true as the estimator's own are, but for
    `calibrate`. :meth:`transduce` labels other rows within other totals.
    Totals of several margins (by region and by sex) are a list. Without totals all prices are 0, and the labels are
    those of the largest score.

    Parameters
    ----------
    estimator : classifier or "auto"
        A classifier of scikit-learn with ``predict_proba`` or ``decision_function``, pipelines included. It gets frames
        and sparse matrices as they are, and arrays as floats (a pipeline text and gaps too). Weights of rows go to its
        ``fit``, of a pipeline to that of the last step. Where its
        ``random_state`` is None it is seeded from ours. "auto" is the teacher that
        :class:`S2OCTClassifier` has: logistic regression, a tree, forests, boosting and, where rows are few enough, a
        kernel machine, pooled and calibrated by what they say of labels left out and, where labels are few and totals
        exact, refined on their own labels; a random forest of 200 trees where a class has no labels. Of a frame
        with text, dates or gaps it makes numbers as the command line does, with a warning where gaps are filled in:
        :class:`~treewright.data.tables.encoder.TableEncoder`.
    calibrate : bool
        Whether scores of an estimator that is given are multiplied by the number with which labels left out in five
        folds are most likely, which takes five more fits: then probabilities are about as often right as they say. It
        changes no label within totals of one margin. Those of "auto" are calibrated anyway; where a class has no
        labels nothing is.
    unlabeled
    random_state
        Seed of the estimator, and of the order in which rows with tied scores are taken.

    Attributes
    ----------
    estimator_ : classifier or None
        The fitted estimator. None if the labelled rows have one class only.
    classes_
        The labels, those that only the totals name included.
    class_prices_ : dict
        The prices of the classes, an array in the order of ``classes_``, for each group. Under the key None are those
        of a cut of all rows at the sum of the totals, for rows whose group is not known; without groups it is the only
        key. All are 0 where the largest scores meet the totals by themselves. Otherwise a class whose count is strictly
        within its interval has price 0, a class with total 0 has minus infinity, and the rest is as far as possible
        from both sides: with two classes and an exact total, a row is ``classes_[1]`` where ``score_1 - score_0`` is
        above ``price_0 - price_1``, halfway between the last row on one side and the first on the other.
    transduction_
        Labels of all training rows: the given ones, and within the totals those of unlabelled rows.
    transduction_proba_ : ndarray of shape (n_samples, n_classes)
        Probabilities of all training rows: 1 for a given label; those of unlabelled rows sum to the totals, in each
        group (to their nearer ends, where they are intervals that bind).
    totals_
        Group, class, low, high, reached and deviation (always 0), for each group and class; empty without totals.
    status_ : {"optimal"}
        Always; there is no objective.
    reason_, solve_time_
    trace_
        Empty.
    random_state_, record_, n_features_in_, feature_names_in_

    See Also
    --------
    S2OCTClassifier : One tree that is right on every label and meets the totals.

    Notes
    -----
    *Ties.* Trees and forests score many rows the same. Which of them are taken first is drawn at random from
    ``random_state``, never by their place in the file: rows are sorted by their features and group, and numbered at
    random in that order. So the same rows in another order get the same labels. Rows equal in all features and group
    cannot be told apart; how many of them get each label does not depend on the order, which of them do is drawn.
    Prices cannot part tied rows, so ``predict`` may differ from ``transduction_`` on these, and with few distinct
    scores (nearest neighbours, small trees) on many: totals are met by ``transduction_``. With "auto" the unlabelled
    rows of the fit are scored by classifiers that were not fitted to their labels, new rows by all of them.

    *Order.* For the same reason the estimator sees the labelled rows sorted and then shuffled by ``random_state``.
    The automatic one sees each distinct row once, with the sum of its weights: a weight of 2 is a repeated row.

    *Classes without labels.* A class that only the totals name gets the rows farthest from all labelled ones (nearest
    neighbour, features scaled by their spread), as few as the totals allow, for nothing else is known of it. If labels
    have one class only, the estimator is not fitted at all, and the distance is the score. Several classes without
    labels cannot be told apart: their rows are divided among them at random. Of new rows trees that have
    learned that distance say how far they are: the model keeps none of the rows.

    A probability of 0 counts as half the smallest one above 0 among the unlabelled rows. Scores that agree in the first
    12 digits are tied.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import LogisticRegression
    >>> from treewright import TotalsClassifier
    >>> X = np.arange(8.0)[:, None]
    >>> y = [0, -1, -1, -1, -1, -1, -1, 1]
    >>> model = TotalsClassifier(LogisticRegression()).fit(X, y, totals={1: 2})
    >>> model.transduction_.tolist()
    [0, 0, 0, 0, 0, 1, 1, 1]
    >>> model.predict([[4.4], [4.6]]).tolist()
    [0, 1]
    """

    estimator: Any = parameter(
        default="auto", allowed=[HasMethods(["fit", "get_params", "set_params"]), StrOptions({"auto"})], kw_only=False
    )
    calibrate: bool = parameter(default=False, allowed=["boolean"])
    unlabeled: Any = parameter(default=-1, allowed="no_validation")
    random_state: Any = parameter(default=None, allowed=["random_state"])

    _crossing = True
    _sometimes: ClassVar[tuple[str, ...]] = ("_encoder",)

    def _prepared(self, weighted: bool) -> tuple[Any, bool]:
        return self._checked_estimator(weighted), weighted

    def _trained_on(self, problem: Problem, prepared: Any, budget: Budget) -> tuple[FitRecord, dict[str, Any]]:
        from treewright.models.totals.fit import Fitting, train_totals
        from treewright.teachers.ensemble import seed_where_unset

        (estimator, weighted), seed, default = prepared, self._seed(), self._automatic
        seed_where_unset(estimator, seed)
        rng = np.random.default_rng(seed)
        how = Fitting(default, default or weighted, self.calibrate, self._search_settings.teacher)
        found = train_totals(problem, estimator, how, rng, budget)
        fitted = {"estimator_": found.scores.classifier, "_scores": found.scores}
        fitted |= self._fitted_prices(found.prices, found.divided.shifts, found.shares)
        return found.record, fitted | transduced_attributes(problem, found.numbers)

    def _probabilities(self, X: ArrayLike, groups: Any) -> FloatArray:
        from treewright.totals.shift import shifted

        rows = self._given_rows(X)
        shift = self._shifts_of(groups, rows.shape[0])
        plain = self._scores.probabilistic and self._scores.sharpness == 1.0
        if plain and len(self._scores.columns) == len(self.classes_) and not self.totals_:
            return self._scores.raw(rows)
        return shifted(self._scores(rows), shift)

    def _class_scores(self, X: ArrayLike) -> FloatArray:
        rows = self._given_rows(X)  # says so if there is no fit
        return self._scores(rows)

    # ------------------------------------------------------------------ rows that are handed through

    def _checked_rows(self, given: Given) -> Given:
        if self._automatic and needs_encoding(given.X):
            return encoded_rows(self, given)
        return handed_rows(self, given) if hands_through(self.estimator, given.X) else super()._checked_rows(given)

    def _given_rows(self, X: ArrayLike) -> Any:
        check_is_fitted(self)
        own = model_of_own_columns(self, X)
        if own is not None:
            return own[0]._given_rows(own[1])
        if hasattr(self, "_encoder"):
            return new_encoded_rows(self, X)
        return new_handed_rows(self, X) if hands_through(self.estimator, X) else new_rows(self, X)

    def __sklearn_tags__(self) -> Tags:
        from treewright.teachers.classifier import TeacherClassifier

        tags = super().__sklearn_tags__()
        inner = get_tags(TeacherClassifier() if self._automatic else self.estimator)
        if inner.classifier_tags is not None:
            tags.classifier_tags.multi_class = inner.classifier_tags.multi_class
            tags.classifier_tags.poor_score = inner.classifier_tags.poor_score
        tags.input_tags.positive_only = inner.input_tags.positive_only
        if not self._automatic:
            tags.input_tags.sparse, tags.input_tags.allow_nan = inner.input_tags.sparse, inner.input_tags.allow_nan
        tags.non_deterministic = inner.non_deterministic
        return tags

    # ------------------------------------------------------------------ the estimator

    @property
    def _automatic(self) -> bool:
        return isinstance(self.estimator, str)

    def _checked_estimator(self, weighted: bool) -> Any:
        """An unfitted copy of the estimator, if it can do what is needed."""
        from treewright.models.totals.fit import NO_SCORES
        from treewright.teachers.classifier import TeacherClassifier
        from treewright.totals.scores import response_method, weight_argument

        if self._automatic:
            return TeacherClassifier(members=getattr(self, "_members", None))
        kind = wrapped_kind(self.estimator, is_classifier, "classifier of scikit-learn")
        if response_method(type(self.estimator)) is None:
            raise InvalidInputError(NO_SCORES.format(kind))
        if get_tags(self.estimator).input_tags.pairwise:
            raise InvalidInputError(f"estimator {kind} wants a kernel matrix or distances; features are needed here")
        if weighted and weight_argument(self.estimator) is None:
            steps = " (nor does its last step)" if isinstance(self.estimator, Pipeline) else ""
            raise InvalidInputError(
                f"sample_weight is given, but {kind}.fit takes none{steps}; leave the weights out, or take an "
                "estimator whose fit has sample_weight"
            )
        return clone(self.estimator)
