"""Tables against numbers that were worked out by hand."""

import pytest

import harness
from harness import GroupTable, PivotTable, TextTable
from harness.summary import tally


def row(data, method, accuracy=None, draw=0, **more):
    head = {"data": data, "sample": "s", "draw": draw, "method": method, "setting": ""}
    return head | {"accuracy": accuracy} | more


ROWS = [
    row("x", "A", 0.5, seconds=1.0, status="optimal", share=1.0, error=4.0),
    row("x", "A", 0.7, draw=1, seconds=2.0, status="time_limit", share=1.0, error=8.0),
    row("y", "A", 0.9, seconds=9.0, status="optimal", share=10.0, error=2.0),
    row("x", "B", 0.6, seconds=0.5, share=1.0, error=4.0, also={"B, vote": {"accuracy": 0.8, "status": None}}),
    row("y", "B", 1.0, seconds=0.7, share=10.0, error=3.0),
    row("x", "C", skipped="one class"),
    row("y", "C", failure="ValueError: no"),
]


def test_groups_have_means_medians_shares_and_counts():
    table = GroupTable(
        {"method": "way"},
        (
            harness.count("fits"),
            harness.mean("mean", "accuracy", ".3f"),
            harness.median("median", "seconds", ".1f"),
            harness.most("most", "seconds", ".1f"),
            harness.share("proven", "status", "optimal"),
            harness.median_range("range", "error"),
        ),
        lambda rows: f"{len(rows)} rows",
    )(ROWS)
    assert table == TextTable(
        "6 rows",
        ("way", "fits", "mean", "median", "most", "proven", "range"),
        (
            ("A", "3", "0.700", "2.0", "9.0", "67%", "4.0 (2-8)"),
            ("B", "2", "0.800", "0.6", "0.7", "", "3.5 (3-4)"),
            ("B, vote", "1", "0.800", "0.5", "0.5", "", "4.0 (4-4)"),
        ),
    )


def test_columns_of_some_rows_and_joined_ones():
    first = harness.mean("first", "accuracy", ".2f").of(draw=0)
    both = harness.joined("both", first, harness.each("", "{seconds:g}")).of(method="A")
    table = GroupTable({"data": "data"}, (first, both, harness.each("texts", "{method} {draw}")), order=("y", "x"))(
        ROWS
    )
    # x: draw 0 of A, B and the vote; y: A and B
    assert table.cells == (
        ("y", "0.95", "0.90 / 9", "A 0; B 0"),
        ("x", "0.63", "0.50 / 1; 2", "A 0; A 1; B 0; B, vote 0"),
    )


def test_pivots_have_a_column_a_value_and_published_lines():
    table = PivotTable(
        ("method", "method"),
        ("share", "{:g} %"),
        harness.mean("", "error"),
        (harness.most("seconds", "seconds", ".0f"),),
        order=("B", "A"),
        everywhere=("B",),
        known={"theirs": {1.0: 5.25, 3.0: 4.0}},
        rows=lambda rows: [row for row in harness.finished(rows) if row["method"] in ("A", "B")],
    )(ROWS)
    assert table.header == ("method", "1 %", "10 %", "seconds")
    assert table.cells == (("B", "3.50", "3.50", "1"), ("A", "6.00", "2.00", "9"), ("theirs", "5.25", "", ""))


def test_counts_against_a_base():
    lower, higher = harness.against("A", "method", "accuracy", ("data", "draw"))
    rows = harness.finished(ROWS)
    table = GroupTable({"method": "method"}, (lower, higher))(ROWS)
    # B: .6 > .5 on x, 1 > .9 on y; the vote: .8 > .5 on x
    assert table.cells == (("A", "", ""), ("B", "0", "2"), ("B, vote", "0", "1"))
    assert lower.title == "lower than A on" and len(rows) == 6


def test_rows_combined():
    pooled = harness.combined(("data", "method"), lambda own: {"error": sum(row["error"] for row in own)})(ROWS)
    assert {(row["data"], row["method"]): row["error"] for row in pooled} == {
        ("x", "A"): 12.0,
        ("y", "A"): 2.0,
        ("x", "B"): 4.0,
        ("x", "B, vote"): 4.0,
        ("y", "B"): 3.0,
    }


def test_markdown_text_and_the_tally():
    parts = (GroupTable({"data": "data"}, (harness.count("rows"),), "Both"), lambda rows: "", lambda rows: "A word.")
    assert harness.render(parts, ROWS) == (
        "Both\n\n| data | rows |\n|---|---|\n| x | 4 |\n| y | 2 |\n\nA word.\n\n"
        "7 rows, 1 skipped (one class), 1 failed.\ny, s 0, C: ValueError: no"
    )
    assert harness.render(parts, ROWS, "text").startswith("Both\n  data  rows\n  x        4\n  y        2\n\nA word.")
    assert harness.render(parts, []) == "A word.\n\n0 rows."
    assert tally(ROWS[:2]) == "2 rows."


def test_contradictions_are_counted_and_told():
    rows = [row("x", "A", contradictions=[]), row("y", "A", contradictions=["too many", "too steep"]), row("z", "B")]
    assert harness.contradictions(rows) == "2 claims verified, 2 contradictions\ny, A: too many\ny, A: too steep"
    assert harness.contradictions(rows[2:]) == ""


def test_two_stores_compared_by_what_rows_are():
    before = [
        row("x", "A", 0.5, objective=2.0, seconds=4.0, status="optimal", key="old 1"),
        row("y", "A", 0.7, objective=1.0, seconds=2.0, status="time_limit", key="old 2"),
        row("z", "A", 0.9, objective=0.0, seconds=2.0, status="optimal", key="old 3"),
        row("x", "B", 0.1, seconds=1.0, key="old 4"),
    ]
    now = [
        row("x", "A", 0.6, objective=1.5, seconds=3.0, status="optimal", key="new 1"),
        row("y", "A", 0.7, objective=1.0 + 1e-9, seconds=1.0, status="optimal", key="new 2"),
        row("z", "A", 0.8, objective=0.5, seconds=9.0, status="optimal", key="new 3"),
        row("new", "A", 0.0, seconds=0.0, key="new 4"),
    ]
    table = harness.compared(now, before)
    assert table.cells == (("A", "", "3", "67% -> 100%", "70.00% -> 70.00%", "", "1 / 1 / 1", "2.0 -> 3.0"),)


@pytest.mark.parametrize("form", ["markdown", "text"])
def test_nothing_is_made_of_rows_that_are_not_there(form):
    table = GroupTable({"data": "data"}, (harness.mean("a", "accuracy"),))
    pivot = PivotTable(("data", "data"), ("share", "{}"), harness.mean("", "a"), known={"theirs": {1.0: 2.0}})
    assert harness.render((table, pivot), [], form) == "0 rows."
