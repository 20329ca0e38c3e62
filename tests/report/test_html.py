"""The report as one HTML file, as its text; `test_browser.py` looks at it in a browser."""

import re
import warnings
from dataclasses import replace
from html.parser import HTMLParser

import numpy as np
import pytest
from pages import HOSTILE, LONG, QUOTES, SCRIPT, TURNED, complete_tree, job, record, tree_model
from sklearn.linear_model import LogisticRegression

from treewright import OCTHClassifier, TotalsClassifier
from treewright.core.names import printable
from treewright.report import facts_html, facts_text, fit_facts, fit_report, labels_report
from treewright.report.svg import _ENDS, _LINES, _wrapped, tree_svg
from treewright.report.trees import LeafFacts
from treewright.tree import Tree

VOID = {"meta", "br", "img", "link", "hr", "input"}
DRAWN = {"svg", "g", "rect", "path", "text", "title"}
KNOWN = DRAWN | set(
    [
        "html",
        "head",
        "meta",
        "style",
        "body",
        "header",
        "main",
        "footer",
        "section",
        "h1",
        "h2",
        "h3",
        "p",
        "ul",
        "ol",
        "li",
        "dl",
        "dt",
        "dd",
        "b",
        "span",
        "small",
        "bdi",
        "br",
        "div",
        "table",
        "caption",
        "thead",
        "tbody",
        "tr",
        "th",
        "td",
        "details",
        "summary",
        "pre",
        "code",
    ]
)


class Page(HTMLParser):
    """Elements with attributes and all text; elements must close in order."""

    def __init__(self, text):
        super().__init__()
        self.elements, self.texts, self.stack = [], [], []
        self.feed(text)
        self.close()
        assert self.stack == []

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self.stack.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        assert self.stack.pop() == tag

    def handle_data(self, data):
        if self.stack and self.stack[-1] != "style":
            self.texts.append(data)

    def of(self, tag):
        return [attrs for name, attrs in self.elements if name == tag]

    def text(self):
        return " ".join(" ".join(self.texts).replace("\u00a0", "").split())


@pytest.fixture(scope="module")
def made():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return job(["no", "perhaps", "yes"], [f"area {i}" for i in range(40)])


@pytest.fixture(scope="module")
def hostile():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        names = {"title": SCRIPT + QUOTES, "target": TURNED + LONG, "group_name": QUOTES, "model_file": SCRIPT}
        return job(HOSTILE, HOSTILE[::-1], depth=3, names=HOSTILE[:3], **names)[0]


def test_sections_in_order(made):
    page = Page(facts_html(made[0]))
    ids = ["asked", "reached", "accuracy", "tree", "next", "made", "parameters"]
    assert [attrs["id"] for attrs in page.of("h2")] == ids
    text = page.text()
    parts = ["What was asked", "What was reached", "How accurate", "A tree that", "What to do next"]
    parts += ["How it was made", "Parameters"]
    places = [text.index(part) for part in parts]
    assert places == sorted(places)
    assert "61.0%" in text and "52.0% to 70.0%" in text and "Why not 100%" in text


def test_every_total_is_there_with_what_was_asked(made):
    facts, _, _ = made
    page = facts_html(facts)
    table = page[page.index('class="matrix"') : page.index("</table>", page.index('class="matrix"'))]
    cells = re.findall(r"<td><b>([\d\xa0]+)</b> <small>([^<]*)</small> (.*?)<svg", table)
    assert len(cells) == len(facts.totals) == 120
    for (reached, asked, missed), row in zip(cells, facts.totals, strict=True):
        assert int(reached) == row["reached"] and missed == ""
        exact, interval = f"asked {row['low']}", f"asked {row['low']} to {row['high']}"
        assert asked == ("free" if row["group"] == "area 2" else exact if row["low"] == row["high"] else interval)


def test_a_missed_total_is_marked_by_more_than_colour(made):
    facts, _, _ = made
    rows = [dict(row) for row in facts.totals]
    rows[0] |= {"reached": rows[0]["high"] + 3, "deviation": 3}
    page = facts_html(replace(facts, totals=rows))
    assert (
        '<span class="miss">+3</span>' in page and "1 of 117 totals is missed" in page
    )  # the third of 40 groups is free
    assert "Totals are missed:" in page and "&quot;area 0&quot;, &quot;no&quot;" in page


def test_leaves_have_the_numbers_and_rows_of_the_register(made):
    facts, X, tree = made
    page = Page(facts_html(facts)).text()
    for leaf, rows in zip(*np.unique(tree.apply(X), return_counts=True), strict=True):
        label = tree.classes_[tree.tree_.labels[leaf]]
        assert f"leaf {leaf}: {label}" in page
        assert f"leaf {leaf}: {label}; {rows} rows" in page


def test_thousands_in_pictures_are_parted_by_a_space():
    facts = job(["no", "yes"], ["north", "south"], n=8000)[0]
    page = facts_html(facts)
    assert "8\u00a0000 rows" in page and facts.n_labelled >= 1000
    assert "xa0" not in page


def drawn_leaves(rows, classes, n_rows):
    """Lines of each leaf of a tree of depth 1, and what is told where it is pointed at."""
    model = tree_model(complete_tree(1, 1, len(classes)), classes, ["u"])
    facts = fit_facts(model, classes[:1], classes[:1], leaves=[1]).trees[0]
    leaves = {
        node: LeafFacts(leaf.label, sum(counts), counts)
        for (node, leaf), counts in zip(facts.leaves.items(), rows, strict=True)
    }
    picture = tree_svg(replace(facts, leaves=leaves), "t", n_rows)
    parts = [part.partition("</g>")[0] for part in picture.split('<g class="leaf">')[1:]]
    return [
        (re.findall("<text[^>]*>([^<]*)</text>", part), re.findall("<title>(.*)</title>", part)[0]) for part in parts
    ]


def test_counts_of_leaves_are_never_cut():
    (large, told), (small, _) = drawn_leaves([[2000, 763, 400], [12_345_678, 0, 0]], ["no", "perhaps", "yes"], 31_630)
    assert large[1] == "3\u00a0163 rows, 10.0% of all" and "; 3\u00a0163 rows, 10.0% of all; " in told
    assert small[1].startswith("12\u00a0345\u00a0678 rows")
    # digits stay where names have to be cut, and where the two counts do not fit into one line
    (large, told), (small, _) = drawn_leaves([[10**17, 10**17, 0], [0, 1, 1]], [LONG, "W" * 300, TURNED], 2 * 10**17)
    assert large[1:3] == ["200" + "\u00a0000" * 5 + " rows", "100.0% of all"]
    assert large[0].startswith("leaf 1: W") and "…" in large[0]
    assert [line.startswith("50.0% ") for line in large[3:]] == [True, True]
    assert "; 200" + "\u00a0000" * 5 + " rows, 100.0% of all; " in told and len(told) < 500
    assert not any("xa0" in line for line in [*large, *small, told])


def test_all_classes_of_a_leaf_are_told_where_there_is_room():
    (few, _), (three, _) = drawn_leaves([[9, 1, 0], [696, 204, 100]], ["works", "learns", "unemployed"], 1010)
    assert few[2:] == ["90.0% works, 10.0% learns"]
    assert three[2:] == ["69.6% works, 20.4% learns,", "10.0% unemployed"]
    (three, _), _ = drawn_leaves([[696, 204, 100], [1, 1, 1]], ["employed", "unemployed", "inactive"], 1003)
    assert three[2:] == ["69.6% employed, 20.4% unemployed,", "10.0% inactive"]
    names = [f"a class with the number {k}" for k in range(9)]
    (many, _), _ = drawn_leaves([list(range(19, 10, -1)), [1] * 9], names, 200)
    assert len(many) == 5 and many[2].startswith("14.1% a class") and many[4].endswith(", …")


def test_it_loads_nothing_and_runs_nothing(made, hostile):
    for facts in (made[0], hostile):
        page = Page(facts_html(facts))
        assert {tag for tag, _ in page.elements} <= KNOWN
        for _, attrs in page.elements:
            assert not [key for key in attrs if key.startswith("on")]
            assert not {"href", "src", "srcset", "xlink:href", "action", "data", "background"} & set(attrs)
        style = facts_html(facts).partition("<style>")[2].partition("</style>")[0]
        assert "url(" not in style and "@import" not in style
        (policy,) = [m["content"] for m in page.of("meta") if m.get("http-equiv") == "Content-Security-Policy"]
        assert "default-src 'none'" in policy and "script" not in policy


def test_hostile_names_are_text(hostile):
    page = Page(facts_html(hostile))
    text = page.text()
    assert SCRIPT in text and "<b>bold</b>" in text and "\\u202e" in text
    raw = facts_html(hostile)
    assert not re.search("[\u202a-\u202e\u2066-\u2069\x1b]", raw)
    outside = Page(re.sub("<pre>.*?</pre>", "", raw, flags=re.DOTALL)).text()
    assert printable(LONG).strip() not in outside, "long names are shortened, but for the rules in full"


def test_what_readers_with_screen_readers_need(made):
    page = Page(facts_html(made[0]))
    assert page.of("html")[0]["lang"] == "en" and page.of("title")
    ids = [attrs["id"] for _, attrs in page.elements if "id" in attrs]
    assert len(ids) == len(set(ids))
    for tag, attrs in page.elements:
        if tag == "svg":
            assert attrs.get("aria-hidden") == "true" or attrs["aria-labelledby"] in ids
        if tag == "th":
            assert attrs["scope"] in ("row", "col")
        if attrs.get("role") == "region":
            assert attrs["aria-label"] and attrs["tabindex"] == "0"
    assert len(page.of("caption")) == len(page.of("table"))


def test_a_tree_with_too_many_leaves_is_drawn_in_part_and_written_in_full():
    model = tree_model(complete_tree(8, 2, 2), ["a", "b"], ["u", "v"])
    X = np.random.default_rng(0).random((500, 2))
    facts = fit_facts(model, model.predict(X), model.predict(X), leaves=model.apply(X))
    page = facts_html(facts)
    assert page.count('class="leaf"') <= _ENDS
    assert "4 more leaves" in page
    assert page.partition("<pre>")[2].partition("</pre>")[0].count("leaf ") == 256


def test_a_tree_that_is_one_leaf():
    model = tree_model(Tree.leaf([2.0, 0.0], n_features=1), ["a", "b"], ["u"])
    page = Page(fit_report(model, ["a", None], ["a", "a"], leaves=[0, 0], form="html"))
    assert "leaf 0: a; 2 rows, 100.0% of all; given labels: 100.0% a" in page.text()


@pytest.fixture(scope="module")
def fitted():
    X, y = np.arange(10.0)[:, None], np.array(["no"] * 3 + [None] * 4 + ["yes"] * 3, dtype=object)
    known = np.not_equal(y, None)
    return OCTHClassifier(max_depth=1, random_state=0).fit(X[known], y[known].astype(str)), X, y


def test_a_model_that_is_a_tree(fitted):
    model, X, y = fitted
    page = Page(fit_report(model, y, model.predict(X), title="A title", totals={"yes": 2}, form="html"))
    text = page.text()
    assert page.text().startswith("A title") and "of the labels that the fit has seen" in text
    assert "The fit has seen these labels" in text and "does not know totals" in text
    assert "Proven optimal" in text and "leaf" not in text.partition("The tree")[2].partition("Bars")[0]


def test_forms(fitted):
    model, X, y = fitted
    assert not fit_report(model, y, model.predict(X)).startswith("<")
    with pytest.raises(ValueError, match="form is 'pdf'; expected 'text' or 'html'"):
        fit_report(model, y, model.predict(X), form="pdf")
    assert fit_report(model, y, model.predict(X), form="html") == fit_report(model, y, model.predict(X), form="html")


def test_several_trees_are_several_pictures(fitted):
    model, X, y = fitted
    facts = fit_facts(model, y, model.predict(X))
    twice = replace(facts, trees=[replace(facts.trees[0], title=f"{c} against all others") for c in "ab"])
    page = Page(facts_html(twice))
    assert sum(attrs.get("role") == "img" for attrs in page.of("svg")) == 2
    assert "a against all others" in page.text()


def test_text_and_page_say_the_same(made):
    facts, _, _ = made
    text, page = " ".join(facts_text(facts).split()), Page(facts_html(facts)).text()
    said = text.partition("What to do next")[2].partition("How it was made")[0]
    for sentence in said.split(" - ")[1:]:
        assert sentence.strip() in page
    assert "time_limit=" in text and "time_limit=" in page


def test_labels_report_takes_the_form():
    X, y = np.arange(6.0)[:, None], np.array(["no", None, None, None, None, "yes"], dtype=object)
    model = TotalsClassifier(LogisticRegression()).fit(X, y, totals={"yes": 1})
    page = Page(labels_report(model, y, model.transduction_, form="html"))
    text = page.text()
    assert "class asked reached difference no 3 3 0 yes 1 1 0" in text
    assert "It is not known: no labels were left out (it was not asked for)" in text
    assert "A tree" not in text


def test_status_of_the_tree_is_told():
    model = tree_model(complete_tree(1, 1, 2), ["a", "b"], ["u"], record("time_limit", "the time was over"))
    page = Page(fit_report(model, ["a", "b"], ["a", "b"], form="html")).text()
    assert "Stopped at the time limit" in page and "why the time was over" in page


def test_a_condition_that_is_cut_keeps_its_threshold():
    pieces = [f"{'+ ' if i else ''}0.{i}5*a_feature_with_a_name_{i}" for i in range(12)] + ["- last_feature <= 12.75"]
    lines = _wrapped(pieces, 190.0)
    assert len(lines) == _LINES and lines[-1] == "<= 12.75" and lines[-2].endswith("…")
