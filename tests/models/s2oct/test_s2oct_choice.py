"""Which tree S2OCT takes where no optimum is proven."""

import numpy as np
import pytest

from treewright import S2OCTClassifier
from treewright.data import PointTotals
from treewright.models.s2oct.fit import _chosen, _Search
from treewright.models.s2oct.objective import S2OCT
from treewright.models.s2oct.search.choice import LEEWAY, TreePool
from treewright.optimize.conduct import Conduct
from treewright.optimize.course import Outcome
from treewright.optimize.record import FitRecord, FitStatus, named_trace
from treewright.solvers import get_solver
from treewright.tree import Tree, predict_labels

# Labels of class 1 at 3 and of class 0 at 7 are on the wrong side of any split that has 0 and 10 right.
X = np.array([[0.0], [10.0], [3.0], [7.0], [2.0], [4.0], [6.0], [8.0]])
Y = np.array([0, 1, 1, 0, -1, -1, -1, -1])
TOTALS = PointTotals(np.ones((4, 1)), [[0, 0]], [[4, 4]])


def stump(threshold: float, scale: float = 1.0) -> Tree:
    return Tree.stump([scale], scale * threshold, [[1.0, 0.0], [0.0, 1.0]])


def ended(status: FitStatus, starts: list[Tree], prefer: str = "taught"):
    """Trees of two thresholds whose objectives differ by less than the leeway; the worse one is as the teacher says."""
    model = S2OCT(X, Y, np.ones(len(X)), TOTALS, depth=1, margin_rule="tolerance", max_coefficient=5.0)
    better, worse = (model.repair(stump(threshold)) for threshold in (5.0, 8.25))
    least, most = model.objective(better), model.objective(worse)
    assert 0 < least < most <= (1 + LEEWAY) * least
    pool = TreePool(taught=predict_labels(worse, X[4:]))
    for tree in (better, worse):
        pool.add(model, tree, model.objective(tree))
    search = _Search(model, starts, 1, None, Conduct(solver=get_solver("highs")), pool)
    record = FitRecord(status, "ended", 0.0, least, 0.0, named_trace([], "seconds"), 1e-4)
    outcome, _, labels = _chosen(model, Outcome(better, record), search, S2OCTClassifier(prefer=prefer))
    assert labels.tolist() == predict_labels(outcome.solution, X[4:]).tolist()
    assert outcome.record.objective == pytest.approx(model.objective(outcome.solution))
    return outcome, least, most


def test_a_tree_that_agrees_more_is_taken_where_nothing_is_proven_and_the_least_objective_is_told():
    outcome, least, most = ended(FitStatus.TIME_LIMIT, [])
    assert outcome.record.objective == pytest.approx(most)
    assert f"{least:.4g}" in outcome.record.reason and "prefer='first'" in outcome.record.reason


@pytest.mark.parametrize(
    ("status", "starts", "prefer"),
    [
        (FitStatus.OPTIMAL, [], "taught"),
        (FitStatus.TIME_LIMIT, [stump(5.0)], "taught"),  # not worse than what the user began with
        (FitStatus.TIME_LIMIT, [], "first"),
    ],
)
def test_the_least_objective_is_taken_where_it_counts(status, starts, prefer):
    outcome, least, _ = ended(status, starts, prefer)
    assert outcome.record.objective == pytest.approx(least)
    assert outcome.record.reason == "ended"


@pytest.mark.parametrize("n_classes", [2, 3])
def test_a_fit_is_not_worse_than_the_one_it_begins_with(n_classes):
    rng = np.random.default_rng(n_classes)
    features, groups = rng.normal(size=(160, 3)).round(1), rng.integers(0, 2, 160)
    y = np.where(np.arange(160) < 60, rng.integers(0, n_classes, 160), -1)  # noise: no tree is right
    totals = {
        group: {k: int(n) for k, n in enumerate(np.bincount(np.arange(np.sum(groups[60:] == group)) % n_classes))}
        for group in (0, 1)
    }
    given = {"max_split_features": None, "max_depth": 2, "random_state": 0}
    first = S2OCTClassifier(**given, time_limit=0.8, prefer="first").fit(features, y, totals=totals, groups=groups)
    assert first.objective_ > 0
    again = S2OCTClassifier(**given, time_limit=0.4, warm_start=first).fit(features, y, totals=totals, groups=groups)
    assert again.objective_ <= first.objective_ * (1 + 1e-6)
