"""Labels of points within totals: against enumeration, the linear program, and the totals themselves."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from treewright.data import PointTotals
from treewright.totals import points as module
from treewright.totals.points import divide_points


def score(scores, labels):
    return scores[np.arange(len(scores)), labels].sum()


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10_000), st.sampled_from([2, 3]))
def test_single_rows_get_the_best_of_all_labels(seed, n_classes):
    rng = np.random.default_rng(seed)
    scores = rng.integers(0, 20, (6, n_classes)) + rng.random((6, n_classes)) * 0.01
    drawn = np.bincount(rng.integers(0, n_classes, 6), minlength=n_classes)
    slack = rng.integers(0, 2, n_classes)
    totals = PointTotals(np.ones((6, 1)), np.maximum(drawn - slack, 0)[None], (drawn + slack)[None])
    labels = divide_points(scores, totals)
    allowed = [c for c in product(range(n_classes), repeat=6) if totals.missed(np.array(c)) == 0]
    assert totals.missed(labels) == 0
    assert score(scores, labels) == pytest.approx(max(score(scores, list(c)) for c in allowed))


def test_each_group_is_divided_for_itself():
    scores = np.array([[0.0, 5.0], [0.0, 4.0], [0.0, 3.0], [0.0, 2.0]])
    total = [[1, 1], [2, 0]]
    assert divide_points(scores, PointTotals([[1, 0], [1, 0], [0, 1], [0, 1]], total, total)).tolist() == [1, 0, 0, 0]


def random_points(seed, n=7, n_groups=2, n_classes=3, largest=3):
    """Points of several rows and groups; totals that some labels have, or nearly."""
    rng = np.random.default_rng(seed)
    size = rng.integers(0, largest + 1, (n, n_groups))
    truth, slack = rng.integers(0, n_classes, n), rng.integers(0, 2)
    counts = np.stack([size[truth == k].sum(axis=0) for k in range(n_classes)], axis=1)
    moved = np.eye(n_classes, dtype=int)[rng.integers(0, n_classes, n_groups)] * rng.integers(0, 2)
    low = np.maximum(counts - slack - moved, 0)
    return rng.normal(size=(n, n_classes)), PointTotals(size, low, counts + slack), rng


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10**6), st.integers(1, 3), st.integers(2, 4), st.integers(1, 4))
def test_points_of_many_rows_come_as_near_as_single_changes_lead(seed, n_groups, n_classes, largest):
    scores, totals, _ = random_points(seed, 6, n_groups, n_classes, largest)
    labels = divide_points(scores, totals)
    assert labels.shape == (6,) and labels.min() >= 0 and labels.max() < n_classes
    missed = totals.missed(labels)
    for i, k in product(range(6), range(n_classes)):
        changed = labels.copy()
        changed[i] = k
        assert totals.missed(changed) >= missed


def test_most_totals_of_many_points_are_met():
    """Of points of one to four rows in one of three groups; a division within the totals exists each time."""
    missed = []
    for seed in range(40):
        rng = np.random.default_rng(seed)
        size = np.zeros((200, 3), dtype=int)
        size[np.arange(200), rng.integers(0, 3, 200)] = rng.integers(1, 5, 200)
        truth = rng.integers(0, 3, 200)
        counts = np.stack([size[truth == k].sum(axis=0) for k in range(3)], axis=1)
        totals = PointTotals(size, counts, counts)
        missed.append(totals.missed(divide_points(rng.normal(size=(200, 3)), totals)))
    assert np.count_nonzero(missed) <= 2 and max(missed) <= 2


def test_rows_of_several_groups_that_are_one_point():
    """The program that stood here before had no solution, as such points counted in their largest group alone."""
    rng = np.random.default_rng(0)
    size = np.column_stack([np.ones(30, int), (np.arange(30) < 20).astype(int)])
    truth = rng.integers(0, 3, 30)
    counts = np.stack([size[truth == k].sum(axis=0) for k in range(3)], axis=1)
    totals = PointTotals(size, counts, counts)
    assert totals.missed(divide_points(np.eye(3)[truth] + 0.1 * rng.normal(size=(30, 3)), totals)) == 0
    assert totals.missed(divide_points(rng.normal(size=(30, 3)), totals)) <= 2


@pytest.mark.parametrize(("low", "high"), [([[4, 4]], [[9, 9]]), ([[0, 0]], [[2, 1]])])
def test_totals_that_no_division_has_are_missed_by_the_least(low, high):
    """Six rows: eight are needed, or three allowed."""
    totals = PointTotals(np.ones((6, 1)), low, high)
    labels = divide_points(np.random.default_rng(0).normal(size=(6, 2)), totals)
    assert totals.missed(labels) == min(totals.missed(np.array(c)) for c in product(range(2), repeat=6))


@pytest.mark.parametrize("n_classes", [2, 3, 5])
def test_many_groups_at_once_are_nearly_the_best(n_classes, monkeypatch):
    """The same groups one by one, which is exact, are the measure; totals are met either way."""
    rng = np.random.default_rng(n_classes)
    n, n_groups = 3000, 150
    group = rng.integers(0, n_groups, n)
    scores = rng.normal(size=(n, n_classes))
    truth = np.argmax(scores + rng.normal(size=scores.shape) * 1.5 + np.arange(n_classes), axis=1)
    counts = np.bincount(group * n_classes + truth, minlength=n_groups * n_classes).reshape(n_groups, n_classes)
    totals = PointTotals.from_parts(np.arange(n), group, n, counts, counts)
    exact = divide_points(scores, totals)
    monkeypatch.setattr(module, "_EXACT_GROUPS", 0)
    at_once = divide_points(scores, totals)
    assert totals.missed(exact) == totals.missed(at_once) == 0
    free = score(scores, scores.argmax(axis=1))
    assert score(scores, at_once) <= score(scores, exact) + 1e-9
    assert free - score(scores, at_once) <= 1.05 * (free - score(scores, exact))


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10_000))
def test_one_group_is_as_good_as_the_linear_program(seed):
    rng = np.random.default_rng(seed)
    n, k = 40, 4
    scores, truth = rng.normal(size=(n, k)), rng.integers(0, k, n)
    total = np.bincount(truth, minlength=k)
    labels = divide_points(scores, PointTotals(np.ones((n, 1)), total[None], total[None]))
    equal = np.vstack([np.kron(np.eye(n), np.ones(k)), np.tile(np.eye(k), n)])
    solved = linprog(-scores.ravel(), A_eq=equal, b_eq=np.concatenate([np.ones(n), total]))
    assert score(scores, labels) == pytest.approx(-solved.fun)


def test_no_points_and_no_groups():
    assert divide_points(np.zeros((0, 3)), PointTotals(np.zeros((0, 1)), [[0] * 3], [[0] * 3])).shape == (0,)
    none = PointTotals(np.zeros((0, 0)), np.zeros((0, 2)), np.zeros((0, 2)))
    assert divide_points(np.zeros((0, 2)), none).shape == (0,)
