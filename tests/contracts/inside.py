"""The names from inside the package that contracts need, in one place: where one moves, only this file changes."""

from treewright.core.budget import Budget
from treewright.data import PointTotals
from treewright.engine.gap_trees import grown_gap_tree
from treewright.models.s2oct.search import structure
from treewright.models.s2oct.search.attempts import search_s2oct
from treewright.optimize.course import optimize
from treewright.optimize.incumbent import Incumbent
from treewright.splits.gap_splits import GapPoints
from treewright.teachers.teacher import Teacher

__all__ = [
    "Budget",
    "GapPoints",
    "Incumbent",
    "PointTotals",
    "Teacher",
    "grown_gap_tree",
    "optimize",
    "search_s2oct",
    "structure",
]
