"""The objective of LapTAO is the sum that its docstring states, from the attributes of the fit alone."""

import json

import numpy as np
import pytest
from sklearn.datasets import make_moons

from treewright import LapTAOClassifier, LapTAORegressor, load_model
from treewright.exceptions import ModelFileError

FINE = {"max_depth": 3, "max_iter": 3, "random_state": 0}


def rows(n=120):
    X, y = make_moons(n, noise=0.2, random_state=0)
    X = np.column_stack([X, 100.0 * np.random.default_rng(1).random(n)])
    return X, y, np.where(np.arange(n) < 30, y, -1)


def affinities(X):
    """A graph of our own: nearest neighbours by the first two features."""
    apart = ((X[:, None, :2] - X[None, :, :2]) ** 2).sum(axis=2)
    near = apart < np.sort(apart, axis=1)[:, [6]]
    W = np.where(near | near.T, np.exp(-apart), 0.0)
    np.fill_diagonal(W, 0.0)
    return W


def leaves(tree, X):
    at = np.zeros(len(X), dtype=int)
    while (inner := tree.left[at] >= 0).any():
        left = np.einsum("ij,ij->i", X, tree.weights[at]) <= tree.threshold[at]
        at = np.where(inner, np.where(left, tree.left[at], tree.right[at]), at)
    return at


def stated(model, X, W):
    """The docstring's sum, by numpy."""
    T, unit = model.leaf_values_[leaves(model.tree_, X)], getattr(model, "scale_", 1.0)
    loss = model.target_weight_ @ ((T - model.targets_) ** 2).sum(axis=1)
    edges = model.gamma / 2 * (W * ((T[:, None] - T[None]) ** 2).sum(axis=2)).sum()
    tree = model.tree_
    normals = tree.weights[tree.left >= 0] * np.ptp(X, axis=0)
    splits = (np.abs(normals).sum(axis=1) / np.linalg.norm(normals, axis=1)).sum() if len(normals) else 0.0
    return (loss + edges) / unit**2 + model.split_price_ * splits


@pytest.mark.usefixtures("shortest_searches")
@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"trust": 0.0},
        {"trust": 0.0, "stretch": 0.0, "alpha": 2.0},
        {"trust_weight": 0.7, "stretch": 0.0},
        {"teacher": "auto", "teacher_weight": 0.5},
        {"estimator": "cart"},
    ],
    ids=["default", "no trust", "the paper's", "much trust", "teacher", "cart"],
)
def test_of_classes(settings):
    X, truth, few = rows()
    W = affinities(X)
    weight = np.random.default_rng(2).integers(1, 4, len(X)).astype(float)
    model = LapTAOClassifier(**FINE, **settings).fit(X, few, sample_weight=weight, graph=W)
    assert model.tree_.n_leaves > 1
    assert model.objective_ == pytest.approx(stated(model, X, W), rel=1e-6)
    known = few >= 0
    assert np.array_equal(model.targets_[known], np.eye(2)[few[known]])
    assert np.array_equal(model.target_weight_[known], weight[known])
    others = model.target_weight_[~known] / weight[~known]
    added = {"trust_weight": model.trust_weight if model.trust else 0.0, "teacher": settings.get("teacher_weight", 0.0)}
    assert np.all(np.isin(np.round(others, 12), [0.0, *added.values()]))
    assert others.any() == any(added.values())
    assert np.array_equal(model.classes_[model.leaf_values_[model.apply(X)].argmax(axis=1)], model.predict(X))


def test_of_rows_that_are_equal_and_labelled_otherwise():
    X, _, few = rows()
    X, few = np.vstack([X, X[:20]]), np.append(few, 1 - few[:20])
    W = affinities(X)
    model = LapTAOClassifier(**FINE).fit(X, few, graph=W)
    assert model.objective_ == pytest.approx(stated(model, X, W), rel=1e-6)


@pytest.mark.parametrize("settings", [{}, {"stretch": 0.0, "alpha": 1.0}, {"estimator": "cart"}])
def test_of_targets_in_any_units(settings):
    X, _, few = rows()
    W = affinities(X)
    y = np.where(few < 0, np.nan, 1000.0 * X[:, 0] - 7.0)
    Y = np.column_stack([y, -0.1 * y])
    for targets in (y, Y):
        model = LapTAORegressor(**FINE, **settings).fit(X, targets, graph=W)
        assert model.tree_.n_leaves > 1
        assert model.objective_ == pytest.approx(stated(model, X, W), rel=1e-6)
        assert model.leaf_values_[model.apply(X)].reshape(model.predict(X).shape) == pytest.approx(model.predict(X))


def test_the_price_is_in_rows_at_the_distance_of_the_labels():
    X, _, few = rows()
    prices = [LapTAOClassifier(**FINE, alpha=alpha).fit(X, few).split_price_ for alpha in (0.5, 1.0)]
    assert prices[1] == pytest.approx(2 * prices[0]) and 0 < prices[0] < 0.5


def test_files_keep_the_values_and_damaged_ones_are_refused(tmp_path):
    X, _, few = rows()
    path = tmp_path / "model.json"
    model = LapTAOClassifier(**FINE).fit(X, few)
    model.save(path)
    again = load_model(path)
    assert np.array_equal(again.leaf_values_, model.leaf_values_) and again.split_price_ == model.split_price_
    document = json.loads(path.read_text())
    for name, wrong in (("leaf_values", [[1.0]]), ("leaf_values", 3), ("split_price", -1.0), ("split_price", None)):
        path.write_text(json.dumps(document | {"fit": document["fit"] | {name: wrong}}))
        with pytest.raises(ModelFileError, match=name):
            load_model(path)


def test_models_that_are_no_tree_have_no_values_of_leaves():
    X, _, few = rows()
    model = LapTAOClassifier(**FINE).fit(X, few)
    model.set_params(estimator="graph").fit(X, few)
    assert not hasattr(model, "leaf_values_") and not hasattr(model, "split_price_") and hasattr(model, "targets_")
