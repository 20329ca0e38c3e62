r"""Labels that a committee of trees holds for wrong, each row judged by trees that did not see it.

The committee has four kinds of trees, all fitted to parts of the rows: maximum-margin trees with relabelling (OCTSVM,
one a class if there are several) on all features and on half of them, and extremely randomized trees that look at few
and at half of the features. The former are good where classes are parted by sums of features, the latter where single
features and their interactions count. What the kinds say of a row that they did not see is added with weights that are
fitted to the labels by logistic regression, pulled towards equal ones. As wrong labels are about as wrong for all
kinds, the kind that predicts the given labels best also predicts the true ones best.

A row is held for wrong by the rule of confident learning (Northcutt, Jiang, Chuang 2021): some other class is at least
as probable for it as that class is on average for the rows that are labelled so, and is the most probable of such ones.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from joblib import Parallel, delayed
from scipy.optimize import minimize
from scipy.special import logsumexp
from sklearn.tree import ExtraTreeClassifier

from treewright.core.arrays import BoolArray, FloatArray, IntArray
from treewright.core.budget import Budget
from treewright.models.octsvm.machines import NORMS, Prices
from treewright.models.octsvm.node_loops import last_values
from treewright.models.octsvm.search import improved_machines, leaf_machines
from treewright.optimize.conduct import Conduct

__all__ = ["FEWEST", "Suspects", "confident_labels", "find_suspects", "unfinished_committee_words"]

FEWEST = 5
"""Points of a class with fewer of which no committee can judge it: nobody would be left to learn from."""

_SHARE, _MOST = 0.7, 2000
"""Share of the points that a maximum-margin tree sees, and most of them."""

_DEPTH, _PASSES = 2, 4
"""Depth of the maximum-margin trees and passes over each."""

_LENGTHS = ((4.0,), (4.0, 8.0))
_RELABEL = (1.0, 2.0)
"""Bounds of the normals, for all features and for half of them, and prices of a relabelled point, that are drawn."""

_RANDOMIZED, _RANDOMIZED_ROWS = 5, 5000
"""Randomized trees for each maximum-margin tree, and most points that one draws."""

_FEWEST_ROUNDS = 5
"""Rounds, a tree of each kind, with fewer of which the committee has no opinion."""

_EVEN = 10.0
"""How much weights of kinds that differ are punished, in points."""


@dataclass(frozen=True, eq=False)
class Suspects:
    """What a committee of OCTSVM trees says of labels.

    Attributes
    ----------
    suspicion : ndarray of shape (n_points,)
        Log-odds of the most probable other label against the given one.
    suggested : ndarray of int, shape (n_points,)
        The label that each point should have: the given one, or the one it is held for.
    relabeled : ndarray of bool, shape (n_points,)
        Which labels are held for wrong.
    probability : ndarray of shape (n_points, n_classes)
        Of the classes, out of sample.
    n_rounds : int
        Rounds of the committee that there was time for.
    """

    suspicion: FloatArray
    suggested: IntArray
    relabeled: BoolArray
    probability: FloatArray
    n_rounds: int


def find_suspects(
    X: FloatArray,
    y: IntArray,
    weight: FloatArray,
    n_classes: int,
    n_trees: int,
    conduct: Conduct,
    budget: Budget,
) -> Suspects | None:
    """Let a committee of OCTSVM trees judge labels; None if a class has too few points or time for no opinion.

    Parameters
    ----------
    X : ndarray of shape (n_points, n_features)
        Points, features in [0, 1].
    y : ndarray of int, shape (n_points,)
        Class numbers.
    weight : ndarray of shape (n_points,)
        Weights, above 0.
    n_classes : int
        Number of classes.
    n_trees : int
        Maximum-margin trees of each kind.
    conduct : Conduct
        Threads and seed; what is found does not depend on the threads.
    budget : Budget
        Ends the work early: with the opinions so far.

    Examples
    --------
    >>> X = np.repeat(np.linspace(0, 1, 10), 4)[:, None] + np.tile([0.0, 0.01, 0.02, 0.03], 10)[:, None]
    >>> y = np.repeat([0, 1], 20)
    >>> y[3] = 1
    >>> found = find_suspects(X, y, np.ones(40), 2, 20, Conduct(), Budget())
    >>> np.flatnonzero(found.relabeled).tolist(), int(found.suspicion.argmax())
    ([3], 3)
    """
    if n_classes < 2 or np.bincount(y, minlength=n_classes).min() < FEWEST or X.shape[1] == 0:
        return None
    weight = weight / weight.mean()
    task = _Task(np.ascontiguousarray(X), y, weight, n_classes, budget)
    with Parallel(n_jobs=conduct.threads, backend="threading") as parallel:
        rounds = parallel(delayed(task.opinions)(conduct.seed, number) for number in range(n_trees))
    heard = [opinions for opinions in rounds if opinions is not None]
    if len(heard) < min(_FEWEST_ROUNDS, n_trees):
        return None
    kinds = [_centred(*(sum(parts) for parts in zip(*kind, strict=True))) for kind in zip(*heard, strict=True)]
    spoken = [kind / size for kind in kinds if (size := float(np.sqrt((kind**2).mean()))) > 0]
    if not spoken:
        return None
    scores = _added(np.stack(spoken), y, weight)
    probability = np.exp(scores - logsumexp(scores, axis=1, keepdims=True))
    rows = np.arange(len(y))
    other = scores.copy()
    other[rows, y] = -np.inf
    suggested = confident_labels(probability, y, weight)
    return Suspects(other.max(axis=1) - scores[rows, y], suggested, suggested != y, probability, len(heard))


def unfinished_committee_words(n_rounds: int, asked: int) -> str:
    """What to say of an OCTSVM committee that ran out of time."""
    return (
        f"the committee that looks for wrong labels had time for {n_rounds} of {asked} rounds (n_estimators); a longer "
        "time_limit makes it surer"
    )


def confident_labels(probability: FloatArray, y: IntArray, weight: FloatArray) -> IntArray:
    """Labels by an OCTSVM committee, by confident learning; the given one where no other is confident.

    Parameters
    ----------
    probability : ndarray of shape (n_points, n_classes)
        Out of sample.
    y : ndarray of int, shape (n_points,)
        Given labels.
    weight : ndarray of shape (n_points,)
        Weights.

    Examples
    --------
    >>> P = np.array([[0.9, 0.1], [0.8, 0.2], [0.1, 0.9], [0.3, 0.7], [0.2, 0.8]])
    >>> confident_labels(P, np.array([0, 0, 0, 1, 1]), np.ones(5)).tolist()
    [0, 0, 1, 1, 1]
    """
    n_classes = probability.shape[1]
    total = np.bincount(y, weight, n_classes)
    own = np.bincount(y, weight * probability[np.arange(len(y)), y], n_classes)
    usual = np.divide(own, total, out=np.full(n_classes, np.inf), where=total > 0)
    confident = np.where(probability >= usual, probability, -1.0)
    confident[np.arange(len(y)), y] *= 1 + 1e-9  # who is as probable as the given label does not refute it
    best = confident.argmax(axis=1)
    return np.asarray(np.where(confident.max(axis=1) >= 0, best, y), dtype=np.int64)


Votes = tuple[FloatArray, FloatArray]
"""What was said of each class at each point, added up, and by how many."""


@dataclass(frozen=True, eq=False)
class _Task:
    """The points, and what trees say of those they did not see."""

    X: FloatArray
    y: IntArray
    weight: FloatArray
    n_classes: int
    budget: Budget

    def opinions(self, seed: int, number: int) -> tuple[Votes, Votes, Votes, Votes] | None:
        """A round of the committee, a vote of each kind; None if time is over."""
        if self.budget.over:
            return None
        rng = np.random.default_rng([seed, number])
        machines = self._margin(rng, half=0), self._margin(rng, half=1)
        randomized = self._randomized(rng, "sqrt"), self._randomized(rng, 0.5)
        return None if self.budget.over else (*machines, *randomized)

    def _nothing(self) -> Votes:
        return np.zeros((len(self.y), self.n_classes)), np.zeros(len(self.y))

    def _randomized(self, rng: np.random.Generator, features: str | float) -> Votes:
        """Extremely randomized trees on rows drawn with replacement."""
        votes, judges = self._nothing()
        X, n = self.X.astype(np.float32), len(self.y)
        for _ in range(_RANDOMIZED):
            if self.budget.over:
                break
            times = np.bincount(rng.integers(n, size=min(n, _RANDOMIZED_ROWS)), minlength=n)
            seen, out = np.flatnonzero(times), np.flatnonzero(times == 0)
            tree = ExtraTreeClassifier(
                min_samples_leaf=2, max_features=features, random_state=int(rng.integers(2**31 - 1))
            )
            tree.fit(X[seen], self.y[seen], sample_weight=self.weight[seen] * times[seen], check_input=False)
            votes[np.ix_(out, tree.classes_)] += tree.tree_.predict(X[out]).reshape(len(out), len(tree.classes_))
            judges[out] += 1
        return votes, judges

    def _margin(self, rng: np.random.Generator, half: int) -> Votes:
        """A maximum-margin tree, one a class if there are several; on half of the features if `half` is 1."""
        votes, judges = self._nothing()
        n, p = self.X.shape
        order = rng.permutation(n)
        seen = max(2, min(int(_SHARE * n), _MOST))
        inside, out = order[:seen], order[seen:]
        features = np.sort(rng.permutation(p)[: max(min(2, p), -(-p // 2))]) if half else np.arange(p)
        prices = Prices(_DEPTH, float(rng.choice(_RELABEL)), 0.0, float(rng.choice(_LENGTHS[half])), NORMS["l2"])
        own, others = (np.ascontiguousarray(self.X[np.ix_(rows, features)]) for rows in (inside, out))
        for label in [1] if self.n_classes == 2 else range(self.n_classes):
            sign, weight = np.where(self.y[inside] == label, 1.0, -1.0), self.weight[inside]
            machines = leaf_machines(_DEPTH, len(features), sign, weight)
            improved_machines(own, sign, weight, machines, prices, rng, self.budget, passes=_PASSES)
            votes[out, label] = np.clip(last_values(others, machines), -1.0, 1.0)
        judges[out] = 1.0
        return votes, judges


def _centred(votes: FloatArray, judges: FloatArray) -> FloatArray:
    """Mean votes less their mean over the classes; 0 for points that nobody judged."""
    shares = votes / np.maximum(judges, 1)[:, None]
    return np.asarray(shares - shares.mean(axis=1, keepdims=True))


def _added(kinds: FloatArray, y: IntArray, weight: FloatArray) -> FloatArray:
    """Scores of the classes: the kinds, with weights from 0 on that fit the labels best and do not differ much."""
    n_kinds, n = len(kinds), len(y)
    rows = np.arange(n)

    def loss(parts: FloatArray) -> tuple[float, FloatArray]:
        scores = np.tensordot(parts, kinds, axes=1)
        logs = scores - logsumexp(scores, axis=1, keepdims=True)
        pull = np.exp(logs)
        pull[rows, y] -= 1.0
        apart = parts - parts.mean()
        value = -float(weight @ logs[rows, y]) + _EVEN * float(apart @ apart)
        return value, np.einsum("kij,ij->k", kinds, pull * weight[:, None]) + 2 * _EVEN * apart

    start = np.full(n_kinds, 0.5 / n_kinds)
    return np.tensordot(_minimum(loss, start), kinds, axes=1)


def _minimum(loss: Callable[[FloatArray], tuple[float, FloatArray]], start: FloatArray) -> FloatArray:
    found = minimize(loss, start, jac=True, method="L-BFGS-B", bounds=[(0.0, None)] * len(start))
    return np.asarray(found.x)
