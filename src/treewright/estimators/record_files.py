"""The record of a fit in a model file."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

from treewright.core.progress import relative_gap
from treewright.exceptions import ModelFileError
from treewright.optimize.record import FitRecord, FitStatus, named_trace

__all__ = ["is_number", "record_from_dict", "record_to_dict", "whole_number"]

_KEYS = ("status", "reason", "seconds", "objective", "bound", "gap_asked", "seed", "by_clock", "trace")
_CLOCK = (FitStatus.INTERRUPTED, FitStatus.TIME_LIMIT)


def is_number(value: object) -> bool:
    """Whether a value of a model file is a finite number of Python; True and False are none."""
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def whole_number(state: dict[str, Any], key: str) -> int:
    """A number of the fitted state of a model file that counts something."""
    if type(state[key]) is not int or state[key] < 0:
        raise ModelFileError(f"fit.{key} is {state[key]!r}, expected a whole number from 0 on")
    return int(state[key])


def record_to_dict(record: FitRecord) -> dict[str, Any]:
    """Return the record of a fit for a model file, as plain data, its trace with the names of the columns."""
    return {
        "status": record.status,
        "reason": record.reason,
        "seconds": float(record.seconds),
        "objective": record.objective,
        "bound": record.bound,
        "gap_asked": record.gap_asked,
        "seed": record.seed,
        "by_clock": record.by_clock,
        "trace": {
            "columns": list(record.trace.dtype.names or ()),
            "rows": [list(row) for row in record.trace.tolist()],
        },
    }


def record_from_dict(data: Any, bounded: bool, local: bool = False) -> FitRecord:
    """Make a record from what :func:`record_to_dict` put into a model file; refuse what it cannot have given.

    Parameters
    ----------
    data : object
        The plain data.
    bounded : bool
        Whether it is the record of a model that is solved for an optimum.
    local : bool
        Whether such a model may end as heuristics do, too.
    """
    if not isinstance(data, dict) or set(data) != set(_KEYS):
        raise ModelFileError(f"record must have {', '.join(_KEYS)}")
    status, seconds, objective = data["status"], data["seconds"], data["objective"]
    proofs = (FitStatus.OPTIMAL, FitStatus.UNPROVEN) if bounded else ()
    heuristic = (FitStatus.LOCAL,) if local or not bounded else ()
    ends = sorted((*_CLOCK, *proofs, *heuristic))
    if status not in [str(end) for end in ends]:
        raise ModelFileError(f"record.status is {status!r}, expected one of {', '.join(ends)}")
    if not isinstance(data["reason"], str):
        raise ModelFileError(f"record.reason is {data['reason']!r}, expected text")
    if not is_number(seconds) or seconds < 0:
        raise ModelFileError(f"record.seconds is {seconds!r}, expected a number from 0 on")
    if not is_number(objective):
        raise ModelFileError(f"record.objective is {objective!r}, expected a finite number")
    proof = _proof(data) if bounded else (None, None)
    if not bounded and (data["bound"] is not None or data["gap_asked"] is not None):
        raise ModelFileError("record.bound and record.gap_asked must be null for a model without bounds")
    seed, by_clock = data["seed"], data["by_clock"]
    if seed is not None and (type(seed) is not int or not 0 <= seed < 2**32):
        raise ModelFileError(f"record.seed is {seed!r}, expected a whole number from 0 on")
    if not isinstance(by_clock, bool):
        raise ModelFileError(f"record.by_clock is {by_clock!r}, expected true or false")
    record = FitRecord(
        status, data["reason"], float(seconds), float(objective), proof[0], _trace(data["trace"]), proof[1]
    )
    return replace(record, seed=seed, by_clock=by_clock)


def _proof(data: dict[str, Any]) -> tuple[float, float]:
    """Bound and gap of a record."""
    objective, bound, asked = data["objective"], data["bound"], data["gap_asked"]
    if not is_number(bound):
        raise ModelFileError(f"record.bound is {bound!r}, expected a finite number")
    if bound > objective + 1e-6 * max(1.0, abs(objective)):
        raise ModelFileError(f"record.bound is {bound}, above the objective {objective}")
    if not is_number(asked) or not 0 <= asked < 1:
        raise ModelFileError(f"record.gap_asked is {asked!r}, expected a number from 0 to 1")
    if data["status"] == FitStatus.OPTIMAL and relative_gap(objective, bound) > asked:
        raise ModelFileError(
            f"record.status is 'optimal', but objective {objective} and bound {bound} are farther apart than a gap of "
            f"{asked}"
        )
    return float(bound), float(asked)


def _trace(data: Any) -> Any:
    if not isinstance(data, dict) or set(data) != {"columns", "rows"}:
        raise ModelFileError("record.trace must have columns and rows")
    columns, rows = data["columns"], data["rows"]
    if (
        not isinstance(columns, list)
        or not all(isinstance(name, str) and name.isidentifier() for name in columns)
        or len(set(columns)) < len(columns)
        or columns[:2] != ["seconds", "objective"]
    ):
        raise ModelFileError("record.trace.columns must be seconds, objective and other names, each once")
    if not isinstance(rows, list) or not all(
        isinstance(row, list) and len(row) == len(columns) and all(is_number(v) for v in row) for row in rows
    ):
        raise ModelFileError(f"record.trace.rows must be a list of rows of {len(columns)} finite numbers")
    return named_trace(rows, *columns)
