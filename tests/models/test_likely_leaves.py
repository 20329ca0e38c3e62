"""How likely classes are in leaves, for rows that the fit has not seen: probabilities, rules and files."""

import math
import re
import warnings
from dataclasses import replace

import numpy as np
import pytest
from sklearn.datasets import make_classification
from sklearn.metrics import log_loss

from treewright import OCTClassifier, OCTHClassifier, TAOClassifier, Tree, load_model
from treewright.engine.leaf_probabilities import agreeing_probabilities, smoothed_probabilities
from treewright.models.registry import SHORT_NAMES
from treewright.tree.serialize import dumps, loads

pytestmark = pytest.mark.usefixtures("shortest_searches")

SETTINGS = {
    "binoct": {"time_limit": 0.7},
    "fair-oct": {"time_limit": 0.7},
    "laptao": {"max_depth": 4, "max_iter": 2},
    "oct": {"max_depth": 3},
    "oct-h": {"time_limit": 0.7},
    "octsvm": {"max_norm": 2.0, "relabel": "tree", "time_limit": 0.7},
    "resvm": {"time_limit": 0.7},
    "s2oct": {"time_limit": 20.0},
    "ssct": {},
    "svm1odt": {"time_limit": 0.7},
    "tao": {"max_depth": 4},
}
TAUGHT = ("laptao", "s2oct", "tao")
FEW_LABELS = [
    *((name, {}) for name in SETTINGS if name != "s2oct"),
    *((name, {"teacher": "auto"}) for name in TAUGHT),
    *(("laptao", {"teacher": None}), ("ssct", {"supervision": 0.5})),
]


def noisy(n_classes=2, n=1200, draw=5):
    """Rows of which four in ten have a label of chance."""
    X, y = make_classification(n, 8, n_informative=4, n_classes=n_classes, flip_y=0.4, random_state=draw)
    return X[:150], y[:150], X[150:], y[150:]


def fitted(name, more, n_classes=2, draw=5):
    X, y, new, truth = noisy(n_classes, draw=draw)
    kind, settings = SHORT_NAMES[name], SETTINGS[name] | more
    if "random_state" in kind().get_params():
        settings["random_state"] = 0
    if more:  # beside rows without a label
        X, y = np.vstack([X, new[:300]]), np.append(y, np.full(300, -1))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return kind(**settings).fit(X, y), new[300:], truth[300:], np.bincount(y[:150]) / 150


@pytest.mark.parametrize(("name", "more"), FEW_LABELS, ids=lambda value: value if isinstance(value, str) else None)
def test_probabilities_of_new_rows_are_as_often_right_as_they_say(name, more):
    away, lost = [], []
    for draw in (5, 6, 7):
        model, X, y, known = fitted(name, more, draw=draw)
        shares = model.predict_proba(X)
        assert np.array_equal(model.classes_[shares.argmax(axis=1)], model.predict(X))
        away.append(shares.max(axis=1).mean() - model.score(X, y))
        lost.append(log_loss(y, shares) + np.log(known[y]).mean())
    assert np.mean(lost) < 0.02 and max(lost) < 0.06  # beside a constant
    assert abs(np.mean(away)) < 0.1


@pytest.mark.parametrize("name", ["oct", "ssct", "tao"])
def test_of_three_classes(name):
    away = []
    for draw in range(3):
        model, X, y, known = fitted(name, {}, n_classes=3, draw=draw)
        shares = model.predict_proba(X)
        assert log_loss(y, shares) < -np.log(known[y]).mean() + 0.04
        assert np.array_equal(shares.argmax(axis=1), model.predict(X))
        away.append(shares.max(axis=1).mean() - model.score(X, y))
    assert abs(np.mean(away)) < 0.1


def stump(n_left, n_right, n_features=1):
    X = np.zeros((sum(n_left) + sum(n_right), n_features))
    X[: sum(n_left), 0] = 0.0
    X[sum(n_left) :, 0] = 1.0
    y = np.repeat([0, 1, 0, 1], [*n_left, *n_right])
    tree = Tree.stump(np.eye(n_features)[0], 0.5, [n_left, n_right])
    return tree, X, y


def test_a_split_is_believed_as_far_as_chance_does_not_explain_it():
    (n, a), (b, m) = (30, 5), (10, 25)
    tree, X, y = stump((n, a), (b, m), n_features=6)

    def nats(*counts):
        return -sum(c * math.log(c / sum(counts)) for c in counts)

    gained = 2 * (nats(n + b, a + m) - nats(n, a) - nats(b, m))
    ways = (math.comb(69, 0) + math.comb(69, 1)) * 6  # 70 rows, a threshold, one of six features
    factor = 1 - 2 * 0.6 * math.log(ways) / gained
    root = (n + b + 1) / 72
    own = (n + 2 * root) / (n + a + 2)
    found = smoothed_probabilities(tree, X, y, np.ones(70))
    assert 0 < factor < 1
    assert found[0, 0] == pytest.approx(root)
    assert found[1, 0] == pytest.approx(root + factor * (own - root))
    assert found.sum(axis=1) == pytest.approx(np.ones(3))


def test_a_split_of_chance_says_nothing():
    tree, X, y = stump((6, 5), (5, 6), n_features=4)
    found = smoothed_probabilities(tree, X, y, np.ones(len(y)))
    assert found[1:] == pytest.approx(np.full((2, 2), 0.5), abs=1e-6)
    assert found.argmax(axis=1).tolist()[1:] == [0, 1]  # what the leaves predict stays


def test_weights_are_repeated_rows_and_have_no_unit():
    tree, X, y = stump((12, 3), (4, 15))
    weight = np.random.default_rng(0).integers(1, 4, len(y)).astype(float)
    plain = smoothed_probabilities(tree, X, y, weight)
    again = np.repeat(np.arange(len(y)), weight.astype(int))
    assert smoothed_probabilities(tree, X[again], y[again], np.ones(len(again))) == pytest.approx(plain)
    assert smoothed_probabilities(tree, X, y, 1e6 * weight) == pytest.approx(plain)
    assert smoothed_probabilities(tree, X, np.where(weight > 1, y, -1), weight) == pytest.approx(
        smoothed_probabilities(tree, X, y, np.where(weight > 1, weight, 0.0))
    )


def test_the_class_that_is_predicted_stays_the_most_likely_one():
    rng = np.random.default_rng(0)
    table, labels = rng.dirichlet(np.ones(4), 200), rng.integers(0, 4, 200)
    found = agreeing_probabilities(table, labels)
    assert np.array_equal(found.argmax(axis=1), labels) and found.sum(axis=1) == pytest.approx(np.ones(200))
    same = table.argmax(axis=1) == labels
    assert np.array_equal(found[same], table[same])


def test_categories_have_as_many_ways_as_subsets():
    category = np.repeat(np.arange(8.0), 4)[:, None]
    y = (category[:, 0] % 2).astype(int)
    listed = np.zeros((3, 8), dtype=bool)
    listed[0, ::2] = True
    tree = Tree([1, -1, -1], [2, -1, -1], np.zeros((3, 1)), np.zeros(3), [[16, 16], [16, 0], [0, 16]], [0, 0, 1])
    tree = replace(tree, category=np.array([0, -1, -1]), left_categories=listed)
    factor = 1 - 2 * 0.6 * 7 * math.log(2) / (64 * math.log(2))
    own = (16 + 2 * 0.5) / 18
    assert smoothed_probabilities(tree, category, y, np.ones(32))[1, 0] == pytest.approx(0.5 + factor * (own - 0.5))


def test_rules_say_what_is_likely_and_what_was_seen():
    X, y = np.arange(20.0)[:, None], np.repeat(["no", "yes"], 10)
    model = OCTClassifier(max_depth=1).fit(X, y)
    lines = re.findall(
        r"(\w+)  \(likely (\d+)% (\w+), (\d+)% (\w+); 10 rows in training: 100% (\w+)\)", model.export_text()
    )
    likely = model.predict_proba([[0.0], [19.0]])
    assert [(line[0], int(line[1])) for line in lines] == [
        ("no", round(100 * likely[0, 0])),
        ("yes", round(100 * likely[1, 1])),
    ]
    assert likely.max() < 1 and model.tree_.shares()[1].tolist() == [1.0, 0.0]


def test_files_keep_probabilities(tmp_path):
    X, y, new, _ = noisy()
    model = OCTHClassifier(max_depth=1, time_limit=2, random_state=0).fit(X, y)
    model.save(tmp_path / "model.json")
    again = load_model(tmp_path / "model.json")
    assert again.tree_ == model.tree_ and np.array_equal(again.predict_proba(new), model.predict_proba(new))
    assert loads(dumps(model.tree_)) == model.tree_
    bare = model.tree_.with_leaves(model.tree_.values, model.tree_.labels)
    assert loads(dumps(bare)) == bare and bare.probabilities is None
    assert np.array_equal(bare.likely(), bare.shares())


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ([0.5, 0.4], "expected a sum of 1"),
        ([1.5, -0.5], "expected a number from 0 to 1"),
        ([1.0], "1 numbers for 2 outputs"),
        (["1", 0], "expected a number"),
    ],
)
def test_probabilities_in_files_are_checked(changed, message):
    from treewright.exceptions import ModelFileError
    from treewright.tree.serialize import tree_from_dict, tree_to_dict

    tree = replace(Tree.stump([1.0], 0.5, np.eye(2)), probabilities=np.full((3, 2), 0.5))
    data = tree_to_dict(tree)
    data["nodes"][1]["probabilities"] = changed
    with pytest.raises(ModelFileError, match=message):
        tree_from_dict(data)
    del data["nodes"][1]["probabilities"]
    with pytest.raises(ModelFileError, match="key 'probabilities' is missing"):
        tree_from_dict(data)


def test_weights_of_classes_say_what_errors_cost_and_not_how_frequent_classes_are():
    X, y, new, truth = noisy()
    rare = np.where((y == 1) & (np.arange(150) % 3 > 0), 0, y)
    model = TAOClassifier(max_depth=2, class_weight={1: 6.0}, random_state=0).fit(X, rare)
    likely = model.predict_proba(X)
    assert likely[:, 1].mean() == pytest.approx(rare.mean(), abs=0.05) and model.predict(X).mean() > 2 * rare.mean()
    few = np.where(np.arange(450) < 150, np.append(rare, truth[:300]), -1)
    taught = TAOClassifier(max_depth=2, class_weight={1: 6.0}, teacher="auto", random_state=0)
    likely = taught.fit(np.vstack([X, new[:300]]), few).predict_proba(X)
    assert likely[:, 1].mean() == pytest.approx(rare.mean(), abs=0.1)


def test_labels_of_somebody_are_labels_and_his_probabilities_are_taken_at_his_word():
    X, y, _, truth = noisy()
    few = np.where(np.arange(150) < 30, y, -1)
    told = np.column_stack([np.full(150, 0.3), np.full(150, 0.7)])
    model = TAOClassifier(max_depth=2, teacher=told, random_state=0).fit(X, few)
    assert model.tree_.n_leaves == 1 or np.all(model.predict_proba(X) > 0.05)
    labels = np.where(X[:, 0] > 0, 1, 0)
    model = TAOClassifier(max_depth=2, teacher=labels, random_state=0).fit(X, few)
    expected = smoothed_probabilities(model.tree_, X, np.where(few < 0, labels, few), np.ones(150))
    assert model.tree_.probabilities == pytest.approx(expected)
