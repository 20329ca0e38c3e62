"""The fitted thing: a decision tree as arrays, its routing, measures, file format and text."""

from treewright.tree.json_files import read_json, write_json
from treewright.tree.routing import (
    averaged,
    counted,
    decision_path,
    leaf_counts,
    n_split_weights,
    passing,
    predict_labels,
    predict_values,
    relabelled,
    route,
    side,
    visited,
    weighted_error,
    without_equal_leaves,
    without_idle_splits,
)
from treewright.tree.serialize import dumps, loads, tree_from_dict, tree_to_dict
from treewright.tree.structure import Tree
from treewright.tree.telling import sure_cases, telling_digits
from treewright.tree.text import export_text
from treewright.tree.unseen import settled

__all__ = [
    "Tree",
    "averaged",
    "counted",
    "decision_path",
    "dumps",
    "export_text",
    "leaf_counts",
    "loads",
    "n_split_weights",
    "passing",
    "predict_labels",
    "predict_values",
    "read_json",
    "relabelled",
    "route",
    "settled",
    "side",
    "sure_cases",
    "telling_digits",
    "tree_from_dict",
    "tree_to_dict",
    "visited",
    "weighted_error",
    "without_equal_leaves",
    "without_idle_splits",
    "write_json",
]
