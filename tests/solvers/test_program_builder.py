from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from tests.examples import looped

from treewright.solvers.program import Cone
from treewright.solvers.program_builder import ProgramBuilder


@given(st.integers(0, 2**32 - 1))
@settings(max_examples=40, deadline=None)
def test_rows_equal_a_dense_assembly(seed):
    """Blocks of all shapes, columns named twice and zero coefficients, against a table filled by loops."""
    rng = np.random.default_rng(seed)
    builder = ProgramBuilder()
    shapes = [tuple(rng.integers(1, 4, size=rng.integers(1, 4)).tolist()) for _ in range(3)]
    blocks = [builder.add_variables(f"v{k}", shape) for k, shape in enumerate(shapes)]
    n_columns = sum(block.size for block in blocks)
    dense, lowers, uppers = np.zeros((0, n_columns)), [], []
    for k in range(rng.integers(0, 4)):
        n_rows = int(rng.integers(0, 4))
        part, terms = np.zeros((n_rows, n_columns)), []
        for _ in range(rng.integers(1, 4)):
            if rng.random() < 0.5:
                columns = rng.integers(n_columns, size=n_rows)
                coefficients = rng.integers(-2, 3, size=n_rows).astype(float)
            else:
                columns = rng.integers(n_columns, size=(n_rows, rng.integers(1, 4)))
                shape = [columns.shape, (n_rows, 1), (1, columns.shape[1]), ()][rng.integers(4)]
                coefficients = rng.integers(-2, 3, size=shape).astype(float)
            terms.append((columns, coefficients))
            wide = columns.reshape(n_rows, -1) if n_rows else np.empty((0, 1), dtype=int)
            full = coefficients[:, None] if columns.ndim == 1 else coefficients
            full = np.broadcast_to(full, wide.shape) if n_rows else wide
            for i in range(n_rows):
                for j in range(wide.shape[1]):
                    part[i, wide[i, j]] += full[i, j]
        lower, upper = rng.normal(size=n_rows), rng.normal() if rng.random() < 0.5 else np.inf
        builder.add_rows(f"r{k}", terms, lower, upper)
        dense = np.vstack([dense, part])
        lowers += lower.tolist()
        uppers += [upper] * n_rows
    program = builder.build()
    assert np.array_equal(program.matrix.toarray(), dense)
    assert program.matrix.nnz == np.count_nonzero(dense)
    assert program.matrix.has_canonical_format
    assert program.row_lower.tolist() == lowers
    assert program.row_upper.tolist() == uppers


def test_variables_broadcast_and_keep_their_shape():
    builder = ProgramBuilder()
    a = builder.add_variables("a", 2, lower=-1.0, upper=[3.0, 4.0], integer=[True, False], cost=5.0)
    b = builder.add_variables(
        "b", (2, 3), cost=[[1.0], [2.0]], upper=[7.0, 8.0, 9.0], integer=True, priority=[[1], [2]]
    )
    c = builder.add_variables("c", (), lower=-np.inf)
    d = builder.add_variables("d", 0)
    assert a.tolist() == [0, 1]
    assert b.tolist() == [[2, 3, 4], [5, 6, 7]]
    assert (c.tolist(), d.tolist()) == (8, [])
    builder.add_offset(1.5)
    builder.add_offset(2)
    program = builder.build()
    assert program.lower.tolist() == [-1, -1, 0, 0, 0, 0, 0, 0, -np.inf]
    assert program.upper.tolist() == [3, 4, 7, 8, 9, 7, 8, 9, np.inf]
    assert program.cost.tolist() == [5, 5, 1, 1, 1, 2, 2, 2, 0]
    assert program.integer.tolist() == [True, False] + [True] * 6 + [False]
    assert program.priority.tolist() == [0, 0, 1, 1, 1, 2, 2, 2, 0]
    assert program.priority.dtype == np.int64
    assert program.offset == 3.5
    assert program.n_integers == 7
    x = np.arange(9.0) * 10
    assert program.value(x, "b").tolist() == [[20, 30, 40], [50, 60, 70]]
    assert program.value(x, "c") == 80


@looped("shape", [np.int64(3), np.int32(3), 3, (3,), [3], (np.int64(3),)])
def test_shapes_may_be_numpy_numbers(shape):
    assert ProgramBuilder().add_variables("x", shape).tolist() == [0, 1, 2]


def test_names_of_rows():
    builder = ProgramBuilder()
    x = builder.add_variables("x", (2, 3))
    builder.add_rows("each", [(x, 1.0)], lower=1.0, upper=[1.0, 2.0])
    builder.add_rows("none", [(np.empty((0, 2), dtype=int), 1.0)])
    builder.add_rows("pairs", [(x[0], 1.0), (x[1], [-1.0, -2.0, -3.0])], upper=0.0)
    program = builder.build()
    assert program.rows == {"each": (0, 2), "none": (2, 2), "pairs": (2, 5)}
    assert program.matrix.toarray().tolist() == [
        [1, 1, 1, 0, 0, 0],
        [0, 0, 0, 1, 1, 1],
        [1, 0, 0, -1, 0, 0],
        [0, 1, 0, 0, -2, 0],
        [0, 0, 1, 0, 0, -3],
    ]
    assert program.row_lower.tolist() == [1, 1, -np.inf, -np.inf, -np.inf]
    assert program.row_upper.tolist() == [1, 2, 0, 0, 0]
    assert program.summary() == "5 rows, 6 columns (0 integer), 12 non-zeros, 0 cones"


def test_a_sparse_table_is_as_good_as_a_full_one():
    table = np.array([[0.0, 2.0, 0.0], [1.0, 0.0, -3.0]])
    matrices = []
    for coefficients in (table, sparse.csr_array(table), sparse.coo_array(table)):
        builder = ProgramBuilder()
        x, y = builder.add_variables("x", 3), builder.add_variables("y", 2)
        columns = x if sparse.issparse(coefficients) else np.broadcast_to(x, (2, 3))
        builder.add_rows("r", [(y, 1.0), (columns, coefficients)], upper=1.0)
        matrices.append(builder.build().matrix.toarray().tolist())
    assert matrices == [[[0, 2, 0, 1, 0], [1, 0, -3, 0, 1]]] * 3
    with pytest.raises(ValueError, match="table of shape"):
        builder.add_rows("s", [(x[:2], sparse.csr_array(table))])
    with pytest.raises(ValueError, match="not finite"):
        builder.add_rows("s", [(x, sparse.csr_array(np.where(table > 0, np.inf, 0.0)))])
    with pytest.raises(ValueError, match="columns 0 to 4 are declared"):
        builder.add_rows("s", [(x + 3, sparse.csr_array(table))])
    with pytest.raises(ValueError, match="terms of 2 and 1 rows"):
        builder.add_rows("s", [(x, sparse.csr_array(table)), (y[:1], 1.0)])


def test_entries_that_cancel_leave_nothing():
    builder = ProgramBuilder()
    x = builder.add_variables("x", 2)
    builder.add_rows("r", [(x[[0, 1]], 1.0), (x[[0, 0]], -1.0)])
    matrix = builder.build().matrix
    assert matrix.toarray().tolist() == [[0, 0], [-1, 1]]
    assert matrix.nnz == 2


def test_nothing_at_all():
    program = ProgramBuilder().build()
    assert (program.n_rows, program.n_columns, program.n_integers, program.cones) == (0, 0, 0, ())


def test_a_million_rows():
    builder = ProgramBuilder()
    x = builder.add_variables("x", (1000, 1000))
    builder.add_rows("r", [(x.ravel(), 1.0)], lower=0.0)
    assert builder.build().matrix.nnz == 10**6


def test_cones():
    builder = ProgramBuilder()
    t = builder.add_variables("t", 1)
    x = builder.add_variables("x", (2, 2))
    builder.add_cone(t[0], x)
    program = builder.build()
    assert program.cones == (Cone(0, (1, 2, 3, 4)),)
    assert program.summary().endswith("1 cones")


def test_what_was_given_may_change_afterwards():
    builder = ProgramBuilder()
    cost, upper, bound = np.zeros(2), np.ones(2), np.ones(2)
    x = builder.add_variables("x", 2, cost=cost, upper=upper)
    builder.add_rows("r", [(x, 1.0)], lower=bound)
    cost[:], upper[:], bound[:], x[:] = 9.0, 9.0, 9.0, 9
    program = builder.build()
    assert program.cost.tolist() == [0, 0]
    assert program.upper.tolist() == [1, 1]
    assert program.row_lower.tolist() == [1, 1]
    assert program.variables["x"].tolist() == [0, 1]


def test_building_twice_gives_the_same():
    builder = ProgramBuilder()
    x = builder.add_variables("x", 2)
    builder.add_rows("r", [(x, 1.0)])
    first = builder.build()
    builder.add_variables("y", 1)
    second = builder.build()
    assert (first.n_columns, second.n_columns) == (2, 3)
    assert set(first.variables) == {"x"}


BAD_ROWS = {
    "no terms": ([], {}, "'bad' has no terms"),
    "different lengths": ([([0, 1], 1.0), ([0], 1.0)], {}, "'bad' has terms of 2 and 1 rows"),
    "a scalar column": ([(0, 1.0)], {}, "columns of 0 axes"),
    "three axes": ([([[[0]]], 1.0)], {}, "columns of 3 axes"),
    "column too large": ([([0, 2], 1.0)], {}, "names columns 0 to 2; columns 0 to 1 are declared"),
    "column negative": ([([-1, 1], 1.0)], {}, "names columns -1 to 1"),
    "coefficient nan": ([([0], np.nan)], {}, "coefficients that are not finite"),
    "coefficient infinite": ([([0], [np.inf])], {}, "coefficients that are not finite"),
    "bound nan": ([([0], 1.0)], {"upper": np.nan}, "bound that is not a number"),
    "bounds too many": ([([0], 1.0)], {"upper": [1.0, 2.0]}, "broadcast"),
    "coefficients too many": ([([0, 1], [1.0, 2.0, 3.0])], {}, "broadcast"),
}


@looped("case", BAD_ROWS)
def test_bad_rows_are_refused_and_leave_no_trace(case):
    terms, bounds, message = BAD_ROWS[case]
    builder = ProgramBuilder()
    builder.add_variables("x", 2)
    with pytest.raises(ValueError, match=message):
        builder.add_rows("bad", terms, **bounds)
    assert builder.build().summary() == "0 rows, 2 columns (0 integer), 0 non-zeros, 0 cones"
    builder.add_rows("bad", [([0], 1.0)])
    assert builder.build().n_rows == 1


def test_bad_variables_are_refused_and_leave_no_trace():
    builder = ProgramBuilder()
    with pytest.raises(ValueError, match="'x' has upper that is not a number"):
        builder.add_variables("x", 2, upper=[1.0, np.nan])
    with pytest.raises(ValueError, match="broadcast"):
        builder.add_variables("x", 2, cost=[1.0, 2.0, 3.0])
    assert builder.add_variables("x", 2).tolist() == [0, 1]
    assert builder.build().cost.tolist() == [0, 0]


def test_names_are_used_once():
    builder = ProgramBuilder()
    x = builder.add_variables("x", 1)
    builder.add_rows("x", [(x, 1.0)])  # rows and variables have names of their own
    with pytest.raises(ValueError, match="variable block 'x' is declared twice"):
        builder.add_variables("x", 1)
    with pytest.raises(ValueError, match="row block 'x' is declared twice"):
        builder.add_rows("x", [(x, 1.0)])
