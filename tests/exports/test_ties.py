"""Rows whose sum is the threshold of a split to the last digit go as predictions have them."""

import sqlite3

import duckdb
import numpy as np
import onnxruntime
import pytest

from treewright.exports.content import Content
from treewright.exports.onnx_graph import to_onnx
from treewright.exports.python_source import to_python
from treewright.exports.sql import to_sql
from treewright.tree import Tree, route

N_ROWS, N_FEATURES = 40, 19


def tied(row, weights):
    """A stump whose threshold is the sum of a row as predictions add it, or the number below."""
    sums = [np.einsum("ij,ij->i", row[None], weights[None])[0]]
    return [Tree.stump(weights, t, [[3.0, 1.0], [1.0, 3.0]]) for t in (sums[0], np.nextafter(sums[0], -np.inf))]


@pytest.fixture(scope="module")
def cases():
    """Rows and stumps. Products are exact, so that sums do not depend on how a processor rounds these."""
    rng = np.random.default_rng(0)
    rows = rng.integers(-(2**20), 2**20, (N_ROWS, N_FEATURES)) * 2.0 ** rng.integers(-40, 3, (N_ROWS, N_FEATURES))
    weights = rng.integers(-(2**20), 2**20, (N_ROWS, N_FEATURES)) * (rng.random((N_ROWS, N_FEATURES)) < 0.8)
    return [(row, tree) for row, w in zip(rows, weights.astype(float), strict=True) for tree in tied(row, w)]


def content(tree):
    names = [f"x{j}" for j in range(N_FEATURES)]
    return Content([tree], names, True, [None] * N_FEATURES, True, [0, 1], [tree.labels], [tree.likely()])


def test_other_orders_of_sums_would_be_wrong(cases):
    sides = [bool(sum((row * tree.weights[0]).tolist()) <= tree.threshold[0]) for row, tree in cases]
    assert sides != [route(tree, row[None])[0] == 1 for row, tree in cases]


def test_python_has_the_side_of_ties(cases):
    for row, tree in cases:
        space = {}
        exec(to_python(content(tree)), space)
        assert space["predict"](row.tolist())[0] == tree.labels[route(tree, row[None])[0]]


@pytest.mark.parametrize("dialect", ["duckdb", "sqlite"])
def test_databases_have_the_side_of_ties(cases, dialect):
    base = duckdb.connect() if dialect == "duckdb" else sqlite3.connect(":memory:")
    base.execute(f"CREATE TABLE row ({', '.join(f'x{j} DOUBLE' for j in range(N_FEATURES))})")
    for row, tree in cases:
        base.execute("DELETE FROM row")
        base.execute(f"INSERT INTO row VALUES ({', '.join('?' * N_FEATURES)})", row.tolist())
        assert base.execute(to_sql(content(tree), "row", dialect)).fetchone()[-1] == route(tree, row[None])[0]


def test_onnx_has_the_side_of_ties(cases):
    for row, tree in cases:
        session = onnxruntime.InferenceSession(to_onnx(content(tree)).SerializeToString())
        assert session.run(["leaf"], {"X": row[None]})[0][0] == route(tree, row[None])[0]


@pytest.mark.parametrize("to_left", [False, True])
@pytest.mark.parametrize("dialect", ["duckdb", "sqlite"])
def test_databases_read_deep_trees(dialect, to_left):
    depth, rng = 20, np.random.default_rng(0)
    ahead, aside = np.full((2, 2 * depth + 1), -1)
    parents = np.append(0, np.arange(2, 2 * depth, 2))
    ahead[parents], aside[parents] = np.arange(2, 2 * depth + 1, 2), np.arange(1, 2 * depth, 2)
    weights = np.where(ahead[:, None] >= 0, rng.normal(size=(2 * depth + 1, N_FEATURES)), 0.0)
    left, right = (ahead, aside) if to_left else (aside, ahead)
    tree = Tree(left, right, weights, np.where(to_left, 6.0, -6.0) * (ahead >= 0), np.eye(2)[ahead % 2], ahead % 2)
    rows = rng.normal(size=(300, N_FEATURES))
    base = duckdb.connect() if dialect == "duckdb" else sqlite3.connect(":memory:")
    base.execute(f"CREATE TABLE many (id INTEGER, {', '.join(f'x{j} DOUBLE' for j in range(N_FEATURES))})")
    base.executemany(
        f"INSERT INTO many VALUES (?{', ?' * N_FEATURES})", [[i, *row] for i, row in enumerate(rows.tolist())]
    )
    found = base.execute(to_sql(content(tree), "many", dialect, keep=["id"]) + " ORDER BY id").fetchall()
    expected = route(tree, rows)
    assert [row[-1] for row in found] == expected.tolist() and tree.level[expected].max() == depth
