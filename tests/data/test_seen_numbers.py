"""Numbers of new rows against those of a fit: no alarm for rows of the same kind, one for others, no value told."""

import numpy as np
import pytest
from scipy import stats
from tests.examples import looped

from treewright.data import seen_numbers
from treewright.data.seen_numbers import NewNumbers, SeenNumbers
from treewright.exceptions import ModelFileError

KINDS = {
    "normal": lambda rng, n: rng.normal(size=n),
    "far tails": lambda rng, n: rng.standard_cauchy(n),
    "incomes": lambda rng, n: rng.lognormal(8.0, 2.0, n),
    "few values": lambda rng, n: rng.integers(0, 5, n).astype(float),
    "mostly 0": lambda rng, n: np.where(rng.random(n) < 0.8, 0.0, rng.lognormal(8.0, 1.0, n)),
    "counts": lambda rng, n: rng.geometric(0.3, n).astype(float),
    "with gaps": lambda rng, n: np.where(rng.random(n) < 0.5, np.nan, rng.normal(size=n)),
}


def changes(old, new):
    counted = NewNumbers(SeenNumbers.of(old))
    counted.add(new)
    return counted.changes()


def test_rows_of_the_same_kind_are_never_told():
    rng = np.random.default_rng()
    for _ in range(300):
        n, m = rng.choice([10, 12, 20, 30, 50, 100, 300, 1000]), rng.choice([1, 5, 20, 100, 1000])
        old, new = (np.column_stack([kind(rng, size) for kind in KINDS.values()]) for size in (n, m))
        assert changes(old, new) == []


@looped("n, m", [(100, 20), (300, 300), (5000, 20_000)])
@looped("factor", [0.001, 12.0, 1000.0])
def test_other_units_are_told_with_their_factor(n, m, factor):
    rng = np.random.default_rng(int(n + 1000 * factor))
    old, new = rng.lognormal(8.0, 0.8, (n, 2)), rng.lognormal(8.0, 0.8, (m, 2))
    new[:, 1] *= factor
    (change,) = changes(old, new)
    assert change.feature == 1 and change.below == (factor < 1)
    mark = change.limit
    beyond = new[:, 1] < mark if change.below else new[:, 1] > mark
    assert change.share == pytest.approx(beyond.mean()) and change.share > 0.05
    assert np.mean(old[:, 1] < mark if change.below else old[:, 1] > mark) <= change.usual
    assert change.factor == pytest.approx(factor, rel=0.6)
    assert "are the units others?" in change.words("income")


def test_what_is_beyond_the_ends_or_shifted_is_told_and_small_shifts_are_not():
    rng = np.random.default_rng(0)
    old = rng.normal(size=(1000, 1))
    assert changes(old, rng.normal(0.3, 1.0, (1000, 1))) == []
    (shifted,) = changes(old, rng.normal(-0.9, 0.3, (1000, 1)))
    assert shifted.below and 0.25 <= shifted.usual < 0.27 and shifted.factor is None
    (beyond,) = changes(old, np.where(np.arange(1000) % 10 == 0, 7.0, rng.normal(size=1000))[:, None])
    assert not beyond.below and beyond.share == pytest.approx(0.1, abs=0.01) and beyond.usual < 0.01


def test_parts_are_the_whole():
    rng = np.random.default_rng(0)
    old, new = rng.normal(size=(200, 3)), rng.normal(size=(900, 3)) * [1.0, 50.0, 1.0]
    whole, parts = (NewNumbers(SeenNumbers.of(old)) for _ in range(2))
    whole.add(new)
    for start in range(0, 900, 70):
        parts.add(new[start : start + 70])
    assert np.array_equal(whole.below, parts.below) and np.array_equal(whole.above, parts.above)
    assert [c.share for c in whole.changes()] == [c.share for c in parts.changes()] != []


def test_no_number_of_a_row_is_kept():
    """Not even of a table of twenty."""
    rng = np.random.default_rng(0)
    for n in (20, 21, 25, 400):
        values = rng.lognormal(8.0, 1.5, n).round(2)
        kept = SeenNumbers.of(values[:, None]).marks.ravel()
        assert np.abs(values[:, None] - kept).min() > 1e-9
        ordered = np.sort(values)
        assert kept[0] <= ordered[:10].mean() and kept[-1] >= ordered[-10:].mean()
        # nor by the difference to what is known of nine others
        assert abs(10.0 * kept[-1] - ordered[-10:-1].sum() - ordered[-1]) > 1.0
    assert SeenNumbers.of(values[:19, None]).to_list() == [None]
    flags = (values > np.median(values)).astype(float)
    assert SeenNumbers.of(np.column_stack([flags, values]), [False, True]).to_list() == [None, None]


def test_chances_are_those_of_order_statistics():
    """By drawing: of n uniform numbers the k-th smallest, and how many of m others are below it."""
    rng = np.random.default_rng(0)
    n, m, k = 30, 20, 10
    limit = np.sort(rng.random((20_000, n)), axis=1)[:, k - 1]
    drawn = rng.binomial(m, limit)
    for count in (5, 10, 14):
        chance = seen_numbers._chance(count, m, k, n - k + 1)
        assert chance == pytest.approx(np.mean(drawn >= count), abs=0.01)
        assert chance == pytest.approx(stats.betabinom.sf(count - 1, m, k, n - k + 1))


@looped(
    "data", [None, [], [[19, 1, 2, 3, 4, 5]], [[20, 5, 4, 3, 2, 1]], [[20, 1, 2, 3, 4]], [[20, 1, 2, 3, 4, "5"]], [7]]
)
def test_what_no_fit_keeps_is_refused(data):
    with pytest.raises(ModelFileError, match="numbers"):
        SeenNumbers.from_list(data, 1)


def test_many_rows_are_looked_at_in_part_and_very_many_features_not_at_all():
    rng = np.random.default_rng(0)
    kept = SeenNumbers.of(rng.normal(size=(50_000, 1)))
    assert kept.n_rows.tolist() == [10_000]
    assert np.allclose(kept.marks[0, 1:4], stats.norm.ppf([0.25, 0.5, 0.75]), atol=0.05)
    assert changes(rng.normal(size=(50_000, 1)), rng.normal(size=(50_000, 1))) == []
    assert not SeenNumbers.of(rng.normal(size=(30, 1001))).n_rows.any()


def test_extremes_are_no_error():
    huge = np.linspace(-1.7e308, 1.7e308, 40)[:, None]
    tiny = np.linspace(0.0, 5e-324, 40)[:, None]
    for column in (huge, tiny, np.full((40, 1), 1e308), np.full((40, 1), -0.0)):
        kept = SeenNumbers.from_list(SeenNumbers.of(column).to_list(), 1)
        assert np.isfinite(kept.marks).all()
        assert changes(column, column) == []
