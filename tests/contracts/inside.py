"""The names from inside the package that contracts need, in one place: where one moves, only this file changes."""

from treewright.budget import Budget
from treewright.estimators._optimize import optimize
from treewright.search import Incumbent

__all__ = ["Budget", "Incumbent", "optimize"]
