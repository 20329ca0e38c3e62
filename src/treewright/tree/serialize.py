"""Trees as versioned JSON, and JSON files that are read with suspicion.

A tree is one object, its nodes a list in node order, so that the children of a node come after it::

    {"format": "treewright-tree", "version": 1, "task": "classification", "n_features": 2, "n_outputs": 2,
     "nodes": [{"left": 1, "right": 2, "features": [1], "weights": [1.0], "threshold": 0.5,
                "missing_left": false, "values": [3.0, 4.0], "label": 1},
               {"values": [3.0, 0.0], "label": 0},
               {"values": [0.0, 4.0], "label": 1}]}

A categorical split has ``"category": j, "left_categories": [codes]`` in place of features, weights and
threshold, and a tree with such splits has ``"n_categories"``, the width of its table of codes. Regression
nodes have no label. Nodes of a fitted classification tree have ``"probabilities"`` beside the class weights seen in
training, ``"values"``: all of them or none. Numbers are written so that they are read back bit by bit. Nothing is ever
executed.

Regression trees with linear leaves are of version 2, which is version 1 with two more keys in every node: the features
that have a slope, and for each output the slopes of these features::

    {"values": [1.0, 2.0], "slope_features": [0, 3], "slopes": [[0.5, -1.0], [0.0, 2.5]]}

Trees with constant leaves are of version 1.
"""

from __future__ import annotations

import json
import math
from typing import Any, NoReturn

import numpy as np

from treewright.exceptions import ModelFileError
from treewright.tree.json_files import parse_json, shown
from treewright.tree.structure import LEAF, SUM, Tree

__all__ = [
    "FORMAT",
    "LINEAR_VERSION",
    "MAX_ENTRIES",
    "MAX_NODES",
    "VERSION",
    "dumps",
    "loads",
    "tree_from_dict",
    "tree_to_dict",
]

FORMAT = "treewright-tree"
#: Version of trees with constant leaves.
VERSION = 1
#: Version of trees with linear leaves.
LINEAR_VERSION = 2
#: Most nodes a file may have.
MAX_NODES = 1_000_000
#: Most entries that a table of nodes x features, outputs or categories may have.
MAX_ENTRIES = 200_000_000

_TASKS = ("classification", "regression")
_HEAD_KEYS = ("format", "version", "task", "n_features", "n_outputs", "nodes")
_LEAF_KEYS = ("values",)
_SPLIT_KEYS = ("left", "right", "features", "weights", "threshold", "missing_left", "values")
_SLOPE_KEYS = ("slope_features", "slopes")
_CATEGORY_KEYS = ("left", "right", "category", "left_categories", "missing_left", "values")


# ---------------------------------------------------------------------- trees


def tree_to_dict(tree: Tree) -> dict[str, Any]:
    """Describe a tree by plain lists, numbers and strings.

    Parameters
    ----------
    tree : Tree
        The tree.

    Returns
    -------
    dict
        What :func:`tree_from_dict` reads; see the module for the format.

    Raises
    ------
    ModelFileError
        If the tree is larger than what may be read back.

    Examples
    --------
    >>> tree = Tree.stump(weights=[0.0, 1.0], threshold=0.5, values=[[3.0, 0.0], [0.0, 4.0]])
    >>> data = tree_to_dict(tree)
    >>> data["task"], data["n_features"], data["nodes"][1]
    ('classification', 2, {'values': [3.0, 0.0], 'label': 0})
    """
    n_categories = int(tree.left_categories.shape[1])
    linear = tree.slopes is not None
    _check_size("", tree.n_nodes, tree.n_features, tree.n_outputs, n_categories, linear)
    data: dict[str, Any] = {
        "format": FORMAT,
        "version": LINEAR_VERSION if linear else VERSION,
        "task": "classification" if tree.is_classifier else "regression",
        "n_features": tree.n_features,
        "n_outputs": tree.n_outputs,
    }
    if n_categories:
        data["n_categories"] = n_categories
    left, right, category = tree.left.tolist(), tree.right.tolist(), tree.category.tolist()
    threshold, missing = tree.threshold.tolist(), tree.missing_left.tolist()
    values = tree.values.tolist()
    labels = None if tree.labels is None else tree.labels.tolist()
    probabilities = None if tree.probabilities is None else tree.probabilities.tolist()
    row, feature = np.nonzero(tree.weights)
    weight, features = tree.weights[row, feature].tolist(), feature.tolist()
    starts = np.searchsorted(row, np.arange(tree.n_nodes + 1)).tolist()
    nodes = []
    for i in range(tree.n_nodes):
        node: dict[str, Any] = {}
        if left[i] != LEAF:
            node |= {"left": left[i], "right": right[i]}
            if category[i] >= 0:
                codes = np.flatnonzero(tree.left_categories[i]).tolist()
                node |= {"category": category[i], "left_categories": codes}
            else:
                used = slice(starts[i], starts[i + 1])
                node |= {"features": features[used], "weights": weight[used], "threshold": threshold[i]}
            node["missing_left"] = missing[i]
        node["values"] = values[i]
        if labels is not None:
            node["label"] = labels[i]
        if probabilities is not None:
            node["probabilities"] = probabilities[i]
        if tree.slopes is not None:
            sloping = np.flatnonzero(np.any(tree.slopes[i] != 0.0, axis=0))
            node |= {"slope_features": sloping.tolist(), "slopes": tree.slopes[i][:, sloping].tolist()}
        nodes.append(node)
    data["nodes"] = nodes
    return data


def tree_from_dict(data: object, where: str = "") -> Tree:
    """Make a tree from its description, which is trusted in nothing.

    Parameters
    ----------
    data : object
        What was read from a file.
    where : str, default=""
        Where in the file the tree stands, put before the place in error texts.

    Returns
    -------
    Tree
        The tree.

    Raises
    ------
    ModelFileError
        If anything is missing, unknown, of a wrong type, out of range or too large. The text says where.

    Examples
    --------
    >>> tree = Tree.stump(weights=[0.0, 1.0], threshold=0.5, values=[[3.0, 0.0], [0.0, 4.0]])
    >>> data = tree_to_dict(tree)
    >>> tree_from_dict(data) == tree
    True
    >>> data["nodes"][0]["weights"] = ["1.0"]
    >>> tree_from_dict(data, where="tree")
    Traceback (most recent call last):
    ...
    treewright.exceptions.ModelFileError: tree.nodes[0].weights[0]: expected a number, got '1.0'
    """
    return _TreeReader(where).read(data)


def dumps(tree: Tree) -> str:
    """Write a tree as JSON text.

    Examples
    --------
    >>> tree = Tree.leaf([2.5], n_features=3, classification=False)
    >>> print(dumps(tree))
    {"format": "treewright-tree", "version": 1, "task": "regression", "n_features": 3, "n_outputs": 1,
     "nodes": [{"values": [2.5]}]}
    """
    return json.dumps(tree_to_dict(tree), allow_nan=False)


def loads(text: str | bytes) -> Tree:
    """Read a tree from JSON text, or raise :class:`ModelFileError`.

    Examples
    --------
    >>> tree = Tree.leaf([2.5], n_features=3, classification=False)
    >>> loads(dumps(tree)) == tree
    True
    """
    return tree_from_dict(parse_json(text))


class _TreeReader:
    """Reads one tree; knows where it is, to say so when something is wrong."""

    def __init__(self, where: str) -> None:
        self._where = where
        self._n_features = self._n_outputs = self._n_categories = 0
        self._classification, self._linear, self._likely = True, False, False

    def read(self, data: object) -> Tree:
        nodes = self._read_head(data)
        n = len(nodes)
        children = np.full((n, 2), LEAF, dtype=np.int64)
        threshold, missing_left = np.zeros(n), np.zeros(n, dtype=bool)
        category = np.full(n, LEAF, dtype=np.int64)
        labels = np.zeros(n, dtype=np.int64)
        values: list[list[float]] = []
        likely: list[list[float]] = []
        entries: list[tuple[int, list[int], list[float]]] = []
        codes: list[tuple[int, list[int]]] = []
        slopes = np.zeros((n, self._n_outputs, self._n_features)) if self._linear else None
        parent = [LEAF] * n
        for i, node in enumerate(nodes):
            kind = self._check_node_keys(i, node)
            values.append(self._numbers(i, "values", node["values"], self._n_outputs, "outputs"))
            if self._classification:
                labels[i] = self._integer(i, "label", node["label"], 0, self._n_outputs)
                least = min(values[i])
                if least < 0:
                    place = f"nodes[{i}].values[{values[i].index(least)}]"
                    self._fail(place, f"expected a class weight from 0 on, got {shown(least)}")
                if self._likely:
                    likely.append(self._probabilities(i, node["probabilities"]))
            if slopes is not None:
                self._read_slopes(i, node, slopes[i])
            if kind is _LEAF_KEYS:
                continue
            for side, key in enumerate(("left", "right")):
                child = self._integer(i, key, node[key], i + 1, n)
                if parent[child] != LEAF:
                    self._fail(f"nodes[{i}].{key}", f"node {child} already is a child of node {parent[child]}")
                parent[child] = i
                children[i, side] = child
            missing_left[i] = self._boolean(i, "missing_left", node["missing_left"])
            if kind is _CATEGORY_KEYS:
                category[i] = self._integer(i, "category", node["category"], 0, self._n_features)
                listed = self._integers(i, "left_categories", node["left_categories"], self._n_categories)
                codes.append((i, listed))
            else:
                features = self._integers(i, "features", node["features"], self._n_features)
                weights = self._numbers(i, "weights", node["weights"], len(features), "features")
                threshold[i] = self._number(i, "threshold", node["threshold"])
                entries.append((i, features, weights))
        for i in range(1, n):
            if parent[i] == LEAF:
                self._fail(f"nodes[{i}]", "no node has this one as its child")
        table = np.zeros((n, self._n_features))
        for i, features, weights in entries:
            table[i, features] = weights
        left_categories = np.zeros((n, self._n_categories), dtype=bool)
        for i, listed in codes:
            left_categories[i, listed] = True
        try:
            return Tree(
                left=children[:, 0],
                right=children[:, 1],
                weights=table,
                threshold=threshold,
                values=np.array(values, dtype=np.float64),
                labels=labels if self._classification else None,
                category=category,
                left_categories=left_categories,
                missing_left=missing_left,
                slopes=slopes,
                probabilities=np.array(likely, dtype=np.float64) if likely else None,
            )
        except ValueError as error:  # not expected: all is checked above
            raise ModelFileError(f"{self._place('nodes')}: {error}") from error

    def _probabilities(self, i: int, value: object) -> list[float]:
        """How likely the classes of a node are."""
        found = self._numbers(i, "probabilities", value, self._n_outputs, "outputs")
        for k, number in enumerate(found):
            if not 0 <= number <= 1:
                self._fail(f"nodes[{i}].probabilities[{k}]", f"expected a number from 0 to 1, got {shown(number)}")
        if abs(sum(found) - 1.0) > SUM:
            self._fail(f"nodes[{i}].probabilities", f"expected a sum of 1, got {shown(sum(found))}")
        return found

    def _read_slopes(self, i: int, node: dict[str, Any], slopes: np.ndarray) -> None:
        """Fill the table of outputs and features of a node with linear leaves."""
        features = self._integers(i, "slope_features", node["slope_features"], self._n_features)
        rows = node["slopes"]
        if type(rows) is not list:
            self._fail(f"nodes[{i}].slopes", f"expected a list, got {shown(rows)}")
        if len(rows) != self._n_outputs:
            self._fail(f"nodes[{i}].slopes", f"{len(rows)} lists for {self._n_outputs} outputs")
        for output, row in enumerate(rows):
            slopes[output, features] = self._numbers(i, f"slopes[{output}]", row, len(features), "features")

    def _read_head(self, data: object) -> list[Any]:
        if not isinstance(data, dict):
            self._fail("", f"expected an object, got {shown(data)}")
        if data.get("format") != FORMAT:
            self._fail("format", f"expected {FORMAT!r}, got {shown(data.get('format'))}")
        version = data.get("version")
        if type(version) is not int:
            self._fail("version", f"expected an integer, got {shown(version)}")
        if version not in (VERSION, LINEAR_VERSION):
            known = f"versions {VERSION} and {LINEAR_VERSION}"
            self._fail("version", f"the file has version {shown(version)}, this library reads {known}")
        self._check_keys("", data, _HEAD_KEYS, optional=("n_categories",))
        if data["task"] not in _TASKS:
            self._fail("task", f"expected 'classification' or 'regression', got {shown(data['task'])}")
        self._classification, self._linear = data["task"] == "classification", version == LINEAR_VERSION
        if self._classification and self._linear:
            self._fail("task", f"expected 'regression': trees of version {LINEAR_VERSION} have linear leaves")
        nodes = data["nodes"]
        if not isinstance(nodes, list):
            self._fail("nodes", f"expected a list, got {shown(nodes)}")
        if not nodes:
            self._fail("nodes", "a tree needs at least one node")
        self._likely = self._classification and isinstance(nodes[0], dict) and "probabilities" in nodes[0]
        self._n_features = self._size("n_features", data["n_features"], 0)
        self._n_outputs = self._size("n_outputs", data["n_outputs"], 1)
        self._n_categories = self._size("n_categories", data.get("n_categories", 0), 0)
        _check_size(self._where, len(nodes), self._n_features, self._n_outputs, self._n_categories, self._linear)
        return nodes

    def _check_node_keys(self, i: int, node: object) -> tuple[str, ...]:
        """Kind of a node: the tuple of keys it must have besides its label."""
        if not isinstance(node, dict):
            self._fail(f"nodes[{i}]", f"expected an object, got {shown(node)}")
        kind: tuple[str, ...]
        if "category" in node:
            kind = _CATEGORY_KEYS
        elif "left" in node or "right" in node:
            kind = _SPLIT_KEYS
        else:
            kind = _LEAF_KEYS
        more: tuple[str, ...] = ("label",) if self._classification else _SLOPE_KEYS if self._linear else ()
        more += ("probabilities",) if self._likely else ()
        self._check_keys(f"nodes[{i}]", node, (*kind, *more))
        return kind

    def _check_keys(
        self, place: str, found: dict[Any, Any], keys: tuple[str, ...], optional: tuple[str, ...] = ()
    ) -> None:
        for key in keys:
            if key not in found:
                self._fail(place, f"key {key!r} is missing")
        for key in found:
            if key not in keys and key not in optional:
                self._fail(place, f"unknown key {shown(key)}")

    # Each of these returns the value it was given, once it is what it must be.

    def _size(self, key: str, value: object, least: int) -> int:
        if type(value) is not int:
            self._fail(key, f"expected an integer, got {shown(value)}")
        if value < least:
            self._fail(key, f"expected at least {least}, got {shown(value)}")
        return value

    def _integer(self, i: int, key: str, value: object, start: int, stop: int) -> int:
        if type(value) is int and start <= value < stop:
            return value
        self._fail_integer(f"nodes[{i}].{key}", value, start, stop)

    def _integers(self, i: int, key: str, value: object, stop: int) -> list[int]:
        place = f"nodes[{i}].{key}"
        if type(value) is not list:
            self._fail(place, f"expected a list, got {shown(value)}")
        for position, item in enumerate(value):
            if type(item) is not int or not 0 <= item < stop:
                self._fail_integer(f"{place}[{position}]", item, 0, stop)
        if len(set(value)) != len(value):
            seen: set[int] = set()
            for position, item in enumerate(value):
                if item in seen:
                    self._fail(f"{place}[{position}]", f"{item} is listed twice")
                seen.add(item)
        return value

    def _number(self, i: int, key: str, value: object) -> float:
        return self._finite(f"nodes[{i}].{key}", value)

    def _numbers(self, i: int, key: str, value: object, length: int, what: str) -> list[float]:
        place = f"nodes[{i}].{key}"
        if type(value) is not list:
            self._fail(place, f"expected a list, got {shown(value)}")
        if len(value) != length:
            self._fail(place, f"{len(value)} numbers for {length} {what}")
        isfinite = math.isfinite
        if all(type(item) is float and isfinite(item) for item in value):
            return value
        return [self._finite(f"{place}[{position}]", item) for position, item in enumerate(value)]

    def _finite(self, place: str, value: object) -> float:
        if type(value) is not float and type(value) is not int:
            self._fail(place, f"expected a number, got {shown(value)}")
        try:
            number = float(value)
        except OverflowError:
            number = math.inf
        if not math.isfinite(number):
            self._fail(place, f"expected a finite number, got {shown(value)}")
        return number

    def _boolean(self, i: int, key: str, value: object) -> bool:
        if type(value) is not bool:
            self._fail(f"nodes[{i}].{key}", f"expected true or false, got {shown(value)}")
        return value

    def _fail_integer(self, place: str, value: object, start: int, stop: int) -> NoReturn:
        if type(value) is not int:
            self._fail(place, f"expected an integer, got {shown(value)}")
        if start >= stop:
            self._fail(place, f"no value is possible here, got {shown(value)}")
        self._fail(place, f"expected {start} to {stop - 1}, got {shown(value)}")

    def _place(self, place: str) -> str:
        return ".".join(part for part in (self._where, place) if part) or "tree"

    def _fail(self, place: str, message: str) -> NoReturn:
        raise ModelFileError(f"{self._place(place)}: {message}")


def _check_size(
    where: str, n_nodes: int, n_features: int, n_outputs: int, n_categories: int, linear: bool = False
) -> None:
    """Refuse what is too large, before any memory is asked for."""
    prefix = f"{where}." if where else ""
    if n_nodes > MAX_NODES:
        raise ModelFileError(f"{prefix}nodes: {n_nodes} nodes are too many, at most {MAX_NODES} are allowed")
    sizes = {"n_features": n_features, "n_outputs": n_outputs, "n_categories": n_categories}
    if linear:
        sizes["slopes"] = n_features * n_outputs
    for key, size in sizes.items():
        if n_nodes * size > MAX_ENTRIES:
            raise ModelFileError(
                f"{prefix}{key}: {n_nodes} nodes x {shown(size)} is too large, "
                f"at most {MAX_ENTRIES} entries are allowed"
            )
