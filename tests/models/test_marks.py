"""Labels that look like marks of rows without one are told, and usual codings are not."""

import warnings

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from tests import estimators_list
from tests.estimators_list import CLASSIFIERS, quick
from tests.examples import looped

from treewright import S2OCTClassifier, TAOClassifier, find_wrong_labels, select
from treewright.exceptions import ForgottenMarkWarning, InvalidInputError

X = np.random.default_rng(0).normal(size=(60, 2))
TRUTH = np.where(X[:, 0] > 0, 2, (X[:, 1] > 0).astype(int))
MARKED = np.where(np.arange(60) % 4 == 0, -1, TRUTH)
FIRST = TAOClassifier(max_depth=1, random_state=0).fit(X, TRUTH)

SUPERVISED = {
    name: quick(name, time_limit=0.2, max_iter=1, stretch=0, relabel="tree").fit
    for name in CLASSIFIERS
    if name not in estimators_list.SEMI_SUPERVISED
} | {
    "find_wrong_labels": lambda X, y: find_wrong_labels(X, y, n_estimators=5, random_state=0),
    "select": lambda X, y: select(X, y, FIRST),
}
SEMI_SUPERVISED = {
    name: quick(name, max_depth=2, time_limit=0.2, max_iter=1).fit
    for name in CLASSIFIERS
    if name in estimators_list.SEMI_SUPERVISED
} | {"tao, taught": quick("TAOClassifier", max_iter=1, stretch=0, teacher=LogisticRegression()).fit}


def told(fit, y):
    """Warnings of marks that a fit gives."""
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        fit(X, y)
    return [str(w.message) for w in seen if issubclass(w.category, ForgottenMarkWarning)]


def as_text(y, mark):
    return np.where(y == -1, mark, np.array(["a", "b", "c", "?"])[y])


@pytest.mark.parametrize("fit", SUPERVISED.values(), ids=SUPERVISED.keys())
def test_supervised_models_tell_that_marks_are_taken_for_a_class(fit):
    (words,) = told(fit, MARKED)
    assert "y has -1 in 15 of 60 rows" in words and "X[y != -1] and y[y != -1]" in words
    (words,) = told(fit, as_text(MARKED, ""))
    assert "y has '' in 15 of 60 rows" in words and "y[y != '']" in words
    assert told(fit, TRUTH) == []


@pytest.mark.parametrize("name", ["OCTClassifier", "TAOClassifier", "OCTSVMClassifier"])
def test_minus_one_and_one_are_two_classes_without_a_word(name):
    for y in (np.where(X[:, 0] > 0, 1, -1), np.where(X[:, 0] > 0, 1.0, -1.0), np.where(X[:, 0] > 0, "+", "-")):
        assert told(SUPERVISED[name], y) == []


@looped("mark", [-1.0, -9, -99, "nan", "None", "-1", " ", "?"])
def test_other_marks_are_told_too(mark):
    y = np.where(MARKED == -1, mark, MARKED) if not isinstance(mark, str) else as_text(MARKED, mark)
    (words,) = told(SUPERVISED["OCTClassifier"], y)
    assert f"y has {mark!r} in 15 of 60 rows" in words


def test_several_marks_are_told_at_once_with_a_condition_that_leaves_them_out():
    y = as_text(MARKED, "").astype(object)
    y[:3] = "n/a"
    (words,) = told(SUPERVISED["OCTClassifier"], y)
    assert "'' in 14 and 'n/a' in 3 of 60 rows" in words
    kept = words.partition("X[")[2].partition("] and y[")[0]
    assert sorted(set(y[eval(kept)])) == ["a", "b", "c"]


def test_who_names_another_mark_means_minus_one():
    assert told(TAOClassifier(1, max_iter=1, stretch=0, unlabeled=9).fit, MARKED) == []
    assert told(S2OCTClassifier(2, time_limit=0.2, unlabeled=9).fit, np.where(np.arange(60) % 5, MARKED, 9)) == []
    (words,) = told(SUPERVISED["TAOClassifier"], MARKED)
    assert "teacher='auto'" in words


@pytest.mark.parametrize("fit", SEMI_SUPERVISED.values(), ids=SEMI_SUPERVISED.keys())
def test_semi_supervised_models_tell_of_marks_that_they_do_not_know(fit):
    assert told(fit, MARKED) == []
    (words,) = told(fit, np.where(np.arange(60) % 5, MARKED, -99))
    assert "y has -99 in 12 of 60 rows" in words and "set unlabeled to it" in words


@pytest.mark.parametrize("gone", [None, np.nan])
def test_missing_labels_are_refused_with_what_to_do(gone):
    y = MARKED.astype(object)
    y[MARKED == -1] = gone
    for fit in SUPERVISED.values():
        with pytest.raises(InvalidInputError, match=r"in 15 of 60 rows.*alone.*teacher='auto'"):
            fit(X, y)
