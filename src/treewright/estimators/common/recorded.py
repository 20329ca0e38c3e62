"""What every fitted estimator tells of its fit, set in one place."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, ClassVar

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from treewright.estimators.common.rows import NOTED
from treewright.estimators.common.user_warnings import warn_user
from treewright.training.record import FitRecord, FitStatus

__all__ = ["RecordedModel", "course_of"]

_COURSE = ("record_", "status_", "reason_", "objective_", "bound_", "gap_", "solve_time_", "trace_")


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


class RecordedModel:
    """Mixin of all estimators: the record of a fit and the attributes that are read off it."""

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

    def _publish(self, record: FitRecord, fitted: dict[str, Any], stale: Collection[str] = (), note: str = "") -> None:
        """Set all fitted attributes in one step, and then warn of a fit that was cut short.

        So a fit that fails leaves the last one whole, and one whose warning is made an error is whole itself. `fitted`
        has what was noted of the features too; `stale` are attributes that only some fits have; `note` is what else the
        user should be warned of.
        """
        old = (*NOTED, *_COURSE, *stale)
        kept = {name: value for name, value in vars(self).items() if name not in old}
        self.__dict__ = kept | course_of(record) | fitted
        if note:
            warn_user(note, UserWarning)
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
