"""The models that the contract tests run over. A new model joins by one more entry in CASES."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from tests.contracts.brute_force import best_oct_h
from treewright import OCTHClassifier
from treewright.formulations import OCTH, Formulation

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
        Formulation to its optimum, by brute force that shares no code with the package.
    estimator : callable
        Keyword parameters to an unfitted estimator.
    """

    name: str
    tiny: Callable[[int], Formulation]
    small: Callable[[int], Formulation]
    optimum: Callable[[Any], float]
    estimator: Callable[..., Any]


def _oct_h(n: int, p: int, n_classes: int, **settings: Any) -> Callable[[int], OCTH]:
    def make(seed: int) -> OCTH:
        rng = np.random.default_rng(seed)
        X = rng.integers(0, 6, (n, p)) / 5.0
        X[0], X[1] = 0.0, 1.0
        y = rng.integers(0, n_classes, n)
        y[:n_classes] = np.arange(n_classes)
        weight = rng.integers(1, 4, n).astype(float)
        return OCTH(X, y, weight, n_classes=n_classes, **settings)

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
        name="oct-h-stump",
        tiny=_oct_h(8, 2, 3, depth=1, margin=0.05),
        small=_oct_h(20, 3, 2, depth=1),
        optimum=best_oct_h,
        estimator=lambda **kw: OCTHClassifier(**({"max_depth": 1} | kw)),
    ),
]
