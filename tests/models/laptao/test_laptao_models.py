"""LapTAO with regressors of scikit-learn in the place of the tree."""

import numpy as np
import pytest
from sklearn import config_context
from sklearn.datasets import load_iris
from sklearn.ensemble import BaggingRegressor, GradientBoostingRegressor, RandomForestRegressor, StackingRegressor
from sklearn.linear_model import LinearRegression, Ridge
from sklearn.multioutput import MultiOutputRegressor
from sklearn.neighbors import KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVR
from tests.models.laptao.test_laptao_conduct import BOTH, partly_known, small

from treewright import LapTAOClassifier, LapTAORegressor


@BOTH
def test_a_seed_is_for_the_given_regressor_too(kind):
    X, y = partly_known(kind)
    drawn = RandomForestRegressor(4)
    one, two, other = (
        small(kind, estimator=drawn, max_iter=2, random_state=seed).fit(X, y)._values(X) for seed in (0, 0, 1)
    )
    assert np.array_equal(one, two) and not np.array_equal(one, other)
    assert drawn.random_state is None and not hasattr(drawn, "estimators_")


def test_a_regressor_of_one_output_serves_for_several_classes_and_outputs():
    X, y = load_iris(return_X_y=True)
    few = np.where(np.arange(150) % 10 == 0, y, -1)
    boosting = GradientBoostingRegressor(n_estimators=20, subsample=0.9)
    model = LapTAOClassifier(estimator=boosting, max_iter=2, random_state=0).fit(X, few)
    # Which it learns from the graph, so that it agrees with that more than with the classes.
    assert np.mean(model.predict(X) == model.transduction_) > 0.95 and model.predict_proba(X).shape == (150, 3)
    again = LapTAOClassifier(estimator=boosting, max_iter=2, random_state=0).fit(X, few)
    assert np.array_equal(model.predict_proba(X), again.predict_proba(X)) and boosting.random_state is None
    numbers = np.column_stack([X[:, 2], X[:, 3]])
    known = np.where((few >= 0)[:, None], numbers, np.nan)
    found = LapTAORegressor(estimator=boosting, max_iter=2, random_state=0).fit(X, known).predict(X)
    assert found.shape == (150, 2) and np.all(np.var(found - numbers, axis=0) < 0.1 * np.var(numbers, axis=0))


@BOTH
@pytest.mark.parametrize(
    "tree",
    [
        MultiOutputRegressor(KNeighborsRegressor(3)),
        StackingRegressor([("near", KNeighborsRegressor(3))], final_estimator=Ridge()),
        make_pipeline(StandardScaler(), SVR()),
        BaggingRegressor(KNeighborsRegressor(3), 3),
    ],
    ids=lambda tree: type(tree).__name__,
)
@pytest.mark.parametrize("routing", [False, True])
def test_regressors_that_wrap_others_need_no_weights(kind, tree, routing):
    X, y = partly_known(kind)
    X, y = np.concatenate([X, X[:50]]), np.concatenate([y, y[:50]])  # repeated rows are no weights
    with config_context(enable_metadata_routing=routing):
        model = small(kind, estimator=tree, max_iter=1).fit(X, y)
    assert model.predict(X).shape == model.transduction_.shape == y.shape
    assert np.mean((model.predict(X) - model.transduction_) ** 2) < 0.2 * np.var(model.transduction_)


def test_repeated_rows_count_whether_or_not_a_regressor_takes_weights():
    X = np.repeat([[0.0], [1.0], [2.0]], [98, 1, 1], axis=0)
    y = np.repeat([0.0, 0.0, 1.0], [98, 1, 1])
    oracle = LinearRegression().fit(X, y).predict([[0.0], [1.0], [2.0]])
    for tree in (LinearRegression(), make_pipeline(LinearRegression())):
        model = LapTAORegressor(estimator=tree, max_iter=0, gamma=1e-9).fit(X, y)
        assert model.predict([[0.0], [1.0], [2.0]]) == pytest.approx(oracle, abs=1e-6)


def test_a_stack_that_predicts_once_it_is_fitted():
    X, y = partly_known(LapTAORegressor)
    stack = StackingRegressor([("near", KNeighborsRegressor(3))])
    assert not hasattr(stack, "predict")
    model = small(LapTAORegressor, estimator=stack, max_iter=1).fit(X, y)
    assert np.mean((model.predict(X) - model.transduction_) ** 2) < 0.2 * np.var(model.transduction_)


def test_the_graph_alone_is_as_sure_as_labels_left_out_say():
    """Smoothed labels of few rows are spikes on a plain: nearly all shares are those of the classes."""
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 3, 900)
    X = rng.normal(size=(900, 6)) + 2.2 * np.eye(3, 6)[truth]
    y = np.where(np.arange(900) < 45, truth, -1)
    model = LapTAOClassifier(estimator="graph", random_state=0).fit(X[:600], y[:600])
    likely, labels = model.predict_proba(X[600:]), model.predict(X[600:])
    np.testing.assert_allclose(likely.sum(axis=1), 1.0)
    assert np.array_equal(likely.argmax(axis=1), labels)
    assert abs(likely.max(axis=1).mean() - np.mean(labels == truth[600:])) < 0.1
