r"""The scales of splits whose directions and places are given.

A split with unit normal whose points have the signed distances :math:`d_i = y_i (a^\top x_i - \tau)` costs
:math:`g(\kappa) = \sum_i w_i \varphi(\kappa d_i)` at the scale :math:`\kappa`. It is piecewise linear: with
:math:`r = c_2 / c_1`, a point on its own side pays :math:`c_1 [1 - \kappa d]^+`; one at :math:`-u`, on the other side,
pays :math:`c_1 (1 + \kappa u)` until it is relabelled, and then, if r < 2, :math:`c_2 + c_1 [1 - \kappa u]^+`. So its
values at all breakpoints are one sort and two sums. Splits are tied together by the price of the longest normal.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from treewright.core.arrays import FloatArray

__all__ = ["ScalePrice", "ScaleCost", "best_scales"]


@dataclass(frozen=True)
class ScaleCost:
    """Loss of an OCTSVM split as a function of its scale.

    Attributes
    ----------
    at : ndarray of shape (n,)
        Breakpoints, rising from 0.
    cost : ndarray of shape (n,)
        Loss there.
    slope : float
        Slope beyond the last of them.

    Examples
    --------
    A point at distance 1/2 on its own side, one as far on the other, relabelling costs as much as a unit of error:

    >>> cost = ScaleCost.of(np.array([0.5, -0.5]), np.ones(2), c1=1.0, c2=1.0)
    >>> cost(np.array([0.0, 1.0, 2.0, 9.0])).tolist()  # at 1 the second point is relabelled
    [2.0, 2.0, 1.0, 1.0]
    """

    at: FloatArray
    cost: FloatArray
    slope: float

    @classmethod
    def of(cls, distance: FloatArray, weight: FloatArray, c1: float, c2: float) -> ScaleCost:
        """Loss of a split whose points have these signed distances at scale 1."""
        own, other = distance > 0, distance < 0
        d, u = distance[own], -distance[other]
        steep_d, steep_u = c1 * weight[own] * d, c1 * weight[other] * u
        ratio = c2 / c1
        if ratio < 2:
            at = [1.0 / d, ratio / 2 / u, 1.0 / u]
            turn = [steep_d, -2 * steep_u, steep_u]
        elif np.isfinite(ratio):
            at, turn = [1.0 / d, (ratio - 1) / u], [steep_d, -steep_u]
        else:
            at, turn = [1.0 / d], [steep_d]
        place = np.concatenate([[0.0], *at])
        order = np.argsort(place, kind="stable")
        place = place[order]
        slope = float(steep_u.sum() - steep_d.sum()) + np.cumsum(np.concatenate([[0.0], *turn])[order])
        finite = np.isfinite(place)  # points that are all but on the split never leave the margin
        place, slope = place[finite], slope[finite]
        cost = c1 * float(weight.sum()) + np.concatenate([[0.0], np.cumsum(slope[:-1] * np.diff(place))])
        return cls(place, cost, float(slope[-1]))

    def __call__(self, scale: FloatArray) -> FloatArray:
        """Loss at these scales."""
        beyond = np.maximum(0.0, scale - self.at[-1]) * self.slope
        return np.asarray(np.interp(scale, self.at, self.cost) + beyond)

    def least(self, low: float, high: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Smallest minimizer between `low` and each of `high`, and the loss there."""
        inside = self.at[(self.at > low) & (self.at <= np.max(high, initial=low))]
        tried = np.concatenate([[low], inside])
        cost = self(tried)
        best = np.minimum.accumulate(cost)
        lower = np.concatenate([[True], cost[1:] < best[:-1]])
        where = np.maximum.accumulate(np.where(lower, np.arange(len(cost)), 0))
        last = np.searchsorted(tried, high, side="right") - 1
        at_end = self(high)
        better = at_end < best[last]
        return np.where(better, high, tried[where[last]]), np.where(better, at_end, best[last])


@dataclass(frozen=True)
class ScalePrice:
    """OCTSVM price ``slope * n + curvature * n**2 / 2`` of a largest scale n.

    Examples
    --------
    >>> ScalePrice(0.5)(np.array([4.0])).tolist(), ScalePrice(0.0, 1.0)(np.array([4.0])).tolist()
    ([2.0], [8.0])
    """

    slope: float
    curvature: float = 0.0

    def __call__(self, scale: FloatArray) -> FloatArray:
        """Price of these scales."""
        return np.asarray(self.slope * scale + 0.5 * self.curvature * scale**2)

    def limit(self, paid: float) -> float:
        """Largest scale that can be had for this much, infinite if it costs nothing.

        Examples
        --------
        >>> ScalePrice(0.5).limit(3.0), ScalePrice(0.0, 1.0).limit(8.0), ScalePrice(0.0).limit(1.0)
        (6.0, 4.0, inf)
        """
        if self.curvature > 0:
            root = np.sqrt(self.slope**2 + 2.0 * self.curvature * paid)
            return float((root - self.slope) / self.curvature)
        return paid / self.slope if self.slope > 0 else np.inf


def best_scales(costs: Sequence[ScaleCost], least: FloatArray, most: float, price: ScalePrice) -> FloatArray:
    """Scales of several OCTSVM splits with the least loss and price of the largest scale.

    Parameters
    ----------
    costs : sequence of ScaleCost
        Loss of each split.
    least : ndarray of shape (n_splits,)
        Smallest scale of each, at most `most`.
    most : float
        Largest scale of all.
    price : Price
        Price of the largest.

    Examples
    --------
    >>> cost = ScaleCost.of(np.array([0.5, 0.25]), np.ones(2), c1=1.0, c2=1.0)
    >>> best_scales([cost, cost], np.zeros(2), 10.0, ScalePrice(0.3)).tolist()
    [4.0, 4.0]
    >>> best_scales([cost, cost], np.zeros(2), 10.0, ScalePrice(0.6)).tolist()
    [2.0, 2.0]
    >>> best_scales([cost], np.zeros(1), 10.0, ScalePrice(0.0, 0.1)).tolist()  # between: 0.25 - 0.1 n = 0
    [2.5]
    """
    low = float(np.max(least, initial=0.0))
    tried = np.unique(np.concatenate([[low, most], *(c.at[(c.at > low) & (c.at < most)] for c in costs)]))

    def loss(cap: FloatArray) -> FloatArray:
        total: FloatArray = np.zeros(len(cap))
        for cost, from_here in zip(costs, least, strict=True):
            total = total + cost.least(float(from_here), cap)[1]
        return total

    at = loss(tried)
    if price.curvature > 0 and len(tried) > 1:  # the best place may be within a segment, where the slopes cancel
        steep = -np.diff(at) / np.diff(tried)
        within = np.clip((steep - price.slope) / price.curvature, tried[:-1], tried[1:])
        tried, at = np.concatenate([tried, within]), np.concatenate([at, loss(within)])
    cap = tried[[int(np.argmin(at + price(tried)))]]
    return np.array([float(c.least(float(a), cap)[0][0]) for c, a in zip(costs, least, strict=True)])
