"""Exact search for OCT against brute force, and its bounds wherever it is broken off."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from tests.contracts.brute_force_oct import best_oct
from tests.examples import looped

from treewright.core.budget import Budget
from treewright.models.oct.branch import Branching, _Cuts
from treewright.models.oct.objective import OCT
from treewright.models.oct.search import oct_block, oct_rules, search_oct
from treewright.optimize.incumbent import Incumbent
from treewright.tree import leaf_counts


def some_model(seed: int, depth: int | None = None) -> OCT:
    """Few points of all kinds: ties, equal rows, weights, sizes, categories, gaps, prices, leaves of a least size."""
    rng = np.random.default_rng(seed)
    n, p, n_classes = int(rng.integers(5, 13)), int(rng.integers(1, 4)), int(rng.integers(2, 4))
    X, n_levels = rng.integers(0, int(rng.integers(2, 7)), (n, p)).astype(float), None
    if rng.random() < 0.5:
        n_levels = np.zeros(p, dtype=int)
        n_levels[0] = rng.integers(2, 10)
        X[:, 0] = rng.integers(0, n_levels[0], n)
    X[rng.random(X.shape) < rng.choice([0.0, 0.2])] = np.nan
    y = rng.integers(0, n_classes, n)
    y[:n_classes] = np.arange(n_classes)
    weight = [np.ones(n), rng.integers(1, 4, n).astype(float), rng.random(n) + 0.1][int(rng.integers(3))]
    return OCT(
        X,
        y,
        weight,
        n_classes,
        depth=int(rng.integers(1, 4 if n < 9 else 3)) if depth is None else depth,
        complexity=float(rng.choice([0.0, 0.05, 0.2])),
        min_leaf=float(rng.choice([1, 2, 4])),
        size=rng.integers(1, 4, n).astype(float),
        n_levels=n_levels,
    )


@looped("seed", range(60))
def test_the_tree_is_as_good_as_brute_force_and_proven(seed):
    model = some_model(seed)
    best = Incumbent(model)
    search_oct(best, model, [], Budget(60.0))
    assert best.objective == pytest.approx(best_oct(model), abs=1e-9)
    assert best.floor == pytest.approx(best.objective, abs=1e-9)
    tree = best.solution
    rows = leaf_counts(tree, model.X, np.zeros(len(model.X), int), model.sizes, 1)[tree.is_leaf, 0]
    assert tree.depth <= model.depth and (tree.n_nodes == 1 or rows.min() >= model.min_leaf)


class Counted(Budget):
    """Over after it was asked so many times."""

    questions = 0

    @property
    def over(self) -> bool:
        self.questions -= 1
        return self.questions < 0

    def share(self, fraction: float) -> Budget:
        return self


@cache
def optimum_of(seed: int) -> float:
    return best_oct(some_model(seed, depth=3))


@looped("questions", [0, 1, 2, 3, 5, 8, 13, 21])
def test_bounds_hold_wherever_the_search_is_broken_off(questions):
    for seed in range(4):
        model = some_model(seed, depth=3)
        best, budget = Incumbent(model, floor=0.0), Counted(None)
        budget.questions = questions
        search_oct(best, model, [], budget)
        optimum = optimum_of(seed)
        assert best.floor <= optimum + 1e-9 <= best.objective + 2e-9


@pytest.mark.parametrize("share", [1e-12, 1e-4, 1.0])
def test_a_first_look_at_all_columns_loses_no_tree_and_no_bound(monkeypatch, share):
    """Before any other cut, and so short that cuts are given up at once, after a while or not at all."""
    rng = np.random.default_rng(3)
    for n_classes in (2, 3):
        X, y = rng.integers(0, 9, (60, 3)).astype(float), rng.integers(0, n_classes, 60)
        model = OCT(X, y, np.ones(60), n_classes, depth=4, complexity=0.01)
        whole = Branching(oct_rules(model), Budget(None)).solve(oct_block(model), 4, np.inf)
        monkeypatch.setattr("treewright.models.oct.branch._SKETCH_AFTER", 0.0)
        monkeypatch.setattr("treewright.models.oct.branch._SKETCH_SHARE", share)
        looked = []
        sketch = _Cuts._sketch
        monkeypatch.setattr(_Cuts, "_sketch", lambda self, run=sketch, seen=looked: (seen.append(1), run(self)))
        answer = Branching(oct_rules(model), Budget(600.0)).solve(oct_block(model), 4, np.inf, first=True)
        assert looked
        assert answer.cost == pytest.approx(whole.cost, abs=1e-9) == answer.floor
        monkeypatch.undo()


def test_compiled_work_that_ends_early_goes_on_where_it_was(monkeypatch):
    rng = np.random.default_rng(0)
    X, y = rng.random((60, 4)), rng.integers(0, 3, 60)
    model = OCT(X, y, np.ones(60), 3, depth=2)
    whole = Branching(oct_rules(model), Budget(None)).solve(oct_block(model), 2, np.inf)
    monkeypatch.setattr("treewright.models.oct.branch._LIMIT", 1.0)
    steps = Branching(oct_rules(model), Budget(None)).solve(oct_block(model), 2, np.inf)
    assert steps.plan == whole.plan and steps.cost == whole.cost
    assert np.array_equal(steps.bounds, whole.bounds)


def test_bounds_by_column_are_below_what_trees_with_it_at_the_root_cost():
    rng = np.random.default_rng(1)
    X, y = rng.integers(0, 6, (12, 3)).astype(float), rng.integers(0, 2, 12)
    model = OCT(X, y, np.ones(12), 2, depth=2)
    answer = Branching(oct_rules(model), Budget(None)).solve(oct_block(model), 2, np.inf)
    for j in range(3):
        parts = [best_of_parts(model, X[:, j] <= value) for value in np.unique(X[:, j])[:-1]]
        assert answer.bounds[j] <= min(parts) + 1e-9


def best_of_parts(model: OCT, left: np.ndarray) -> float:
    """Errors of the best single splits of two parts."""
    total = 0.0
    for part in (left, ~left):
        y = model.y[part]
        whole = min(y.sum(), len(y) - y.sum())
        if len(np.unique(y)) == 2:
            one = OCT(model.X[part], y, np.ones(len(y)), 2, depth=1)
            whole = best_oct(one) * one.baseline
        total += whole
    return float(total)
