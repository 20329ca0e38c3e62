"""The nodes of a model as rows of a frame."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from treewright.core.arrays import FloatArray
from treewright.exceptions import InvalidInputError, PackageNotInstalledError
from treewright.exports.content import Content
from treewright.tree.structure import LEAF, Tree

__all__ = ["to_frame"]


def to_frame(content: Content, rules: Sequence[Sequence[str]], as_frame: str = "polars") -> Any:
    """Nodes as rows, with the conditions of the splits of each tree as text; columns: :meth:`TreeModel.to_frame`."""
    if as_frame not in ("polars", "pandas"):
        raise InvalidInputError(f"as_frame is {as_frame!r}; expected 'polars' or 'pandas'")
    columns: dict[str, list[Any]] = {}
    for k, tree in enumerate(content.trees):
        for name, column in _columns(content, tree, k, rules[k]).items():
            columns.setdefault(name, []).extend(column)
    if as_frame == "pandas":
        try:
            import pandas as pd
        except ImportError as error:
            raise PackageNotInstalledError(
                "as_frame='pandas' needs pandas, which is not installed: pip install pandas"
            ) from error
        return pd.DataFrame(columns)
    import polars as pl

    return pl.DataFrame(columns, schema_overrides=_types(content), strict=False)


def _types(content: Content) -> dict[str, Any]:
    """Types of columns that may have nothing but gaps."""
    import polars as pl

    whole = {name: pl.Int64 for name in ("tree", "node", "parent", "depth")}
    return whole | {
        "side": pl.String,
        "rule": pl.String,
        "features": pl.List(pl.String),
        "threshold": pl.Float64,
        "rows": pl.Float64,
    }


def _columns(content: Content, tree: Tree, k: int, rules: Sequence[str]) -> dict[str, list[Any]]:
    nodes = range(tree.n_nodes)
    parent, branch = tree.parent.tolist(), (~tree.is_leaf).tolist()
    side = [None if up < 0 else "left" if tree.left[up] == node else "right" for node, up in enumerate(parent)]
    numerical = [branch[node] and tree.category[node] == LEAF for node in nodes]
    columns: dict[str, list[Any]] = {"tree": [k] * tree.n_nodes} if len(content.trees) > 1 else {}
    columns |= {
        "node": list(nodes),
        "parent": [None if up < 0 else up for up in parent],
        "depth": tree.level.tolist(),
        "side": side,
        "rule": [rules[node] if branch[node] else None for node in nodes],
        "features": [[content.names[j] for j in content.needed(tree, node)] if branch[node] else [] for node in nodes],
        "threshold": [_threshold(tree, node) if numerical[node] else None for node in nodes],
        "rows": _rows(content, tree, k),
    }
    if content.classes is None:
        names = ["value"] if content.n_outputs == 1 else [f"value {output}" for output in range(content.n_outputs)]
        return columns | {name: tree.values[:, output].tolist() for output, name in enumerate(names)}
    columns["label"] = [content.classes[number] for number in content.labels[k].tolist()]
    tables = zip(content.classes, content.shares[k].T.tolist(), strict=True)
    return columns | {f"probability {label}": column for label, column in tables}


def _threshold(tree: Tree, node: int) -> float:
    """Threshold of a split: of one feature that of its own value, of several that of their sum."""
    weights = tree.weights[node][tree.weights[node] != 0.0]
    threshold = float(tree.threshold[node])
    return threshold / float(weights[0]) if len(weights) == 1 else threshold


def _rows(content: Content, tree: Tree, k: int) -> list[float | None]:
    """Training rows of nodes, where the model knows them."""
    if content.rows is None:
        return [None] * tree.n_nodes
    own: FloatArray = np.where(tree.is_leaf, content.rows[k], 0.0)
    for node in tree.branches[::-1].tolist():  # children are numbered after their parent
        own[node] = own[tree.left[node]] + own[tree.right[node]]
    return own.tolist()
