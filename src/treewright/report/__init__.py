"""What people look at: a fit as plain text."""

from treewright.report.labels import Explanation, labels_report
from treewright.report.text import STATUS_WORDS, fit_report

__all__ = ["STATUS_WORDS", "Explanation", "fit_report", "labels_report"]
