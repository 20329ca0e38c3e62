"""What is measured of a fit, and what a fit says of itself."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from sklearn.metrics import matthews_corrcoef

from harness.instance import Instance
from harness.specification import Outcome
from treewright.data.columns_checked import AnyArray

__all__ = ["accuracy", "accuracy_of", "error_percent", "fit_record", "squared_error"]


def accuracy_of(label: AnyArray, instance: Instance) -> dict[str, float]:
    """Accuracy and Matthews' correlation coefficient (MCC) of labels of the test rows, and of all rows of the fit.

    The latter are there if the test rows are the unlabelled ones of the fit, and take the known labels as they are.

    Examples
    --------
    >>> from harness import Data, partly_labelled
    >>> data = Data(np.arange(8.0)[:, None], np.array([0, 0, 0, 0, 1, 1, 1, 1]))
    >>> instance = partly_labelled(data, 0, share=0.5)
    >>> accuracy_of(instance.y_test, instance)
    {'accuracy': 1.0, 'mcc': 1.0, 'accuracy_all': 1.0, 'mcc_all': 1.0}
    """
    found = {
        "accuracy": float(np.mean(label == instance.y_test)),
        "mcc": float(matthews_corrcoef(instance.y_test, label)),
    }
    if len(label) == np.sum(~instance.known):
        everything = instance.truth.copy()
        everything[~instance.known] = label
        found["accuracy_all"] = float(np.mean(everything == instance.truth))
        found["mcc_all"] = float(matthews_corrcoef(instance.truth, everything))
    return found


def accuracy(instance: Instance, outcome: Outcome) -> Mapping[str, Any]:
    """:func:`accuracy_of` the predictions."""
    return accuracy_of(outcome.answer, instance)


def error_percent(instance: Instance, outcome: Outcome) -> Mapping[str, Any]:
    """Errors on the test rows, in per cent, and their number."""
    wrong = outcome.answer != instance.y_test
    return {"error": 100.0 * float(np.mean(wrong)), "wrong": int(np.sum(wrong)), "tested": len(wrong)}


def squared_error(instance: Instance, outcome: Outcome) -> Mapping[str, Any]:
    """Mean squared error on the test rows."""
    return {"error": float(np.mean((outcome.answer - instance.y_test) ** 2))}


_RECORD = {
    "status": "status_",
    "objective": "objective_",
    "bound": "bound_",
    "gap": "gap_",
    "fit_seconds": "solve_time_",
    "n_iter": "n_iter_",
}


def fit_record(model: Any) -> dict[str, Any]:
    """What a fitted model says of its fit: the one place of the benchmarks that reads it.

    Returns
    -------
    dict
        Those of status, objective, bound, gap, fit_seconds, n_iter that the model has; with a bound, proof_seconds:
        when it met the objective, None if it did not.
    """
    record = {name: getattr(model, attribute) for name, attribute in _RECORD.items() if hasattr(model, attribute)}
    if "bound" in record and hasattr(model, "trace_"):
        seconds, objective, bound = (model.trace_[name] for name in ("seconds", "objective", "bound"))
        proven = seconds[objective <= bound + 1e-9]
        record["proof_seconds"] = float(proven[0]) if len(proven) else None
    return record
