"""TAO and LapTAO with a teacher: what the tree learns, from whom, and what is refused."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.preprocessing import minmax_scale
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor
from tests.contracts import measures
from tests.seen_trees import seen

from treewright import LapTAOClassifier, TAOClassifier, load_model
from treewright.core.budget import Budget
from treewright.data import Sample
from treewright.exceptions import InvalidInputError
from treewright.models.laptao.graph_teacher import SOFT_WEIGHTS, left_out_losses
from treewright.models.laptao.rounds import GraphTask
from treewright.optimize.conduct import Conduct
from treewright.teachers import taught_points as taught
from treewright.teachers.given import TableTeacher
from treewright.teachers.taught_points import imagined_points
from treewright.tree import export_text

pytestmark = pytest.mark.usefixtures("shortest_searches")

BOTH = (TAOClassifier, LapTAOClassifier)
QUICK = {"max_depth": 2, "random_state": 0}


@pytest.fixture(scope="module")
def iris():
    """Iris with every fifth label; features are scaled, so that estimators on their own see what the teacher sees."""
    X, y = load_iris(return_X_y=True)
    known = np.arange(len(y)) % 5 == 0
    return minmax_scale(X), y, known, np.where(known, y, -1)


def said(estimator, iris):
    X, y, known, _ = iris
    return np.where(known, y, clone(estimator).fit(X[known], y[known]).predict(X))


# ---------------------------------------------------------------------- TAO


def test_tao_is_fitted_to_labels_and_to_those_of_the_teacher(iris):
    X, y, known, few = iris
    told = said(LogisticRegression(), iris)
    model = TAOClassifier(teacher=told, **QUICK).fit(X, few)
    by_hand = TAOClassifier(**QUICK).fit(X, told, np.where(known, 3.0, 1.0))
    assert seen(model) == seen(by_hand)
    assert model.objective_ == by_hand.objective_
    asked = TAOClassifier(teacher=LogisticRegression(), **QUICK).fit(X, few)
    np.testing.assert_array_equal(asked.transduction_, told)
    assert asked.teacher_.name == "LogisticRegression"
    # the objective and the leaves are those of the rows, whatever the search imagines between them; a row counts by how
    # sure the teacher is
    weight = np.where(known, 3.0, lead(LogisticRegression().fit(X[known], y[known]).predict_proba(X)))
    wrong = weight @ (asked.predict(X) != told)
    assert asked.tree_.values[0].sum() == pytest.approx(weight.sum())
    assert asked.objective_ == pytest.approx(wrong + asked.alpha_ * measures.split_price(asked.tree_, X))


def lead(probabilities):
    """By how much the best class is ahead of the next, 0.05 at least."""
    best, next_ = np.partition(probabilities, -2, axis=1)[:, [-1, -2]].T
    return np.maximum(best - next_, 0.05)


def test_rows_count_by_what_the_teacher_is_sure_of(iris):
    distinct = np.unique(iris[0], axis=0, return_index=True)[1]  # of equal rows the teacher's mean would count
    X, y, known, few = (part[distinct] for part in iris)
    told = np.random.default_rng(0).dirichlet(np.ones(3), len(X))
    told[np.flatnonzero(~known)[0]] = [0.4, 0.4, 0.2]  # a tie counts a little
    model = TAOClassifier(teacher=told, alpha=0.2, **QUICK).fit(X, few)
    labels, weight = np.where(known, y, told.argmax(axis=1)), np.where(known, 3.0, lead(told))
    by_hand = TAOClassifier(alpha=0.2, **QUICK).fit(X, labels, weight)
    assert export_text(seen(model)) == export_text(seen(by_hand))
    assert model.objective_ == pytest.approx(by_hand.objective_, rel=1e-12)  # shares are divided by their sum


def test_the_price_of_a_split_follows_the_teacher(iris):
    X, y, known, few = iris
    prices = {}
    for share in (0.4, 0.6, 1.0):
        told = np.where(np.eye(3)[y] > 0, share, (1.0 - share) / 2)
        prices[share] = TAOClassifier(teacher=told, **QUICK).fit(X, few).alpha_
    # 150 rows cost 1 each; one that the teacher doubts weighs what its class is ahead
    assert prices == pytest.approx({0.4: 0.1, 0.6: 0.4, 1.0: 1.0})
    assert TAOClassifier(teacher="auto", alpha=0.7, **QUICK).fit(X, few).alpha_ == pytest.approx(0.7)


@pytest.mark.parametrize("teacher", [LinearSVC(random_state=0), HistGradientBoostingClassifier(max_iter=5)])
def test_scores_of_any_kind(iris, teacher):
    X, _, _, few = iris
    model = TAOClassifier(teacher=teacher, **QUICK).fit(X, few)
    np.testing.assert_array_equal(model.transduction_, said(teacher, iris))


def test_a_regressor_tells_classes_apart(iris):
    X, y, known, few = iris
    columns = LinearRegression().fit(X[known], np.eye(3)[y[known]]).predict(X)
    model = TAOClassifier(teacher=LinearRegression(), **QUICK).fit(X, few)
    np.testing.assert_array_equal(model.transduction_[~known], columns.argmax(axis=1)[~known])


@pytest.mark.parametrize("kind", ["labels", "probabilities"])
def test_an_array_is_taken_as_it_is(iris, kind):
    X, y, known, few = iris
    told = (y + 1) % 3
    array = told if kind == "labels" else np.eye(3)[told] * 0.4 + 0.2
    model = TAOClassifier(teacher=array, **QUICK).fit(X, few)
    assert model.teacher_.name == kind
    np.testing.assert_array_equal(model.transduction_, np.where(known, y, told))


def test_auto_is_right_mostly_and_says_what_it_was(iris):
    X, y, known, few = iris
    model = TAOClassifier(teacher="auto", **QUICK).fit(X, few)
    assert np.mean(model.transduction_ == y) > 0.9
    assert np.mean(model.predict(X) == y) > 0.9
    every = {"extra trees", "random forest", "logistic regression", "extra trees with principal components"}
    every |= {"discriminant analysis", "naive Bayes", "kernel machine", "boosting", "tree"}
    assert {member.name for member in model.teacher_.members} == every
    assert sum(member.share for member in model.teacher_.members) == pytest.approx(1.0)


def thresholds(n=1500, n_labels=300, seed=0):
    """Three classes in boxes of a few features among others that say nothing, as in ann_thyroid."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(size=(n, 12))
    y = np.where(X[:, 0] < 0.08, 2, np.where((X[:, 1] > 0.8) & (X[:, 2] < 0.6), 1, 0))
    return X, y, np.where(np.arange(n) < n_labels, y, -1)


@pytest.mark.parametrize("seed", [0, 1])
def test_where_thresholds_matter_a_taught_tree_is_as_good_as_the_plain_one(tmp_path, seed):
    """Forests, logistic regression and normal distributions alone taught it 3 points less than CART finds."""
    X, y, few = thresholds(seed=seed)
    plain = DecisionTreeClassifier(max_depth=3, random_state=0).fit(X[:300], y[:300]).score(X[300:], y[300:])
    model = TAOClassifier(max_depth=3, teacher="auto", random_state=0).fit(X, few)
    assert plain > 0.97 and model.score(X[300:], y[300:]) >= plain - 0.01
    told = {member.name: member for member in model.teacher_.members}
    assert told["tree"].right > 0.95 and told["boosting"].right > 0.95 > told["logistic regression"].right
    assert model.teacher_.right >= told["tree"].right - 0.02
    model.save(tmp_path / "m.json")
    assert load_model(tmp_path / "m.json").teacher_ == model.teacher_


@pytest.mark.parametrize("kind", BOTH)
@pytest.mark.parametrize("teacher", ["auto", LogisticRegression()])
def test_tables_that_are_labelled_throughout(iris, kind, teacher):
    """A teacher of them had nothing to say of imagined rows but one class, and the tree was a leaf."""
    X, y, _, _ = iris
    model = kind(**QUICK, teacher=teacher).fit(X, y)
    assert model.score(X, y) > 0.9 and np.array_equal(model.transduction_, y)


def test_without_a_teacher_the_mark_is_a_class(iris):
    X, _, _, few = iris
    model = TAOClassifier(**QUICK).fit(X, few)
    assert model.classes_.tolist() == [-1, 0, 1, 2]
    assert not hasattr(model, "transduction_") and not hasattr(model, "teacher_")
    taught = TAOClassifier(teacher="auto", **QUICK).fit(X, few)
    taught.set_params(teacher=None).fit(X, few)
    assert not hasattr(taught, "transduction_") and not hasattr(taught, "teacher_")


def test_other_marks_and_text(iris):
    X, y, known, _ = iris
    names = np.array(["a", "b", "c"])[y].astype(object)
    gone = TAOClassifier(teacher=LogisticRegression(), **QUICK).fit(X, np.where(known, names, None))
    marked = TAOClassifier(teacher=LogisticRegression(), unlabeled="?", **QUICK).fit(X, np.where(known, names, "?"))
    told = np.array(["a", "b", "c"])[said(LogisticRegression(), iris)]
    np.testing.assert_array_equal(gone.transduction_, told)
    np.testing.assert_array_equal(marked.transduction_, told)


def test_class_weight_counts_taught_labels(iris):
    X, _, known, few = iris
    told = said(LogisticRegression(), iris)
    model = TAOClassifier(teacher=told, class_weight={1: 5.0}, **QUICK).fit(X, few)
    by_hand = TAOClassifier(**QUICK).fit(X, told, np.where(known, 3.0, 1.0) * np.where(told == 1, 5.0, 1.0))
    assert seen(model) == seen(by_hand)


@pytest.mark.parametrize("kind", BOTH)
def test_order_and_repeated_rows_do_not_matter(iris, kind):
    X, _, _, few = iris
    X, few = X[::3], few[::3]
    rng = np.random.default_rng(0)
    model = kind(teacher="auto", **QUICK).fit(X, few)
    order = rng.permutation(len(X))
    other = kind(teacher="auto", **QUICK).fit(X[order], few[order])
    np.testing.assert_array_equal(model.transduction_[order], other.transduction_)
    np.testing.assert_array_equal(model.predict(X), other.predict(X))
    twice = kind(teacher="auto", **QUICK).fit(X, few, np.where(np.arange(len(X)) < 10, 2.0, 1.0))
    listed = kind(teacher="auto", **QUICK).fit(np.vstack([X, X[:10]]), np.append(few, few[:10]))
    np.testing.assert_array_equal(twice.transduction_, listed.transduction_[: len(X)])


def test_rows_without_weight_are_not_learned(iris):
    X, y, known, few = iris
    wrong = few.copy()
    wrong[::10] = (y[::10] + 1) % 3
    weight = np.ones(150)
    weight[::10] = 0.0
    weight[1] = 0.0
    model = TAOClassifier(teacher=LogisticRegression(), **QUICK).fit(X, wrong, weight)
    kept = weight > 0
    alone = TAOClassifier(teacher=LogisticRegression(), **QUICK).fit(X[kept], few[kept])
    np.testing.assert_array_equal(model.transduction_[kept], alone.transduction_)
    assert model.transduction_[1] == model.predict(X[1:2])[0]


# ---------------------------------------------------------------------- tables of all kinds


def mixed_table():
    rng = np.random.default_rng(0)
    colour = rng.choice(["red", "green", "blue"], 90).astype(object)
    size = rng.random(90)
    y = np.where((colour == "red") | (size > 0.8), "yes", "no").astype(object)
    size[::9] = np.nan
    colour[4::11] = None
    return np.column_stack([colour, size.astype(object)]), y


@pytest.mark.parametrize("kind", BOTH)
def test_categories_and_gaps_become_numbers(kind):
    X, y = mixed_table()
    few = np.where(np.arange(90) % 3 == 0, y, None)
    model = kind(teacher=LogisticRegression(), categorical_features=[0], max_depth=3, random_state=0).fit(X, few)
    assert np.mean(model.transduction_ == y) > 0.8


def test_who_knows_gaps_gets_them(iris):
    X, y, known, few = iris
    X = X.copy()
    X[np.random.default_rng(0).random(X.shape) < 0.2] = np.nan
    teacher = HistGradientBoostingClassifier(max_iter=5, min_samples_leaf=5, random_state=0)
    told = np.where(known, y, clone(teacher).fit(X[known], y[known]).predict(X))
    model = TAOClassifier(teacher=teacher, **QUICK).fit(X, few)
    # points are scaled, which moves no threshold but for rounding
    assert np.mean(model.transduction_ == told) > 0.97


@pytest.mark.parametrize(
    ("kind", "teacher"), [(TAOClassifier, "auto"), *((kind, LogisticRegression()) for kind in BOTH)]
)
def test_sparse_rows_are_as_dense_ones(iris, kind, teacher):
    X, _, _, few = iris
    dense = kind(teacher=teacher, **QUICK).fit(X, few)
    thin = kind(teacher=teacher, **QUICK).fit(sparse.csr_array(X), few)
    np.testing.assert_array_equal(dense.transduction_, thin.transduction_)
    assert dense.export_text() == thin.export_text()


def test_a_large_sparse_table_needs_a_teacher_that_takes_it(monkeypatch):
    monkeypatch.setattr(taught, "_DENSE_CELLS", 1_000_000)
    rng = np.random.default_rng(0)
    X = sparse.random_array((300, 5_000), density=8e-4, rng=rng, format="csr")
    X = sparse.csr_array(sparse.hstack([sparse.csr_array(np.arange(300.0)[:, None]), X]))
    y = np.where(np.arange(300) % 3 == 0, (np.arange(300) > 150).astype(int), -1)
    for kind in BOTH:
        with pytest.raises(InvalidInputError, match="takes sparse rows"):
            kind(teacher="auto", **QUICK).fit(X, y)
    model = TAOClassifier(1, teacher=LogisticRegression(C=1e4), random_state=0, max_iter=1, stretch=0).fit(X, y)
    assert np.mean(model.transduction_ == (np.arange(300) > 150)) > 0.9


# ---------------------------------------------------------------------- LapTAO


def test_a_large_weight_follows_the_teacher_and_none_the_graph(iris):
    X, y, known, few = iris
    told = (y + 1) % 3
    settings = {"teacher": told, "estimator": "graph", "random_state": 0}
    follows = LapTAOClassifier(teacher_weight=1e6, **settings).fit(X, few)
    np.testing.assert_array_equal(follows.transduction_, np.where(known, y, told))
    graph = LapTAOClassifier(teacher_weight=0.0, **settings).fit(X, few)
    alone = LapTAOClassifier(estimator="graph", random_state=0).fit(X, few)
    np.testing.assert_array_equal(graph.transduction_, alone.transduction_)
    assert (follows.teacher_weight_, graph.teacher_weight_) == (1e6, 0.0)
    assert not hasattr(alone, "teacher_weight_")


def test_soft_labels_solve_the_system_of_the_graph(iris):
    X, _, _, few = iris
    X, few = X[::3], few[::3]
    rng = np.random.default_rng(1)
    W = np.triu(rng.random((50, 50)) < 0.2, 1) * rng.random((50, 50))
    W = W + W.T
    told = rng.dirichlet(np.ones(3), 50)
    model = LapTAOClassifier(estimator="graph", gamma=0.7, teacher=told, teacher_weight=0.25).fit(X, few, graph=W)
    known = few >= 0
    J = np.where(known, 1.0, 0.25)
    target = np.where(known[:, None], np.eye(3)[np.maximum(few, 0)], told)
    Z = np.linalg.solve(np.diag(J) + 0.7 * (np.diag(W.sum(axis=1)) - W), J[:, None] * target)
    np.testing.assert_array_equal(model.transduction_[~known], Z.argmax(axis=1)[~known])
    place = [np.flatnonzero((model.points_ == row).all(axis=1))[0] for row in model.scaling_.apply(X)]
    np.testing.assert_allclose(model.values_[place], Z, atol=1e-4)


def rings(n=240):
    """Two rings, which a graph tells apart and a linear teacher does not."""
    rng = np.random.default_rng(0)
    angle, y = rng.random(n) * 2 * np.pi, np.arange(n) % 2
    radius = np.where(y == 1, 3.0, 1.0) + 0.1 * rng.normal(size=n)
    return np.column_stack([radius * np.cos(angle), radius * np.sin(angle)]), y


def test_the_weight_is_chosen_by_labels_left_out():
    X, y = rings()
    few = np.where(np.arange(240) % 8 < 2, y, -1)
    graph = LapTAOClassifier(teacher=LogisticRegression(), estimator="graph").fit(X, few)
    assert graph.teacher_weight_ <= 0.03
    assert np.mean(graph.transduction_ == y) == 1.0
    noisy = np.column_stack([y, np.random.default_rng(0).random((240, 100))])
    follows = LapTAOClassifier(teacher=DecisionTreeRegressor(max_depth=1), estimator="graph").fit(noisy, few)
    assert follows.teacher_weight_ >= 0.3
    assert np.mean(follows.transduction_ == y) == 1.0


def test_laptao_auto(iris):
    X, y, _, few = iris
    model = LapTAOClassifier(teacher="auto", **QUICK).fit(X, few)
    assert model.teacher_.name == "auto" and model.teacher_weight_ >= 0
    assert np.mean(model.predict(X) == y) > 0.9


# ---------------------------------------------------------------------- conduct


@pytest.mark.parametrize("kind", BOTH)
def test_model_files_keep_what_the_teacher_was(iris, kind, tmp_path):
    X, _, _, few = iris
    model = kind(teacher="auto", **QUICK).fit(X, few)
    model.save(tmp_path / "model.json")
    again = load_model(tmp_path / "model.json")
    assert str(again.teacher_) == str(model.teacher_)
    np.testing.assert_array_equal(again.predict(X), model.predict(X))


@pytest.mark.parametrize("kind", BOTH)
def test_bad_teachers_are_refused(iris, kind):
    X, y, _, few = iris
    for teacher, words in [
        (y[:-1], "150 rows"),
        (np.where(y == 2, 7, y), "not a class"),
        (np.ones((150, 2)), "3 classes"),
        (np.full((150, 3), np.nan), "not finite"),
    ]:
        with pytest.raises(InvalidInputError, match=words):
            kind(teacher=teacher, **QUICK).fit(X, few)
    with pytest.raises(ValueError, match="teacher"):
        kind(teacher="forest", **QUICK).fit(X, few)


@pytest.mark.parametrize("kind", BOTH)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_hardly_any_time_still_gives_a_tree(iris, kind):
    X, _, _, few = iris
    model = kind(teacher="auto", time_limit=1e-6, **QUICK).fit(X, few)
    assert model.status_ == "time_limit"
    assert model.transduction_.shape == (150,)


# ---------------------------------------------------------------------- points that are imagined


def test_imagined_points_lie_between_neighbours():
    X = np.array([[0.0, 0.0], [1.0, 1.0], [10.0, 0.0], [11.0, 1.0], [np.nan, 1.0]])
    points = Sample.of(X, n_levels=np.array([0, 2]))
    imagined = imagined_points(points, None, Conduct())
    assert imagined.shape == (1995, 2)
    numbers, levels = imagined.T
    assert set(levels) == {0.0, 1.0}
    assert np.isnan(numbers).any()
    there = numbers[~np.isnan(numbers)]
    assert there.min() >= 0 and there.max() <= 11
    np.testing.assert_array_equal(imagined, imagined_points(points, None, Conduct()))


def test_between_steps_nothing_is_imagined():
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.integers(0, 10, 200), rng.random(200), rng.integers(0, 11, 200), np.full(200, np.nan)])
    X[::7, 0] = np.nan
    between, steps = (imagined_points(Sample.of(X), None, Conduct(), steps=choice) for choice in (False, True))
    whole = [{float(v).is_integer() for v in column[~np.isnan(column)]} for column in (between[:, 0], steps[:, 0])]
    assert whole == [{True, False}, {True}]
    assert not np.isin(steps[:, 1], X[:, 1]).all() and not np.isin(steps[:, 2], X[:, 2]).all()
    np.testing.assert_array_equal(between[:, 1:], steps[:, 1:])
    assert len(imagined_points(Sample.of(X), None, Conduct(), times=2.5)) == 4800


@pytest.mark.parametrize("kind", BOTH)
def test_large_tables_need_no_imagined_points(kind, iris):
    X, y, known, given = iris
    model = kind(teacher="auto", **QUICK)
    settings = model._search_settings
    model._search_settings = replace(settings, teacher=replace(settings.teacher, imagined_rows=0))
    model.fit(X, given)
    assert np.mean(model.predict(X)[~known] == y[~known]) > 0.8


def test_who_was_given_is_asked_for_no_others():
    points = Sample.of(np.arange(10.0)[:, None])
    assert len(imagined_points(points, TableTeacher(np.ones((10, 2)), "labels"), Conduct())) == 0
    assert len(imagined_points(Sample.of(sparse.csr_array(points.X)), None, Conduct())) == 0
    assert len(imagined_points(Sample.of(np.random.default_rng(0).random((2000, 1))), None, Conduct())) == 0
    assert len(imagined_points(Sample.of(np.random.default_rng(0).random((400, 1000))), None, Conduct())) == 100


# ---------------------------------------------------------------------- the weight of soft labels


def test_losses_of_labels_left_out_are_those_of_the_system():
    rng = np.random.default_rng(3)
    n, known = 12, np.arange(12) < 6
    W = np.triu(rng.random((n, n)) < 0.5, 1) * rng.random((n, n))
    W = W + W.T
    labels, mean = np.eye(2)[np.arange(n) % 2], np.full(2, 0.5)
    task = GraphTask(
        rng.random((n, 1)),
        sparse.csr_array(W),
        np.where(known[:, None], labels - mean, 0),
        1.0 * known,
        np.ones(n),
        0.3,
    )
    told, left = rng.dirichlet(np.ones(2), n), np.array([1, 4])
    found = left_out_losses(task, [(left, told - mean)], mean, Budget())
    for loss, weight in zip(found, SOFT_WEIGHTS, strict=True):
        J = np.where(known, 1.0, weight)
        J[left] = weight
        target = np.where(known[:, None], labels, told)
        target[left] = told[left]
        A = np.diag(J) + 0.3 * (np.diag(W.sum(axis=1)) - W)
        Z = np.maximum(np.linalg.solve(A, J[:, None] * (target - mean)) + mean, 0.02)[left]
        Z = Z / Z.sum(axis=1, keepdims=True)
        assert loss == pytest.approx(np.sum((Z - labels[left]) ** 2), abs=1e-6)
