"""Registers that come in parts: the same labels however they are cut, within the totals, and the best of all such."""

import itertools

import numpy as np
import pytest
from scipy.optimize import linprog
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression

from treewright import C2RFClassifier, TotalsClassifier
from treewright.app.large_register import label_register
from treewright.data.columns_checked import Coded
from treewright.exceptions import InfeasibleTotalsError, InvalidInputError
from treewright.optimize.settings import SearchSettings, TeacherSettings
from treewright.totals import register

N, AREAS, CLASSES = 90, ["east", "north", "west"], np.array(["a", "b", "c"], dtype=object)


class Parts:
    """Rows in parts of a size."""

    def __init__(self, X, size):
        self.X, self.size, self.n_rows = X, size, len(X)

    def parts(self):
        return (self.X[start : start + self.size] for start in range(0, len(self.X), self.size))

    def taken(self, rows):
        return self.X[rows]


def made(seed=0, n_labels=25, rounded=False):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(N, 3))
    X = np.round(X) if rounded else X
    truth = CLASSES[(X @ [[2, 0, -1], [0, 1, 1], [-1, 1, 0]] + rng.gumbel(size=(N, 3))).argmax(axis=1)]
    area = rng.integers(0, 3, N)
    y = np.where(np.isin(np.arange(N), rng.permutation(N)[:n_labels]), truth, None)
    hidden = np.array([label is None for label in y])
    totals = {
        name: {k: int(np.sum(hidden & (area == g) & (truth == k))) for k in CLASSES} for g, name in enumerate(AREAS)
    }
    return X, y, hidden, Coded(AREAS, area), totals


@pytest.mark.parametrize(("size", "rounded"), list(itertools.product([1, 7, N], [False, True])))
def test_parts_do_not_matter_and_totals_are_met(size, rounded, monkeypatch):
    monkeypatch.setattr(register, "_ROWS", 40)  # groups are divided one or two at a time
    X, y, hidden, groups, totals = made(rounded=rounded)
    model, whole = (TotalsClassifier(LogisticRegression(), random_state=0) for _ in range(2))
    found = label_register(model, Parts(X, size), y, totals=totals, groups=groups, max_unlabeled=12, n_jobs=2)
    other = label_register(whole, Parts(X, N), y, totals=totals, groups=groups, max_unlabeled=12)
    assert found.labels().tolist() == other.labels().tolist()
    np.testing.assert_allclose(
        found.shares(), other.shares(), rtol=0, atol=1e-14
    )  # products of one row are rounded apart
    assert np.array_equal(found.shares(5, 30), found.shares()[5:30])
    assert found.labels()[~hidden].tolist() == y[~hidden].tolist()
    names = np.asarray(groups)
    for name, asked in totals.items():
        inside = hidden & (names == name)
        for k, label in enumerate(CLASSES):
            assert np.sum(found.labels()[inside] == label) == asked[label]
            assert found.shares()[inside, k].sum() == pytest.approx(asked[label], abs=1e-6)
    assert [(row["group"], row["class"], row["reached"]) for row in model.totals_] == [
        (name, label, asked[label]) for name, asked in totals.items() for label in CLASSES
    ]
    assert not hasattr(model, "transduction_")
    assert "learned from all 25 rows with a label and 12 of 65 without" in model.reason_


def test_no_labels_within_the_totals_score_more():
    """A linear program over all labels, one group at a time."""
    X, y, hidden, groups, totals = made(1)
    model = TotalsClassifier(LogisticRegression(), random_state=0)
    found = label_register(model, Parts(X, 11), y, totals=totals, groups=groups, max_unlabeled=15)
    scores = np.log(model.estimator_.predict_proba(X))
    for name, asked in totals.items():
        rows = np.flatnonzero(hidden & (np.asarray(groups) == name))
        of_row = np.kron(np.eye(len(rows)), np.ones(3))
        of_class = np.kron(np.ones(len(rows)), np.eye(3))
        best = linprog(
            -scores[rows].ravel(),
            A_eq=np.vstack([of_row, of_class]),
            b_eq=np.append(np.ones(len(rows)), [asked[k] for k in CLASSES]),
            bounds=(0, 1),
        )
        own = scores[rows, np.searchsorted(CLASSES, found.labels()[rows])].sum()
        assert own == pytest.approx(-best.fun, abs=1e-7)


@pytest.mark.parametrize("kind", ["exact", "interval", "free", "all", "alone", "none"])
def test_all_rows_are_cut_as_new_rows_are(kind):
    """`transduce` of the fitted model has the same totals to keep, and no ties to break."""
    X, y, hidden, groups, totals = made(2)
    names, more = np.asarray(groups), {}
    if kind == "interval":
        totals = {g: {k: (max(0, n - 2), n + 1) for k, n in asked.items()} for g, asked in totals.items()}
    if kind == "free":
        totals = {g: totals[g] for g in AREAS[1:]}
    asked = totals
    if kind == "all":
        given = {g: {k: int(np.sum((names == g) & (y == k))) for k in CLASSES} for g in AREAS}
        asked, more = {g: {k: n + given[g][k] for k, n in totals[g].items()} for g in AREAS}, {"totals_of": "all"}
    if kind == "alone":
        totals = asked = {k: sum(totals[g][k] for g in AREAS) for k in CLASSES}
    known = {} if kind == "none" else {"totals": asked, "groups": None if kind == "alone" else groups} | more
    new = {} if kind == "none" else {"totals": totals, "groups": None if kind == "alone" else names[hidden]}
    model = TotalsClassifier(LogisticRegression(), random_state=0)
    with pytest.warns(UserWarning, match="free") if kind == "free" else contextless():
        found = label_register(model, Parts(X, 8), y, max_unlabeled=20, **known)
    with pytest.warns(UserWarning, match="free") if kind == "free" else contextless():
        labels, shares = model.transduce(X[hidden], **new, return_proba=True)
    assert found.labels()[hidden].tolist() == labels.tolist()
    np.testing.assert_allclose(found.shares()[hidden], shares, atol=1e-9)


class contextless:
    def __enter__(self):
        return self

    def __exit__(self, *_):
        return False


def test_a_class_without_labels_gets_the_rows_farthest_from_all_labels():
    X = np.append(np.zeros(10), [0.1, 0.2, 9.0, 0.3, 8.0])[:, None] + np.arange(15)[:, None] * 1e-3
    y = np.array(["a", "b"] * 5 + [None] * 5, dtype=object)
    model = TotalsClassifier(LogisticRegression(), random_state=0)
    more = {"totals": {"far": 2}, "allow_new_classes": True}
    assert label_register(model, Parts(X, 4), y, **more).labels()[12::2].tolist() == ["far", "far"]
    with pytest.raises(InfeasibleTotalsError, match="totals name class 'far'"):
        label_register(model, Parts(X, 4), y, totals={"far": 2})


def test_prices_of_unknown_groups_come_from_a_sample(monkeypatch):
    X, y, _, groups, totals = made(3)
    models = [TotalsClassifier(LogisticRegression(), random_state=0) for _ in range(2)]
    label_register(models[0], Parts(X, 20), y, totals=totals, groups=groups)
    monkeypatch.setattr(register, "_POOLED", 50)
    label_register(models[1], Parts(X, 20), y, totals=totals, groups=groups)
    exact, drawn = (model.class_prices_[None] for model in models)
    assert not np.array_equal(exact, drawn)
    assert np.abs(exact - drawn).max() < 1.0
    assert all(np.array_equal(models[0].class_prices_[g], models[1].class_prices_[g]) for g in AREAS)


def test_forests_weighted_by_totals_take_registers_too():
    X, y, hidden, groups, totals = made(4)
    model = C2RFClassifier(RandomForestClassifier(15, random_state=0), random_state=0, time_limit=5)
    found = label_register(model, Parts(X, 9), y, totals=totals, groups=groups, max_unlabeled=30)
    names = np.asarray(groups)
    for name, asked in totals.items():
        got = [int(np.sum(found.labels()[hidden & (names == name)] == k)) for k in CLASSES]
        assert got == list(asked.values())


def test_what_is_refused():
    X, y, _, groups, totals = made()
    model = TotalsClassifier(LogisticRegression())
    with pytest.raises(InvalidInputError, match="list of margins"):
        label_register(model, Parts(X, 9), y, totals=[totals, totals], groups=[groups, groups])
    short = Parts(X, 9)
    short.parts = lambda: iter([X[:40]])
    with pytest.raises(InvalidInputError, match="the parts have 40 rows, 90 were announced"):
        label_register(model, short, y, totals=totals, groups=groups)


def test_the_teacher_is_told_of_all_rows():
    """Fewer trees where millions of rows are to be scored, though it learns from a few of them."""
    settings = TeacherSettings(asked_votes=65 * 30, fold_trees=5)
    X, y, _, groups, totals = made()
    model = TotalsClassifier(random_state=0)
    model._members, model._search_settings = ["extra trees"], SearchSettings(teacher=settings)
    label_register(model, Parts(X, 20), y, totals=totals, groups=groups, max_unlabeled=5)
    forests = [voter.fitted.model for voter in model.estimator_.teacher_.voters]
    n_trees = {len(forest.estimators_) for forest in forests if hasattr(forest, "estimators_")}
    assert n_trees >= {30} and settings.n_trees not in n_trees
