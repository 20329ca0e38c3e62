"""The formulations that the contract tests run over. A new model joins by one more entry in CASES."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from tests.contracts.brute_force import best_c2rf, best_oct_h, best_s2oct, best_s2oct_stump_of_one_feature, best_svm1odt
from tests.contracts.brute_force_axis import best_binoct, best_fair
from tests.contracts.brute_force_oct import best_oct
from tests.contracts.brute_force_octsvm import best_octsvm
from tests.contracts.oct import oct_model, random_oct_tree
from tests.contracts.octsvm import octsvm, random_svm_tree, svm_leaves_agree
from tests.contracts.svm1odt import random_mixed_tree, svm1odt
from treewright.data import PointTotals
from treewright.models.binoct.objective import BinOCT
from treewright.models.c2rf.objective import C2RF
from treewright.models.fair.objective import FairOCT
from treewright.models.oct_h.objective import OCTH
from treewright.models.octsvm.objective import RESVM
from treewright.models.s2oct.objective import S2OCT
from treewright.optimize.formulation import Formulation
from treewright.tree import Tree, route

SOLVERS = ["highs", "scip", "gurobi"]
"""A missing HiGHS or SCIP fails here; Gurobi's instances are inside its free limit."""


@dataclass(frozen=True)
class Case:
    """A formulation as the contracts see it.

    Attributes
    ----------
    tiny : callable
        Seed to a formulation small enough for brute force.
    small : callable
        Seed to a formulation that a solver closes in seconds.
    optimum : callable
        Formulation to its optimum, by brute force that shares no code with the package.
    random : callable
        Formulation and generator to a solution, most of which are not feasible as they are.
    agrees : callable
        Formulation and point of its program to whether the decoded solution does with every training point what the
        variables of the point say.
    """

    name: str
    tiny: Callable[[int], Formulation[Any]]
    small: Callable[[int], Formulation[Any]]
    optimum: Callable[[Any], float]
    random: Callable[[Any, np.random.Generator], Any]
    agrees: Callable[[Any, np.ndarray], bool]


# ---------------------------------------------------------------------- trees


def random_tree(model: Any, rng: np.random.Generator) -> Tree:
    """A tree with random splits, most of which no formulation would allow as they are."""
    n_branches, (n, p) = 2**model.depth - 1, model.X.shape
    weights = rng.normal(size=(n_branches, p)) * rng.integers(0, 2, (n_branches, p))
    threshold = np.einsum("ij,ij->i", weights, model.X[rng.integers(0, n, n_branches)])
    values = rng.random((2 * n_branches + 1, model.n_classes))
    return Tree.from_heap(np.ones(n_branches), weights, threshold, values, values.argmax(axis=1))


def leaves_agree(model: Any, x: np.ndarray) -> bool:
    """Whether the decoded tree sends every point to the leaf that the solution names.

    An unsplit node sends its points to its last leaf.
    """
    tree = model.decode(x)
    heap = np.array(tree.heap_numbers)[route(tree, model.X)]
    while np.any(heap < 2**model.depth):
        heap = np.where(heap < 2**model.depth, 2 * heap + 1, heap)
    return np.array_equal(heap, model.leaves_of(x))


def tree_case(name: str, tiny: Any, small: Any, optimum: Callable[[Any], float]) -> Case:
    return Case(name, tiny, small, optimum, random_tree, leaves_agree)


def mixed_case(name: str, tiny: Any, small: Any) -> Case:
    return Case(name, tiny, small, best_svm1odt, random_mixed_tree, leaves_agree)


def svm_case(name: str, tiny: Any, small: Any) -> Case:
    return Case(name, tiny, small, best_octsvm, random_svm_tree, svm_leaves_agree)


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


def _on_a_grid(n: int, p: int, n_classes: int, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Points of which some are equal, the values of a feature being 0, 1, 4, 9, ..., classes, weights."""
    rng = np.random.default_rng(seed)
    X, y = rng.integers(0, 5, (n, p)) ** 2.0, rng.integers(0, n_classes, n)
    y[:n_classes] = np.arange(n_classes)
    return X, y, rng.integers(1, 4, n).astype(float)


def _binoct(n: int, p: int, n_classes: int, depth: int) -> Callable[[int], BinOCT]:
    return lambda seed: BinOCT(*_on_a_grid(n, p, n_classes, seed), n_classes, depth)


def _fair(n: int, p: int, n_classes: int, n_protected: int = 1, **settings: Any) -> Callable[[int], FairOCT]:
    """Points whose weight belongs to several protected groups."""

    def make(seed: int) -> FairOCT:
        X, y, weight = _on_a_grid(n, p, n_classes, seed)
        protected = np.random.default_rng(seed + 100).multinomial(1, np.full(n_protected, 1 / n_protected), n)
        protected[:n_protected] = np.eye(n_protected)
        protected = protected * weight[:, None]
        protected[-1] += 1.0  # one of all groups
        return FairOCT(X, y, protected.sum(axis=1), n_classes, protected=protected, **settings)

    return make


def _s2oct(
    n_labelled: int,
    n_unlabelled: int,
    n_classes: int = 2,
    n_groups: int = 1,
    slack: int = 0,
    shared: bool = False,
    **settings: Any,
) -> Callable[[int], S2OCT]:
    """Points on a grid; totals are those of random classes, `slack` to either side.

    A `shared` point stands for rows of all groups: rows that are equal in their features are one point.
    """

    def make(seed: int) -> S2OCT:
        rng = np.random.default_rng(seed)
        n = n_labelled + n_unlabelled
        X = rng.integers(-4, 5, (n, 2)).astype(float)
        y = np.full(n, -1)
        y[:n_labelled] = rng.permutation(np.arange(n_labelled) % n_classes)
        weight = rng.integers(1, 4, n) / 2.0
        size = np.zeros((n, n_groups), dtype=int)
        size[np.arange(n_labelled, n), rng.integers(0, n_groups, n_unlabelled)] = rng.integers(1, 3, n_unlabelled)
        if shared:
            size[n_labelled:] = rng.integers(0, 3, (n_unlabelled, n_groups))
        truth = rng.integers(0, n_classes, n)
        counts = np.stack([size[truth == k].sum(axis=0) for k in range(n_classes)], axis=1)
        low, high = np.maximum(counts - slack, 0), counts + slack
        totals = PointTotals(size[n_labelled:], low, high)
        return S2OCT(X, y, weight, totals, **({"max_coefficient": 1.5} | settings))

    return make


# ---------------------------------------------------------------------- weights of an ensemble


def _c2rf(n_patterns: int, n_members: int, n_groups: int = 1, slack: int = 0, **settings: Any) -> Callable[[int], C2RF]:
    """Distinct patterns of votes that stand for one to five rows; totals are far from those of equal weights."""

    def make(seed: int) -> C2RF:
        rng = np.random.default_rng(seed)
        codes = rng.choice(2**n_members, n_patterns, replace=False)
        votes = 2 * ((codes[:, None] >> np.arange(n_members)) & 1) - 1
        size = rng.integers(0, 6, (n_patterns, n_groups))
        rows = size.sum(axis=0)
        middle = np.round(rows * rng.choice([0.1, 0.2, 0.8, 0.9], n_groups)).astype(int)
        counts = np.column_stack([rows - middle, middle])
        totals = PointTotals(size, np.maximum(counts - slack, 0), counts + slack)
        return C2RF(votes, totals, **({"most": 9.0} | settings))

    return make


def random_weights(model: Any, rng: np.random.Generator) -> np.ndarray:
    """Weights of which some are beyond the bounds; equal ones leave patterns tied."""
    weights = rng.choice([0.5, 1.0, 2.0, 3.0, 20.0], model.votes.shape[1])
    return np.ones_like(weights) if rng.random() < 0.2 else weights


def signs_agree(model: Any, x: np.ndarray) -> bool:
    """Whether the decoded weights give each pattern the sign that the solution says."""
    level = model.votes @ model.decode(x)
    said = model.fixed > 0
    said[model.free] = np.round(model.build().value(x, "z")) == 1
    return bool(np.all(level != 0.0)) and np.array_equal(level > 0, said)


def weights_case(name: str, tiny: Any, small: Any) -> Case:
    return Case(name, tiny, small, best_c2rf, random_weights, signs_agree)


def oct_case(name: str, tiny: Any, small: Any) -> Case:
    return Case(name, tiny, small, best_oct, random_oct_tree, leaves_agree)


CASES = [
    tree_case("oct-h", _oct_h(6, 2, 2, depth=2, margin=0.05), _oct_h(10, 2, 3, depth=2), best_oct_h),
    tree_case(
        "oct-h-priced",
        _oct_h(6, 2, 3, depth=2, complexity=0.11, min_leaf=2.0, margin=0.05),
        _oct_h(8, 2, 2, depth=2, complexity=0.02, min_leaf=3.0),
        best_oct_h,
    ),
    tree_case(
        "oct-h-sized",
        _oct_h(7, 1, 3, depth=2, min_leaf=4.0, margin=0.05, sized=True),
        _oct_h(9, 2, 2, depth=2, min_leaf=6.0, sized=True),
        best_oct_h,
    ),
    tree_case("oct-h-stump", _oct_h(7, 2, 3, depth=1, margin=0.05), _oct_h(12, 3, 2, depth=1), best_oct_h),
    tree_case(
        "oct-h-printed",
        _oct_h(6, 2, 2, depth=2, margin=0.05, formulation="paper"),
        _oct_h(8, 2, 2, depth=2, formulation="paper"),
        best_oct_h,
    ),
    tree_case(
        "oct-h-printed-priced",
        _oct_h(6, 2, 3, depth=2, complexity=0.11, min_leaf=2.0, margin=0.05, formulation="paper"),
        _oct_h(7, 2, 3, depth=2, complexity=0.05, min_leaf=3.0, formulation="paper"),
        best_oct_h,
    ),
    tree_case("binoct", _binoct(6, 2, 3, 2), _binoct(7, 2, 2, 2), best_binoct),
    tree_case("binoct-stump", _binoct(7, 2, 3, 1), _binoct(10, 3, 3, 1), best_binoct),
    tree_case(
        "fair-oct-priced",
        _fair(6, 2, 2, depth=2, complexity=0.04),
        _fair(9, 2, 2, depth=2, complexity=0.03),
        best_fair,
    ),
    tree_case(
        "fair-oct-groups",
        _fair(5, 2, 3, 2, depth=2, fairness_weight=0.15),
        _fair(6, 2, 2, 3, depth=2, complexity=0.02, fairness_weight=0.1),
        best_fair,
    ),
    oct_case("oct", oct_model(8, 2, 3), oct_model(10, 2, 2)),
    oct_case(
        "oct-priced",
        oct_model(7, 2, 2, complexity=0.11, min_leaf=4.0),
        oct_model(7, 2, 3, complexity=0.05, min_leaf=3.0),
    ),
    oct_case("oct-mixed", oct_model(8, 1, 2, levels=(4,), gaps=0.15), oct_model(8, 1, 2, levels=(8,), gaps=0.1)),
    tree_case("s2oct-stump", _s2oct(6, 6, depth=1), _s2oct(10, 10, depth=1), best_s2oct),
    tree_case(
        "s2oct-few",
        _s2oct(6, 6, depth=1, max_split_features=1),
        _s2oct(12, 12, depth=1, max_split_features=1),
        best_s2oct_stump_of_one_feature,
    ),
    tree_case(
        "s2oct-everywhere",
        _s2oct(5, 3, depth=2, margin_rule="paper", max_coefficient=0.5),
        _s2oct(5, 5, depth=2, margin_rule="paper", max_coefficient=10.0),
        best_s2oct,
    ),
    tree_case(
        "s2oct-reached",
        _s2oct(5, 3, depth=2, margin_rule="reached", max_coefficient=0.4),
        _s2oct(5, 5, depth=2, margin_rule="reached"),
        best_s2oct,
    ),
    tree_case(
        "s2oct-tolerance",
        _s2oct(5, 3, depth=2, margin_rule="tolerance", max_coefficient=0.4, penalty=0.3),
        _s2oct(5, 5, depth=2, margin_rule="tolerance", tolerance=0.01),
        best_s2oct,
    ),
    tree_case(
        "s2oct-groups",
        _s2oct(3, 4, n_groups=2, slack=1, depth=2, margin_rule="reached", penalty=2.0, max_coefficient=0.2),
        _s2oct(4, 6, n_groups=2, slack=1, depth=2, margin_rule="reached"),
        best_s2oct,
    ),
    tree_case(
        "s2oct-classes",
        _s2oct(4, 3, n_classes=3, depth=2, margin_rule="reached", max_coefficient=0.7),
        _s2oct(5, 4, n_classes=3, depth=2, margin_rule="reached"),
        best_s2oct,
    ),
    tree_case(
        "s2oct-classes-groups",
        _s2oct(
            3,
            3,
            n_classes=3,
            n_groups=2,
            shared=True,
            depth=2,
            margin_rule="tolerance",
            max_coefficient=0.4,
            penalty=0.7,
        ),
        _s2oct(4, 4, n_classes=3, n_groups=2, shared=True, slack=1, depth=2, margin_rule="tolerance", tolerance=0.01),
        best_s2oct,
    ),
    tree_case(
        "s2oct-printed",
        _s2oct(5, 3, depth=2, formulation="paper", max_coefficient=0.5),
        _s2oct(4, 4, depth=2, formulation="paper"),
        best_s2oct,
    ),
    mixed_case("svm1odt", svm1odt(6, 2), svm1odt(7, 2)),
    mixed_case(
        "svm1odt-mixed",
        svm1odt(6, 1, 2, levels=(3,), gaps=0.15, depth=1),
        svm1odt(10, 2, 2, levels=(3,), gaps=0.1, depth=1),
    ),
    svm_case("octsvm", octsvm(4, 2, twins=False, c1=20.0, c2=15.0, c3=1.0), octsvm(7, 2, c1=9.0, c2=9.0, c3=0.1)),
    svm_case(
        "octsvm-bounded",
        octsvm(5, 1, c2=0.7, margin_price=0.0, max_norm=4.0),
        octsvm(7, 2, c2=0.7, margin_price=0.0, max_norm=5.0),
    ),
    svm_case(
        "octsvm-l1",
        octsvm(4, 2, twins=False, c1=20.0, c2=45.0, norm="l1"),
        octsvm(7, 2, c1=9.0, c2=20.0, c3=0.3, norm="l1"),
    ),
    svm_case(
        "octsvm-linf",
        octsvm(8, 2, depth=0, c1=3.0, c2=4.0, norm="linf"),
        octsvm(12, 2, depth=0, c1=3.0, c2=4.0, c3=0.5, norm="linf"),
    ),
    svm_case("re-svm", octsvm(7, 2, RESVM, c1=9.0, c2=12.0), octsvm(11, 2, RESVM, c1=9.0, c2=12.0)),
    weights_case("c2rf", _c2rf(8, 4), _c2rf(24, 6)),
    weights_case("c2rf-groups", _c2rf(7, 4, n_groups=2, slack=1), _c2rf(20, 6, n_groups=2)),
    weights_case(
        "c2rf-printed",
        _c2rf(7, 3, preprocess=False, branching=False, order_cuts=False, tight=False),
        _c2rf(16, 5, preprocess=False, branching=False, order_cuts=False, tight=False),
    ),
    weights_case("c2rf-narrow", _c2rf(8, 5, least=1.5, most=4.0), _c2rf(20, 6, least=1.5, most=4.0)),
]
