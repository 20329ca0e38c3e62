"""Importances of features: what the splits save."""

import numpy as np
import pytest
from exported import CASES, NUMBERS, fitted
from scipy import sparse
from sklearn.exceptions import NotFittedError
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from treewright import LapTAOClassifier, OCTHClassifier, TAOClassifier, load_model
from treewright.estimators.spread import spread
from treewright.exports.content import Content
from treewright.exports.importances import feature_importances
from treewright.tree import Tree

rng = np.random.default_rng(0)
X = rng.normal(size=(300, 4))
y = np.digitize(X[:, 0] + X[:, 1] ** 2, [0.0, 1.0])
WEIGHT = rng.integers(1, 4, 300).astype(float)


def as_content(model, regression):
    own = model.tree_
    weights = np.eye(4)[np.maximum(own.feature, 0)]
    means = own.value[:, :, 0] if regression else own.value[:, 0]
    mass = own.weighted_n_node_samples
    values = means if regression else means * mass[:, None]
    labels = None if regression else values.argmax(axis=1)
    tree = Tree(own.children_left, own.children_right, weights, own.threshold, values, labels)
    return Content([tree], list("abcd"), True, [None] * 4, False, weight=[mass], means=[means])


def test_importances_are_those_of_scikit_learn_for_its_trees():
    model = DecisionTreeClassifier(max_depth=4, random_state=0).fit(X, y, WEIGHT)
    assert np.allclose(feature_importances(as_content(model, False)), model.feature_importances_)
    model = DecisionTreeRegressor(max_depth=4, random_state=0).fit(X, np.column_stack([X[:, 0] ** 2, X[:, 2]]), WEIGHT)
    assert np.allclose(feature_importances(as_content(model, True)), model.feature_importances_)


def test_a_split_of_several_features_is_shared_by_weight_times_spread():
    tree = Tree.stump([2.0, -1.0, 0.0], 0.5, [[2.0, 0.0], [0.0, 2.0]])
    content = Content(
        [tree], list("abc"), True, [None] * 3, False, weight=[np.array([0.0, 2.0, 2.0])], means=[tree.shares()]
    )
    with pytest.raises(NotFittedError, match="spread"):
        feature_importances(content)
    object.__setattr__(content, "spread", np.array([1.0, 3.0, 9.0]))
    assert np.allclose(feature_importances(content), [0.4, 0.6, 0.0])


@pytest.mark.parametrize("case", CASES)
def test_importances_of_models_sum_to_one(case):
    model = fitted(case)
    if "linear" in case:
        assert not hasattr(model, "feature_importances_")
        return
    found = model.feature_importances_
    assert found.shape == (model.n_features_in_,) and (found >= 0).all()
    assert found.sum() == pytest.approx(1.0)


def test_a_feature_in_other_units_matters_as_much(tmp_path):
    first = OCTHClassifier(max_depth=1, time_limit=3.0, random_state=0).fit(X, X @ [1.0, 2.0, 0.0, 0.0] > 0)
    assert np.count_nonzero(first.tree_.weights[0]) > 1
    assert first.feature_importances_.argmax() == 1
    first.save(tmp_path / "model.json")
    assert (load_model(tmp_path / "model.json").feature_importances_ == first.feature_importances_).all()


def test_spread_is_the_standard_deviation():
    table = np.where(rng.random(X.shape) < 0.2, np.nan, X * [1.0, 1e200, 1e-200, 3.0] + [5.0, 0.0, 0.0, 0.0])
    expected = np.nanstd(table / [1.0, 1e200, 1e-200, 3.0], axis=0) * [1.0, 1e200, 1e-200, 3.0]
    assert np.allclose(spread(table) / expected, 1.0)
    thin = np.where(rng.random(X.shape) < 0.7, 0.0, X)
    assert np.allclose(spread(sparse.csr_array(thin)), thin.std(axis=0))


def test_nothing_is_said_before_a_fit_and_nothing_matters_without_a_split():
    assert not hasattr(TAOClassifier(), "feature_importances_")
    graph = LapTAOClassifier(estimator="graph").fit(X, np.where(np.arange(300) % 3, -1, y))
    assert not hasattr(graph, "feature_importances_")
    model = TAOClassifier(max_depth=1, alpha=1e6, random_state=0).fit(X, y)
    assert model.feature_importances_.tolist() == [0.0] * len(NUMBERS)
