"""How large the numbers of a fit were, and whether those of new rows are others: beyond them, shifted, in other units.

What is kept of a column stands on ten rows each, means of ten neighbours in their order: no single value is told. New
rows are said to be other only where rows of the same kind would hardly ever look so: of `n` rows, the share of all that
there can be below the k-th smallest one follows a beta distribution whatever the numbers are.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.stats import betabinom

from treewright.core.arrays import FloatArray, IntArray
from treewright.data.columns_checked import AnyArray
from treewright.exceptions import ModelFileError

__all__ = ["NewNumbers", "NumbersChange", "SeenNumbers", "changes_in_words"]

_TEN, _FEWEST = 10, 20
"""Rows that each number stands on, and rows of which there are any: those of the ends are not the same."""
_LOOKED_AT, _MOST_FEATURES = 10_000, 1000
"""Rows that are looked at, and features from which on none is: nobody reads of a thousand columns."""
_LEVELS = (0.0, 0.25, 0.5, 0.75, 1.0)
"""Lowest, quartiles, and highest."""
_CHANCE = 1e-6
"""That rows of the same kind are said to be other ones, over all columns."""
_BEYOND, _SHIFTED = 0.05, 0.5
"""Shares of new rows beyond the ends, and beyond a quartile, from which on that is told."""
_FACTOR, _ALIKE = 5.0, 2.5
"""Least factor that is told, and how far those of the quartiles may be apart."""
_DRAWN = 5000
"""Rows that a chance is worked out for."""
_KEPT, _PARTS = 2000, 10
"""Rows of a part whose quartiles are looked at, and parts."""


@dataclass(frozen=True)
class NumbersChange:
    """What is other in a column of new rows."""

    feature: int
    share: float
    """Of the rows that have a value."""
    below: bool
    """Whether these are below the limit, or above it."""
    limit: float
    usual: float
    """Share of the rows of the fit that were beyond, at most."""
    factor: float | None
    """How many times as large as at the fit numbers are, where all are so."""

    def words(self, name: str, written: Callable[[float], str] | None = None) -> str:
        """It in words.

        Examples
        --------
        >>> print(NumbersChange(0, 0.987, True, 9100.0, 0.25, 0.001).words("income"))
        'income': 98.7% of the rows are below 9100, of those of the fit at most 25%; numbers are about 1000 times
        smaller than at the fit: are the units others?
        """
        limit = (written or _short)(self.limit)
        side = "below" if self.below else "above"
        usual = f"{math.ceil(1000.0 * self.usual) / 10.0:g}%"
        text = f"{name!r}: {self.share:.1%} of the rows are {side} {limit}, of those of the fit at most {usual}"
        if self.factor is not None:
            times, how = (self.factor, "larger") if self.factor > 1 else (1.0 / self.factor, "smaller")
            text += f"; numbers are about {_round_factor(times)} times {how} than at the fit: are the units others?"
        return text


@dataclass(frozen=True, eq=False)
class SeenNumbers:
    """What is kept of the numbers of a fit.

    Attributes
    ----------
    n_rows : ndarray of int, shape (n_features,)
        Rows with a value; 0 for features of which nothing is kept: fewer than 20 values, flags, categories.
    marks : ndarray of shape (n_features, 5)
        Lowest numbers, quartiles and highest ones, each a mean of ten; the ends are rounded outwards.

    Examples
    --------
    >>> seen = SeenNumbers.of(np.arange(100.0)[:, None])
    >>> seen.marks.tolist()
    [[4.0, 24.5, 49.5, 74.5, 95.0]]
    """

    n_rows: IntArray
    marks: FloatArray

    @classmethod
    def of(cls, X: FloatArray, left_out: ArrayLike | None = None) -> Self:
        """Look at the rows of a fit, with NaN where values are missing; features that are left out are no numbers.

        Of many rows at some, and at no features where they are very many.
        """
        n_features = X.shape[1]
        if len(X) > _LOOKED_AT:
            X = X[np.sort(np.random.default_rng(0).choice(len(X), _LOOKED_AT, replace=False))]
        skipped = np.zeros(n_features, dtype=bool) if left_out is None else np.asarray(left_out, dtype=bool)
        n_rows, marks = np.zeros(n_features, dtype=np.int64), np.zeros((n_features, len(_LEVELS)))
        for j in np.flatnonzero(~skipped).tolist() if n_features <= _MOST_FEATURES else ():
            values = X[:, j]
            values = values[np.isfinite(values)]
            flags = values.min(initial=0.0) >= 0 and values.max(initial=0.0) <= 1 and np.isin(values, (0.0, 1.0)).all()
            if len(values) >= _FEWEST and not flags:
                found = _marks(values)
                if np.isfinite(found).all():
                    n_rows[j], marks[j] = len(values), found
        return cls(n_rows, marks)

    def to_list(self) -> list[Any]:
        """Plain data, for a model file: for each feature the number of rows and the marks, or None."""
        pairs = zip(self.n_rows.tolist(), self.marks.tolist(), strict=True)
        return [[n, *marks] if n else None for n, marks in pairs]

    @classmethod
    def from_list(cls, data: object, n_features: int, where: str = "numbers") -> Self:
        """Make it from what :meth:`to_list` gave, trusting nothing.

        Examples
        --------
        >>> SeenNumbers.from_list([None, [20, 1.0, 2.0, 3.0, 4.0, 5.0]], 2).n_rows.tolist()
        [0, 20]
        """
        if not isinstance(data, list) or len(data) != n_features:
            raise ModelFileError(f"{where}: expected a list of {n_features}")
        n_rows, marks = np.zeros(n_features, dtype=np.int64), np.zeros((n_features, len(_LEVELS)))
        for j, entry in enumerate(data):
            if entry is None:
                continue
            fine = isinstance(entry, list) and len(entry) == 1 + len(_LEVELS) and type(entry[0]) is int
            fine = fine and _FEWEST <= entry[0] < 2**53 and all(type(v) in (int, float) for v in entry[1:])
            if not fine or not all(abs(v) < math.inf for v in entry[1:]) or sorted(entry[1:]) != entry[1:]:
                raise ModelFileError(f"{where}[{j}]: expected a number of rows and {len(_LEVELS)} rising numbers")
            n_rows[j], marks[j] = entry[0], entry[1:]
        return cls(n_rows, marks)


@dataclass(eq=False)
class NewNumbers:
    """The numbers of new rows, counted over all parts of a table.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> incomes = rng.lognormal(8.0, 1.0, (500, 1))
    >>> new = NewNumbers(SeenNumbers.of(incomes))
    >>> new.add(rng.lognormal(8.0, 1.0, (200, 1)))
    >>> new.changes()
    []
    >>> new = NewNumbers(new.seen)
    >>> new.add(rng.lognormal(8.0, 1.0, (200, 1)) / 1000.0)
    >>> [(change.below, round(1.0 / change.factor, -2)) for change in new.changes()]
    [(True, 1000.0)]
    """

    seen: SeenNumbers
    n_rows: IntArray = field(init=False)
    below: IntArray = field(init=False)
    """Rows below each mark of each feature."""
    above: IntArray = field(init=False)
    _some: list[FloatArray] = field(init=False, default_factory=list)

    def __post_init__(self) -> None:
        self.n_rows = np.zeros(len(self.seen.n_rows), dtype=np.int64)
        self.below = np.zeros(self.seen.marks.shape, dtype=np.int64)
        self.above = np.zeros(self.seen.marks.shape, dtype=np.int64)

    def add(self, X: AnyArray) -> None:
        """Count a part of the rows; features that are no numbers may be whatever they are."""
        some = np.full((len(range(0, len(X), max(1, len(X) // _KEPT))), X.shape[1]), np.nan)
        for j in np.flatnonzero(self.seen.n_rows).tolist():
            values = np.asarray(X[:, j], dtype=np.float64)
            some[:, j] = values[:: max(1, len(X) // _KEPT)]
            self.n_rows[j] += int(np.count_nonzero(~np.isnan(values)))
            for k, mark in enumerate(self.seen.marks[j].tolist()):
                self.below[j, k] += int(np.count_nonzero(values < mark))
                self.above[j, k] += int(np.count_nonzero(values > mark))
        if len(self._some) < _PARTS:
            self._some.append(some)

    def changes(self) -> list[NumbersChange]:
        """What is other, the largest share first."""
        known = np.flatnonzero((self.seen.n_rows > 0) & (self.n_rows > 0)).tolist()
        chance = _CHANCE / max(1, 4 * len(known))
        found = [change for j in known if (change := self._change(j, chance)) is not None]
        return sorted(found, key=lambda change: -change.share)

    def _change(self, j: int, chance: float) -> NumbersChange | None:
        for k, least in ((0, _BEYOND), (4, _BEYOND), (1, _SHIFTED), (3, _SHIFTED)):
            below = k < 2
            count, n_new, n_old = int((self.below if below else self.above)[j, k]), int(self.n_rows[j]), self._old(j)
            if count < least * n_new or count == 0:
                continue
            # of the ten rows that a mark stands on, the one farthest in is beyond it in no case
            inner = _first(n_old, _LEVELS[k]) + _TEN if below else n_old - _first(n_old, _LEVELS[k])
            if _chance(count, n_new, inner, n_old - inner + 1) < chance:
                limit = float(self.seen.marks[j, k])
                return NumbersChange(j, count / n_new, below, limit, (inner - 1) / n_old, self._factor(j))
        return None

    def _old(self, j: int) -> int:
        return int(self.seen.n_rows[j])

    def _factor(self, j: int) -> float | None:
        """How many times as large numbers are, if the quartiles agree on that."""
        values = np.concatenate([part[:, j] for part in self._some])
        now = np.nanquantile(values, _LEVELS[1:4])
        then = self.seen.marks[j, 1:4]
        ratios = [a / b for a, b in zip(now.tolist(), then.tolist(), strict=True) if b != 0.0 and a / b > 0.0]
        if len(ratios) < 2 or max(ratios) > _ALIKE * min(ratios):
            return None
        factor = float(np.median(ratios))
        return factor if max(factor, 1.0 / factor) >= _FACTOR and math.isfinite(factor) else None


def changes_in_words(
    changes: Sequence[NumbersChange], labels: Sequence[str], written: Sequence[Callable[[float], str] | None] = ()
) -> list[str]:
    """What is other in numbers of new rows, by column; `written` says how these are written, if in an own way."""
    own = list(written) or [None] * len(labels)
    return [change.words(labels[change.feature], own[change.feature]) for change in changes]


def _chance(count: int, n_new: int, a: float, b: float) -> float:
    """Chance that so many of the new rows are beyond, whose share has a beta distribution; of very many, of fewer."""
    if n_new > _DRAWN:
        count, n_new = count * _DRAWN // n_new, _DRAWN
    return float(np.exp(betabinom.logpmf(np.arange(count, n_new + 1), n_new, a, b)).sum())


def _first(n: int, level: float) -> int:
    """Where the ten rows of a level begin, in the order of their values."""
    return int(np.clip(math.floor(level * n) - _TEN // 2, 0, n - _TEN))


def _marks(values: FloatArray) -> list[float]:
    firsts = [_first(len(values), level) for level in _LEVELS]
    wanted = np.unique([place for first in firsts for place in (first, first + _TEN - 1)])
    ordered = np.partition(values, wanted)
    with np.errstate(over="ignore"):
        means = [float(np.mean(ordered[first : first + _TEN])) for first in firsts]
    # of ten equal values the mean may be another number by its last digit
    means = [float(np.clip(m, ordered[f], ordered[f + _TEN - 1])) for m, f in zip(means, firsts, strict=True)]
    spread = means[-1] - means[0]
    if spread > 0 and math.isfinite(spread):
        step = 10.0 ** (math.floor(math.log10(spread)) - 1)
        if step > 0 and math.isfinite(means[0] / step) and math.isfinite(means[-1] / step):
            means[0] = min(means[0], math.floor(means[0] / step) * step)
            means[-1] = max(means[-1], math.ceil(means[-1] / step) * step)
    return np.maximum.accumulate(means).tolist()


def _short(number: float) -> str:
    return f"{float(f'{number:.4g}'):.15g}" if 1e-4 <= abs(number) < 1e9 or number == 0 else f"{number:.3e}"


def _round_factor(times: float) -> str:
    """A power of ten where it is near one, else two digits.

    Examples
    --------
    >>> _round_factor(1130.0), _round_factor(12.3), _round_factor(56.4)
    ('1000', '12', '56')
    """
    power = 10.0 ** round(math.log10(times))
    rounded = power if 1 / 1.2 <= times / power <= 1.2 else float(f"{times:.2g}")
    return f"{rounded:.15g}" if rounded < 1e6 else f"{rounded:.0e}"
