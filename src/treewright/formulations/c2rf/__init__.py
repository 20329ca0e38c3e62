"""C2RF: the model and the order of vote patterns."""

from treewright.formulations.c2rf.model import C2RF

__all__ = ["C2RF"]
