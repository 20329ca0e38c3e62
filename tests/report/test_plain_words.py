"""Rules in plain words: read as a person would read them, they send each row of the table where the tree does."""

import datetime

import numpy as np
import pytest

from treewright.data.tables.encoder import TableEncoder
from treewright.data.tables.files import Table
from treewright.data.tables.mixed_encoder import MixedEncoder
from treewright.data.tables.words import feature_words
from treewright.tree import Tree, export_text, side
from treewright.tree.text import split_pieces
from treewright.tree.words import DateWords, FlagWords

N = 60
RNG = np.random.default_rng(0)
DAYS = [datetime.date(1999, 12, 25) + datetime.timedelta(days=int(d)) for d in RNG.integers(0, 14, N)]
COLUMNS = {
    "age": RNG.integers(18, 30, N).astype(float),
    "race": RNG.choice(["White", "Black", "Other"], N).astype(object),
    "area": RNG.choice(["rural", "urban"], N).astype(object),
    "member": RNG.choice(["true", "false"], N).astype(object),
    "born": np.array([f"{d:%d.%m.%Y}" for d in DAYS], dtype=object),
    "job": np.where(RNG.random(N) < 0.3, None, RNG.choice(["a", "b"], N)).astype(object),
}


def holds(words, row):
    """Whether a condition in words holds for a row of the table."""
    name, _, rest = words.partition(" is ")
    value = row[name]
    if rest in ("missing", "known"):
        return (value is None) == (rest == "missing")
    if rest.endswith((" or earlier", " or later")):
        day, other = datetime.datetime.strptime(value, "%d.%m.%Y").date(), datetime.date.fromisoformat(rest.split()[0])
        return day <= other if rest.endswith("earlier") else day >= other
    if rest.startswith("not "):
        return value != rest.removeprefix("not ")
    return value in [level for part in rest.split(", ") for level in part.split(" or ")]


def rows():
    return [dict(zip(COLUMNS, values, strict=True)) for values in zip(*COLUMNS.values(), strict=True)]


@pytest.fixture(scope="module")
def encoded():
    table = Table(COLUMNS)
    with pytest.warns(UserWarning):
        encoder = TableEncoder.fit(table, list(COLUMNS), fill_gaps=True)
    with pytest.warns(UserWarning, match="job"):
        X, names = encoder.transform(table)
    return encoder, X, names


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_words_send_rows_where_the_tree_does(encoded, sign):
    encoder, X, names = encoded
    words, tried = feature_words(encoder), 0
    for feature in words:
        values = np.unique(X[:, feature])
        for threshold in (values[:-1] + values[1:]) / 2 + 0.2 * (len(values) > 2):
            weights = np.zeros(len(names))
            weights[feature] = sign * 2.0
            tree = Tree.stump(weights, sign * 2.0 * threshold, [[1.0, 0.0], [0.0, 1.0]])
            ((condition,), _, _) = split_pieces(tree, names, words=words)
            assert "<=" not in condition and ">=" not in condition
            left = side(tree, X, 0)
            assert [holds(condition, row) for row in rows()] == left.tolist(), condition
            assert export_text(tree, names, words=words).startswith(f"if {condition}:")
            tried += 1
    assert len(words) == len(names) - 1 and tried > 12


def test_numbers_keep_their_signs(encoded):
    encoder, _, names = encoded
    tree = Tree.stump(np.eye(len(names))[0], 20.5, [[1.0, 0.0], [0.0, 1.0]])
    assert split_pieces(tree, names, words=feature_words(encoder))[0] == ["age <= 20.5"]


def test_a_flag_beside_a_number_is_a_case():
    tree = Tree.stump([0.5, -1.0], 3.0, [[1.0, 0.0], [0.0, 1.0]])
    words = {0: FlagWords("race is White", "race is not White")}
    assert split_pieces(tree, ["race=White", "age"], words=words)[0] == ["age >= -3", "(-2.5 where race is White)"]


def test_a_threshold_that_does_not_part_a_flag_is_no_condition():
    tree = Tree.stump([1.0], 1.5, [[1.0, 0.0], [0.0, 1.0]])
    words = {0: FlagWords("is", "is not")}
    assert split_pieces(tree, ["f"], words=words)[0] == ["always"]
    assert export_text(tree, ["f"], class_names=["no", "yes"], words=words) == "no  (1 row: 100% no)"


@pytest.mark.parametrize("at", [1e12, -1e12, np.inf])
def test_no_such_date(at):
    assert DateWords("born", times=False).condition(at, up_to=True) is None


@pytest.mark.parametrize(
    ("codes", "words"), [([1], "race is b"), ([0, 2], "race is a or c"), ([0, 1, 2], "race is a, b or c")]
)
def test_levels_of_categories(codes, words):
    chosen = np.zeros((3, 4), dtype=bool)
    chosen[0, codes] = True
    tree = Tree(
        left=np.array([1, -1, -1]),
        right=np.array([2, -1, -1]),
        weights=np.zeros((3, 1)),
        threshold=np.zeros(3),
        values=np.eye(3, 2),
        labels=np.array([0, 0, 1]),
        category=np.array([0, -1, -1]),
        left_categories=chosen,
        missing_left=np.zeros(3, dtype=bool),
    )
    pieces = split_pieces(tree, ["race"], {0: list("abcd")}, words={})[0]
    assert " ".join(pieces) == words
    assert " ".join(split_pieces(tree, ["race"], {0: list("abcd")})[0]).startswith("race in {")


def test_levels_that_read_like_words_are_quoted_in_0_1_features():
    cells = np.array(["missing", "red", None, "blue", "red", "blue or red", None, "red"], dtype=object)
    with pytest.warns(UserWarning, match="filled in"):
        encoder = TableEncoder.fit(Table({"colour": cells}), ["colour"], fill_gaps=True)
    told = {words.yes for words in feature_words(encoder).values()}
    assert told >= {"colour is 'missing'", "colour is missing", "colour is blue", "colour is 'blue or red'"}
    assert len(told) == len(feature_words(encoder))


def test_dates_of_models_that_take_categories_as_they_are():
    table = Table({"age": COLUMNS["age"], "born": COLUMNS["born"], "race": COLUMNS["race"]})
    with pytest.warns(UserWarning, match="dates"):
        encoder = MixedEncoder.fit(table, ["age", "born", "race"])
    assert feature_words(encoder) == {1: DateWords("born", times=False)}


def test_years_of_a_sum_are_counted_from_one_that_is_near():
    table = Table({"born": ["1.5.1983", "2.5.1985", None]})
    with pytest.warns(UserWarning, match="by 1983-05-01"):  # the lower median, as a date
        encoder = TableEncoder.fit(table, ["born"], fill_gaps=True)
    words = feature_words(encoder)
    assert words[0].term == "(years from 1983-01-01 to born)"
    assert words[0].scale == ((datetime.date(1983, 1, 1) - datetime.date(1970, 1, 1)).days, 365.25)
    assert feature_words(TableEncoder.from_dict(encoder.to_dict())) == words


def test_times_of_the_day_are_told():
    seen = [datetime.datetime(2024, 1, 1, 6 * i) for i in range(4)]
    with pytest.warns(UserWarning, match="dates"):
        encoder = TableEncoder.fit(Table({"seen": seen}), ["seen"])
    (words,) = feature_words(encoder).values()
    assert words.condition(19723.5, up_to=True) == "seen is 2024-01-01 12:00 or earlier"
