"""Promise 5 of TotalsClassifier: no labels within the totals have a larger sum of scores."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin

from tests.contracts.brute_force import best_labels, best_labels_by_linear_program
from tests.examples import looped
from treewright import TotalsClassifier


class Columns(ClassifierMixin, BaseEstimator):
    """Classifier whose features are the probabilities of the classes."""

    def fit(self, X: np.ndarray, y: np.ndarray) -> Columns:
        self.classes_ = np.unique(y)
        return self

    def predict_proba(self, X: np.ndarray) -> np.ndarray:
        return X

    def predict(self, X: np.ndarray) -> np.ndarray:
        return self.classes_[X.argmax(axis=1)]


def table(seed: int, n: int, k: int, n_groups: int, kind: str) -> dict[str, Any]:
    """Random probabilities, some rows of them equal, and totals of random labels, by group."""
    rng = np.random.default_rng(seed)
    P = rng.dirichlet(np.ones(k), n)
    P[n // 2 : n // 2 + n // 4] = P[: n // 4]  # equal rows, in the same group or in others
    P = (P + 1e-3) / (1 + k * 1e-3)
    groups = rng.integers(0, n_groups, n)
    low, high = np.zeros((2, n_groups, k), dtype=int)
    for g in range(n_groups):
        rows = int(np.sum(groups == g))
        count = rng.multinomial(rows, rng.dirichlet(np.ones(k)))
        wide = kind == "intervals"
        low[g] = np.maximum(count - 1, 0) if wide else count
        high[g] = np.minimum(count + rng.integers(0, 3, k), rows) if wide else count
    return {"P": P, "groups": groups, "low": low, "high": high}


def fitted(case: dict[str, Any]) -> tuple[np.ndarray, np.ndarray]:
    """Labels of the rows, and their scores."""
    P, k = case["P"], case["P"].shape[1]
    X = np.vstack([np.eye(k) * 0.5 + 0.5 / k, P])
    y = np.concatenate([np.arange(k), np.full(len(P), -1)])
    groups = np.concatenate([np.zeros(k, dtype=int), case["groups"]])
    totals = {
        g: {c: (int(case["low"][g, c]), int(case["high"][g, c])) for c in range(k)}
        for g in np.unique(case["groups"]).tolist()
    }
    model = TotalsClassifier(Columns(), random_state=0).fit(X, y, totals=totals, groups=groups)
    return model.transduction_[k:], np.log(P)


def check_best(case: dict[str, Any], best: Any) -> None:
    labels, scores = fitted(case)
    for g in np.unique(case["groups"]):
        inside = case["groups"] == g
        count = np.bincount(labels[inside], minlength=scores.shape[1])
        assert np.all(count >= case["low"][g]) and np.all(count <= case["high"][g])
        reached = scores[inside][np.arange(inside.sum()), labels[inside]].sum()
        assert reached == pytest.approx(best(scores[inside], case["low"][g], case["high"][g]), abs=1e-7)


@pytest.mark.parametrize("kind", ["exact", "intervals"])
@looped("seed", range(4))
@pytest.mark.parametrize(("n", "k", "n_groups"), [(8, 2, 1), (6, 3, 1), (10, 3, 2), (10, 2, 3)])
def test_5_the_best_of_all_labels(n, k, n_groups, seed, kind):
    check_best(table(seed, n, k, n_groups, kind), best_labels)


@pytest.mark.parametrize("kind", ["exact", "intervals"])
@looped("seed", range(3))
@pytest.mark.parametrize(("n", "k", "n_groups"), [(60, 3, 1), (60, 4, 3), (80, 8, 2)])
def test_5_as_good_as_the_linear_program(n, k, n_groups, seed, kind):
    check_best(table(seed, n, k, n_groups, kind), best_labels_by_linear_program)


@pytest.mark.parametrize("kind", ["exact", "intervals"])
def test_the_oracles_agree(kind):
    case = table(9, 6, 3, 1, kind)
    arguments = np.log(case["P"]), case["low"][0], case["high"][0]
    assert best_labels(*arguments) == pytest.approx(best_labels_by_linear_program(*arguments), abs=1e-7)
