"""Compiled loops of :mod:`.one_feature`: all trees of two levels that get the labels right."""

from __future__ import annotations

from typing import Any

import numpy as np

from treewright.core.compiled import njit

__all__ = ["NOTHING", "best_of_roots"]

MIXED, NOBODY = -2, -1
"""Instead of the class of the labelled points on a side: they have several, or there are none."""


NOTHING = -10
"""Less than any gain."""


@njit(nogil=True)
def _joined(one: int, other: int) -> int:
    """Class of labelled points of which some have class `one` and some class `other`."""
    if one == NOBODY:
        return other
    if other == NOBODY or one == other:
        return one
    return MIXED


@njit(nogil=True)
def _separable(order: Any, label: Any, inside: Any, side: bool, found: Any) -> int:
    """Mark the features one of whose splits parts the labelled points on a side; return the class of all of them."""
    whole = NOBODY
    for i in order[0]:
        if inside[i] == side and label[i] >= 0:
            whole = _joined(whole, label[i])
    for f in range(len(order)):
        prefix = NOBODY
        start = 0
        for start in range(len(order[f])):  # noqa: B007 - read after the loop
            i = order[f, start]
            if inside[i] == side and label[i] >= 0:
                joined = _joined(prefix, label[i])
                if joined == MIXED:
                    break
                prefix = joined
        suffix = NOBODY
        for k in range(start, len(order[f])):
            i = order[f, k]
            if inside[i] == side and label[i] >= 0:
                suffix = _joined(suffix, label[i])
        found[f] = suffix != MIXED
    return whole


@njit(nogil=True)
def _room(X: Any, label: Any, i: int, f: int, low: Any, need: Any) -> Any:
    """Least threshold of a split to the right of point `i` and of others that allow `low`."""
    return max(low, X[i, f] + (need[0] if label[i] >= 0 else need[1]))


@njit(nogil=True)
def _limit(X: Any, label: Any, i: int, f: int, high: Any, need: Any) -> Any:
    """Largest threshold of a split to the left of point `i` and of others that allow `high`; it goes left on a tie."""
    distance = need[0] if label[i] >= 0 else need[1]
    return min(high, X[i, f] - distance if distance > 0.0 else np.nextafter(X[i, f], -np.inf))


@njit(nogil=True)
def _candidates(
    X: Any,
    order: Any,
    label: Any,
    keys: Any,
    gains: Any,
    need: Any,
    inside: Any,
    side: bool,
    whole: int,
    useful: Any,
    high: Any,
    suffix: Any,
    key: Any,
    gain: Any,
    which: Any,
    threshold: Any,
) -> int:
    """Write what the leaves of a side can be: key and gain, feature (-1: one leaf) and labels, threshold."""
    n, n_classes, count = len(X), keys.shape[1], 0
    all_key = np.zeros(n_classes, dtype=np.uint64)
    all_gain = np.zeros(n_classes, dtype=np.int64)
    for i in range(n):
        if inside[i] == side:
            for k in range(n_classes):
                all_key[k] += keys[i, k]
                all_gain[k] += gains[i, k]
    if whole != MIXED:
        for k in range(n_classes):
            if whole in (NOBODY, k):
                key[count], gain[count], threshold[count] = all_key[k], all_gain[k], 0.0
                which[count, 0], which[count, 1], which[count, 2] = -1, k, k
                count += 1
    left_key = np.zeros(n_classes, dtype=np.uint64)
    left_gain = np.zeros(n_classes, dtype=np.int64)
    for f in range(len(order)):
        if not useful[f]:
            continue
        # What lies to the right of each place: the class of its labelled points, and the largest threshold it allows.
        right, most = NOBODY, np.inf
        for at in range(n - 1, -1, -1):
            i = order[f, at]
            if inside[i] == side:
                if label[i] >= 0:
                    right = _joined(right, label[i])
                most = _limit(X, label, i, f, most, need)
            suffix[at], high[at] = right, most
        left, low, last = NOBODY, -np.inf, np.nan
        left_key[:] = 0
        left_gain[:] = 0
        for at in range(n):
            i = order[f, at]
            if inside[i] != side:
                continue
            if X[i, f] > last and suffix[at] != MIXED and low <= high[at]:
                for a in range(n_classes):
                    if left not in (NOBODY, a):
                        continue
                    for b in range(n_classes):
                        if b == a or suffix[at] not in (NOBODY, b):
                            continue
                        key[count] = left_key[a] + (all_key[b] - left_key[b])
                        gain[count] = left_gain[a] + (all_gain[b] - left_gain[b]) - 1  # of equals the smaller tree
                        which[count, 0], which[count, 1], which[count, 2] = f, a, b
                        threshold[count] = low + (high[at] - low) / 2
                        count += 1
            last = X[i, f]
            low = _room(X, label, i, f, low, need)
            for k in range(n_classes):
                left_key[k] += keys[i, k]
                left_gain[k] += gains[i, k]
            if label[i] >= 0:
                left = _joined(left, label[i])
                if left == MIXED:
                    break
    return count


@njit(nogil=True)
def _slot(key: Any, mask: int) -> int:
    return int((key * np.uint64(0x9E3779B97F4A7C15)) >> np.uint64(20)) & mask


@njit(nogil=True)
def _matched(key: Any, gain: Any, counts: Any, targets: Any, table: Any, stamp: Any, turn: int) -> tuple[int, int, int]:
    """The pair of candidates of either side whose keys add up to a target, of the largest gain; that gain first."""
    mask = len(table) - 1
    for c in range(counts[0]):
        slot = _slot(key[0, c], mask)
        while stamp[slot] == turn and key[0, table[slot]] != key[0, c]:
            slot = (slot + 1) & mask
        if stamp[slot] != turn or gain[0, c] > gain[0, table[slot]]:
            stamp[slot], table[slot] = turn, c
    best, one, two = NOTHING, -1, -1
    for c in range(counts[1]):
        for target in targets:
            wanted = target - key[1, c]
            slot = _slot(wanted, mask)
            while stamp[slot] == turn and key[0, table[slot]] != wanted:
                slot = (slot + 1) & mask
            if stamp[slot] == turn and gain[0, table[slot]] + gain[1, c] > best:
                best, one, two = gain[0, table[slot]] + gain[1, c], table[slot], c
    return best, one, two


@njit("f8** i8** i8* u8** i8** u8* f8* i8 i8 i8 b1 i8", nogil=True)
def best_of_roots(
    X: Any,
    order: Any,
    label: Any,
    keys: Any,
    gains: Any,
    targets: Any,
    need: Any,
    root: int,
    first: int,
    last: int,
    two_levels: bool,
    least: int,
) -> tuple[int, Any, Any]:
    """Best tree among those whose root parts feature `root` at one of the places `first` to `last` of its order.

    Parameters
    ----------
    X : ndarray of shape (n_points, n_features)
        Points.
    order : ndarray of int, shape (n_features, n_points)
        Points in the order of each feature.
    label : ndarray of int, shape (n_points,)
        Class numbers, -1 for unlabelled.
    keys : ndarray of uint64, shape (n_points, n_classes)
        What a point adds to the sum of keys where it has a class; sums wrap around.
    gains : ndarray of int, shape (n_points, n_classes)
        What it is worth there; a split costs 1.
    targets : ndarray of uint64
        Sums of keys that are wanted.
    need : ndarray of shape (2,)
        Least distance from a split of labelled and of unlabelled points.
    root, first, last : int
        Where to look.
    two_levels : bool
        Whether sides are split again.
    least : int
        Gain that is to be exceeded.

    Returns
    -------
    gain : int
        The gain, `least` if none is larger.
    which : ndarray of int, shape (2, 3)
        Feature (-1: none), labels left and right, for each side of the root.
    threshold : ndarray of shape (3,)
        Thresholds of root, left and right side.
    """
    n, n_features, n_classes = len(X), len(order), keys.shape[1]
    most = n_features * (n + 1) * n_classes * (n_classes - 1) + n_classes if two_levels else n_classes
    key, gain = np.empty((2, most), dtype=np.uint64), np.empty((2, most), dtype=np.int64)
    which, threshold = np.empty((2, most, 3), dtype=np.int64), np.empty((2, most))
    size = 16
    while size < 2 * most:
        size *= 2
    table, stamp = np.empty(size, dtype=np.int64), np.full(size, -1, dtype=np.int64)
    high, suffix = np.empty(n), np.empty(n, dtype=np.int64)
    useful = np.zeros((2, n_features), dtype=np.bool_)
    whole, counts = np.full(2, MIXED), np.zeros(2, dtype=np.int64)
    found, cuts = np.full((2, 3), -1, dtype=np.int64), np.zeros(3)
    inside = np.zeros(n, dtype=np.bool_)  # on the left of the root
    low, stale = -np.inf, True
    above = np.empty(n)  # the largest threshold that points to the right of a place allow
    top = np.inf
    for at in range(n - 1, -1, -1):
        i = order[root, at]
        top = _limit(X, label, i, root, top, need)
        above[at] = top
    for at in range(min(last, n - 1)):
        i = order[root, at]
        inside[i] = True
        low = _room(X, label, i, root, low, need)
        stale = stale or label[i] >= 0
        if at < first or not X[order[root, at + 1], root] > X[i, root] or low > above[at + 1]:
            continue
        if stale:
            stale = False
            for s in range(2):
                whole[s] = _separable(order, label, inside, s == 0, useful[s])
            if not two_levels:
                useful[:] = False
        if (whole[0] == MIXED and not useful[0].any()) or (whole[1] == MIXED and not useful[1].any()):
            continue
        for s in range(2):
            counts[s] = _candidates(
                X, order, label, keys, gains, need, inside, s == 0, whole[s], useful[s], high, suffix,
                key[s], gain[s], which[s], threshold[s],
            )  # fmt: skip
        best, one, two = _matched(key, gain, counts, targets, table, stamp, at)
        if best > least:
            least = best
            found[0], found[1] = which[0, one], which[1, two]
            cuts[0], cuts[1], cuts[2] = low + (above[at + 1] - low) / 2, threshold[0, one], threshold[1, two]
    return least, found, cuts
