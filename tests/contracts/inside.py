"""The names from inside the package that contracts need, in one place: where one moves, only this file changes."""

from treewright.budget import Budget
from treewright.data import PointTotals
from treewright.search import Incumbent
from treewright.search.grow.oblique import GapPoints, grow
from treewright.search.s2oct import structure
from treewright.search.s2oct.attempts import search_s2oct
from treewright.search.teachers.teacher import Teacher
from treewright.training.optimize import optimize

__all__ = [
    "Budget",
    "GapPoints",
    "Incumbent",
    "PointTotals",
    "Teacher",
    "grow",
    "optimize",
    "search_s2oct",
    "structure",
]
