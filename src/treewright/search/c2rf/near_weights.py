"""Which of many optimal weightings: near to those that mimic the cut of the plain ensemble at the totals."""

from __future__ import annotations

import numpy as np
from scipy import sparse
from scipy.optimize import minimize
from scipy.special import expit

from treewright.arrays import FloatArray, IntArray
from treewright.budget import Budget
from treewright.formulations import C2RF
from treewright.search.c2rf.vote_cut import vote_prices, vote_shares
from treewright.solvers.base import Status
from treewright.solvers.linear import LinearProgram
from treewright.splits.joining import solve_joining

__all__ = ["cut_without_threshold", "mimicking_weights", "nearest_weights"]

_ROWS = 400
"""Patterns that join the program at a time, those nearest to a tie first."""
_ROUNDS = 30
"""Most programs that are solved."""
_PIECES = np.concatenate([0.1 * 1.6 ** np.arange(14), [np.inf]])
"""Widths of the pieces on which the square of a distance is linear."""
_SLOPES = np.concatenate([[0.0], np.cumsum(_PIECES[:-1])]) + 0.5 * np.append(_PIECES[:-1], _PIECES[-2])
_SECONDS = 30.0
"""Most seconds of a program."""
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
    program = _Program(wished, model.least, model.most)
    found = solve_joining(
        program.solve,
        lambda some: program.join(signed[some]),
        lambda x: x[len(wished)] / model.most * (1 + _SLACK / 2) - signed @ x[: len(wished)],
        np.zeros(len(signed), dtype=bool),
        np.argsort(signed @ wished, kind="stable")[:_ROWS],
        at_a_time=_ROWS,
        rounds=_ROUNDS,
        budget=budget,
    )
    if found.solution is None or not found.complete:
        return weights
    beta, largest = found.solution[: len(wished)], float(found.solution[len(wished)])
    near = model.repair(np.asarray(beta * (model.most / largest)))
    return near if model.objective(near) <= model.objective(weights) else weights


class _Program:
    """Columns are the weights, the largest of them, and the pieces of their distances; patterns join as rows."""

    def __init__(self, wished: FloatArray, least: float, most: float) -> None:
        t, n_pieces = len(wished), len(_PIECES)
        self.t, self.margin = t, (1 + _SLACK) / most
        one, column, distance = (
            sparse.eye_array(t),
            np.ones((t, 1)),
            sparse.kron(sparse.eye_array(t), np.ones(n_pieces)),
        )
        cost = np.concatenate([np.zeros(t + 1), np.tile(_SLOPES, t)])
        self.program = LinearProgram(cost, 0.0, np.concatenate([np.full(t + 1, np.inf), np.tile(_PIECES, t)]))
        self.program.add_rows(sparse.hstack([one, -column]), -np.inf, 0.0)
        self.program.add_rows(sparse.hstack([one, -least / most * column]), 0.0, np.inf)
        self.program.add_rows(sparse.hstack([one, 0.0 * column, -distance]), -np.inf, wished)
        self.program.add_rows(sparse.hstack([one, 0.0 * column, distance]), wished, np.inf)
        self.program.add_rows(np.ones((1, t)), wished.sum(), wished.sum())

    def join(self, signed: FloatArray) -> None:
        """Let patterns join, each with a margin."""
        rows = np.hstack([signed, np.full((len(signed), 1), -self.margin)])
        self.program.add_rows(rows, 0.0, np.inf)

    def solve(self, seconds: float) -> FloatArray | None:
        """Weights and the largest of them, None where there are none in time."""
        solved = self.program.solve(min(_SECONDS, seconds))
        return solved.x if solved.status is Status.OPTIMAL else None
