"""Probabilities of teachers: as often right as they say, at points whose labels nobody saw."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.special import softmax
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from tests.short_searches import SHORT

from treewright.core.budget import Budget
from treewright.data import Sample, reduced_sample
from treewright.optimize.conduct import Conduct
from treewright.teachers.auto import auto_teacher
from treewright.teachers.given import EstimatorTeacher, TableTeacher
from treewright.teachers.points import TeacherPoints
from treewright.teachers.pool import needed_classifiers, pooled_scores, sharpness
from treewright.teachers.taught_points import PointTeacher


def noisy(n, n_labels, seed=0, flipped=0.3):
    """Two classes, three labels in ten by lot."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4))
    y = (X[:, 0] + X[:, 1] > 0).astype(int)
    y = np.where(rng.random(n) < flipped, 1 - y, y)
    return X, y, np.where(np.arange(n) < n_labels, y, -1)


def test_many_labels_find_slope_and_levels_that_scikit_learn_finds():
    rng = np.random.default_rng(0)
    logs = rng.normal(size=(20_000, 2))
    true = softmax(0.4 * logs + [0.0, 0.7], axis=1)
    y = (rng.random(20_000) < true[:, 1]).astype(int)
    weight = rng.uniform(0.5, 2.0, 20_000)
    found = pooled_scores([logs], y, 7.0 * weight)
    expected = LogisticRegression(C=1e6).fit(logs[:, 1:] - logs[:, :1], y, weight)
    assert found.weights[0] == pytest.approx(float(expected.coef_[0, 0]), abs=2e-3)
    assert found.levels[1] - found.levels[0] == pytest.approx(float(expected.intercept_[0]), abs=2e-3)
    assert softmax(found.scores([logs]), axis=1) == pytest.approx(found.shares([logs]))


def test_few_labels_that_are_all_found_do_not_make_it_sure():
    logs = np.log(softmax(np.array([[2.0, 0.0, 0.0], [0.0, 2.0, 0.0]]), axis=1))
    found = pooled_scores([logs], np.array([0, 1]), np.ones(2))
    assert found.shares([logs]).max() < 0.9
    assert pooled_scores([logs[:0]], np.array([], dtype=int), np.ones(0)).weights.tolist() == [1.0]


@pytest.mark.parametrize("n_labels", [60, 300])
def test_what_is_blended_says_how_likely_labels_are_that_it_did_not_see(n_labels):
    X, truth, y = noisy(2000, n_labels)
    points = TeacherPoints(X[:n_labels], y[:n_labels], np.ones(n_labels), X[n_labels:], 2)
    found = auto_teacher(points, 0, Budget(), likely=True, settings=SHORT.teacher).likely()
    assert found.known.shape == (n_labels, 2) and found.hidden.shape == (2000 - n_labels, 2)
    constant = log_loss(truth, np.full(2000, truth.mean()))
    assert log_loss(truth[n_labels:], found.hidden) < constant - 0.02
    # who has seen labels is surer of them than three in ten by lot allow: the forests alone would say .1
    assert log_loss(truth[:n_labels], found.known) > 0.5
    assert found.known.max() < 0.95
    assert auto_teacher(points, 0, Budget(), settings=SHORT.teacher).likely() is None


def test_labelled_points_beyond_those_of_the_folds_have_probabilities_too():
    X, truth, y = noisy(1000, 600)
    points = TeacherPoints(X[:600], y[:600], np.ones(600), X[600:], 2)
    known = (
        auto_teacher(points, 0, Budget(), likely=True, settings=replace(SHORT.teacher, fold_points=200)).likely().known
    )
    assert known.sum(axis=1) == pytest.approx(1.0)
    assert 0.55 < log_loss(truth[:600], known) < 0.69


@pytest.mark.parametrize("own", [True, False])
def test_a_tree_is_told_how_likely_classes_are_at_every_point(own):
    X, truth, y = noisy(2000, 500)
    reduction, classes, weight = reduced_sample(Sample.of(X)), np.array([0, 1]), np.ones(2000)
    forest = RandomForestClassifier(30, random_state=0)
    given_teacher = EstimatorTeacher(forest, 0) if own else None
    point_teacher = PointTeacher.of(reduction, y, weight, classes, given_teacher, Conduct(search=SHORT), X[:50] + 0.01)
    likely = point_teacher.taught(Budget()).likely
    assert likely.shape == (2050, 2) and likely.sum(axis=1) == pytest.approx(1.0)
    at = likely[reduction.place]
    alone = forest.fit(X[:500], y[:500]).predict_proba(X[500:])
    assert log_loss(truth[500:], at[500:]) < min(0.67, log_loss(truth[500:], alone))
    assert log_loss(truth[:500], at[:500]) > 0.5  # who has seen the labels would have less than that
    given = TableTeacher(np.eye(2)[truth], "labels")
    assert PointTeacher.of(reduction, y, weight, classes, given, Conduct(search=SHORT)).taught(Budget()).likely is None


def test_of_classifiers_that_say_the_same_the_cheapest_stays():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, 600)
    good = rng.normal(size=(600, 3)) + 2.0 * np.eye(3)[y]
    other = rng.normal(size=(600, 3)) + 2.0 * np.eye(3)[y]
    tables = np.stack([good, good + 1e-6, other, rng.normal(size=(600, 3))])
    assert needed_classifiers(tables, y, np.ones(600), [3.0, 1.0, 9.0, 0.0], 1.0) == [1, 2]
    assert needed_classifiers(tables, y, np.ones(600), [1.0, 3.0, 9.0, 0.0], 1.0) == [0, 2]


def test_one_classifier_is_made_as_sure_as_labels_left_out_say():
    rng = np.random.default_rng(0)
    score = rng.normal(size=(3000, 3))
    y = np.array([rng.choice(3, p=p) for p in softmax(score, axis=1)])
    for times in (1e-6, 0.2, 1.0, 4.0, 1e9):
        assert sharpness(times * score, y, np.ones(3000)) == pytest.approx(1.0 / times, rel=0.1)
    known = score.copy()
    known[::2] = np.nan  # labels that were not left out say nothing
    assert sharpness(known, y, np.ones(3000)) == pytest.approx(1.0, rel=0.15)
    assert sharpness(np.full((4, 2), np.nan), y[:4] % 2, np.ones(4)) == 1.0
    by_lot = sharpness(rng.normal(size=(3000, 3)), y, np.ones(3000))
    assert 0.0 < by_lot < 0.1
