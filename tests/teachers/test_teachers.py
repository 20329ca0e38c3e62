"""Teachers: labels within totals, whatever there is to learn from; areas against scikit-learn."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.ensemble import ExtraTreesClassifier
from sklearn.metrics import roc_auc_score
from tests.short_searches import SHORT

from treewright.core.budget import Budget
from treewright.data import PointTotals
from treewright.optimize.settings import TeacherSettings
from treewright.teachers import auto, gaussian, left_out, members
from treewright.teachers.auto import auto_teacher
from treewright.teachers.gaussian import SharedGaussian
from treewright.teachers.members import MEMBERS, Task, out_of_bag_votes, principal_axes
from treewright.teachers.members import _some as some_of
from treewright.teachers.points import TeacherPoints, ordered_pairs
from treewright.teachers.record import TeacherMember, TeacherRecord
from treewright.teachers.teacher import Teacher

short_teacher = partial(auto_teacher, settings=SHORT.teacher)


def exact(*counts):
    return PointTotals(np.ones((int(np.sum(counts)), 1)), [list(counts)], [list(counts)])


def blobs(sizes, labelled, seed=0):
    """Clouds far from each other, the first rows of some of them labelled, and the truth about the others."""
    rng = np.random.default_rng(seed)
    centre = 9.0 * np.eye(len(sizes), 3)
    truth = np.repeat(np.arange(len(sizes)), sizes)
    X = centre[truth] + rng.normal(size=(len(truth), 3))
    first = np.concatenate([np.flatnonzero(truth == k)[:m] for k, m in enumerate(labelled)])
    known = np.isin(np.arange(len(truth)), first)
    hidden = np.bincount(truth[~known], minlength=len(sizes))
    points = TeacherPoints(X[known], truth[known], np.ones(known.sum()), X[~known], len(sizes), exact(*hidden))
    return points, truth[~known]


def over():
    budget = Budget(None)
    budget.stop()
    return budget


def counts(labels, points):
    return np.bincount(labels, minlength=points.n_classes).tolist()


# ---------------------------------------------------------------------- areas


@pytest.mark.parametrize("n_classes", [2, 3, 4])
@pytest.mark.parametrize("weighted", [False, True])
def test_ordered_pairs_are_the_area_under_the_curve(n_classes, weighted):
    rng = np.random.default_rng(n_classes)
    y = np.append(np.arange(n_classes), rng.integers(0, n_classes, 40))
    scores = rng.integers(0, 6, (len(y), n_classes)) / 5.0  # many ties
    weight = rng.uniform(0.5, 3.0, len(y)) if weighted else np.ones(len(y))
    each = [roc_auc_score(y == k, scores[:, k], sample_weight=weight) for k in range(n_classes)]
    assert ordered_pairs(scores, y, weight) == pytest.approx(np.mean(each))


def test_ordered_pairs_leave_out_what_has_no_score_and_know_when_they_know_nothing():
    scores, y = np.array([[0.9, 0.1], [np.nan, 0.0], [0.2, 0.8]]), np.array([0, 0, 1])
    assert ordered_pairs(scores, y, np.ones(3)) == 1.0
    assert ordered_pairs(scores[::-1], y, np.ones(3)) == 0.0
    assert np.isnan(ordered_pairs(scores, np.zeros(3, dtype=int), np.ones(3)))
    assert np.isnan(ordered_pairs(np.full((3, 2), np.nan), y, np.ones(3)))


def test_points_are_standardized_together():
    points, _ = blobs([30, 10], [4, 2])
    found = points.standardized()
    every = np.vstack([found.X, found.hidden])
    assert np.allclose(every.mean(axis=0), 0.0) and np.allclose(every.std(axis=0), 1.0)
    flat = TeacherPoints(np.ones((2, 1)), np.array([0, 1]), np.ones(2), np.ones((3, 1)), 2).standardized()
    assert np.all(flat.X == 0) and np.all(flat.hidden == 0)


# ---------------------------------------------------------------------- labels within totals


@pytest.mark.parametrize("time", [Budget, over])
@pytest.mark.parametrize(
    ("sizes", "labelled"),
    [((30, 20), (3, 3)), ((20, 20, 8), (3, 3, 2)), ((25, 15, 5), (3, 3, 0)), ((20, 12), (4, 0)), ((15, 9), (1, 1))],
    ids=["two", "three", "one without labels", "labels of one", "a label each"],
)
def test_labels_meet_the_totals_and_find_clouds(sizes, labelled, time):
    points, truth = blobs(sizes, labelled)
    teacher = short_teacher(points, 0, time())
    wanted = np.bincount(truth, minlength=len(sizes)).tolist()
    assert counts(teacher.labels(), points) == wanted
    assert np.array_equal(teacher.labels(), truth)
    rng = np.random.default_rng(0)
    for _ in range(3):
        assert counts(teacher.varied(rng), points) == wanted


def test_totals_of_groups_and_points_of_several_rows():
    rng = np.random.default_rng(1)
    X, y = rng.normal(size=(12, 2)), np.arange(12) % 2
    X[y == 1] += 3.0
    hidden = rng.normal(size=(20, 2)) + 1.5
    size = np.zeros((20, 2), dtype=int)
    size[np.arange(20), np.arange(20) % 2] = 1 + np.arange(20) // 2 % 2
    rows = size.sum(axis=0)
    positive = np.array([4, 9])
    wanted = np.column_stack([rows - positive, positive])
    points = TeacherPoints(X, y, np.ones(12), hidden, 2, PointTotals(size, wanted, wanted))
    labels = short_teacher(points, 0, Budget()).labels()
    assert (size[labels == 1].sum(axis=0)).tolist() == [4, 9]


def test_without_totals_labels_are_those_of_the_largest_scores():
    points, truth = blobs([20, 15, 10], [3, 3, 3])
    free = TeacherPoints(points.X, points.y, points.weight, points.hidden, 3)
    teacher = short_teacher(free, 0, Budget())
    assert np.array_equal(teacher.labels(), teacher.scores.argmax(axis=1))
    assert np.array_equal(teacher.labels(), truth)
    assert teacher.record.refined == 0.0


def test_without_unlabelled_points_there_is_nothing_to_say():
    points = TeacherPoints(
        np.arange(4.0)[:, None], np.array([0, 0, 1, 1]), np.ones(4), np.zeros((0, 1)), 2, exact(0, 0)
    )
    teacher = short_teacher(points, 0, Budget())
    assert teacher.labels().shape == (0,)


def test_weights_decide_what_is_learned():
    """Two labels at each of two places contradict each other, and the heavier ones win."""
    X = np.repeat([[0.0], [1.0]], 6, axis=0)
    y = np.tile([0, 1], 6)
    hidden = np.repeat([[0.0], [1.0]], [4, 4], axis=0)
    for heavy in (0, 1):
        weight = np.where((X[:, 0] == 0) == (y == heavy), 9.0, 1.0)
        labels = short_teacher(TeacherPoints(X, y, weight, hidden, 2, exact(4, 4)), 0, Budget()).labels()
        assert labels.tolist() == [heavy] * 4 + [1 - heavy] * 4


def test_a_class_counts_as_much_as_another_however_many_labels_it_has():
    """A sample with ten times as many labels of class 1, cut at the true total: half of an even line."""
    X = np.concatenate([np.linspace(0, 4.0, 4), np.linspace(5.5, 9.5, 40)])[:, None]
    y = np.repeat([0, 1], [4, 40])
    hidden = np.linspace(0.05, 9.45, 40)[:, None]
    labels = short_teacher(TeacherPoints(X, y, np.ones(44), hidden, 2, exact(20, 20)), 0, Budget()).labels()
    assert np.mean(labels == (hidden[:, 0] > 4.75)) >= 0.95


def test_the_same_seed_gives_the_same_teacher():
    points, _ = blobs([30, 20], [4, 4], seed=2)
    noisy = TeacherPoints(
        points.X / 9,
        points.y,
        points.weight,
        points.hidden / 9,
        2,
        points.totals,
    )
    first, second = (short_teacher(noisy, 5, Budget()) for _ in range(2))
    assert np.array_equal(first.scores, second.scores)
    assert str(first.record) == str(second.record)
    varied = [teacher.varied(np.random.default_rng(1)) for teacher in (first, second)]
    assert np.array_equal(*varied)


def test_without_time_logistic_regression_alone_is_there():
    points, _ = blobs([30, 20, 10], [4, 4, 4])
    record = short_teacher(points, 0, over()).record
    assert [member.name for member in record.members] == ["logistic regression"]
    assert record.refined == 0.0 and np.isnan(record.score)


# ---------------------------------------------------------------------- what it says of itself


def test_all_that_were_compared_are_told_and_the_scores_are_of_the_best():
    """Whether two features have the same sign: trees find it, logistic regression has nothing to say."""
    points, _ = far_apart("signs")
    record = short_teacher(points, 0, Budget()).record
    told = {member.name: member for member in record.members}
    assert record.name == "auto" and sum(m.share for m in record.members) == pytest.approx(1.0)
    assert {"tree", "boosting", "logistic regression", "extra trees", "random forest"} <= set(told)
    assert "logistic regression" not in record.chosen and "boosting" in record.chosen
    assert told["boosting"].right > 0.9 > 0.6 > told["logistic regression"].right
    assert record.right >= max(member.right for member in record.members) - 0.02
    assert min(m.score for m in record.members) <= record.score <= max(m.score for m in record.members)
    assert all((name in str(record)) == (name in record.chosen) for name in ("boosting", "logistic regression"))


def test_the_share_of_refined_scores_falls_with_the_labels():
    shares = []
    for labelled in (4, 20, 60):
        points, _ = blobs([labelled + 10, labelled + 10], [labelled, labelled])
        shares.append(short_teacher(points, 0, Budget()).record.refined)
    assert 1.0 > shares[0] > shares[1] > shares[2] > 0.0


def test_the_score_is_the_mean_by_shares_of_those_that_were_measured():
    nan = float("nan")
    members = (TeacherMember("a", 0.25, 0.8), TeacherMember("b", 0.5, nan), TeacherMember("c", 0.25, 0.6))
    assert TeacherRecord("auto", members).score == pytest.approx(0.7)
    assert np.isnan(TeacherRecord("auto", members[1:2]).score) and np.isnan(TeacherRecord("labels").score)
    assert str(TeacherRecord("labels")) == "labels"


def test_told_scores_become_ranks_where_there_are_totals():
    points = TeacherPoints(np.zeros((1, 1)), np.array([0]), np.ones(1), np.arange(4.0)[:, None], 2, exact(1, 3))
    told = Teacher.told(points, np.array([[0.1, 0.9], [0.2, 0.8], [0.9, 0.1], [0.3, 0.7]]), "probabilities")
    assert told.labels().tolist() == [1, 1, 0, 1]
    assert told.record.name == "probabilities" and told.record.members == ()


# ---------------------------------------------------------------------- members


def test_samples_of_many_points_have_as_many_of_each_class_as_there_can_be():
    rng = np.random.default_rng(0)
    y = rng.permutation(np.repeat([0, 1, 2], [5, 50, 500]))
    task = Task(rng.normal(size=(555, 2)), y, np.ones(555), 3, 10, 0)
    assert np.bincount(y[some_of(task, 65)]).tolist() == [5, 30, 30]
    assert some_of(task, 555).tolist() == list(range(555))


@pytest.mark.parametrize("name", list(MEMBERS))
@pytest.mark.parametrize("n_classes", [2, 3])
def test_members_have_a_column_for_each_class_they_know(name, n_classes):
    rng = np.random.default_rng(0)
    classes = np.arange(n_classes) * 2  # the classes between have no labels
    y = np.repeat(classes, 6)
    X = 6.0 * np.eye(5)[y, :2] + rng.normal(size=(len(y), 2)) if n_classes == 2 else rng.normal(size=(len(y), 2))
    fitted = MEMBERS[name](Task(X, y, np.ones(len(y)), 4, 10, 0), Budget())
    assert fitted.classes.tolist() == classes.tolist()
    scores = fitted.scores(X)
    assert scores.shape == (len(y), n_classes) and np.all(np.isfinite(scores))


@pytest.mark.parametrize(("n_points", "most"), [(200, 5_000_000), (2000, 6 * 500), (20, 5_000_000)])
def test_axes_are_those_along_which_all_points_vary_most(n_points, most):
    rng = np.random.default_rng(0)
    points = rng.normal(size=(n_points, 6)) * [5.0, 3.0, 2.0, 1.0, 0.5, 0.1] @ np.linalg.qr(rng.normal(size=(6, 6)))[0]
    axes = principal_axes(points[:7], points[7:], 0, TeacherSettings(axes_cells=most))
    assert np.allclose(axes.T @ axes, np.eye(6))
    variance = np.linalg.eigvalsh(np.cov(points.T))[::-1]
    # a sample of a quarter of them does not find the axes exactly
    assert np.allclose(np.var(points @ axes, axis=0, ddof=1), variance, rtol=1e-6 if 6 * n_points <= most else 0.05)


def test_turned_trees_are_extra_trees_that_see_principal_components_too(monkeypatch):
    rng = np.random.default_rng(0)
    X, y, hidden = rng.normal(size=(40, 3)), rng.integers(0, 2, 40), rng.normal(size=(50, 3))
    axes = principal_axes(X, hidden, 0, TeacherSettings())
    task = Task(X, y, np.ones(40), 50, 10, seed=3, axes=axes)
    by_hand = ExtraTreesClassifier(10, random_state=3).fit(np.hstack([X, X @ axes]), y)
    expected = by_hand.predict_proba(np.hstack([hidden, hidden @ axes]))
    assert np.allclose(MEMBERS["extra trees with principal components"](task, Budget()).scores(hidden), expected)
    monkeypatch.setattr(members, "_TURNED_CELLS", 40)  # seven points at a time
    assert np.allclose(MEMBERS["extra trees with principal components"](task, Budget()).scores(hidden), expected)


def test_members_are_the_same_with_totals_and_without_them():
    """Else one class known would make other labels of the free ones."""
    points, _ = blobs([30, 20], [6, 6])
    cheap = ["logistic regression", "tree"]
    forests = ["extra trees", "random forest", "boosting", "extra trees with principal components"]
    for told in (points, replace(points, totals=None)):
        assert sorted(names_of(told)) == sorted([*cheap, "kernel machine", *forests])
    assert sorted(names_of(points, for_tree=True)) == sorted(
        [*cheap, "discriminant analysis", "naive Bayes", "kernel machine", *forests]
    )
    narrow = replace(points, X=points.X[:, :1], hidden=points.hidden[:, :1])
    assert "extra trees with principal components" not in names_of(narrow)


def names_of(points, **options):
    return [member.name for member in short_teacher(points, 0, Budget(), **options).record.members]


def test_scores_of_unlabelled_points_are_those_that_it_is_asked_for():
    points, _ = blobs([30, 20], [6, 6])
    free = short_teacher(replace(points, totals=None), 0, Budget(), for_tree=True)
    assert np.allclose(free.asked(free.points.hidden), free.scores)


def test_totals_that_leave_freedom_change_no_score():
    """Free classes come out as without totals; exact ones may be refined on."""
    points, _ = blobs([30, 20, 10], [5, 4, 4])
    free = short_teacher(replace(points, totals=None), 0, Budget())
    one = PointTotals(np.ones((47, 1)), [[0, 0, 6]], [[41, 41, 6]])
    known = short_teacher(replace(points, totals=one), 0, Budget())
    assert np.array_equal(known.scores, free.scores) and known.record.refined == 0.0
    assert short_teacher(points, 0, Budget()).record.refined > 0.0


def test_discriminant_analysis_is_that_of_scikit_learn_with_rows_as_often_as_they_weigh(monkeypatch):
    """Without shrinkage: its share is found from the points as they are, and scikit-learn's class by class."""
    monkeypatch.setattr(gaussian, "ledoit_wolf_shrinkage", lambda X, assume_centered: 0.0)
    rng = np.random.default_rng(0)
    X, y, weight = rng.normal(size=(60, 4)) @ rng.normal(size=(4, 4)), rng.choice([0, 1, 3], 60), rng.integers(1, 4, 60)
    asked = rng.normal(size=(40, 4))
    expected = LinearDiscriminantAnalysis(solver="lsqr").fit(np.repeat(X, weight, axis=0), np.repeat(y, weight))
    found = SharedGaussian(X, y, weight.astype(float))
    assert found.classes_.tolist() == [0, 1, 3]
    assert np.allclose(found.predict_proba(asked), expected.predict_proba(asked), atol=1e-6)


def test_discriminant_analysis_of_fewer_points_than_features():
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1], 5)
    X = rng.normal(size=(10, 40)) + 2.0 * y[:, None]
    X[:, 0] = 1.0  # a feature that does not vary
    found = SharedGaussian(X, y, np.ones(10)).predict_proba(rng.normal(size=(50, 40)) + 2.0)
    assert np.isfinite(found).all() and np.allclose(found.sum(axis=1), 1.0) and np.mean(found[:, 1] > 0.5) > 0.9


def test_votes_out_of_bag_are_of_trees_that_did_not_see_the_point():
    """Labels by lot: trees that have seen a point would know it."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(200, 3)), rng.integers(0, 2, 200)
    fitted, votes = out_of_bag_votes(Task(X, y, np.ones(200), 200, 50, 0), Budget())
    assert np.allclose(votes.sum(axis=1), 1.0)
    left_out, seen = (np.mean(table.argmax(axis=1) == y) for table in (votes, fitted.scores(X)))
    assert abs(left_out - 0.5) < 0.12 < seen - left_out
    assert out_of_bag_votes(Task(X, y, np.ones(200), 200, 50, 0), over()) is None


def far_apart(kind, seed=0):
    """Two classes of many points: by a sum of twelve features, or by whether two features have the same sign."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(700, 12))
    truth = (X.sum(axis=1) > 0 if kind == "sum" else X[:, 0] * X[:, 1] > 0).astype(int)
    hidden = np.bincount(truth[600:], minlength=2)
    return TeacherPoints(X[:600], truth[:600], np.ones(600), X[600:], 2, exact(*hidden)), truth[600:]


@pytest.mark.parametrize("kind", ["sum", "signs"])
def test_classifiers_that_are_not_needed_are_not_made(monkeypatch, kind):
    points, truth = far_apart(kind)
    monkeypatch.setattr(auto, "kernel_fits", lambda *_: False)
    teacher = short_teacher(points, 0, Budget())
    record = teacher.record
    assert len(record.members) == 6 and len(record.chosen) == len(teacher.voters) < 5
    assert (kind == "sum") == ("logistic regression" in record.chosen)
    many = short_teacher(replace(points, n_others=SHORT.teacher.many_asked + 1), 0, Budget())
    assert len(many.voters) <= len(teacher.voters) and np.mean(many.labels() == truth) > 0.8
    # with fewer labels none is left out, as they do not tell
    untold = replace(SHORT.teacher, telling_labels=601)
    assert len(short_teacher(points, 0, Budget(), settings=untold).voters) >= len(teacher.voters)
    again = short_teacher(points, 0, Budget(), chosen=record.chosen)
    assert again.record.chosen == record.chosen and np.array_equal(again.scores, teacher.scores)


def test_with_many_points_to_ask_for_and_no_time_there_is_a_member():
    points, _ = far_apart("sum")
    teacher = short_teacher(replace(points, n_others=SHORT.teacher.many_asked + 1), 0, Budget(1e-9))
    assert [member.name for member in teacher.record.members] == ["logistic regression"]
    assert np.isnan(teacher.record.members[0].score) and len(teacher.voters) == 1
    assert np.bincount(teacher.labels()).tolist() == points.totals.low[0].tolist()


def test_one_alone_finds_more_than_several_only_beyond_chance():
    """Ten labels that one finds and the others do not are more than chance, two of them are not."""
    y = np.tile([0, 1], 100)
    right, points = (
        np.log(np.where(np.eye(2)[y] == 1, 0.9, 0.1)),
        TeacherPoints(np.zeros((200, 1)), y, np.ones(200), np.zeros((0, 1)), 2),
    )
    for missed, expected in ((2, False), (10, True)):
        some = right.copy()
        some[:missed] = some[:missed, ::-1]
        told = left_out.LeftOut(points, ["tree", "a"], np.arange(200), np.arange(200) % 5, np.ones(200), [right, some])
        assert told.finds_more("tree", ["a"]) is expected and not told.finds_more("a", ["tree"])
    assert not told.finds_more("tree", ["tree"]) and not told.finds_more("b", ["a"])
