"""Weights of classes are factors of the weights of rows, in every classifier that has them."""

import warnings

import numpy as np
import pytest
from sklearn.base import clone

from treewright import SVM1ODTClassifier, TAOClassifier, load_model
from treewright.exceptions import InvalidInputError

X = np.random.default_rng(0).integers(0, 8, (24, 2)).astype(float)
Y = np.where(X[:, 0] + np.random.default_rng(1).normal(0, 3, 24) > 5, "rare", "usual")
FACTOR = {"rare": 5.0, "usual": 1.0}
KINDS = {
    "svm1odt": SVM1ODTClassifier(1, epsilon=0.05, alpha_2=1.0, time_limit=None, gap=0.05, random_state=0),
    "tao": TAOClassifier(1, random_state=0),
}
every_kind = pytest.mark.parametrize("model", KINDS.values(), ids=KINDS.keys())


@every_kind
def test_class_weights_are_weights_of_rows(model):
    plain = clone(model).fit(X, Y)
    given = np.random.default_rng(2).integers(1, 3, len(Y)).astype(float)
    by_class = clone(model).set_params(class_weight=FACTOR).fit(X, Y, sample_weight=given)
    by_row = clone(model).fit(X, Y, sample_weight=given * np.array([FACTOR[label] for label in Y]))
    assert by_class.tree_ == by_row.tree_ and by_class.objective_ == by_row.objective_
    assert np.sum(by_class.predict(X) == "rare") > np.sum(plain.predict(X) == "rare")
    share = len(Y) / (2 * np.unique(Y, return_counts=True)[1])
    balanced = clone(model).set_params(class_weight="balanced").fit(X, Y)
    assert balanced.tree_ == clone(model).fit(X, Y, sample_weight=share[(Y == "usual").astype(int)]).tree_


@every_kind
def test_files_keep_what_was_fitted_with_class_weights(model, tmp_path):
    for weights, kept in [("balanced", "balanced"), (FACTOR, None)]:  # files have plain values of parameters
        found = clone(model).set_params(class_weight=weights).fit(X, Y)
        found.save(tmp_path / "model.json")
        again = load_model(tmp_path / "model.json")
        assert again.class_weight == kept
        assert np.array_equal(again.predict_proba(X), found.predict_proba(X))


WRONG = {
    "nan": ({"rare": np.nan}, "class_weight has nan for class 'rare'"),
    "negative": ({"usual": -0.5}, r"class_weight has -0\.5 for class 'usual'"),
    "overflow": ({"rare": 1e308, "usual": 1e308}, "the weights sum to infinity"),
    "zero": ({"rare": 0, "usual": 0}, "all weights are zero"),
}


@pytest.mark.parametrize(("weights", "text"), WRONG.values(), ids=WRONG.keys())
@every_kind
def test_class_weights_that_are_none_are_refused(model, weights, text):
    with pytest.raises(InvalidInputError, match=text), warnings.catch_warnings():
        warnings.simplefilter("error")
        clone(model).set_params(class_weight=weights).fit(X, Y)
