"""One file a model: data to program, solution to tree, tree to start."""

from treewright.formulations.base import Formulation
from treewright.formulations.oct_h import OCTH
from treewright.formulations.s2oct import S2OCT

__all__ = ["OCTH", "S2OCT", "Formulation"]
