"""Probabilities of rare classes: slopes of ranks by class, and shares that hold against the truth."""

import numpy as np
import pytest
from scipy.special import log_softmax, softmax

from treewright import TotalsClassifier
from treewright.search.teachers.lesson import ranked
from treewright.search.teachers.slopes import class_slopes, rank_odds


def drawn(slopes, levels, n, seed=0):
    """Ranks, and labels drawn from the model that slopes are about."""
    rng = np.random.default_rng(seed)
    ranks = ranked(rng.normal(size=(n, len(slopes)))) + 0.5 / n
    chances = softmax(np.asarray(slopes) * rank_odds(ranks, 0.5 / (n + 1.0)) + np.asarray(levels), axis=1)
    return ranks, (chances.cumsum(axis=1) < rng.random((n, 1))).sum(axis=1), chances


@pytest.mark.parametrize("slopes", [(1.0, 1.0, 1.0), (0.4, 1.0, 2.0), (0.2, 0.9, 0.5)])
def test_slopes_that_made_the_labels_are_found(slopes):
    ranks, y, _ = drawn(slopes, (0.0, 0.5, -2.5), 20_000)
    assert class_slopes(ranks, y, np.ones(len(y))) == pytest.approx(slopes, abs=0.15)


def test_a_sample_that_is_biased_by_class_has_the_same_slopes():
    """A rare class is sought out; weights say how frequent it is, and ranks are among rows as frequent as that."""
    slopes = (0.5, 0.8, 1.5)
    ranks, y, _ = drawn(slopes, (0.0, 0.0, -3.0), 200_000)
    chance = np.array([0.02, 0.02, 0.3])
    kept = np.random.default_rng(1).random(len(y)) < chance[y]
    weight = 1.0 / chance[y[kept]]
    again = ranked(ranks[kept], weight)
    assert np.abs(again - ranks[kept]).max() < 0.05
    assert class_slopes(again, y[kept], weight) == pytest.approx(slopes, abs=0.25)


def test_weights_are_repeated_rows_and_classes_without_labels_have_the_slope_of_all():
    ranks, y, _ = drawn((0.5, 1.5), (0.0, 0.0), 400)
    ranks = np.column_stack([ranks, np.full(400, 0.5)])
    times = np.random.default_rng(0).integers(1, 4, 400)
    # the least rank is that of so many labels: inside of it in both cases
    inside = np.clip(ranks, 0.01, 0.99)
    found = class_slopes(inside, y, times.astype(float))
    repeated = class_slopes(np.repeat(inside, times, axis=0), np.repeat(y, times), np.ones(times.sum()))
    assert found[2] == pytest.approx(found[:2].mean(), abs=0.5)
    assert found == pytest.approx(repeated, abs=0.05)  # the price of unlike slopes is that of fewer labels


def test_ranks_by_weight_are_those_of_repeated_rows():
    rng = np.random.default_rng(0)
    table, times = rng.integers(0, 6, size=(40, 2)).astype(float), rng.integers(1, 5, 40)
    every = np.repeat(table, times, axis=0)
    below = [[np.mean(every[:, k] < v) + np.mean(every[:, k] == v) / 2 for k, v in enumerate(row)] for row in table]
    assert ranked(table, times.astype(float)) == pytest.approx(np.array(below))


def register(n=6000, rare=-4.2, seed=1):
    """Three classes, one of them rare and sought out; two groups. Also the true probabilities."""
    rng = np.random.default_rng(seed)
    X, group = rng.normal(size=(n, 6)), np.array(["north", "south"])[rng.integers(0, 2, n)]
    odds = [np.zeros(n), X[:, 0] + 0.7 * X[:, 1] * X[:, 2], rare + 1.6 * X[:, 3] + X[:, 4] + 0.5 * (group == "south")]
    logs = log_softmax(np.column_stack(odds), axis=1)
    truth = (logs + rng.gumbel(size=logs.shape)).argmax(axis=1)
    known = rng.random(n) < np.array([0.05, 0.08, 0.35])[truth]
    totals = {g: {k: int(np.sum((truth == k) & ~known & (group == g))) for k in range(3)} for g in ("north", "south")}
    return X, truth, known, group, totals


@pytest.mark.usefixtures("short_searches")
def test_shares_of_a_rare_class_hold_against_the_truth():
    """Where the shares say 0.3 it is 0.3; with one slope for all classes they said twice as much as was true."""
    X, truth, known, group, totals = register()
    weight = np.where(known, 1.0, np.nan)
    model = TotalsClassifier(random_state=0)
    model.fit(X, np.where(known, truth, -1), sample_weight=weight, totals=totals, groups=group)
    shares, hidden = model.transduction_proba_[~known], truth[~known]
    for name, asked in totals.items():
        inside = group[~known] == name
        assert shares[inside].sum(axis=0) == pytest.approx([asked[k] for k in range(3)], abs=1e-6)
    n_rare = np.count_nonzero(hidden == 2)
    first = np.argsort(-shares[:, 2])[:n_rare]
    said, true = shares[first, 2].mean(), np.mean(hidden[first] == 2)
    assert abs(said - true) <= 3 * np.sqrt(true * (1 - true) / n_rare), (said, true)
    bins = np.digitize(shares[:, 2], [0.01, 0.03, 0.1, 0.2, 0.4])
    wrong = [abs(shares[bins == b, 2].sum() - np.count_nonzero(hidden[bins == b] == 2)) for b in range(6)]
    assert sum(wrong) / n_rare <= 0.35
    loss = -np.mean(np.log(shares[np.arange(len(hidden)), hidden]))
    frequent = np.bincount(hidden) / len(hidden)
    assert loss < 0.95 * -np.sum(frequent * np.log(frequent))  # better than shares that know nothing of rows
