"""Optima of tiny instances by enumeration. Nothing here uses the package's formulations, searches or solvers."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from functools import cache, partial
from itertools import combinations, product
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
from scipy.optimize import linprog, minimize

_KNOWN: dict[str, float] = {}
"""Optima found already: several solvers are held against the same one."""

FOLDER = "TREEWRIGHT_TEST_OPTIMA"
"""Environment variable: a folder of this run of the tests, in which workers leave optima for one another."""


def totals_of(model: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rows of each group that points stand for, fewest and most rows of each group and class."""
    return model.totals.size.toarray(), model.totals.low, model.totals.high


def once(model: Any, arrays: tuple[str, ...], numbers: tuple[str, ...], find: Callable[[Any], float]) -> float:
    given = [np.asarray(getattr(model, name)) for name in arrays]
    given += totals_of(model) if hasattr(model, "totals") else []
    values = [f"{array.shape} {array.dtype}".encode() + array.tobytes() for array in given]
    whole = (find.__name__, *values, *(getattr(model, name) for name in numbers))
    key = hashlib.sha256(repr(whole).encode()).hexdigest()
    if key not in _KNOWN:
        folder = os.environ.get(FOLDER)
        file = Path(folder) / key if folder else None
        if file and file.exists():
            _KNOWN[key] = float(file.read_text())
        else:
            _KNOWN[key] = find(model)
            if file:
                part = file.with_suffix(f".{os.getpid()}")
                part.write_text(repr(float(_KNOWN[key])))
                part.replace(file)
    return _KNOWN[key]


def best_oct_h(model: Any) -> float:
    """Optimum of OCT-H: every way to part the points at the root, then at its two children, and so on."""
    numbers = ("n_classes", "depth", "margin", "min_leaf", "complexity")
    return once(model, ("X", "y", "weight", "size"), numbers, _best_oct_h)


def _best_oct_h(model: Any) -> float:
    X, y, weight, gap = model.X, model.y, model.weight, model.margin
    size = np.ones(len(X)) if model.size is None else model.size
    majority_error = weight.sum() - np.bincount(y, weight).max()

    @cache
    def features_needed(left: frozenset[int], right: frozenset[int]) -> float:
        """Fewest features of a split with these sides, infinite if there is none."""
        for n_features in range(1, X.shape[1] + 1):
            for chosen in combinations(range(X.shape[1]), n_features):
                if widest_gap(X[:, chosen], sorted(left), sorted(right)) >= gap - 1e-9:
                    return n_features
        return np.inf

    @cache
    def best(points: frozenset[int], depth: int) -> float:
        inside = sorted(points)
        by_class = np.bincount(y[inside], weight[inside], model.n_classes)
        value = np.inf
        if size[inside].sum() >= model.min_leaf:
            value = (by_class.sum() - by_class.max()) / majority_error
        if depth == 0:
            return value
        first, *others = inside
        for n_left in range(len(others)):
            for moved in combinations(others, n_left + 1):  # sides are interchangeable: the first point stays
                left = frozenset(moved)
                right = points - left
                split = features_needed(left, right)
                if not np.isfinite(split):
                    continue
                value = min(value, model.complexity * split + best(left, depth - 1) + best(right, depth - 1))
        return value

    return float(best(frozenset(range(len(X))), model.depth))


def widest_gap(X: np.ndarray, left: list[int], right: list[int]) -> float:
    """Largest gap between two sides along a normal of 1-norm at most 1."""
    p = X.shape[1]
    # Columns: a+, a-, top of the left side, bottom of the right side.
    rows = [[*X[i], *-X[i], -1, 0] for i in left] + [[*-X[i], *X[i], 0, 1] for i in right]
    rows.append([1] * (2 * p) + [0, 0])
    found = linprog(
        c=[0] * (2 * p) + [1, -1],
        A_ub=rows,
        b_ub=[0] * (len(left) + len(right)) + [1],
        bounds=[(0, None)] * (2 * p) + [(None, None)] * 2,
    )
    return -found.fun


def best_s2oct(model: Any) -> float:
    """Optimum of S2OCT: every labelling of the leaves, every own leaf of the labelled, every way of the unlabelled.

    With these chosen the rest falls apart into one linear program a node: hinge errors of the labelled points that
    pass it to their leaf, under the margins of the unlabelled points that have to keep one there.
    """
    numbers = ("n_classes", "depth", "penalty", "max_coefficient", "margin_rule", "tolerance")
    return once(model, ("X", "y", "weight"), numbers, _best_s2oct)


def best_s2oct_stump_of_one_feature(model: Any) -> float:
    """Optimum of one split that may use one feature: the best of the optima of each feature alone."""
    assert model.depth == 1
    names = ("y", "weight", "totals", "n_classes", "depth", "penalty", "max_coefficient", "margin_rule", "tolerance")
    rest = {name: getattr(model, name) for name in names}
    p = model.X.shape[1]
    return min(best_s2oct(SimpleNamespace(X=model.X * (np.arange(p) == j), **rest)) for j in range(p))


def _best_s2oct(model: Any) -> float:
    X, y, D, K = model.X, model.y, model.depth, model.n_classes
    size, low, high = totals_of(model)
    labelled, unlabelled = np.flatnonzero(y >= 0).tolist(), np.flatnonzero(y < 0).tolist()
    nodes, leaves = range(1, 2**D), range(2**D, 2 ** (D + 1))
    margin = model.tolerance if model.margin_rule == "tolerance" else 1.0

    def path(leaf: int) -> dict[int, str]:
        """Side that the path to a leaf takes at each of its nodes."""
        return {leaf >> k: "R" if (leaf >> (k - 1)) & 1 else "L" for k in range(1, D + 1)}

    @cache
    def split(
        left: frozenset[int], right: frozenset[int], far_left: frozenset[int], far_right: frozenset[int]
    ) -> float:
        """Least hinge error of a split with labelled points on these sides and unlabelled beyond the margin."""
        if not (left | far_left) or not (right | far_right):
            return 0.0
        return best_hinge_split(
            X,
            sorted(left),
            sorted(right),
            sorted(far_left),
            sorted(far_right),
            model.weight,
            model.max_coefficient,
            margin,
        )

    def ways() -> Any:
        """Sides of every unlabelled point where it keeps a margin, and its leaf."""
        if model.margin_rule != "paper":
            return [(path(t), t) for t in leaves]
        found = []
        for sides in product("LR", repeat=len(nodes)):
            at = 1
            while at in nodes:
                at = 2 * at + (sides[at - 1] == "R")
            found.append((dict(zip(nodes, sides, strict=True)), at))
        return found

    def labellings() -> Any:
        if K == 2:
            return [tuple(t % 2 for t in leaves)]
        return [ks for ks in product(range(K), repeat=len(leaves)) if set(y[labelled].tolist()) <= set(ks)]

    # Unlabelled first: their leaves give the deviation, which alone may be too much already.
    placed = []
    for way in product(ways(), repeat=len(unlabelled)):
        sides = [
            [frozenset(i for i, w in zip(unlabelled, way, strict=True) if w[0].get(b) == side) for side in "LR"]
            for b in nodes
        ]
        placed.append((tuple(w[1] for w in way), sides))
    plans = []
    for label in labellings():
        label_of = dict(zip(leaves, label, strict=True))
        own = [[path(t) for t in leaves if label_of[t] == y[i]] for i in labelled]
        choices = [
            [
                [frozenset(i for i, c in zip(labelled, choice, strict=True) if c.get(b) == s) for s in "LR"]
                for b in nodes
            ]
            for choice in product(*own)
        ]
        for where, sides in placed:
            counts = np.zeros(low.shape)
            for rows, t in zip(size, where, strict=True):
                counts[:, label_of[t]] += rows
            excess = np.maximum(counts - high, 0).sum(axis=1)
            lack = np.maximum(low - counts, 0).sum(axis=1)
            plans.append((model.penalty * float(np.maximum(excess, lack).sum()), sides, choices))
    best = np.inf
    for deviation, sides, choices in sorted(plans, key=lambda plan: plan[0]):
        if deviation >= best:
            break
        for choice in choices:
            value = deviation
            for (left, right), (far_left, far_right) in zip(choice, sides, strict=True):
                value += split(left, right, far_left, far_right)
                if value >= best:
                    break
            best = min(best, value)
    return best


def best_hinge_split(
    X: np.ndarray,
    left: list[int],
    right: list[int],
    far_left: list[int],
    far_right: list[int],
    weight: np.ndarray,
    bound: float,
    margin: float,
) -> float:
    """Least weighted hinge error of one split; infinite if the margins cannot be kept."""
    p, n = X.shape[1], len(left) + len(right)
    # Columns: w, t, hinge error of each labelled point; rows: sign * (w'x - t) - error <= -distance.
    rows, limits = [], []
    for position, (i, sign) in enumerate([(i, 1.0) for i in left] + [(i, -1.0) for i in right]):
        rows.append([*(sign * X[i]), -sign, *-np.eye(n)[position]])
        limits.append(-1.0)
    for i, sign in [(i, 1.0) for i in far_left] + [(i, -1.0) for i in far_right]:
        rows.append([*(sign * X[i]), -sign, *[0.0] * n])
        limits.append(-margin)
    found = linprog(
        c=[0.0] * (p + 1) + [weight[i] for i in left + right],
        A_ub=rows,
        b_ub=limits,
        bounds=[(-bound, bound)] * p + [(None, None)] + [(0, None)] * n,
    )
    return np.inf if found.status == 2 else found.fun


def best_svm1odt(model: Any) -> float:
    """Optimum of SVM1-ODT: every way to part the rows at the root, then at its two children, and so on.

    With the sides of the rows chosen, a hyperplane is a linear program of its own: hinge errors and the norm, under the
    bounds at all rows that have the values it uses. Which features with gaps it uses, with which sign, and where rows
    without a value go is enumerated as well, and so are the levels of a categorical split that go left.
    """
    numbers = ("n_classes", "depth", "epsilon", "alpha_1", "alpha_2", "max_coefficient", "tolerance")
    return once(model, ("X", "y", "weight", "size", "categorical"), numbers, _best_svm1odt)


def _best_svm1odt(model: Any) -> float:
    rows: dict[tuple[Any, ...], int] = {}
    at = [rows.setdefault(tuple(None if np.isnan(v) else v for v in x), len(rows)) for x in model.X]
    X = np.array([[np.nan if v is None else v for v in row] for row in rows], dtype=float)
    weight, size = np.zeros((len(X), model.n_classes)), np.zeros(len(X))
    for i, row in enumerate(at):
        weight[row, model.y[i]] += model.weight[i]
        size[row] += model.size[i]
    numerical, categorical = np.flatnonzero(~model.categorical).tolist(), np.flatnonzero(model.categorical).tolist()
    gaps = [j for j in numerical if np.isnan(X[:, j]).any()]
    ways = [signs for signs in product([-1, 0, 1], repeat=len(gaps))]

    @cache
    def hyperplane(left: frozenset[int], right: frozenset[int], signs: tuple[int, ...]) -> float:
        """Cheapest hyperplane with these sides of the rows that have all values it uses."""
        lacks = [j for j, sign in zip(gaps, signs, strict=True) if sign]
        known = [i for i in range(len(X)) if not np.isnan(X[i, lacks]).any()]
        return best_svm1_split(
            model, np.nan_to_num(X), size, sorted(left), sorted(right), known, dict(zip(gaps, signs, strict=True))
        )

    def splits(points: frozenset[int]) -> Any:
        """Sides of all splits of these rows, with a function that says what the split costs."""
        for j in categorical:
            of = {i: -1.0 if np.isnan(X[i, j]) else X[i, j] for i in points}
            levels = sorted(set(of.values()))
            for chosen in product([False, True], repeat=len(levels)):
                goes = dict(zip(levels, chosen, strict=True))
                yield frozenset(i for i in points if goes[of[i]]), lambda left: model.alpha_2
        for signs in ways:
            lacks = [j for j, sign in zip(gaps, signs, strict=True) if sign]
            without = frozenset(i for i in points if np.isnan(X[i, lacks]).any())
            having = sorted(points - without)
            for chosen in product([False, True], repeat=len(having)):
                left = frozenset(i for i, goes in zip(having, chosen, strict=True) if goes)
                for missing in [frozenset(), without] if without else [frozenset()]:
                    yield left | missing, partial(_parted, hyperplane, having, without, signs)

    @cache
    def best(points: frozenset[int], depth: int) -> float:
        by_class = weight[sorted(points)].sum(axis=0)
        value = float(by_class.sum() - by_class.max())
        if depth == 0:
            return value
        for left, price in splits(points):
            if 0 < len(left) < len(points):
                below = best(left, depth - 1) + best(points - left, depth - 1)
                if below < value:  # a split costs nothing at best
                    value = min(value, below + price(left))
        return value

    return best(frozenset(range(len(X))), model.depth)


def _parted(hyperplane: Any, having: list[int], without: frozenset[int], signs: Any, left: frozenset[int]) -> float:
    return hyperplane(left - without, frozenset(having) - left, signs)


def best_svm1_split(
    model: Any,
    X: np.ndarray,
    size: np.ndarray,
    left: list[int],
    right: list[int],
    known: list[int],
    signs: dict[int, int],
) -> float:
    """Least hinge errors and norm of one hyperplane; infinite if the rows cannot be parted so."""
    features = np.flatnonzero(~model.categorical).tolist()
    hard = model.alpha_1 == 0 and model.alpha_2 == 0
    mu = model.epsilon if hard else model.tolerance
    p, n = len(features), len(left) + len(right)
    # Columns: h+, h-, g, hinge error of each row that gets here.
    rows, limits = [], []

    def value(i: int) -> np.ndarray:
        return np.concatenate([-X[i, features], X[i, features], [1.0], np.zeros(n)])

    for position, (i, sign) in enumerate([(i, 1.0) for i in left] + [(i, -1.0) for i in right]):
        error = np.zeros(2 * p + 1 + n)
        error[2 * p + 1 + position] = 1.0
        rows += [-sign * value(i), -sign * value(i) - error]
        limits += [-mu, -model.epsilon]
    for i in known:
        rows += [value(i), -value(i)]
        limits += [1.0, 1.0]
    bounds: list[tuple[float | None, float | None]] = []
    for part in (1, -1):
        for j in features:
            sign = signs.get(j)
            least, most = (0.0, model.max_coefficient) if sign is None or sign == part else (0.0, 0.0)
            bounds.append((model.tolerance if sign == part else least, most))
    price = [model.alpha_2] * (2 * p) + [0.0] + [model.alpha_1 * size[i] for i in left + right]
    bounds += [(None, None)] + [(0.0, None)] * n
    found = linprog(price, A_ub=rows, b_ub=limits, bounds=bounds)
    return float(found.fun) if found.status == 0 else np.inf


def best_c2rf(model: Any) -> float:
    """Optimum of C2RF: every set of positive patterns, the nearest to the totals first, until one has weights."""
    return once(model, ("votes",), ("least", "most"), _best_c2rf)


def _best_c2rf(model: Any) -> float:
    signs = np.array(list(product([-1.0, 1.0], repeat=len(model.votes))))
    away = np.array([_missed(model, positive) for positive in signs > 0])
    for number in np.argsort(away, kind="stable"):
        if has_weights(signs[number][:, None] * model.votes, model.least, model.most):
            return float(away[number])
    raise AssertionError("no signs have weights")


def _missed(model: Any, positive: np.ndarray) -> float:
    """Rows of two classes that would have to change class, all groups together."""
    size, low, high = totals_of(model)
    counts = np.stack([size[~positive].sum(axis=0), size[positive].sum(axis=0)], axis=1)
    above, below = (np.maximum(away, 0).sum(axis=1) for away in (counts - high, low - counts))
    return float(np.maximum(above, below).sum())


def has_weights(rows: np.ndarray, least: float, most: float) -> bool:
    """Whether weights within the bounds give every row a weighted sum of 1 or more."""
    found = linprog(np.zeros(rows.shape[1]), A_ub=-rows, b_ub=-np.ones(len(rows)), bounds=(least, most))
    return bool(found.status == 0)


def best_on_a_grid(model: Any, values: list[float]) -> float:
    """Least deviation of C2RF among weights from a few values under which no pattern is within 1 of a tie."""
    best = np.inf
    for weights in product(values, repeat=model.votes.shape[1]):
        level = model.votes @ np.array(weights)
        if np.abs(level).min() >= 1.0:
            best = min(best, _missed(model, level > 0))
    return best


# ---------------------------------------------------------------------- labels within totals


def best_labels(scores: np.ndarray, low: np.ndarray, high: np.ndarray) -> float:
    """Largest sum of scores among all labels whose counts are within the totals."""
    n, k = scores.shape
    best = -np.inf
    for labels in product(range(k), repeat=n):
        count = np.bincount(labels, minlength=k)
        if np.all(count >= low) and np.all(count <= high):
            best = max(best, float(scores[np.arange(n), labels].sum()))
    return best


def best_labels_by_linear_program(scores: np.ndarray, low: np.ndarray, high: np.ndarray) -> float:
    """The same as a linear program, whose vertices are whole: a transport problem."""
    n, k = scores.shape
    one_label = np.kron(np.eye(n), np.ones(k))
    counted = np.tile(np.eye(k), n)
    found = linprog(
        -scores.ravel(),
        A_ub=np.vstack([counted, -counted]),
        b_ub=np.concatenate([high, -low]),
        A_eq=one_label,
        b_eq=np.ones(n),
        bounds=(0, 1),
    )
    assert found.status == 0
    return float(-found.fun)


# ---------------------------------------------------------------------- Laplacian support vector machine


def best_lap_svm(
    K: np.ndarray, W: np.ndarray, known: np.ndarray, sign: np.ndarray, ridge: float, roughness: float
) -> float:
    """Least mean hinge loss plus prices of norm and roughness, by sequential quadratic programming with slacks."""
    n, m = len(K), len(known)
    H = ridge * K + roughness * K @ (np.diag(W.sum(axis=1)) - W) @ K
    side = np.hstack([sign[:, None] * K[known], sign[:, None], np.eye(m)])
    inside = {"type": "ineq", "fun": lambda v: side @ v - 1, "jac": lambda v: side}
    slack = {"type": "ineq", "fun": lambda v: v[n + 1 :], "jac": lambda v: np.eye(n + 1 + m)[n + 1 :]}
    found = minimize(
        lambda v: v[:n] @ H @ v[:n] + v[n + 1 :].mean(),
        np.concatenate([np.zeros(n + 1), np.ones(m)]),
        jac=lambda v: np.concatenate([2 * H @ v[:n], [0.0], np.full(m, 1 / m)]),
        constraints=[inside, slack],
        method="SLSQP",
        options={"maxiter": 2000, "ftol": 1e-14},
    )
    return float(found.fun)
