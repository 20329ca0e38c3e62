"""Self-training of a regression: what a model says of unlabelled rows becomes their target, until that settles."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from treewright.core.arrays import BoolArray, FloatArray
from treewright.core.budget import Budget
from treewright.data import Compact, Merge, Sample, Weighted, reduced_sample
from treewright.data.rows import errors_told
from treewright.exceptions import InvalidInputError
from treewright.optimize.record import FitRecord, FitStatus, named_trace

if TYPE_CHECKING:
    from treewright.models.baselines.self_training import SelfTrainingRegressor

__all__ = ["SelfTrainedRegressor", "SelfTrainingFit", "train_on_own_predictions"]


@dataclass(frozen=True)
class SelfTrainingFit:
    """What self-training of a regressor ended with."""

    targets: FloatArray
    """The known targets, and predictions of the last fit where there is none; shape (n_rows, n_outputs)."""
    n_iter: int
    """Fits, the first on the known targets included."""
    record: FitRecord
    """How it went; the trace has the change of the predictions."""


@dataclass(frozen=True)
class SelfTrainedRegressor:
    """The regressor of a self-training and how it is given rows."""

    regressor: Any
    """What is fitted, in place."""
    merged: bool
    """Whether it sees each distinct row once, with the sum of its weights."""
    weighted: bool
    """Whether it is given weights."""
    flat: bool
    """Whether it is given targets of one dimension."""

    def fit(self, rows: Sample) -> None:
        """Fit to rows with targets in columns."""
        if self.merged:
            rows = reduced_sample(rows, Compact(), Weighted(), Merge(large=False)).points
        assert rows.y is not None
        extra = {"sample_weight": rows.weight} if self.weighted else {}
        with errors_told(self.regressor, rows.X):
            self.regressor.fit(rows.X, rows.y[:, 0] if self.flat else rows.y, **extra)

    def predict(self, X: Any, n_outputs: int) -> FloatArray:
        """Predictions in columns."""
        with errors_told(self.regressor, X):
            found = np.asarray(self.regressor.predict(X), dtype=np.float64).reshape(-1, n_outputs)
        if not np.all(np.isfinite(found)):
            raise InvalidInputError(
                f"{type(self.regressor).__name__} predicts numbers that are not finite; divide targets or features "
                "that are very large"
            )
        return found


def train_on_own_predictions(
    rows: Sample, missing: BoolArray, fitter: SelfTrainedRegressor, settings: SelfTrainingRegressor, budget: Budget
) -> SelfTrainingFit:
    """Self-training: fit a regressor on its own predictions until they change by `tol` or less.

    The change is the root of the mean squared difference of the predictions of two successive fits over the missing
    targets, in units of the standard deviation of the known ones; the largest of the outputs counts. Targets are in
    columns, and where they are `missing` can be anything. The budget only tells the time.

    Examples
    --------
    A model that is the mean of the targets has converged at once:

    >>> from sklearn.dummy import DummyRegressor
    >>> from treewright import SelfTrainingRegressor
    >>> rows = Sample.of(np.zeros((3, 1)), np.array([[1.0], [3.0], [0.0]]))
    >>> fitter = SelfTrainedRegressor(DummyRegressor(), merged=False, weighted=False, flat=True)
    >>> missing = np.array([[False], [False], [True]])
    >>> ended = train_on_own_predictions(rows, missing, fitter, SelfTrainingRegressor(), Budget())
    >>> ended.targets.ravel().tolist(), ended.n_iter, ended.record.reason
    ([1.0, 3.0, 2.0], 2, 'the predictions did not change any more')
    """
    assert rows.y is not None
    Y, n_outputs = rows.y, rows.y.shape[1]
    known = np.flatnonzero(~missing.any(axis=1) & (rows.weight > 0))
    if not len(known):
        raise InvalidInputError("no row has all targets and a weight above 0; at least one must be labelled")
    fitter.fit(rows.taken(known))
    if not missing.any():
        return SelfTrainingFit(Y, 1, _record("all rows have targets", [], budget))
    spread = np.array([column[~gone].std() for column, gone in zip(Y.T, missing.T, strict=True)])
    n_missing = np.maximum(missing.sum(axis=0), 1)
    filled = np.where(missing, fitter.predict(rows.X, n_outputs), Y)
    trace: list[tuple[float, float]] = []
    for n_iter in range(2, settings.max_iter + 1):
        fitter.fit(Sample.of(rows.X, filled, rows.weight))
        again = np.where(missing, fitter.predict(rows.X, n_outputs), Y)
        change = np.sqrt(((again - filled) ** 2).sum(axis=0) / n_missing)
        filled = again
        relative = np.divide(change, spread, out=np.where(change > 0, np.inf, 0.0), where=spread > 0)
        trace.append((budget.elapsed, float(relative.max())))
        if np.all(change <= settings.tol * spread):
            return SelfTrainingFit(filled, n_iter, _record("the predictions did not change any more", trace, budget))
    return SelfTrainingFit(filled, settings.max_iter, _record("all fits are made", trace, budget))


def _record(reason: str, trace: list[tuple[float, float]], budget: Budget) -> FitRecord:
    table = named_trace(trace, "seconds", "change")
    return FitRecord(FitStatus.LOCAL, reason, budget.elapsed, None, None, table)
