"""Decision trees trained by optimization when labels are few, biased or wrong."""

from __future__ import annotations

from treewright._version import __version__

TYPE_CHECKING = False  # that of typing would be imported, and a Ctrl-C meanwhile has nobody to answer it
if TYPE_CHECKING:
    from treewright.estimators import (
        BinOCTClassifier,
        C2RFClassifier,
        FairOCTClassifier,
        LabeledKFold,
        LapSVMClassifier,
        LapTAOClassifier,
        LapTAORegressor,
        OCTClassifier,
        OCTHClassifier,
        OCTSVMClassifier,
        RESVMClassifier,
        S2OCTClassifier,
        SelfTrainingRegressor,
        SSCTClassifier,
        SVM1ODTClassifier,
        TAOClassifier,
        TAORegressor,
        TotalsClassifier,
        estimated_accuracy,
        find_wrong_labels,
        labeled_scorer,
        load_model,
        paper_forest,
        select,
        warm_up,
    )
    from treewright.tree import Tree

__all__ = [
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
    "TAOClassifier",
    "TAORegressor",
    "TotalsClassifier",
    "Tree",
    "__version__",
    "estimated_accuracy",
    "find_wrong_labels",
    "labeled_scorer",
    "load_model",
    "paper_forest",
    "select",
    "warm_up",
]


def __getattr__(name: str) -> object:
    # Estimators take a second or two to import: only when asked for, so that the command line can guard it.
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from treewright import estimators, tree

    value = getattr(tree if name == "Tree" else estimators, name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
