"""What all estimators share: the clock, the seed, the course of a fit, and what they tell of it afterwards."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from dataclasses import fields
from numbers import Integral, Real
from typing import Any, ClassVar, Self, TypeVar

import numpy as np
from numpy.typing import ArrayLike
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, StrOptions

from treewright.budget import Budget
from treewright.estimators.common.parameters import parameter, parameters
from treewright.estimators.common.rows import NOTED, Given, fit_rows
from treewright.exceptions import InvalidInputError, warn_user
from treewright.solvers import Progress, get_solver, relative_gap
from treewright.training.conduct import Conduct
from treewright.training.optimize import Solving
from treewright.training.record import FitRecord, FitStatus

__all__ = ["Model", "SolvedModel", "TimedModel", "course_of", "settings_of"]

S = TypeVar("S")

_COURSE = ("record_", "status_", "reason_", "objective_", "bound_", "gap_", "solve_time_", "trace_")


def settings_of(estimator: Any, kind: type[S]) -> S:
    """Return the settings that the parameters of an estimator stand for; those it does not have keep their defaults.

    Examples
    --------
    >>> from treewright import TAOClassifier
    >>> from treewright.training.tao import TAOSettings
    >>> settings = settings_of(TAOClassifier(max_depth=3), TAOSettings)
    >>> settings.max_depth, settings.leaves
    (3, 'constant')
    """
    names = [field.name for field in fields(kind)]  # type: ignore[arg-type]
    return kind(**{name: getattr(estimator, name) for name in names if hasattr(estimator, name)})


def course_of(record: FitRecord) -> dict[str, Any]:
    """Fitted attributes that a record stands for; objective, bound and gap only where there are any."""
    course: dict[str, Any] = {
        "record_": record,
        "status_": record.status,
        "reason_": record.reason,
        "solve_time_": record.seconds,
        "trace_": record.trace,
    }
    if record.objective is not None:
        course["objective_"] = record.objective
    if record.bound is not None:
        course |= {"bound_": record.bound, "gap_": record.gap}
    return course


class Model:
    """Mixin of all estimators: the course of a fit, and the record it leaves.

    Parameters
    ----------
    max_depth : int
        Depth of the tree.
    unlabeled : label
        Mark of unlabelled rows in y; NaN and None are marks too.
    n_jobs : int or None
        Threads: None for one, -1 for all cores. The model does not depend on it.
    random_state : int, RandomState or None
        Seed of all that is random in the fit.
    warm_start : bool, Tree or fitted estimator
        Tree to start from; True goes on from the last fit.

    Attributes
    ----------
    tree_ : Tree
        The tree, in the units of the data.
    classes_ : ndarray
        The labels.
    transduction_ : ndarray of shape (n_samples,)
        Labels of all training rows: those given, and predictions for the others.
    status_ : {"local", "time_limit", "interrupted"}
        How the fit ended. "local" is the usual end.
    reason_ : str
        Why it ended so.
    solve_time_ : float
        Seconds of the whole fit.
    trace_ : structured ndarray
        The course of the fit, in named columns.
    record_ : FitRecord
        Status, reason, seconds, objective, bound and trace in one.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of str
        Names of the features, if X had them.
    """

    time_limit: float | None = None
    n_jobs: int | None = None
    random_state: Any = None
    verbose: int = 0
    record_: FitRecord
    status_: str
    reason_: str
    objective_: float
    bound_: float
    gap_: float
    solve_time_: float
    trace_: np.ndarray
    _found: ClassVar[str] = "tree"
    """What a fit finds, in messages."""
    _bounded: ClassVar[bool] = False
    """Whether a fit has a bound."""
    _sometimes: ClassVar[tuple[str, ...]] = ()
    """Attributes that only some fits have."""

    def fit(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Fit the model.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows; unlabelled ones too, if the model is semi-supervised, and as a scipy sparse array, if it takes these.
        y : array-like of shape (n_samples,) or, for several outputs, (n_samples, n_outputs)
            Labels, at least two different ones, or targets; unlabelled rows have the mark ``unlabeled``, NaN or None.
        sample_weight : array-like of shape (n_samples,) or None
            Weights of the rows; 0 leaves a row out, 2 counts it twice, except where a parameter counts rows.

        Returns
        -------
        estimator
            The fitted estimator.
        """
        return self._fit(Given(X, y, sample_weight))

    def _fit(self, given: Given) -> Self:
        """The course of every fit: all that can be refused before any work, training, and all attributes at once."""
        budget = Budget(self.time_limit)
        self._validate_params()  # type: ignore[attr-defined]
        if self.n_jobs == 0:
            raise InvalidInputError("n_jobs must not be 0; use None for one thread, -1 for all cores")
        prepared = self._prepared(given.sample_weight is not None)
        given = self._checked_rows(given)
        record, fitted = self._trained(given, prepared, budget)
        self._publish(record.closed(budget), given.noted | fitted)
        return self

    def _prepared(self, weighted: bool) -> Any:
        """Check what can be checked before the data, and return what training needs of it."""

    def _checked_rows(self, given: Given) -> Given:
        """Validate the rows of a fit."""
        return fit_rows(self, given)

    def _trained(self, given: Given, prepared: Any, budget: Budget) -> tuple[FitRecord, dict[str, Any]]:
        """The record of a fit to checked rows, and the fitted attributes."""
        raise NotImplementedError

    def _publish(self, record: FitRecord, fitted: dict[str, Any]) -> None:
        """Set all fitted attributes in one step, and then warn of a fit that was cut short.

        So a fit that fails leaves the last one whole, and one whose warning is made an error is whole itself.
        """
        old = (*NOTED, *_COURSE, *self._sometimes)
        kept = {name: value for name, value in vars(self).items() if name not in old}
        self.__dict__ = kept | course_of(record) | fitted
        if record.note:
            warn_user(record.note, UserWarning)
        if not record.as_planned:
            warn_user(self._warning(record), ConvergenceWarning)

    def _warning(self, record: FitRecord) -> str:
        text = f"{type(self).__name__} ended with status {record.status!r} after {record.seconds:.1f} s: "
        text += f"{record.reason}."
        if record.objective is not None:
            text += f" The {self._found} has objective {record.objective:.6g}"
            text += "." if record.bound is None else f", no {self._found} is below {record.bound:.6g}."
        if record.status == FitStatus.TIME_LIMIT:
            text += " A longer time_limit may make it better."
        return text

    @property
    def _threads(self) -> int:
        if self.n_jobs is None:
            return 1
        return self.n_jobs if self.n_jobs > 0 else max(1, (os.cpu_count() or 1) + 1 + self.n_jobs)

    def _conduct(self, told: Callable[..., Any] | None = None) -> Conduct:
        """Threads, seed, and who is told of progress, if ``verbose``."""
        return Conduct(self._threads, self._seed(), told if self.verbose else None)

    def _seed(self) -> int:
        """Draw one number from ``random_state`` for everything random in the fit."""
        return int(check_random_state(self.random_state).randint(2**31 - 1))


@parameters
class TimedModel(Model):
    """Mixin of the estimators whose fits keep a time limit and may be interrupted.

    Parameters
    ----------
    time_limit : float or None
        Seconds for the whole fit.
    verbose : int
        Above 0, progress goes to standard error.
    """

    time_limit: float | None = parameter(default=None, allowed=[Interval(Real, 0, None, closed="neither"), None])
    n_jobs: int | None = parameter(default=None, allowed=[Integral, None])
    random_state: Any = parameter(default=None, allowed=["random_state"])
    verbose: int = parameter(default=0, allowed=["verbose"])


@parameters
class SolvedModel(TimedModel):
    """Mixin of the estimators that search, bound and branch.

    Parameters
    ----------
    solver : {"highs", "scip", "gurobi"}
        Solver of the mixed-integer program.
    gap : float
        Relative gap between objective and bound that counts as optimal.
    n_jobs : int or None
        Threads of the solver: None for one, -1 for all cores.
    random_state : int, RandomState or None
        Seed of the search and the solver.

    Attributes
    ----------
    objective_, bound_ : float
        Objective of the tree, and proven lower bound of that of any tree.
    gap_ : float
        Relative gap between `objective_` and `bound_`.
    status_ : {"optimal", "time_limit", "interrupted", "unproven"}
        How the fit ended. "unproven": nothing is proven for another reason than time.
    trace_ : structured ndarray
        Columns "seconds", "objective" and "bound", a row an improvement.
    """

    solver: str = parameter(default="highs", allowed=[StrOptions({"highs", "scip", "gurobi"})])
    time_limit: float | None = parameter(default=60.0, allowed=[Interval(Real, 0, None, closed="neither"), None])
    gap: float = parameter(default=1e-4, allowed=[Interval(Real, 0, 1, closed="left")])

    _bounded: ClassVar[bool] = True

    def _prepared(self, weighted: bool) -> Solving:
        """The solver, which is refused if it is not there, and what it is asked for."""
        told = _print_progress if self.verbose else None
        return Solving(get_solver(self.solver), self.gap, self._threads, self._seed(), told)


def _print_progress(event: Progress) -> None:
    """A line on standard error."""
    print(
        f"{event.seconds:8.1f} s  objective {event.objective:.6g}  bound {event.bound:.6g}  "
        f"gap {relative_gap(event.objective, event.bound):.2%}  nodes {event.nodes}",
        file=sys.stderr,
    )
