"""Weights of classes are factors of the weights of rows, in every classifier that has them."""

import json
import warnings

import numpy as np
import pytest
from sklearn.base import clone
from tests.examples import looped
from tests.seen_trees import seen

from treewright import SVM1ODTClassifier, TAOClassifier, load_model
from treewright.cli import main
from treewright.exceptions import InvalidInputError, ModelFileError

X = np.random.default_rng(0).integers(0, 8, (24, 2)).astype(float)
Y = np.where(X[:, 0] + np.random.default_rng(1).normal(0, 3, 24) > 5, "rare", "usual")
FACTOR = {"rare": 5.0, "usual": 1.0}
KINDS = {
    "svm1odt": SVM1ODTClassifier(1, epsilon=0.05, alpha_2=1.0, time_limit=None, gap=0.05, random_state=0),
    "tao": TAOClassifier(1, random_state=0),
}
"""Compared with each other, and not with what is optimal: the search alone, which no clock ends."""
every_kind = pytest.mark.parametrize("model", KINDS.values(), ids=KINDS.keys())


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.usefixtures("searches_alone")
@every_kind
def test_class_weights_are_weights_of_rows(model):
    plain = clone(model).fit(X, Y)
    given = np.random.default_rng(2).integers(1, 3, len(Y)).astype(float)
    by_class = clone(model).set_params(class_weight=FACTOR).fit(X, Y, sample_weight=given)
    by_row = clone(model).fit(X, Y, sample_weight=given * np.array([FACTOR[label] for label in Y]))
    assert seen(by_class) == seen(by_row) and by_class.objective_ == by_row.objective_
    assert np.sum(by_class.predict(X) == "rare") > np.sum(plain.predict(X) == "rare")
    share = len(Y) / (2 * np.unique(Y, return_counts=True)[1])
    balanced = clone(model).set_params(class_weight="balanced").fit(X, Y)
    assert seen(balanced) == seen(clone(model).fit(X, Y, sample_weight=share[(Y == "usual").astype(int)]))
    assert not np.array_equal(by_class.tree_.probabilities, by_row.tree_.probabilities)  # prices are no frequencies


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.usefixtures("searches_alone")
@every_kind
def test_files_keep_what_was_fitted_with_class_weights(model, tmp_path):
    for weights in ("balanced", FACTOR, None):
        found = clone(model).set_params(class_weight=weights).fit(X, Y)
        found.save(tmp_path / "model.json")
        again = load_model(tmp_path / "model.json")
        assert again.class_weight == weights
        assert np.array_equal(again.predict_proba(X), found.predict_proba(X))


@pytest.mark.parametrize(
    "labels", [("no", "yes"), (0, 1), (False, True), (0.0, 2.0)], ids=["str", "int", "bool", "float"]
)
def test_labels_of_class_weights_have_their_kind_after_a_file(labels, tmp_path, capsys):
    y, path = np.array(labels)[(Y == "rare").astype(int)], tmp_path / "model.json"
    first, second = np.unique(y)
    TAOClassifier(1, class_weight={first: 1, second: np.float64(2.5)}, random_state=0).fit(X, y).save(path)
    again = load_model(path).class_weight
    assert [(type(label), label, weight) for label, weight in again.items()] == [
        (type(labels[0]), labels[0], 1),
        (type(labels[1]), labels[1], 2.5),
    ]
    assert main(["show", str(path)]) == 0
    assert f"class_weight={{{labels[0]!r}: 1, {labels[1]!r}: 2.5}}" in capsys.readouterr().out
    assert main(["show", str(path), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["parameters"]["class_weight"] == [[labels[0], 1], [labels[1], 2.5]]


def test_files_with_class_weights_that_no_fit_has_are_refused(tmp_path):
    path = tmp_path / "model.json"
    TAOClassifier(1, class_weight=FACTOR, random_state=0).fit(X, Y).save(path)
    document = json.loads(path.read_text())
    wrong = ["rare", {"rare": 2}, ["rare", 2], [["rare"]], [["rare", "2"]], [["rare", -1]], [["rare", True]]]
    wrong += [[["rare", 2], ["rare", 3]], [[None, 2]], [[["rare"], 2]], [[1, 2], [True, 2]], True, 3]
    for value in wrong:
        path.write_text(json.dumps(document | {"parameters": document["parameters"] | {"class_weight": value}}))
        with pytest.raises(ModelFileError):
            load_model(path)
    path.write_text(json.dumps(document | {"parameters": document["parameters"] | {"max_depth": [["rare", 2]]}}))
    with pytest.raises(ModelFileError):
        load_model(path)


WRONG = {
    "nan": ({"rare": np.nan}, "class_weight has nan for class 'rare'"),
    "negative": ({"usual": -0.5}, r"class_weight has -0\.5 for class 'usual'"),
    "overflow": ({"rare": 1e308, "usual": 1e308}, "the weights sum to infinity"),
    "unknown": (
        {"Rare": 2},
        "class_weight has 'Rare', which is no class; did you mean 'rare'",
    ),
    "also unknown": ({"rare": 2, "often": 1}, "class_weight has 'often', which is no class; there are 'rare', 'usual'"),
    "zero": ({"rare": 0, "usual": 0}, "all weights are zero"),
}


@looped("weights, text", WRONG.values())
@every_kind
def test_class_weights_that_are_none_are_refused(model, weights, text):
    with pytest.raises(InvalidInputError, match=text), warnings.catch_warnings():
        warnings.simplefilter("error")
        clone(model).set_params(class_weight=weights).fit(X, Y)


def test_names_of_other_classes_do_no_harm_and_missing_ones_count_once():
    model = TAOClassifier(1, random_state=0)
    by_all = clone(model).set_params(class_weight=FACTOR).fit(X, Y)
    for same in ({"rare": 5}, FACTOR | {"class that this fold lacks": 2}):
        assert clone(model).set_params(class_weight=same).fit(X, Y).tree_ == by_all.tree_


def test_unknown_classes_are_refused_with_a_teacher_too():
    few = np.where(np.arange(len(Y)) % 2 == 0, Y.astype(object), None)
    model = TAOClassifier(1, class_weight={"Rare": 2}, teacher=Y, random_state=0)
    with pytest.raises(InvalidInputError, match="did you mean 'rare'"):
        model.fit(X, few)
