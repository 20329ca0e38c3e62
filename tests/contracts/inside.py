"""The names from inside the package that contracts need, in one place: where one moves, only this file changes."""

from treewright.budget import Budget
from treewright.search import Incumbent
from treewright.training.optimize import optimize

__all__ = ["Budget", "Incumbent", "optimize"]
