"""The scikit-learn face of treewright: parameters, validation, delegation, fitted attributes; no mathematics."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from treewright.estimators.accuracy import AccuracyEstimate, estimated_accuracy
    from treewright.estimators.binoct import BinOCTClassifier
    from treewright.estimators.c2rf import C2RFClassifier
    from treewright.estimators.data_selection import select
    from treewright.estimators.fair import FairOCTClassifier
    from treewright.estimators.lap_svm import LapSVMClassifier
    from treewright.estimators.laptao import LapTAOClassifier, LapTAORegressor
    from treewright.estimators.oct import OCTClassifier
    from treewright.estimators.oct_h import OCTHClassifier
    from treewright.estimators.octsvm import OCTSVMClassifier, RESVMClassifier, SuspectLabel
    from treewright.estimators.registry import MODELS, load_model
    from treewright.estimators.s2oct import S2OCTClassifier
    from treewright.estimators.self_training import SelfTrainingRegressor
    from treewright.estimators.ssct import SSCTClassifier
    from treewright.estimators.svm1odt import SVM1ODTClassifier
    from treewright.estimators.tao import TAOClassifier, TAORegressor
    from treewright.estimators.totals import TotalsClassifier
    from treewright.estimators.validation import LabeledKFold, labeled_scorer
    from treewright.estimators.warming import warm_up
    from treewright.estimators.wrong_labels import WrongLabels, find_wrong_labels
    from treewright.training.ensemble import paper_forest

__all__ = [
    "MODELS",
    "AccuracyEstimate",
    "BinOCTClassifier",
    "C2RFClassifier",
    "FairOCTClassifier",
    "LabeledKFold",
    "LapSVMClassifier",
    "LapTAOClassifier",
    "LapTAORegressor",
    "OCTClassifier",
    "OCTHClassifier",
    "OCTSVMClassifier",
    "RESVMClassifier",
    "S2OCTClassifier",
    "SSCTClassifier",
    "SVM1ODTClassifier",
    "SelfTrainingRegressor",
    "SuspectLabel",
    "TAOClassifier",
    "TAORegressor",
    "TotalsClassifier",
    "WrongLabels",
    "estimated_accuracy",
    "find_wrong_labels",
    "labeled_scorer",
    "load_model",
    "paper_forest",
    "select",
    "warm_up",
]

_PLACES = {
    "AccuracyEstimate": "estimators.accuracy",
    "BinOCTClassifier": "estimators.binoct",
    "C2RFClassifier": "estimators.c2rf",
    "FairOCTClassifier": "estimators.fair",
    "LabeledKFold": "estimators.validation",
    "LapSVMClassifier": "estimators.lap_svm",
    "LapTAOClassifier": "estimators.laptao",
    "LapTAORegressor": "estimators.laptao",
    "MODELS": "estimators.registry",
    "OCTClassifier": "estimators.oct",
    "OCTHClassifier": "estimators.oct_h",
    "OCTSVMClassifier": "estimators.octsvm",
    "RESVMClassifier": "estimators.octsvm",
    "S2OCTClassifier": "estimators.s2oct",
    "SSCTClassifier": "estimators.ssct",
    "SVM1ODTClassifier": "estimators.svm1odt",
    "SelfTrainingRegressor": "estimators.self_training",
    "SuspectLabel": "estimators.octsvm",
    "TAOClassifier": "estimators.tao",
    "TAORegressor": "estimators.tao",
    "TotalsClassifier": "estimators.totals",
    "WrongLabels": "estimators.wrong_labels",
    "estimated_accuracy": "estimators.accuracy",
    "find_wrong_labels": "estimators.wrong_labels",
    "labeled_scorer": "estimators.validation",
    "load_model": "estimators.registry",
    "paper_forest": "training.ensemble",
    "select": "estimators.data_selection",
    "warm_up": "estimators.warming",
}
"""Where each of them is defined: all together take a second to import, of which most needs a part."""


def __getattr__(name: str) -> object:
    if name not in _PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"treewright.{_PLACES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
