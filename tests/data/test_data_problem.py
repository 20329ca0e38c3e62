"""make_problem: what is accepted, what it becomes, and what is refused in which words."""

import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse
from sklearn.exceptions import DataConversionWarning
from tests.examples import looped

from treewright.data import Problem, TotalsRules, make_problem
from treewright.data.columns_checked import missing_mask
from treewright.exceptions import InfeasibleTotalsError, InvalidInputError

NEW = TotalsRules(allow_new_classes=True)
X4 = np.array([[0.0, 1.0], [1.0, 0.0], [2.0, 2.0], [3.0, 1.0]])


def semi(y, X=X4, **kwargs):
    return make_problem(X, y, supervised=False, **kwargs)


# ---------------------------------------------------------------------- shapes and views


def test_parts_of_a_semi_supervised_problem():
    problem = semi([7, -1, 3, -1], sample_weight=[1, 2, 3, 4])
    assert problem.classes.tolist() == [3, 7]
    assert problem.y.tolist() == [1, -1, 0, -1] and problem.y.dtype == np.int64
    assert problem.labelled.tolist() == [True, False, True, False]
    assert problem.unlabelled.tolist() == [False, True, False, True]
    assert (problem.n_labelled, problem.n_unlabelled, problem.n_features, problem.n_classes) == (2, 2, 2, 2)
    assert problem.X_labelled.tolist() == X4[[0, 2]].tolist()
    assert problem.X_unlabelled.tolist() == X4[[1, 3]].tolist()
    assert problem.y_labelled.tolist() == [1, 0]
    assert problem.weight_labelled.tolist() == [1.0, 3.0]
    assert problem.totals is None and problem.feature_names is None


def test_arrays_are_frozen_but_the_callers_are_not():
    X, weight = X4.copy(), np.ones(4)
    problem = make_problem(X, [0, 1, 0, 1], weight)
    for array in (
        problem.X,
        problem.y,
        problem.weight,
        problem.classes,
        problem.labelled,
        problem.X_labelled,
    ):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 0
    assert np.shares_memory(problem.X, X)  # no copy of data that is fine as it is
    X[0, 0] = 5.0
    weight[0] = 2.0


def test_points_are_contiguous_doubles():
    for X in (np.asfortranarray(X4), X4.astype(np.float32), X4.astype(int), X4.tolist(), X4[:, ::-1]):
        problem = make_problem(X, [0, 1, 0, 1])
        assert problem.X.dtype == np.float64 and problem.X.flags.c_contiguous
        np.testing.assert_array_equal(problem.X, np.asarray(X))


def test_problem_refuses_parts_of_different_length():
    with pytest.raises(InvalidInputError, match="do not belong together"):
        Problem(X=X4, y=np.zeros(3), weight=np.ones(4), classes=np.array([0]))


def test_feature_names():
    assert make_problem(X4, [0, 1, 0, 1], feature_names=["a", "b"]).feature_names == ("a", "b")
    assert make_problem(pd.DataFrame(X4, columns=["u", "v"]), [0, 1, 0, 1]).feature_names == ("u", "v")
    assert make_problem(pl.DataFrame(X4, schema=["u", "v"]), [0, 1, 0, 1]).feature_names == ("u", "v")
    assert make_problem(pd.DataFrame(X4), [0, 1, 0, 1]).feature_names is None
    with pytest.raises(InvalidInputError, match="3 names, X has 2 features"):
        make_problem(X4, [0, 1, 0, 1], feature_names=["a", "b", "c"])
    with pytest.raises(InvalidInputError, match="sequence of strings"):
        make_problem(X4, [0, 1, 0, 1], feature_names="ab")
    with pytest.raises(InvalidInputError, match="sequence of strings"):
        make_problem(X4, [0, 1, 0, 1], feature_names=["a", 1])


# ---------------------------------------------------------------------- labels

UNLABELLED_FORMS = {
    "int list": [0, 1, -1, 1],
    "int array": np.array([0, 1, -1, 1]),
    "float with nan": np.array([0.0, 1.0, np.nan, 1.0]),
    "float with -1": np.array([0.0, 1.0, -1.0, 1.0]),
    "float32": np.array([0, 1, np.nan, 1], dtype=np.float32),
    "list with None": [0, 1, None, 1],
    "object -1": np.array(["a", "b", -1, "b"], dtype=object),
    "object None": np.array(["a", "b", None, "b"], dtype=object),
    "object nan": np.array(["a", "b", np.nan, "b"], dtype=object),
    "object float32 nan": np.array(["a", "b", np.float32("nan"), "b"], dtype=object),
    "object pd.NA": np.array(["a", "b", pd.NA, "b"], dtype=object),
    "mixed list -1": ["a", "b", -1, "b"],
    "mixed list nan": ["a", "b", float("nan"), "b"],
    "str array": np.array(["a", "b", -1, "b"]),
    "str list": ["a", "b", "-1", "b"],
    "object of ints": np.array([4, 5, -1, 5], dtype=object),
    "object of bools": np.array([False, True, None, True], dtype=object),
    "column": np.array([[0], [1], [-1], [1]]),
    "pandas Int64": pd.Series([0, 1, None, 1], dtype="Int64"),
    "pandas Int64 -1": pd.Series([0, 1, -1, 1], dtype="Int64"),
    "pandas boolean": pd.Series([False, True, None, True], dtype="boolean"),
    "pandas string": pd.Series(["a", "b", None, "b"], dtype="string"),
    "pandas string -1": pd.Series(["a", "b", "-1", "b"], dtype="string"),
    "pandas str": pd.Series(["a", "b", "-1", "b"]),
    "pandas object": pd.Series(["a", "b", -1, "b"], dtype=object),
    "pandas category": pd.Series(["a", "b", None, "b"], dtype="category"),
    "pandas category of ints": pd.Series([0, 1, -1, 1], dtype="category"),
    "polars int": pl.Series([0, 1, None, 1]),
    "polars int -1": pl.Series([0, 1, -1, 1]),
    "polars str": pl.Series(["a", "b", None, "b"]),
    "polars str -1": pl.Series(["a", "b", "-1", "b"]),
    "polars category": pl.Series(["a", "b", None, "b"], dtype=pl.Categorical),
}


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.DataConversionWarning")
@looped("form", UNLABELLED_FORMS)
def test_every_way_to_leave_a_row_unlabelled(form):
    problem = semi(UNLABELLED_FORMS[form])
    assert problem.y.tolist() == [0, 1, -1, 1]
    assert problem.n_classes == 2


@looped(
    "y, classes",
    [
        ([3, 1, 3, 1], [1, 3]),
        ([-1, 1, -1, 1], [-1, 1]),
        (["x", "-1", "x", "-1"], ["-1", "x"]),
        ([True, False, True, False], [False, True]),
        ([2.0, 1.0, 2.0, 1.0], [1.0, 2.0]),
        (np.array([2, 1, 2, 1], dtype=np.uint8), [1, 2]),
        (pd.Series([2, 1, 2, 1], dtype="Int64"), [1, 2]),
        (pd.Series(["v", "u", "v", "u"], dtype="category"), ["u", "v"]),
        (pl.Series(["v", "u", "v", "u"]), ["u", "v"]),
    ],
)
def test_supervised_labels_and_minus_one_is_one_of_them(y, classes):
    problem = make_problem(X4, y)
    assert problem.classes.tolist() == classes
    assert problem.classes[problem.y].tolist() == np.asarray(y).tolist()
    assert problem.n_unlabelled == 0 and problem.X_labelled is problem.X


def test_minus_one_string_is_a_label_in_an_object_array():
    problem = semi(np.array(["a", "-1", -1, "a"], dtype=object))
    assert problem.classes.tolist() == ["-1", "a"]
    assert problem.y.tolist() == [1, 0, -1, 1]


@pytest.mark.parametrize(
    "y, mark, expected",
    [
        ([0, 1, 9, -1], 9, [1, 2, -1, 0]),
        (["a", "b", "?", "-1"], "?", [1, 2, -1, 0]),
        ([0, 1, -1, 1], "?", [1, 2, 0, 2]),
        ([0, 1, np.nan, 1], np.nan, [0, 1, -1, 1]),
        (np.array([0, 1, 255, 1], dtype=np.uint8), np.int64(255), [0, 1, -1, 1]),
    ],
)
def test_own_marks(y, mark, expected):
    assert semi(y, unlabeled=mark).y.tolist() == expected


@pytest.mark.parametrize("y", [[0, None, 1, None], [0.0, np.nan, 1.0, np.nan], ["a", None, "b", None]])
def test_a_supervised_model_needs_all_labels(y):
    with pytest.raises(InvalidInputError, match="in 2 of 4 rows, first in row 1; every row needs a label"):
        make_problem(X4, y)


@looped(
    "y, words",
    [
        ([0.5, 1.5, 0.2, 0.1], "Unknown label type: continuous"),
        ([0.0, 1.0, np.inf, 1.0], "infinity"),
        (np.array(["a", 1, "b", 2], dtype=object), "Unknown label type.*'a' and 1"),
        (np.array([(1,), (2,), (1,), 3], dtype=object), r"Unknown label type.*\(1,\) of type tuple"),
        ([[0, 1], [1, 0], [0, 1], [1, 0]], "y should be a 1d array"),
        ([0, 1, 0], "inconsistent numbers of samples"),
        ([10**30, 1, 0, 1], "too large for 64 bits"),
        ([1 + 2j, 1, 0, 1], "Complex data not supported"),
    ],
)
@looped("supervised", [True, False])
def test_labels_that_are_refused(y, words, supervised):
    with pytest.raises(ValueError, match=words):
        make_problem(X4, y, supervised=supervised)


def test_continuous_labels_among_unlabelled_rows():
    with pytest.raises(ValueError, match="Unknown label type: continuous"):
        semi([0.5, np.nan, 1.5, -1.0])


def test_y_is_required():
    with pytest.raises(ValueError, match="requires y to be passed, but the target y is None"):
        make_problem(X4, None)


def test_sparse_labels_are_refused():
    with pytest.raises(TypeError, match="sparse"):
        make_problem(X4, sparse.csr_array([[0], [1], [0], [1]]))


def test_a_column_of_labels_warns_as_in_scikit_learn():
    with pytest.warns(DataConversionWarning, match="A column-vector y"):
        make_problem(X4, np.array([[0], [1], [0], [1]]))


def test_no_warning_in_ordinary_use():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        semi(["a", "b", -1, "b"])
        make_problem(X4, [0, 1, 0, 1], [1.0, 2.0, 0.0, 1.0])


@pytest.mark.parametrize("y, label", [(["a"] * 4, "'a'"), ([1.0] * 4, "1.0"), ([7] * 4, "7")])
def test_one_class(y, label):
    with pytest.raises(InvalidInputError, match=f"only one class, {label}; .* at least two classes"):
        make_problem(X4, y)
    assert make_problem(X4, y, min_classes=1).n_classes == 1


def test_too_few_classes():
    with pytest.raises(InvalidInputError, match="only two classes, 0, 1; .* at least three"):
        make_problem(X4, [0, 1, 0, 1], min_classes=3)


def test_no_labelled_row():
    with pytest.raises(InvalidInputError, match="none of the 4 rows has a label"):
        semi([-1, -1, -1, -1])


# ---------------------------------------------------------------------- features


@looped(
    "X, words",
    [
        (np.zeros((0, 2)), r"0 sample\(s\)"),
        (np.zeros((4, 0)), r"0 feature\(s\)"),
        (np.where(X4 == 3, np.nan, X4), "X contains NaN"),
        (np.where(X4 == 3, np.inf, X4), "infinity"),
        (X4 + 1j, "Complex data not supported"),
        (X4[:, 0], "Reshape your data"),
        (X4[:3], "inconsistent numbers of samples"),
        ([["a", "b"]] * 4, "could not convert string to float"),
    ],
)
def test_features_that_are_refused(X, words):
    with pytest.raises(ValueError, match=words):
        make_problem(X, [0, 1, 0, 1])


def test_sparse_features_are_refused():
    with pytest.raises(TypeError, match="[Ss]parse"):
        make_problem(sparse.csr_array(X4), [0, 1, 0, 1])


def test_objects_in_features_are_refused():
    X = X4.astype(object)
    X[0, 0] = {"foo": "bar"}
    with pytest.raises(TypeError, match=r"argument must be .* string.* number"):
        make_problem(X, [0, 1, 0, 1])


# ---------------------------------------------------------------------- weights


def test_weights():
    assert make_problem(X4, [0, 1, 0, 1]).weight.tolist() == [1.0] * 4
    assert make_problem(X4, [0, 1, 0, 1], 2.5).weight.tolist() == [2.5] * 4
    assert make_problem(X4, [0, 1, 0, 1], pd.Series([1, 2, 3, 4])).weight.tolist() == [1.0, 2.0, 3.0, 4.0]


def test_a_class_of_weight_zero_is_kept():
    problem = make_problem(X4, [0, 1, 0, 1], [1.0, 0.0, 1.0, 0.0])
    assert problem.n_classes == 2 and len(problem.X) == 4


@looped(
    "weight, words",
    [
        ([1, -2.5, 1, 1], r"-2.5 in row 1"),
        ([1, 1, np.nan, 1], "NaN in row 2"),
        ([1, 1, 1, np.inf], "inf in row 3"),
        ([0, 0, 0, 0], "weight.*zero"),
        ([1, 1, 1], "shape"),
        ([[1, 1, 1, 1]], "1D array or scalar"),
        ([1e308, 1e308, 1e308, 1], "infinity"),
        (["a", "b", "c", "d"], "could not convert"),
    ],
)
def test_weights_that_are_refused(weight, words):
    with pytest.raises(ValueError, match=words):
        make_problem(X4, [0, 1, 0, 1], weight)


def test_labelled_rows_need_weight():
    with pytest.raises(InvalidInputError, match="all labelled rows are zero"):
        semi([0, 1, -1, -1], sample_weight=[0, 0, 1, 1])


# ---------------------------------------------------------------------- totals and groups


def test_totals_are_about_the_unlabelled_rows():
    problem = semi(["a", "b", -1, -1], totals={"a": 2})
    assert problem.totals.size.tolist() == [2]
    assert problem.totals.low.tolist() == problem.totals.high.tolist() == [[2, 0]]


def test_groups_are_those_of_all_rows():
    problem = semi([0, 1, -1, -1], totals={"s": 1, "n": 0}, groups=["x", None, "s", "n"])
    assert problem.totals.groups == ("n", "s")
    assert problem.totals.group_of.tolist() == [1, 0]
    assert problem.totals.low.tolist() == [[1, 0], [0, 1]]


@looped(
    "y, totals, classes, numbers",
    [
        (["b", "d", -1, -1], {"c": 1}, ["b", "c", "d"], [0, 2, -1, -1]),
        (["b", "d", -1, -1], {"aaaa": 1, "d": 1}, ["aaaa", "b", "d"], [1, 2, -1, -1]),
        ([1, 5, -1, -1], {3: 1}, [1, 3, 5], [0, 2, -1, -1]),
        ([1, 5, -1, -1], {np.int64(0): 1, 1: 1}, [0, 1, 5], [1, 2, -1, -1]),
        ([1.0, 5.0, np.nan, np.nan], {3: 1}, [1.0, 3.0, 5.0], [0, 2, -1, -1]),
        (np.array([True, True, None, None], dtype=object), {False: 1}, [False, True], [1, 1, -1, -1]),
        (["a", "a", -1, -1], {"b": 1}, ["a", "b"], [0, 0, -1, -1]),
    ],
)
def test_classes_that_only_totals_name(y, totals, classes, numbers):
    problem = semi(y, totals=totals, rules=NEW)
    assert problem.classes.tolist() == classes
    assert problem.y.tolist() == numbers


def test_classes_named_by_group_and_by_frames():
    by_group = {"n": {"a": 1}, "s": {"c": 1}}
    pandas = pd.DataFrame({"a": [1, 0], "c": [0, 1]}, index=["n", "s"])
    polars = pl.DataFrame({"region": ["n", "s"], "a": [1, 0], "c": [0, 1]})
    for totals in (by_group, pandas, polars):
        problem = semi(["a", "b", -1, -1], totals=totals, groups=["n", "s", "n", "s"], rules=NEW)
        assert problem.classes.tolist() == ["a", "b", "c"]
        assert problem.totals.low.tolist() == [[1, 0, 0], [0, 0, 1]]
    numbered = pl.DataFrame({"region": ["n", "s"], "0": [1, 0], "2": [0, 1]})
    problem = semi([0, 1, -1, -1], totals=numbered, groups=["n", "s", "n", "s"], rules=NEW)
    assert problem.classes.tolist() == [0, 1, 2]
    assert problem.totals.low.tolist() == [[1, 0, 0], [0, 0, 1]]


@pytest.mark.parametrize(
    "totals, words",
    [
        ({"1": 2}, "class '1' of type str, which is unlike the labels in y: 0, 1"),
        ({0.5: 1}, "class 0.5 of type float"),
        ({float("nan"): 1}, "class nan"),
        ({-1: 1}, "class -1, which marks the unlabelled rows"),
        ({0: 3}, "only 2 unlabelled rows"),
    ],
)
def test_totals_that_are_refused(totals, words):
    with pytest.raises(InfeasibleTotalsError, match=words):
        semi([0, 1, -1, -1], totals=totals)


def test_totals_and_groups_that_make_no_sense():
    with pytest.raises(InvalidInputError, match="groups are given without totals"):
        semi([0, 1, -1, -1], groups=[0, 0, 0, 0])
    with pytest.raises(InvalidInputError, match="a supervised model has none"):
        make_problem(X4, [0, 1, 0, 1], totals=1)
    with pytest.raises(InfeasibleTotalsError, match="groups has 3 entries, X has 4 rows"):
        semi([0, 1, -1, -1], groups=[0, 0, 0], totals={0: 1})
    with pytest.raises(InfeasibleTotalsError, match="no group"):
        semi([0, 1, -1, -1], groups=["a", "a", "a", None], totals={"a": 1})
    with pytest.raises(InvalidInputError, match="groups should be a 1d array"):
        semi([0, 1, -1, -1], groups=np.zeros((4, 2)), totals={0: 1})


def test_totals_without_unlabelled_rows_must_be_zero():
    assert semi([0, 1, 0, 1], totals={0: 0}).totals.size.tolist() == [0]
    with pytest.raises(InfeasibleTotalsError, match="1 row of class 0 is asked, but there are only 0"):
        semi([0, 1, 0, 1], totals={0: 1})


def test_only_numpy_like_conversion_is_asked_of_foreign_containers():
    class Column:
        def __init__(self, values):
            self.values = values

        def __array__(self, dtype=None, copy=None):
            return np.array(self.values, dtype=dtype)

        def __len__(self):
            return len(self.values)

    problem = make_problem(X4, Column([0, 1, 0, 1]), Column([1.0, 2.0, 1.0, 1.0]))
    assert problem.y.tolist() == [0, 1, 0, 1] and problem.weight.tolist() == [1.0, 2.0, 1.0, 1.0]


class _Text(str):
    """Text of a type of its own."""


@looped(
    "cells, gone",
    [
        (["a", "b", ""], []),
        (["a", None, "b"], [1]),
        ([1, True, None], [2]),
        ([None, None], [0, 1]),
        (["a", float("nan"), None, 1.5], [1, 2]),
        ([1, np.float64("nan"), np.float32("nan"), _Text("a")], [1, 2]),
    ],
)
def test_cells_that_are_missing(cells, gone):
    column = np.empty(len(cells), dtype=object)
    column[:] = cells
    assert np.flatnonzero(missing_mask(column)).tolist() == gone
    assert np.flatnonzero(missing_mask(column[:, None])[:, 0]).tolist() == gone
