"""One vocabulary: what docs/api.md lists is what estimators have, and one name has one constraint of its kind."""

import inspect
import re
import warnings
from pathlib import Path

import numpy as np
import pytest
from sklearn.base import is_classifier
from sklearn.linear_model import LogisticRegression, Ridge
from tests.estimators_list import QUICK, all_quick
from tests.examples import looped

import treewright as tw

PAGE = (Path(__file__).parents[2] / "docs" / "api.md").read_text(encoding="utf-8")
pytestmark = pytest.mark.usefixtures("shortest_searches")
ESTIMATORS = [getattr(tw, name) for name in tw.__all__ if name.endswith(("Classifier", "Regressor"))]
FITS = [
    *all_quick(),
    tw.LapTAOClassifier(max_depth=2, max_iter=1, n_estimators=2),
    tw.LapTAOClassifier(estimator="graph", teacher=LogisticRegression()),
    tw.LapTAORegressor(estimator="graph"),
    tw.LapTAORegressor(estimator=Ridge(), max_iter=1),
]


def fit_of(model):
    """The model, fitted to twenty rows."""
    X = np.random.default_rng(0).random((20, 2))
    if not hasattr(model, "n_features_in_"):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model.fit(X, (X[:, 0] > 0.5).astype(int) if is_classifier(model) else X[:, 0])
    return model


def listed(heading):
    """Names in the first column of the table below a heading, in the order of the page."""
    table = PAGE.split(f"\n## {heading}\n")[1].split("\n## ")[0]
    rows = [line.split("|")[1] for line in table.splitlines() if line.startswith("| `")]
    return [name for row in rows for name in re.findall(r"`(\w+)`", row)]


def test_every_public_estimator_is_in_the_list_of_the_tests():
    assert set(QUICK) == {kind.__name__ for kind in ESTIMATORS}


def test_the_page_lists_each_parameter_once():
    names = listed("Parameters")
    assert len(set(names)) == len(names)
    assert set(names) == {name for kind in ESTIMATORS for name in kind().get_params(deep=False)}


def test_the_page_lists_each_fitted_attribute_once():
    found = {"feature_names_in_", "feature_importances_", "discrimination_"}
    for model in FITS:
        found |= {name for name in dir(fit_of(model)) if name.endswith("_") and name[0] != "_" and hasattr(model, name)}
    names = listed("Fitted attributes")
    assert len(set(names)) == len(names)
    assert set(names) == found


def test_names_that_had_two_meanings_are_gone():
    gone = {"bound", "n_trees", "w", "gamma_A", "gamma_I", "threshold", "tree", "multiplier", "weight"}
    assert not gone & {name for kind in ESTIMATORS for name in kind().get_params(deep=False)}


def described(kind, section):
    """Names, types and texts of a section of a docstring as users see it, in its order."""
    text = inspect.getdoc(kind).split(f"\n{section}\n{'-' * len(section)}\n")[1]
    text = re.split(r"\n\n[A-Z][\w ]+\n-{3,}\n", text)[0]
    entries = re.findall(r"^(\w[^:\n]*?) : (.+)\n((?:    .+\n?|\n(?=    ))+)", text, re.M)
    assert text.strip() == "\n".join(f"{names} : {kind}\n{body}".rstrip() for names, kind, body in entries).strip()
    return [(name, entry[1], entry[2]) for entry in entries for name in entry[0].split(", ")]


@looped("kind", ESTIMATORS)
def test_every_parameter_is_constrained_and_described(kind):
    parameters = inspect.signature(kind).parameters
    assert set(parameters) <= set(kind._parameter_constraints)
    entries = described(kind, "Parameters")
    assert [name for name, _, _ in entries] == list(parameters)
    for name, text, body in entries:
        default = parameters[name].default
        shown = f'"{default}"' if isinstance(default, str) else repr(default)
        assert shown in text.split(", default=")[1].split(" and ")
        assert body.strip()


def test_every_fitted_attribute_is_described():
    for model in FITS:
        entries = [name for name, _, _ in described(type(model), "Attributes")]
        assert len(set(entries)) == len(entries)
        fitted = {name for name in dir(fit_of(model)) if name.endswith("_") and name[0] != "_" and hasattr(model, name)}
        assert fitted <= set(entries)
        sometimes = {"feature_names_in_", "feature_importances_", *model._sometimes}
        assert set(entries) - fitted <= sometimes


def test_a_shared_entry_is_that_of_the_nearest_class():
    texts = {name: body for name, _, body in described(tw.S2OCTClassifier, "Parameters")}
    assert texts["n_jobs"].startswith("    Processes of the search")  # its own
    assert texts["gap"] == {name: body for name, _, body in described(tw.OCTHClassifier, "Parameters")}["gap"]
    assert (
        "oblique splits along informative directions"
        in dict((name, body) for name, _, body in described(tw.TAORegressor, "Parameters"))["init"]
    )
    assert (
        "as for :class:`TAORegressor`"
        in dict((name, body) for name, _, body in described(tw.LapTAORegressor, "Parameters"))["init"]
    )
