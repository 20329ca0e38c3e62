"""Smoothing and fitting by turns, against dense numpy solves and plain loops."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import make_moons
from tests.examples import looped

from treewright.core.budget import Budget
from treewright.graph import neighbor_graph, smoothing
from treewright.models.laptao import rounds as module
from treewright.models.laptao.rounds import (
    FittedStep,
    GraphTask,
    Schedule,
    clearest_labels,
    graph_leaf_values,
    smooth_and_fit,
)
from treewright.models.laptao.tree_steps import CartStep
from treewright.tree import route


def random_task(n=40, outputs=2, seed=0, parts=2, labels=8, weighted=True):
    """Points in parts without edges between them, of which the last one has no label."""
    rng = np.random.default_rng(seed)
    part = np.arange(n) * parts // n
    W = np.triu(rng.random((n, n)) * (rng.random((n, n)) < 0.3) * (part[:, None] == part), 1)
    W += W.T
    known = np.zeros(n, dtype=bool)
    known[rng.choice(np.flatnonzero(part < max(1, parts - 1)), labels, replace=False)] = True
    J = np.where(known, rng.random(n) + 0.5 if weighted else 1.0, 0.0)
    m = rng.random(n) + 0.2 if weighted else np.ones(n)
    Y = np.where(known[:, None], rng.standard_normal((n, outputs)), 0.0)
    return GraphTask(rng.random((n, 3)), sparse.csr_array(W), Y, J, m, 0.3), W


def dense_laplacian(W):
    return np.diag(W.sum(axis=1)) - W


def plain_objective(task, W, values):
    """Loss at the labels and the double sum over the edges."""
    loss = sum(J * ((v - y) ** 2).sum() for J, v, y in zip(task.label_weight, values, task.Y, strict=True))
    n = len(W)
    edges = sum(W[i, j] * ((values[i] - values[j]) ** 2).sum() for i in range(n) for j in range(n))
    return loss, 0.5 * task.gamma * edges


# ---------------------------------------------------------------------- the objective and the values of leaves


def test_the_objective_is_a_double_sum_over_edges():
    task, W = random_task()
    values = np.random.default_rng(1).standard_normal((40, 2))
    assert task.objective(values) == pytest.approx(plain_objective(task, W, values))


@pytest.mark.parametrize("table_of_edges", ["dense", "sparse"])
@looped("seed", range(4))
def test_leaf_values_solve_equation_ten(seed, table_of_edges, monkeypatch):
    monkeypatch.setattr(module, "_DENSE_LEAVES", 2000 if table_of_edges == "dense" else 0)
    task, W = random_task(seed=seed)
    # Leaves 0 to 3 have points of the first part, 4 to 6 of the second, where no label is.
    rng = np.random.default_rng(seed + 10)
    leaf = np.where(np.arange(40) < 20, rng.integers(0, 4, 40), rng.integers(4, 7, 40))
    values, loss, smoothness = graph_leaf_values(task, leaf, 7)
    B, J = np.eye(7)[leaf], np.diag(task.label_weight)
    A = B.T @ J @ B + task.gamma * B.T @ dense_laplacian(W) @ B
    oracle = np.linalg.lstsq(A, B.T @ J @ task.Y, rcond=1e-10)[0]  # of all solutions the shortest: 0 without labels
    assert values == pytest.approx(oracle, abs=1e-8)
    assert not np.any(values[4:]) and np.any(values[:4])
    assert (loss, smoothness) == pytest.approx(plain_objective(task, W, oracle[leaf]))
    # No other values are better, whatever the solver.
    for _ in range(20):
        other = oracle + 1e-3 * rng.standard_normal(oracle.shape)
        assert sum(plain_objective(task, W, other[leaf])) > loss + smoothness


def test_a_label_across_an_edge_reaches_a_leaf_without_one():
    W = np.array([[0.0, 1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 0.0]])
    task = GraphTask(
        np.zeros((3, 1)), sparse.csr_array(W), np.array([[2.0], [0.0], [0.0]]), np.eye(3)[0], np.ones(3), 1
    )
    values, loss, smoothness = graph_leaf_values(task, np.array([0, 1, 2]), 3)
    assert values.ravel().tolist() == pytest.approx([2.0, 2.0, 0.0]) and loss + smoothness == pytest.approx(0.0)


# ---------------------------------------------------------------------- the rounds


class Groups:
    """A model that is constant in given groups of points: weighted means. It notes what it was asked to fit."""

    def __init__(self, group, weight):
        self.group, self.weight, self.asked = group, weight, []

    def fit(self, targets, budget):
        self.asked.append(targets.copy())
        B = np.eye(self.group.max() + 1)[self.group]
        mean = (B * self.weight[:, None]).T @ targets / (B.T @ self.weight)[:, None]
        return FittedStep(mean[self.group], 0.25, self.group, len(self.asked) - 1)

    def finish(self, model, budget):
        return None


@pytest.mark.parametrize("full", [False, True])
@pytest.mark.parametrize(("method", "places"), [("factors", 1e-9), ("gradients", 1e-4)])
def test_label_steps_and_multipliers_against_dense_solves(full, method, places, monkeypatch):
    monkeypatch.setattr(smoothing, "_DIRECT_POINTS", 1000 if method == "factors" else 0)
    task, W = random_task(seed=5)
    # The first round's penalty is that of the schedule, and each later one is larger by the factor.
    step = Groups(np.arange(40) % 6, task.weight)
    result = smooth_and_fit(task, step, Schedule(rounds=6, mu=0.05, factor=1.7, full=full, tol=0.0), Budget())
    L, J, m = dense_laplacian(W), np.diag(task.label_weight), np.diag(task.weight)
    z = np.linalg.lstsq(J + task.gamma * L, J @ task.Y, rcond=1e-10)[0]
    assert result.smooth == pytest.approx(z, abs=places)
    assert step.asked[0] == pytest.approx(z, abs=places)
    own = Groups(step.group, task.weight)
    t, multiplier, mu = own.fit(z, None).values, np.zeros(z.shape), 0.05
    for now, asked in zip(result.rounds[1:], step.asked[1:], strict=True):
        # The gradient of J |z - y|^2 + gamma z'Lz - m lambda (z - t) + mu m |z - t|^2 is zero.
        z = np.linalg.solve(J + mu * m + task.gamma * L, J @ task.Y + mu * m @ t + m @ multiplier / 2)
        assert asked == pytest.approx(z - multiplier / (2 * mu), abs=places)
        t = own.fit(z - multiplier / (2 * mu), None).values
        multiplier = multiplier - (2 if full else 1) * mu * (z - t)
        assert now.mu == pytest.approx(mu)
        assert now.residual == pytest.approx(np.sqrt((task.weight[:, None] * (z - t) ** 2).sum()), abs=10 * places)
        mu *= 1.7
    assert len(result.rounds) == 7 and result.reason == "rounds"


def moons(labels=6, n=300):
    X, y = make_moons(n, noise=0.08, random_state=0)
    X = (X - X.min(axis=0)) / np.ptp(X, axis=0)
    known = np.zeros(n)
    rng = np.random.default_rng(0)
    for k in (0, 1):
        known[rng.choice(np.flatnonzero(y == k), labels // 2, replace=False)] = 1.0
    W = neighbor_graph(X, 10, 5.0)
    Y = known[:, None] * (np.eye(2)[y] - 0.5)
    return GraphTask(X, W, Y, known, np.ones(n), 0.1), y


def test_the_penalty_brings_labels_and_model_together():
    task, _ = moons()
    last = {}
    for full in (False, True):
        step = CartStep(task.X, task.weight, 3, 0)
        result = smooth_and_fit(task, step, Schedule(25, 0.002, 1.5, full, tol=0.0), Budget())
        residuals = [now.residual for now in result.rounds]
        last[full] = residuals[-1]
        assert residuals[-1] < 0.05 * residuals[1]
    assert last[True] <= last[False] * 1.001


def test_the_best_round_is_kept_and_its_values_have_its_objective():
    task, _ = moons()
    heard = []
    step = CartStep(task.X, task.weight, 2, 0)
    result = smooth_and_fit(task, step, Schedule(15, tol=0.0), Budget(), heard.append)
    objectives = [now.objective for now in result.rounds]
    assert heard == result.rounds and [now.number for now in heard] == list(range(16))
    assert result.best == int(np.argmin(objectives)) and min(objectives) < max(objectives)
    loss, edges = plain_objective(task, task.W.toarray(), result.values)
    assert loss + edges == pytest.approx(objectives[result.best])
    assert len(np.unique(result.values, axis=0)) <= 4
    # Points of a leaf of the model are those of a leaf of the result.
    pairs = np.unique(np.column_stack([route(result.model, task.X), result.values]), axis=0)
    assert len(pairs) == len(np.unique(pairs[:, 0]))


def test_prices_of_splits_count_in_the_choice():
    task, _ = random_task()

    class Dear(Groups):
        def fit(self, targets, budget):
            fitted = super().fit(targets, budget)
            return fitted._replace(price=[5.0, 0.0, 9.0][len(self.asked) - 1])

    result = smooth_and_fit(task, Dear(np.arange(40) % 3, task.weight), Schedule(2, tol=0.0), Budget())
    assert result.best == 1 and result.model == 1


def test_a_finished_model_is_kept_though_its_objective_is_higher():
    task, W = random_task()
    coarse = np.arange(40) % 2

    class Finisher(Groups):
        def finish(self, model, budget):
            self.given = model
            return FittedStep(np.zeros((40, 2)), 50.0, coarse, "finished")

    step, heard = Finisher(np.arange(40) % 3, task.weight), []
    result = smooth_and_fit(task, step, Schedule(2, tol=0.0), Budget(), heard.append)
    assert result.finished and result.model == "finished" and result.n_rounds == 2 and len(result.rounds) == 4
    assert step.given == result.best < 3 and heard == result.rounds
    # Its leaves have their best values, whatever it came with.
    table, *_ = graph_leaf_values(task, coarse, 2)
    assert result.values == pytest.approx(table[coarse])
    assert result.objective == pytest.approx(sum(plain_objective(task, W, result.values)) + 50.0)
    assert result.objective > min(now.objective for now in result.rounds)


def test_nothing_is_finished_once_the_time_is_over():
    task, _ = random_task()
    budget = Budget()

    class Late(Groups):
        def fit(self, targets, now):
            budget.stop()
            return super().fit(targets, now)

        def finish(self, model, budget):
            raise AssertionError("too late")

    result = smooth_and_fit(task, Late(np.arange(40) % 3, task.weight), Schedule(2), budget)
    assert not result.finished and result.reason == "stopped" and result.n_rounds == 0


def test_a_tree_that_stays_ends_the_rounds():
    task, _ = random_task()
    result = smooth_and_fit(task, Groups(np.arange(40) % 3, task.weight), Schedule(20, tol=1e-3), Budget())
    assert result.reason == "settled" and len(result.rounds) == 3
    assert [now.moved for now in result.rounds] == [1.0, 0.0, 0.0]


@pytest.mark.parametrize("method", ["factors", "gradients"])
def test_a_budget_that_is_over_before_the_start_still_gives_a_model(method, monkeypatch):
    monkeypatch.setattr(smoothing, "_DIRECT_POINTS", 1000 if method == "factors" else 0)
    task, _ = moons()
    budget = Budget()
    budget.stop()
    result = smooth_and_fit(task, CartStep(task.X, task.weight, 3, 0), Schedule(), budget)
    assert result.reason == "stopped" and len(result.rounds) == 1 and result.best == 0
    assert result.values.shape == (300, 2) and np.isfinite(result.values).all() and result.model.n_features == 2


def test_a_stop_during_the_rounds_gives_the_best_so_far():
    task, _ = moons()
    budget = Budget()
    heard = []

    def hear(now):
        heard.append(now)
        if now.number == 2:
            budget.stop()

    result = smooth_and_fit(task, CartStep(task.X, task.weight, 3, 0), Schedule(tol=0.0), budget, hear)
    assert result.reason == "stopped" and result.rounds == heard and len(heard) == 3
    assert heard[result.best].objective == min(now.objective for now in heard)


# ---------------------------------------------------------------------- trust


def plain_trust(task, smooth, mean, share, strength):
    """As trust_labels, point by point."""
    Y, J = task.Y.copy(), task.label_weight.copy()
    by_class = {}
    for i, scores in enumerate(smooth + mean):
        if task.label_weight[i] > 0 or np.abs(smooth[i]).max() <= 1e-9:
            continue
        first, second = sorted(scores)[::-1][:2]
        best = min(k for k in range(len(mean)) if scores[k] == first)
        by_class.setdefault(best, []).append((-(first - second) / np.abs(scores).sum(), i))
    for best, points in by_class.items():
        for place, (_, i) in enumerate(sorted(points)):
            if place < share * len(points):
                Y[i] = -mean
                Y[i, best] += 1.0
                J[i] = strength * task.weight[i]
    return Y, J


@looped("share", [0.0, 0.25, 0.9, 1.0])
@looped("classes", [2, 3])
def test_trusted_labels_are_those_of_a_plain_loop(share, classes):
    task, _ = random_task(outputs=classes, seed=3)
    rng = np.random.default_rng(0)
    mean = np.full(classes, 1.0 / classes)
    smooth = 0.2 * rng.standard_normal((40, classes))
    smooth[30:] = 0.0  # no label reaches these
    smooth[[1, 3, 5, 7]] = smooth[9]  # ties go to the first points
    before = replace(task, Y=task.Y.copy(), label_weight=task.label_weight.copy())
    found = clearest_labels(task, smooth, mean, share, 0.3)
    Y, J = plain_trust(task, smooth, mean, share, 0.3)
    assert np.array_equal(found.Y, Y) and np.array_equal(found.label_weight, J)
    assert np.array_equal(task.Y, before.Y) and np.array_equal(task.label_weight, before.label_weight)
    given = task.label_weight > 0
    assert np.array_equal(found.Y[given], task.Y[given])
    assert not np.any(found.label_weight[30:][~given[30:]])
    if share == 1.0:
        assert np.all(found.label_weight[:30] > 0)
    if share == 0.0:
        assert np.array_equal(found.label_weight, task.label_weight)


def test_rounds_work_on_the_sharpened_task_and_the_transduction_does_not():
    task, y = moons()
    seen = []

    def sharpen(old, smooth):
        seen.append(smooth.copy())
        return clearest_labels(old, smooth, np.full(2, 0.5), 0.9, 0.3)

    result = smooth_and_fit(task, CartStep(task.X, task.weight, 4, 0), Schedule(), Budget(), sharpen=sharpen)
    assert len(seen) == 1 and np.array_equal(result.smooth, seen[0])
    sharp = clearest_labels(task, seen[0], np.full(2, 0.5), 0.9, 0.3)
    loss, edges = plain_objective(sharp, task.W.toarray(), result.values)
    assert loss + edges == pytest.approx(result.rounds[result.best].objective)
    assert np.mean(result.values.argmax(axis=1) == y) > 0.9
