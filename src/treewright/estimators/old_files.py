"""Model files as they once were: of version 1, which had no record of the fit, and with parameters of other names."""

from __future__ import annotations

from typing import Any

from treewright.exceptions import ModelFileError

__all__ = ["renamed", "upgraded"]

_THIRD = {
    "TAOClassifier": "loss",
    "TAORegressor": "loss",
    "SSCTClassifier": "n_leaves",
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


_RENAMED = {
    "S2OCTClassifier": {"bound": "max_coefficient", "margin": "margin_rule", "n_trees": "n_estimators"},
    "SSCTClassifier": {"w": "supervision"},
    "LapTAOClassifier": {"tree": "estimator", "multiplier": "multiplier_rule"},
    "LapTAORegressor": {"tree": "estimator", "multiplier": "multiplier_rule"},
}
"""Parameters that have other names now."""

_SPLIT_KINDS = ("TAOClassifier", "TAORegressor", "LapTAOClassifier", "LapTAORegressor")
_SPLITS = {"oblique": None, "axis": 1}
"""Estimators that had kinds of splits, and what `max_split_features` is for each kind."""


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
    names = _RENAMED.get(document["estimator"], {})
    parameters = {names.get(name, name): value for name, value in document["parameters"].items()}
    return {**document, "version": 2, "parameters": parameters, "record": record, "fit": fit}


def renamed(document: dict[str, Any]) -> dict[str, Any]:
    """Return the document with the kind of splits, "oblique" or "axis", as a number of features; of any version.

    Examples
    --------
    >>> renamed({"estimator": "TAOClassifier", "parameters": {"splits": "axis", "max_depth": 2}})["parameters"]
    {'max_depth': 2, 'max_split_features': 1}
    """
    given = document["parameters"]
    if document["estimator"] not in _SPLIT_KINDS or not isinstance(given, dict) or "splits" not in given:
        return document
    kind = given["splits"]
    if not isinstance(kind, str) or kind not in _SPLITS:
        raise ModelFileError(f"parameter 'splits' is {kind!r}, expected {', '.join(_SPLITS)}")
    others = {name: value for name, value in given.items() if name != "splits"}
    return {**document, "parameters": {**others, "max_split_features": _SPLITS[kind]}}
