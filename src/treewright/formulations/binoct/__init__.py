"""BinOCT: the model."""

from treewright.formulations.binoct.model import BinOCT

__all__ = ["BinOCT"]
