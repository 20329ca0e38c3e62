"""Which of many optimal weightings: near to those that mimic the cut of the plain ensemble at the totals."""

from __future__ import annotations

import numpy as np
from scipy import sparse
from scipy.optimize import linprog, minimize
from scipy.special import expit

from treewright.arrays import FloatArray, IntArray
from treewright.budget import Budget
from treewright.formulations import C2RF
from treewright.search.c2rf.vote_cut import vote_prices, vote_shares

__all__ = ["cut_without_threshold", "mimicking_weights", "nearest_weights"]

_ROWS = 400
"""Patterns that join the program at a time, those nearest to a tie first."""
_ROUNDS = 30
"""Most programs that are solved."""
_PIECES = np.concatenate([0.1 * 1.6 ** np.arange(14), [np.inf]])
"""Widths of the pieces on which the square of a distance is linear."""
_SLOPES = np.concatenate([[0.0], np.cumsum(_PIECES[:-1])]) + 0.5 * np.append(_PIECES[:-1], _PIECES[-2])
_SLACK = 1e-6
"""Margins are asked for a little wider, so that a solver's tolerance never brings them below 1."""


def cut_without_threshold(model: C2RF, wished: FloatArray) -> FloatArray:
    """Weights that come near to the labels which the wished ones give with a threshold, cut at the totals.

    Parameters
    ----------
    model : C2RF
        The model.
    wished : ndarray of shape (n_members,)
        Weights of the cut, on any scale.

    Examples
    --------
    >>> from treewright.data import PointTotals
    >>> votes = np.array([[1, 1, 1], [1, 1, -1], [-1, -1, -1]])
    >>> model = C2RF(votes, PointTotals(np.ones((3, 1)), low=[[2, 1]], high=[[2, 1]]))
    >>> w = cut_without_threshold(model, np.ones(3))
    >>> bool(w[2] > w[0] + w[1])
    True
    """
    numbers = (model.votes > 0).astype(np.int64)
    prices = vote_prices(numbers, model.totals, wished)
    scores = np.log(vote_shares(numbers, wished, 2))
    # A pattern of several groups is labelled for its largest.
    positive = (scores + prices[model.totals.largest_group]).argmax(axis=1) == 1
    return mimicking_weights(model.votes, model.totals.rows, positive, wished, model.least, model.most)


def mimicking_weights(
    votes: IntArray, size: IntArray, positive: np.ndarray, wished: FloatArray, least: float, most: float
) -> FloatArray:
    r"""Weights without threshold whose labels come near to given ones, such as those of a cut.

    .. math:: \min \sum_i s_i \log(1 + \exp(-4 \sigma_i \beta^\top r_i / \sqrt t)),\; l / u \le \beta_j \le 1

    from the wished weights on: a convex problem in as many variables as members.

    Parameters
    ----------
    votes : ndarray of shape (n_patterns, n_members)
        Entries -1 and 1.
    size : ndarray of shape (n_patterns,)
        Rows that the patterns stand for.
    positive : ndarray of bool
        The labels to come near to.
    wished : ndarray of shape (n_members,)
        Where to begin.
    least, most : float
        Bounds of the weights.

    Examples
    --------
    >>> votes = np.array([[1, -1, -1], [1, 1, -1], [-1, 1, 1]])
    >>> w = mimicking_weights(votes, np.ones(3), np.array([True, True, False]), np.ones(3), 1.0, 100.0)
    >>> (votes @ w > 0).tolist()
    [True, True, False]
    """
    signed = votes * np.where(positive, 4.0, -4.0)[:, None] / np.sqrt(votes.shape[1])
    share = size / size.sum()

    def loss(beta: FloatArray) -> tuple[float, FloatArray]:
        margin = signed @ beta
        return float(share @ np.logaddexp(0.0, -margin)), np.asarray(-(share * expit(-margin)) @ signed)

    start = np.clip(wished / wished.max(), least / most, 1.0)
    found = minimize(loss, start, jac=True, method="L-BFGS-B", bounds=[(least / most, 1.0)] * len(start))
    return np.asarray(most * np.clip(found.x, least / most, 1.0))


def nearest_weights(model: C2RF, weights: FloatArray, wished: FloatArray, budget: Budget) -> FloatArray:
    r"""Weights with the signs of `weights` on all patterns, as near to the wished ones as that allows.

    .. math:: \min\; \sum_j (\beta_j - w_j)^2 \quad\text{s.t.}\quad
              \sum_j \beta_j = \sum_j w_j,\; \sigma_i \beta^\top r_i \ge m / u,\; (l / u)\, m \le \beta_j \le m

    and :math:`\alpha = (u / m)\, \beta`: only ratios of weights matter, and on the scale on which the largest is u the
    margins are at least 1. The square is approximated by pieces, so that this is a linear program. Patterns join it
    when its solution misses them.

    Parameters
    ----------
    model : C2RF
        The model.
    weights : ndarray of shape (n_members,)
        Feasible weights.
    wished : ndarray of shape (n_members,)
        Weights to be near to, on any scale.
    budget : Budget
        When it ends, `weights` are returned as they are.

    Returns
    -------
    ndarray of shape (n_members,)
        Feasible weights of the same objective.

    Examples
    --------
    >>> from treewright.data import PointTotals
    >>> votes = np.array([[1, 1, -1], [1, -1, -1], [-1, 1, 1]])
    >>> model = C2RF(votes, PointTotals(np.ones((3, 1)), low=[[1, 2]], high=[[1, 2]]))
    >>> near = nearest_weights(model, np.array([90.0, 3.0, 80.0]), np.ones(3), Budget(5.0))
    >>> (votes @ near > 0).tolist(), bool(near.max() / near.min() < 3)
    ([True, True, False], True)
    """
    if not len(model.votes):
        return weights
    wished = wished / wished.mean()
    sign = np.where(model.votes @ weights > 0, 1.0, -1.0)
    signed = np.unique(model.votes * sign[:, None], axis=0).astype(np.float64)
    active = np.argsort(signed @ wished, kind="stable")[:_ROWS]
    for _ in range(_ROUNDS):
        beta, largest = _program(signed[active], wished, model, budget)
        if beta is None or budget.over:
            return weights
        missing = np.flatnonzero(signed @ beta < largest / model.most * (1 + _SLACK / 2))
        missing = np.setdiff1d(missing, active)
        if not len(missing):
            found = model.repair(np.asarray(beta * (model.most / largest)))
            return found if model.objective(found) <= model.objective(weights) else weights
        active = np.concatenate([active, missing[np.argsort(signed[missing] @ beta)][:_ROWS]])
    return weights


def _program(signed: FloatArray, wished: FloatArray, model: C2RF, budget: Budget) -> tuple[FloatArray | None, float]:
    """Solve for the weights; columns are the weights, the pieces of their distances, and the largest weight."""
    t, n_pieces = len(wished), len(_PIECES)
    one, column, none = sparse.eye_array(t), np.ones((t, 1)), sparse.csr_array((t, t * n_pieces))
    distance = sparse.kron(one, np.ones((1, n_pieces)))
    margin = np.full((len(signed), 1), (1 + _SLACK) / model.most)
    rows = sparse.block_array(
        [
            [sparse.csr_array(-signed), None, sparse.csr_array(margin)],
            [one, none, sparse.csr_array(-column)],
            [-one, none, sparse.csr_array(model.least / model.most * column)],
            [one, -distance, None],
            [-one, -distance, None],
        ],
        format="csr",
    )
    solved = linprog(
        np.concatenate([np.zeros(t), np.tile(_SLOPES, t), [0.0]]),
        A_ub=rows,
        b_ub=np.concatenate([np.zeros(len(signed) + 2 * t), wished, -wished]),
        A_eq=np.concatenate([np.ones(t), np.zeros(t * n_pieces + 1)])[None, :],
        b_eq=[wished.sum()],
        bounds=np.column_stack(
            [np.zeros(t * n_pieces + t + 1), np.concatenate([np.full(t, np.inf), np.tile(_PIECES, t), [np.inf]])]
        ),
        method="highs",
        options={"time_limit": min(30.0, max(0.05, budget.remaining))},
    )
    if solved.x is None or solved.status != 0:
        return None, 1.0
    return np.asarray(solved.x[:t]), float(solved.x[-1])
