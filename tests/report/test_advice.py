"""What to do next: each sentence where the facts call for it, and nowhere else."""

import warnings
from dataclasses import replace

import numpy as np
import pytest
from pages import complete_tree, job, record, tree_model

from treewright.estimation.accuracy import AccuracyEstimate
from treewright.report import fit_facts
from treewright.report.advice import advice
from treewright.report.facts import GroupFacts

CLASSES = ["no", "yes"]


@pytest.fixture(scope="module")
def facts():
    """A job of which nothing is to be said but what is said always."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        made, _, _ = job(CLASSES, ["north", "south"], n=200, depth=2)
    sure = AccuracyEstimate(1.0, 0.99, 1.0, 0.95, made.n_labelled, {})
    return replace(made, estimate=sure, recall=[1.0, 1.0], agreed=(made.n_hidden, 0), groups=None)


@pytest.fixture(scope="module")
def tree_facts():
    """The same of a model that is a tree."""
    model = tree_model(complete_tree(1, 1, 2), CLASSES, ["age"], record("optimal"))
    X = np.linspace(0, 1, 10)[:, None]
    return fit_facts(model, model.predict(X), model.predict(X))


def said(facts):
    return [text for text, _ in advice(facts)]


def only(facts, words):
    """The one sentence beside the last, which has these words."""
    found = [text for text in said(facts) if not text.startswith("Label next year's")]
    assert len(found) == 1 and words in found[0], found
    return found[0]


def test_nothing_but_next_year(facts):
    ((text, command),) = advice(facts)
    assert text == "Label next year's rows within next year's totals:"
    assert command == "treewright predict m.zip NEW_ROWS.csv --totals NEW_TOTALS.csv --groups area --out new_labels.csv"


def test_ids_go_along(facts):
    ((_, command),) = advice(replace(facts, id_name="person number"))
    assert " --groups area --id 'person number' --out " in command


def test_commands_are_quoted(facts):
    (_, command), *_ = advice(replace(facts, model_file="my model.zip", group_name="a'b"))[-1:]
    assert "'my model.zip'" in command and """--groups 'a'"'"'b'""" in command


def test_in_python_there_are_no_commands(facts):
    (only_one,) = advice(replace(facts, model_file=""))
    assert "transduce" in only_one.text and not only_one.command


@pytest.mark.parametrize(
    ("limit", "seconds", "words"),
    [
        (1.0, 0.4, "The time limit left 1.0 seconds for the tree, which is little"),
        (1.0, 1.2, "The time limit left 1.0 seconds for the tree, which is little"),
        (20.0, 19.9, "The tree is the best of 19.9 seconds"),
        (20.0, 7.0, ""),
        (None, 70.0, ""),
    ],
)
def test_a_tree_that_had_little_time_is_told_of(facts, limit, seconds, words):
    ended = replace(facts.tree_record, seconds=seconds, status="local")
    given = replace(facts, tree_limit=limit, tree_record=ended)
    if words:
        assert "--time-limit" in only(given, words)
    else:
        assert len(said(given)) == 1


def test_one_row_is_a_row(tree_facts):
    one = replace(tree_facts, n_rows=tree_facts.n_labelled + 1)
    assert any(text.startswith("1 row without a label had no part") and "use of it" in text for text in said(one))


def test_missed_totals_the_worst_first(facts):
    row = {"group": "north", "class": "yes", "low": 10, "high": 10, "reached": 6, "deviation": 4}
    rows = [row | {"reached": 9, "deviation": 1, "class": "no"}, row, row | {"group": "south", "low": 6}]
    text = only(replace(facts, totals=rows), "without --model")
    assert "contradict" in only(replace(facts, totals=[row | {"margin": 0} for row in rows]), "check the totals")
    assert text.index('"north", "yes" (asked 10, reached 6: -4)') < text.index(
        '"north", "no" (asked 10, reached 9: -1)'
    )
    assert "south" not in text


def test_missed_totals_of_a_tree(tree_facts):
    row = {"group": None, "class": "yes", "low": 10, "high": 12, "reached": 13, "deviation": 1}
    text = said(replace(tree_facts, totals=[row], totals_used=True, model_file="m.json"))[0]
    assert '"yes" (asked 10 to 12, reached 13: +1)' in text and "without --model" in text
    assert "OCTHClassifier does not know totals" in said(replace(tree_facts, totals=[row]))[0]


def test_no_totals(facts):
    text = said(replace(facts, totals=[]))[0]
    assert f"how many of the {facts.n_hidden} rows" in text and "--totals FILE" in text
    assert not any("No totals" in text for text in said(replace(facts, totals=[], n_labelled=facts.n_rows)))


def test_where_labels_help_most(facts):
    """Brute force: one label more of each class, and the variance of the estimate that is left."""
    given, hidden, recall = [90, 30, 12], [100, 80, 30], [0.9, 0.7, 0.5]
    three = replace(
        facts,
        classes=["a", "b", "c"],
        given=given,
        hidden=hidden,
        recall=recall,
        n_labelled=132,
        estimate=AccuracyEstimate(0.8, 0.72, 0.85, 0.95, 132, {}),
    )

    def variance(labels):
        likely = (np.array(recall) * given + 1) / (np.array(given) + 2)
        return np.sum((np.array(hidden) / 210) ** 2 * likely * (1 - likely) / labels)

    left = [variance(np.array(given, float) + 1e-3 * np.eye(3)[k]) for k in range(3)]
    best = "abc"[int(np.argmin(left))]
    texts = [text for text in said(three) if text.startswith("More labels")]
    assert len(texts) == 1 and f'held for "{best}"' in texts[0]
    assert sum("four times" in text for text in said(three)) == 1
    narrow = replace(three, estimate=AccuracyEstimate(0.8, 0.79, 0.81, 0.95, 132, {}))
    assert not any("four times" in text for text in said(narrow))


def test_classes_that_are_hardly_found_come_first(facts):
    rare = replace(facts, found_again=[(90, 100), (2, 40)])
    text = said(rare)[0]
    assert text == only(rare, "single labels") and text.startswith(
        'Do not rely on single labels "yes": 2 of 40 were found when left out. '
    )
    assert text.endswith(" probabilities (column share_yes) say more than the labels.")
    exact = [row | {"low": row["reached"], "high": row["reached"]} for row in facts.totals]
    met = said(replace(rare, totals=exact))[0]
    assert "Their number is right by the totals; the" in met
    group = exact[0]["group"]
    off = [row | ({"low": 0, "high": 10**6} if row["group"] == group else {}) for row in exact]
    assert "Their number" not in said(replace(rare, totals=off))[0]
    assert "Their number" not in " ".join(said(replace(rare, totals=[])))
    for counts in ([(90, 100), (20, 40)], [(90, 100), (0, 4)]):  # half of them; few, which tell little
        assert not any("single labels" in text for text in said(replace(facts, found_again=counts)))
    both = said(replace(facts, found_again=[(30, 100), (2, 40)]))[0]
    assert '"yes" (2 of 40 were found when left out), "no" (30 of 100 were found when left out). ' in both
    assert "transduction_proba_" in said(replace(rare, model_file=""))[0]


def test_a_class_without_labels(facts):
    assert 'No row is labelled "yes"' in only(replace(facts, given=[5, 0], recall=[1.0, None]), "half right")


def test_no_estimate(facts):
    assert "(too few labels)" in only(replace(facts, estimate=None, no_estimate="too few labels"), "is not known")


def test_groups(facts):
    names = ["north", "south", "west"]
    even = GroupFacts(names, [5, 5, 5], [100, 100, 100], [10.0, 10.0, 10.0])
    assert len(said(replace(facts, groups=even))) == 1
    none = GroupFacts(names, [5, 0, 5], [100, 100, 100], [10.0, 10.0, 10.0])
    assert '"south"' in only(replace(facts, groups=none), "1 of 3 groups has no label at all")
    unsure = GroupFacts(names, [5, 5, 5], [100, 100, 100], [10.0, 10.0, 30.0])
    assert "30% may be wrong" in only(replace(facts, groups=unsure), '"west"')
    free = [row | {"low": 0, "high": 10**6} if row["group"] == "north" else row for row in facts.totals]
    assert '"north"' in only(replace(facts, groups=even, totals=free), "Nothing was asked of")


def test_the_tree_that_explains(facts):
    assert "best of 1.2 seconds" in only(replace(facts, tree_record=record("time_limit")), "--time-limit")
    text = only(replace(facts, agreed=(facts.n_hidden * 8 // 10, 0)), "--max-depth 3")
    assert text.startswith("The tree says otherwise than the labels on 2")


def test_endings_of_a_tree(tree_facts):
    assert len(said(tree_facts)) == 1 and "has seen" in said(tree_facts)[0]
    ended = replace(record("time_limit"), objective=3.0, bound=1.5)
    text = said(replace(tree_facts, record=ended, model_file="m.json"))[0]
    assert "a gap of 50.0%" in text and "how much better" not in text
    assert text.endswith("A longer time limit (--time-limit) may find a better tree, or prove that there is none.")
    for status in ("time_limit", "interrupted"):
        nothing = replace(record(status), objective=3.0, bound=0.0)
        text = said(replace(tree_facts, record=nothing, model_file="m.json"))[0]
        assert "gap" not in text and "Nothing is known of how much better a tree could be." in text
    assert "interrupted" in said(replace(tree_facts, record=record("interrupted")))[0]


def test_rows_without_a_part_and_suspects(tree_facts):
    texts = said(replace(tree_facts, n_labelled=7, n_suspects=2))
    assert any("3 rows without a label had no part" in text for text in texts)
    assert any(text.startswith("2 labels are held for wrong") for text in texts)


def test_a_class_that_is_never_predicted(tree_facts):
    name = "no" if tree_facts.found[0] else "yes"  # the model gives both classes: let one column be empty
    other = "yes" if name == "no" else "no"
    k = CLASSES.index(other)
    counts = np.array([[6, 0], [4, 0]]) if k == 1 else np.array([[0, 4], [0, 6]])
    lost = replace(tree_facts, confusion=counts, model_file="m.json", parameters=[("T", [("class_weight", "None")])])
    (found,) = [text for text in said(lost) if "is predicted to be" in text]
    assert f'"{other}", which 4 rows are labelled' in found
    assert "--set class_weight=balanced" in found and "--max-depth" in found
    weighed = replace(lost, parameters=[("T", [("class_weight", "'balanced'")])], model_file="")
    (found,) = [text for text in said(weighed) if "is predicted to be" in text]
    assert "class_weight" not in found and "max_depth" in found
    assert not any("is predicted to be" in text for text in said(tree_facts))
