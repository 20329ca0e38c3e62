"""Class totals: reading, refusing, rounding, tightening and measuring, against enumeration."""

import itertools

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from sklearn.linear_model import LogisticRegression
from tests.examples import looped

from treewright import TotalsClassifier
from treewright.data import parse_totals
from treewright.exceptions import InfeasibleTotalsError, InvalidInputError

AB, ABC = ["a", "b"], ["a", "b", "c"]


def bounds(totals):
    return totals.low.tolist(), totals.high.tolist()


# ---------------------------------------------------------------------- reading


@looped("number", [3, np.int64(3), np.array(3), np.uint8(3), 0.3, np.float64(0.3), np.float32(0.3)])
def test_a_number_alone_is_about_the_second_class(number):
    assert bounds(parse_totals(number, AB, 10)) == ([[7, 3]], [[7, 3]])


@looped(
    "asked, low, high",
    [
        ({"a": 4}, [4, 0, 0], [4, 6, 6]),
        ({"a": 4, "b": 6}, [4, 6, 0], [4, 6, 0]),
        ({"a": 4, "b": 5, "c": 1}, [4, 5, 1], [4, 5, 1]),
        ({"a": (2, 5)}, [2, 0, 0], [5, 8, 8]),
        ({"a": [2, 5], "b": np.array([3, 3])}, [2, 3, 2], [5, 3, 5]),
        ({"a": (8, 1000)}, [8, 0, 0], [10, 2, 2]),
        ({"a": (0, 2), "b": (0, 3)}, [0, 0, 5], [2, 3, 10]),
        ({"a": 0.4}, [4, 0, 0], [4, 6, 6]),
        ({"a": 0.25}, [3, 0, 0], [3, 7, 7]),
        ({"a": 0.0, "b": 1.0}, [0, 10, 0], [0, 10, 0]),
        ({"a": (0.25, 0.55)}, [3, 0, 0], [5, 7, 7]),
        ({"a": (0.3, 0.3)}, [3, 0, 0], [3, 7, 7]),
        ({"a": 0.5, "b": 2}, [5, 2, 3], [5, 2, 3]),
        ({"a": (1, 2), "b": (0.5, 0.7), "c": 2}, [1, 6, 2], [2, 7, 2]),
        ({}, [0, 0, 0], [10, 10, 10]),
        (pd.Series({"a": 4, "b": 6}), [4, 6, 0], [4, 6, 0]),
    ],
)
def test_what_users_write(asked, low, high):
    assert bounds(parse_totals(asked, ABC, 10)) == ([low], [high])


def test_asked_is_plain_and_what_was_written():
    asked = parse_totals({np.str_("a"): np.int64(2), "b": (np.float64(0.1), 0.5)}, ABC, 10).asked
    assert asked == {"a": 2, "b": (0.1, 0.5)}
    assert [type(v) for v in (*asked, asked["a"])] == [str, str, int]
    assert parse_totals(3, AB, 10).asked == {"b": 3}
    assert parse_totals({"n": 1, "s": {"a": 0.5}}, AB, 3, ["n", "s", "s"]).asked == {
        "n": {"b": 1},
        "s": {"a": 0.5},
    }


def test_labels_match_by_value_not_by_type():
    for asked in ({1: 2}, {np.int8(1): 2}, {1.0: 2}):
        assert bounds(parse_totals(asked, np.array([0, 1]), 5)) == ([[3, 2]], [[3, 2]])


GROUPS = ["s", "n", "s", "s", "n"]


@looped(
    "asked",
    [
        {"n": {"a": 1, "b": 1}, "s": {"a": 3, "b": 0}},
        {"n": 1, "s": 0},
        {"n": 0.5, "s": {"b": 0.0}},
        {"n": {"a": 1}, "s": {"a": (3, 3)}},
        {"n": 1, "s": 0, "west": 0},
        {"n": 1, "s": 0, "west": {"a": 0, "b": 0}},
        {"n": pd.Series({"a": 1}), "s": 0},
        pd.Series({"n": 1, "s": 0}),
        pd.DataFrame({"a": [3, 1], "b": [0, 1]}, index=["s", "n"]),
        pd.DataFrame({"b": [0, 1]}, index=["s", "n"]),
        pd.DataFrame({"a": [1.0, 0.5], "b": [0, 1]}, index=["s", "n"]),
        pd.DataFrame({"a": pd.array([3, 1], dtype="Int64")}, index=["s", "n"]),
        pl.DataFrame({"region": ["s", "n"], "a": [3, 1]}),
        pl.DataFrame({"region": ["s", "n"], "a": [[3, 3], [1, 1]]}),
    ],
)
@looped("column", [list, np.array, pd.Series, pl.Series, lambda g: pd.Series(g, dtype="category")])
def test_totals_by_group(asked, column):
    totals = parse_totals(asked, AB, 5, column(GROUPS))
    assert totals.groups == ("n", "s")
    assert totals.group_of.tolist() == [1, 0, 1, 1, 0]
    assert totals.size.tolist() == [2, 3]
    assert bounds(totals) == ([[1, 1], [3, 0]], [[1, 1], [3, 0]])
    assert totals.is_exact and (totals.n_groups, totals.n_classes) == (2, 2)


def test_groups_that_are_numbers():
    totals = parse_totals({1: 1, 2: 0}, AB, 3, np.array([2, 1, 1]))
    assert totals.groups == (1, 2) and bounds(totals) == ([[1, 1], [1, 0]], [[1, 1], [1, 0]])


def test_no_unlabelled_rows():
    assert bounds(parse_totals(0, AB, 0)) == ([[0, 0]], [[0, 0]])
    assert bounds(parse_totals({"a": 0.3}, AB, 0)) == ([[0, 0]], [[0, 0]])
    totals = parse_totals({"n": 0}, AB, 0, [])
    assert totals.low.shape == (0, 2) and totals.total_deviation(totals.count([])) == 0


def test_arrays_are_frozen():
    totals = parse_totals(1, AB, 3)
    for array in (totals.low, totals.high, totals.size, totals.group_of):
        with pytest.raises(ValueError, match="read-only"):
            array[...] = 0


# ---------------------------------------------------------------------- refusing


@looped(
    "asked, words",
    [
        ({"z": 1}, "class 'z', which is not among the classes; there are 'a', 'b', 'c'"),
        ({"a": 11}, "11 rows of class 'a' are asked, but there are only 10 unlabelled rows"),
        ({"a": 10**30}, "only 10 unlabelled rows"),
        ({"a": (11, 12)}, "at least 11 rows of class 'a'"),
        ({"a": -3}, "total -3 of class 'a' is negative"),
        ({"a": -0.5}, "share -0.5 of class 'a' is negative"),
        ({"a": (-1, 3)}, "total -1 of class 'a' is negative"),
        ({"a": (5, 2)}, "low 5 is above high 2"),
        ({"a": (0.5, 0.2)}, "low 0.5 is above high 0.2"),
        ({"a": 1.2}, "share 1.2 of class 'a' is above 1; write an int for a count"),
        ({"a": 4.0}, "share 4.0 of class 'a' is above 1"),
        ({"a": float("inf")}, "above 1"),
        ({"a": float("nan")}, "class 'a' is NaN"),
        ({"a": (0.1, float("nan"))}, "class 'a' is NaN"),
        ({"a": None}, "class 'a' is missing"),
        ({"a": pd.NA}, "class 'a' is missing"),
        ({"a": 7, "b": 5}, r"at least 12 rows \(7 of 'a', 5 of 'b'\), but there are only 10"),
        ({"a": 4, "b": 3, "c": 2}, r"at most 9 rows \(4 of 'a', 3 of 'b', 2 of 'c'\), but there are 10"),
        ({"a": (0, 4), "b": (0, 3), "c": (0, 2)}, "at most 9 rows"),
        ({"a": 0.5, "b": 0.2, "c": 0.2}, "shares of all classes sum to 0.9, not to 1"),
        ({"a": 0.5, "b": 0.6}, "shares sum to 1.1, above 1"),
        (
            {"a": (0.11, 0.19)},
            "no whole number of the 10 unlabelled rows lies between the shares 0.11 and 0.19",
        ),
        ({"n": {"a": 1}}, "by group, but there are no groups"),
        (pd.DataFrame({"a": [1]}, index=["n"]), "by group, but there are no groups"),
        (3, "single number 3, which is about the second of two classes, but there are 3 classes"),
        (pd.Series([1, 2], index=["a", "a"]), "more than one row for 'a'"),
    ],
)
def test_impossible_totals(asked, words):
    with pytest.raises(InfeasibleTotalsError, match=words) as caught:
        parse_totals(asked, ABC, 10)
    assert isinstance(caught.value, ValueError)


@looped(
    "asked, words",
    [
        ({"a": 1, "b": 1}, "group 'a', which no row has.*'n', 's'.*these are classes: leave groups out"),
        ({"n": 1, "s": 0, "west": 2}, "group 'west', which no row has; there are 'n', 's'"),
        ({"n": 1, "s": 0, "west": {"a": 0.4}}, "group 'west', which no row has"),
        ({"N": 1, "s": 0}, "group 'N', which no row has; did you mean 'n'"),
        ({"n": 1, "s": 0, "west": {"z": 0}}, "of group 'west' name class 'z'"),
        ({"n": {"a": 3}, "s": 0}, "3 rows of class 'a' of group 'n' .* only 2 unlabelled rows of group 'n'"),
        ({"n": {"a": 1.5}, "s": 0}, "share 1.5 of class 'a' of group 'n' is above 1"),
        (pd.DataFrame({"a": [4, np.nan]}, index=["s", "n"]), "4 rows of class 'a' of group 's' .* only 3 unlabelled"),
        (pd.DataFrame({"a": [-2, np.nan]}, index=["s", "n"]), "total -2 of class 'a' of group 's' is negative"),
        (pd.DataFrame({"a": [2, np.nan], "b": [0.5, 0.2]}, index=["s", "n"]), "share 2.0 of class 'a' of group 's'"),
        (pd.DataFrame({"a": [1.0, np.nan]}, index=["s", "n"]), "0.0 and 1.0, which may be counts or shares"),
        (pl.DataFrame({"g": ["s", "n"], "a": [4, None]}), "4 rows of class 'a' of group 's'"),
        (pl.DataFrame({"g": ["s", "n"], "a": [2.0, None], "b": [0.5, 0.2]}), "share 2.0 of class 'a' of group 's'"),
        ({"s": {"a": float("nan")}, "n": 1}, "class 'a' of group 's' is NaN"),
        (pd.DataFrame({"a": [3, 1]}, index=["s", "s"]), "more than one entry for 's'"),
        (pd.DataFrame([[3, 1]], index=["s"], columns=["a", "a"]), "more than one column for 'a'"),
    ],
)
def test_impossible_totals_by_group(asked, words):
    with pytest.raises(InfeasibleTotalsError, match=words):
        parse_totals(asked, AB, 5, GROUPS)


FREE = {
    "pandas": pd.DataFrame({"a": [3, None], "b": [None, 2]}, index=["s", "n"]),
    "pandas beside ints": pd.DataFrame({"a": [3, None], "b": [0, 2]}, index=["s", "n"]),
    "pandas ones": pd.DataFrame({"a": [None, 0], "b": [0, 2]}, index=["s", "n"], dtype=float),
    "pandas Int64": pd.DataFrame({"a": [3, None], "b": [0, 2]}, index=["s", "n"], dtype="Int64"),
    "pandas objects": pd.DataFrame({"a": [3, None], "b": [0, 2]}, index=["s", "n"], dtype=object),
    "polars": pl.DataFrame({"g": ["s", "n"], "a": [3, None], "b": [0, 2]}),
    "polars floats": pl.DataFrame({"g": ["s", "n"], "a": [3.0, None], "b": [0.0, 2.0]}),
    "polars NaN": pl.DataFrame({"g": ["s", "n"], "a": [3.0, float("nan")], "b": [0.0, 2.0]}),
    "series": {"s": pd.Series({"a": 3, "b": None}), "n": pd.Series({"a": None, "b": 2})},
}


@looped("frame", FREE.values())
def test_the_class_of_an_empty_cell_is_free(frame):
    totals = parse_totals(frame, AB, 5, GROUPS)  # two rows of n, three of s; with two classes the free one follows
    assert totals.groups == ("n", "s")
    assert totals.low.tolist() == totals.high.tolist() == [[0, 2], [3, 0]]


def test_an_empty_cell_leaves_room_among_several_classes():
    frame = pd.DataFrame({"a": [2, 1], "b": [None, 1], "c": [None, None]}, index=["s", "n"])
    totals = parse_totals(frame, ["a", "b", "c"], 5, GROUPS)
    assert totals.low.tolist() == [[1, 1, 0], [2, 0, 0]]
    assert totals.high.tolist() == [[1, 1, 0], [2, 1, 1]]
    assert totals.asked == {"s": {"a": 2}, "n": {"a": 1, "b": 1}}


def test_shares_beside_an_empty_cell_stay_shares():
    frame = pd.DataFrame({"a": [1.0, None], "b": [0.0, 0.5]}, index=["s", "n"])
    totals = parse_totals(frame, AB, 5, GROUPS)
    assert totals.low.tolist() == totals.high.tolist() == [[1, 1], [3, 0]]


def test_a_frame_with_an_empty_cell_is_fitted():
    X = np.arange(12.0)[:, None]
    y, groups = [0, *[-1] * 10, 1], list("snsnsnsnsnsn")
    frame = pd.DataFrame({0: [3, None], 1: [None, None]}, index=["s", "n"])
    model = TotalsClassifier(LogisticRegression()).fit(X, y, totals=frame, groups=groups)
    reached = {(row["group"], row["class"]): row["reached"] for row in model.totals_}
    assert (reached["s", 0], reached["s", 1]) == (3, 2)


def test_bad_groups():
    with pytest.raises(InfeasibleTotalsError, match="groups has 4 entries, there are 5 unlabelled rows"):
        parse_totals({"n": 1, "s": 0}, AB, 5, GROUPS[:4])
    with pytest.raises(InfeasibleTotalsError, match="2 of 5 unlabelled rows have no group.*number 1"):
        parse_totals({"n": 1, "s": 0}, AB, 5, ["s", None, "s", "s", np.nan])
    with pytest.raises(InvalidInputError, match="mixes strings and numbers"):
        parse_totals({"n": 1, 2: 0}, AB, 2, np.array(["n", 2], dtype=object))


@looped(
    "asked, words",
    [
        (True, "True of type bool"),
        ("7", "'7' of type str"),
        (None, "None of type NoneType"),
        ([3, 4], "of type list"),
        ({"a": True}, "class 'a' is True of type bool"),
        ({"a": np.bool_(True)}, "class 'a' is True"),
        ({"a": "3"}, "class 'a' is '3' of type str"),
        ({"a": (1, 2, 3)}, "an interval has two ends"),
        ({"a": (0, 0.5)}, r"\(0, 0.5\) of class 'a' mixes a count and a share"),
        ({"a": 1 + 2j}, "of type complex"),
    ],
)
def test_totals_that_mean_nothing(asked, words):
    with pytest.raises(InvalidInputError, match=words):
        parse_totals(asked, AB, 10)


def test_totals_by_group_must_be_a_mapping():
    with pytest.raises(InvalidInputError, match="write {group: totals}"):
        parse_totals(3, AB, 5, GROUPS)


# ---------------------------------------------------------------------- rounding


def test_shares_of_all_classes_are_rounded_together():
    third = 1 / 3
    assert bounds(parse_totals({"a": third, "b": third, "c": third}, ABC, 10)) == ([[4, 3, 3]], [[4, 3, 3]])
    for order in ({"a": 0.5, "b": 0.5}, {"b": 0.5, "a": 0.5}):  # a tie goes to the first class, however named
        assert bounds(parse_totals(order, AB, 3)) == ([[2, 1]], [[2, 1]])
    # Hamilton's method: 1.25, 1.35, 2.4 of 5 rows; the odd row goes to the largest remainder.
    assert bounds(parse_totals({"a": 0.25, "b": 0.27, "c": 0.48}, ABC, 5)) == ([[1, 1, 3]], [[1, 1, 3]])


def test_shares_that_sum_to_one_leave_nothing_to_the_others():
    assert bounds(parse_totals({"a": 0.5, "b": 0.5}, ABC, 3)) == ([[2, 1, 0]], [[2, 1, 0]])


def test_rounding_up_never_exceeds_the_rows():
    totals = parse_totals({"a": 0.3, "b": 0.3, "c": 0.3}, [*ABC, "d"], 2)  # nearest would be 1 + 1 + 1
    assert bounds(totals) == ([[1, 1, 0, 0]], [[1, 1, 0, 0]])


@st.composite
def divisions(draw, max_classes=5, max_rows=60):
    """Class numbers of some rows, at least one."""
    n_classes = draw(st.integers(2, max_classes))
    y = draw(st.lists(st.integers(0, n_classes - 1), min_size=1, max_size=max_rows))
    return n_classes, np.array(y)


@given(divisions())
def test_shares_come_back_as_their_counts(division):
    n_classes, y = division
    counts = np.bincount(y, minlength=n_classes)
    totals = parse_totals({k: float(c / len(y)) for k, c in enumerate(counts)}, np.arange(n_classes), len(y))
    assert bounds(totals) == ([counts.tolist()], [counts.tolist()])


@given(st.lists(st.integers(1, 1000), min_size=2, max_size=6), st.integers(0, 500))
def test_rounded_shares_sum_to_the_rows_and_are_near(parts, n_rows):
    shares = np.array(parts) / sum(parts)
    totals = parse_totals(dict(enumerate(shares.tolist())), np.arange(len(parts)), n_rows)
    assert totals.is_exact and totals.low.sum() == n_rows
    assert np.all(np.abs(totals.low[0] - shares * n_rows) < 1 + 1e-6)


@given(st.integers(2, 5), st.integers(1, 300), st.data())
def test_a_lone_share_becomes_the_nearest_count(n_classes, n_rows, data):
    share = data.draw(st.floats(0, 1))
    totals = parse_totals({0: share}, np.arange(n_classes), n_rows)
    assert totals.low[0, 0] == totals.high[0, 0]
    assert abs(totals.low[0, 0] - share * n_rows) <= 0.5 + 1e-8


# ---------------------------------------------------------------------- properties


@given(divisions(), st.data())
def test_totals_that_are_the_counts_are_reached(division, data):
    n_classes, y = division
    n_groups = data.draw(st.integers(1, 3))
    group = np.array(data.draw(st.lists(st.integers(0, n_groups - 1), min_size=len(y), max_size=len(y))))
    asked = {}
    for g in np.unique(group):
        counts = np.bincount(y[group == g], minlength=n_classes)
        slack = data.draw(st.lists(st.integers(0, 2), min_size=n_classes, max_size=n_classes))
        named = data.draw(st.sets(st.integers(0, n_classes - 1)))
        asked[int(g)] = {
            k: int(counts[k]) if slack[k] == 0 else (max(0, int(counts[k]) - slack[k]), int(counts[k]) + slack[k])
            for k in named
        }
    totals = parse_totals(asked, np.arange(n_classes), len(y), group)
    counts = totals.count(y)
    assert counts.sum() == len(y)
    for i, g in enumerate(totals.groups):
        assert counts[i].tolist() == [int(np.sum((group == g) & (y == k))) for k in range(n_classes)]
    assert totals.total_deviation(counts) == 0
    assert all(row["deviation"] == 0 for row in totals.table(y, np.arange(n_classes)))


def compositions(n_rows, n_classes):
    """All ways to divide rows among classes."""
    for cut in itertools.combinations(range(n_rows + n_classes - 1), n_classes - 1):
        ends = (-1, *cut, n_rows + n_classes - 1)
        yield tuple(b - a - 1 for a, b in itertools.pairwise(ends))


@st.composite
def small_intervals(draw):
    n_classes, n_rows = draw(st.integers(2, 4)), draw(st.integers(0, 5))
    asked = {}
    for k in draw(st.sets(st.integers(0, n_classes - 1))):
        low = draw(st.integers(0, n_rows))
        asked[k] = (low, draw(st.integers(low, n_rows + 1)))
    return n_classes, n_rows, asked


def allowed_divisions(case):
    n_classes, n_rows, asked = case
    ends = [asked.get(k, (0, n_rows)) for k in range(n_classes)]
    return [
        c
        for c in compositions(n_rows, n_classes)
        if all(low <= count <= high for count, (low, high) in zip(c, ends, strict=True))
    ]


@given(small_intervals())
def test_tight_intervals_are_what_enumeration_finds(case):
    n_classes, n_rows, asked = case
    allowed = allowed_divisions(case)
    if not allowed:
        with pytest.raises(InfeasibleTotalsError):
            parse_totals(asked, np.arange(n_classes), n_rows)
        return
    totals = parse_totals(asked, np.arange(n_classes), n_rows)
    table = np.array(allowed)
    assert bounds(totals) == ([table.min(axis=0).tolist()], [table.max(axis=0).tolist()])
    within = [c for c in compositions(n_rows, n_classes) if np.all(totals.low[0] <= c) and np.all(c <= totals.high[0])]
    assert within == allowed  # nothing lost, nothing gained


@given(small_intervals(), st.data())
def test_deviation_is_the_fewest_rows_that_must_move(case, data):
    n_classes, n_rows, asked = case
    allowed = allowed_divisions(case)
    assume(allowed)
    y = np.array(data.draw(st.lists(st.integers(0, n_classes - 1), min_size=n_rows, max_size=n_rows)), dtype=int)
    totals = parse_totals(asked, np.arange(n_classes), n_rows)
    others = np.array(list(itertools.product(range(n_classes), repeat=n_rows))).reshape(n_classes**n_rows, n_rows)
    reached = np.stack([(others == k).sum(axis=1) for k in range(n_classes)], axis=1)
    good = np.array([tuple(c) in set(allowed) for c in reached.tolist()])
    fewest = int((others[good] != y).sum(axis=1).min())  # over every way to label the rows that is allowed
    counts = totals.count(y)
    assert totals.deviation(counts).tolist() == [fewest]
    assert totals.total_deviation(counts) == fewest


# ---------------------------------------------------------------------- measuring


def test_deviation_by_group_and_table():
    totals = parse_totals({"n": {"a": 1}, "s": {"a": (0, 1)}}, AB, 5, GROUPS)
    y_pred = [0, 0, 0, 0, 0]
    assert totals.count(y_pred).tolist() == [[2, 0], [3, 0]]
    assert totals.deviation(totals.count(y_pred)).tolist() == [1, 2]
    assert totals.total_deviation(totals.count(y_pred)) == 3
    table = totals.table(y_pred, np.array(AB))
    assert table == totals.reached(totals.count(y_pred), AB)
    assert table[0] == {"group": "n", "class": "a", "low": 1, "high": 1, "reached": 2, "deviation": 1}
    assert table[3] == {"group": "s", "class": "b", "low": 2, "high": 3, "reached": 0, "deviation": 2}


@pytest.mark.parametrize(
    "y_pred, words",
    [
        ([0, 1], "shape"),
        ([0, 1, 2], "from 0 to 1"),
        ([0, -1, 1], "from 0 to 1"),
        ([0.0, 1.0, 1.0], "class numbers"),
    ],
)
def test_predictions_that_are_no_class_numbers(y_pred, words):
    with pytest.raises(InvalidInputError, match=words):
        parse_totals(1, AB, 3).count(y_pred)


def test_many_groups_are_quick():
    n = 200_000
    group = np.arange(n) % 2000
    totals = parse_totals(dict.fromkeys(range(2000), 0.5), AB, n, group)
    y = (np.arange(n) // 2000) % 2
    assert totals.total_deviation(totals.count(y)) == 0
