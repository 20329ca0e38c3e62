"""New rows of which some have a label already: kept, and subtracted from totals of all rows."""

import numpy as np
import pytest
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression

from treewright import C2RFClassifier, S2OCTClassifier, TotalsClassifier
from treewright.exceptions import InfeasibleTotalsError, InvalidInputError

pytestmark = [pytest.mark.filterwarnings("ignore::UserWarning"), pytest.mark.usefixtures("short_searches_of_module")]
NAMES = np.array(["high", "low", "mid"], dtype=object)


def register(n, seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3)).round(1)
    truth = NAMES[np.digitize(X[:, 0] + 0.5 * X[:, 1] + rng.logistic(size=n), [-1.0, 1.0])]
    region = np.where(X[:, 2] + rng.normal(size=n) > 0, "north", "south").astype(object)
    return X, truth, region, rng.random(n) < 0.3


def counts(labels, groups, rows):
    return {
        g: {k: int(np.sum((labels == k) & rows & (groups == g))) for k in NAMES} for g in sorted(set(groups.tolist()))
    }


@pytest.fixture(scope="module")
def models():
    X, truth, region, known = register(200, 0)
    y = np.where(known, truth, None)
    made = {
        "totals": TotalsClassifier(LogisticRegression(), random_state=0),
        "c2rf": C2RFClassifier(RandomForestClassifier(9, random_state=0), random_state=0, time_limit=3),
        "s2oct": S2OCTClassifier(max_depth=2, random_state=0, time_limit=2, prefer="first"),
    }
    return {name: m.fit(X, y, totals=counts(truth, region, ~known), groups=region) for name, m in made.items()}


@pytest.mark.parametrize("name", ["totals", "c2rf", "s2oct"])
def test_labels_are_kept_and_the_others_are_those_of_the_rest_alone(models, name):
    """Totals of all rows less the labels are totals of the rest, which is labelled as if it were the whole table."""
    model = models[name]
    X, truth, region, known = register(150, 1)
    y, every = np.where(known, truth, None), np.ones(150, dtype=bool)
    rest = model.transduce(X[~known], counts(truth, region, ~known), region[~known], return_proba=True)
    for totals, of in ((counts(truth, region, every), "all"), (counts(truth, region, ~known), "unlabeled")):
        labels, shares, table = model.transduce(
            X, totals, region, y=y, totals_of=of, return_proba=True, return_totals=True
        )
        assert np.array_equal(labels[known], truth[known])
        assert np.array_equal(labels[~known], rest[0])
        np.testing.assert_allclose(shares[~known], rest[1], atol=1e-12)
        assert np.array_equal(shares[known], (truth[known, None] == model.classes_).astype(float))
        assert {row["deviation"] for row in table} == {0} and sum(row["reached"] for row in table) == np.sum(~known)
    free = model.transduce(X, y=y)
    assert np.array_equal(free, np.where(known, truth, model.transduce(X)))


def test_intervals_shares_margins_and_a_table_without_a_gap(models):
    X, truth, region, known = register(150, 2)
    y, model = np.where(known, truth, None), models["totals"]
    high = int(np.sum(truth == "high"))
    labels = model.transduce(X, {"high": (high, high + 3)}, y=y, totals_of="all")
    assert high <= np.sum(labels == "high") <= high + 3 and np.array_equal(labels[known], truth[known])
    labels = model.transduce(X, {"high": high / 150}, y=y, totals_of="all")
    assert np.sum(labels == "high") == high
    sex = np.where(np.arange(150) % 2, "f", "m").astype(object)
    every = np.ones(150, dtype=bool)
    both = [counts(truth, region, every), counts(truth, sex, every)]
    labels = model.transduce(X, both, [region, sex], y=y, totals_of="all")
    assert [counts(labels, region, every), counts(labels, sex, every)] == both
    assert np.array_equal(labels[known], truth[known])
    labels, table = model.transduce(
        X, counts(truth, region, every), region, y=truth, totals_of="all", return_totals=True
    )
    assert np.array_equal(labels, truth) and table == []
    groups = region.copy()
    groups[known] = None  # of the rows that totals do not count none need be known
    rest = counts(truth, region, ~known)
    assert counts(model.transduce(X, rest, groups, y=y), region, ~known) == rest


def test_what_cannot_be_is_refused_with_its_cell(models):
    X, truth, region, known = register(150, 3)
    y, every, model = np.where(known, truth, None), np.ones(150, dtype=bool), models["totals"]
    totals = counts(truth, region, every)
    there = int(np.sum(known & (truth == "mid") & (region == "south")))
    moved = totals["south"]["mid"] - there + 1
    totals["south"]["mid"] -= moved
    totals["south"]["low"] += moved
    said = (
        f"rows of group 'south' have {there - 1} rows? of class 'mid', but {there} rows of group 'south' are labelled"
    )
    with pytest.raises(InfeasibleTotalsError, match=said):
        model.transduce(X, totals, region, y=y, totals_of="all")
    with pytest.raises(InfeasibleTotalsError, match="They fit all 150 rows, the .* labelled ones included"):
        model.transduce(X, counts(truth, region, every), region, y=y)
    strange = y.copy()
    strange[7] = "High"
    with pytest.raises(InvalidInputError, match="y has 'High' in row 7, which is no class .* did you mean 'high'"):
        model.transduce(X, y=strange)
    with pytest.raises(InvalidInputError, match="y has 149 entries, X has 150 rows"):
        model.transduce(X, y=y[1:])


def test_the_mark_of_the_model_is_no_label():
    X, truth, _, known = register(100, 4)
    number = np.searchsorted(NAMES, truth)
    y = np.where(known, number, -1)
    model = TotalsClassifier(LogisticRegression(), random_state=0).fit(X, y)
    labels = model.transduce(X, {0: int(np.sum(number == 0))}, y=y, totals_of="all")
    assert np.array_equal(labels[known], number[known]) and np.sum(labels == 0) == np.sum(number == 0)


def test_a_model_of_two_margins_takes_totals_of_one(models):
    X, truth, region, known = register(120, 5)
    sex = np.where(np.arange(120) % 2, "f", "m").astype(object)
    both = [counts(truth, region, ~known), counts(truth, sex, ~known)]
    model = TotalsClassifier(LogisticRegression(), random_state=0)
    model.fit(X, np.where(known, truth, None), totals=both, groups=[region, sex])
    every = np.ones(120, dtype=bool)
    labels = model.transduce(X, counts(truth, region, every), region)
    assert counts(labels, region, every) == counts(truth, region, every)
    y = np.where(known, truth, None)
    kept = model.transduce(X, groups=[region, sex], y=y)
    assert np.array_equal(kept, np.where(known, truth, model.transduce(X, groups=[region, sex])))
