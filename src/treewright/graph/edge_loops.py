"""Compiled loops over neighbours and edges: distances, affinities, and the parts of a conjugate gradient step.

Importing this module imports numba, so it is imported where it is needed and not before. Sums run in a fixed order,
without reassociation, in one thread: the same input gives the same graph and labels to the last bit.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from treewright.core.compiled import njit

__all__ = ["advance", "affinities", "closest_dense", "closest_sparse", "finish", "near_sparse", "turn"]


@njit(
    "f4** i8* i8** i8** f8**",
    "f8** i8* i8** i8** f8**",
    nogil=True,
)
def closest_dense(X: Any, rows: Any, found: Any, index: Any, distance: Any) -> None:
    """Nearest of the points found for each of `rows`, by exact Euclidean distances, nearest first, ties by number.

    Distances come from differences in float64: no digits are cancelled. The row itself and -1, for nothing found, do
    not count; places that stay empty have the index -1 and an infinite distance.
    """
    k = index.shape[1]
    for i in range(len(rows)):
        index[i], distance[i] = -1, np.inf
        for j in range(found.shape[1]):
            other = found[i, j]
            if other >= 0 and other != rows[i]:
                _insert(index[i], distance[i], other, _square_apart(X[rows[i]], X[other], distance[i, k - 1]))
        for j in range(k):
            distance[i, j] = np.sqrt(distance[i, j])


@njit(nogil=True)
def _square_apart(one: Any, two: Any, most: float) -> float:
    """Squared distance of two points; of points farther apart than `most` something above it."""
    p = len(one)
    total, begin = 0.0, 0
    while begin + 8 <= p and total <= most:
        even = odd = 0.0
        for feature in range(begin, begin + 8, 2):
            away = np.float64(one[feature]) - np.float64(two[feature])
            even += away * away
            away = np.float64(one[feature + 1]) - np.float64(two[feature + 1])
            odd += away * away
        total += even + odd
        begin += 8
    if total <= most:
        for feature in range(begin, p):
            away = np.float64(one[feature]) - np.float64(two[feature])
            total += away * away
    return total


@njit(nogil=True)
def _insert(index: Any, distance: Any, other: int, away: float) -> None:
    """Put a point into its place among the nearest so far, -1 being an empty one, or nowhere."""
    at = len(index)
    while at > 0 and (
        index[at - 1] < 0 or away < distance[at - 1] or (away == distance[at - 1] and other < index[at - 1])
    ):
        at -= 1
    for j in range(len(index) - 1, at, -1):
        index[j], distance[j] = index[j - 1], distance[j - 1]
    if at < len(index):
        index[at], distance[at] = other, away


@njit("f4* i4* i4* i8* i8** i8** f8**", "f8* i4* i4* i8* i8** i8** f8**", nogil=True)
def closest_sparse(data: Any, columns: Any, begins: Any, rows: Any, found: Any, index: Any, distance: Any) -> None:
    """As :func:`closest_dense`, for points in compressed rows with sorted columns."""
    for i in range(len(rows)):
        index[i], distance[i] = -1, np.inf
        for j in range(found.shape[1]):
            other = found[i, j]
            if other < 0 or other == rows[i]:
                continue
            one, one_end = begins[rows[i]], begins[rows[i] + 1]
            two, two_end = begins[other], begins[other + 1]
            total = 0.0
            while one < one_end or two < two_end:
                apart = 0.0
                first = one < one_end and (two == two_end or columns[one] <= columns[two])
                second = two < two_end and (one == one_end or columns[two] <= columns[one])
                if first:
                    apart += data[one]
                    one += 1
                if second:
                    apart -= data[two]
                    two += 1
                total += apart * apart
            _insert(index[i], distance[i], other, total)
        for j in range(index.shape[1]):
            distance[i, j] = np.sqrt(distance[i, j])


@njit(
    "f4* i4* i4* f4* i4* i4* f8* i8* i8**",
    "f8* i4* i4* f8* i4* i4* f8* i8* i8**",
    nogil=True,
)
def near_sparse(
    data: Any, columns: Any, begins: Any, by_data: Any, by_rows: Any, by_begins: Any, square: Any, rows: Any, found: Any
) -> None:
    """Fill `found` with the points nearest to each of `rows`, all others tried, by their products with the row.

    Points come twice, in compressed rows and in compressed columns: only features that a row has cost anything.
    `square` has the squares of their norms.
    """
    n, k = len(square), found.shape[1]
    product, away = np.empty(n), np.empty(k)
    for i in range(len(rows)):
        product[:] = 0.0
        for place in range(begins[rows[i]], begins[rows[i] + 1]):
            for other in range(by_begins[columns[place]], by_begins[columns[place] + 1]):
                product[by_rows[other]] += np.float64(data[place]) * by_data[other]
        found[i], away[:] = -1, np.inf
        for other in range(n):
            apart = square[other] - 2.0 * product[other]
            if apart < away[k - 1] and other != rows[i]:
                _insert(found[i], away, other, apart)


@njit("f8** f8 f8 f8**", nogil=True)
def affinities(distance: Any, entropy: float, tolerance: float, out: Any) -> None:
    r"""Fill `out` with the rows :math:`p_j \propto e^{-\beta d_j^2}` of the entropy asked for.

    With :math:`\delta_j = d_j^2 - \min d^2`, scaled so that the largest is 1, the entropy
    :math:`H = \log \sum_j e^{-\beta \delta_j} + \beta\, E \delta` falls in :math:`t = \log \beta` with the slope
    :math:`-\beta^2 \mathrm{Var}\, \delta`. Newton steps in t, halving where they leave the bracket. The bracket ends
    at e^100: beyond it, only the nearest neighbours share a row, whose entropy is then the least it can be.
    """
    n, k = distance.shape
    delta = np.empty(k)
    for i in range(n):
        near, far = distance[i, 0], distance[i, 0]
        for j in range(k):
            near, far = min(near, distance[i, j]), max(far, distance[i, j])
        widest = 0.0
        if far > near:
            # Squares of distances divided by the largest neither overflow nor vanish.
            for j in range(k):
                delta[j] = (distance[i, j] - near) / far * (distance[i, j] / far + near / far)
                widest = max(widest, delta[j])
        if widest <= 0.0 or entropy >= np.log(k):
            for j in range(k):
                out[i, j] = 1.0 / k
            continue
        for j in range(k):
            delta[j] /= widest
        low, high, t = -40.0, 100.0, 1.0
        for _ in range(200):
            beta = np.exp(t)
            total, mean, square = 0.0, 0.0, 0.0
            for j in range(k):
                p = np.exp(-beta * delta[j])
                out[i, j] = p
                total += p
                mean += p * delta[j]
                square += p * delta[j] * delta[j]
            mean /= total
            excess = np.log(total) + beta * mean - entropy
            if abs(excess) <= tolerance or high - low < 1e-13:
                break
            if excess > 0.0:
                low = t
            else:
                high = t
            slope = beta * beta * (square / total - mean * mean)
            t = t + excess / slope if slope > 1e-300 else low
            if not low < t < high:
                t = 0.5 * (low + high)
        for j in range(k):
            out[i, j] /= total


@njit("f8* f8 f8** f8**", nogil=True)
def finish(diagonal: Any, gamma: float, P: Any, Q: Any) -> Any:
    """Turn Q = W P into (diag(diagonal) - gamma W) P; return the products of the columns of P and Q."""
    n, m = P.shape
    dots = np.zeros(m)
    for i in range(n):
        for c in range(m):
            value = diagonal[i] * P[i, c] - gamma * Q[i, c]
            Q[i, c] = value
            dots[c] += P[i, c] * value
    return dots


@njit("f8* f8* f8** f8** f8** f8**", nogil=True)
def advance(step: Any, diagonal: Any, P: Any, Q: Any, Z: Any, R: Any) -> Any:
    """Go `step` along P: Z moves, R loses `step` times Q; return sums of squares of R, plain and over `diagonal`."""
    n, m = P.shape
    plain, scaled = np.zeros(m), np.zeros(m)
    for i in range(n):
        for c in range(m):
            Z[i, c] += step[c] * P[i, c]
            R[i, c] -= step[c] * Q[i, c]
            square = R[i, c] * R[i, c]
            plain[c] += square
            scaled[c] += square / diagonal[i]
    return plain, scaled


@njit("f8* f8* f8** f8**", nogil=True)
def turn(keep: Any, diagonal: Any, R: Any, P: Any) -> None:
    """Next directions: the preconditioned residual, plus `keep` times the last direction."""
    n, m = P.shape
    for i in range(n):
        for c in range(m):
            P[i, c] = R[i, c] / diagonal[i] + keep[c] * P[i, c]
