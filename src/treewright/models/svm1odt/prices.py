"""Prices of SVM1-ODT that are chosen on the training rows: cross-validation along a path."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from joblib import Parallel, delayed

from treewright.core.arrays import BoolArray, FloatArray, IntArray
from treewright.core.budget import Budget
from treewright.models.svm1odt.objective import SVM1ODT
from treewright.models.svm1odt.search import search_svm1odt, start_trees
from treewright.optimize.incumbent import Incumbent
from treewright.optimize.settings import SVM1ODTSearch
from treewright.tree import Tree, predict_labels

__all__ = ["beats_leaf", "fold_errors", "prices_in_the_race", "leaf_errors", "strongest_best_price"]


def fold_errors(
    models: Sequence[Callable[[IntArray], SVM1ODT]],
    model: SVM1ODT,
    fold: IntArray,
    budget: Budget,
    seed: int,
    threads: int,
    search: SVM1ODTSearch,
    held_out: int | None = None,
    given: Sequence[Tree] = (),
) -> FloatArray | None:
    """Errors of each SVM1-ODT of several prices on points that it was not trained on, by weight, in each fold.

    Parameters
    ----------
    models : sequence of callable
        Points to the model on them, along the path; each search goes on from the tree of the last one, and from the
        best of the starts that all searches have.
    model : SVM1ODT
        A model on all points.
    fold : ndarray of int
        The fold of each point.
    budget : Budget
        Time for all of it.
    seed, threads : int
        Of the searches; each fold has a thread.
    search : SVM1ODTSearch
        How much they do.
    held_out : int or None
        Folds that are held out in turn, None for all.
    given : sequence of Tree
        Trees to start from besides.

    Returns
    -------
    ndarray of shape (n_models, n_folds) or None
        Errors, infinite for models at the end of the path that there was no time for; None if there was none at all.
    """
    jobs = [(fold != k, fold == k) for k in range(int(fold.max()) + 1)[:held_out]]
    waves = -(-len(jobs) // threads)

    def along(inside: IntArray, outside: IntArray, wave: int) -> list[float] | None:
        rows, errors = np.flatnonzero(inside), list[float]()
        time = budget.share(1 / (waves - wave))
        first = models[0](rows)
        starts = [*given, *start_trees(first, time.share(0.2), search.tao_alpha)]  # the same whatever the prices
        tree = Tree.leaf(np.bincount(first.y, first.weight, first.n_classes), first.X.shape[1])
        for k, make in enumerate(models):
            if time.over:  # what there was no time for is not chosen
                return [*errors, *[np.inf] * (len(models) - k)] if k else None
            some = make(rows)
            best = Incumbent(some, floor=0.0)
            best.offer(tree)
            start = min(starts, key=lambda start: some.objective(some.repair(start)))
            search_svm1odt(best, some, [start], time.share(1 / (len(models) - k)), seed, 1, search)
            assert best.solution is not None
            tree = best.solution
            wrong = predict_labels(tree, model.X[outside]) != model.y[outside]
            errors.append(float(model.weight[outside][wrong].sum()))
        return errors

    found = list[list[float] | None]()
    with Parallel(n_jobs=threads, backend="threading") as parallel:
        for wave in range(waves):
            part = jobs[wave * threads : (wave + 1) * threads]
            found += parallel(delayed(along)(*job, wave) for job in part)
    known = [errors for errors in found if errors is not None]
    return np.array(known).T if len(known) == len(jobs) else None


def prices_in_the_race(errors: FloatArray, n_folds: int, leeway: float = 2.0) -> BoolArray:
    """Which SVM1-ODT prices are not clearly worse than the best one, and worth another partition.

    Prices are compared fold by fold. As partitions have the same points, and folds of a partition most training points,
    in common, the variance of a mean of m differences of variance s^2 is taken to be (1 / m + 1 / (n_folds - 1)) s^2
    (Nadeau and Bengio 2003).

    Parameters
    ----------
    errors : ndarray of shape (n_prices, n_partitions * n_folds)
        Errors in each fold, infinite where they are not known.
    n_folds : int
        Folds of a partition.
    leeway : float
        Standard errors by which a price may be worse than the best one.

    Examples
    --------
    >>> errors = np.array([[9.0, 8.0], [2.0, 3.0], [3.0, 1.0], [1.0, np.inf]])
    >>> prices_in_the_race(errors, 2).tolist()
    [False, True, True, False]
    """
    known = np.flatnonzero(np.isfinite(errors.sum(axis=1)))
    kept = np.zeros(len(errors), dtype=bool)
    worse = errors[known] - errors[strongest_best_price(errors)]
    kept[known] = worse.mean(axis=1) <= leeway * _standard_error(worse, n_folds) + 1e-9
    return kept


def _standard_error(differences: FloatArray, n_folds: int) -> FloatArray:
    """Standard error of the mean of each row of differences, one for each fold."""
    m = differences.shape[1]
    spread = differences.std(axis=1, ddof=1) if m > 1 else np.full(len(differences), np.inf)  # one says nothing of it
    return np.sqrt(1.0 / m + 1.0 / (n_folds - 1)) * spread


def leaf_errors(y: IntArray, weight: FloatArray, fold: IntArray, held_out: int | None = None) -> FloatArray:
    """Errors of a single leaf in each fold, by weight, to compare an SVM1-ODT with: it says the heaviest class.

    Examples
    --------
    >>> y, fold = np.array([0, 0, 1, 0, 1, 1]), np.array([0, 0, 0, 1, 1, 1])
    >>> leaf_errors(y, np.array([1.0, 1.0, 1.0, 5.0, 2.0, 2.0]), fold)
    array([1., 4.])
    """
    n_folds = int(fold.max()) + 1
    mass = np.zeros((n_folds, int(y.max()) + 1))
    np.add.at(mass, (fold, y), weight)
    said = (mass.sum(axis=0) - mass).argmax(axis=1)
    return (mass.sum(axis=1) - mass[np.arange(n_folds), said])[:held_out]


def beats_leaf(errors: FloatArray, leaf: FloatArray, n_folds: int, leeway: float = 0.5) -> bool:
    """Whether the least of several SVM1-ODT errors is clearly below those of a single leaf.

    The least of several is low by chance alone, and a tree of splits that are no better than none is worse than none:
    haberman, three draws, 71.0 % right on new rows with the price of least error and 74.0 with a leaf, where its gain
    was 0.1 to 0.3 standard errors; on heart it was 0.9 to 3, and splits were worth 4 points.

    Examples
    --------
    >>> leaf = np.array([5.0, 6.0, 5.0, 4.0])
    >>> beats_leaf(np.array([5.0, 4.0, 7.0, 3.0]), leaf, 4), beats_leaf(np.array([3.0, 3.0, 4.0, 2.0]), leaf, 4)
    (False, True)
    """
    gain = (leaf - errors)[None, :]
    return bool((gain.mean(axis=1) > leeway * _standard_error(gain, n_folds) + 1e-9)[0])


def strongest_best_price(errors: FloatArray) -> int:
    """The first row, the strongest SVM1-ODT price, of the least sum of errors, but for rounding.

    Examples
    --------
    >>> strongest_best_price(np.array([[3.0, 2.0], [2.0, 2.0], [1.0, 3.0]]))
    1
    """
    total = errors.sum(axis=1)
    return int(np.argmax(total <= total.min() + 1e-9 * (1.0 + total.min())))
