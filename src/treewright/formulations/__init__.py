"""One file a model: data to program, solution to tree, tree to start."""

from treewright.formulations.base import Formulation
from treewright.formulations.oct_h import OCTH

__all__ = ["OCTH", "Formulation"]
