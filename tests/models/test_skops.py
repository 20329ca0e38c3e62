"""Estimators without a model file are written with skops and read back, trusting what the docs list and no more."""

import re
from pathlib import Path

import numpy as np
import pytest
import skops.io as sio
from sklearn.ensemble import ExtraTreesClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression, Ridge

from treewright import (
    C2RFClassifier,
    LapSVMClassifier,
    LapTAOClassifier,
    LapTAORegressor,
    SelfTrainingRegressor,
    TotalsClassifier,
    paper_forest,
)

RECORD = "treewright.optimize.record.FitRecord"
DOCS = Path(__file__).parents[2] / "docs" / "api.md"
rng = np.random.default_rng(0)
X = rng.random((90, 3))
TRUTH = (X[:, 0] * 3).astype(int)
KNOWN = np.arange(90) < 45
NUMBER = np.arange(90) % 2


def documented(name):
    """Types that the docs list for an estimator, and that of scikit-learn's trees."""
    section = DOCS.read_text(encoding="utf-8").split("## Keeping a model")[1].split("\n## ")[0]
    row = next(line for line in section.splitlines() if line.startswith("|") and f"`{name}`" in line.split("|")[1])
    return {*re.findall(r"`([\w.]+)`", row.split("|")[2]), "sklearn.tree._tree.Tree", RECORD}


def read_back(model):
    data = sio.dumps(model)
    asked = sio.get_untrusted_types(data=data)
    assert set(asked) <= documented(type(model).__name__)
    return sio.loads(data, trusted=asked)


MODELS = {
    "totals": TotalsClassifier(LogisticRegression(), random_state=0),
    "totals auto": TotalsClassifier(random_state=0),
    "totals forest": TotalsClassifier(RandomForestClassifier(3), random_state=0),
    "c2rf": C2RFClassifier(ExtraTreesClassifier(5), random_state=0),
    "c2rf without threshold": C2RFClassifier(
        paper_forest(0).set_params(n_estimators=6), class_prices=False, random_state=0, time_limit=1
    ),
}
GROUPS = {
    "none": None,
    "text": np.array(["north", "south"])[NUMBER],
    "int": NUMBER.tolist(),
    "numpy int": NUMBER.astype(np.int32),
    "numpy objects": np.array([np.int64(7), np.int64(-3)], dtype=object)[NUMBER],
    "numpy text": np.array([np.str_("n"), np.str_("s")], dtype=object)[NUMBER],
    "float": NUMBER + 0.5,
    "bool": NUMBER == 1,
}


@pytest.mark.usefixtures("shortest_searches")
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    ("name", "kind"),
    [("totals", kind) for kind in GROUPS] + [(name, kind) for name in list(MODELS)[1:] for kind in ("none", "float")],
)
def test_models_with_prices_are_read_back(name, kind):
    model, groups = MODELS[name], GROUPS[kind]
    y = np.where(KNOWN, np.array(["a", "b", "c"])[TRUTH], None)
    counts = {k: int(np.sum(TRUTH[~KNOWN] == "abc".index(k))) for k in "abc"}
    if groups is None:
        totals = {"a": counts["a"] + 2, "b": counts["b"] - 2, "c": counts["c"]}
    else:
        column = np.asarray(groups)
        hidden = {g: TRUTH[~KNOWN & (column == g)] for g in set(column.tolist())}
        totals = {g: {k: int(np.sum(part == "abc".index(k))) for k in "abc"} for g, part in hidden.items()}
    model.fit(X, y, totals=totals, groups=groups)
    again = read_back(model)
    assert list(again.class_prices_) == list(model.class_prices_)
    assert [type(g) for g in again.class_prices_] == [type(g) for g in model.class_prices_]
    assert all(np.array_equal(again.class_prices_[g], model.class_prices_[g]) for g in model.class_prices_)
    assert again.totals_ == model.totals_
    new = np.random.default_rng(1).random((200, 3))
    assert np.array_equal(again.predict(new), model.predict(new))
    if groups is not None:
        some = np.asarray(groups)[np.arange(200) % 90]
        assert np.array_equal(again.predict(new, groups=some), model.predict(new, groups=some))
        assert np.array_equal(again.predict_proba(new, groups=some), model.predict_proba(new, groups=some))


@pytest.mark.usefixtures("shortest_searches")
@pytest.mark.parametrize("estimator", [LogisticRegression(), "auto"], ids=["given", "auto"])
def test_a_class_without_labels_is_read_back(estimator):
    y = np.where(KNOWN & (TRUTH < 2), TRUTH, -1)
    model = TotalsClassifier(estimator, random_state=0).fit(X, y, totals={2: 20}, allow_new_classes=True)
    assert np.array_equal(read_back(model).predict(X), model.predict(X))


OTHERS = {
    "forest": (LapTAOClassifier(max_depth=3, n_estimators=2, max_iter=3, random_state=0), TRUTH),
    "propagation": (LapTAOClassifier(estimator="graph", random_state=0), TRUTH),
    "regressor": (LapTAORegressor(estimator=Ridge(), max_iter=3, random_state=0), X[:, 0]),
    "svm": (LapSVMClassifier(random_state=0), TRUTH),
    "self-training": (SelfTrainingRegressor(random_state=0), X[:, 0]),
}


@pytest.mark.parametrize(("model", "truth"), OTHERS.values(), ids=OTHERS.keys())
def test_other_models_without_files_are_read_back(model, truth):
    model.fit(X, np.where(KNOWN, truth, -1 if truth.dtype.kind == "i" else np.nan))
    assert np.array_equal(read_back(model).predict(X), model.predict(X))


@pytest.mark.parametrize("model", [TotalsClassifier(), C2RFClassifier()])
def test_there_are_no_prices_before_a_fit(model):
    assert not hasattr(model, "class_prices_")
