"""The kernel machine of random features against scikit-learn's machines, linear and with the kernel itself."""

import numpy as np
import pytest
from scipy.stats import spearmanr
from sklearn.svm import SVC

from treewright.teachers.kernel_machine import KernelMachine, _waves


@pytest.mark.parametrize("n_classes", [2, 3, 5])
def test_it_is_a_linear_machine_of_its_features(n_classes):
    rng = np.random.default_rng(n_classes)
    X, y, weight = rng.normal(size=(80, 4)), rng.integers(0, n_classes, 80), rng.uniform(0.5, 2.0, 80)
    found = KernelMachine.fitted(X, y, weight, seed=0)
    linear = SVC(kernel="linear", tol=1e-8, decision_function_shape="ovr")
    linear.fit(_waves(X, found.directions), y, weight)
    asked = rng.normal(size=(50, 4))
    expected = linear.decision_function(_waves(asked, found.directions))
    scores = found.scores(asked)
    assert found.classes_.tolist() == list(range(n_classes))
    assert np.allclose(scores[:, 1] if n_classes == 2 else scores, expected, atol=0.01)
    assert n_classes > 2 or np.array_equal(scores[:, 0], -scores[:, 1])


@pytest.mark.parametrize(("n_features", "seed"), [(1, 0), (3, 1), (10, 2)])
def test_it_says_nearly_what_the_kernel_says(n_features, seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(300, n_features))
    y = (np.abs(X[:, 0]) + 0.3 * rng.normal(size=300) > 0.7).astype(int)
    asked = rng.normal(size=(500, n_features))
    exact = SVC().fit(X, y).decision_function(asked)
    scores = KernelMachine.fitted(X, y, np.ones(300), seed=0).scores(asked)[:, 1]
    assert spearmanr(exact, scores)[0] > 0.93
    assert np.mean((exact > 0) == (scores > 0)) > 0.9


def test_products_of_features_are_the_kernel():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 6))
    waves = _waves(X, KernelMachine.fitted(X, np.arange(30) % 2, np.ones(30), seed=1).directions)
    square = ((X[:, None] - X[None]) ** 2).sum(axis=2)
    assert np.allclose(waves @ waves.T, np.exp(-square / (6 * X.var())), atol=0.1)


def test_many_points_to_be_asked_for_have_fewer_features_and_constant_ones_are_no_error():
    X, y = np.ones((20, 3)), np.arange(20) % 2
    few = KernelMachine.fitted(X, y, np.ones(20), seed=0, n_asked=10**6)
    assert few.directions.shape[1] < KernelMachine.fitted(X, y, np.ones(20), seed=0).directions.shape[1]
    assert np.isfinite(few.scores(X)).all() and few.scores(X[:0]).shape == (0, 2)
