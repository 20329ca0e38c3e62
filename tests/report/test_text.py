"""The plain-text report of a fit."""

import datetime

import numpy as np
import pandas as pd
import pytest

from treewright import (
    C2RFClassifier,
    LapSVMClassifier,
    OCTHClassifier,
    SVM1ODTClassifier,
    TAOClassifier,
    TAORegressor,
    TotalsClassifier,
)
from treewright._version import __version__
from treewright.exceptions import InfeasibleTotalsError, InvalidInputError
from treewright.report import STATUS_WORDS, fit_report
from treewright.report.text import text_table, totals_table

X = np.arange(10.0)[:, None]
Y = np.array(["no"] * 3 + [None] * 4 + ["yes"] * 3, dtype=object)
GROUPS = ["a", "b"] * 5


@pytest.fixture(scope="module")
def model():
    known = np.not_equal(Y, None)
    return OCTHClassifier(max_depth=1, random_state=0).fit(X[known], Y[known].astype(str))


def test_sections(model):
    report = fit_report(model, Y, model.predict(X), title="A title", target="employed")
    assert report.startswith("A title\n=======\n")
    for line in (
        "  target: employed",
        "  10 rows: 6 with a label, 4 without",
        "  no        3  50.0%",
        "  6 of 6 are right: accuracy 100.0%",
        "Predictions for all 10 rows",
    ):
        assert line in report.splitlines()
    assert f"  fit: {STATUS_WORDS['optimal']} (status optimal); " in report
    assert f"  made: {datetime.date.today().isoformat()} by treewright {__version__}\n" in report
    assert "max_depth=1" in report and "objective 0, bound 0, gap 0.00%" in report
    for line in model.export_text().splitlines():
        assert f"  {line}\n" in report
    assert "Known totals" not in report and report.endswith("\n")


def test_first_what_was_asked_then_how_accurate_then_the_tree(model):
    report = fit_report(model, Y, model.predict(X), totals={"yes": 2})
    parts = ["Data", "Known totals", "Rows with a label", "The fit has seen these labels", "Tree"]
    parts += ["What to do next", "How it was made", "Parameters"]
    places = [report.index(part) for part in parts]
    assert places == sorted(places)


def test_leaves_have_numbers_and_rows(model):
    leaves = model.apply(X)
    report = fit_report(model, Y, model.predict(X), leaves=leaves)
    for leaf in np.unique(leaves):
        n, label = np.count_nonzero(leaves == leaf), model.predict(X)[leaves == leaf][0]
        likely = model.predict_proba(X)[leaves == leaf].max()
        assert 0.5 < likely < 1.0
        assert f"leaf {leaf}: {label}  ({n} rows, about {likely:.1%} likely to be so; labelled: 3 {label})" in report


def test_features_of_an_array_get_names(model):
    names = [f"feature {j}" for j in range(model.n_features_in_)]
    plain, named = model.export_text(), model.export_text(feature_names=names)
    assert named != plain and "feature 0" in named
    assert model.export_text(feature_names=np.array(names, dtype=object)) == named
    for wrong, says in (
        ([*names, "more"], f"the tree has {len(names)} features"),
        ("xy", "a sequence"),
        ([0, 1], "a sequence"),
    ):
        with pytest.raises(InvalidInputError, match=says):
            model.export_text(feature_names=wrong)
    frame = TAOClassifier(1, random_state=0).fit(pd.DataFrame({"age": [1.0, 2, 3, 4]}), [0, 0, 1, 1])
    assert "age" in frame.export_text() and "years" in frame.export_text(feature_names=["years"])


def test_it_is_pure(model):
    before = Y.copy()
    assert fit_report(model, Y, model.predict(X)) == fit_report(model, Y, model.predict(X))
    assert np.array_equal(Y, before)


def test_confusion_matrix(model):
    predicted = model.predict(X).copy()
    predicted[0] = "yes"
    lines = fit_report(model, Y, predicted).splitlines()
    start = next(i for i, line in enumerate(lines) if line.startswith("Rows with a label"))
    assert [line.split() for line in lines[start + 1 : start + 4]] == [
        ["no", "yes"],
        ["no", "2", "1"],
        ["yes", "0", "3"],
    ]
    assert "  5 of 6 are right: accuracy 83.3%" in lines


def test_totals(model):
    predicted = model.predict(X)
    hidden = np.equal(Y, None)
    n_yes = np.count_nonzero(predicted[hidden] == "yes")
    report = fit_report(model, Y, predicted, totals={"yes": 4})
    lines = report.splitlines()
    start = lines.index("Known totals of the rows without a label")
    row = next(line.split() for line in lines[start:] if line.split()[:1] == ["yes"])
    assert row == ["yes", "4", str(n_yes), f"{n_yes - 4:+d}" if n_yes != 4 else "0"]
    assert "does not know totals" in report


def test_totals_by_group_and_intervals(model):
    totals = {"a": {"yes": (0, 2)}, "b": {"yes": 2}}
    report = fit_report(model, Y, model.predict(X), totals=totals, groups=GROUPS)
    assert "group  class  asked" in report and "0 to 2" in report


def test_a_model_that_knows_totals_is_not_accused(model):
    from copy import deepcopy

    other = deepcopy(model)
    other.totals_ = []
    assert "the fit used these totals" in fit_report(other, Y, model.predict(X), totals={"yes": 1})


def test_totals_of_the_estimator(model):
    from copy import deepcopy

    other = deepcopy(model)
    row = {"group": None, "class": "yes", "low": 3, "high": 3, "reached": 1, "deviation": 2}
    other.totals_ = [row, row | {"class": "no", "low": 0, "high": 1, "reached": 3}]
    lines = fit_report(other, Y, model.predict(X)).splitlines()
    start = lines.index("Known totals of the rows without a label")
    assert [line.split() for line in lines[start + 1 : start + 5]] == [
        ["class", "asked", "reached", "difference"],
        ["yes", "3", "1", "-2"],
        ["no", "0", "to", "1", "3", "+2"],
        ["4", "rows", "without", "a", "label;", "the", "fit", "used", "these", "totals"],
    ]
    grouped = totals_table([row | {"group": "north"}])
    assert [line.split() for line in grouped] == [
        ["group", "class", "asked", "reached", "difference"],
        ["north", "yes", "3", "1", "-2"],
    ]


def test_parameters_of_numpy_are_numbers():
    model = OCTHClassifier(max_depth=np.int64(1), gap=np.float64(0.5), random_state=np.random.RandomState(0))
    report = fit_report(model.fit([[0.0], [1.0]], [0, 1]), [0, 1], [0, 1])
    assert "max_depth=1," in report and "gap=0.5," in report and "random_state='a RandomState'" in report


@pytest.mark.parametrize("given", [[0], (0,), np.array([0])])
def test_lists_of_parameters_are_shown(given):
    model = TAOClassifier(max_depth=1, categorical_features=given, random_state=0).fit([["a"], ["b"]] * 4, [0, 1] * 4)
    assert "categorical_features=[0], " in fit_report(model, [0, 1], [0, 1])


def test_words_for_a_status_have_no_brackets():
    assert not any("(" in words for words in STATUS_WORDS.values())


def test_bad_input(model):
    predicted = model.predict(X)
    with pytest.raises(InvalidInputError, match="y has 9 rows, predicted has 10"):
        fit_report(model, Y[:9], predicted)
    with pytest.raises(InvalidInputError, match="label 'maybe', which is none of the classes"):
        fit_report(model, np.where(np.equal(Y, "no"), "maybe", Y), predicted)
    with pytest.raises(InfeasibleTotalsError):
        fit_report(model, Y, predicted, totals={"yes": 5})


def test_integer_labels_and_nan():
    y = np.array([0, 0, 1, np.nan])
    model = OCTHClassifier(max_depth=1).fit([[0.0], [1.0], [2.0]], [0, 0, 1])
    assert "4 rows: 3 with a label, 1 without" in fit_report(model, y, model.predict([[0.0], [1.0], [2.0], [3.0]]))


def test_text_table():
    assert text_table([]) == []
    assert text_table([["a", "b"], ["x", "+1"], ["yy", "-10"]]) == ["  a     b", "  x    +1", "  yy  -10"]


@pytest.mark.parametrize("model", [TotalsClassifier(), C2RFClassifier(), LapSVMClassifier(), TAORegressor(max_depth=1)])
def test_what_is_no_tree_of_classes_has_no_report(model):
    X, y = np.arange(10.0)[:, None], np.arange(10) // 5
    model.fit(X, y)
    with pytest.raises(InvalidInputError, match=f"{type(model).__name__} is no classifier that is one tree"):
        fit_report(model, y, model.predict(X))


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_what_was_chosen_is_told_beside_auto():
    rng = np.random.default_rng(0)
    table = rng.random((40, 2))
    y = (table[:, 0] > 0.5).astype(int)
    model = SVM1ODTClassifier(max_depth=1, time_limit=0.5, random_state=0).fit(table, y)
    report = fit_report(model, y, model.predict(table))
    assert f"alpha_2='auto' (chosen: {model.alpha_2_:g})" in report
    assert "epsilon='auto' (chosen: 0.05)," in report and "selection='auto'," in report


def test_weights_of_classes_are_said_beside_rows_and_the_largest_class_beside_the_accuracy():
    rare = np.array(["no"] * 9 + ["yes"] * 3)
    points = np.array([0.0] * 5 + [1.0] * 4 + [1.0] * 3)[:, None]
    given = {"max_depth": 1, "epsilon": 0.05, "alpha_2": 0.1, "time_limit": 5, "random_state": 0}
    weighed = SVM1ODTClassifier(**given, class_weight="balanced").fit(points, rare)
    leaves = weighed.apply(points)
    report = fit_report(weighed, rare, weighed.predict(points), leaves=leaves)
    likely = weighed.predict_proba([[1.0]])[0]
    assert likely[1] < 0.5  # the class of fewer rows
    assert f"yes  (7 rows, about {likely[1]:.1%} likely to be so; labelled: 4 no, 3 yes)" in report
    assert "Leaves have the class that weighs most" in " ".join(report.split())
    assert '  Always saying "no" would be right on 9: 75.0%.\n' in report
    plain = SVM1ODTClassifier(**given).fit(points, rare)
    report = fit_report(plain, rare, plain.predict(points), leaves=plain.apply(points))
    assert "weighs most" not in " ".join(report.split())
