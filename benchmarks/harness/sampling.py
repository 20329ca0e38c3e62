"""The papers' protocols: which rows are labelled, which are repeated."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_array, check_consistent_length

from treewright.core.arrays import BoolArray, FloatArray, IntArray
from treewright.data.columns_checked import AnyArray, as_column, listing, missing_mask, plain, show, uniform
from treewright.exceptions import InvalidInputError

__all__ = ["biased_sample", "drop_duplicate_rows", "simple_random_sample"]

_TRIES = 1000

RandomState = int | np.random.Generator | np.random.RandomState | np.random.SeedSequence | None


def biased_sample(
    y: ArrayLike,
    share: float,
    weights: Mapping[Any, float] | Sequence[float] = (0.85, 0.15),
    positive: object = None,
    random_state: RandomState = None,
    *,
    per_class: bool = False,
    require_all_classes: bool = False,
) -> BoolArray:
    """Choose the rows that are labelled, with more chance for some classes than for others.

    Rows are drawn one after the other without replacement, each time with chances proportional to the weights
    of the rows that are left. S2OCT labels 10 % and C2RF 1 % of the rows, with weight 0.85 for a row of class
    A (the positive class) and 0.15 for any other.

    Parameters
    ----------
    y : array-like of shape (n_rows,)
        True labels of all rows.
    share : float in (0, 1]
        Share of rows to label; ``share * n_rows`` is rounded, and is at least 1.
    weights : mapping of label to float, or pair
        Weight of a row of each class; or a pair, the weight of the positive class and that of the others.
    positive : label
        The positive class, needed with a pair.
    random_state : int, Generator, RandomState or None
        Source of randomness; the same int gives the same sample.
    per_class : bool
        Whether a weight is that of the class as a whole, shared by its rows. Then the first row drawn is of
        the positive class with chance 0.85 however many rows that class has. The papers' words ("chosen with
        probability 85 % for being on class A") allow this reading too.
    require_all_classes : bool
        Whether to draw again until each class has a labelled row. The papers do not, so a sample may have a
        single class, on which no classifier can be fitted; with few labels or a rare class this is not
        unlikely.

    Returns
    -------
    ndarray of bool, shape (n_rows,)
        Mask of the labelled rows.

    Examples
    --------
    >>> import numpy as np
    >>> y = np.repeat(["A", "B"], 500)
    >>> mask = biased_sample(y, 0.1, positive="A", random_state=0)
    >>> int(mask.sum()), bool((y[mask] == "A").mean() > 0.7)
    (100, True)
    """
    column = _labels(y)
    classes, number = np.unique(column, return_inverse=True)
    n_drawn = _size(share, len(column))
    chance = _class_weights(weights, positive, classes)
    if per_class:
        chance = chance / np.bincount(number)
    rows = chance[number]
    possible = np.count_nonzero(rows)
    if possible < n_drawn:
        zero = listing(classes[chance == 0])
        raise InvalidInputError(f"{n_drawn} rows are to be drawn, but only {possible} have a weight; zero for {zero}")
    if require_all_classes:
        _check_all_can_be_drawn(classes, chance, n_drawn)
    rng, p = _generator(random_state), rows / rows.sum()
    for _ in range(_TRIES if require_all_classes else 1):
        mask = np.zeros(len(column), dtype=bool)
        mask[rng.choice(len(column), size=n_drawn, replace=False, p=p)] = True
        if not require_all_classes or len(np.unique(number[mask])) == len(classes):
            return mask
    raise InvalidInputError(
        f"none of {_TRIES} samples of {n_drawn} rows had all classes {listing(classes)}; raise share or the "
        f"weight of {show(classes[np.bincount(number, weights=rows).argmin()])}"
    )


def simple_random_sample(n: int, share: float, random_state: RandomState = None) -> BoolArray:
    """Choose the rows that are labelled, all with the same chance.

    For a sample that is sure to have all classes, use :func:`biased_sample` with equal weights and
    ``require_all_classes=True``. Share, source of randomness and mask are as there; `n` is the number of rows.

    Examples
    --------
    >>> int(simple_random_sample(50, 0.1, random_state=0).sum())
    5
    """
    n_drawn = _size(share, n)
    mask = np.zeros(n, dtype=bool)
    mask[_generator(random_state).choice(n, size=n_drawn, replace=False)] = True
    return mask


def drop_duplicate_rows(X: ArrayLike, y: ArrayLike) -> IntArray:
    """Return the rows to keep so that none is there twice with the same features and label.

    Parameters
    ----------
    X : array-like of shape (n_rows, n_features)
        Numbers. NaN equals NaN here, and 0.0 equals -0.0.
    y : array-like of shape (n_rows,)
        Labels as they are in the data, before classes are joined. Missing ones equal one another.

    Returns
    -------
    ndarray of int
        Numbers of the rows to keep: of equal rows the first, in the given order.

    Examples
    --------
    >>> drop_duplicate_rows([[1.0], [2.0], [1.0], [1.0]], ["a", "a", "a", "b"]).tolist()
    [0, 1, 3]
    """
    points = check_array(X, dtype=np.float64, ensure_all_finite=False, ensure_min_features=0, input_name="X")
    column = as_column(y, "y")
    check_consistent_length(points, column)
    missing = missing_mask(column)
    code = np.full(len(column), -1, dtype=np.int64)
    code[~missing] = np.unique(uniform(column[~missing], "y"), return_inverse=True)[1]
    table = np.column_stack([points, code]) + 0.0  # -0.0 becomes 0.0
    table[np.isnan(table)] = np.nan  # one bit pattern
    keys = np.ascontiguousarray(table).view(np.dtype((np.void, table.itemsize * table.shape[1]))).ravel()
    return np.sort(np.unique(keys, return_index=True)[1]).astype(np.int64)


def _labels(y: ArrayLike) -> AnyArray:
    column = as_column(y, "y")
    missing = missing_mask(column)
    if len(column) == 0 or missing.any():
        first = f"row {np.argmax(missing)} has none" if missing.any() else "there are no rows"
        raise InvalidInputError(f"y must have a label in every row; {first}")
    return uniform(column, "y")


def _number(value: Any, name: str) -> float:
    if isinstance(value, bool | np.bool_) or not isinstance(value, int | float | np.integer | np.floating):
        raise InvalidInputError(f"{name} is {value!r}; it must be a number")
    return float(value)


def _size(share: float, n: int) -> int:
    if not 0 < _number(share, "share") <= 1:
        raise InvalidInputError(f"share is {share!r}; it must be above 0 and at most 1")
    if n < 1:
        raise InvalidInputError(f"there are {n} rows to draw from; at least one is needed")
    return max(1, int(np.floor(share * n + 0.5)))


def _class_weights(weights: Mapping[Any, float] | Sequence[float], positive: object, classes: AnyArray) -> FloatArray:
    known = classes.tolist()
    if isinstance(weights, Mapping):
        given = {plain(k): _number(w, f"weight of class {show(k)}") for k, w in weights.items()}
        if set(given) != set(known):
            odd = sorted(set(given) ^ set(known), key=repr)[0]
            what = "is not in y" if odd in given else "has no weight"
            raise InvalidInputError(
                f"class {show(odd)} {what}; weights are for {listing(given)}, y has {listing(known)}"
            )
        chance = np.array([given[c] for c in known])
    else:
        pair = [_number(w, "a weight") for w in weights]
        if len(pair) != 2:
            raise InvalidInputError(f"weights are {weights!r}; write {{label: weight}} or two numbers")
        if positive is None or plain(positive) not in known:
            raise InvalidInputError(
                f"positive is {show(positive)}; with two weights it must be a class: {listing(known)}"
            )
        chance = np.where(np.array([c == plain(positive) for c in known]), pair[0], pair[1])
    if not np.all(np.isfinite(chance)) or np.any(chance < 0) or not np.any(chance > 0):
        raise InvalidInputError(f"weights must be finite, none negative and not all zero, got {weights!r}")
    return chance / chance.max()


def _check_all_can_be_drawn(classes: AnyArray, chance: FloatArray, n_drawn: int) -> None:
    if len(classes) > n_drawn:
        raise InvalidInputError(f"{n_drawn} rows are drawn, too few for all {len(classes)} classes; raise share")
    if np.any(chance == 0):
        raise InvalidInputError(f"class {show(classes[chance == 0][0])} has weight zero and is never drawn")


def _generator(random_state: RandomState) -> np.random.Generator:
    if isinstance(random_state, np.random.RandomState):
        return np.random.default_rng(random_state.randint(2**31, size=4))
    if random_state is None or isinstance(random_state, np.random.Generator | np.random.SeedSequence):
        return np.random.default_rng(random_state)
    if isinstance(random_state, bool) or not isinstance(random_state, int | np.integer) or random_state < 0:
        raise InvalidInputError(
            f"random_state is {random_state!r}; use None, an int that is not negative, or a Generator"
        )
    return np.random.default_rng(int(random_state))
