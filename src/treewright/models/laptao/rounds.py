r"""LapTAO: a tree and a graph that agree on the labels, by an augmented Lagrangian.

A model T with few parameters is to be smooth along a graph W with the Laplacian L and right where labels are known,

.. math:: E(T) = \sum_n J_n \lVert T(x_n) - y_n \rVert^2 + \gamma\, T^\top L\, T + \alpha \phi(T) .

Values z of its own for each point part what is hard to do at once: z is smoothed along the graph (the label step, a
sparse linear system), T is fitted to z (the tree step), and multipliers bring both together while the penalty mu grows.
Points have weights m, so that a point of weight 2 is a repeated one:

* label step: :math:`(J + \mu m + \gamma L) z = J y + \mu m t + m \lambda / 2`;
* tree step: fit :math:`z - \lambda / (2 \mu)`, weighted by m;
* multiplier step: :math:`\lambda \leftarrow \lambda - \mu (z - t)`, twice that for the textbook's method.

With the splits of a tree fixed, the best values of its leaves solve the label step's system with mu = 0 on the graph of
the leaves. Each round ends there, and the best model of all rounds is kept, or what the tree step makes of it in the
end (:mod:`~treewright.engine.stretch`). The method is that of Zharmagambetov and Carreira-Perpinan (2022);
targets are centred by the mean of the labels, which parts of the graph without labels get.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Protocol

import numpy as np
from scipy import sparse

from treewright.core.arrays import BoolArray, FloatArray, IntArray
from treewright.core.budget import Budget
from treewright.graph import LabelSmoother, laplacian
from treewright.tree import Tree

__all__ = [
    "FittedStep",
    "GraphTask",
    "LapResult",
    "Round",
    "Schedule",
    "TreeStep",
    "graph_leaf_values",
    "smooth_and_fit",
    "clearest_labels",
]

_RESIDUAL = 1e-6
"""Relative residual of the label steps."""

_LEAST_STEPS = 20
"""Steps of conjugate gradients that a first label step makes in any case: else a model would have nothing to fit."""

_DENSE_LEAVES = 2000
"""Leaves up to which edges between them are summed in a dense table."""


@dataclass(frozen=True)
class GraphTask:
    """The task of a LapTAO: points on a graph, some of them labelled."""

    X: Any
    """Points with features of about unit size, an array in C order or a csr_array of shape (n_points, n_features)."""
    W: Any
    """Affinities, symmetric, with a zero diagonal; shape (n_points, n_points)."""
    Y: FloatArray
    """Mean of the labels of each point less the mean of all labels, 0 where there is none; shape (n_points,
    n_outputs)."""
    label_weight: FloatArray
    """J, the weight of the labels of each point, 0 where there is none; shape (n_points,)."""
    weight: FloatArray
    """m, the weight of each point, positive; shape (n_points,)."""
    gamma: float
    """Price of differences along edges."""

    def objective(self, values: FloatArray) -> tuple[float, float]:
        """Return loss at the labels and price of differences along edges, for values of the points."""
        away = values - self.Y
        loss = float(self.label_weight @ np.einsum("ij,ij->i", away, away))
        return loss, self.gamma * _roughness(self.W, values)


@dataclass(frozen=True)
class Schedule:
    """How the penalty of LapTAO rounds grows."""

    rounds: int = 20
    """Most rounds; with 0, the model is fitted to the smoothed labels and that is all."""
    mu: float = 0.002
    factor: float = 1.3
    """Penalty of the first round, and what it is multiplied by after each."""
    full: bool = False
    """Whether multipliers take the textbook's step, twice the paper's."""
    tol: float = 1e-3
    """Two rounds in which less than this share of the points changes leaves end the work."""


class FittedStep(NamedTuple):
    """The model of a LapTAO after a tree step."""

    values: FloatArray
    """What it predicts for the points; shape (n_points, n_outputs)."""
    price: float
    """What its splits cost."""
    leaf: IntArray | None
    """Leaf of each point, (n_points,), or in each tree of a forest, (n_points, n_estimators); None without trees."""
    model: Any
    """The model itself, which a later step does not change."""


class TreeStep(Protocol):
    """What fits the model of a LapTAO, again and again."""

    def fit(self, targets: FloatArray, budget: Budget) -> FittedStep:
        """Fit targets of the points; after the first time, from where the last fit ended."""

    def finish(self, model: Any, budget: Budget) -> FittedStep | None:
        """Make the model of the best round one that predicts better; None where there is nothing to do."""


class Round(NamedTuple):
    """How a LapTAO stands after a tree step; round 0 is the first fit, and a last one is that of the finished model."""

    number: int
    seconds: float
    mu: float
    label_loss: float
    smoothness: float
    price: float
    residual: float
    moved: float
    finished: bool = False

    @property
    def objective(self) -> float:
        """E of the model, its leaves at their best values."""
        return self.label_loss + self.smoothness + self.price


@dataclass(frozen=True)
class LapResult:
    """What the rounds of a LapTAO ended with."""

    model: Any
    """Model of the best round, or the finished one; the trees of a forest have the best values of their leaves."""
    values: FloatArray
    """What it predicts for the points, with the best values of its leaves, centred; shape (n_points, n_outputs)."""
    smooth: FloatArray
    """Labels smoothed along the graph alone, centred; shape (n_points, n_outputs)."""
    rounds: list[Round]
    """The course of the fit, the finished model the last one."""
    best: int
    """Number of the round of the model, or of that which it was finished from."""
    finished: bool
    """Whether the tree step had anything to finish."""
    reason: str
    """Why it ended: "rounds" are done, "settled" as the tree did not change any more, or "stopped" by the budget."""
    task: GraphTask
    """What the objective is of: the task, with all labels that were added."""

    @property
    def n_rounds(self) -> int:
        """Rounds after the first fit."""
        return len(self.rounds) - 1 - self.finished

    @property
    def objective(self) -> float:
        """Objective of the model."""
        return self.rounds[-1 if self.finished else self.best].objective


def smooth_and_fit(
    task: GraphTask,
    step: TreeStep,
    schedule: Schedule,
    budget: Budget,
    on_round: Callable[[Round], None] | None = None,
    sharpen: Callable[[GraphTask, FloatArray], GraphTask] | None = None,
) -> LapResult:
    """Alternate between smoothed labels and model as LapTAO does, and keep the best model.

    Parameters
    ----------
    task : GraphTask
        Points, graph and labels.
    step : TreeStep
        What fits the model.
    schedule : Schedule
        Rounds and penalties.
    budget : Budget
        Ends the work early; a model is fitted in any case.
    on_round : callable or None
        Told of each round.
    sharpen : callable or None
        Task and smoothed labels to a task with more labels, see :func:`clearest_labels`.

    Examples
    --------
    Two clusters with one label each:

    >>> from treewright.graph import neighbor_graph
    >>> from treewright.models.laptao.tree_steps import CartStep
    >>> rng = np.random.default_rng(0)
    >>> X = np.concatenate([rng.normal(0.0, 0.1, (20, 1)), rng.normal(1.0, 0.1, (20, 1))])
    >>> known = np.zeros(40)
    >>> known[[0, 39]] = 1.0
    >>> Y = np.where(X > 0.5, 0.5, -0.5) * known[:, None]
    >>> task = GraphTask(X, neighbor_graph(X, 5, 3.0), Y, known, np.ones(40), gamma=0.1)
    >>> result = smooth_and_fit(task, CartStep(X, np.ones(40), max_depth=1, seed=0), Schedule(), Budget())
    >>> bool(np.all(np.sign(result.values) == np.where(X > 0.5, 1.0, -1.0))), result.reason
    (True, 'settled')
    """
    smoother = LabelSmoother(task.W, task.label_weight, task.gamma, task.weight, tol=_RESIDUAL)
    half = budget.share(0.5)  # the model is to have as much time
    z = smooth = smoother.solve(task.label_weight[:, None] * task.Y, 0.0, budget=half, least_steps=_LEAST_STEPS)
    if sharpen is not None and (smoother.converged or not half.over):  # else points are clear by chance
        task = sharpen(task, smooth)
        smoother = LabelSmoother(task.W, task.label_weight, task.gamma, task.weight, tol=_RESIDUAL)
        right = task.label_weight[:, None] * task.Y
        z = smoother.solve(right, 0.0, start=smooth, budget=half, least_steps=_LEAST_STEPS)
    known, mass = task.label_weight[:, None] * task.Y, task.weight[:, None]
    fitted = step.fit(z, budget)
    keeper = _Keeper(task, budget, on_round)
    keeper.offer(fitted, z, 0.0)
    multiplier, mu, reason = np.zeros(z.shape), schedule.mu, "rounds"
    for _ in range(schedule.rounds):
        if budget.over:
            reason = "stopped"
            break
        right_hand_side = known + mass * (mu * fitted.values + multiplier / 2)
        z = smoother.solve(right_hand_side, mu, start=z, budget=budget)
        fitted = step.fit(z - multiplier / (2 * mu), budget)
        multiplier -= (2.0 if schedule.full else 1.0) * mu * (z - fitted.values)
        keeper.offer(fitted, z, mu)
        if len(keeper.rounds) > 2 and max(keeper.rounds[-1].moved, keeper.rounds[-2].moved) < schedule.tol:
            reason = "settled"
            break
        mu *= schedule.factor
    finished = None if budget.over else step.finish(keeper.best[0].model, budget)
    if finished is not None:
        keeper.close(finished, z)
    if budget.over:
        reason = "stopped"
    best, values, number = keeper.best
    model = _with_best_leaves(task, best) if isinstance(best.model, list) else best.model
    return LapResult(model, values, smooth, keeper.rounds, number, finished is not None, reason, task)


def clearest_labels(
    task: GraphTask,
    smooth: FloatArray,
    mean: FloatArray,
    share: float,
    strength: float,
    given: BoolArray | None = None,
) -> GraphTask:
    """Take the clearest smoothed labels of a LapTAO for labels.

    With few labels, smoothed ones are spikes at the labels on a plain: nearly all points have nearly the same values,
    though their order is right, and a tree that is fitted to squared errors sees the spikes. Labels of points that are
    clear, in each class the given share of them, bring the plain to the height that it stands for.

    Parameters
    ----------
    task : GraphTask
        Points, graph and labels, which are classes: a 1 in the column of the class, less `mean`.
    smooth : ndarray of shape (n_points, n_classes)
        Smoothed labels.
    mean : ndarray of shape (n_classes,)
        Mean of the labels.
    share : float
        Share of the points that are trusted, in each class those with the largest margin between the best and the
        second class. Points that no label reaches are not.
    strength : float
        Weight of their labels, relative to the weight of the point, where they have no larger one.
    given : ndarray of bool, shape (n_points,), or None
        Points that keep their labels; None for all that have some.

    Returns
    -------
    GraphTask
        The task with these labels added.
    """
    score = smooth + mean
    best = score.argmax(axis=1)
    second = np.partition(score, -2, axis=1)[:, -2]
    margin = (score[np.arange(len(best)), best] - second) / np.maximum(np.abs(score).sum(axis=1), 1e-300)
    keep = task.label_weight > 0 if given is None else given
    open_ = np.flatnonzero(~keep & (np.abs(smooth).max(axis=1) > 1e-9))
    order = open_[np.lexsort((-margin[open_], best[open_]))]
    # Place of each point among those of its class, and how many these are.
    _, starts, counts = np.unique(best[order], return_index=True, return_counts=True)
    place = np.arange(len(order)) - np.repeat(starts, counts)
    chosen = order[place < share * np.repeat(counts, counts)]
    Y, label_weight = task.Y.copy(), task.label_weight.copy()
    Y[chosen] = np.eye(len(mean))[best[chosen]] - mean
    label_weight[chosen] = np.maximum(strength * task.weight[chosen], label_weight[chosen])
    return replace(task, Y=Y, label_weight=label_weight)


class _Keeper:
    """The rounds so far, and the best model."""

    def __init__(self, task: GraphTask, budget: Budget, on_round: Callable[[Round], None] | None) -> None:
        self.task, self.budget, self.on_round = task, budget, on_round
        self.rounds: list[Round] = []
        self.last: FittedStep | None = None
        self.best: tuple[FittedStep, FloatArray, int]

    def offer(self, fitted: FittedStep, z: FloatArray, mu: float) -> None:
        """Note the model of a round, and keep it if it is the best one."""
        now, values = self._note(fitted, z, mu)
        if len(self.rounds) == 1 or now.objective < self.rounds[self.best[2]].objective:
            self.best = fitted, values, now.number

    def close(self, fitted: FittedStep, z: FloatArray) -> None:
        """Note the finished model, and keep it: it is made to predict well, not to lower the objective."""
        self.last, _, best = self.best
        _, values = self._note(fitted, z, self.rounds[-1].mu, finished=True)
        self.best = fitted, values, best

    def _note(self, fitted: FittedStep, z: FloatArray, mu: float, finished: bool = False) -> tuple[Round, FloatArray]:
        values, loss, smoothness = _settled_values(self.task, fitted)
        residual = float(np.sqrt(np.sum(self.task.weight[:, None] * (z - fitted.values) ** 2)))
        moved = _moved(self.last, fitted)
        number = len(self.rounds)
        now = Round(number, self.budget.elapsed, mu, loss, smoothness, fitted.price, residual, moved, finished)
        self.rounds.append(now)
        self.last = fitted
        if self.on_round is not None:
            self.on_round(now)
        return now, values


def _settled_values(task: GraphTask, fitted: FittedStep) -> tuple[FloatArray, float, float]:
    """Values of the points with the leaves of trees at their best, loss at the labels and price along edges.

    The trees of a forest get theirs one by one, as if each were alone: together they would fit the labels exactly.
    """
    if fitted.leaf is None:
        return fitted.values, *task.objective(fitted.values)
    if fitted.leaf.ndim == 1:
        numbers, leaf = np.unique(fitted.leaf, return_inverse=True)
        table, loss, smoothness = graph_leaf_values(task, leaf, len(numbers))
        return table[leaf], loss, smoothness
    values = np.zeros(task.Y.shape)
    for column in fitted.leaf.T:
        numbers, leaf = np.unique(column, return_inverse=True)
        values += graph_leaf_values(task, leaf, len(numbers))[0][leaf]
    values /= fitted.leaf.shape[1]
    return values, *task.objective(values)


def _with_best_leaves(task: GraphTask, fitted: FittedStep) -> list[Tree]:
    """The trees of a forest, each with the best values of its leaves."""
    assert fitted.leaf is not None
    trees = []
    for tree, column in zip(fitted.model, fitted.leaf.T, strict=True):
        numbers, leaf = np.unique(column, return_inverse=True)
        values = tree.values.copy()
        values[numbers] = graph_leaf_values(task, leaf, len(numbers))[0]
        trees.append(tree.with_leaves(values, None))
    return trees


def graph_leaf_values(task: GraphTask, leaf: IntArray, n_leaves: int) -> tuple[FloatArray, float, float]:
    r"""Best leaf values of a LapTAO tree, :math:`(B^\top J B + \gamma B^\top L B)\, c = B^\top J y`, equation (10).

    It is the label step with mu = 0 on the graph of the leaves, whose edges are those of the points between them, added
    up. Leaves that no label reaches along edges get 0, the mean of the labels.

    Parameters
    ----------
    task : GraphTask
        Points, graph and labels.
    leaf : ndarray of int, shape (n_points,)
        Leaf of each point, from 0 to ``n_leaves - 1``.
    n_leaves : int
        Number of leaves.

    Returns
    -------
    values : ndarray of shape (n_leaves, n_outputs)
        Values of the leaves.
    loss, smoothness : float
        Loss at the labels and price of differences along edges.
    """
    edges = _edges_between(task.W, leaf, n_leaves)
    counts = np.asarray(np.bincount(leaf, task.label_weight, n_leaves), dtype=np.float64)
    sums: FloatArray = np.empty((n_leaves, task.Y.shape[1]))
    for output, column in enumerate(task.Y.T):
        sums[:, output] = np.bincount(leaf, task.label_weight * column, n_leaves)
    table = LabelSmoother(edges, counts, task.gamma, tol=1e-10).solve(sums, 0.0)
    away = table[leaf] - task.Y
    loss = float(task.label_weight @ np.einsum("ij,ij->i", away, away))
    return table, loss, task.gamma * _roughness(edges, table)


def _roughness(W: Any, values: FloatArray) -> float:
    """Squared differences along edges, which rounding must not make negative."""
    return max(0.0, float(np.vdot(values, laplacian(W) @ values)))


def _edges_between(W: Any, leaf: IntArray, n_leaves: int) -> Any:
    """Affinities between leaves: those between their points, added up; none of a leaf to itself."""
    rows = np.repeat(leaf, np.diff(W.indptr))
    columns = leaf[W.indices]
    apart = rows != columns
    rows, columns, data = rows[apart], columns[apart], W.data[apart]
    if n_leaves <= _DENSE_LEAVES:
        table = np.bincount(rows * n_leaves + columns, data, n_leaves * n_leaves).reshape(n_leaves, n_leaves)
        return sparse.csr_array((table + table.T) / 2)
    table = sparse.coo_array((data, (rows, columns)), shape=(n_leaves, n_leaves)).tocsr()
    return ((table + table.T) / 2).tocsr()


def _moved(before: FittedStep | None, now: FittedStep) -> float:
    """Share of the points that changed leaves, or of the predictions that changed where there are none."""
    if before is None:
        return 1.0
    if before.leaf is None or now.leaf is None:
        size = float(np.linalg.norm(before.values)) or 1.0
        return float(np.linalg.norm(now.values - before.values)) / size
    return float(np.mean(before.leaf != now.leaf))
