"""Model files of version 1, which had no record of the fit, read as files of version 2."""

from __future__ import annotations

from typing import Any

from treewright.exceptions import ModelFileError

__all__ = ["upgraded"]

_THIRD = {
    "TAOClassifier": "loss",
    "TAORegressor": "loss",
    "SSCTClassifier": "leaves",
    "LapTAOClassifier": "residual",
    "LapTAORegressor": "residual",
}
"""What the third column of a trace was, where it was not the bound."""

_HISTORY = ("mu", "label_loss", "smoothness", "price", "residual", "moved")
"""Columns that LapTAO kept apart, beside the seconds."""

_REASONS = {
    "rounds": "all rounds are done",
    "settled": "the model did not change any more",
    "stopped": "time limit or interrupt",
}


def upgraded(document: dict[str, Any]) -> dict[str, Any]:
    """Return what version 2 has for a document of version 1."""
    fit = dict(document["fit"])
    bound = fit.pop("bound", None)
    status, reason = fit.pop("status"), ""
    if status == "local" and bound is not None:  # a failure was called by the name of a normal end
        status = "unproven"
    columns, rows = ["seconds", "objective", _THIRD.get(document["estimator"], "bound")], fit.pop("trace")
    if columns[2] == "residual":
        stopped = fit.pop("stop_reason")
        if stopped not in _REASONS:
            raise ModelFileError(f"fit.stop_reason is {stopped!r}, expected {', '.join(_REASONS)}")
        reason = _REASONS[stopped]
        columns = ["seconds", "objective", *_HISTORY]
        rows = [[*row[:2], *past[1:]] for row, past in zip(rows, fit.pop("history"), strict=True)]
    record = {
        "status": status,
        "reason": reason,
        "seconds": fit.pop("solve_time"),
        "objective": fit.pop("objective"),
        "bound": bound,
        "gap_asked": None if bound is None else fit.pop("gap", document["parameters"].get("gap", 1e-4)),
        "trace": {"columns": columns, "rows": rows},
    }
    return {**document, "version": 2, "record": record, "fit": fit}
