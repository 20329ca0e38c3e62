"""A model as an ONNX graph of plain operators, in double precision."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from treewright._version import __version__
from treewright.core.arrays import FloatArray, IntArray
from treewright.exceptions import InvalidInputError, PackageNotInstalledError
from treewright.exports.content import AGREED, SHARE, Content, Sum, added, refuse
from treewright.tree.structure import LEAF, Tree

__all__ = ["to_onnx"]

_OPSET, _IR = 19, 9
"""Version of the operators: the first that compares texts; and of the file."""
_ANSWERS, _OWN = ("label", "probabilities", "leaf", "value"), "treewright/"
"""Names of outputs, and how names of what is computed on the way begin."""


def to_onnx(content: Content, missing_text: str = "") -> Any:
    """Make an ONNX model; :meth:`TreeModel.to_onnx` says what goes in and comes out."""
    try:
        import onnx
    except ImportError as error:
        raise PackageNotInstalledError(
            "to_onnx needs the package 'onnx', which is not installed; install it with: pip install treewright[onnx]"
        ) from error
    if _by_name(content):
        names = list(content.names)
        taken = [n for n in names if not n or n in _ANSWERS or n.startswith(_OWN) or names.count(n) > 1]
        refuse("features that no input of ONNX can be named as", taken)
        if any(missing_text in (known or ()) for known in content.levels):
            raise InvalidInputError(f"missing_text is {missing_text!r}, which is a level; choose a text that is none")
    graph = _Graph(onnx)
    answers = _Writer(content, graph, missing_text).answers()
    model = onnx.helper.make_model(
        onnx.helper.make_graph(graph.nodes, "treewright", graph.inputs, answers, graph.constants),
        opset_imports=[onnx.helper.make_opsetid("", _OPSET)],
        producer_name="treewright",
        producer_version=__version__,
        ir_version=_IR,
    )
    onnx.checker.check_model(model)
    return model


def _by_name(content: Content) -> bool:
    """Whether each feature is an input of its own: texts and numbers cannot be in one."""
    return any(known is not None for known in content.levels)


class _Graph:
    """Nodes of a graph; each method returns the name of what it computes."""

    def __init__(self, onnx: Any) -> None:
        self.onnx = onnx
        self.nodes: list[Any] = []
        self.inputs: list[Any] = []
        self.constants: list[Any] = []

    def __call__(self, operator: str, *operands: str, name: str = "", **attributes: Any) -> str:
        name = name or f"{_OWN}{len(self.nodes)}_{operator}"
        self.nodes.append(self.onnx.helper.make_node(operator, list(operands), [name], **attributes))
        return name

    def constant(self, array: NDArray[Any] | np.float64 | Sequence[Any]) -> str:
        values, name = np.asarray(array), f"{_OWN}constant_{len(self.constants)}"
        kind = self.onnx.TensorProto
        if values.dtype.kind in "OU":
            flat = [str(text).encode() for text in values.ravel().tolist()]
            tensor = self.onnx.helper.make_tensor(name, kind.STRING, values.shape, flat)
        else:
            tensor = self.onnx.numpy_helper.from_array(np.ascontiguousarray(values), name)
        self.constants.append(tensor)
        return name

    def input(self, name: str, kind: int, width: int) -> str:
        self.inputs.append(self.onnx.helper.make_tensor_value_info(name, kind, [None, width]))
        return name

    def double(self, operand: str) -> str:
        return self("Cast", operand, to=self.onnx.TensorProto.DOUBLE)


class _Writer:
    """Writes the graph: inputs, sides of all splits, the leaf, what it says."""

    def __init__(self, content: Content, graph: _Graph, missing_text: str) -> None:
        self.content, self.graph, self.missing_text = content, graph, missing_text
        self.kinds = graph.onnx.TensorProto
        self.hot: dict[int, str] = {}
        """For each category which level rows have."""
        numbers, missing = self.read()
        self.missing = graph.double(missing)
        self.numbers = graph("Where", missing, graph.constant(np.float64(0.0)), numbers)

    def read(self) -> tuple[str, str]:
        """Rows as numbers, 0 for categories, and what is missing."""
        graph, content = self.graph, self.content
        n = len(content.names)
        if not _by_name(content):
            rows = graph.input("X", self.kinds.DOUBLE, n)
            return rows, graph("IsNaN", rows)
        zero, numbers, missing = graph.constant(np.float64(0.0)), [], []
        for name, known, j in zip(content.names, content.levels, range(n), strict=True):
            text = bool(known) and isinstance(known[0], str)  # type: ignore[index]
            column = graph.input(name, self.kinds.STRING if text else self.kinds.DOUBLE, 1)
            if text:
                gone = graph("Equal", column, graph.constant([[self.missing_text]]))
                numbers.append(graph("Mul", graph.double(gone), zero))
            else:
                gone = graph("IsNaN", column)
                numbers.append(column if known is None else graph("Mul", graph.double(gone), zero))
            if known is not None:
                levels = [list(known)] if text else np.array([known], dtype=np.float64)
                self.hot[j] = graph.double(graph("Equal", column, graph.constant(levels)))
            missing.append(gone)
        return graph("Concat", *numbers, axis=1), graph("Concat", *missing, axis=1)

    # ------------------------------------------------------------------ rows to leaves

    def place(self, tree: Tree) -> str:
        """Place of the leaf of each row among the leaves of a tree."""
        graph, branches, leaves = self.graph, tree.branches, tree.leaves
        if not len(branches):
            first = graph("Slice", self.missing, *(graph.constant(np.array([k])) for k in (0, 1, 1)))
            zeros = graph("Mul", first, graph.constant(np.float64(0.0)))
            return graph("Squeeze", graph("Cast", zeros, to=self.kinds.INT64), graph.constant(np.array([1])))
        sides = graph.double(self.sides(tree, branches))
        signs, rights = _ways(tree, branches, leaves)
        # as many sides on the way of a leaf are other ones as this is below 0
        agreeing = graph("Add", graph("MatMul", sides, graph.constant(signs)), graph.constant(rights))
        return graph("ArgMax", agreeing, axis=1, keepdims=0)

    def sides(self, tree: Tree, branches: IntArray) -> str:
        """Whether rows go left at each split."""
        graph, content = self.graph, self.content
        sums = self.sums(tree.weights[branches])
        category = tree.category[branches]
        # no sum is up to the threshold of a category
        left = graph("LessOrEqual", sums, graph.constant(np.where(category < 0, tree.threshold[branches], -1.0)[None]))
        for j in np.unique(category[category >= 0]).tolist():
            width = len(content.levels[j] or ())
            listed = np.zeros((width, len(branches)))
            table = tree.left_categories[branches, :width].T
            listed[: len(table)] = np.where(category == j, table, False)
            found = graph("MatMul", self.hot[j], graph.constant(listed))
            chosen = graph("Greater", found, graph.constant(np.float64(0.5)))
            left = graph("Or", left, chosen)
        used = (tree.weights[branches] != 0.0).T.astype(np.float64)
        used[category[category >= 0], np.flatnonzero(category >= 0)] = 1.0
        gone = graph("Greater", graph("MatMul", self.missing, graph.constant(used)), graph.constant(np.float64(0.5)))
        stays = graph("And", left, graph("Not", gone))
        return graph("Or", stays, graph("And", gone, graph.constant(tree.missing_left[branches][None])))

    def sums(self, weights: FloatArray) -> str:
        """Sums of all splits, feature by feature in the order of predictions: a product of matrices has its own."""
        graph, zero = self.graph, self.graph.constant(np.zeros((1, len(weights))))
        lanes = []
        for lane in added((weights != 0.0).any(axis=0).astype(np.float64)).lanes or ((),):
            total = zero
            for j, _ in lane:
                column = graph("Gather", self.numbers, graph.constant(np.array([j])), axis=1)
                total = graph("Add", total, graph("Mul", column, graph.constant(weights[None, :, j])))
            lanes.append(total)
        return lanes[0] if len(lanes) == 1 else graph("Add", *lanes)

    def by_leaf(self, place: str, table: NDArray[Any]) -> str:
        """Rows of a table of leaves."""
        return self.graph("Gather", self.graph.constant(table), place, axis=0)

    # ------------------------------------------------------------------ what leaves say

    def answers(self) -> list[Any]:
        """Outputs of the graph."""
        content, graph = self.content, self.graph
        info = graph.onnx.helper.make_tensor_value_info
        places = [self.place(tree) for tree in content.trees]
        first = content.trees[0]
        outputs = []
        if content.classes is None:
            graph("Identity", self.value(first, places[0]), name="value")
            outputs.append(info("value", self.kinds.DOUBLE, [None, content.n_outputs]))
        else:
            number, shares = self.alone(places[0]) if content.way == "leaf" else self.joined(places)
            labels, kind = self.labels()
            graph("Gather", graph.constant(labels), number, axis=0, name="label")
            graph("Identity", shares, name="probabilities")
            outputs += [
                info("label", kind, [None]),
                info("probabilities", self.kinds.DOUBLE, [None, content.n_outputs]),
            ]
        if len(content.trees) == 1:
            graph("Gather", graph.constant(first.leaves), places[0], axis=0, name="leaf")
            outputs.append(info("leaf", self.kinds.INT64, [None]))
        return outputs

    def labels(self) -> tuple[NDArray[Any], int]:
        """Labels as an array, and their type in the graph."""
        labels = self.content.classes
        assert labels is not None
        if all(isinstance(label, bool) for label in labels):
            return np.array(labels), self.kinds.BOOL
        if all(isinstance(label, int) for label in labels):
            return np.array(labels, dtype=np.int64), self.kinds.INT64
        if all(isinstance(label, int | float) for label in labels):
            return np.array(labels, dtype=np.float64), self.kinds.DOUBLE
        return np.array([str(label) for label in labels], dtype=object), self.kinds.STRING

    def alone(self, place: str) -> tuple[str, str]:
        leaves = self.content.trees[0].leaves
        shares = self.by_leaf(place, self.content.shares[0][leaves])
        return self.by_leaf(place, self.content.labels[0][leaves]), shares

    def value(self, tree: Tree, place: str) -> str:
        graph = self.graph
        constant = self.by_leaf(place, tree.values[tree.leaves])
        if tree.slopes is None or not tree.slopes[tree.leaves].any():
            return constant
        slopes = self.by_leaf(place, tree.slopes[tree.leaves])  # rows, outputs, features
        rows = graph("Unsqueeze", self.numbers, graph.constant(np.array([1])))
        return graph("Add", constant, self.summed(graph("Mul", slopes, rows), 2))

    def summed(self, operand: str, axis: int, keep: bool = False) -> str:
        return self.graph("ReduceSum", operand, self.graph.constant(np.array([axis])), keepdims=int(keep))

    def joined(self, places: list[str]) -> tuple[str, str]:
        """Class number and probabilities by several trees."""
        content, graph = self.content, self.graph
        found = [(self.votes if content.way == "votes" else self.score)(k, place) for k, place in enumerate(places)]
        scores, shares = ([pair[i] for pair in found] for i in (0, 1))
        if content.way == "votes":
            number = graph("ArgMax", graph("Sum", *scores), axis=1, keepdims=0)
            probabilities = graph("Div", graph("Sum", *shares), graph.constant(np.float64(len(places))))
        else:
            number = graph("ArgMax", graph("Concat", *scores, axis=1), axis=1, keepdims=0)
            own = graph("Concat", *shares, axis=1)
            probabilities = graph("Div", own, self.summed(own, 1, keep=True))
        return number, self.agreed(number, probabilities) if content.agree else probabilities

    def votes(self, k: int, place: str) -> tuple[str, str]:
        leaves = self.content.trees[k].leaves
        votes = np.eye(self.content.n_outputs)[self.content.labels[k][leaves]]
        return self.by_leaf(place, votes), self.by_leaf(place, self.content.shares[k][leaves])

    def score(self, k: int, place: str) -> tuple[str, str]:
        """Value and share of the tree of a class, in a column each."""
        content, graph, tree = self.content, self.graph, self.content.trees[k]
        leaves = tree.leaves
        pairs = [content.score(k, leaf) for leaf in leaves.tolist()]
        weights: FloatArray = np.where(tree.level[leaves] > 0, tree.weights[tree.parent[leaves]].T, 0.0).T
        less = np.array([[score.less if isinstance(score, Sum) else -score] for score, _ in pairs])
        said = np.array([[value] for _, value in pairs])
        cut = np.array([[content.cut(k, leaf)] for leaf in leaves.tolist()])
        terms = self.summed(graph("Mul", self.by_leaf(place, weights), self.numbers), 1, keep=True)
        value = graph("Sub", terms, self.by_leaf(place, less))
        told = self.by_leaf(place, said)
        against = graph("Less", graph("Mul", value, told), graph.constant(np.float64(0.0)))
        value = graph("Where", graph("And", against, self.by_leaf(place, cut)), told, value)
        value = graph("Add", value, self.by_leaf(place, SHARE * tree.shares()[leaves, k][:, None]))
        return value, self.by_leaf(place, content.shares[k][leaves, k][:, None])

    def agreed(self, number: str, shares: str) -> str:
        """Probabilities of which the predicted class has the largest."""
        graph = self.graph
        column = graph("Unsqueeze", number, graph.constant(np.array([1])))
        own = graph("GatherElements", shares, column, axis=1)
        above = graph("GreaterOrEqual", shares, own)
        count = self.summed(graph.double(above), 1, keep=True)
        inside = graph("Where", above, shares, graph.constant(np.float64(0.0)))
        mean = graph("Div", self.summed(inside, 1, keep=True), count)
        less = graph("Mul", graph("Where", above, mean, shares), graph.constant(np.float64(1.0 - AGREED)))
        best = graph("Equal", column, graph.constant(np.arange(self.content.n_outputs)[None]))
        nudged = graph("Add", less, graph("Mul", graph.double(best), graph.constant(np.float64(AGREED))))
        tied = graph("Greater", count, graph.constant(np.float64(1.5)))
        return graph("Where", tied, nudged, shares)


def _ways(tree: Tree, branches: IntArray, leaves: IntArray) -> tuple[FloatArray, FloatArray]:
    """Signs of the sides on the way to each leaf, and less how many are left ones: 0 in all where a row ends there."""
    row, parent = np.full(tree.n_nodes, LEAF), tree.parent
    row[branches] = np.arange(len(branches))
    signs = np.zeros((len(branches), len(leaves)))
    for column, leaf in enumerate(leaves.tolist()):
        node = leaf
        while parent[node] >= 0:
            up = int(parent[node])
            signs[row[up], column] = 1.0 if tree.left[up] == node else -1.0
            node = up
    return signs, -(signs > 0).sum(axis=0, dtype=np.float64)[None]
