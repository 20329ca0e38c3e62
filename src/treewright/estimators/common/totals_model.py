"""What the classifiers that know class totals of the unlabelled rows share."""

from __future__ import annotations

from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from treewright.arrays import FloatArray, IntArray
from treewright.budget import Budget
from treewright.data import Problem, TotalsRules
from treewright.data._checks import listing, numbered_groups, show
from treewright.estimators.common.model import Given, Model, semi_supervised_problem
from treewright.exceptions import InvalidInputError
from treewright.training.record import FitRecord

__all__ = ["PricedModel", "TotalsModel", "prices_of", "transduced"]


class TotalsModel(Model):
    """Mixin of the classifiers whose fits know class totals; a subclass says what a fit does.

    Attributes
    ----------
    totals_ : list of dict
        Group, class, low, high, reached and deviation, for each group and class; empty without totals.
    """

    unlabeled: Any
    _crossing: ClassVar[bool] = False
    """Whether totals may be of several margins, whose groups cross."""

    def fit(
        self,
        X: ArrayLike,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        totals: Any = None,
        groups: ArrayLike | None = None,
        *,
        totals_of: str = "unlabeled",
        allow_new_classes: bool = False,
        totals_tolerance: float = 0.0,
    ) -> Self:
        """Fit the model to labelled rows and to the totals of the others.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Labelled and unlabelled rows.
        y : array-like of shape (n_samples,)
            Labels; unlabelled rows have the mark ``unlabeled``, NaN or None.
        sample_weight : array-like of shape (n_samples,) or None
            Weights of labelled rows; 0 leaves one out. Unlabelled rows always count once, and theirs may be NaN.
        totals : int, mapping or frame, or None
            What is known of the classes of the *unlabelled* rows: the number in ``classes_[1]``, ``{label: n}``,
            ``{label: (low, high)}``, ``{label: share}``, or with `groups` a mapping or frame of groups and classes.
            A frame with columns "class", "low", "high" has intervals. A list of totals, one a margin, with as many
            columns of `groups` (:class:`TotalsClassifier` alone).
        groups : array-like of shape (n_samples,) or None
            Group of each row, for totals by group. Groups without totals are free, with a warning.
        totals_of : {"unlabeled", "all"}, default="unlabeled"
            Which rows totals count. From those of all rows the labelled ones are subtracted, by group, whatever their
            weights.
        allow_new_classes : bool, default=False
            Whether totals may name classes without labelled rows; otherwise such a name is taken for a misspelling.
        totals_tolerance : float, default=0.0
            By how much shares may be missed: a share s stands for the interval from s less this to s plus this.

        Returns
        -------
        estimator
            The fitted estimator.
        """
        rules = TotalsRules(totals_of, allow_new_classes, totals_tolerance)
        return self._fit(Given(X, y, sample_weight, totals=totals, groups=groups, rules=rules))

    def _trained(self, given: Given, prepared: Any, budget: Budget) -> tuple[FitRecord, dict[str, Any]]:
        problem = semi_supervised_problem(given, self.unlabeled)
        if problem.margins and not self._crossing:
            raise InvalidInputError(
                f"totals are a list of {len(problem.margins)} margins, and {type(self).__name__} takes one; "
                "TotalsClassifier takes several"
            )
        return self._trained_on(problem, prepared, budget)

    def _trained_on(self, problem: Problem, prepared: Any, budget: Budget) -> tuple[FitRecord, dict[str, Any]]:
        """The record of a fit, and the fitted attributes."""
        raise NotImplementedError


class PricedModel(TotalsModel):
    """Mixin of those with prices of the classes by group.

    Names and prices are kept apart, as files may have no other keys than strings: skops reads back neither None nor
    False as a key.
    """

    classes_: np.ndarray
    _price_groups: list[Any]
    _prices: FloatArray

    @property
    def class_prices_(self) -> dict[Any, FloatArray]:
        """Prices of the classes by group; under the key None those for rows whose group is not known."""
        check_is_fitted(self)
        return dict(zip(self._price_groups, self._prices, strict=True))

    def predict(self, X: ArrayLike, groups: ArrayLike | None = None) -> np.ndarray:
        """Predict the class of each row: the largest score plus price.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows to classify.
        groups : array-like of shape (n_samples,) or None
            Group of each row, for a model with totals by group; None for prices of the totals of all groups together.

        Returns
        -------
        ndarray of shape (n_samples,)
            Labels from ``classes_``.
        """
        best = self._decisions(X, groups).argmax(axis=1)  # says so if there is no fit
        return np.asarray(self.classes_[best])

    def _decisions(self, X: ArrayLike, groups: ArrayLike | None) -> FloatArray:
        """What is largest at the class of a row, shape (n_samples, n_classes)."""
        raise NotImplementedError

    @staticmethod
    def _fitted_prices(thresholds: dict[Any, FloatArray]) -> dict[str, Any]:
        """Fitted attributes from which :attr:`class_prices_` is made."""
        return {"_price_groups": list(thresholds), "_prices": np.array(list(thresholds.values()))}


def transduced(problem: Problem, numbers: IntArray) -> dict[str, Any]:
    """Fitted attributes of a model that labels all training rows: classes, labels, and the totals they reach."""
    totals = problem.totals
    return {
        "classes_": problem.classes,
        "transduction_": problem.classes[numbers],
        "totals_": [] if totals is None else totals.table(numbers[problem.unlabelled], problem.classes),
    }


def prices_of(thresholds: dict[Any, FloatArray], groups: ArrayLike | None, n_rows: int) -> FloatArray:
    """Prices of the classes for each row, or for all; those under the key None where groups are not known."""
    if groups is None:
        return thresholds[None]
    known = [group for group in thresholds if group is not None]
    if not known:
        raise InvalidInputError("groups are given, but the model was fitted without groups; leave them out")
    rows = f"{n_rows} rows"
    missing = f"{rows} have no group (NaN or None), first row {{}}; for rows of unknown group leave groups out"
    others = f"X has {rows}; give one group a row"
    names, number = numbered_groups(groups, n_rows, others, missing, InvalidInputError)
    for name in names:
        if name not in thresholds:
            raise InvalidInputError(
                f"group {show(name)} had no unlabelled rows in fit, so it has no prices; groups: {listing(known)}"
            )
    return np.stack([thresholds[name] for name in names])[number]
