"""Mixed tables: categories and gaps as a matrix, whatever they come in."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.preprocessing import OrdinalEncoder
from tests.examples import looped

from treewright.data import Merge, Sample, Scale, reduced_sample, s2oct_scaling, unit_scaling
from treewright.data.columns_checked import refuse_dates
from treewright.data.mixed import Features, check_finite
from treewright.data.problem import make_problem
from treewright.data.reduction import distinct_rows, labelled_sample, sorted_distinct_rows
from treewright.exceptions import InvalidInputError, ModelFileError
from treewright.tree import Tree, route

COLOURS = ["red", "blue", None, "red", "green"]
AGES = [31.0, np.nan, 28.0, 45.0, 31.0]
CODES = [[2.0, 31.0], [0.0, np.nan], [np.nan, 28.0], [2.0, 45.0], [1.0, 31.0]]


def as_objects():
    return np.array([[c, a] for c, a in zip(COLOURS, AGES, strict=True)], dtype=object)


TABLES = {
    "objects": as_objects(),
    "lists": as_objects().tolist(),
    "pandas objects": pd.DataFrame({"colour": pd.Series(COLOURS, dtype=object), "age": AGES}),
    "pandas strings": pd.DataFrame({"colour": pd.Series(COLOURS, dtype="string"), "age": AGES}),
    "pandas categories": pd.DataFrame(
        {"colour": pd.Categorical(COLOURS, categories=["red", "pink", "green", "blue"]), "age": AGES}
    ),
    "pandas nullable": pd.DataFrame(
        {"colour": pd.Categorical(COLOURS), "age": pd.array([31, pd.NA, 28, 45, 31], dtype="Int64")}
    ),
    "polars strings": pl.DataFrame({"colour": COLOURS, "age": AGES}),
    "polars categories": pl.DataFrame({"colour": COLOURS, "age": AGES}, schema_overrides={"colour": pl.Categorical}),
    "polars enum": pl.DataFrame(
        {"colour": COLOURS, "age": [31, None, 28, 45, 31]},
        schema_overrides={"colour": pl.Enum(["red", "pink", "green", "blue"])},
    ),
}


@looped("name", TABLES)
def test_every_kind_of_table_gives_the_same_codes(name):
    features, matrix = Features.learn(TABLES[name], [0])
    np.testing.assert_array_equal(matrix, CODES)
    assert features.levels == (("blue", "green", "red"), None)
    assert features.n_levels.tolist() == [3, 0]
    for other in TABLES.values():
        np.testing.assert_array_equal(features.encode(other), CODES)


@looped("name", [n for n in TABLES if n.startswith(("pandas", "polars"))])
@looped("chosen", ["from_dtype", ["colour"], [True, False], np.array([0])])
def test_every_way_to_name_the_categorical_features(name, chosen):
    features, matrix = Features.learn(TABLES[name], chosen)
    np.testing.assert_array_equal(matrix, CODES)
    assert features.labels == ("colour", "age")


def test_codes_are_those_of_scikit_learn():
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.choice([f"level {k}" for k in range(200)], 3000), rng.choice(["x", "y"], 3000)])
    _, matrix = Features.learn(X, [0, 1])
    np.testing.assert_array_equal(matrix, OrdinalEncoder().fit_transform(X))


@looped(
    "values, levels",
    [
        ([True, False, None], (False, True)),
        ([3, 1, 3], (1, 3)),
        ([3.0, 1.0, np.nan], (1, 3)),
        ([2.5, 1.0, None], (1, 2.5)),
        ([True, 2, 0], (0, 1, 2)),
        (["10", "9", "9"], ("10", "9")),
        ([2**62 + 1, 2**62, None], (2**62, 2**62 + 1)),
    ],
)
def test_levels_are_plain_values_in_order(values, levels):
    features, matrix = Features.learn(np.array(values, dtype=object)[:, None], [0])
    assert features.levels == (levels,)
    assert [type(v) for v in features.levels[0]] == [type(v) for v in levels]
    again = Features.from_list(features.to_list(), None)
    np.testing.assert_array_equal(again.encode(np.array(values, dtype=object)[:, None]), matrix)


def test_whole_numbers_are_the_same_level_as_floats_and_bools():
    features, _ = Features.learn(pd.DataFrame({"a": [1, 2, 3]}), ["a"])
    np.testing.assert_array_equal(
        features.encode(pd.DataFrame({"a": [3.0, np.nan, 1.0, 2.5]})).ravel(), [2, np.nan, 0, 3]
    )
    features, _ = Features.learn(pd.DataFrame({"a": [True, False]}), ["a"])
    np.testing.assert_array_equal(features.encode(np.array([[0], [1]])).ravel(), [0, 1])


def test_a_level_that_was_not_seen_gets_the_code_after_the_last():
    features, _ = Features.learn(TABLES["polars enum"], "from_dtype")
    assert features.encode([["pink", 1.0], ["grey", 2.0]])[:, 0].tolist() == [3.0, 3.0]


def test_a_category_without_any_value_has_no_level():
    features, matrix = Features.learn(np.array([[None], [np.nan]], dtype=object), [0])
    assert features.levels == ((),)
    assert np.isnan(matrix).all()
    assert features.encode([["new"]]).tolist() == [[0.0]]


def test_one_error_names_all_columns_that_cannot_be_used():
    X = pd.DataFrame(
        {
            "colour": ["red", "blue"],
            "city": pd.Categorical(["a", "b"]),
            "income": [1.0, np.inf],
            "debt": [-np.inf, np.inf],
            "age": [1, 2],
            "box": [{}, []],
        }
    )
    with pytest.raises(InvalidInputError) as error:
        Features.learn(X)
    text = str(error.value)
    assert all(name in text for name in ("'colour'", "'city'", "'income'", "'debt'", "'box'", "categorical_features"))
    assert "'age'" not in text
    with pytest.raises(InvalidInputError, match=r"column 'box' \(such as \{\}\)"):
        Features.learn(X[["age", "box"]], ["box"])


@looped(
    "X, chosen, words",
    [
        ([["a", 1], [2, 3]], [0], "mixes text and numbers in the categorical features 0"),
        ([[1.0, 1.0]], [2], "has 2; X has the features 0 to 1"),
        ([[1.0, 1.0]], [-1], "has -1; X has the features 0 to 1"),
        ([[1.0, 1.0]], [True], "mask of 1 features, X has 2"),
        ([[1.0, 1.0]], ["a"], "has names, but X has none"),
        ([[1.0, 1.0]], [0.5], "expected bools, column numbers or names"),
        ([[1.0, 1.0]], "auto", "'auto'"),
        ([[1.0, 1.0]], [[0]], "one dimension"),
        ([1.0, 1.0], [0], "Expected 2D array"),
        (pd.DataFrame({"b": [1]}), ["a"], "names 'a'; X has the columns 'b'"),
        ([[np.inf]], [0], "infinite values in column 0"),
    ],
)
def test_what_cannot_be_is_refused(X, chosen, words):
    with pytest.raises(InvalidInputError, match=words):
        Features.learn(X, chosen)


def test_other_kinds_of_levels_than_at_fit_are_refused():
    features, _ = Features.learn([["a", 1], ["b", 2]], [0, 1])
    with pytest.raises(InvalidInputError, match=r"columns 0 \(3, where levels were such as 'a'\), 1 \('x'"):
        features.encode([[3, "x"]])
    with pytest.raises(InvalidInputError, match="X has 1 features, but 2 were noted"):
        features.encode([[3]])


@looped("data", [None, [1], [["b", "a"]], [["a", 1]], [["a", "a"]], [[float("inf")]], [[None]]])
def test_damaged_levels_of_a_file_are_refused(data):
    with pytest.raises(ModelFileError):
        Features.from_list(data, None)
    with pytest.raises(ModelFileError, match="categories has 1 features, the model 2"):
        Features.from_list([None], ["a", "b"])


def test_infinite_values_are_named():
    check_finite(np.array([[np.nan, 1.0]]), ["a", "b"])
    with pytest.raises(InvalidInputError, match=r"columns 'a' \(first in row 1\), 'b' \(first in row 0\)"):
        check_finite(np.array([[np.nan, -np.inf], [np.inf, 1.0]]), ["a", "b"])


# ---------------------------------------------------------------------- scaling and merging


@pytest.mark.parametrize("make", [unit_scaling, s2oct_scaling])
def test_scalings_do_not_see_gaps(make):
    rng = np.random.default_rng(0)
    X = rng.normal(50, 200, (40, 3))
    gaps = rng.random(X.shape) < 0.3
    X[gaps] = np.nan
    scaled = make(X).apply(X)
    assert np.array_equal(np.isnan(scaled), gaps)
    for j in range(3):
        there = ~gaps[:, j]
        alone = X[there, j : j + 1]
        np.testing.assert_allclose(scaled[there, j], make(alone).apply(alone)[:, 0], rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("make", [unit_scaling, s2oct_scaling])
def test_a_constant_feature_with_gaps_can_still_be_split(make):
    X = np.array([[7.0, 1.0], [np.nan, 2.0], [7.0, 3.0]])
    scaling = make(X)
    tree = Tree.stump([1.0, 0.0], 0.5, [[2.0, 0.0], [0.0, 1.0]])
    there = scaling.apply(X)
    assert route(tree, there).tolist() == route(scaling.invert_tree(tree), X).tolist() == [1, 2, 1]


def test_a_feature_without_any_value_scales():
    X = np.array([[np.nan, 1.0], [np.nan, 2.0]])
    assert np.isnan(unit_scaling(X).apply(X)[:, 0]).all()


def test_codes_are_not_scaled():
    X = np.array([[2.0, 10.0], [0.0, 30.0], [np.nan, np.nan]])
    reduction = reduced_sample(Sample.of(X, n_levels=np.array([3, 0])), Scale(unit_scaling))
    np.testing.assert_array_equal(reduction.points.X, [[2.0, 0.0], [0.0, 1.0], [np.nan, np.nan]])
    listed = [[False, False, True], [False] * 3, [False] * 3]
    tree = Tree([1, -1, -1], [2, -1, -1], np.zeros((3, 2)), np.zeros(3), np.ones((3, 1)), None, [0, -1, -1], listed)
    assert reduction.invert_tree(tree) == tree


tables = st.lists(
    st.tuples(*[st.sampled_from([0.0, -0.0, 1.0, 2.5, np.nan, float.fromhex("0x1.8p+3")])] * 2), min_size=1, max_size=12
)


@given(tables)
def test_missing_values_are_equal_to_one_another(rows):
    X = np.array(rows)
    names = [tuple("gap" if np.isnan(v) else v + 0.0 for v in row) for row in rows]
    for dtype in (np.float64, np.float32):
        for find in (distinct_rows, sorted_distinct_rows):
            first, inverse = find(X.astype(dtype))
            assert len(first) == len(set(names))
            assert all(
                (names[i] == names[k]) == (inverse[i] == inverse[k]) for i in range(len(X)) for k in range(len(X))
            )


def test_equal_rows_with_gaps_are_one_point_in_any_order():
    X = np.array([[np.nan, 1.0], [2.0, np.nan], [np.nan, 1.0], [2.0, 1.0]])
    reduction = reduced_sample(Sample.of(X, np.array([0, 1, 0, 1]), n_levels=np.array([0, 2])), Merge())
    np.testing.assert_array_equal(reduction.points.X, [[2.0, 1.0], [2.0, np.nan], [np.nan, 1.0]])
    assert reduction.points.weight.tolist() == [1.0, 1.0, 2.0]
    assert reduction.points.n_levels.tolist() == [0, 2]
    assert reduction.place.tolist() == [2, 1, 2, 0]


def test_a_problem_keeps_levels_and_gaps():
    X = np.array([[0.0, np.nan], [1.0, 2.0], [1.0, 2.0]])
    problem = make_problem(X, ["a", "b", "b"], n_levels=np.array([2, 0]))
    sample = labelled_sample(problem, merged=True, rng=np.random.default_rng(0))
    assert sample.categorical.tolist() == [True, False]
    assert sorted(sample.weight.tolist()) == [1.0, 2.0]
    with pytest.raises(ValueError, match="NaN"):
        make_problem(X, ["a", "b", "b"])
    with pytest.raises(ValueError, match="infinity"):
        make_problem(np.array([[0.0, np.inf], [1.0, 2.0]]), ["a", "b"], n_levels=np.array([2, 0]))


def test_levels_that_no_row_has_are_none_and_gaps_of_a_category_stay_gaps():
    colour = pd.Categorical(["red", None, "blue", "red"], categories=["violet", "red", "blue"])
    for column in (colour, pd.Series(colour).astype(object), pl.Series(["red", None, "blue", "red"])):
        frame = pd.DataFrame({"c": column}) if not isinstance(column, pl.Series) else pl.DataFrame({"c": column})
        features, matrix = Features.learn(frame, "from_dtype")
        assert features.levels == (("blue", "red"),)
        assert matrix[[0, 2, 3], 0].tolist() == [1.0, 0.0, 1.0] and np.isnan(matrix[1, 0])
    nothing = pd.DataFrame({"c": pd.Categorical([None, None], categories=["red"])})
    assert np.isnan(features.encode(nothing)).all()


def test_dates_among_the_levels_of_a_category_are_refused():
    frame = pd.DataFrame({"when": pd.Categorical(pd.to_datetime(["2024-05-01", "2024-05-02"]))})
    with pytest.raises(InvalidInputError, match="dates, times or durations in column 'when'"):
        refuse_dates(frame, "X")
