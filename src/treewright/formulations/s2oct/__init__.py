"""S2OCT: the model, its printed program, its repair and its constants."""

from treewright.formulations.s2oct.model import S2OCT, default_depth, default_max_coefficient, largest_distance

__all__ = ["S2OCT", "default_max_coefficient", "default_depth", "largest_distance"]
