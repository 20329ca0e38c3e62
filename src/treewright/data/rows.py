"""Tables that are handed through to somebody else's estimator: frames and sparse matrices, untouched.

All that is asked of them is which rows are equal, so that nothing depends on the order of a file.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.utils import _safe_indexing

from treewright.core.arrays import IntArray
from treewright.data.problem import Problem
from treewright.data.reduction import Merge, Sample, labelled_sample, reduced_sample
from treewright.exceptions import InvalidInputError, TreewrightError

__all__ = [
    "errors_told",
    "fitting_rows",
    "is_frame",
    "row_numbers",
    "taken_rows",
    "unlabelled_rows",
    "with_short_indices",
]

_SINGLE = float(np.finfo(np.float32).max)


def is_frame(X: Any) -> bool:
    """Whether a table given as X is a pandas or polars frame."""
    return hasattr(X, "columns") and hasattr(X, "dtypes")


def taken_rows(X: Any, rows: Any) -> Any:
    """Some rows of an array, frame or sparse matrix given as X, by number, mask or slice; all of them are the table."""
    if isinstance(rows, np.ndarray) and rows.dtype == bool:
        if rows.all():
            return X
        rows = np.flatnonzero(rows)
    return _safe_indexing(X, rows)


@contextmanager
def errors_told(estimator: Any, X: Any) -> Iterator[None]:
    """Tell errors of somebody else's estimator on given rows as ours, with its name and, if one lies far out, a column.

    Examples
    --------
    >>> from sklearn.ensemble import RandomForestClassifier
    >>> forest, X = RandomForestClassifier(), np.array([[0.0, 1e300], [1.0, 2.0]])
    >>> with errors_told(forest, X):
    ...     forest.fit(X, [0, 1])
    Traceback (most recent call last):
    ...
    treewright.exceptions.InvalidInputError: RandomForestClassifier cannot take these rows: Input X contains ...
    """
    try:
        yield
    except TreewrightError:
        raise
    except (ValueError, ArithmeticError) as error:
        kind = type(estimator).__name__
        raise InvalidInputError(f"{kind} cannot take these rows: {str(error).rstrip('. ')}{_far_out(X)}") from error


def _far_out(X: Any) -> str:
    """Words for the column that has the largest number, where single precision does not have it; "" without any."""
    if sparse.issparse(X):
        return ""
    try:
        largest = np.abs(np.asarray(X, dtype=np.float64)).max(axis=0, initial=0.0)
    except (TypeError, ValueError):  # text among the columns
        return ""
    j = int(largest.argmax())
    if largest[j] <= _SINGLE:
        return ""
    return f"; column {X.columns[j] if is_frame(X) else j} has numbers as large as {largest[j]:.3g}: divide it"


def row_numbers(X: Any) -> IntArray:
    """Numbers of given rows, equal for equal rows, in an order that depends on their content alone.

    Examples
    --------
    >>> number = row_numbers(sparse.csr_array([[0, 2], [1, 0], [0, 2]]))
    >>> bool(number[0] == number[2] != number[1])
    True
    """
    if is_frame(X):
        key = _keys_of_frame(X)
    elif sparse.issparse(X):
        key = _keys_of_sparse(sparse.csr_array(X))
    elif X.dtype.kind not in "fiub":
        key = np.array([_hashed(repr(tuple(row))) for row in X.tolist()], dtype=np.uint64)
    else:
        numbers = X if X.dtype in (np.float64, np.float32) else X.astype(np.float64)
        return reduced_sample(Sample.of(numbers), Merge(labels=False)).place
    return np.unique(key, return_inverse=True)[1].reshape(-1)


def _hashed(text: str) -> int:
    """A number of 64 bits that is the same in every process."""
    return int.from_bytes(hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "big")


def _keys_of_frame(X: Any) -> np.ndarray:
    if hasattr(X, "hash_rows"):  # polars
        return np.asarray(X.hash_rows(seed=0).to_numpy(), dtype=np.uint64)
    pandas: Any = import_module("pandas")  # which X is from
    return np.asarray(pandas.util.hash_pandas_object(X, index=False).to_numpy(), dtype=np.uint64)


def _keys_of_sparse(X: sparse.csr_array) -> np.ndarray:
    """Sums over the entries of a row of what column and value are hashed to."""
    X = X.copy()
    X.sum_duplicates()
    X.eliminate_zeros()
    value = (X.data.astype(np.float64) + 0.0).view(np.uint64)
    mixed = (value ^ (X.indices.astype(np.uint64) * np.uint64(0xBF58476D1CE4E5B9))) * np.uint64(0x9E3779B97F4A7C15)
    mixed = (mixed ^ (mixed >> np.uint64(29))) * np.uint64(0x94D049BB133111EB)
    total = np.concatenate([np.zeros(1, dtype=np.uint64), np.cumsum(mixed, dtype=np.uint64)])
    return total[X.indptr[1:]] - total[X.indptr[:-1]]


def unlabelled_rows(problem: Problem) -> Any:
    """The unlabelled rows, as they were given where they are handed through."""
    return problem.X_unlabelled if problem.table is None else taken_rows(problem.table, problem.unlabelled)


def fitting_rows(problem: Problem, merged: bool, rng: np.random.Generator) -> Sample:
    """Labelled rows of positive weight in random order, see :func:`labelled_sample`; tables are not merged."""
    if problem.table is None:
        return labelled_sample(problem, merged, rng)
    y, weight = problem.y_labelled, problem.weight_labelled
    number = row_numbers(taken_rows(problem.table, problem.labelled))
    order = np.lexsort((weight, y, number))
    order = order[weight[order] > 0]
    order = order[rng.permutation(len(order))]
    rows = taken_rows(problem.table, np.flatnonzero(problem.labelled)[order])
    return Sample(rows, y[order], weight[order], np.ones(len(order)))


def with_short_indices(X: Any) -> Any:
    """Sparse rows whose places have 32 bits wherever these suffice, as trees of scikit-learn want them.

    Examples
    --------
    >>> X = sparse.csr_array(np.eye(2))
    >>> X.indices, X.indptr = X.indices.astype(np.int64), X.indptr.astype(np.int64)
    >>> with_short_indices(X).indices.dtype
    dtype('int32')
    """
    most = max(X.nnz, *X.shape)
    if X.indices.dtype == np.int32 == X.indptr.dtype or most > np.iinfo(np.int32).max:
        return X
    return type(X)((X.data, X.indices.astype(np.int32), X.indptr.astype(np.int32)), shape=X.shape)
