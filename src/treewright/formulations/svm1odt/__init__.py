"""SVM1-ODT: the model and what a tree costs in it."""

from treewright.formulations.svm1odt.model import SVM1ODT

__all__ = ["SVM1ODT"]
