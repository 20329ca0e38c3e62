"""The names from inside the package that contracts need, in one place: where one moves, only this file changes."""

from treewright.budget import Budget
from treewright.estimators._optimize import optimize
from treewright.search import Incumbent
from treewright.search import s2oct as s2oct_search
from treewright.search.greedy import grow
from treewright.search.s2oct import search_s2oct

__all__ = ["Budget", "Incumbent", "grow", "optimize", "s2oct_search", "search_s2oct"]
