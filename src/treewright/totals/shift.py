r"""Probabilities whose sums are the totals: a shift of the prior, by group.

With scores :math:`s_{ik}` (logarithms of probabilities) the shifted probabilities of a row of group g are
:math:`p_{ik} \propto \exp(s_{ik} + a_{gk})`, and the shifts a are such that the sum of :math:`p_{ik}` over the rows of
the group is within the total of class k. A class whose sum is strictly inside its interval has shift 0. That is the
table of probabilities with these sums that is nearest to the given one (Kullback-Leibler), as raking makes it; the
shifts are the multipliers. Two classes are one equation a group, solved by Newton's method between bounds, all groups
at once. Several classes are solved one at a time in turn, which is raking, and by Newton's method in all of them once
it is known which totals bind.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.special import expit, logit, logsumexp, softmax

from treewright.core.arrays import BoolArray, FloatArray, IntArray
from treewright.core.budget import Budget
from treewright.totals.shift_loops import moments

__all__ = ["Margin", "rake", "shifted"]

_STEPS = 100
"""Steps of Newton's method between bounds; every second one at worst halves what is left."""

_SWEEPS = 400
"""Rounds over classes, or over margins."""

_PART = 20_000
"""Rows that shifts are first sought for, where there are many more."""

_NEWTON = 12
"""Steps in all classes at once."""


@dataclass(frozen=True)
class Margin:
    """Rows in groups, and how much of each class a group shall have."""

    group_of: IntArray
    """Group number of each row."""
    low: FloatArray | IntArray
    """Least sums, shape (n_groups, n_classes)."""
    high: FloatArray | IntArray
    """Largest sums."""

    @cached_property
    def size(self) -> FloatArray:
        """Rows of each group."""
        return np.bincount(self.group_of, minlength=len(self.low)).astype(float)

    def sums(self, values: FloatArray) -> FloatArray:
        """Sums by group, of each column."""
        if len(self.low) == 1:
            return np.asarray(values.sum(axis=0)).reshape(1, -1)
        n = len(self.low)
        columns = values.reshape(len(values), -1).T
        return np.stack([np.bincount(self.group_of, column, n) for column in columns], axis=1)

    def of_shifts(self, scores: FloatArray, shifts: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Sums of the shifted probabilities by group, and of their products, shape (n_groups, n_classes, n_classes)."""
        return moments(np.ascontiguousarray(scores), self.group_of, np.ascontiguousarray(shifts))

    def missed(self, sums: FloatArray) -> float:
        """The largest distance of a sum from its total."""
        return float(np.maximum(np.maximum(self.low - sums, sums - self.high), 0).max(initial=0.0))


def shifted(scores: FloatArray, shifts: FloatArray) -> FloatArray:
    """Probabilities of rows, proportional to the exponential of scores plus shifts.

    Examples
    --------
    >>> shifted(np.log([[0.2, 0.8]]), np.log([4.0, 1.0])).tolist()
    [[0.5, 0.5]]
    """
    return np.asarray(softmax(scores + shifts, axis=1))


def rake(scores: FloatArray, margins: list[Margin], budget: Budget | None = None) -> list[FloatArray]:
    """Shifts of the classes by group, of each margin, by which the sums of probabilities are within the totals.

    Parameters
    ----------
    scores : ndarray of shape (n_rows, n_classes)
        Finite scores, logarithms of probabilities up to a constant of the row.
    margins : list of Margin
        Groups and totals; those of several margins should not contradict one another, else they are met in turn.
    budget : Budget, optional
        Once it is over, the shifts so far are given, by which sums may miss the totals.

    Returns
    -------
    list of ndarray of shape (n_groups, n_classes)
        The shifts. A class with total 0 has minus infinity.

    Examples
    --------
    >>> scores = np.log([[0.9, 0.1], [0.6, 0.4], [0.5, 0.5]])
    >>> total = np.array([[1, 2]])
    >>> shifts, = rake(scores, [Margin(np.zeros(3, dtype=int), total, total)])
    >>> shifted(scores, shifts[0]).sum(axis=0).round(9).tolist()
    [1.0, 2.0]
    """
    shifts = [np.zeros(np.shape(margin.low)) for margin in margins]
    if not len(scores):
        return shifts
    if len(margins) == 1:
        return [_one_margin(scores, margins[0], shifts[0], budget)]
    offset = [shift[margin.group_of] for shift, margin in zip(shifts, margins, strict=True)]
    for _ in range(_SWEEPS):
        for m, margin in enumerate(margins):
            others = scores + sum(offset[j] for j in range(len(margins)) if j != m)
            # what another margin has ruled out stays so, with a score that is finite
            shifts[m] = _one_margin(np.maximum(others, scores.min() - 1e4), margin, shifts[m], budget)
            offset[m] = shifts[m][margin.group_of]
        table = shifted(scores, np.asarray(sum(offset)))
        if max(margin.missed(margin.sums(table)) for margin in margins) <= _enough(len(scores)):
            break
    return shifts


def _enough(n_rows: int) -> float:
    """Distance from a total that is rounding."""
    return max(1e-9, 1e-14 * n_rows)


def _near(n_rows: int) -> float:
    """Distance from a total that may be rounding, if it does not fall any more."""
    return max(1e-7, 1e-13 * n_rows)


def _one_margin(scores: FloatArray, margin: Margin, start: FloatArray, budget: Budget | None) -> FloatArray:
    """Shifts of one margin, from a start."""
    if len(scores) > 4 * _PART:
        start = _of_part(scores, margin, start, budget)
    low, high = np.asarray(margin.low, dtype=float), np.asarray(margin.high, dtype=float)
    ruled_out, start = high <= 0, np.where(np.isfinite(start), start, 0.0)
    shifts = np.where(ruled_out, -np.inf, start)
    if scores.shape[1] == 2:
        shifts = np.where(ruled_out, -np.inf, start - start[:, :1])
        return _balanced(_one_class(scores, margin, shifts, 1, low[:, 1], high[:, 1]), low == high)
    before = np.inf
    for sweep in range(_SWEEPS):
        if sweep or not start.any():
            for k in range(scores.shape[1]):
                if budget is not None and budget.over:
                    return _balanced(shifts, low == high)
                shifts = _one_class(scores, margin, shifts, k, low[:, k], high[:, k])
        if sweep or start.any():
            shifts = _by_newton(scores, margin, shifts, low, high)
        away = _unsettled(margin.of_shifts(scores, shifts)[0], shifts, low, high)
        # sums of hundreds of thousands of rows may be rounded by more than is enough: no sweep makes these nearer
        if away <= _enough(len(scores)) or (before / 2 <= away <= _near(len(scores))):
            break
        before = away
    return _balanced(shifts, low == high)


def _of_part(scores: FloatArray, margin: Margin, start: FloatArray, budget: Budget | None) -> FloatArray:
    """The shifts of some of the rows, with totals in proportion, to start from."""
    rows = np.arange(0, len(scores), len(scores) // _PART)
    part = np.bincount(margin.group_of[rows], minlength=len(margin.size)) / np.maximum(margin.size, 1)
    ends = (end * part[:, None] for end in (margin.low, margin.high))
    found = _one_margin(scores[rows], Margin(margin.group_of[rows], *ends), start, budget)
    return np.where(part[:, None] > 0, found, start)


def _unsettled(sums: FloatArray, shifts: FloatArray, low: FloatArray, high: FloatArray) -> float:
    """Largest distance of a sum from its interval, or from the end that its shift pulls it to."""
    least = np.where((low < high) & (shifts < 0) & np.isfinite(shifts), high, low)
    most = np.where((low < high) & (shifts > 0), low, high)
    return float(np.maximum(np.maximum(least - sums, sums - most), 0).max(initial=0.0))


def _balanced(shifts: FloatArray, exact: BoolArray) -> FloatArray:
    """Where all totals are exact only differences matter: a mean of 0."""
    finite = np.isfinite(shifts)
    count = np.maximum(finite.sum(axis=1, keepdims=True), 1)
    mean = np.where(finite, shifts, 0.0).sum(axis=1, keepdims=True) / count
    return np.where(exact.all(axis=1, keepdims=True) & finite, shifts - mean, shifts)


def _one_class(
    scores: FloatArray, margin: Margin, shifts: FloatArray, k: int, low: FloatArray, high: FloatArray
) -> FloatArray:
    """The shift of one class made right, the others fixed: 0 if that is within the total, else at its nearer end."""
    others = np.delete(np.arange(scores.shape[1]), k)
    rest = scores[:, others] + shifts[:, others][margin.group_of]
    rest = rest[:, 0] if len(others) == 1 else logsumexp(rest, axis=1)
    value = scores[:, k] - rest  # infinite where no other class is left
    group, size = margin.group_of, margin.size
    now = np.bincount(group, expit(value), len(size)).astype(np.float64)
    target = np.asarray(np.clip(now, low, high), dtype=np.float64)
    free = (low < high) & (low <= now) & (now <= high)
    reached = np.isfinite(_per_group(value, group, len(size), np.maximum))  # else no other class is left
    solved = ~free & (high > 0) & (target < size) & (size > 0) & reached
    found = np.where(high <= 0, -np.inf, 0.0)
    if solved.any():
        rows = np.flatnonzero(solved[group])
        number = np.cumsum(solved) - 1
        found[solved] = _root(value[rows], number[group[rows]], target[solved], size[solved], shifts[solved, k])
    changed = shifts.copy()
    changed[:, k] = found
    return changed


def _per_group(value: FloatArray, group: IntArray, n: int, of: np.ufunc) -> FloatArray:
    ends = np.full(n, -np.inf if of is np.maximum else np.inf)
    of.at(ends, group, value)
    return ends


def _root(value: FloatArray, group: IntArray, target: FloatArray, size: FloatArray, start: FloatArray) -> FloatArray:
    """The shift of each group for which the logistic function of value plus shift sums to the target."""
    n = len(target)
    middle = logit(target / size)
    low, high = (middle - _per_group(value, group, n, end) for end in (np.maximum, np.minimum))
    shift = np.where(np.isfinite(start) & (low < start) & (start < high), start, (low + high) / 2)
    for step in range(_STEPS):
        p = expit(value + shift[group])
        wrong = np.bincount(group, p, n) - target
        if np.all((np.abs(wrong) <= 1e-13 * size) | (high - low <= 1e-15 * np.maximum(1, np.abs(shift)))):
            break
        low, high = np.where(wrong < 0, shift, low), np.where(wrong > 0, shift, high)
        slope = np.bincount(group, p * (1 - p), n)
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            newton = shift - wrong / slope
        inside = np.isfinite(newton) & (low < newton) & (newton < high) & (step % 8 != 7)
        shift = np.where(wrong == 0, shift, np.where(inside, newton, (low + high) / 2))
    return shift


def _by_newton(scores: FloatArray, margin: Margin, shifts: FloatArray, low: FloatArray, high: FloatArray) -> FloatArray:
    """Steps in all classes at once, where it is clear which totals bind; groups that a step makes worse stay."""
    finite = np.isfinite(shifts)
    bound = finite & ((low == high) | (np.abs(shifts) > 0))
    target = np.where(low == high, low, np.where(shifts > 0, low, high))
    sums, moment = margin.of_shifts(scores, shifts)
    for _ in range(_NEWTON):
        wrong = np.where(bound, target - sums, 0.0)
        if np.abs(wrong).max(initial=0.0) <= _enough(len(scores)) / 2:
            break
        k = scores.shape[1]
        curve = np.einsum("gk,kj->gkj", sums, np.eye(k)) - moment
        mean = np.trace(curve, axis1=1, axis2=2)[:, None, None] / k + 1e-300
        curve = np.where(bound[:, :, None] & bound[:, None, :], curve, 0.0)
        curve += np.where(bound, 0.0, 1.0)[:, :, None] * np.eye(k) * mean
        every = (bound | ~finite).all(axis=1)  # nothing pins the shifts then: only differences matter
        curve += (every[:, None, None] & bound[:, :, None] & bound[:, None, :]) * mean / k
        curve += 1e-14 * mean * np.eye(k)
        step = np.linalg.solve(curve, wrong[:, :, None])[:, :, 0]
        step = np.clip(np.where(bound, step, 0.0), -5.0, 5.0)
        trial = shifts + step
        new_sums, new_moment = margin.of_shifts(scores, trial)
        better = (np.abs(np.where(bound, target - new_sums, 0)).sum(axis=1) < np.abs(wrong).sum(axis=1))[:, None]
        # an interval binds at its lower end for a shift above 0 only, at its upper end for one below
        better &= ((low == high) | ~bound | (np.sign(trial) == np.sign(shifts))).all(axis=1, keepdims=True)
        if not better.any():
            break
        shifts = np.where(better, trial, shifts)
        sums, moment = np.where(better, new_sums, sums), np.where(better[:, :, None], new_moment, moment)
    return shifts
