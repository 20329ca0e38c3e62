"""All trees of one feature a split, against plain enumeration."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest
from sklearn.tree import DecisionTreeClassifier

from treewright.core.budget import Budget
from treewright.data import PointTotals
from treewright.models.s2oct.objective import S2OCT
from treewright.models.s2oct.search.data import Survey
from treewright.models.s2oct.search.one_feature import axis_trees
from treewright.models.s2oct.search.priced import priced_trees
from treewright.tree import Tree, predict_labels


def instance(
    seed: int, n_classes: int = 2, n_groups: int = 1, slack: int = 0, kept: bool = True, depth: int = 2
) -> tuple[S2OCT, np.ndarray]:
    """Points on a small grid, so that values repeat; totals of a random tree, or of nothing."""
    rng = np.random.default_rng(seed)
    n, n_known = 14, 4 + n_classes
    X = rng.integers(0, 6, (n, 2)).astype(float)
    f, g = rng.integers(0, 2, 2)
    truth = np.where(X[:, f] <= 2, np.where(X[:, g] <= 3, 0, n_classes - 1), rng.integers(0, n_classes))
    y = np.where(np.arange(n) < n_known, truth if kept else rng.integers(0, n_classes, n), -1)
    y[:n_classes] = np.arange(n_classes) if not kept else y[:n_classes]
    size = np.zeros((n - n_known, n_groups), dtype=int)
    size[np.arange(n - n_known), rng.integers(0, n_groups, n - n_known)] = rng.integers(1, 3, n - n_known)
    counts = PointTotals(size, np.zeros((n_groups, n_classes)), np.zeros((n_groups, n_classes))).counts(truth[n_known:])
    totals = PointTotals(size, np.maximum(counts - slack, 0), counts + slack)
    model = S2OCT(
        X, y, np.ones(n), totals, depth, max_coefficient=1e3, margin_rule="tolerance", max_split_features=1
    )  # fmt: skip
    return model, rng.integers(0, n_classes, n - n_known)


def sides(X: np.ndarray, here: np.ndarray) -> list[np.ndarray]:
    """Masks of the points on the left of each split of some points, both parts with one at least."""
    found = []
    for f in range(X.shape[1]):
        values = np.unique(X[here, f])
        found += [here & (X[:, f] <= v) for v in values[:-1]]
    return found


def most_agreement(model: S2OCT, taught: np.ndarray) -> int | None:
    """Rows in which the best tree agrees with the teacher, None if no tree is right in all labels and totals."""
    X, known, hidden, best = model.X, model.y >= 0, model.y < 0, None
    everything = np.ones(len(X), dtype=bool)

    def ways(here: np.ndarray) -> dict[Any, int]:
        found: dict[Any, int] = {}
        lefts = [here] + (sides(X, here) if model.depth > 1 else [])
        for left, labels in product(lefts, product(range(model.n_classes), repeat=2)):
            given = np.where(left, labels[0], labels[1])
            if np.any(given[here & known] != model.y[here & known]):
                continue
            rows = here[hidden]
            counts = np.zeros(model.totals.low.shape, dtype=int)
            for i in np.flatnonzero(rows):
                counts[:, given[hidden][i]] += model.totals.size.toarray()[i]
            gain = int(model.totals.rows[rows] @ (given[hidden] == taught)[rows])
            key = tuple(counts.ravel().tolist())
            found[key] = max(found.get(key, -1), gain)
        return found

    for root in sides(X, everything):
        left, right = ways(root), ways(everything & ~root)
        for (one, gain), (two, more) in product(left.items(), right.items()):
            counts = (np.array(one) + np.array(two)).reshape(model.totals.low.shape)
            if np.all(counts >= model.totals.low) and np.all(counts <= model.totals.high):
                best = gain + more if best is None else max(best, gain + more)
    return best


CASES = {
    "two classes": {},
    "three classes": {"n_classes": 3},
    "groups": {"n_groups": 3},
    "classes and groups": {"n_classes": 3, "n_groups": 2},
    "intervals": {"slack": 1},
    "labels at random": {"kept": False},
    "one split": {"depth": 1},
}


@pytest.mark.parametrize("name", list(CASES))
def test_the_best_of_all_trees_is_found(name):
    outcomes = set()
    for seed in range(8):
        model, taught = instance(seed, **CASES[name])
        expected, found = most_agreement(model, taught), axis_trees(Survey(model), taught, Budget())
        outcomes.add(expected is None)
        assert found is not None and found.none == (expected is None)
        if found.tree is not None:
            labels = predict_labels(found.tree, model.X[model.unlabelled])
            assert model.objective(found.tree) == 0.0
            assert model.keeps_margins(found.tree)
            assert model.totals.rows @ (labels == taught) == expected
    assert False in outcomes or name == "labels at random"


def test_margins_that_nothing_allows():
    """With weights of at most 1 labelled points one apart cannot have margins of 1, but their sides."""
    X, y = np.array([[0.0], [1.0], [0.2], [0.8]]), np.array([0, 1, -1, -1])
    totals = PointTotals(np.ones((2, 1)), [[1, 1]], [[1, 1]])
    model = S2OCT(X, y, np.ones(4), totals, 1, max_coefficient=1.0, margin_rule="tolerance", max_split_features=1)
    found = axis_trees(Survey(model), np.array([0, 1]), Budget())
    assert found is not None and not found.none and found.tree is not None
    assert predict_labels(found.tree, X).tolist() == [0, 1, 0, 1]
    assert model.objective(found.tree) == pytest.approx(1.0)


def test_groups_without_totals_are_free():
    X, y = np.arange(6.0)[:, None], np.array([0, -1, -1, -1, -1, 1])
    size = np.array([[1, 0], [0, 1], [1, 0], [0, 1]])
    totals = PointTotals(size, [[2, 0], [0, 0]], [[2, 0], [2, 2]])
    model = S2OCT(X, y, np.ones(6), totals, 1, max_coefficient=100.0, margin_rule="tolerance", max_split_features=1)
    found = axis_trees(Survey(model), np.array([0, 0, 0, 1]), Budget())
    assert found is not None and found.tree is not None
    assert predict_labels(found.tree, X).tolist() == [0, 0, 0, 0, 1, 1]


def test_too_many_tables_of_counts_are_left_alone():
    model, taught = instance(0)
    wide = PointTotals(np.full((8, 1), 100), [[100, 100]], [[700, 700]])
    model = S2OCT(model.X, model.y, model.weight, wide, 2, margin_rule="tolerance", max_split_features=1)
    assert axis_trees(Survey(model), taught, Budget()) is None


# ---------------------------------------------------------------------- trees at prices of classes


def priced(seed: int, n_classes: int, n_groups: int) -> tuple[Survey, np.ndarray, list[Tree]]:
    """Noisy classes on a line with groups, the teacher right about counts, and the trees that prices lead to."""
    rng = np.random.default_rng(seed)
    n, n_known = 200, 20
    X = rng.random((n, 3))
    truth = np.clip((n_classes * (0.7 * X[:, 0] + 0.3 * rng.random(n))).astype(int), 0, n_classes - 1)
    y = np.where(np.arange(n) < n_known, truth, -1)
    size = np.zeros((n - n_known, n_groups), dtype=int)
    size[np.arange(n - n_known), rng.integers(0, n_groups, n - n_known)] = 1
    counts = PointTotals(size, np.zeros((n_groups, n_classes)), np.zeros((n_groups, n_classes))).counts(truth[n_known:])
    model = S2OCT(X, y, np.ones(n), PointTotals(size, counts, counts), depth=2, max_split_features=1)
    survey = Survey(model)
    return survey, truth[n_known:], list(priced_trees(survey, truth[n_known:], 0, Budget(600.0)))


@pytest.mark.parametrize(("n_classes", "n_groups"), [(2, 1), (2, 2), (3, 1), (3, 2)])
def test_prices_lead_towards_the_totals(n_classes, n_groups):
    first = best = 0
    for seed in range(4):
        survey, _, trees = priced(seed, n_classes, n_groups)
        missed = [survey.totals.missed(predict_labels(tree, survey.hidden)) for tree in trees]
        first, best = first + missed[0], best + min(missed)
        assert all(np.count_nonzero(tree.weights, axis=1).max() <= 1 and tree.depth <= 2 for tree in trees)
    assert best < first


def test_the_first_priced_tree_is_the_best_for_what_was_taught():
    survey, taught, trees = priced(0, 2, 1)
    X, y = np.vstack([survey.X, survey.hidden]), np.concatenate([survey.y, taught])
    weight = np.where(np.arange(len(y)) < len(survey.y), 10.0, 1.0)
    wrong = predict_labels(trees[0], X) != y
    cart = DecisionTreeClassifier(max_depth=2, random_state=0).fit(X, y, weight)
    assert weight[wrong].sum() <= weight[cart.predict(X) != y].sum()
    roots = [X[:, f] <= v for f in range(3) for v in np.unique(X[:, f])[:-1]]
    best = min(sum(best_stump(X[part], y[part], weight[part]) for part in (left, ~left)) for left in roots[::7])
    assert weight[wrong].sum() <= best


def best_stump(X: np.ndarray, y: np.ndarray, weight: np.ndarray) -> float:
    """Least weight that one split of two classes has wrong."""
    least = min(weight[y == 0].sum(), weight[y == 1].sum())
    for f in range(X.shape[1]):
        order = np.argsort(X[:, f])
        signed = np.cumsum(np.where(y[order] == 1, weight[order], -weight[order]))
        for sign in (1, -1):  # ones on the left, ones on the right
            wrong = weight[y == (1 if sign > 0 else 0)].sum() - sign * signed
            least = min(least, float(wrong.min()))
    return least


def test_without_time_there_is_a_priced_tree_all_the_same():
    survey, taught, _ = priced(0, 2, 1)
    budget = Budget(60.0)
    budget.stop()
    assert len(list(priced_trees(survey, taught, 0, budget))) == 1
