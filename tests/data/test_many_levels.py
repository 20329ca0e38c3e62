"""Text columns of many levels: those in ten rows or more are features, the others are one level, and forgotten."""

import json
import warnings

import numpy as np
import pytest

from treewright.app.level_groups import LevelGroups
from treewright.data.tables.codes import LEAST_ROWS, MAX_LEVELS, MOST_LEVELS
from treewright.data.tables.encoder import Surprises, TableEncoder
from treewright.data.tables.files import Table
from treewright.exceptions import ModelFileError
from treewright.report import table_making
from treewright.report.new_rows import surprise_notes
from treewright.tree import Tree, route


def column(sizes, gaps=0, seed=0):
    """Levels in so many rows each, in random order."""
    cells = [f"{'many' if n >= LEAST_ROWS else 'rare'}{i:04}" for i, n in enumerate(sizes) for _ in range(n)]
    cells += [None] * gaps
    return np.random.default_rng(seed).permutation(np.array(cells, dtype=object))


def fitted(cells, **how):
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        encoder = TableEncoder.fit(Table({"job": cells}), ["job"], fill_gaps=True, **how)
    return encoder, " ".join(str(one.message) for one in told)


@pytest.mark.parametrize("gaps", [0, 5])
def test_levels_in_ten_rows_have_a_feature_and_the_others_are_none(gaps):
    sizes = [*range(1, 41), *([10] * 20), 9]
    cells = column(sizes, gaps)
    encoder, said = fitted(cells)
    kept = sorted({level for level in cells if level is not None and level.startswith("many")})
    assert len(kept) == 51 and encoder.codes["job"].levels == tuple(kept)
    rare = sum(n for n in sizes if n < 10)
    assert "'job' has 61 different values: 51 of them, in 10 rows or more, become features of their own" in said
    assert f"and 10 others are one level ({rare} rows)" in said
    matrix, names = encoder.transform(Table({"job": cells}), Surprises())
    assert names == [f"job={level}" for level in kept] + ["job is missing"] * (gaps > 0)
    expected = np.column_stack([cells == level for level in kept]).astype(float)
    assert np.array_equal(matrix[:, :51], expected) and matrix.shape[1] == 51 + (gaps > 0)
    again = TableEncoder.from_dict(json.loads(json.dumps(encoder.to_dict())))
    assert again == encoder and "rare" not in json.dumps(encoder.to_dict())  # who is the only one of a job is not told
    made = dict(table_making(Table({"job": cells}), encoder))
    assert made["features"] == "job (text of many levels: a 0/1 feature for each in 10 rows or more, 200 at most)"


def test_levels_that_the_fit_had_seldom_or_not_at_all_are_one():
    encoder, _ = fitted(column([20] * 60 + [3] * 4))
    new = Table({"job": ["many0003", "rare0060", "rare0061", "unheard", "many0000", "unheard"]})
    surprises = Surprises()
    matrix = encoder.transform(new, surprises)[0]
    assert matrix.sum(axis=1).tolist() == [1, 0, 0, 0, 1, 0]
    said = "4 rows have one of 3 levels that fewer than 10 rows of the fit had, or none; they count as one level"
    with pytest.warns(UserWarning, match=f"column 'job': {said}"):
        surprises.warn(encoder)
    assert surprise_notes(surprises, encoder, 6) == [f'"job": {said}.']


def test_the_most_frequent_of_very_many_and_all_of_fifty():
    sizes = [10 + i % 7 for i in range(MOST_LEVELS + 60)]
    encoder, _ = fitted(column(sizes))
    shown = encoder.codes["job"].levels
    assert len(shown) == MOST_LEVELS
    assert min(sizes[int(level[4:])] for level in shown) >= 11  # those in ten rows only are left out
    cells = column(sizes, seed=1)
    assert np.array_equal(encoder.transform(Table({"job": cells}), Surprises())[0][:, 150], cells == shown[150])
    few, said = fitted(column([1] * MAX_LEVELS))
    assert len(few.feature_names) == MAX_LEVELS - 1 and said == ""


@pytest.mark.parametrize(("others", "kept"), [([], 60), ([3], 59), ([3, 4], 59), ([5, 5], 60)])
def test_the_others_together_are_ten_rows_too(others, kept):
    """One row alone without any of the features would be told by that."""
    encoder, _ = fitted(column([*range(12, 72), *others]))
    assert len(encoder.codes["job"].levels) == kept
    assert kept == 60 or "many0000" not in encoder.codes["job"].levels


def test_a_column_without_frequent_levels_is_left_out():
    table = Table({"name": [f"p{i}" for i in range(80)], "age": np.arange(80.0)})
    said = "'name' has 80 different values, none of them in 10 rows or more, and is left out"
    with pytest.warns(UserWarning, match=said):
        encoder = TableEncoder.fit(table, ["name", "age"])
    assert encoder.columns == ["age"]


TEXT = {"name": "a", "kind": "text", "gaps": False, "levels": ["x", "y"], "base": None, "pooled": True}


@pytest.mark.parametrize(
    "change",
    [
        {"pooled": 1},
        {"base": "x"},
        {"levels": []},
        {"levels": [f"{i:04}" for i in range(MOST_LEVELS + 1)]},
        {"kind": "number", "fill": 1.0},
    ],
)
def test_bad_files_are_refused(change):
    assert TableEncoder.from_dict({"columns": [TEXT], "fills": False}).feature_names == ["a=x", "a=y"]
    with pytest.raises(ModelFileError):
        TableEncoder.from_dict({"columns": [TEXT | change], "fills": False})


def test_a_tree_of_groups_is_one_of_levels():
    rng = np.random.default_rng(0)
    cells = np.array([f"t{i:02}" for i in range(70)], dtype=object)[rng.integers(0, 70, 3000)]
    table = Table({"age": rng.normal(size=3000), "town": cells, "sex": rng.choice(["f", "m"], 3000)})
    with pytest.warns(UserWarning, match="'town' has 70"):
        encoder = TableEncoder.fit(table, table.columns)
    X = encoder.transform(table, Surprises())[0]
    kind = np.array([int(level[1:]) % 3 for level in cells])  # levels are of three kinds, which groups must not mix
    y = np.where(rng.random(3000) < 0.8, kind, rng.integers(0, 3, 3000))
    groups = LevelGroups.of(encoder.codes, X, y, 3)
    grouped = groups.grouped(X)
    assert np.array_equal(grouped[:, [0, -1]], X[:, [0, -1]]) and set(grouped[:, 1:-1].ravel()) <= {0.0, 1.0}
    assert np.all(grouped[:, 1:-1].sum(axis=1) == 1)
    for k in range(1, grouped.shape[1] - 1):
        assert len(set(kind[grouped[:, k] == 1])) == 1
    tree = Tree.stump(rng.normal(size=grouped.shape[1]), 0.3, np.eye(2))
    assert np.array_equal(route(groups.levels(tree), X), route(tree, grouped))
