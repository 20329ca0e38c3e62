"""Classes as normal distributions with one covariance: discriminant analysis of weighted points, few as they may be."""

from __future__ import annotations

import numpy as np
from scipy.linalg import solve
from scipy.special import softmax
from sklearn.covariance import ledoit_wolf_shrinkage

from treewright.core.arrays import FloatArray, IntArray

__all__ = ["SharedGaussian"]

_NO_SPREAD = 1e-9
"""A feature that varies less than this within the classes is not divided by its spread."""


class SharedGaussian:
    """Linear discriminant analysis, the covariance shrunken by Ledoit and Wolf's share; scikit-learn's has no weights.

    Parameters
    ----------
    X, y, weight : ndarray
        Points, their class numbers and weights.

    Attributes
    ----------
    classes_ : ndarray of int
        Class numbers that there are.

    Examples
    --------
    >>> X, y = np.array([[0.0], [1.0], [4.0], [5.0]]), np.array([0, 0, 2, 2])
    >>> found = SharedGaussian(X, y, np.ones(4))
    >>> found.classes_.tolist(), found.predict_proba(np.array([[2.5], [4.0]])).round(2).tolist()
    ([0, 2], [[0.5, 0.5], [0.0, 1.0]])
    """

    def __init__(self, X: FloatArray, y: IntArray, weight: FloatArray) -> None:
        self.classes_, own = np.unique(y, return_inverse=True)
        share = np.bincount(own, weight) / weight.sum()
        members = np.eye(len(self.classes_))[own] * weight[:, None]
        mean = members.T @ X / members.sum(axis=0)[:, None]
        within = X - mean[own]
        spread = np.sqrt(np.average(within**2, axis=0, weights=weight))
        spread[spread < _NO_SPREAD] = 1.0
        within = within / spread
        shrinkage = float(ledoit_wolf_shrinkage(within, assume_centered=True))
        covariance = (1.0 - shrinkage) * (within * weight[:, None]).T @ within / weight.sum()
        # towards the identity, and a little of it always: points may lie in a plane
        covariance.flat[:: len(covariance) + 1] += shrinkage + _NO_SPREAD
        self._slopes = solve(covariance, (mean / spread).T, assume_a="pos") / spread[:, None]
        self._levels = np.log(share) - 0.5 * np.einsum("kj,jk->k", mean, self._slopes)

    def predict_proba(self, X: FloatArray) -> FloatArray:
        """Probabilities of the classes, a column each."""
        return np.asarray(softmax(X @ self._slopes + self._levels, axis=1))
