"""The scikit-learn face of treewright: parameters, validation, delegation, fitted attributes; no mathematics."""

from treewright.estimators._registry import MODELS, load_model
from treewright.estimators.oct_h import OCTHClassifier
from treewright.estimators.s2oct import S2OCTClassifier
from treewright.estimators.totals import TotalsClassifier

__all__ = ["MODELS", "OCTHClassifier", "S2OCTClassifier", "TotalsClassifier", "load_model"]
