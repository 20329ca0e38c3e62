"""The scikit-learn face of treewright: parameters, validation, delegation, fitted attributes; no mathematics."""

from treewright.estimators._registry import MODELS, load_model
from treewright.estimators.oct_h import OCTHClassifier

__all__ = ["MODELS", "OCTHClassifier", "load_model"]
