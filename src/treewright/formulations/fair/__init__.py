"""Fair trees: the model and what it measures of groups."""

from treewright.formulations.fair.labels import discrimination
from treewright.formulations.fair.model import FairOCT

__all__ = ["FairOCT", "discrimination"]
