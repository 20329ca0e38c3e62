"""Self-training of a regression: what a model says of unlabelled rows becomes their target, until that settles."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from treewright.arrays import BoolArray, FloatArray

__all__ = ["SelfTrained", "self_train"]


class SelfTrained(NamedTuple):
    """What self-training ended with.

    Attributes
    ----------
    targets : ndarray of shape (n_rows, n_outputs)
        The known targets, and predictions of the last fit where there is none.
    n_iter : int
        Fits, the first on the known targets included.
    condition : str
        "no_change", "max_iter", or "all_labeled" where no target is missing.
    """

    targets: FloatArray
    n_iter: int
    condition: str


def self_train(
    refit: Callable[[FloatArray], None],
    predict: Callable[[], FloatArray],
    Y: FloatArray,
    missing: BoolArray,
    max_iter: int,
    tol: float,
) -> SelfTrained:
    """Fit on predictions until they change by `tol` or less.

    The change is the root of the mean squared difference of the predictions of two successive fits over the missing
    targets, in units of the standard deviation of the known ones; the largest of the outputs counts.

    Parameters
    ----------
    refit : callable
        Fits the model to targets of all rows. It has been fitted to the known ones before.
    predict : callable
        Predictions for all rows, shape (n_rows, n_outputs).
    Y : ndarray of shape (n_rows, n_outputs)
        Targets; what is missing can be anything.
    missing : ndarray of bool, shape (n_rows, n_outputs)
        Which targets are missing. Each output has a known one.
    max_iter : int
        Most fits, the first included.
    tol : float
        Change that ends it.

    Examples
    --------
    A model that is the mean of the targets has converged at once:

    >>> means = [np.array([[2.0]])]
    >>> known = np.array([[1.0], [3.0], [0.0]])
    >>> missing = np.array([[False], [False], [True]])
    >>> refit = lambda targets: means.append(targets.mean(axis=0, keepdims=True))
    >>> ended = self_train(refit, lambda: means[-1].repeat(3, axis=0), known, missing, max_iter=5, tol=1e-3)
    >>> ended.targets.ravel().tolist(), ended.n_iter, ended.condition
    ([1.0, 3.0, 2.0], 2, 'no_change')
    """
    if not missing.any():
        return SelfTrained(Y, 1, "all_labeled")
    spread = np.array([column[~gone].std() for column, gone in zip(Y.T, missing.T, strict=True)])
    n_missing = np.maximum(missing.sum(axis=0), 1)
    filled = np.where(missing, predict(), Y)
    for n_iter in range(2, max_iter + 1):
        refit(filled)
        again = np.where(missing, predict(), Y)
        change = np.sqrt(((again - filled) ** 2).sum(axis=0) / n_missing)
        filled = again
        if np.all(change <= tol * spread):
            return SelfTrained(filled, n_iter, "no_change")
    return SelfTrained(filled, max_iter, "max_iter")
