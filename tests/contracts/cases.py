"""The models that the contract tests run over. A new model joins by one more entry in CASES."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from tests.contracts.brute_force import best_oct_h, best_s2oct
from treewright import OCTHClassifier, S2OCTClassifier
from treewright.data import PointTotals
from treewright.formulations import OCTH, S2OCT, TreeFormulation

SOLVERS = ["highs", "scip", "gurobi"]
"""A missing HiGHS or SCIP fails here; Gurobi's instances are inside its free limit."""


@dataclass(frozen=True)
class Case:
    """A model as the contracts see it.

    Attributes
    ----------
    tiny : callable
        Seed to a formulation small enough for brute force.
    small : callable
        Seed to a formulation that a solver closes in seconds.
    optimum : callable
        TreeFormulation to its optimum, by brute force that shares no code with the package.
    estimator : callable or None
        Keyword parameters to an unfitted estimator; promises about estimators pass over a model without one.
    """

    name: str
    tiny: Callable[[int], TreeFormulation]
    small: Callable[[int], TreeFormulation]
    optimum: Callable[[Any], float]
    estimator: Callable[..., Any] | None = None


def _oct_h(n: int, p: int, n_classes: int, sized: bool = False, **settings: Any) -> Callable[[int], OCTH]:
    """Points on a grid, some of them twice; `sized` ones stand for one to four rows each."""

    def make(seed: int) -> OCTH:
        rng = np.random.default_rng(seed)
        X = rng.integers(0, 6, (n, p)) / 5.0
        X[0], X[1] = 0.0, 1.0
        y = rng.integers(0, n_classes, n)
        y[:n_classes] = np.arange(n_classes)
        weight = rng.integers(1, 4, n).astype(float)
        size = rng.integers(1, 5, n).astype(float) if sized else None
        return OCTH(X, y, weight, n_classes=n_classes, size=size, **settings)

    return make


def _s2oct(
    n_labelled: int, n_unlabelled: int, n_classes: int = 2, n_groups: int = 1, slack: int = 0, **settings: Any
) -> Callable[[int], S2OCT]:
    """Points on a grid; totals are those of random classes, `slack` to either side."""

    def make(seed: int) -> S2OCT:
        rng = np.random.default_rng(seed)
        n = n_labelled + n_unlabelled
        X = rng.integers(-4, 5, (n, 2)).astype(float)
        y = np.full(n, -1)
        y[:n_labelled] = rng.permutation(np.arange(n_labelled) % n_classes)
        weight = rng.integers(1, 4, n) / 2.0
        size = np.zeros((n, n_groups), dtype=int)
        size[np.arange(n_labelled, n), rng.integers(0, n_groups, n_unlabelled)] = rng.integers(1, 3, n_unlabelled)
        truth = rng.integers(0, n_classes, n)
        counts = np.stack([size[truth == k].sum(axis=0) for k in range(n_classes)], axis=1)
        low, high = np.maximum(counts - slack, 0), counts + slack
        totals = PointTotals(size[n_labelled:], low, high)
        return S2OCT(X, y, weight, totals, **({"max_coefficient": 1.5} | settings))

    return make


CASES = [
    Case(
        name="oct-h",
        tiny=_oct_h(7, 2, 2, depth=2, margin=0.05),
        small=_oct_h(14, 2, 3, depth=2),
        optimum=best_oct_h,
        estimator=lambda **kw: OCTHClassifier(**({"max_depth": 2} | kw)),
    ),
    Case(
        name="oct-h-priced",
        tiny=_oct_h(6, 2, 3, depth=2, complexity=0.11, min_leaf=2.0, margin=0.05),
        small=_oct_h(12, 2, 2, depth=2, complexity=0.02, min_leaf=3.0),
        optimum=best_oct_h,
        estimator=lambda **kw: OCTHClassifier(**({"max_depth": 2, "complexity": 0.02, "min_samples_leaf": 0.05} | kw)),
    ),
    Case(
        name="oct-h-sized",
        tiny=_oct_h(7, 1, 3, depth=2, min_leaf=4.0, margin=0.05, sized=True),
        small=_oct_h(14, 2, 2, depth=2, min_leaf=6.0, sized=True),
        optimum=best_oct_h,
    ),
    Case(
        name="oct-h-stump",
        tiny=_oct_h(8, 2, 3, depth=1, margin=0.05),
        small=_oct_h(20, 3, 2, depth=1),
        optimum=best_oct_h,
        estimator=lambda **kw: OCTHClassifier(**({"max_depth": 1} | kw)),
    ),
    Case(
        name="s2oct-stump",
        tiny=_s2oct(6, 6, depth=1),
        small=_s2oct(12, 12, depth=1),
        optimum=best_s2oct,
    ),
    Case(
        name="s2oct-everywhere",
        tiny=_s2oct(5, 3, depth=2, margin_rule="paper", max_coefficient=0.5),
        small=_s2oct(6, 6, depth=2, margin_rule="paper", max_coefficient=10.0),
        optimum=best_s2oct,
        estimator=lambda **kw: S2OCTClassifier(**({"max_depth": 2, "margin_rule": "paper"} | kw)),
    ),
    Case(
        name="s2oct-reached",
        tiny=_s2oct(5, 3, depth=2, margin_rule="reached", max_coefficient=0.4),
        small=_s2oct(6, 6, depth=2, margin_rule="reached"),
        optimum=best_s2oct,
    ),
    Case(
        name="s2oct-tolerance",
        tiny=_s2oct(5, 3, depth=2, margin_rule="tolerance", max_coefficient=0.4, penalty=0.3),
        small=_s2oct(6, 6, depth=2, margin_rule="tolerance", tolerance=0.01),
        optimum=best_s2oct,
        estimator=lambda **kw: S2OCTClassifier(**({"max_depth": 2} | kw)),
    ),
    Case(
        name="s2oct-groups",
        tiny=_s2oct(3, 4, n_groups=2, slack=1, depth=2, margin_rule="reached", penalty=2.0, max_coefficient=0.2),
        small=_s2oct(5, 7, n_groups=2, slack=1, depth=2, margin_rule="reached"),
        optimum=best_s2oct,
    ),
    Case(
        name="s2oct-classes",
        tiny=_s2oct(4, 3, n_classes=3, depth=2, margin_rule="reached", max_coefficient=0.7),
        small=_s2oct(6, 5, n_classes=3, depth=2, margin_rule="reached"),
        optimum=best_s2oct,
    ),
    Case(
        name="s2oct-printed",
        tiny=_s2oct(5, 3, depth=2, formulation="paper", max_coefficient=0.5),
        small=_s2oct(5, 5, depth=2, formulation="paper"),
        optimum=best_s2oct,
    ),
]
