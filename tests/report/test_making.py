"""What reports say of how a fit was made, of leaves in words, and of sums."""

from dataclasses import replace

import numpy as np
import pytest
from pages import job, tree_model

from treewright.data.tables.encoder import TableEncoder
from treewright.data.tables.files import Table, read_table
from treewright.data.tables.large import open_table
from treewright.data.tables.mixed_encoder import MixedEncoder
from treewright.data.tables.words import feature_words
from treewright.report import facts_html, facts_text, new_rows_facts, table_making
from treewright.report.svg import tree_svg
from treewright.report.trees import Explanation, counted_tree
from treewright.tree import Tree
from treewright.tree.words import DateWords, FlagWords

COLUMNS = {
    "age": [31.0, np.nan, 45.0, 50.0],
    "area": ["north", None, "south", "north"],
    "born": ["1.5.1990", "2.5.1991", None, "31.5.1992"],
    "empty": [None, None, None, None],
    "ill": ["no", "yes", None, None],
}
TEXT = "age;área;ill\n31;norté;no\n45;south;yes\n"


def test_gaps_features_and_columns_left_out_are_told():
    table = Table(COLUMNS)
    with pytest.warns(UserWarning):
        encoder = TableEncoder.fit(table, ["age", "area", "born", "empty"], fill_gaps=True)
    told = dict(table_making(table, encoder, file="people.csv", aside={"ill": "the target"}))
    assert told["table"] == "people.csv, 4 rows"
    assert told["features"] == (
        "age (a number); area (text: a 0/1 feature for each level but the most frequent); "
        "born (a date: days since 1970-01-01)"
    )
    assert told["left out"] == "empty (it is empty), ill (the target)"
    assert told["gaps"] == (
        "age: 1 row, filled with 45, the median; area: 1 row, counted as none of its levels; born: 1 row, filled with "
        '1991-05-02, the median; 0/1 features such as "age is missing" tell where'
    )


def test_models_that_take_gaps_as_they_are_say_so():
    table = Table(COLUMNS)
    with pytest.warns(UserWarning, match="dates"):
        encoder = MixedEncoder.fit(table, ["age", "area", "born"])
    told = dict(table_making(table, encoder))
    assert told["gaps"].startswith("age (1 row), area (1 row), born (1 row); missing values are left as they are")
    assert "area (text: categories as they are)" in told["features"]


def test_nothing_is_said_where_nothing_was_filled():
    table = Table({"age": [1.0, 2.0]})
    assert [what for what, _ in table_making(table, TableEncoder.of_numbers(["age"]))] == ["table", "features"]


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "cp1252", "iso8859-15"])
def test_the_encoding_is_that_of_the_file(tmp_path, encoding):
    path = tmp_path / "people.csv"
    path.write_text(TEXT, encoding=encoding)
    named = None if encoding.startswith("utf") else encoding
    words = f"text in {encoding.removesuffix('-sig')} with semicolons between columns"
    assert read_table(path, encoding=named).source == words
    with open_table(path, encoding=named) as table:
        assert table.source == words and table.whole().source == words


def test_other_files_are_told_too(tmp_path):
    path = tmp_path / "people.parquet"
    Table({"age": [1.0]}).frame.write_parquet(path)
    assert read_table(path).source == "parquet"


def test_how_it_was_made_comes_after_advice_and_before_parameters():
    facts, _, _ = job(["no", "yes"], ["a", "b"], making=[("table", "x.csv, 3 rows"), ("<b>", "& more")])
    text, page = facts_text(facts), facts_html(facts)
    for shown, advice in ((text, "What to do next"), (page, "What to do next")):
        places = [shown.index(words) for words in (advice, "How it was made", "x.csv, 3 rows", "Parameters")]
        assert places == sorted(places)
    assert "  table: x.csv, 3 rows\n" in text and "<dt>&lt;b&gt;</dt><dd>&amp; more</dd>" in page
    assert all(len(line) <= 118 for line in text[text.index("How it was made") :].splitlines() if "://" not in line)


def test_totals_of_all_rows_are_told_to_be_less():
    facts, _, _ = job(["no", "yes"], ["a", "b"], totals_of="all")
    words = "Totals were given of all rows; those with a label are subtracted."
    assert words in facts_text(facts) and words in facts_html(facts)
    page = facts_html(facts)
    assert "(by <bdi>area</bdi>), of all rows</dd>" in page and "of the rows without a label</dd>" not in page
    assert "Totals are about the rows without a label" not in page
    facts, _, _ = job(["no", "yes"], ["a", "b"])
    page = facts_html(facts)
    assert words not in facts_text(facts) and words not in page
    assert "(by <bdi>area</bdi>), of the rows without a label</dd>" in page


def test_sums_with_flags_and_dates_are_explained():
    words = {j: FlagWords(f"{name} is yes", f"{name} is no") for j, name in enumerate("abcdefg")}
    words[7] = DateWords("born", times=False)
    X = np.array([[0.0] * 7 + [5.0, 0.0], [1.0] * 7 + [6.0, 0.0]])

    def notes(**weights):
        row = [float(weights.get(name, 0.0)) for name in (*"abcdefg", "born", "age")]
        model = tree_model(Tree.stump(row, 1.0, [[1.0, 0.0], [0.0, 1.0]]), ["no", "yes"], [*"abcdefg", "born", "age"])
        return Explanation(model, model.apply(X), model.predict(X), words).facts(np.array(["no", "yes"])).notes

    (flag,) = notes(**dict.fromkeys("abcdefg", 1))  # more cases than are told one by one
    assert flag == 'In a sum, "(a is yes)" counts 1 where that holds and 0 elsewhere.'
    (date,) = notes(born=1, age=1, a=1)
    assert date.startswith('"(years from 2000-01-01 to born)"')
    assert notes(a=1) == notes(born=1) == notes(a=1, born=1) == notes(a=1, b=2) == notes(a=1, b=1, age=1) == []


@pytest.mark.filterwarnings("ignore:missing values")
def test_what_stands_for_missing_values_is_told_where_the_rules_do_not():
    columns = {"rent": [400.0, None, 570.0, 900.0], "age": [1.0, 2.0, 3.0, 4.0]}
    columns["moved"] = ["2020-01-01", "2021-05-06", "2022-01-01", None]
    encoder = TableEncoder.fit(Table(columns), list(columns), fill_gaps=True)
    names, words = encoder.feature_names, feature_words(encoder)
    assert names == ["rent", "rent is missing", "age", "moved", "moved is missing"]

    def notes(threshold, **weights):
        row = [float(weights.get(name.replace(" ", "_"), 0.0)) for name in names]
        model = tree_model(Tree.stump(row, threshold, np.eye(2)), ["no", "yes"], names)
        X = np.zeros((2, len(names)))
        facts = Explanation(model, model.apply(X), model.predict(X), words).facts(np.array(["no", "yes"]))
        return facts.notes, " and ".join(facts.conditions[0])

    assert notes(829.5, rent=1)[0] == ['Where "rent" is missing, 570 stands for it.']  # the median of those known
    assert notes(18_000.5, moved=1)[0] == ['Where "moved" is missing, 2021-05-06 stands for it.']
    assert len(notes(829.5, rent=1, age=1, moved=1)[0]) == 3  # and how a date counts in a sum
    told, rule = notes(829.5, rent=1, rent_is_missing=-900)
    assert told == [] and "or rent is missing" in rule
    assert notes(2.5, age=1)[0] == notes(0.5, rent_is_missing=1)[0] == []


def half_used_tree():
    """A tree whose root sends every row to the right: leaf 1 is never reached, and not written."""
    heap, threshold = np.zeros((3, 1)), np.array([-1.0, 0.0, 0.5])
    heap[2] = 1.0
    counts = np.array([[0, 0], [1, 0], [0, 0], [0, 0], [0, 0], [3, 1], [0, 2]], dtype=float)
    return Tree.from_heap(np.array([True, False, True]), heap, threshold, counts, counts.argmax(axis=1))


def test_the_picture_has_no_splits_that_send_all_rows_one_way():
    model, X = tree_model(half_used_tree(), ["no", "yes"], ["u"]), np.array([[0.1], [0.2], [0.9]])
    facts = Explanation(model, model.apply(X), model.predict(X)).facts(np.array(["no", "no", "yes"]))
    picture = tree_svg(facts, "t", 3)
    assert "Decision tree with 2 leaves and depth 1" in picture and picture.count('class="leaf"') == 2
    assert "never" not in picture and picture.count('class="split"') == 1 and "3 rows" in picture
    for leaf in np.unique(model.apply(X)):
        assert f"leaf {leaf}:" in picture and f"leaf {leaf}:" in facts.rules
    assert facts.rules.startswith("if u <= 0.5:")


def test_changes_are_told_of_leaves_that_are_written():
    model, X = tree_model(half_used_tree(), ["no", "yes"], ["u"]), np.array([[0.1], [0.2], [0.9]])
    leaves = model.apply(X)
    counts = np.zeros((model.tree_.n_nodes, 2), dtype=np.int64)
    np.add.at(counts, (leaves, model.tree_.labels[leaves]), 1)
    then = counted_tree(model, counts.sum(axis=1), counts).leaves
    assert len(then) == 3
    facts = new_rows_facts(model, counts, tree=model, then=then)
    assert [leaf[0] for leaf in facts.changes.leaves] == np.unique(leaves).tolist()
    (unseen,) = set(then) - set(leaves.tolist())
    text, page = facts_text(facts), facts_html(facts)
    assert f"leaf {unseen}" not in text and f"leaf {unseen}" not in page


def test_classes_that_totals_ask_for_and_no_leaf_gives_are_told_beside_the_tree():
    facts, _, _ = job(["no", "yes"], ["a", "b", "c"], n=60, depth=1)
    tree = replace(facts.trees[0], leaves={n: replace(leaf, label="no") for n, leaf in facts.trees[0].leaves.items()})

    def told(groups, shown=tree, **more):
        rows = [row for row in facts.totals if row["group"] in groups]
        other = replace(facts, trees=[shown], totals=rows, **more)
        text = facts_text(other)
        text = text[text.index("A tree that explains") : text.index("What to do next")]
        page = facts_html(other)
        page = page[page.index('id="tree"') : page.index('id="next"')].replace("&quot;", '"')
        found = [line.strip() for line in text.splitlines() if "No leaf is" in line]
        assert all(line in page for line in found) and page.count("No leaf is") == len(found)
        return found

    asked = {row["group"]: row["low"] for row in facts.totals if row["class"] == "yes"}
    assert asked["a"] > 0 < asked["b"] and asked["c"] == 0
    assert told("a") == [f'No leaf is "yes", which {asked["a"]} rows are by the totals.']
    both = asked["a"] + asked["b"]  # an interval in the second group, nothing asked in the third
    assert told("abc") == [f'No leaf is "yes", which at least {both} rows are by the totals.']
    assert told("c") == told("abc", facts.trees[0]) == told("abc", n_voting=3) == []
