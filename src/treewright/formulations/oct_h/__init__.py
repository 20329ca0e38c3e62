"""OCT-H: the model and its repair."""

from treewright.formulations.oct_h.model import OCTH

__all__ = ["OCTH"]
