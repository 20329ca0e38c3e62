"""Decision trees trained by optimization when labels are few, biased or wrong."""

from treewright._version import __version__
from treewright.estimators import OCTHClassifier, load_model
from treewright.tree import Tree

__all__ = ["OCTHClassifier", "Tree", "__version__", "load_model"]
