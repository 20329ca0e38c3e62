"""Defects that were found by reading and by use, each with the smallest fit that shows it."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from tests.clock import within
from tests.contracts import measures
from tests.contracts.estimators import s2oct_measure, unlabelled
from tests.contracts.inside import (
    Budget,
    GapPoints,
    Incumbent,
    PointTotals,
    Teacher,
    grown_gap_tree,
    search_s2oct,
    structure,
)
from tests.contracts.test_matrix import check_labels_and_totals, check_proof
from tests.examples import looped
from treewright import LapTAOClassifier, OCTHClassifier, S2OCTClassifier, Tree
from treewright.exceptions import TreewrightError
from treewright.models.oct_h.objective import OCTH
from treewright.models.s2oct.objective import S2OCT


def fitted(data: dict[str, Any], **parameters: Any) -> S2OCTClassifier:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        settings = {"time_limit": 2.0, "random_state": 0, "max_split_features": None}
        return S2OCTClassifier(**(settings | parameters)).fit(**data)


def check_honest(model: S2OCTClassifier, data: dict[str, Any]) -> None:
    """Totals, proof and objective are those of the fitted tree."""
    check_labels_and_totals(model, data)
    check_proof(model)
    assert model.objective_ == pytest.approx(s2oct_measure(model, data), rel=1e-6, abs=1e-6)


# ---------------------------------------------------------------------- crashes and refusals


@pytest.mark.usefixtures("shortest_searches")
@pytest.mark.parametrize("n_classes", [2, 3])
def test_rows_equal_in_features_but_not_in_group_are_counted_in_their_own_groups(n_classes):
    X = np.repeat(np.arange(8.0), 4)[:, None]
    y = np.full(32, -1)
    y[[0, 12, 28]] = [0, 1, n_classes - 1]
    groups = np.where(np.arange(32) % 2 == 0, "a", "b")
    counts = {"a": [0] * n_classes, "b": [0] * n_classes}
    for i in np.flatnonzero(y < 0):
        counts[groups[i]][min(int(X[i, 0]) // 3, n_classes - 1)] += 1
    data = {"X": X, "y": y, "groups": groups, "totals": {g: dict(enumerate(part)) for g, part in counts.items()}}
    for size in (None, "auto", 1):
        model = fitted(data, max_depth=2, time_limit=10.0, max_split_features=size)
        check_honest(model, data)
        assert model.objective_ == 0.0  # two thresholds do it


@pytest.mark.usefixtures("shortest_searches")
@looped("margin", ["tolerance", "reached", "paper"])
@looped("total", [0, 3, 7])
def test_labels_of_one_class(margin, total):
    data = {"X": np.arange(8.0)[:, None], "y": np.array([0] + [-1] * 7), "totals": {1: total}}
    for size in (None, "auto"):
        model = fitted(data | {"allow_new_classes": True}, margin_rule=margin, max_split_features=size)
        check_honest(model, data)
        assert model.objective_ == 0.0


@pytest.mark.usefixtures("shortest_searches")
@pytest.mark.parametrize("size", [None, "auto"])
@pytest.mark.parametrize("n_classes", [5, 8, 20])
def test_a_depth_that_is_left_open_has_a_leaf_for_every_class(n_classes, size):
    X = np.repeat(np.arange(n_classes, dtype=float), 4)[:, None] * 3 + np.tile([0.0, 0.1, 0.2, 0.3], n_classes)[:, None]
    truth = np.repeat(np.arange(n_classes), 4)
    data = {"X": X, "y": np.where(np.arange(4 * n_classes) % 4 == 0, truth, -1)}
    model = fitted(data, max_split_features=size)
    reached = set(model.tree_.labels[measures.reached_leaves(model.tree_, X)].tolist())
    assert 2**model.tree_.depth >= n_classes
    # Twenty classes are not refused, but the search may leave some of them without a leaf that is reached.
    assert reached == set(range(n_classes)) if n_classes <= 8 else len(reached) > n_classes // 2


# ---------------------------------------------------------------------- the objective is that of the tree


def tiny(seed: int) -> dict[str, Any]:
    """Few rows on few places, so that labels contradict each other and splits are not needed where they stand."""
    rng = np.random.default_rng(seed)
    labelled, hidden, k = int(rng.integers(2, 6)), int(rng.integers(1, 6)), int(rng.integers(2, 4))
    n = labelled + hidden
    X = rng.integers(0, 4, (n, int(rng.integers(1, 3)))).astype(float)
    y = np.concatenate([np.arange(labelled) % k, np.full(hidden, -1)])
    return {"X": X, "y": y, "totals": {1: int(rng.choice([0, hidden, rng.integers(0, hidden + 1)]))}}


@pytest.mark.usefixtures("shortest_searches")
def test_the_objective_of_four_rows_is_that_of_their_tree():
    data = {"X": np.array([[0.0], [0], [5], [6]]), "y": np.array([0, 1, -1, -1]), "totals": {1: 0}}
    model = fitted(data)
    check_honest(model, data)
    assert (model.objective_, model.status_) == (pytest.approx(2.0), "optimal")


@pytest.mark.usefixtures("shortest_searches")
@pytest.mark.parametrize("size", [None, "auto"])
@pytest.mark.parametrize("block", range(8))
def test_the_objective_of_tiny_tables_is_that_of_their_trees(block, size):
    wrong = []
    for seed in range(5 * block, 5 * block + 5):
        data = tiny(seed)
        model = fitted(data, time_limit=0.1 if block < 2 else 0.01, max_split_features=size)
        if model.objective_ != pytest.approx(s2oct_measure(model, data), rel=1e-6, abs=1e-6):
            wrong.append((seed, model.objective_, s2oct_measure(model, data)))
    assert wrong == []


@pytest.mark.usefixtures("shortest_searches")
def test_a_committee_of_one_tree_says_what_the_tree_says():
    alone = 0
    for seed in range(6):
        rng = np.random.default_rng(seed)
        X, y = rng.normal(size=(60, 2)), np.full(60, -1)
        y[:24] = rng.integers(0, 2, 24)
        data = {"X": X, "y": y, "totals": {1: 12}}
        model = fitted(data, n_estimators=5, max_depth=2, time_limit=0.2, random_state=seed)
        hidden = unlabelled(data)
        check_labels_and_totals(model, data)
        if len(model.trees_) == 1:
            alone += 1
            assert np.array_equal(model.transduction_[hidden], model.predict(X)[hidden])
            assert model.objective_ == pytest.approx(s2oct_measure(model, data), rel=1e-6)
    assert alone > 0


# ---------------------------------------------------------------------- time


def many(n: int, p: int, n_classes: int, labelled: int, n_groups: int = 1) -> dict[str, Any]:
    """Noisy classes by the level of a direction, with their true totals in each group."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, p))
    level = X @ rng.normal(size=p) + 0.5 * rng.normal(size=n)
    truth = np.digitize(level, np.quantile(level, np.arange(1, n_classes) / n_classes))
    truth[:n_classes] = np.arange(n_classes)
    y = np.where(np.arange(n) < labelled, truth, -1)
    data: dict[str, Any] = {"X": X, "y": y}
    groups = rng.integers(0, n_groups, n)
    count = np.zeros((n_groups, n_classes), dtype=int)
    np.add.at(count, (groups[y < 0], truth[y < 0]), 1)
    if n_groups == 1:
        return data | {"totals": dict(enumerate(count[0].tolist()))}
    present = np.unique(groups[y < 0]).tolist()
    return data | {"groups": groups, "totals": {g: dict(enumerate(count[g].tolist())) for g in present}}


def repeated(data: dict[str, Any]) -> dict[str, Any]:
    """The same rows with those of the first half once more in the second, which are of other groups."""
    half = len(data["X"]) // 2
    data["X"][half:] = data["X"][:half]
    return data


BROKEN_LIMITS = {
    "rows": (0.4, many(20_000, 6, 3, labelled=100), {}),
    "classes": (0.2, many(1500, 4, 150, labelled=450), {"max_depth": 8}),
    "groups": (0.2, many(12_000, 4, 2, labelled=100, n_groups=6000), {}),
    "repeated rows": (0.05, repeated(many(50_000, 10, 8, labelled=300, n_groups=7)), {}),
    "features": (0.2, many(60, 10_000, 2, labelled=30), {}),
}


@pytest.mark.parametrize("size", [None, "auto"])
@pytest.mark.parametrize("name", list(BROKEN_LIMITS))
def test_a_time_limit_is_kept_however_many_there_are(name, size):
    limit, data, parameters = BROKEN_LIMITS[name]
    if name == "features" and size is None:
        parameters = {"margin_rule": "paper"}
    with within(limit + 2.5):
        model = fitted(data, time_limit=limit, max_split_features=size, **parameters)
    check_labels_and_totals(model, data)
    check_proof(model)
    if name == "rows":  # totals are a third of the rows in each class, and no class is left without any
        assert min(row["reached"] for row in model.totals_) > 0


# ---------------------------------------------------------------------- categories


def by_category(table: list[bool]) -> Tree:
    """A stump that sends some codes of the first feature left, to class 0."""
    return Tree(
        left=[1, -1, -1],
        right=[2, -1, -1],
        weights=np.zeros((3, 2)),
        threshold=np.zeros(3),
        values=[[4.0, 4.0], [4.0, 0.0], [0.0, 4.0]],
        labels=[0, 0, 1],
        category=[0, -1, -1],
        left_categories=[table, [False] * len(table), [False] * len(table)],
    )


CODES = np.column_stack([np.tile([0.0, 1.0], 6), np.repeat([0.0, 1.0, 0.5], 4)])
"""Two codes, and a feature that says nothing."""


@pytest.mark.parametrize("kind", [OCTHClassifier, S2OCTClassifier])
@pytest.mark.parametrize("table", [[True, False], [False, True]])
def test_a_warm_start_by_categories_is_refused_or_kept(kind, table):
    y = (CODES[:, 0] == table[0]).astype(int)  # what the tree says
    model = kind(max_depth=1, warm_start=by_category(table), time_limit=1e-3, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        try:
            model.fit(CODES, y)
        except TreewrightError as error:
            assert "categor" in str(error)
        else:
            assert model.objective_ == 0.0


def formulations() -> dict[str, Any]:
    y = (CODES[:, 0] == 0).astype(int)
    nothing = PointTotals(np.zeros((0, 1), dtype=int), [[0, 0]], [[0, 0]])
    return {
        "oct-h": OCTH(CODES, y, np.ones(len(y)), n_classes=2, depth=1),
        "s2oct": S2OCT(CODES, y, np.ones(len(y)), nothing, depth=1, max_coefficient=10.0),
    }


@pytest.mark.parametrize("name", ["oct-h", "s2oct"])
def test_no_formulation_drops_categories_in_silence(name):
    model = formulations()[name]
    try:
        repaired = model.repair(by_category([False, True]))
    except TreewrightError as error:
        assert "categor" in str(error)
    else:
        assert model.objective(repaired) == 0.0


# ---------------------------------------------------------------------- which of the best trees


def pool_of(prefer: str, seed: int) -> tuple[S2OCTClassifier, np.ndarray]:
    """A fit whose committee is the whole pool, the preferred tree first, and the unlabelled rows."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(36, 2)) * 10.0  # inside [-100, 100], so distances are those of the data
    truth = (X[:, 0] * X[:, 1] > 0).astype(int)
    y = np.where(np.arange(36) < 10, truth, -1)
    data = {"X": X, "y": y, "totals": {1: int(truth[10:].sum())}}
    model = fitted(data, max_depth=2, prefer=prefer, n_estimators=100, time_limit=60.0, random_state=seed)
    assert model.status_ == "optimal" and len(model.trees_) > 3
    return model, X[10:]


@pytest.mark.usefixtures("shortest_searches")
@pytest.mark.parametrize("seed", [0, 1, 3])
def test_the_preferred_margin_is_the_widest_on_the_ways_of_the_rows(seed):
    model, hidden = pool_of("margin", seed)
    margins = [measures.way_margin(tree, hidden) for tree in model.trees_]
    assert max(margins) > min(margins)
    assert margins[0] == pytest.approx(max(margins), rel=1e-9)


@pytest.mark.usefixtures("shortest_searches")
@pytest.mark.parametrize("seed", [0, 1])
def test_the_sparse_tree_has_the_fewest_features(seed):
    model, _ = pool_of("sparse", seed)
    features = [np.count_nonzero(tree.weights[tree.left >= 0]) for tree in model.trees_]
    assert features[0] == min(features)


@pytest.mark.usefixtures("shortest_searches")
@pytest.mark.parametrize("seed", [0, 1])
def test_the_typical_tree_agrees_most_with_the_others(seed):
    """The guide has half a vote, which it can lend a tree only where that differs from another one."""
    model, hidden = pool_of("typical", seed)
    labels = np.array([tree.labels[measures.reached_leaves(tree, hidden)] for tree in model.trees_])
    agreement = (labels[:, None] == labels[None]).sum(axis=(1, 2))
    for other in range(1, len(labels)):
        lent = 0.5 * np.sum(labels[0] != labels[other])
        assert agreement[0] >= agreement[other] - lent


def teacher_of_labels(teacher_points: Any, budget: Budget) -> Teacher:
    """Somebody who says the first half is of class 0."""
    table = np.eye(2)[(np.arange(len(teacher_points.hidden)) >= len(teacher_points.hidden) // 2).astype(int)]
    return Teacher.told(teacher_points, table, "labels")


def test_the_attempt_and_not_the_seed_chooses_how_a_tree_is_grown(monkeypatch):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(20, 2)) * 10, np.concatenate([np.arange(8) % 2, np.full(12, -1)])
    total = np.array([[6, 6]])
    totals = PointTotals(np.ones((12, 1)), total, total)
    model = S2OCT(X, y, np.ones(20), totals, depth=3, max_coefficient=2.0, margin_rule="reached")
    depths: list[int] = []

    def spy(tree: Tree, points: Any, depth: int, budget: Budget) -> Tree:
        depths.append(depth)
        return grown_gap_tree(tree, points, depth, budget)

    monkeypatch.setattr(structure, "grown_gap_tree", spy)
    seen = []
    for seed in range(2):
        depths.clear()
        search_s2oct(Incumbent(model), model, [], Budget(), teacher_of_labels, seed=seed, attempts=4)
        seen.append(tuple(depths))
    assert len(seen[0]) >= 4 and len(set(seen[0])) > 1  # attempts do differ
    assert len(set(seen)) == 1


# ---------------------------------------------------------------------- gaps, and warnings as errors


@pytest.mark.parametrize("seed", range(5))
def test_a_grown_split_keeps_the_gap_that_is_asked_for(seed):
    rng = np.random.default_rng(seed)
    X, y = rng.uniform(-1, 1, (60, 2)), rng.integers(0, 2, 60)
    start = Tree.leaf(np.bincount(y, minlength=2).astype(float), 2)
    tree = grown_gap_tree(start, GapPoints(X, y, np.ones(60), 2, gap=0.5), 3, Budget())
    at = {0: np.arange(60)}
    for node in range(tree.n_nodes):
        if tree.left[node] >= 0:
            level = X[at[node]] @ tree.weights[node] / np.abs(tree.weights[node]).sum()
            left = X[at[node]] @ tree.weights[node] <= tree.threshold[node]
            at[int(tree.left[node])], at[int(tree.right[node])] = at[node][left], at[node][~left]
            if left.any() and not left.all():
                assert level[~left].min() - level[left].max() >= 0.5 - 1e-9


@pytest.mark.usefixtures("shortest_searches")
@pytest.mark.parametrize("kind", [S2OCTClassifier, LapTAOClassifier])
def test_a_warning_taken_for_an_error_leaves_a_fit_whole(kind):
    """Either the last fit or the new one, never trees of one under the classes of the other."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 5))
    y = np.where(np.arange(120) < 60, rng.integers(0, 2, 120), -1)
    names = np.where(y < 0, -1, y + 10)
    model = kind(max_depth=2, time_limit=None, random_state=0, **({"max_iter": 1} if kind is LapTAOClassifier else {}))
    easy = np.where(np.arange(120) < 60, X[:, 0] > 0, -1).astype(int)
    model.fit(X, easy)
    model.set_params(time_limit=1e-4)
    with warnings.catch_warnings():
        warnings.simplefilter("error", ConvergenceWarning)
        with pytest.raises(ConvergenceWarning):
            model.fit(X[:, :4], names)
    width = model.n_features_in_
    label = model.predict(X[:, :width])
    assert set(label) <= set(model.classes_)
    assert set(model.classes_) == ({0, 1} if width == 5 else {10, 11})
    assert model.tree_.n_features == width and len(model.transduction_) == 120
    assert set(model.transduction_) <= set(model.classes_)
    assert model.status_ == ("time_limit" if width == 4 else model.status_)
    for tree in getattr(model, "trees_", []):
        assert tree.n_features == width
