"""Optima of tiny instances by enumeration. Nothing here uses the package's formulations, searches or solvers."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from itertools import combinations, product
from typing import Any

import numpy as np
from scipy.optimize import linprog, minimize

_KNOWN: dict[tuple[Any, ...], float] = {}
"""Optima found already: several solvers are held against the same one."""


def totals_of(model: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rows of each group that points stand for, fewest and most rows of each group and class."""
    return model.totals.size.toarray(), model.totals.low, model.totals.high


def _once(model: Any, arrays: tuple[str, ...], numbers: tuple[str, ...], find: Callable[[Any], float]) -> float:
    given = [np.asarray(getattr(model, name)) for name in arrays]
    given += totals_of(model) if hasattr(model, "totals") else []
    key = (find.__name__, *(array.tobytes() for array in given), *(getattr(model, name) for name in numbers))
    if key not in _KNOWN:
        _KNOWN[key] = find(model)
    return _KNOWN[key]


def best_oct_h(model: Any) -> float:
    """Optimum of OCT-H: every way to part the points at the root, then at its two children, and so on."""
    numbers = ("n_classes", "depth", "margin", "min_leaf", "complexity")
    return _once(model, ("X", "y", "weight", "size"), numbers, _best_oct_h)


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
    return _once(model, ("X", "y", "weight"), numbers, _best_s2oct)


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


def best_c2rf(model: Any) -> float:
    """Optimum of C2RF: every set of positive patterns, the nearest to the totals first, until one has weights."""
    return _once(model, ("votes",), ("least", "most"), _best_c2rf)


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
