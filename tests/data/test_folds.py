"""Folds of labels: copies that are kept together, classes that are spread evenly."""

import numpy as np
import pytest

from treewright.data.folds import Twins, label_folds


def rows(seed, n=400, copies=3):
    """Labelled rows of three classes, half of them copied, and unlabelled ones that are equal to none."""
    rng = np.random.default_rng(seed)
    number = np.repeat(np.arange(n), np.where(np.arange(n) < n // 2, copies, 1))
    y = rng.choice(3, n, p=[0.6, 0.3, 0.1])[number]
    return rng, number, y


def whole(fold, family, kept):
    return all(len(np.unique(fold[family == f])) == 1 for f in np.flatnonzero(kept))


@pytest.mark.parametrize("seed", range(3))
def test_copies_stay_in_one_fold_and_classes_are_spread(seed):
    rng, number, y = rows(seed)
    order = rng.permutation(len(number))
    number, y = number[order], y[order]
    twins = Twins.of(number, np.arange(1000, 3000))
    fold, unit = label_folds(y, twins, np.ones(len(y)), 5, np.random.RandomState(seed))
    size = np.bincount(twins.family)
    assert np.all(size[twins.family] == np.bincount(number)[number])
    assert whole(fold, twins.family, size > 1)
    table = np.array([np.bincount(y[fold == k], minlength=3) for k in range(5)])
    assert len(np.unique(unit)) == len(size)
    assert np.all(table.max(axis=0) - table.min(axis=0) <= 3)  # a family is three rows


def test_families_of_unlike_sizes_and_labels():
    rng = np.random.default_rng(0)
    family = np.repeat(np.arange(80), rng.integers(1, 12, 80))
    y = rng.integers(0, 2, len(family))  # labels of one family differ
    fold, unit = label_folds(y, Twins.of(family, np.full(10, -5)), np.ones(len(y)), 4, np.random.RandomState(0))
    assert whole(fold, family, np.bincount(family) > 1)
    assert len(np.unique(unit)) == 80
    assert np.ptp(np.bincount(fold, minlength=4)) <= 22  # each class is dealt out by itself: a family of each


def test_rows_of_few_kinds_are_folded_as_ever():
    rng = np.random.default_rng(1)
    kind = rng.integers(0, 20, 5000)
    twins = Twins.of(kind[:300], kind[300:])
    assert twins.met.sum() == 4700 and not twins.kept_together(np.ones(300), np.random.RandomState(0)).any()
    y = rng.integers(0, 2, 300)
    fold, unit = label_folds(y, twins, np.ones(300), 5, np.random.RandomState(0))
    assert np.ptp(np.bincount(fold)) <= 1 and len(np.unique(unit)) == 300


@pytest.mark.parametrize("met", [0.2, 0.5, 0.8])
def test_labels_have_a_twin_as_often_as_unlabelled_rows_have(met):
    """All labels have a twin, of the unlabelled rows some: as many labels must be folded freely."""
    rng = np.random.default_rng(2)
    number = np.repeat(np.arange(500), 2)
    hidden = np.where(rng.random(4000) < met, rng.integers(0, 500, 4000), 10_000)
    kept = Twins.of(number, hidden).kept_together(np.ones(1000), np.random.RandomState(0))
    assert abs(1 - kept.mean() - np.mean(hidden < 500)) <= 1 / 500


def test_families_without_an_unlabelled_twin_are_kept_together_first():
    number, hidden = np.repeat(np.arange(100), 2), np.repeat(np.arange(50), 2)
    kept = Twins.of(number, np.concatenate([hidden, np.arange(200, 300)])).kept_together(
        np.ones(200), np.random.RandomState(0)
    )
    assert kept[50:].all() and not kept[:50].any()


def test_classes_count_by_their_weight():
    """The class of which more rows are copied is rare among the unlabelled rows: half of those have a twin."""
    number = np.concatenate([np.repeat(np.arange(50), 2), np.arange(100, 200)])
    y = np.repeat([0, 1], 100)
    hidden = np.concatenate([np.arange(50), np.arange(300, 1250)])  # one of 20 has a twin
    twins = Twins.of(number, hidden)
    assert twins.kept_together(np.ones(200), np.random.RandomState(0)).sum() == 45
    assert not twins.kept_together(np.where(y == 0, 0.05, 0.95), np.random.RandomState(0)).any()


def test_copies_of_one_row_of_a_class_are_not_kept_together_where_nothing_would_be_left():
    y = np.repeat([0, 1], 6)
    fold, unit = label_folds(y, Twins.of(y, np.full(5, 9)), np.ones(12), 3, np.random.RandomState(0))
    assert np.all(np.bincount(fold) == 4) and len(np.unique(unit)) == 2
    three = np.repeat([0, 1, 2], 6)
    fold, _ = label_folds(three, Twins.of(three, np.full(5, 9)), np.ones(18), 3, np.random.RandomState(0))
    assert whole(fold, three, np.ones(3, dtype=bool))
