"""S2OCT: the model, its printed program and its repair."""

from treewright.formulations.s2oct.model import S2OCT

__all__ = ["S2OCT"]
