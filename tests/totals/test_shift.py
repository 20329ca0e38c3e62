"""Shifts of the prior: sums of probabilities are the totals, and nothing is shifted that need not be."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import brentq
from scipy.special import expit, log_softmax
from tests.examples import looped

from treewright.totals import shift
from treewright.totals.cells import cell_counts
from treewright.totals.shift import Margin, rake, shifted


def drawn(seed, k, scale=2.0, n_groups=3, slack=0):
    """Scores of rows in groups, and totals of random classes with slack to either side, tight."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(n_groups, 60))
    group = np.append(np.arange(n_groups), rng.integers(0, n_groups, n - n_groups))
    scores = np.round(rng.normal(0, scale, (n, k)), int(rng.integers(0, 3)))
    count = np.zeros((n_groups, k), dtype=int)
    np.add.at(count, (group, rng.integers(0, k, n)), 1)
    size = count.sum(axis=1, keepdims=True)
    low, high = np.maximum(count - slack, 0), np.minimum(count + slack, size)
    tight = low.copy(), high.copy()
    for j in range(k):
        rest = np.arange(k) != j
        tight[0][:, j] = np.maximum(low[:, j], size[:, 0] - high[:, rest].sum(axis=1))
        tight[1][:, j] = np.minimum(high[:, j], size[:, 0] - low[:, rest].sum(axis=1))
    return scores, Margin(group, *tight)


def sums(table, margin):
    return np.stack([table[margin.group_of == g].sum(axis=0) for g in range(len(margin.low))])


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10**6), st.integers(2, 5), st.sampled_from([0.1, 2.0, 30.0, 1e3]), st.sampled_from([0, 0, 1, 5]))
def test_sums_are_the_totals_and_shifts_their_multipliers(seed, k, scale, slack):
    scores, margin = drawn(seed, k, scale, slack=slack)
    (shifts,) = rake(scores, [margin])
    table = shifted(scores, shifts[margin.group_of])
    found = sums(table, margin)
    assert np.all(found >= margin.low - 1e-6) and np.all(found <= margin.high + 1e-6)
    assert np.allclose(table.sum(axis=1), 1)
    # the conditions of the nearest table: an interval that binds at an end pulls to it, one that does not does nothing
    for g, c in zip(*np.nonzero(margin.low < margin.high), strict=True):
        if shifts[g, c] > 1e-6:
            assert found[g, c] == pytest.approx(margin.low[g, c], abs=1e-6)
        elif shifts[g, c] < -1e-6:
            assert found[g, c] == pytest.approx(margin.high[g, c], abs=1e-6)
    exact = np.all(margin.low == margin.high, axis=1)
    finite = np.where(np.isfinite(shifts), shifts, 0)
    assert np.allclose(finite[exact].sum(axis=1), 0, atol=1e-6 * scale)
    assert np.array_equal(np.isneginf(shifts), margin.high == 0)


@looped("seed", range(20))
def test_two_classes_are_the_root_of_one_equation(seed):
    scores, margin = drawn(seed, 2)
    (shifts,) = rake(scores, [margin])
    odds = scores[:, 1] - scores[:, 0]
    for g in np.flatnonzero((margin.low[:, 1] > 0) & (margin.low[:, 0] > 0)):
        inside = odds[margin.group_of == g]
        root = brentq(lambda a, of=inside, t=margin.low[g, 1]: expit(of + a).sum() - t, -100, 100, xtol=1e-13)
        assert shifts[g, 1] - shifts[g, 0] == pytest.approx(root, abs=1e-8)


def test_what_totals_do_not_bind_is_not_shifted():
    scores, margin = drawn(1, 4)
    own = sums(np.exp(log_softmax(scores, axis=1)), margin)
    (shifts,) = rake(scores, [Margin(margin.group_of, np.floor(own), np.ceil(own))])
    assert not shifts.any()


@pytest.mark.parametrize("k", [2, 3])
def test_many_rows_start_from_a_part_of_them(k, monkeypatch):
    monkeypatch.setattr(shift, "_PART", 5)
    for seed in range(8):
        scores, margin = drawn(seed, k, slack=seed % 3)
        (shifts,) = rake(scores, [margin])
        monkeypatch.setattr(shift, "_PART", 10**6)
        (other,) = rake(scores, [margin])
        monkeypatch.setattr(shift, "_PART", 5)
        assert np.allclose(shifted(scores, shifts[margin.group_of]), shifted(scores, other[margin.group_of]), atol=1e-6)


def test_no_rows_and_empty_groups():
    assert rake(np.zeros((0, 2)), [Margin(np.zeros(0, dtype=int), np.zeros((1, 2)), np.zeros((1, 2)))])[0].shape == (
        1,
        2,
    )
    total = np.array([[1, 1], [0, 0]])
    (shifts,) = rake(np.array([[0.0, 3.0], [1.0, 0.0]]), [Margin(np.zeros(2, dtype=int), total, total)])
    assert np.allclose(shifted(np.array([[0.0, 3.0], [1.0, 0.0]]), shifts[0]).sum(axis=0), 1)


# ---------------------------------------------------------------------- several margins


def crossing(seed, k=2, n=40, shape=(3, 2)):
    rng = np.random.default_rng(seed)
    scores, truth = rng.normal(size=(n, k)), rng.integers(0, k, n)
    groups = [np.append(np.arange(m), rng.integers(0, m, n - m)) for m in shape]
    margins = []
    for group, m in zip(groups, shape, strict=True):
        count = np.zeros((m, k), dtype=int)
        np.add.at(count, (group, truth), 1)
        margins.append(Margin(group, count, count))
    _, cell = np.unique(np.column_stack(groups), axis=0, return_inverse=True)
    return scores, cell.reshape(-1), margins


@looped("seed", range(8))
@pytest.mark.parametrize(("k", "shape"), [(2, (3, 2)), (3, (3, 2)), (2, (2, 3, 2))])
def test_cells_meet_all_margins(seed, k, shape):
    scores, cell, margins = crossing(seed, k, shape=shape)
    found = cell_counts(scores, cell, margins)
    assert found.missed == 0
    assert np.array_equal(found.counts.sum(axis=1), np.bincount(cell))
    for margin in margins:
        of_cell = np.zeros(len(found.counts), dtype=int)
        of_cell[cell] = margin.group_of
        reached = np.stack([found.counts[of_cell == g].sum(axis=0) for g in range(len(margin.low))])
        assert np.array_equal(reached, margin.low)
    table = shifted(scores, sum(s[m.group_of] for s, m in zip(found.shifts, margins, strict=True)))
    assert all(np.allclose(sums(table, margin), margin.low, atol=1e-6) for margin in margins)


@looped("seed", range(6))
def test_the_counts_are_the_nearest_ones(seed):
    """All tables of a few cells, enumerated."""
    scores, cell, margins = crossing(seed, n=9, shape=(2, 2))
    found = cell_counts(scores, cell, margins)
    table = shifted(scores, sum(s[m.group_of] for s, m in zip(found.shifts, margins, strict=True)))
    n_cells = cell.max() + 1
    expected = np.array([table[cell == c, 1].sum() for c in range(n_cells)])
    of_cell = [np.array([m.group_of[cell == c][0] for c in range(n_cells)]) for m in margins]
    best = np.inf
    for ones in itertools.product(*(range(m + 1) for m in np.bincount(cell))):
        met = all(
            np.array_equal(np.bincount(of, ones, len(m.low)), m.low[:, 1])
            for of, m in zip(of_cell, margins, strict=True)
        )
        best = min(best, np.abs(ones - expected).sum()) if met else best
    assert np.abs(found.counts[:, 1] - expected).sum() == pytest.approx(best, abs=1e-6)


def test_margins_that_contradict_one_another_are_missed_by_as_little_as_can_be():
    group, total = np.array([0, 0, 1, 1]), np.array([[1, 1], [1, 1]])
    other = np.array([[0, 2], [1, 1]])  # three of the second class, where the first margin has two
    margins = [Margin(group, total, total), Margin(np.array([0, 1, 0, 1]), other, other)]
    found = cell_counts(np.zeros((4, 2)), np.arange(4), margins)
    assert found.missed == 2  # one row too few of a class, and one too many of the other
    assert found.counts.sum() == 4


def test_sums_that_rounding_keeps_from_the_totals_end_the_search(monkeypatch):
    """Sums of many rows are rounded; where they cannot come nearer, sweeps end and do not use up their number."""
    rng, asked = np.random.default_rng(0), []
    scores = rng.normal(size=(400, 3))
    low = np.array([[100, 250, 50]])
    unsettled = shift._unsettled

    def counted(*given):
        asked.append(unsettled(*given))
        return max(asked[-1], 1e-10)  # as if rounded

    monkeypatch.setattr(shift, "_unsettled", counted)
    monkeypatch.setattr(shift, "_enough", lambda n_rows: 1e-11)
    (found,) = shift.rake(scores, [shift.Margin(np.zeros(400, dtype=int), low, low)])
    assert len(asked) < 10
    assert np.abs(shift.shifted(scores, found[0]).sum(axis=0) - low[0]).max() < 1e-6


@pytest.mark.parametrize("k", [2, 3, 5])
def test_sums_and_products_by_group_in_one_pass(k):
    rng = np.random.default_rng(k)
    scores, group = rng.normal(0, 30, (200, k)), rng.integers(0, 4, 200)
    shifts = rng.normal(0, 3, (5, k))  # the last group has no row
    shifts[1, 0] = -np.inf
    low = np.zeros((5, k))
    sums, products = Margin(group, low, low).of_shifts(scores[:, ::-1], shifts)
    table = shifted(scores[:, ::-1], shifts[group])
    for g in range(5):
        own = table[group == g]
        assert sums[g] == pytest.approx([math.fsum(column) for column in own.T], rel=1e-14, abs=1e-300)
        assert products[g] == pytest.approx(own.T @ own, rel=1e-12, abs=1e-300)


def test_sums_of_many_rows_are_not_rounded():
    scores = np.zeros((1_000_000, 3))
    sums, _ = Margin(np.zeros(len(scores), dtype=np.int64), np.zeros((1, 3)), np.zeros((1, 3))).of_shifts(
        scores, np.log([[0.1, 0.2, 0.7]])
    )
    assert np.abs(sums - [[1e5, 2e5, 7e5]]).max() < 1e-9  # one after the other they would be off by more than 1e-6
