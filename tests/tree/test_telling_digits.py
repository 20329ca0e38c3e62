"""Rules as they are printed send each row where the tree sends it."""

import datetime

import numpy as np
import pytest
from rule_reader import holds, leaves_by_rules
from tests.examples import looped

from treewright import OCTSVMClassifier, TAOClassifier
from treewright.cli import main
from treewright.data.tables.files import read_table
from treewright.data.tables.writing import write_table
from treewright.tree import Tree, export_text, route, telling_digits
from treewright.tree.words import DateWords, FlagWords


def test_digits_are_added_where_rows_need_them():
    """By hand: 0.33333*a + b <= 1.00001 with four digits takes the row (3, 0.00002) to the other side."""
    tree = Tree.stump([1 / 3, 1.0], 1.00001, np.eye(2))
    rows = np.array([[3.0, 0.00002], [0.0, 1.0], [9.0, 9.0]])
    leaves = route(tree, rows)
    assert leaves.tolist() == [2, 1, 2]
    digits = telling_digits(tree, rows, leaves)
    assert digits == {0: 6} or digits == {0: 5}
    text = export_text(tree, feature_names=["a", "b"], digits=digits, number_leaves=True)
    assert leaves_by_rules(text, {"a": rows[:, 0], "b": rows[:, 1]}, 3).tolist() == leaves.tolist()
    assert telling_digits(tree, rows[1:], leaves[1:]) == {}
    assert "b + 0.3333*a <= 1" in export_text(tree, feature_names=["a", "b"])


@looped("seed", range(8))
def test_random_sums_with_flags_and_dates(seed):
    """Deep trees of sums: rows that are near to a split on purpose."""
    rng = np.random.default_rng(seed)
    n, born = 2000, rng.integers(0, 20000, 2000)
    X = np.column_stack([rng.normal(size=n) * 1000, rng.random(n), rng.integers(0, 2, n), born]).round(4)
    words = {2: FlagWords("sex is male", "sex is not male"), 3: DateWords("born", times=False)}
    weights = rng.normal(size=(3, 4)) * [1e-3, 1.0, 1.0, 1e-4] * (rng.random((3, 4)) < 0.8)
    weights[:, 0] += 1e-3 * (np.count_nonzero(weights, axis=1) == 0)
    levels = X @ weights.T
    near = levels[rng.integers(n), [0, 1, 2]] + 1e-9
    tree = Tree(
        left=np.array([1, 3, 5, -1, -1, -1, -1]),
        right=np.array([2, 4, 6, -1, -1, -1, -1]),
        weights=np.vstack([weights, np.zeros((4, 4))]),
        threshold=np.append(near, np.zeros(4)),
        values=np.eye(7, 2),
        labels=np.zeros(7, dtype=np.int64),
    )
    leaves = route(tree, X)
    digits = telling_digits(tree, X, leaves, words)
    names = ["wage", "share", "male", "born"]
    columns = {"wage": X[:, 0], "share": X[:, 1], "born": np.datetime64("1970-01-01") + born}
    columns["sex"] = np.where(X[:, 2] == 1, "male", "female")
    text = export_text(tree, names, words=words, digits=digits, number_leaves=True)
    assert leaves_by_rules(text, columns, n).tolist() == leaves.tolist()
    rounded = export_text(tree, names, words=words, number_leaves=True)
    if digits:
        assert text != rounded


def test_one_feature_missing_values_and_turned_round():
    tree = Tree.stump([-1e-3], -0.123456789, np.eye(2))
    rows = np.array([[123.4567], [123.45680], [np.nan], [200.0], [0.0]])
    leaves = route(tree, rows)
    text = export_text(tree, ["a"], digits=telling_digits(tree, rows, leaves), number_leaves=True)
    known = np.isfinite(rows[:, 0])
    assert leaves_by_rules(text, {"a": rows[:, 0]}, 5)[known].tolist() == leaves[known].tolist()


def test_times_of_the_day():
    """A split between two rows a second apart, both ways round."""
    for up_to in (True, False):
        days = np.array([19.25, 19.25 + 1 / 86400])
        told = DateWords("seen", times=True).condition(float(days.mean()), up_to)
        columns = {"seen": np.array([datetime.datetime(1970, 1, 20, 6, 0, k) for k in (0, 1)], dtype="datetime64[s]")}
        assert holds(told, columns).tolist() == [up_to, not up_to]


def test_estimators_in_python():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(3000, 3)).round(3) * [1, 1000, 1e-3]
    y = np.digitize(X @ [1.0, 1e-3, 1e3], [-0.5, 0.5])
    model = TAOClassifier(3, random_state=0, time_limit=5).fit(X, y)
    text = export_text(
        model.tree_, ["a", "b", "c"], digits=telling_digits(model.tree_, X, model.apply(X)), number_leaves=True
    )
    columns = dict(zip("abc", X.T, strict=True))
    assert leaves_by_rules(text, columns, len(X)).tolist() == model.apply(X).tolist()
    several = OCTSVMClassifier(max_depth=1, time_limit=2, random_state=0).fit(X[:60], y[:60])
    assert several.export_text(X=X[:60]).count("against all others") == 3


def make_table(folder, n=4000):
    rng = np.random.default_rng(0)
    wage, hours = rng.lognormal(7, 1, n).round(2), rng.integers(0, 60, n).astype(float)
    born = np.datetime64("1950-01-01") + rng.integers(0, 18000, n)
    sex = rng.choice(["male", "female"], n).astype(object)
    score = np.log(wage) + hours / 20 + (sex == "male") + (born.astype(int)) / 9000 + rng.logistic(size=n) / 2
    truth = np.array(["low", "mid", "high"], dtype=object)[np.digitize(score, np.quantile(score, [0.4, 0.8]))]
    known = rng.random(n) < 0.1
    columns = {"wage": wage, "hours": hours, "born": born.astype(str).astype(object), "sex": sex}
    write_table(folder / "d.csv", {**columns, "class": np.where(known, truth, None)})
    labels = ("low", "mid", "high")
    write_table(folder / "t.csv", {k: [int(np.sum((truth == k) & ~known))] for k in labels})
    return columns | {"born": born}, n


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("large", [False, True])
def test_the_column_leaf_is_what_the_report_says(tmp_path, monkeypatch, capsys, large):
    """The whole job on mixed columns, whether the register comes in parts or not."""
    if large:
        monkeypatch.setattr("treewright.app.rows._WHOLE_ROWS", 1000)
        monkeypatch.setattr("treewright.app.rows._PART_ROWS", 250)
    columns, n = make_table(tmp_path)
    fit = ["fit", str(tmp_path / "d.csv"), "--target", "class", "--totals", str(tmp_path / "t.csv")]
    files = [
        "--out",
        str(tmp_path / "m.zip"),
        "--predictions",
        str(tmp_path / "p.csv"),
        "--report",
        str(tmp_path / "r.txt"),
    ]
    more = ["--estimator", "logistic", "--random-state", "0", "--time-limit", "1.5"]
    assert main([*fit, *files, *more]) == 0
    said = capsys.readouterr().out
    leaves = read_table(tmp_path / "p.csv")["leaf"].astype(int)
    report = (tmp_path / "r.txt").read_text(encoding="utf-8")
    main(["show", str(tmp_path / "m.zip")])
    for text in (report, said, capsys.readouterr().out):
        start = text.index("if ", text.index("tree"))
        lines = text[text.rindex("\n", 0, start) + 1 :].splitlines()
        indent = len(lines[0]) - len(lines[0].lstrip())
        rules = []
        for line in lines:
            if not line.strip():
                break
            rules.append(line[indent:])
        rules = [line for line in rules if not line.startswith(("In a sum", '"('))]
        assert "*(" not in "".join(rules).replace("*(years", "")
        assert leaves_by_rules("\n".join(rules), columns, n).tolist() == leaves.tolist()
