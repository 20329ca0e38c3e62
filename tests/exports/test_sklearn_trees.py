"""Trees of scikit-learn that are made of models say the same, and what they cannot say is refused."""

import pickle

import numpy as np
import pytest
from exported import CASES, fitted
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor, export_text

from treewright import BinOCTClassifier, FairOCTClassifier, OCTClassifier, TAOClassifier, TAORegressor
from treewright.exceptions import InvalidInputError
from treewright.exports.content import Content
from treewright.exports.sklearn_tree import to_sklearn
from treewright.tree import Tree, route

rng = np.random.default_rng(0)
X = np.float32(rng.normal(size=(300, 4))).astype(float)
Y = np.column_stack([np.sin(3 * X[:, 0]) + X[:, 1], X[:, 2] > 0])
LABELS = np.array(["low", "middle", "high"])[np.digitize(Y[:, 0], [-0.5, 0.6])]
NEW = np.float32(rng.normal(size=(10_000, 4))).astype(float)
AXIS = {"max_split_features": 1, "random_state": 0}
MODELS = [
    OCTClassifier(max_depth=2).fit(X, LABELS),
    BinOCTClassifier(max_depth=2, time_limit=2.0).fit(X, LABELS == "low"),
    FairOCTClassifier(max_depth=1, time_limit=2.0).fit(X, LABELS == "low", protected=np.arange(300) % 2),
    TAOClassifier(max_depth=5, alpha=0.0, **AXIS).fit(X, LABELS),
    TAOClassifier(max_depth=5, alpha=0.0, **AXIS).fit(np.where(rng.random(X.shape) < 0.1, np.nan, X), LABELS),
    TAORegressor(max_depth=5, alpha=0.0, **AXIS).fit(X, Y[:, 0]),
    TAORegressor(max_depth=5, alpha=0.0, **AXIS).fit(X, Y),
]


@pytest.mark.parametrize("model", MODELS, ids=lambda model: type(model).__name__)
def test_predictions_are_equal(model):
    rows = NEW
    if getattr(model, "has_missing_", np.zeros(1)).any():
        rows = np.where(np.random.default_rng(1).random(NEW.shape) < 0.1, np.nan, NEW)
    found = model.to_sklearn()
    assert isinstance(found, DecisionTreeClassifier if hasattr(model, "classes_") else DecisionTreeRegressor)
    assert (found.predict(rows) == model.predict(rows)).all()
    assert (found.apply(rows) == model.apply(rows)).all()
    assert len(np.unique(found.apply(rows))) > 1
    if hasattr(model, "classes_"):
        assert (found.predict_proba(rows) == model.predict_proba(rows)).all()
        assert found.predict(rows).dtype.kind == model.predict(rows).dtype.kind
    assert np.allclose(found.feature_importances_, model.feature_importances_)
    assert found.decision_path(rows).sum() == model.decision_path(rows).sum()
    assert (pickle.loads(pickle.dumps(found)).predict(rows) == found.predict(rows)).all()
    assert export_text(found).count("\n") >= found.tree_.node_count


def test_names_are_handed_on():
    import pandas as pd

    frame = pd.DataFrame(X, columns=["a", "b", "c", "d"])
    found = OCTClassifier(max_depth=1).fit(frame, LABELS).to_sklearn()
    assert found.feature_names_in_.tolist() == ["a", "b", "c", "d"]
    assert found.predict(frame).shape == (300,)


def as_content(tree):
    labels, shares = [tree.labels], [tree.likely()]
    return Content([tree], ["x"], True, [None], False, [0, 1], labels, shares, means=[tree.shares()])


@pytest.mark.parametrize("weight", [3.0, -3.0, 0.1, -0.1, 1e-300, -1e300])
def test_rows_on_a_threshold_stay_on_their_side(weight):
    values = np.float32(np.random.default_rng(0).normal(size=200)).astype(float)
    for value in [*values[:20].tolist(), 0.1, 0.3]:
        tree = Tree.stump([weight], weight * value, [[3.0, 1.0], [1.0, 3.0]])
        content = as_content(tree)
        rows = np.append(values, value)[:, None]
        assert (to_sklearn(content).predict(rows) == tree.labels[route(tree, rows)]).all()


@pytest.mark.parametrize(
    ("case", "why"),
    [
        ("OCTHClassifier", "together"),
        ("OCTSVMClassifier", "3 trees"),
        ("LapTAOClassifier", "category|together"),
        ("TAORegressor, linear leaves", "category|linear|together"),
    ],
)
def test_what_it_cannot_say_is_refused_by_name(case, why):
    assert case in CASES
    with pytest.raises(InvalidInputError, match=why):
        fitted(case).to_sklearn()


def test_labels_that_are_not_the_most_likely_are_refused():
    tree = Tree.stump([1.0], 0.0, [[3.0, 1.0], [1.0, 3.0]])
    other = tree.with_leaves(tree.values, [0, 1, 1])
    assert to_sklearn(as_content(tree)).tree_.node_count == 3
    with pytest.raises(InvalidInputError, match="leaf 1 predicts another class than its most likely one"):
        to_sklearn(as_content(other))
