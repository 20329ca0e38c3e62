"""The public estimators in quick settings, and their kinds: tests of what holds for all of them take them from here."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from inspect import signature
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression, Ridge

import treewright

QUICK: dict[str, dict[str, Any]] = {
    "OCTClassifier": {"max_depth": 1},
    "OCTHClassifier": {"max_depth": 1, "time_limit": 1.0},
    "BinOCTClassifier": {"max_depth": 1, "time_limit": 1.0},
    "FairOCTClassifier": {"max_depth": 1, "time_limit": 1.0},
    "SVM1ODTClassifier": {"max_depth": 1, "time_limit": 0.2},
    "OCTSVMClassifier": {"max_depth": 1, "time_limit": 0.2, "n_estimators": 5},
    "RESVMClassifier": {"time_limit": 0.2},
    "TAOClassifier": {"max_depth": 2},
    "TAORegressor": {"max_depth": 2},
    "S2OCTClassifier": {"max_depth": 1, "time_limit": 1.0},
    "C2RFClassifier": {"time_limit": 1.0},
    "TotalsClassifier": {"estimator": LogisticRegression()},
    "LapTAOClassifier": {"max_depth": 2, "max_iter": 2},
    "LapTAORegressor": {"max_depth": 2, "max_iter": 2},
    "SSCTClassifier": {"max_depth": 2},
    "LapSVMClassifier": {},
    "SelfTrainingRegressor": {"estimator": Ridge()},
}
"""All of them, each with what makes a fit of a few rows quick: small trees, a limit where there is branch and bound."""

_PARAMETERS = {name: set(signature(getattr(treewright, name)).parameters) for name in QUICK}

SOLVED = tuple(name for name in QUICK if "solver" in _PARAMETERS[name])
"""Those with a mathematical program."""
REGRESSORS = tuple(name for name in QUICK if name.endswith("Regressor"))
CLASSIFIERS = tuple(name for name in QUICK if name not in REGRESSORS)
MIXED = tuple(name for name in QUICK if "categorical_features" in _PARAMETERS[name])
SEMI_SUPERVISED = tuple(name for name in QUICK if "unlabeled" in _PARAMETERS[name] and name != "TAOClassifier")
"""Those that take rows without a label unless told otherwise; TAO does if it is given a teacher."""
SUPERVISED = tuple(name for name in QUICK if name not in SEMI_SUPERVISED)
WITH_TOTALS = tuple(name for name in QUICK if "totals" in signature(getattr(treewright, name).fit).parameters)


def quick(name: str, **settings: Any) -> Any:
    """An unfitted estimator; settings that it has no parameter for are left out."""
    taken = {key: value for key, value in settings.items() if key in _PARAMETERS[name]}
    return clone(getattr(treewright, name)(**(QUICK[name] | taken)))


def all_quick(names: Iterable[str] = QUICK, but: Collection[str] = (), **settings: Any) -> list[Any]:
    """One of each."""
    return [quick(name, **settings) for name in names if name not in but]


def targets(name: str, classes: np.ndarray, labelled: np.ndarray) -> np.ndarray:
    """What a fit takes for y: the classes, as numbers for a regressor, of `labelled` rows alone if it takes gaps."""
    y = classes.astype(float) if name in REGRESSORS else classes
    if name in SUPERVISED:
        return y
    return np.where(labelled, y, np.nan if name in REGRESSORS else -1)
