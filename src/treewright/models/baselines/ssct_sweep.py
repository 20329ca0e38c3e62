"""Compiled sweep of semi-supervised classification trees. Importing it imports numba: import it where it is needed."""

from __future__ import annotations

from typing import Any

import numpy as np

from treewright.core.compiled import njit

__all__ = ["best_cuts"]


@njit(
    "f8** i8** f8** i8* f8* f8* i8 f8 f8 b1 f8",
    nogil=True,
    fastmath={"reassoc", "nsz", "contract"},
)
def best_cuts(
    values: Any,
    order: Any,
    Z: Any,
    y: Any,
    weight: Any,
    size: Any,
    n_classes: int,
    label_factor: float,
    spread_factor: float,
    own_shares: bool,
    least: float,
) -> Any:
    r"""Largest gain along each candidate feature, and between which points it is, in their order along the feature.

    Rows of `values` and `order` are candidate features: values in ascending order, and the points that have them.
    Points `Z` are centred. With total weight m, sums of the left side :math:`m_L, s_L` and no total sum, the variances
    of all features together fall by :math:`\lVert s_L \rVert^2 (1/m_L + 1/m_R) / m`.
    """
    n_candidates, n = order.shape
    p = Z.shape[1]
    gain, place = np.full(n_candidates, -1.0), np.full(n_candidates, -1)
    total, total_size = weight.sum(), size.sum()
    counts = np.zeros(n_classes)
    for i in range(n):
        if y[i] >= 0:
            counts[y[i]] += weight[i]
    labelled, squares = counts.sum(), (counts * counts).sum()
    gini = 1.0 - squares / (labelled * labelled) if labelled > 0.0 else 0.0
    left, sums = np.empty(n_classes), np.empty(p)
    for f in range(n_candidates):
        left[:] = 0.0
        sums[:] = 0.0
        mass, here, known, square_left, square_right = 0.0, 0.0, 0.0, 0.0, squares
        for k in range(n - 1):
            i = order[f, k]
            c = weight[i]
            mass += c
            here += size[i]
            if y[i] >= 0:
                before = left[y[i]]
                rest = counts[y[i]] - before
                square_left += c * (2.0 * before + c)
                square_right -= c * (2.0 * rest - c)
                left[y[i]] = before + c
                known += c
            spread = 0.0
            for j in range(p):
                sums[j] += c * Z[i, j]
                spread += sums[j] * sums[j]
            if values[f, k] == values[f, k + 1] or here < least or total_size - here < least:
                continue
            other, unknown = total - mass, labelled - known
            # weights that do not add up exactly leave a rest on a side without labels
            some_left, some_right = known > 1e-12 * labelled, unknown > 1e-12 * labelled
            gini_left = 1.0 - square_left / (known * known) if some_left else gini
            gini_right = 1.0 - square_right / (unknown * unknown) if some_right else gini
            share = mass / total
            if own_shares:
                share = (known / labelled if some_right else 1.0) if some_left else 0.0
            fall = gini - share * gini_left - (1.0 - share) * gini_right
            reached = label_factor * fall
            # beside heavier points, what the lightest ones weigh together is lost
            if mass > 1e-14 * total and other > 1e-14 * total:
                reached += spread_factor * spread * (1.0 / mass + 1.0 / other) / total
            if reached > gain[f] + 1e-12:
                gain[f], place[f] = reached, k
    return gain, place
