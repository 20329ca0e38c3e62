"""One vocabulary: what docs/api.md lists is what estimators have, and one name has one constraint of its kind."""

import re
import warnings
from pathlib import Path

import numpy as np
import pytest
from sklearn.base import is_classifier
from sklearn.ensemble import ExtraTreesClassifier
from sklearn.linear_model import LogisticRegression, Ridge

import treewright as tw

PAGE = (Path(__file__).parents[2] / "docs" / "api.md").read_text(encoding="utf-8")
ESTIMATORS = [getattr(tw, name) for name in tw.__all__ if name.endswith(("Classifier", "Regressor"))]
FITS = [
    tw.OCTHClassifier(max_depth=1),
    tw.S2OCTClassifier(max_depth=1, time_limit=5),
    tw.C2RFClassifier(ExtraTreesClassifier(5), time_limit=5),
    tw.TotalsClassifier(LogisticRegression()),
    tw.SVM1ODTClassifier(max_depth=1, time_limit=2),
    tw.TAOClassifier(max_depth=2),
    tw.TAORegressor(max_depth=2),
    tw.LapTAOClassifier(max_depth=2, max_iter=1),
    tw.LapTAOClassifier(max_depth=2, max_iter=1, n_estimators=2),
    tw.LapTAORegressor(estimator="graph"),
    tw.LapTAORegressor(estimator=Ridge(), max_iter=1),
    tw.LapSVMClassifier(),
    tw.SSCTClassifier(),
    tw.SelfTrainingRegressor(Ridge()),
]


def listed(heading):
    """Names in the first column of the table below a heading, in the order of the page."""
    table = PAGE.split(f"\n## {heading}\n")[1].split("\n## ")[0]
    rows = [line.split("|")[1] for line in table.splitlines() if line.startswith("| `")]
    return [name for row in rows for name in re.findall(r"`(\w+)`", row)]


def test_the_page_lists_each_parameter_once():
    names = listed("Parameters")
    assert len(set(names)) == len(names)
    assert set(names) == {name for kind in ESTIMATORS for name in kind().get_params(deep=False)}


def test_the_page_lists_each_fitted_attribute_once():
    rng = np.random.default_rng(0)
    X = rng.random((40, 2))
    found = {"feature_names_in_", "feature_importances_"}
    for model in FITS:
        numbers = (X[:, 0] > 0.5).astype(int)
        y = numbers if is_classifier(model) else X[:, 0]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model.fit(X, y)
        found |= {name for name in dir(model) if name.endswith("_") and name[0] != "_" and hasattr(model, name)}
    names = listed("Fitted attributes")
    assert len(set(names)) == len(names)
    assert set(names) == found


def test_names_that_had_two_meanings_are_gone():
    gone = {"bound", "n_trees", "w", "gamma_A", "gamma_I", "threshold", "tree", "multiplier", "weight"}
    assert not gone & {name for kind in ESTIMATORS for name in kind().get_params(deep=False)}


@pytest.mark.parametrize("kind", ESTIMATORS, ids=lambda kind: kind.__name__)
def test_every_parameter_is_constrained_and_described(kind):
    names = set(kind().get_params(deep=False))
    assert names <= set(kind._parameter_constraints)
    described = re.findall(r"^    ([\w, ]+?) : ", kind.__doc__.split("Parameters\n")[1].split("Attributes\n")[0], re.M)
    assert names == {name for line in described for name in line.split(", ")}
