"""Totals that leave freedom: free classes as without totals, intervals as scores ask, margins that say nothing."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression

from treewright import TotalsClassifier, estimated_accuracy
from treewright.app.large_register import label_register
from treewright.data import parse_totals
from treewright.data.margins import telling_margins

CLASSES = np.array(["employed", "inactive", "student", "unemployed"], dtype=object)


def made(seed=0, n=800):
    """A register of frequent and rare classes in three regions; of rare ones more are asked."""
    rng = np.random.default_rng(seed)
    z, region = rng.normal(size=(n, 5)), rng.integers(3, size=n)
    slope = rng.normal(size=(5, 4)) * 1.5
    level = np.array([1.5, 0.5, -0.5, -1.0]) + 0.5 * rng.normal(size=(3, 4))[region]
    truth = (z @ slope + level + rng.gumbel(size=(n, 4))).argmax(axis=1)
    chance = (np.bincount(truth) / n)[truth] ** -0.5
    known = rng.random(n) < chance * (140 / chance.sum())
    return z, CLASSES[truth], np.array(["north", "south", "west"])[region], known


def totals_of(truth, groups, hidden, classes, width=0.0):
    found = {}
    for g in np.unique(groups).tolist():
        counts = {k: int(np.sum(hidden & (groups == g) & (truth == k))) for k in classes}
        found[g] = {k: (int(c * (1 - width)), int(np.ceil(c * (1 + width)))) if width else c for k, c in counts.items()}
    return found


@pytest.fixture(scope="module")
def register(short_searches_of_module):
    X, truth, region, known = made()
    y = np.where(known, truth, None)
    return X, y, truth, region, ~known, TotalsClassifier(random_state=0).fit(X, y)


def right(model, truth, hidden):
    return np.mean(model.transduction_[hidden] == truth[hidden])


@pytest.mark.parametrize("some", [*itertools.combinations(CLASSES, 1), *itertools.combinations(CLASSES, 2)][::2])
def test_free_classes_come_out_as_without_totals(short_searches, register, some):
    X, y, truth, region, hidden, free = register
    totals = totals_of(truth, region, hidden, some)
    model = TotalsClassifier(random_state=0).fit(X, y, totals=totals, groups=region)
    for g, part in totals.items():
        for k, count in part.items():
            assert np.sum(hidden & (region == g) & (model.transduction_ == k)) == count
    assert right(model, truth, hidden) >= right(free, truth, hidden) - 0.005
    # a row that is of a free class in both is of the same one, as nothing but the known ones has a price
    both = hidden & ~np.isin(model.transduction_, some) & ~np.isin(free.transduction_, some)
    assert both.sum() > 50 and np.array_equal(model.transduction_[both], free.transduction_[both])


@pytest.mark.parametrize("estimator", ["auto", RandomForestClassifier(50)], ids=["auto", "forest"])
def test_intervals_are_used_only_as_far_as_scores_ask(short_searches, register, estimator):
    X, y, truth, region, hidden, free = register

    def fitted(totals):
        return TotalsClassifier(estimator, random_state=0).fit(X, y, totals=totals, groups=region)

    if estimator != "auto":
        free = TotalsClassifier(estimator, random_state=0).fit(X, y)
    exact = fitted(totals_of(truth, region, hidden, CLASSES))
    for width in (0.1, 0.3):
        model, at_ends = fitted(totals_of(truth, region, hidden, CLASSES, width)), 0
        for row in model.totals_:
            assert row["deviation"] == 0
            asked = np.sum(hidden & (region == row["group"]) & (free.transduction_ == row["class"]))
            at_ends += (row["reached"] == row["low"] < asked) or (row["reached"] == row["high"] > asked)
        assert at_ends <= len(model.totals_) / 5
        assert right(model, truth, hidden) >= min(right(free, truth, hidden), right(exact, truth, hidden)) - 0.005


def test_labels_of_a_register_in_parts_are_those_of_the_fit(short_searches, register):
    X, y, truth, region, hidden, _ = register
    totals = totals_of(truth, region, hidden, ["unemployed"])

    class Source:
        n_rows = len(X)

        def parts(self):
            return iter([X[:500], X[500:]])

        def taken(self, rows):
            return X[rows]

    model = TotalsClassifier(LogisticRegression(), random_state=0)
    found = label_register(model, Source(), y, totals=totals, groups=region).labels()
    whole = TotalsClassifier(LogisticRegression(), random_state=0).fit(X, y, totals=totals, groups=region)
    assert np.array_equal(found, whole.transduction_)
    auto = label_register(TotalsClassifier(random_state=0), Source(), y, totals=totals, groups=region).labels()
    free = TotalsClassifier(random_state=0).fit(X, y)
    assert np.mean(auto[hidden] == truth[hidden]) >= right(free, truth, hidden) - 0.01


def test_the_estimate_covers_the_truth_where_one_class_is_known(short_searches, register):
    X, y, truth, region, hidden, _ = register
    totals = totals_of(truth, region, hidden, ["unemployed"])
    model = TotalsClassifier(random_state=0).fit(X, y, totals=totals, groups=region)
    told = estimated_accuracy(model, X, y, totals=totals, groups=region, n_splits=3)
    assert told.low <= right(model, truth, hidden) <= told.high


# ---------------------------------------------------------------------- margins


@pytest.mark.parametrize("first", [False, True])
@pytest.mark.parametrize("what", ["constant", "free", "coarser"])
@pytest.mark.parametrize("known", [CLASSES, CLASSES[3:]], ids=["all known", "one known"])
def test_a_margin_that_says_nothing_changes_no_label(shortest_searches, first, what, known):
    X, truth, region, asked = made(1, 300)
    y, hidden = np.where(asked, truth, None), ~asked
    other = {"constant": np.repeat("all", 300), "free": region, "coarser": np.where(region == "west", "w", "rest")}[
        what
    ]
    totals = totals_of(truth, region, hidden, known)
    more = {g: {} for g in np.unique(other).tolist()} if what == "free" else totals_of(truth, other, hidden, known)
    pair, columns = ([more, totals], [other, region]) if first else ([totals, more], [region, other])
    one = TotalsClassifier(random_state=3).fit(X, y, totals=totals, groups=region)
    both = TotalsClassifier(random_state=3).fit(X, y, totals=pair, groups=columns)
    assert np.array_equal(one.transduction_, both.transduction_)
    assert np.array_equal(one.transduction_proba_, both.transduction_proba_)
    assert np.array_equal(one.predict(X, region), both.predict(X, columns))
    assert np.array_equal(one.predict(X), both.predict(X))
    assert np.allclose(one.predict_proba(X, region), both.predict_proba(X, columns))
    assert len(both.totals_) == 4 * (3 + len(np.unique(other)))


def test_the_estimate_is_the_same_with_a_margin_that_says_nothing(shortest_searches):
    X, truth, region, asked = made(1, 300)
    y, hidden = np.where(asked, truth, None), ~asked
    totals, every = totals_of(truth, region, hidden, CLASSES), np.repeat("all", 300)
    pair = [totals_of(truth, every, hidden, CLASSES), totals]
    model = TotalsClassifier(LogisticRegression(), random_state=3)
    alone = estimated_accuracy(model, X, y, totals=totals, groups=region, n_splits=2)
    assert estimated_accuracy(model, X, y, totals=pair, groups=[every, region], n_splits=2) == alone


def test_margins_that_follow_from_others():
    region, half = ["n", "n", "s", "w"], ["a", "a", "b", "b"]
    by_region = parse_totals({"n": {0: 1}, "s": {0: 1}, "w": {0: 0}}, [0, 1], 4, region)
    by_half = parse_totals({"a": {0: 1}, "b": {0: 1}}, [0, 1], 4, half)
    crossing = parse_totals({"x": {0: 1}, "y": {0: 1}}, [0, 1], 4, ["x", "y", "x", "y"])
    narrow = parse_totals({"a": {0: (0, 2)}, "b": {0: 1}}, [0, 1], 4, half)
    assert telling_margins((by_region, by_half)) == telling_margins((by_region, narrow)) == (0,)
    assert telling_margins((by_half, by_region)) == (1,) and telling_margins((by_half, narrow)) == (0,)
    assert telling_margins((by_region, crossing)) == (0, 1) and telling_margins((crossing, by_half)) == (0, 1)
    wide = parse_totals({"n": {0: (0, 2)}, "s": {0: 1}, "w": {0: 0}}, [0, 1], 4, region)
    assert telling_margins((wide, by_half)) == (0, 1)


def test_one_class_known_by_two_margins(short_searches, register):
    X, y, truth, region, hidden, free = register
    sex = np.where(np.random.default_rng(0).random(len(y)) < 0.5, "f", "m")
    margins = [totals_of(truth, groups, hidden, ["unemployed"]) for groups in (region, sex)]
    model = TotalsClassifier(random_state=0).fit(X, y, totals=margins, groups=[region, sex])
    assert all(row["deviation"] == 0 for row in model.totals_)
    assert right(model, truth, hidden) >= right(free, truth, hidden) - 0.005
