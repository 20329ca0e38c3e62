"""Decision trees trained by optimization when labels are few, biased or wrong."""

from __future__ import annotations

from treewright._version import __version__

TYPE_CHECKING = False  # that of typing would be imported, and a Ctrl-C meanwhile has nobody to answer it
if TYPE_CHECKING:
    from treewright.app.job import label_table
    from treewright.app.labelled_table import LabelledTable
    from treewright.estimation.accuracy import estimated_accuracy
    from treewright.estimation.validation import LabeledKFold, labeled_scorer
    from treewright.estimation.wrong_labels import find_wrong_labels
    from treewright.models.baselines.lap_svm import LapSVMClassifier
    from treewright.models.baselines.self_training import SelfTrainingRegressor
    from treewright.models.baselines.ssct import SSCTClassifier
    from treewright.models.binoct.estimator import BinOCTClassifier
    from treewright.models.c2rf.estimator import C2RFClassifier
    from treewright.models.fair.estimator import FairOCTClassifier
    from treewright.models.laptao.estimator import LapTAOClassifier, LapTAORegressor
    from treewright.models.oct.estimator import OCTClassifier
    from treewright.models.oct_h.estimator import OCTHClassifier
    from treewright.models.octsvm.estimator import OCTSVMClassifier, RESVMClassifier
    from treewright.models.registry import load_model
    from treewright.models.s2oct.estimator import S2OCTClassifier
    from treewright.models.svm1odt.estimator import SVM1ODTClassifier
    from treewright.models.svm1odt.selection.select import select
    from treewright.models.tao.estimator import TAOClassifier, TAORegressor
    from treewright.models.totals.estimator import TotalsClassifier
    from treewright.teachers.ensemble import paper_forest
    from treewright.tree import Tree

__all__ = [
    "BinOCTClassifier",
    "C2RFClassifier",
    "FairOCTClassifier",
    "LabeledKFold",
    "LabelledTable",
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
    "label_table",
    "labeled_scorer",
    "load_model",
    "paper_forest",
    "select",
]

_PLACES = {
    "BinOCTClassifier": "models.binoct.estimator",
    "C2RFClassifier": "models.c2rf.estimator",
    "FairOCTClassifier": "models.fair.estimator",
    "LabeledKFold": "estimation.validation",
    "LabelledTable": "app.labelled_table",
    "LapSVMClassifier": "models.baselines.lap_svm",
    "LapTAOClassifier": "models.laptao.estimator",
    "LapTAORegressor": "models.laptao.estimator",
    "OCTClassifier": "models.oct.estimator",
    "OCTHClassifier": "models.oct_h.estimator",
    "OCTSVMClassifier": "models.octsvm.estimator",
    "RESVMClassifier": "models.octsvm.estimator",
    "S2OCTClassifier": "models.s2oct.estimator",
    "SSCTClassifier": "models.baselines.ssct",
    "SVM1ODTClassifier": "models.svm1odt.estimator",
    "SelfTrainingRegressor": "models.baselines.self_training",
    "TAOClassifier": "models.tao.estimator",
    "TAORegressor": "models.tao.estimator",
    "TotalsClassifier": "models.totals.estimator",
    "Tree": "tree",
    "estimated_accuracy": "estimation.accuracy",
    "find_wrong_labels": "estimation.wrong_labels",
    "label_table": "app.job",
    "labeled_scorer": "estimation.validation",
    "load_model": "models.registry",
    "paper_forest": "teachers.ensemble",
    "select": "models.svm1odt.selection.select",
}
"""Where each of them is defined: all together take a second to import, of which most needs a part."""


def __getattr__(name: str) -> object:
    if name not in _PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    value = getattr(import_module(f"treewright.{_PLACES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
