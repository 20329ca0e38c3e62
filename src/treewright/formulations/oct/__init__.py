"""OCT: the model and its repair."""

from treewright.formulations.oct.model import OCT

__all__ = ["OCT"]
