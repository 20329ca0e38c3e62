"""What fits leave out where their time is short, or tables are large; no test here looks at the clock."""

import tracemalloc

import numpy as np
import pytest
from scipy import sparse
from sklearn.ensemble import RandomForestClassifier

from treewright import C2RFClassifier, FairOCTClassifier, S2OCTClassifier
from treewright.core.budget import Budget
from treewright.data import make_problem
from treewright.data.point_totals import PointTotals
from treewright.models.fair.labels import discrimination, fair_leaf_labels
from treewright.models.fair.objective import FairOCT
from treewright.models.s2oct import fit as s2oct
from treewright.models.s2oct.search import attempts
from treewright.optimize.settings import SearchSettings, TeacherSettings
from treewright.teachers import ensemble
from treewright.teachers.ensemble import fit_ensemble


def some_rows(n=90):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 3))
    truth = (X[:, 0] + 0.5 * rng.normal(size=n) > 0).astype(int)
    return X, truth, np.where(np.arange(n) % 3 == 0, truth, -1)


def test_a_forest_that_there_is_no_time_for_is_the_beginning_of_the_whole_one():
    X, _, y = some_rows()
    problem = make_problem(X, y, None, supervised=False)
    whole = fit_ensemble(None, problem, False, 7, Budget())
    early = fit_ensemble(None, problem, False, 7, Budget(1e-9))
    assert (len(whole.members.members), len(early.members.members)) == (200, 10)
    assert np.array_equal(early.members.votes(X), whole.members.votes(X)[:, :10])
    assert whole.cut_short == "" and "10 of 200 trees" in early.cut_short
    # The whole one is that of scikit-learn, grown at once.
    rows = ensemble.fitting_rows(problem, merged=True, rng=np.random.default_rng(7))
    forest = RandomForestClassifier(200, random_state=7).fit(rows.X, rows.y)
    assert np.array_equal(whole.members.ensemble.predict_proba(X), forest.predict_proba(X))


def test_c2rf_says_how_much_of_a_forest_there_was_time_for():
    X, truth, y = some_rows()
    model = C2RFClassifier(time_limit=60, random_state=0)
    # as if there were very many rows
    model._search_settings = SearchSettings(teacher=TeacherSettings(vote_seconds=1e3))
    model.fit(X, y, totals={1: int(truth[y < 0].sum())})
    assert len(model.estimators_) == 10 and "the forest has 10 of 200 trees, for want of time" in model.reason_
    assert not model.record_.repeatable


@pytest.mark.usefixtures("shortest_searches")
def test_search_after_the_teacher_ends_with_the_time(monkeypatch):
    """Trees at prices of one feature a split are exact, and take long where there are many features."""
    X, truth, y = some_rows()

    def taught(points, seed, budget, *more, **options):
        found = real(points, seed, budget, *more, **options)
        budget.stop()
        return found

    def never(*arguments):
        raise AssertionError("the time is over")

    real = s2oct.auto_teacher
    monkeypatch.setattr(s2oct, "auto_teacher", taught)
    monkeypatch.setattr(attempts, "priced_trees", never)
    with pytest.warns(UserWarning, match="interrupted"):
        model = S2OCTClassifier(max_split_features=1, random_state=0).fit(X, y, totals={1: int(truth[y < 0].sum())})
    assert model.status_ == "interrupted"


@pytest.mark.usefixtures("short_searches", "no_branch_and_bound")
def test_many_protected_groups_take_the_memory_of_the_rows():
    """A table of all groups by all rows would take 128 MB, and far more on the way."""
    rng = np.random.default_rng(0)
    n, k = 8000, 2000
    X, groups = rng.normal(size=(n, 2)), rng.integers(0, k, n)
    y = (X[:, 0] + rng.normal(size=n) > 0).astype(int)
    model = FairOCTClassifier(1, fairness_weight=1e-6, time_limit=60.0, random_state=0)
    tracemalloc.start()
    try:
        with pytest.warns(UserWarning):
            model.fit(X, y, protected=groups)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 50e6
    predicted, own = model.predict(X), np.unique(groups)
    share = np.array([[np.mean(predicted[groups == g] == c) for c in (0, 1)] for g in own])
    part = np.array([np.mean(groups == g) for g in own])
    assert model.discrimination_ == pytest.approx(float(np.abs(share - part @ share).sum()))
    assert model.discrimination_ > 1.0


@pytest.mark.parametrize("n_groups", [1, 2, 7])
def test_sparse_groups_are_dense_ones(n_groups):
    rng = np.random.default_rng(n_groups)
    X, y = rng.integers(0, 3, size=(30, 2)).astype(float), rng.integers(0, 2, 30)
    table = np.eye(n_groups)[rng.permutation(np.arange(30) % n_groups)] * rng.integers(1, 4, (30, 1))
    models = [
        FairOCT(X, y, table.sum(axis=1), 2, 1, complexity=0.01, fairness_weight=0.1, protected=own)
        for own in (table, sparse.csr_array(table))
    ]
    for one, other in zip(models[0].build().matrix.T.tocsr(), models[1].build().matrix.T.tocsr(), strict=True):
        assert (one != other).nnz == 0
    assert np.allclose(models[0].part, table.sum(axis=0) / table.sum())
    assert np.allclose(models[0]._shares.toarray().sum(axis=1), 1.0)


def test_labels_of_leaves_are_not_all_tried_where_groups_are_many():
    """Their table would have 260 million cells; the best labels of each are no worse than the plain ones."""
    rng = np.random.default_rng(0)
    error, reach = rng.random((16, 2)), rng.random((16, 2000))
    reach, part = reach / reach.sum(axis=0), np.full(2000, 1 / 2000)

    def cost(labels):
        share = np.stack([reach[labels == c].sum(axis=0) for c in (0, 1)], axis=1)
        return error[np.arange(16), labels].sum() + 0.01 * discrimination(share, part)

    tracemalloc.start()
    try:
        found = fair_leaf_labels(error, reach, part, 0.01)
        assert tracemalloc.get_traced_memory()[1] < 100e6
    finally:
        tracemalloc.stop()
    assert cost(found) <= min(cost(error.argmin(axis=1)), cost(np.zeros(16, int)), cost(np.ones(16, int))) + 1e-12


def test_the_largest_group_of_each_point():
    rng = np.random.default_rng(0)
    for _ in range(30):
        size = rng.integers(0, 3, (7, 4)) * (rng.random((7, 4)) < 0.6)
        totals = PointTotals(size, np.zeros((4, 2), dtype=int), np.repeat(size.sum(axis=0)[:, None], 2, axis=1))
        assert np.array_equal(totals.largest_group, size.argmax(axis=1))
