r"""Laplacian support vector machine: large margins on the labelled points, smooth along a graph of all points.

With values :math:`f = K \alpha` on the points, the Laplacian L of a graph and a bias b,

.. math::
    \min_{\alpha, b} \; \sum_i c_i \max(0, 1 - y_i (f_i + b)) / \sum_i c_i
    + \rho \, \alpha^\top K \alpha + \gamma \, f^\top L f

(Belkin, Niyogi and Sindhwani 2006, who write :math:`\gamma_A` for :math:`\rho` and :math:`\gamma_I / n^2` for
:math:`\gamma`). The dual has a variable for each labelled point only: that of a support vector machine with the kernel
matrix :math:`J K M^{-1} J^\top`, where
:math:`M = 2 \rho I + 2 \gamma L K` and J picks the labelled points; then :math:`\alpha = M^{-1} J^\top Y \beta`.
"""

from __future__ import annotations

import warnings
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import lu_factor, lu_solve
from scipy.spatial.distance import pdist
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics.pairwise import linear_kernel, rbf_kernel
from sklearn.svm import SVC

from treewright.core.arrays import FloatArray, IntArray
from treewright.models.baselines.box_program import solve_box_qp

__all__ = ["LapSVMResult", "kernel_matrix", "kernel_width", "solve_lap_svm"]

_TOLERANCE, _STEPS = 1e-7, 500_000
"""Violation of optimality at which the dual ends, its variables being of the size 1, and most steps of libsvm."""

_INTERIOR_LABELS = 5000
"""Most labels of a dual that libsvm may leave to the interior point method."""

_MEDIAN_POINTS = 2000
"""Points whose distances have the median that a kernel may be as wide as."""


class LapSVMResult(NamedTuple):
    """LapSVM machines, one a column of signs."""

    alpha: FloatArray
    """Coefficients of the kernel at all points; shape (n_points, n_machines)."""
    intercept: FloatArray
    """Biases; shape (n_machines,)."""
    objective: FloatArray
    """Values of the objective; shape (n_machines,)."""
    converged: bool
    """Whether all duals were solved to tolerance."""


def kernel_width(X: FloatArray, width: float | str) -> float:
    """Factor of the squared distance in the Gaussian kernel of a LapSVM.

    Parameters
    ----------
    X : ndarray of shape (n_points, n_features)
        Distinct points.
    width : float, "scale" or "median"
        The factor itself, 1 / (number of features times variance of all values), or 1 / (2 m^2) with the median m of
        the distances of points (of 2000 of them, evenly picked, where there are more).

    Examples
    --------
    >>> kernel_width(np.array([[0.0], [1.0], [3.0]]), "median")  # distances 1, 2, 3
    0.125
    """
    if not isinstance(width, str):
        return float(width)
    if width == "scale":
        variance = float(X.var())
        return 1.0 / (X.shape[1] * variance) if variance > 0 else 1.0
    some = X[np.linspace(0, len(X) - 1, min(len(X), _MEDIAN_POINTS)).astype(np.int64)]
    middle = float(np.median(pdist(some))) if len(some) > 1 else 0.0
    return 1.0 / (2.0 * middle**2) if middle > 0 else 1.0


def kernel_matrix(A: FloatArray, B: FloatArray, kernel: str, width: float) -> FloatArray:
    """LapSVM kernel of each point of A with each of B.

    Parameters
    ----------
    A, B : ndarray of shape (n_points, n_features)
        Points.
    kernel : {"rbf", "linear"}
        Gaussian, or scalar product.
    width : float
        Factor of the squared distance in the Gaussian.
    """
    return np.asarray(linear_kernel(A, B) if kernel == "linear" else rbf_kernel(A, B, gamma=width))


def solve_lap_svm(
    K: FloatArray,
    L: Any,
    at: IntArray,
    signs: FloatArray,
    weight: FloatArray,
    ridge: float,
    gamma: float,
) -> LapSVMResult:
    """Solve a LapSVM machine for each column of signs.

    Parameters
    ----------
    K : ndarray of shape (n_points, n_points)
        Kernel matrix.
    L : sparse array of shape (n_points, n_points)
        Laplacian.
    at : ndarray of int, shape (n_labels,)
        Point of each label; a point may have several.
    signs : ndarray of shape (n_labels, n_machines)
        1 or -1 for each label. A machine with one sign only is constant.
    weight : ndarray of shape (n_labels,)
        Weights of the labels, positive.
    ridge : float
        Price of the norm, positive.
    gamma : float
        Price of the roughness along the graph.

    Examples
    --------
    A single label on each end of a chain of points:

    >>> from scipy import sparse
    >>> x = np.arange(6.0)[:, None]
    >>> W = sparse.diags_array([np.ones(5), np.ones(5)], offsets=[1, -1])
    >>> L = sparse.csr_array(sparse.diags_array(W.sum(axis=1)) - W)
    >>> K = kernel_matrix(x, x, "rbf", 1.0)
    >>> result = solve_lap_svm(K, L, np.array([0, 5]), np.array([[-1.0], [1.0]]), np.ones(2), 0.01, 0.1)
    >>> np.sign(K @ result.alpha + result.intercept).ravel().tolist()
    [-1.0, -1.0, -1.0, 1.0, 1.0, 1.0]
    """
    places, label_at = np.unique(at, return_inverse=True)
    spread = _expansion(K, L, places, ridge, gamma)  # M^-1 J'
    gram = K[places] @ spread
    gram = ((gram + gram.T) / 2)[np.ix_(label_at, label_at)]
    # Weights of the mean 1 and as many times smaller a kernel make the box of the dual about [0, 1].
    n_labels = len(at)
    share = weight / weight.mean()
    coefficients = np.zeros((n_labels, signs.shape[1]))
    intercept = np.zeros(signs.shape[1])
    converged = True
    for k, sign in enumerate(signs.T):
        if np.all(sign == sign[0]):
            intercept[k] = sign[0]
            continue
        coefficients[:, k], intercept[k], solved = _dual(gram / n_labels, sign, share)
        converged &= solved
    coefficients /= n_labels
    summed = np.zeros((len(places), signs.shape[1]))
    np.add.at(summed, label_at, coefficients)
    alpha = spread @ summed
    values = K @ alpha
    loss = share @ np.maximum(0.0, 1.0 - signs * (values[at] + intercept)) / n_labels
    norm = np.einsum("ik,ik->k", alpha, values)
    rough = np.einsum("ik,ik->k", values, L @ values)
    return LapSVMResult(alpha, intercept, np.asarray(loss + ridge * norm + gamma * rough), converged)


def _dual(gram: FloatArray, sign: FloatArray, upper: FloatArray) -> tuple[FloatArray, float, bool]:
    """Signed variables of the dual, the bias, and whether it is solved to tolerance."""
    machine = SVC(kernel="precomputed", C=1.0, tol=_TOLERANCE, max_iter=_STEPS)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        machine.fit(gram, sign, sample_weight=upper)
    if machine.fit_status_ == 0 or len(sign) > _INTERIOR_LABELS:
        signed = np.zeros(len(sign))
        signed[machine.support_] = machine.dual_coef_[0]
        return signed, float(machine.intercept_[0]), machine.fit_status_ == 0
    solution = solve_box_qp(gram * np.outer(sign, sign), sign, upper, tolerance=_TOLERANCE / 100)
    return sign * solution.x, solution.multiplier, solution.converged


def _expansion(K: FloatArray, L: Any, places: IntArray, ridge: float, gamma: float) -> FloatArray:
    """Columns `places` of the inverse of 2 ridge I + 2 gamma L K."""
    picked = np.zeros((len(K), len(places)))
    picked[places, np.arange(len(places))] = 1.0
    if gamma == 0:
        return picked / (2.0 * ridge)
    # Divided by 2 ridge: eigenvalues, which are real, are 1 or more.
    matrix = np.asarray(L @ K) * (gamma / ridge)
    matrix[np.diag_indices_from(matrix)] += 1.0
    solved = lu_solve(lu_factor(matrix, overwrite_a=True, check_finite=False), picked, overwrite_b=True)
    return np.asarray(solved) / (2.0 * ridge)
