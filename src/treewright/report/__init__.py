"""What people look at: a fit as plain text, or as one HTML file."""

from treewright.report.facts import About, Facts, fit_facts, labels_facts, office_totals
from treewright.report.html import facts_html
from treewright.report.labels import labels_report
from treewright.report.making import table_making
from treewright.report.new_rows import new_rows_facts
from treewright.report.text import facts_text, fit_report
from treewright.report.trees import Explanation
from treewright.report.words import STATUS_WORDS

__all__ = [
    "STATUS_WORDS",
    "About",
    "Explanation",
    "Facts",
    "facts_html",
    "facts_text",
    "fit_facts",
    "fit_report",
    "labels_facts",
    "labels_report",
    "new_rows_facts",
    "office_totals",
    "table_making",
]
