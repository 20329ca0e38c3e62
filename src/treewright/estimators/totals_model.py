"""What the classifiers that know class totals of the unlabelled rows share."""

from __future__ import annotations

import warnings
from copy import copy
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from treewright.core.arrays import BoolArray, FloatArray, IntArray
from treewright.core.budget import Budget
from treewright.data import ClassTotals, Problem, TotalsRules
from treewright.data.columns_checked import as_column, listing, meant, numbered_groups, plain, show
from treewright.data.margins import group_columns, groups_of_rows, split_margins
from treewright.data.problem import hidden_totals, unlabelled_mask
from treewright.data.rows import row_numbers
from treewright.data.spelling import known_names
from treewright.estimators.model import Given, Model, derived_seed, new_rows
from treewright.estimators.problems import semi_supervised_problem
from treewright.exceptions import InvalidInputError, warn_user
from treewright.optimize.record import FitRecord

if TYPE_CHECKING:
    from treewright.totals.division import Divided

__all__ = ["PricedModel", "TotalsModel", "log_shares", "transduced_attributes"]


class TotalsModel(Model):
    """Mixin of the classifiers whose fits know class totals; a subclass says what a fit does.

    Attributes
    ----------
    totals_ : list of dict
        Group, class, low, high, reached and deviation, for each group and class; empty without totals.
    """

    classes_: np.ndarray
    totals_: list[dict[str, Any]]
    unlabeled: Any
    _crossing: ClassVar[bool] = False
    """Whether totals may be of several margins, whose groups cross."""
    _sharpness: float = 1.0
    """What scores are multiplied by, so that probabilities are as often right as they say; no label depends on it."""

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
        problem = replace(semi_supervised_problem(given, self.unlabeled), n_asked=given.n_asked)
        if problem.margins and not self._crossing:
            raise InvalidInputError(
                f"totals are a list of {len(problem.margins)} margins, and {type(self).__name__} takes one; "
                "TotalsClassifier takes several"
            )
        return self._trained_on(replace(problem, table=given.X) if given.handed else problem, prepared, budget)

    def _trained_on(self, problem: Problem, prepared: Any, budget: Budget) -> tuple[FitRecord, dict[str, Any]]:
        """The record of a fit, and the fitted attributes."""
        raise NotImplementedError

    # ------------------------------------------------------------------ new rows and new totals

    def transduce(
        self,
        X: ArrayLike,
        totals: Any = None,
        groups: Any = None,
        *,
        y: ArrayLike | None = None,
        totals_of: str = "unlabeled",
        totals_tolerance: float = 0.0,
        return_proba: bool = False,
        return_totals: bool = False,
    ) -> Any:
        """Label new rows within new totals: next year's register by this year's model.

        The scores of the rows are divided among the classes as in :class:`TotalsClassifier`, and the totals met to the
        row; ties are drawn from `random_state_`, never by the place of rows. Nothing is fitted.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            New rows.
        totals : int, mapping or frame, or None
            Totals of these rows, as for ``fit``; None for what :meth:`predict` says. Classes are those of the model.
        groups : array-like of shape (n_samples,) or None
            Group of each row. Groups without totals are labelled as by :meth:`predict`, with a warning.
        y : array-like of shape (n_samples,) or None
            Labels of rows whose class is known already, which are kept; the others have the mark ``unlabeled``, NaN or
            None. None where no row is labelled.
        totals_of : {"unlabeled", "all"}, default="unlabeled"
            Which rows totals count, as for ``fit``: from those of all rows the labelled ones are subtracted.
        totals_tolerance : float, default=0.0
            By how much shares may be missed.
        return_proba : bool, default=False
            Whether to return probabilities too: 1 for a label of `y`, of other rows those whose sums are the totals.
        return_totals : bool, default=False
            Whether to return the totals too, asked of the rows without a label and reached, as ``totals_`` has those of
            the fit.

        Returns
        -------
        ndarray of shape (n_samples,), or a tuple of it and what else is asked for
            Labels from ``classes_``; probabilities, an ndarray of shape (n_samples, n_classes); totals, a list of dict.
        """
        from treewright.totals.shift import shifted

        scores = self._class_scores(X)  # says so if there is no fit
        if not np.isfinite(scores).all():
            raise InvalidInputError("the model has scores that are not finite; they cannot be divided among classes")
        code, rules = self._given_numbers(y, len(scores)), TotalsRules(totals_of, tolerance=totals_tolerance)
        hidden = code < 0
        margins = [] if totals is None else split_margins(totals, groups)
        scores = scores[hidden]
        own = groups if totals is None or len(margins) == self._n_margins == 1 else None
        prices, shift = self._own_prices(groups_of_rows(own, hidden), len(scores))
        asked = tuple(hidden_totals(part, of, self.classes_, code, rules) for part, of in margins)
        labels = self._own_numbers(X, hidden, scores + prices)
        if asked and hidden.any():
            self._tell_new_groups(asked)
            cut = self._cut(X, hidden, self._sharpness * scores, asked)
            free = asked[0].free[asked[0].group_of] if len(asked) == 1 else np.zeros(len(scores), dtype=bool)
            labels = np.where(free, labels, cut.labels)
            shift = np.where(free[:, None], shift, cut.shift)
            if cut.note:
                warn_user(cut.note)
        code[hidden] = labels
        found: list[Any] = [np.asarray(self.classes_[code])]
        if return_proba:
            shares = np.eye(len(self.classes_))[code]
            shares[hidden] = shifted(self._sharpness * scores, shift)
            found.append(shares)
        found += [_reached(asked, labels, self.classes_)] if return_totals else []
        return tuple(found) if len(found) > 1 else found[0]

    def _own_numbers(self, X: ArrayLike, hidden: BoolArray, priced: FloatArray) -> IntArray:
        """Class numbers that :meth:`predict` gives new rows without a label, by their scores plus prices."""
        return priced.argmax(axis=1)

    _n_margins = 1
    """Margins whose groups have prices of their own."""

    def _given_numbers(self, y: ArrayLike | None, n_rows: int) -> IntArray:
        """Class numbers of new rows that have a label, -1 of the others."""
        if y is None:
            return np.full(n_rows, -1, dtype=np.int64)
        column = as_column(y, "y")
        if len(column) != n_rows:
            raise InvalidInputError(f"y has {len(column)} entries, X has {n_rows} rows")
        known = ~unlabelled_mask(y, self.unlabeled)
        place = {label: k for k, label in enumerate(self.classes_.tolist())}
        labels = [plain(label) for label in column[known].tolist()]
        strange = [label for label in labels if label not in place]
        if strange:
            row = np.flatnonzero(known)[labels.index(strange[0])]
            raise InvalidInputError(
                f"y has {show(strange[0])} in row {row}, which is no class of the model; "
                f"{meant(strange[0], self.classes_.tolist())}"
            )
        numbers = np.full(n_rows, -1, dtype=np.int64)
        numbers[known] = [place[label] for label in labels]
        return numbers

    def _cut(self, X: ArrayLike, hidden: BoolArray, scores: FloatArray, margins: tuple[ClassTotals, ...]) -> Divided:
        """Rows without a label divided among the classes."""
        from treewright.totals.division import divide_rows

        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # of the rows, which the scores have told already
            content = row_numbers(self._given_rows(X))[hidden]
        # the seed of the fit: what is drawn here can be repeated too
        rng = np.random.default_rng(derived_seed(self.random_state_))
        return divide_rows(scores, content, margins, np.arange(len(self.classes_)), rng)

    def _tell_new_groups(self, margins: tuple[ClassTotals, ...]) -> None:
        """Warn of groups that the fit had not: they may be new, or written otherwise."""
        known = set(getattr(self, "class_prices_", {None: None})) - {None}
        new = [] if len(margins) != 1 or not known else [name for name in margins[0].groups if name not in known]
        if new and new != [None]:
            noun, them = ("group", "its") if len(new) == 1 else ("groups", "their")
            like = known_names(map(str, new), [name for name in known if isinstance(name, str)])
            hint = "".join(f"; {name!r} is written like {other!r} of the fit" for name, other in like.items())
            warn_user(
                f"{noun} {listing(new)} had no rows without a label in the fit: {them} rows are labelled by what the "
                f"model learned of all groups together, within {them} totals where there are any{hint}"
            )

    def _class_scores(self, X: ArrayLike) -> FloatArray:
        """Scores of new rows, finite, shape (n_samples, n_classes)."""
        return log_shares(self.predict_proba(X))  # type: ignore[attr-defined]

    def _given_rows(self, X: ArrayLike) -> Any:
        """New rows as an array, frame or sparse matrix."""
        return new_rows(self, X)

    def _own_prices(self, groups: Any, n_rows: int) -> tuple[FloatArray, FloatArray]:
        """Prices and shifts that new rows have without new totals."""
        nothing = np.zeros(len(self.classes_))
        return nothing, nothing


def log_shares(shares: ArrayLike) -> FloatArray:
    """Shares as scores of an estimator; none is impossible, as a leaf without a class may have rows of it all the same.

    Examples
    --------
    >>> log_shares([[0.0, 1.0]]).round(1).tolist()
    [[-13.8, 0.0]]
    """
    return np.asarray(np.log(np.maximum(np.asarray(shares), 1e-6)))


class PricedModel(TotalsModel):
    """Mixin of those with prices of the classes by group.

    Names and prices are kept apart, as files may have no other keys than strings: skops reads back neither None nor
    False as a key.

    Attributes
    ----------
    transduction_proba_ : ndarray of shape (n_samples, n_classes)
        Probabilities of all training rows: 1 for a given label; those of unlabelled rows sum to the totals, in each
        group.
    """

    classes_: np.ndarray
    _price_groups: list[Any]
    _prices: FloatArray
    _shift_groups: list[list[Any]]
    _shifts: list[FloatArray]

    @property
    def _n_margins(self) -> int:  # type: ignore[override]
        return len(self._shift_groups)

    @property
    def class_prices_(self) -> dict[Any, FloatArray]:
        """Prices of the classes by group; under the key None those for rows whose group is not known."""
        check_is_fitted(self)
        return dict(zip(self._price_groups, self._prices, strict=True))

    def predict(self, X: ArrayLike, groups: Any = None) -> np.ndarray:
        """Predict the class of each row: the largest score plus price.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows to classify.
        groups : array-like of shape (n_samples,) or None
            Group of each row, for a model with totals by group; None for prices of the totals of all groups together.
            Groups that had no unlabelled rows in fit have these too, with a warning. Of several margins a list of
            columns, or a frame.

        Returns
        -------
        ndarray of shape (n_samples,)
            Labels from ``classes_``.
        """
        scores = self._class_scores(X)  # says so if there is no fit
        best = (scores + self._prices_of(groups, len(scores))).argmax(axis=1)
        return np.asarray(self.classes_[best])

    def predict_proba(self, X: ArrayLike, groups: Any = None) -> FloatArray:
        r"""Predict class probabilities, with a shift of the prior by which totals are the sums of probabilities.

        They are proportional to :math:`\exp(score_k + shift_k)`. Where scores are logarithms of probabilities, these
        are multiplied by a factor for each class and scaled to the sum 1: the rule of Bayes for a sample that is biased
        by class. The factors are such that the probabilities of the unlabelled rows of fit sum to the totals, in each
        group. They say how sure a label is, and the label of the largest probability is not always that of
        :meth:`predict`, which counts labels instead of adding probabilities. Scores that are no probabilities (decision
        functions) are ordered rightly and sum to the totals, but are not calibrated.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows to classify.
        groups : array-like of shape (n_samples,) or None
            Group of each row, as for :meth:`predict`.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            Probabilities, columns in the order of ``classes_``.
        """
        return self._probabilities(X, groups)

    def _probabilities(self, X: ArrayLike, groups: Any) -> FloatArray:
        from treewright.totals.shift import shifted

        scores = self._class_scores(X)
        return shifted(self._sharpness * scores, self._shifts_of(groups, len(scores)))

    def _without_rows(self) -> Self:
        """A copy that says the same of new rows and keeps no training rows: what a model file has."""
        other = copy(self)
        for name in ("transduction_", "transduction_proba_"):
            other.__dict__.pop(name, None)  # a fit to a register that comes in parts has none
        return other

    # ------------------------------------------------------------------ by group

    def _own_prices(self, groups: Any, n_rows: int) -> tuple[FloatArray, FloatArray]:
        known = groups is not None and self._shift_groups != [[None]]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # new groups are what new totals are for
            chosen = groups if known else None
            return self._prices_of(chosen, n_rows), self._shifts_of(chosen, n_rows)

    def _prices_of(self, groups: Any, n_rows: int) -> FloatArray:
        """Prices of the classes for each row, or for all."""
        if groups is None:
            return self._prices[self._price_groups.index(None)]
        columns = self._numbered(groups, n_rows)
        if len(columns) == 1:
            names, number = columns[0]
        else:
            table, number = np.unique(np.column_stack([of for _, of in columns]), axis=0, return_inverse=True)
            names = [tuple(c[0][j] for c, j in zip(columns, row, strict=True)) for row in table.tolist()]
        return _by_name(self._price_groups, self._prices, names, tell=True)[number.reshape(-1)]

    def _shifts_of(self, groups: Any, n_rows: int) -> FloatArray:
        """Shifts of the prior for each row, or for all; those of several margins add up."""
        if groups is None:
            return self._shifts[0][self._shift_groups[0].index(None)]
        margins = list(zip(self._shift_groups, self._shifts, self._numbered(groups, n_rows), strict=True))
        if len(margins) == 1:
            known, shifts, (names, number) = margins[0]
            return _by_name(known, shifts, names, tell=True)[number]
        total = np.zeros((n_rows, len(self.classes_)))
        unseen = np.zeros(n_rows, dtype=bool)
        for known, shifts, (names, number) in margins:
            total += _by_name(known, shifts, names, tell=True)[number]
            unseen |= np.array([name not in known for name in names])[number]
        total[unseen] = self._shifts_of(None, n_rows)
        return total

    def _numbered(self, groups: Any, n_rows: int) -> list[tuple[list[Any], IntArray]]:
        """Groups, and the number of that of each row, of each margin."""
        if self._shift_groups == [[None]]:
            raise InvalidInputError("groups are given, but the model was fitted without groups; leave them out")
        rows = f"{n_rows} rows"
        missing = f"{rows} have no group (NaN or None), first row {{}}; for rows of unknown group leave groups out"
        others = f"X has {rows}; give one group a row"
        several = len(self._shift_groups)
        columns = [groups] if several == 1 else group_columns(groups, several)
        return [
            ([None], np.zeros(n_rows, dtype=np.int64))
            if known[:1] == [None]
            else numbered_groups(column, n_rows, others, missing, InvalidInputError)
            for column, known in zip(columns, self._shift_groups, strict=True)
        ]

    @staticmethod
    def _fitted_prices(
        prices: dict[Any, FloatArray], shifts: list[dict[Any, FloatArray]], shares: FloatArray | None = None
    ) -> dict[str, Any]:
        """Fitted attributes from which labels and probabilities are made."""
        return {
            "_price_groups": list(prices),
            "_prices": np.array(list(prices.values())),
            "_shift_groups": [list(part) for part in shifts],
            "_shifts": [np.array(list(part.values())) for part in shifts],
            **({} if shares is None else {"transduction_proba_": shares}),
        }


def _by_name(known: list[Any], values: FloatArray, names: list[Any], tell: bool) -> FloatArray:
    """Values of groups by name; of those that are not known the value under None, the key of all together."""
    place = {name: g for g, name in enumerate(known)}
    unseen = [name for name in names if name not in place]
    if unseen and tell:
        noun = "group" if len(unseen) == 1 else "groups"
        warn_user(f"{noun} {listing(unseen)} had no unlabelled rows in fit: labelled like all groups together")
    return values[[place.get(name, place[None]) for name in names]]


def _reached(margins: tuple[ClassTotals, ...], labels: IntArray, classes: np.ndarray) -> list[dict[str, Any]]:
    """Totals asked and reached; those of several margins with their numbers."""
    if len(margins) == 1:
        return margins[0].table(labels, classes)
    return [{"margin": j, **row} for j, margin in enumerate(margins) for row in margin.table(labels, classes)]


def transduced_attributes(problem: Problem, numbers: IntArray) -> dict[str, Any]:
    """Fitted attributes of an estimator that labels all training rows: classes, labels, totals they reach."""
    hidden, classes = numbers[problem.unlabelled], problem.classes
    margins = problem.margins or (() if problem.totals is None else (problem.totals,))
    table = _reached(margins, hidden, classes)
    return {"classes_": classes, "transduction_": classes[numbers], "totals_": table}
