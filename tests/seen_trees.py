"""Fitted trees without their probabilities, for tests of how a tree was found."""

from typing import Any

from treewright import Tree


def seen(model: Any) -> Tree:
    """The tree of a classifier with what was seen in training alone."""
    tree: Tree = model.tree_
    return tree.with_leaves(tree.values, tree.labels)
