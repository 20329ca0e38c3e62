r"""Weighted ridge regression with a free intercept, in systems of the smaller of points and features.

With weighted means removed and rows multiplied by the root of their weight, :math:`Z` (points) and :math:`T` (targets),
the slopes are

.. math:: (Z^\top Z + \rho I)^{-1} Z^\top T = Z^\top (Z Z^\top + \rho I)^{-1} T .

Z is never made as a whole: dense points are read in blocks, sparse ones stay sparse and are centred in the products.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy import linalg, sparse
from scipy.sparse.linalg import LinearOperator, lsqr

from treewright.core.arrays import FloatArray, IntArray

__all__ = ["CentredRows", "row_blocks"]

_CELLS = 2_000_000
"""Cells of a block of dense rows."""

_DIRECT = 4000
"""Largest system that is factorized; larger ones are solved by conjugate gradients."""


def row_blocks(length: int, width: int) -> Iterator[slice]:
    """For linear leaves: slices of 0, ..., length - 1 such that tables of so many rows and `width` columns are small.

    Examples
    --------
    >>> list(row_blocks(5, 1_000_000))
    [slice(0, 2, None), slice(2, 4, None), slice(4, 5, None)]
    """
    size = max(1, _CELLS // max(1, width))
    return (slice(first, min(first + size, length)) for first in range(0, length, size))


class CentredRows:
    """Some rows of a table, less their weighted mean, times the root of their weight: the matrix Z.

    Parameters
    ----------
    X : ndarray or csr_array of shape (n_points, n_features)
        Points.
    rows : ndarray of int
        Which of them.
    weight : ndarray
        Weights of these, positive.

    Examples
    --------
    >>> X = np.array([[0.0], [1.0], [2.0]])
    >>> rows = CentredRows(X, np.arange(3), np.ones(3))
    >>> rows.ridge(np.array([[-3.0], [0.0], [3.0]]), ridge=1.0).round(6).tolist()  # 6 / (2 + 1)
    [[2.0]]
    """

    def __init__(self, X: Any, rows: IntArray, weight: FloatArray) -> None:
        self.X, self.rows, self.root = X, rows, np.sqrt(weight)
        self.mass = float(weight.sum())
        self.n, self.p = len(rows), int(X.shape[1])
        self.thin = None
        if sparse.issparse(X):
            self.thin = sparse.diags_array(self.root) @ X[rows].astype(np.float64)
            self.mean = np.asarray(self.thin.T @ self.root) / self.mass
        else:
            total = np.zeros(self.p)
            for part in row_blocks(self.n, self.p):
                total += weight[part] @ X[rows[part]]
            self.mean = total / self.mass

    def ridge(self, targets: FloatArray, ridge: float) -> FloatArray:
        """Slopes, shape (n_features, n_outputs), for centred targets that are multiplied by the root of the weight."""
        if min(self.n, self.p) > _DIRECT:
            whole = LinearOperator((self.n, self.p), matvec=self._forward, rmatvec=self._back, dtype=np.float64)
            columns = [lsqr(whole, t, damp=np.sqrt(ridge), atol=1e-10, btol=1e-10, iter_lim=300)[0] for t in targets.T]
            return np.column_stack(columns)
        if self.n < self.p:
            return self._back(_solve(self._kernel(), ridge, targets))
        return _solve(self._gram(), ridge, self._back(targets))

    def _block(self, part: slice) -> FloatArray:
        return np.asarray((self.X[self.rows[part]] - self.mean) * self.root[part, None])

    def _gram(self) -> FloatArray:
        """Products of features."""
        if self.thin is not None:
            return np.asarray((self.thin.T @ self.thin).toarray() - self.mass * np.outer(self.mean, self.mean))
        gram = np.zeros((self.p, self.p))
        for part in row_blocks(self.n, self.p):
            block = self._block(part)
            gram += block.T @ block
        return gram

    def _kernel(self) -> FloatArray:
        """Products of points."""
        if self.thin is not None:
            cross = np.outer(self.thin @ self.mean, self.root)
            own = float(self.mean @ self.mean) * np.outer(self.root, self.root)
            return np.asarray((self.thin @ self.thin.T).toarray() - cross - cross.T + own)
        kernel = np.zeros((self.n, self.n))
        for part in row_blocks(self.p, self.n):
            block = (self.X[self.rows, part] - self.mean[part]) * self.root[:, None]
            kernel += block @ block.T
        return kernel

    def _forward(self, slopes: FloatArray) -> FloatArray:
        """Z times slopes."""
        if self.thin is not None:
            return np.asarray(self.thin @ slopes - self.root * (self.mean @ slopes))
        return np.concatenate([self._block(part) @ slopes for part in row_blocks(self.n, self.p)])

    def _back(self, targets: FloatArray) -> FloatArray:
        """Transpose of Z times targets."""
        if self.thin is not None:
            return np.asarray(self.thin.T @ targets - np.multiply.outer(self.mean, self.root @ targets))
        found = np.zeros((self.p, *targets.shape[1:]))
        for part in row_blocks(self.n, self.p):
            found += self._block(part).T @ targets[part]
        return found


def _solve(products: FloatArray, ridge: float, right: FloatArray) -> FloatArray:
    """Solve for products plus a multiple of the identity."""
    products.flat[:: len(products) + 1] += ridge
    try:
        return np.asarray(linalg.cho_solve(linalg.cho_factor(products, check_finite=False), right, check_finite=False))
    except linalg.LinAlgError:  # a ridge that rounding swallows
        return np.asarray(np.linalg.lstsq(products, right)[0])
