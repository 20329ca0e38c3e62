"""What all estimators share: input, clock, seed, the course of a fit, and what they tell of it afterwards."""

from __future__ import annotations

import os
from collections.abc import Callable
from copy import copy
from dataclasses import dataclass, field, fields, replace
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, ClassVar, Self, TypeVar

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_array, check_consistent_length, check_random_state, get_tags
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import _check_sample_weight, _num_samples, check_is_fitted, validate_data

from treewright.core import progress
from treewright.core.arrays import BoolArray, FloatArray, IntArray
from treewright.core.budget import Budget
from treewright.data import TotalsRules, held_weights
from treewright.data.columns_checked import missing_mask, refuse_dates, refuse_lazy, refuse_repeated_names
from treewright.data.mixed import refuse_text, with_flags
from treewright.estimators.numbers import note_numbers, tell_numbers
from treewright.estimators.parameters import parameter, parameters
from treewright.estimators.spread import noted_spread
from treewright.estimators.tables import model_of_own_columns
from treewright.exceptions import InvalidInputError, warn_user
from treewright.optimize.record import FitRecord, FitStatus
from treewright.optimize.settings import SearchSettings
from treewright.tree import Tree
from treewright.tree.trimming import without_idle_terms

if TYPE_CHECKING:
    from treewright.optimize.conduct import Conduct
    from treewright.solvers import Progress

__all__ = [
    "NOTED",
    "Given",
    "Model",
    "NewRows",
    "PredictsClasses",
    "PredictsOutputs",
    "SolvedModel",
    "TimedModel",
    "course_attributes",
    "derived_seed",
    "drawn_seed",
    "new_rows",
    "partly_known_targets",
    "rows_of_fit",
    "settings_of",
    "thread_count",
    "wrapped_kind",
]

NOTED = ("n_features_in_", "feature_names_in_")
"""What scikit-learn notes of the rows of a fit."""
S = TypeVar("S")
_UNTOLD = (
    "_table",
    "_rule_digits",
    "_rule_sure",
    "_leaf_rows",
    "_leaf_labelled",
    "_weighted_leaves",
    "_seen_numbers",
    "_spread",
)
"""What else a fit may leave that the next one must not keep."""
_COURSE = ("record_", "status_", "reason_", "random_state_", "objective_", "bound_", "gap_", "solve_time_", "trace_")


@dataclass(frozen=True)
class Given:
    """What ``fit`` was given, and once its rows are checked, what is noted of them: to be set when all went well."""

    X: Any
    y: Any
    sample_weight: ArrayLike | None = None
    totals: Any = None
    groups: ArrayLike | None = None
    rules: TotalsRules | None = None
    graph: Any = None
    protected: ArrayLike | None = None
    n_asked: int = 0
    handed: bool = False
    seed: int | None = None
    noted: dict[str, Any] = field(default_factory=dict)

    def without_features(self) -> Given:
        """The same with one constant feature: labels and weights are checked apart from rows that may be sparse."""
        return replace(self, X=np.zeros((self.X.shape[0], 1)))

    @property
    def weighs(self) -> bool:
        """Whether a row weighs other than 1; weights that are missing, of rows that need none, do not count."""
        if self.sample_weight is None:
            return False
        weight = np.asarray(self.sample_weight).reshape(-1)
        return bool(np.any(weight[~missing_mask(weight)].astype(np.float64) != 1.0))

    def checked_weight(self) -> FloatArray:
        """Weights of the rows, 1 if there are none."""
        given = _check_sample_weight(self.sample_weight, self.X, dtype=np.float64, ensure_non_negative=True)
        return held_weights(np.asarray(given))


def rows_of_fit(
    estimator: Any, given: Given, read: Callable[[Any, Any], tuple[Any, dict[str, Any]]], **more: Any
) -> Given:
    """Validate the rows of a fit, and note number and names of their features.

    Parameters
    ----------
    estimator : Model
        Stays as it is.
    given : Given
        What the fit was given.
    read : callable
        Gets a copy of the estimator, for scikit-learn to note what it notes, and X; returns the rows as training takes
        them, and what else is noted of them.
    **more
        What else is to be said of the rows in what is returned.
    """
    if given.y is None:
        raise ValueError(f"{type(estimator).__name__} requires y to be passed, but the target y is None")
    # scikit-learn sets what it notes at once; a fit that fails later must leave the old fit whole
    other = copy(estimator)
    rows, noted = read(other, given.X)
    n_rows = _num_samples(rows)
    if n_rows < 2:
        raise InvalidInputError(f"Found array with {n_rows} sample(s) while a minimum of 2 is required")
    noted = {name: getattr(other, name) for name in NOTED if hasattr(other, name)} | noted
    return replace(given, X=rows, noted=noted, **more)


def new_rows(estimator: Any, X: ArrayLike) -> Any:
    """Validate rows that a fitted estimator is to say something of."""
    check_is_fitted(estimator)
    own = model_of_own_columns(estimator, X)
    rows = _checked(estimator, with_flags(X), reset=False) if own is None else _checked(*own, reset=False)
    tell_numbers(estimator, rows)
    return rows


def _checked(estimator: Any, X: ArrayLike, **how: Any) -> Any:
    refuse_dates(X, "X")
    refuse_repeated_names(X)
    refuse_text(X, "text for numbers" if how.get("reset", True) else "new text")
    accepted = "csr" if get_tags(estimator).input_tags.sparse else False
    return validate_data(estimator, X, dtype=np.float64, accept_sparse=accepted, **how)


def partly_known_targets(estimator: Any, given: Given, unlabeled: float | None) -> tuple[FloatArray, BoolArray, bool]:
    """Targets given to an estimator, a column for each output, which are missing, and whether y has one dimension."""
    y, n_rows = given.y, given.X.shape[0]
    if sparse.issparse(y):
        raise TypeError("y is sparse; sparse targets are not supported, use an array")
    refuse_dates(y, "y")
    array = np.asarray(y)
    if array.dtype.kind == "O":  # None and pandas' NA become NaN
        gone = missing_mask(array.reshape(-1)).reshape(array.shape)
        array = np.where(gone, np.nan, array)
    array = check_array(
        array, ensure_2d=False, dtype=np.float64, ensure_all_finite="allow-nan", input_name="y", estimator=estimator
    )
    if array.ndim not in (1, 2):
        raise InvalidInputError(f"y has shape {array.shape}, expected one column or one for each output")
    check_consistent_length(np.zeros(n_rows), array)
    Y = array.reshape(n_rows, -1)
    missing = np.isnan(Y)
    if unlabeled is not None:
        missing |= unlabeled == Y
    return Y, missing, array.ndim == 1


def wrapped_kind(estimator: Any, is_right: Callable[[Any], bool], wanted: str) -> str:
    """Class name of an estimator that is to be wrapped; what is not `wanted`, a kind in words, is refused."""
    if isinstance(estimator, type):
        raise InvalidInputError(f"estimator is the class {estimator.__name__}; pass an instance of it")
    kind = type(estimator).__name__
    if not hasattr(estimator, "__sklearn_tags__") or not is_right(estimator):
        raise InvalidInputError(f"estimator is a {kind}, which is no {wanted}")
    return kind


def settings_of(estimator: Any, kind: type[S]) -> S:
    """Return the settings that the parameters of an estimator stand for; those it does not have keep their defaults.

    Examples
    --------
    >>> from treewright import LapTAOClassifier
    >>> from treewright.graph.affinity import GraphSettings
    >>> settings = settings_of(LapTAOClassifier(n_neighbors=7), GraphSettings)
    >>> settings.n_neighbors, settings.perplexity
    (7, 5.0)
    """
    names = [field.name for field in fields(kind)]  # type: ignore[arg-type]
    return kind(**{name: getattr(estimator, name) for name in names if hasattr(estimator, name)})


def course_attributes(record: FitRecord) -> dict[str, Any]:
    """Fitted attributes of an estimator that a record stands for; objective, bound and gap where there are any."""
    course: dict[str, Any] = {
        "record_": record,
        "status_": record.status,
        "reason_": record.reason,
        "solve_time_": record.seconds,
        "trace_": record.trace,
    }
    if record.seed is not None:
        course["random_state_"] = record.seed
    if record.objective is not None:
        course["objective_"] = record.objective
    if record.bound is not None:
        course |= {"bound_": record.bound, "gap_": record.gap}
    return course


def drawn_seed(random_state: Any) -> int:
    """The number that ``random_state`` of an estimator is or, if none, one drawn from it, which does the same.

    Examples
    --------
    >>> drawn_seed(7), 0 <= drawn_seed(None) < 2**31, drawn_seed(np.random.RandomState(7))
    (7, True, 327741615)
    """
    if isinstance(random_state, Integral):
        return int(random_state)
    return derived_seed(random_state)


def derived_seed(random_state: Any) -> int:
    """A number that follows from ``random_state`` of an estimator."""
    return int(check_random_state(random_state).randint(2**31 - 1))


def thread_count(n_jobs: int | None) -> int:
    """Threads that ``n_jobs`` of an estimator stands for: None for one, -1 for all cores, -2 for all but one."""
    if n_jobs == 0:
        raise InvalidInputError("n_jobs must not be 0; use None for one thread, -1 for all cores")
    if n_jobs is None:
        return 1
    return n_jobs if n_jobs > 0 else max(1, (os.cpu_count() or 1) + 1 + n_jobs)


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
        Seed of all that is random in the fit. One that is drawn, for None, is `random_state_`.
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
    random_state_ : int
        The seed of the fit: `random_state`, or what was drawn from it; given instead, it repeats the fit unless time
        ended that (``record_.repeatable``).
    record_ : FitRecord
        Status, reason, seconds, objective, bound, trace and seed in one.
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
    random_state_: int
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
    _local: ClassVar[bool] = False
    """Whether such a fit may also end without a claim to be optimal."""
    _search_settings: ClassVar[SearchSettings] = SearchSettings()
    """How much searches do."""
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
        for name in ("X", "y", "sample_weight", "totals", "groups", "protected", "graph"):
            refuse_lazy(getattr(given, name), name)
        self._validate_params()  # type: ignore[attr-defined]
        thread_count(self.n_jobs)
        seed = drawn_seed(self.random_state) if given.seed is None else given.seed
        seeded = self._seeded(seed)
        with progress.fit_reported(progress.printer() if self.verbose else None, budget):
            prepared = seeded._prepared(given.sample_weight is not None)
            with progress.stage("rows are checked"):
                given = seeded._checked_rows(given)
            record, fitted = seeded._trained(given, prepared, budget)
            with progress.stage(f"ended: {record.status}"):
                progress.note(objective=record.objective, bound=record.bound, step=True)
        record = replace(record, seed=seed, note=" ".join(filter(None, [record.note, self._remark(given, fitted)])))
        fitted |= _readable(fitted, given.X, getattr(self, "complexity", 0.0))
        fitted |= noted_spread(fitted, given.X)
        if "tree_" in fitted and (given.weighs or getattr(self, "class_weight", None) is not None):
            fitted["_weighted_leaves"] = True
        self._publish(record.closed(budget), given.noted | note_numbers(given.X, given.noted) | fitted)
        return self

    def _seeded(self, seed: int) -> Self:
        """The same estimator, with a number for ``random_state``: whatever is drawn in a fit follows from that."""
        other = copy(self)
        other.random_state = seed
        return other

    def _prepared(self, weighted: bool) -> Any:
        """Check what can be checked before the data, and return what training needs of it."""

    def _checked_rows(self, given: Given) -> Given:
        """Validate the rows of a fit."""
        return rows_of_fit(self, given, lambda other, X: (_checked(other, X, ensure_min_samples=2), {}))

    def _trained(self, given: Given, prepared: Any, budget: Budget) -> tuple[FitRecord, dict[str, Any]]:
        """The record of a fit to checked rows, and the fitted attributes."""
        raise NotImplementedError

    def _remark(self, given: Given, fitted: dict[str, Any]) -> str:
        """What the user is to be warned of in what was fitted, beside what training says; "" for nothing."""
        return ""

    def _publish(self, record: FitRecord, fitted: dict[str, Any]) -> None:
        """Set all fitted attributes in one step, and then warn of a fit that was cut short.

        So a fit that fails leaves the last one whole, and one whose warning is made an error is whole itself.
        """
        old = (*NOTED, *_COURSE, *_UNTOLD, *self._sometimes)
        kept = {name: value for name, value in vars(self).items() if name not in old}
        self.__dict__ = kept | course_attributes(record) | fitted
        if record.note:
            warn_user(record.note, UserWarning)
        if not record.as_planned:
            warn_user(self._warning(record), ConvergenceWarning)

    def _warning(self, record: FitRecord) -> str:
        text = f"{type(self).__name__} ended with status {record.status!r} after {record.seconds:.1f} s: "
        text += f"{record.reason}."
        if record.objective is not None:
            text += f" The {self._found} has objective {record.objective:.6g}"
            text += f"; no {self._found} has less than {record.bound:.6g}." if record.bound else "."
        if record.status == FitStatus.TIME_LIMIT:
            text += " A longer time_limit may make it better."
        return text

    @property
    def _threads(self) -> int:
        return thread_count(self.n_jobs)

    def _conduct(self, told: Callable[..., Any] | None = None) -> Conduct:
        """Threads, seed, and who is told of each step, if anybody listens."""
        from treewright.optimize.conduct import Conduct

        listener = told if progress.noting() else None
        return Conduct(self._threads, self._seed(), listener, search=self._search_settings)

    def _seed(self) -> int:
        """Draw one number from ``random_state`` for everything random in the fit."""
        return derived_seed(self.random_state)


@parameters
class TimedModel(Model):
    """Mixin of the estimators whose fits keep a time limit and may be interrupted.

    Parameters
    ----------
    time_limit : float or None
        Seconds for the whole fit.
    verbose : int
        Above 0, progress goes to standard error, at least every two seconds.
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

    def _prepared(self, weighted: bool) -> Conduct:
        """The solver, which is refused if it is not there, and what it is asked for."""
        from treewright.optimize.conduct import Conduct
        from treewright.solvers import get_solver

        prover, told = get_solver(self.solver), _told_of_objectives()
        return Conduct(self._threads, self._seed(), told, prover, self.gap, self._search_settings)


def _readable(fitted: dict[str, Any], X: Any, complexity: float) -> dict[str, Any]:
    """The trees of a fit without terms that are rounding; where each has its price the search has left them out."""
    found: dict[str, Any] = {}
    if complexity:
        return found
    if "tree_" in fitted:
        found["tree_"] = without_idle_terms(fitted["tree_"], X)
    if all(isinstance(tree, Tree) for tree in fitted.get("trees_") or [None]):
        found["trees_"] = [without_idle_terms(tree, X) for tree in fitted["trees_"]]
    return found


class NewRows:
    """Mixin of what says something of new rows once it is fitted."""

    def _check_rows(self, X: ArrayLike) -> Any:
        return new_rows(self, X)


class PredictsClasses(NewRows):
    """Mixin of the classifiers whose predictions depend on the rows alone."""

    classes_: np.ndarray

    def predict(self, X: ArrayLike) -> np.ndarray:
        """Predict the class of each row.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows to classify.

        Returns
        -------
        ndarray of shape (n_samples,)
            Labels from ``classes_``.
        """
        numbers = self._class_numbers(self._check_rows(X))  # says so if there is no fit
        return np.asarray(self.classes_[numbers])

    def _class_numbers(self, rows: Any) -> IntArray:
        raise NotImplementedError


class PredictsOutputs(NewRows):
    """Mixin of the regressors."""

    def predict(self, X: ArrayLike) -> FloatArray:
        """Predict the outputs of each row.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_outputs)
            Predictions, one column an output if there are several.
        """
        return self._outputs(self._check_rows(X))  # says so if there is no fit

    def _outputs(self, rows: Any) -> FloatArray:
        raise NotImplementedError


def _told_of_objectives() -> Callable[[Progress], None] | None:
    """What hands on what searches and solvers tell, if anybody listens."""
    note = progress.noting()

    def told(event: Progress) -> None:
        assert note is not None
        nodes = f"nodes {event.nodes}" if event.nodes else ""
        note(objective=event.objective, bound=event.bound, detail=nodes)

    return None if note is None else told
