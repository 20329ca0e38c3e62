"""Optima of tiny instances of OCTSVM and RE-SVM by enumeration. Nothing here uses the package."""

from __future__ import annotations

from functools import cache
from itertools import combinations, product
from typing import Any

import numpy as np
from scipy.optimize import linprog

from tests.contracts.brute_force import once


def best_octsvm(model: Any) -> float:
    """Optimum of OCTSVM of depth 0 or 1, or of RE-SVM: sides at the root, who is relabelled where, who is pruned.

    With these chosen, the rest is a convex program over all hyperplanes together, as the longest normal has a price.
    """
    numbers = ("depth", "c1", "c2", "c3", "norm", "max_norm", "margin_price", "tolerance")
    return once(model, ("X", "y", "weight"), numbers, _best_re_svm if model.depth == 0 else _best_octsvm)


Relabelled = tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...] | None]
"""Points at a node, the labels -1 or +1 that they are to have there, and the sides that they take, if that matters."""


def _wrong_at_a_leaf(model: Any, points: tuple[int, ...]) -> float:
    return min(2 * model.c1, model.c2) * min(sum(model.weight[i] for i in points if model.y[i] == k) for k in (0, 1))


def _relabelled(
    model: Any, points: tuple[int, ...], some: tuple[int, ...], sides: tuple[int, ...] | None
) -> list[tuple[float, Relabelled]]:
    """Every way to relabel some of the points at a node: its price, that of the split included, and the labels."""
    ways = []
    for number in range(1 if np.isinf(model.c2) else len(some) + 1):
        for flipped in combinations(some, number):
            label = tuple(int(2 * model.y[i] - 1) * (-1 if i in flipped else 1) for i in points)
            price = model.c3 + (model.c2 * sum(model.weight[i] for i in flipped) if flipped else 0.0)
            ways.append((price, (points, label, sides)))
    return ways


def _best_re_svm(model: Any) -> float:
    every = tuple(range(len(model.X)))
    best = _wrong_at_a_leaf(model, every)
    for price, way in sorted(_relabelled(model, every, every, None), key=lambda way: way[0]):
        if price < best:
            best = min(best, price + least_svm_cost(model, [way], best - price))
    return best


def _best_octsvm(model: Any) -> float:
    every = tuple(range(len(model.X)))
    best = 2 * _wrong_at_a_leaf(model, every)

    @cache
    def alone(way: Relabelled) -> tuple[float, float]:
        """Least errors of a node if norms cost nothing, and least errors and price if the others had no norm."""
        whole = least_svm_cost(model, [way], np.inf)
        return least_svm_cost(model, [way], np.inf, priced=False) if model.margin_price > 0 else whole, whole

    @cache
    def child(points: tuple[int, ...]) -> list[tuple[float, list[Relabelled]]]:
        split = [(price, [way]) for price, way in _relabelled(model, points, points, None)] if points else []
        return [(_wrong_at_a_leaf(model, points), []), *split]

    plans = []
    for side in product((-1, 1), repeat=len(every)):
        wrong = tuple(i for i in every if side[i] != 2 * model.y[i] - 1)
        left, right = (tuple(i for i in every if side[i] == s) for s in (-1, 1))
        for price, root in _relabelled(model, every, wrong, side):
            if price >= best or price + alone(root)[1] >= best:
                continue
            for below in product(child(left), child(right)):
                fixed, ways = price + below[0][0] + below[1][0], [root, *below[0][1], *below[1][1]]
                if fixed >= best:
                    continue
                known = [alone(way) for way in ways]
                least = fixed + sum(free for free, _ in known) + max(whole - free for free, whole in known)
                if least < best:
                    plans.append((least, fixed, ways))
    for least, fixed, ways in sorted(plans, key=lambda plan: plan[0]):
        if least >= best:
            break
        best = min(best, fixed + least_svm_cost(model, ways, best - fixed))
    return best


def least_svm_cost(model: Any, ways: list[Relabelled], cutoff: float, priced: bool = True) -> float:
    """Least hinge errors and price of the norm, labels and sides at each node given; the cutoff if there is no better.

    The norm l2 and half its square are approached by tangents until they are exact to 1e-8.
    """
    X, p, n_nodes = model.X, model.X.shape[1], len(ways)
    one_svm = type(model).__name__ == "RESVM"
    square = one_svm and model.norm == "l2"
    # Columns: omega and intercept of each node, |omega| of each, the longest norm, its half square, the errors.
    at_size, at_norm = n_nodes * (p + 1), n_nodes * (2 * p + 1)
    n_columns = at_norm + 2 + sum(len(points) for points, _, _ in ways)
    rows, limits, cost = [], [], np.zeros(n_columns)

    def row(entries: dict[int, float], limit: float) -> None:
        """Add a row, entries <= limit."""
        line = np.zeros(n_columns)
        line[list(entries)] = list(entries.values())
        rows.append(line)
        limits.append(limit)

    def value(t: int, i: int, factor: float) -> dict[int, float]:
        return {t * (p + 1) + j: factor * X[i, j] for j in range(p)} | {t * (p + 1) + p: factor}

    error = at_norm + 2
    for t, (points, label, sides) in enumerate(ways):
        for position, i in enumerate(points):
            row(value(t, i, -label[position]) | {error: -1.0}, -1.0)
            cost[error] = model.c1 * model.weight[i]
            error += 1
            if sides is not None:
                row(value(t, i, -sides[position]), -model.tolerance)
        for j in range(p):
            for sign in (1.0, -1.0):
                row({t * (p + 1) + j: sign, at_size + t * p + j: -1.0}, 0.0)
            if model.norm != "l1":
                row({at_size + t * p + j: 1.0, at_norm: -1.0}, 0.0)
        if model.norm == "l1":
            row({at_size + t * p + j: 1.0 for j in range(p)} | {at_norm: -1.0}, 0.0)
    if priced:
        cost[at_norm + square] = model.margin_price * (1.0 if one_svm else 0.5)
    most = np.inf if model.max_norm is None else model.max_norm
    bounds = [(None, None)] * at_size + [(0, None)] * (n_columns - at_size)
    bounds[at_norm] = (0, most)
    exact = {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10}
    for _ in range(200):
        found = linprog(cost, A_ub=np.array(rows), b_ub=limits, bounds=bounds, options=exact)
        if found.status == 2 or found.fun >= cutoff - 1e-9:
            return cutoff
        n_rows, longest = len(rows), found.x[at_norm]
        for t in range(n_nodes):
            omega = found.x[t * (p + 1) : t * (p + 1) + p]
            length = float(np.linalg.norm(omega))
            if model.norm == "l2" and length > longest + 1e-8:
                row({t * (p + 1) + j: omega[j] / length for j in range(p)} | {at_norm: -1.0}, 0.0)
        if square and longest**2 / 2 > found.x[at_norm + 1] + 1e-8:
            row({at_norm: longest, at_norm + 1: -1.0}, longest**2 / 2)
        if len(rows) == n_rows:
            return float(found.fun)
    raise AssertionError("the tangents do not converge")
