"""The scikit-learn face of treewright: parameters, validation, delegation, fitted attributes; no mathematics."""

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
]
