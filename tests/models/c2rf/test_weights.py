"""Searches for weights of ensembles: against enumeration, closed forms and counting."""

from itertools import product

import numpy as np
import pytest
from tests.examples import looped

from treewright.core.budget import Budget
from treewright.data import PointTotals
from treewright.models.c2rf.objective import C2RF, merged_votes
from treewright.models.c2rf.search import mimicking_weights, nearest_weights, optimum_near_wish, search_c2rf
from treewright.models.c2rf.votes import (
    VoteTable,
    c2rf_vote_shares,
    cut_votes,
    search_vote_weights,
    vote_prices,
    wished_weights,
)
from treewright.optimize.incumbent import Incumbent


def exactly(size, total):
    return PointTotals(size, total, total)


def random_model(seed, n=40, t=4):
    rng = np.random.default_rng(seed)
    votes, size = rng.choice([-1, 1], (n, t), p=[0.35, 0.65]), rng.integers(1, 9, (n, 1))
    count = int(rng.integers(0, size.sum()))
    votes, totals, _ = merged_votes(votes, exactly(size, [[size.sum() - count, count]]))
    return C2RF(votes, totals)


def least_deviation(model):
    grid = np.array(list(product(range(1, 8), repeat=model.n_members)), float)
    value = model.votes @ grid.T
    counts = (model.totals.rows @ (value > 0))[(value != 0).all(axis=0)]
    return np.abs(counts - model.totals.low[0, 1]).min()


@looped("seed", range(12))
def test_the_search_finds_the_optimum_of_few_members(seed):
    model = random_model(seed)
    best = Incumbent(model)
    search_c2rf(best, model, [], Budget(60), seed=0)
    assert best.objective == least_deviation(model)
    assert np.abs(model.votes @ best.solution).min() >= 1


def test_a_search_without_time_offers_equal_weights():
    model = random_model(0)
    best, budget = Incumbent(model), Budget(None)
    budget.stop()
    search_c2rf(best, model, [], budget)
    assert best.solution is not None


def test_the_same_search_twice():
    model = random_model(3, n=300, t=8)
    found = []
    for _ in range(2):
        best = Incumbent(model)
        search_c2rf(best, model, [], Budget(None), seed=4)
        found.append(best)
    assert found[0].objective == found[1].objective
    assert np.array_equal(found[0].solution, found[1].solution)


@looped("seed", range(8))
def test_nearest_weights_keep_every_row_and_come_nearer(seed):
    rng = np.random.default_rng(seed)
    model = random_model(seed, n=200, t=7)
    weights = model.repair(np.exp(rng.uniform(0, np.log(100), 7)))
    near = nearest_weights(model, weights, np.ones(7), Budget(60))
    assert np.array_equal(model.votes @ near > 0, model.votes @ weights > 0)
    assert np.abs(model.votes @ near).min() >= 1
    assert near.min() >= model.least and near.max() <= model.most
    spread = [np.sum((w / w.mean() - 1) ** 2) for w in (near, weights)]
    assert spread[0] <= spread[1] + 0.05


def test_nearest_weights_are_equal_ones_where_these_do():
    votes = np.array([[1, 1, -1], [-1, -1, 1], [1, 1, 1]])
    model = C2RF(votes, exactly(np.ones((3, 1)), [[1, 2]]))
    near = nearest_weights(model, np.array([50.0, 40.0, 3.0]), np.ones(3), Budget(60))
    assert near / near.mean() == pytest.approx(np.ones(3), abs=1e-6)


@pytest.mark.parametrize("seed", range(6))
def test_an_optimum_near_the_wished_weights_is_no_worse_and_no_farther(seed):
    rng = np.random.default_rng(seed)
    model = random_model(seed, n=300, t=9)
    best = Incumbent(model)
    search_c2rf(best, model, [], Budget(60), seed=0)
    wished = rng.uniform(0.5, 1.5, 9)
    near = optimum_near_wish(model, best.solution, wished, Budget(60))
    assert model.objective(near) <= best.objective
    assert np.abs(model.votes @ near).min() >= 1
    assert near.min() >= model.least and near.max() <= model.most
    away = [np.sum((w / w.mean() - wished / wished.mean()) ** 2) for w in (near, best.solution)]
    assert away[0] <= away[1] + 1e-12


def test_wished_weights_that_are_optimal_are_kept_nearly():
    rng = np.random.default_rng(1)
    votes = rng.choice([-1, 1], (500, 9))
    wished = rng.uniform(0.5, 1.5, 9)
    count = int((votes @ wished > 0).sum())
    votes, totals, _ = merged_votes(votes, exactly(np.ones((500, 1)), [[500 - count, count]]))
    model = C2RF(votes, totals)
    start = model.repair(np.array([100.0] + [1.0] * 8))
    far = Incumbent(model)
    search_c2rf(far, model, [start], Budget(60), seed=3)
    near = optimum_near_wish(model, far.solution, wished, Budget(60))
    assert model.objective(near) == 0
    # Whole numbers up to 100 are within 2 % of any ratio, and a few steps of 2 may follow.
    assert np.abs(near / near.mean() - wished / wished.mean()).max() < 0.15


def test_weights_mimic_labels_that_some_weights_have():
    rng = np.random.default_rng(2)
    votes, totals, _ = merged_votes(rng.choice([-1, 1], (300, 7)), exactly(np.ones((300, 1)), [[150, 150]]))
    size = totals.rows
    hidden = rng.uniform(1, 6, 7)
    labels = votes @ hidden > 0
    found = mimicking_weights(votes, size, labels, np.ones(7), 1.0, 100.0)
    assert found.min() >= 1.0 and found.max() <= 100.0
    wrong = [float(size[(votes @ w > 0) != labels].sum()) for w in (found, np.ones(7))]
    assert wrong[0] < wrong[1]

    def loss(weights):
        margin = np.where(labels, 1, -1) * (votes @ (weights / 100)) * 4 / np.sqrt(7)
        return size @ np.log1p(np.exp(-margin))

    others = [np.exp(rng.uniform(0, np.log(100), 7)) for _ in range(300)] + [hidden, hidden * 100 / hidden.max()]
    assert loss(found) <= min(map(loss, others)) * (1 + 1e-6)


def test_shares_are_counted_votes():
    votes = np.array([[0, 1, 1, 2], [2, 2, 2, 2]])
    shares = c2rf_vote_shares(votes, np.array([1.0, 2.0, 3.0, 2.0]), 3)
    # Weights sum to 8; times 4 / 8 they sum to 4 votes, plus half a vote for each of three classes.
    assert shares == pytest.approx(np.array([[1.0, 3.0, 1.5], [0.5, 0.5, 4.5]]) / 5.5)


def test_wished_weights_are_half_way_to_the_log_odds():
    y = np.array([0] * 10 + [1] * 10)
    good, poor = y.copy(), y.copy()
    good[[0, 10]], poor[[0, 1, 2, 3, 10, 11, 12, 13]] = [1, 0], [1, 1, 1, 1, 0, 0, 0, 0]
    found = wished_weights(np.column_stack([good, poor]), y, np.ones(20), np.ones((20, 2), bool), 2)
    odds = np.array([np.log(10 / 2), np.log(7 / 5)])  # (9 + 1) / (10 + 2) right, and (6 + 1) / (10 + 2)
    assert found == pytest.approx(0.5 + 0.5 * odds / odds.mean())


def test_rows_that_a_member_saw_tell_nothing():
    y = np.array([0, 0, 1, 1])
    votes = np.column_stack([y, 1 - y])
    found = wished_weights(votes, y, np.ones(4), np.zeros((4, 2), bool), 2)
    assert found == pytest.approx(np.ones(2))


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("n_groups", [1, 3])
@looped("seed", range(4))
def test_a_cut_meets_the_totals_near_the_wished_weights(n_classes, n_groups, seed):
    rng = np.random.default_rng(seed)
    n, t = 600, 15
    truth = rng.integers(0, n_classes, n)
    votes = np.where(rng.random((n, t)) < 0.6, truth[:, None], rng.integers(0, n_classes, (n, t)))
    size = np.eye(n_groups)[rng.integers(0, n_groups, n)]
    total = np.stack([np.bincount(truth[size[:, g] > 0], minlength=n_classes) for g in range(n_groups)])
    found = cut_votes(votes, exactly(size, total), np.ones(t), 0.0, Budget(60), seed)
    scores = np.log(c2rf_vote_shares(votes, found.weights, n_classes))
    label = (scores + found.prices[size.argmax(axis=1)]).argmax(axis=1)
    counts = np.stack([np.bincount(label[size[:, g] > 0], minlength=n_classes) for g in range(n_groups)])
    missed = np.maximum(counts - total, 0).sum()
    assert found.deviation == missed
    assert missed <= (0 if n_classes == 2 else 2)
    assert np.abs(np.log(found.weights)).max() < 0.6


def test_intervals_that_the_majority_meets_have_no_price():
    votes = np.array([[1, 1, 1], [0, 0, 0], [0, 1, 1]])
    prices = vote_prices(votes, PointTotals(np.ones((3, 1)), [[0, 1]], [[3, 2]]), np.ones(3))
    assert np.all(prices == 0)


def test_a_cut_is_no_worse_than_the_plain_vote():
    rng = np.random.default_rng(0)
    for seed in range(5):
        truth = rng.integers(0, 3, 200)
        votes = np.where(rng.random((200, 2)) < 0.6, truth[:, None], rng.integers(0, 3, (200, 2)))
        patterns, number = np.unique(votes, axis=0, return_inverse=True)
        size = np.bincount(number.ravel()).astype(float)[:, None]
        total = np.bincount(truth, minlength=3)[None]
        found = cut_votes(patterns, exactly(size, total), np.ones(2), 0.0, Budget(60), seed)
        plain = np.bincount(c2rf_vote_shares(votes, np.ones(2), 3).argmax(axis=1), minlength=3)
        assert found.deviation <= np.maximum(plain - total[0], 0).sum()


def test_several_classes_without_prices():
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 3, 400)
    votes = np.where(rng.random((400, 9)) < 0.5, truth[:, None], rng.integers(0, 3, (400, 9)))
    # Totals that some weighting has: the search should come near to it, and never below the bound.
    hidden = np.exp(rng.uniform(0, np.log(100), 9))
    free = np.zeros((1, 3), int)
    table = VoteTable(votes, PointTotals(np.ones((400, 1)), free, free + 400))
    total = np.bincount(table.ballots(hidden).argmax(axis=1), minlength=3)[None]
    table = VoteTable(votes, exactly(np.ones((400, 1)), total))
    weights, deviation = search_vote_weights(table, np.ones(9), 1.0, 100.0, 0.0, Budget(60))
    assert deviation == table.deviation(table.ballots(weights)) <= 4
    assert table.lower_bound() <= deviation


def test_agreed_rows_bound_the_deviation_of_several_classes():
    votes = np.array([[0, 0], [1, 1], [0, 2]])
    total = np.array([[0, 1, 9]])
    table = VoteTable(votes, exactly([[5], [1], [4]], total))
    # Five rows are class 0 whatever the weights, and at most four class 2.
    assert table.lower_bound() == 5.0
