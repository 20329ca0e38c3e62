"""Any file of totals is read and met, or refused in our words."""

import json
import warnings

import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.examples import looped

from treewright.app.totals_files import read_totals
from treewright.data import TotalsRules, make_problem
from treewright.exceptions import TreewrightError

LABELS = ["a", "b", "a", *[None] * 7]
REGIONS = ["n", "s", "e", "n", "n", "n", "s", "s", "e", "e"]
CELL = st.sampled_from(["a", "b", "n", "s", "e", "c", "class", "low", "high", "total", "area", "0", "1", "2", "3", "7"])
ODD = st.sampled_from(
    ["", " ", "0.5", "1.0", "0.333", "-1", "1e9", "nan", "NA", "A", "N", "x y", "½", "3,5", '"', "\t"]
)
TEXT = st.one_of(CELL, CELL, ODD, st.text(max_size=4))
TABLE = st.lists(st.lists(TEXT, min_size=1, max_size=4), min_size=1, max_size=5)
NUMBER = st.one_of(
    st.integers(-1, 9), st.sampled_from([0.5, 0.25, 1.0, 1.5, None, True, "3", [1, 3], [0.1, 0.9], [3], {}])
)
DOCUMENT = st.recursive(NUMBER, lambda inner: st.dictionaries(TEXT, inner, max_size=4), max_leaves=12)


def checked(path, groups, of, new):
    """The problem that a file makes, or None if it is refused."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            totals = read_totals(str(path), groups=groups, whole_labels=False, numeric_groups=False)
            rules = TotalsRules(of, new)
            column = None if groups is None else REGIONS
            y = np.array(LABELS, dtype=object)
            return make_problem(np.zeros((10, 1)), y, supervised=False, totals=totals, groups=column, rules=rules)
        except TreewrightError as error:
            assert str(error)
            return None


def check_met(problem):
    """Counts that are allowed: a division of the rows of each group has them."""
    if problem is None:
        return
    totals = problem.totals
    assert totals.size.sum() == 7
    for g in range(totals.n_groups):
        assert 0 <= totals.low[g].sum() <= totals.size[g] <= totals.high[g].sum()
        assert np.all(totals.low[g] <= totals.high[g])


KEPT = settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


@KEPT
@given(TABLE, st.sampled_from([None, "area"]), st.sampled_from(["unlabeled", "all"]), st.booleans())
def test_any_table(tmp_path, rows, groups, of, new):
    path = tmp_path / "t.csv"
    path.write_text("\n".join(",".join(row) for row in rows), encoding="utf-8", errors="replace")
    check_met(checked(path, groups, of, new))


@KEPT
@given(DOCUMENT, st.sampled_from([None, "area"]), st.sampled_from(["unlabeled", "all"]), st.booleans())
def test_any_document(tmp_path, document, groups, of, new):
    path = tmp_path / "t.json"
    path.write_text(json.dumps(document), encoding="utf-8")
    check_met(checked(path, groups, of, new))


@KEPT
@given(st.integers(0, 10**6), st.booleans(), st.sampled_from(["wide", "long", "json"]))
def test_true_totals_are_read_back(tmp_path, seed, grouped, form):
    """Totals of random classes, written in three forms, allow these classes and nothing else."""
    rng = np.random.default_rng(seed)
    truth, region = rng.choice(["a", "b"], 7), np.array(REGIONS[3:]) if grouped else np.full(7, "all")
    count = {g: {c: int(np.sum(truth[region == g] == c)) for c in "ab"} for g in np.unique(region).tolist()}
    path = tmp_path / ("t.json" if form == "json" else "t.csv")
    if form == "json":
        path.write_text(json.dumps(count if grouped else count["all"]))
    elif form == "wide":
        lines = ["area,a,b", *(f"{g},{part['a']},{part['b']}" for g, part in count.items())]
        path.write_text("\n".join(line if grouped else line.split(",", 1)[1] for line in lines) + "\n")
    else:
        lines = ["area,class,low,high", *(f"{g},{c},{m},{m}" for g, part in count.items() for c, m in part.items())]
        path.write_text("\n".join(line if grouped else line.split(",", 1)[1] for line in lines) + "\n")
    totals = checked(path, "area" if grouped else None, "unlabeled", False).totals
    for g, name in enumerate(totals.groups):
        expected = list(count[name if grouped else "all"].values())
        assert totals.low[g].tolist() == totals.high[g].tolist() == expected


@looped("text", ["a,b\n3\n", "\n\n", "a\n\n", "a,a\n1,2\n", '"a\n1', "a;b\n3;4\n", "﻿a,b\n3,4\n"])
def test_files_that_are_odd(tmp_path, text):
    path = tmp_path / "t.csv"
    path.write_text(text, encoding="utf-8")
    check_met(checked(path, None, "unlabeled", False))
