"""Totals that are hard to get wrong: names, rows that are counted, intervals in frames, free groups, margins."""

import warnings
from collections import Counter

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.examples import looped

from treewright.data import LabelledRows, TotalsRules, make_problem, parse_totals
from treewright.exceptions import InfeasibleTotalsError, InvalidInputError, TreewrightError

ALL, NEW = TotalsRules("all"), TotalsRules(allow_new_classes=True)


def problem(y, **more):
    return make_problem(np.zeros((len(y), 1)), np.array(y, dtype=object), supervised=False, **more)


def counts(totals):
    return {
        (g, k): (int(totals.low[i, k]), int(totals.high[i, k]))
        for i, g in enumerate(totals.groups)
        for k in range(totals.n_classes)
    }


# ---------------------------------------------------------------------- names


@pytest.mark.parametrize(
    ("named", "words"),
    [
        ("High", "class 'High', which no label is; did you mean 'high'"),
        ("high ", "did you mean 'high'"),
        ("lwo", "did you mean 'low'"),
        ("other", "; there are 'high', 'low'.*allow_new_classes=True"),
    ],
)
def test_a_class_that_no_label_is(named, words):
    y = ["high", "low", None, None]
    with pytest.raises(InfeasibleTotalsError, match=words):
        problem(y, totals={named: 1})
    with pytest.raises(InfeasibleTotalsError, match=words):
        problem(y, totals={"a": {named: 1}}, groups=["a"] * 4)
    assert named in problem(y, totals={named: 1}, rules=NEW).classes


def test_a_group_that_no_row_has():
    y, groups = ["a", "b", None, None], ["east", "north", "south", "south"]
    with pytest.raises(InfeasibleTotalsError, match="group 'South', which no row has; did you mean 'south'"):
        problem(y, totals={"South": {"a": 1}}, groups=groups)
    with pytest.raises(InfeasibleTotalsError, match="group '7', which no row has; did you mean 7"):
        problem(y, totals={"7": {"a": 1}}, groups=[7, 7, 7, 7])
    for typed in ("Sued", "Sud", "süd "):
        with pytest.raises(
            InfeasibleTotalsError, match=f"'{typed}', which no row has; did you mean 'Süd'\\? There are"
        ):
            problem(y, totals={typed: {"a": 1}}, groups=["Nord", "Nord", "Süd", "Süd"])
    # labelled rows have these groups, of which no unlabelled row can be asked
    assert problem(y, totals={"south": 1, "east": {"a": 0.5}}, groups=groups).totals.groups == ("south",)
    with pytest.raises(InfeasibleTotalsError, match="1 row of class 'a' in group 'east', which no unlabelled row has"):
        problem(y, totals={"south": 1, "east": {"a": 1}}, groups=groups)


def test_a_group_without_totals_is_free_with_a_warning():
    y, groups = ["a", "b", *[None] * 5], ["n", "n", "n", "s", "s", "w", "w"]
    with pytest.warns(UserWarning, match="groups 's', 'w' with 4 unlabelled rows have no totals and are free"):
        totals = problem(y, totals={"n": {"a": 1}}, groups=groups).totals
    assert counts(totals)["s", 0] == (0, 2) and totals.free.tolist() == [False, True, True]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        problem(y, totals={"n": {"a": 1}, "s": {}, "w": {}}, groups=groups)  # said to be free


# ---------------------------------------------------------------------- rows that are counted


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10**6), st.booleans(), st.sampled_from(["count", "share", "interval"]))
def test_totals_of_all_rows_are_those_of_the_unlabelled_and_the_labelled(seed, grouped, kind):
    rng = np.random.default_rng(seed)
    n, k = int(rng.integers(3, 40)), int(rng.integers(2, 4))
    truth = np.append(np.arange(k), rng.integers(0, k, n))
    groups = rng.choice(["n", "s"], len(truth)) if grouped else np.full(len(truth), "all")
    y = [int(c) if i < k or rng.random() < 0.3 else None for i, c in enumerate(truth)]
    hidden = np.array([label is None for label in y])
    asked = {}
    for g in np.unique(groups).tolist():
        inside = groups == g
        m = np.array([np.sum(truth[inside] == c) for c in range(k)])
        if kind == "share":
            asked[g] = {c: float(m[c] / m.sum()) for c in range(k)}
        elif kind == "interval":
            asked[g] = {c: (int(m[c]) - int(m[c] > 0), int(m[c]) + 1) for c in range(k)}
        else:
            asked[g] = {c: int(m[c]) for c in range(k)}
    given_ = {"totals": asked, "groups": groups} if grouped else {"totals": asked["all"]}
    totals = problem(y, rules=ALL, sample_weight=np.where(hidden, 1.0, 7.0), **given_).totals
    found = counts(totals)
    for (g, c), (low, high) in found.items():
        inside = hidden & ((groups == g) | (not grouped))
        true = int(np.sum(truth[inside] == c))
        assert low <= true <= high
        if kind != "interval":
            assert low == high == true


def test_contradictions_have_both_numbers():
    y = ["a", "a", "a", "b", None, None]
    with pytest.raises(InfeasibleTotalsError, match="have 2 rows of class 'a', but 3 rows are labelled so"):
        problem(y, totals={"a": 2}, rules=ALL)
    with pytest.raises(InfeasibleTotalsError, match="at most 2 rows of class 'a' of group|have at most 2 .* but 3"):
        problem(y, totals={"a": (0, 2)}, rules=ALL)
    with pytest.raises(InfeasibleTotalsError, match="7 rows of class 'a' are asked, but .* only 6 rows, labelled ones"):
        problem(y, totals={"a": 7}, rules=ALL)
    with pytest.raises(InfeasibleTotalsError, match="of group 'n' have 1 row of class 'b', but 2 rows of group 'n'"):
        problem(["a", "b", "b", None], totals={"n": {"b": 1}}, groups=list("nnnn"), rules=ALL)
    three = ["b", "b", "c", "c", "a", None, None]
    with pytest.raises(InfeasibleTotalsError, match=r"less the labelled ones ask for at least 3 rows \(3 of 'a'\).*2"):
        problem(three, totals={"a": (4, 7)}, rules=ALL)
    # a group of labelled rows alone is part of all rows
    with pytest.raises(InfeasibleTotalsError, match="2 rows of class 'a' of group 'e' are asked.*only 1 rows"):
        problem(["a", "b", None], totals={"e": {"a": 2}, "n": {}}, groups=["e", "n", "n"], rules=ALL)
    with pytest.raises(InfeasibleTotalsError, match="1 of 2 labelled rows have no group"):
        problem(["a", "b", None], totals={"n": {"a": 1}}, groups=["n", None, "n"], rules=ALL)


def test_totals_that_fit_the_other_rows_say_so():
    y = ["a", "b", "b", None, None]
    with pytest.raises(InfeasibleTotalsError, match="only 2 .*They fit all 5 rows, the 3 labelled.*totals_of='all'"):
        problem(y, totals={"a": 2, "b": 3})
    with pytest.raises(InfeasibleTotalsError, match="They fit the 2 unlabelled rows alone: .*leave totals_of out"):
        problem(y, totals={"a": 1, "b": 1}, rules=ALL)
    with pytest.raises(InfeasibleTotalsError) as caught:
        problem(y, totals={"a": 9, "b": 3})
    assert "They fit" not in str(caught.value)


def test_weights_of_unlabelled_rows_may_be_empty():
    weight = [1.0, 2.0, np.nan, np.nan]
    found = problem(["a", "b", None, None], sample_weight=weight, empty_weights=True)
    assert found.weight.tolist() == [1.0, 2.0, 1.0, 1.0]
    boxed = pd.array([1.0, 2.0, None, None], dtype=object)
    assert problem(["a", "b", None, None], sample_weight=boxed, empty_weights=True).weight.tolist() == [1, 2, 1, 1]
    with pytest.raises(InvalidInputError, match="sample_weight contains NaN in row 1"):
        problem(["a", "b", None, None], sample_weight=[1.0, np.nan, 1.0, np.nan], empty_weights=True)


# ---------------------------------------------------------------------- intervals and shares

INTERVALS = {
    "pandas": pd.DataFrame({"class": ["a", "b"], "low": [1, 0], "high": [3, 2]}),
    "polars": pl.DataFrame({"class": ["a", "b"], "low": [1, 0], "high": [3, 2]}),
    "open ends": pd.DataFrame({"class": ["a", "b"], "low": [1, None], "high": [3, 2]}),
    "shares": pl.DataFrame({"class": ["a", "b"], "low": [0.2, None], "high": [0.6, 0.4]}),
    "total": pd.DataFrame({"class": ["a", "b"], "low": [1, None], "high": [3, 2], "total": [None, None]}),
}


@pytest.mark.parametrize("frame", INTERVALS.values(), ids=INTERVALS.keys())
def test_intervals_of_frames(frame):
    totals = parse_totals(frame, ["a", "b", "c"], 5)
    assert (totals.low.tolist(), totals.high.tolist()) == ([[1, 0, 0]], [[3, 2, 4]])


@pytest.mark.parametrize(
    "frame",
    [
        pd.DataFrame({"class": [0, 1, 1], "low": [1, 0, 2], "high": [2, 1, 2], "area": ["n", "n", "s"]}),
        pd.DataFrame({"class": [0, 1, 1], "low": [1, 0, 2], "high": [2, 1, 2]}, index=["n", "n", "s"]),
        pl.DataFrame({"area": ["n", "n", "s"], "class": ["0", "1", "1"], "low": [1, 0, 2], "high": [2, 1, 2]}),
        pl.DataFrame(
            {
                "area": ["n", "n", "s"],
                "class": [0, 1, 1],
                "low": [1, 0, None],
                "high": [2, 1, None],
                "total": [None, None, 2],
            }
        ),
    ],
)
def test_intervals_of_frames_by_group(frame):
    totals = parse_totals(frame, np.array([0, 1]), 4, ["n", "n", "s", "s"])
    assert counts(totals) == {("n", 0): (1, 2), ("n", 1): (0, 1), ("s", 0): (0, 0), ("s", 1): (2, 2)}


def test_frames_of_intervals_that_are_refused():
    twice = pd.DataFrame({"class": ["a", "a"], "low": [1, 0], "high": [3, 2]})
    with pytest.raises(InfeasibleTotalsError, match="more than one entry for 'a'"):
        parse_totals(twice, ["a", "b"], 5)
    with pytest.raises(InfeasibleTotalsError, match="besides 'u', 'v'; one of them may name groups"):
        parse_totals(twice.assign(u=1, v=2), ["a", "b"], 5)
    with pytest.raises(InfeasibleTotalsError, match="by group, but there are no groups"):
        parse_totals(twice[:1].assign(area="n"), ["a", "b"], 5)
    both = pd.DataFrame({"class": ["a"], "low": [1], "high": [3], "total": [2]})
    with pytest.raises(InfeasibleTotalsError, match="the total 2 and an end of an interval as well"):
        parse_totals(both, ["a", "b"], 5)


def test_shares_as_they_are_printed():
    third = {c: 0.333 for c in "abc"}
    assert parse_totals(third, list("abc"), 300).low.tolist() == [[100, 100, 100]]
    assert parse_totals({"a": 0.34, "b": 0.33, "c": 0.34}, list("abc"), 101).low.sum() == 101
    with pytest.raises(InfeasibleTotalsError, match=r"sum to 0\.98, not to 1"):
        parse_totals({"a": 0.49, "b": 0.49}, list("ab"), 100)
    with pytest.raises(InfeasibleTotalsError, match=r"sum to 1\.002, above 1"):
        parse_totals({"a": 0.501, "b": 0.501}, list("ab"), 100)


@given(st.lists(st.floats(0.01, 1), min_size=2, max_size=4), st.integers(1, 200), st.floats(0, 0.2))
def test_shares_with_a_tolerance(parts, n_rows, tolerance):
    shares = dict(enumerate((np.array(parts) / sum(parts)).tolist()))
    rules = TotalsRules(tolerance=tolerance)
    exact = parse_totals(shares, np.arange(len(parts)), n_rows)
    wide = parse_totals(shares, np.arange(len(parts)), n_rows, rules=rules)
    assert np.all(wide.low <= exact.low) and np.all(exact.high <= wide.high)
    for k, share in shares.items():
        for count in (wide.low[0, k], wide.high[0, k]):
            assert count == exact.low[0, k] or abs(count / n_rows - share) <= tolerance + 1e-8
        within = [c for c in range(n_rows + 1) if abs(c / n_rows - share) <= tolerance - 1e-8]
        others = [c for c in within if not wide.low[0, k] <= c <= wide.high[0, k]]
        # what is left out, the other classes do not allow
        for c in others:
            rest = [(int(wide.low[0, j]), int(wide.high[0, j])) for j in shares if j != k]
            assert not sum(low for low, _ in rest) <= n_rows - c <= sum(high for _, high in rest)


# ---------------------------------------------------------------------- fuzz

NUMBERS = st.one_of(st.integers(-2, 12), st.floats(-0.5, 1.5, width=16), st.sampled_from([None, True, "3", 0.5, 1.0]))
TOTAL = st.one_of(NUMBERS, st.tuples(NUMBERS, NUMBERS), st.lists(NUMBERS, max_size=3))
CLASS = st.sampled_from(["a", "b", "c", "A", "z", "", 1, None, -1, float("nan")])
ONE = st.one_of(NUMBERS, st.dictionaries(CLASS, TOTAL, max_size=4), st.text(max_size=3))
GROUP = st.sampled_from(["n", "s", "S", "", 3, None])
ANY = st.one_of(ONE, st.dictionaries(GROUP, ONE, max_size=4), st.lists(ONE, max_size=3))


@settings(max_examples=60, deadline=None)
@given(
    ANY,
    st.lists(st.sampled_from(["a", "b", None]), min_size=1, max_size=9),
    st.one_of(st.none(), st.lists(st.sampled_from(["n", "s", "e"]), min_size=9, max_size=9)),
    st.sampled_from(["unlabeled", "all"]),
    st.booleans(),
    st.sampled_from([0.0, 0.1]),
)
def test_any_totals_are_met_or_refused_in_our_words(asked, y, groups, of, new, tolerance):
    groups = None if groups is None else groups[: len(y)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            found = problem(y, totals=asked, groups=groups, rules=TotalsRules(of, new, tolerance))
        except TreewrightError:
            return
    for totals in filter(None, [found.totals, *found.margins]):
        hidden = [i for i, label in enumerate(y) if label is None]
        size = Counter(totals.group_of.tolist())
        assert len(hidden) == sum(size.values()) == totals.size.sum()
        assert np.all((totals.low >= 0) & (totals.low <= totals.high))
        for g in range(totals.n_groups):
            assert totals.low[g].sum() <= size[g] <= totals.high[g].sum()


@pytest.mark.parametrize("of", ["Labelled", None, True])
def test_rules_that_mean_nothing(of):
    with pytest.raises(InvalidInputError, match="expected 'unlabeled' or 'all'"):
        TotalsRules(of)
    with pytest.raises(InvalidInputError, match="totals_tolerance"):
        TotalsRules(tolerance=of)


def test_labelled_rows_count_by_class():
    assert LabelledRows(np.array([2, 0, 2])).by_class(4).tolist() == [1, 0, 2, 0]


# ---------------------------------------------------------------------- margins


def test_margins_are_lists_of_totals_with_columns_of_groups():
    y, region, sex = ["a", "b", None, None, None], list("nsnns"), list("mmfmf")
    totals = [{"n": {"a": 1}, "s": {"a": 1}}, {"f": {"a": 2}, "m": {"a": 0}}]
    columns = {"region": region, "sex": sex}
    frame = pd.DataFrame(columns)
    for groups in ([region, sex], (pd.Series(region), np.array(sex)), frame, pl.DataFrame(columns), frame.to_numpy()):
        found = problem(y, totals=totals, groups=groups)
        assert found.totals is None and [m.groups for m in found.margins] == [("n", "s"), ("f", "m")]
        assert [m.low[:, 0].tolist() for m in found.margins] == [[1, 1], [2, 0]]
    found = problem(y, totals=[{"a": 2}, totals[1]], groups=[None, sex])
    assert found.margins[0].groups == (None,)
    assert problem(y, totals=totals[:1], groups=[region]).totals.groups == ("n", "s")
    assert problem(y, totals=totals[:1], groups=region).totals.groups == ("n", "s")


@looped(
    "groups, words",
    [
        (None, "needs as many columns of groups"),
        ([list("nsnns")], "totals are of 2 margins, groups have 1 columns"),
        (list("nsnns"), "totals are of 2 margins, groups have 5 columns"),
        (["n", "s"], "groups must be a list of columns; one is 'n'"),
        (pd.Series(list("nsnns")), "pass a list of columns, or a frame"),
        ([list("nsnns"), list("mf")], "groups has 2 entries, X has 5 rows"),
    ],
)
def test_groups_that_do_not_belong_to_margins(groups, words):
    with pytest.raises((InfeasibleTotalsError, InvalidInputError), match=words):
        problem(["a", "b", None, None, None], totals=[{"n": 1, "s": 0}, {"f": 1, "m": 0}], groups=groups)
