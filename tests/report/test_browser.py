"""The report as people see it, in Debian's chromium: `.ci/run` installs it, elsewhere these tests are skipped."""

import os
import warnings

import numpy as np
import pytest
from chromium import Chromium, found
from pages import BREAKS, HOSTILE, QUOTES, SCRIPT, complete_tree, job, record, tree_model

from treewright.report import facts_html, fit_report

WIDTHS = [1280, 400]


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    if found() is None:
        reason = "chromium is not installed (apt-get install chromium)"
        pytest.fail(reason) if os.environ.get("TREEWRIGHT_NEED_CHROMIUM") else pytest.skip(reason)
    browser = Chromium(tmp_path_factory.mktemp("profile"))
    yield browser
    browser.close()


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    """A register of many groups with hostile names and a tree of 16 leaves; one of few; a model that is a wide tree."""
    folder = tmp_path_factory.mktemp("pages")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        names = {"title": f"Labels of {SCRIPT}", "target": QUOTES, "group_name": BREAKS, "model_file": SCRIPT}
        groups = [*HOSTILE, *(f"area {i}" for i in range(34))]
        facts, _, _ = job(HOSTILE[:5], groups, n=800, names=HOSTILE[:3], **names)
        (folder / "register.html").write_text(facts_html(facts), encoding="utf-8")
        areas = ["Nord", "Süd", "Ost", "West", "Mitte"]
        facts, _, _ = job(["employed", "unemployed", "inactive"], areas, n=31_500, depth=3, totals_of="all")
        (folder / "areas.html").write_text(facts_html(facts), encoding="utf-8")
        model = tree_model(complete_tree(5, 3, 2), ["no", "yes"], ["age", "education", "income"], record("time_limit"))
        X = np.random.default_rng(0).random((300, 3))
        page = fit_report(model, model.predict(X), model.predict(X), leaves=model.apply(X), form="html")
        (folder / "tree.html").write_text(page, encoding="utf-8")
    return folder


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("name", ["register.html", "tree.html", "areas.html"])
def test_one_request_and_no_scrolling_of_the_page(browser, pages, name, width):
    path = pages / name
    assert browser.open(path, width) == [path.as_uri()]
    wide, inner = browser.value("[document.scrollingElement.scrollWidth, innerWidth]")
    assert inner == width and wide <= width
    # what is wider scrolls in its own box, and no text is cut off anywhere else
    boxes = browser.value("[...document.querySelectorAll('.scroll')].map(b => [b.clientWidth, b.scrollWidth])")
    assert all(client <= width for client, _ in boxes)
    assert width > 400 or any(content > client for client, content in boxes)
    out = browser.value(
        "[...document.querySelectorAll('h1, h2, h3, p, li, dd, summary')].filter(e => "
        "e.getBoundingClientRect().right > innerWidth + 1 || e.scrollWidth > e.clientWidth + 1).length"
    )
    assert out == 0


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("name", ["register.html", "areas.html"])
def test_what_is_said_of_a_total_stays_in_its_cell(browser, pages, name, width):
    browser.open(pages / name, width)
    assert browser.value("[...document.querySelectorAll('.matrix td small')].some(e => e.textContent.length > 8)")
    outside = browser.value(
        """[...document.querySelectorAll('.matrix td')].flatMap(cell => {
            const right = cell.getBoundingClientRect().right;
            return [...cell.querySelectorAll('b, small, span')].filter(e => e.getBoundingClientRect().right > right)
                .map(e => e.textContent);
        })"""
    )
    assert outside == []


def test_hostile_names_are_seen_as_text(browser, pages):
    browser.open(pages / "register.html", 1280)
    assert browser.value("document.title").startswith("Labels of <script>")
    assert browser.value("document.querySelectorAll('script, img, iframe, b b, a').length") == 0
    text = browser.value("document.body.innerText")
    assert SCRIPT in text and "<b>bold</b>" in text and "\\u202eturned" in text
    assert [browser.value(f"document.getElementById('{key}') !== null") for key in ("asked", "next", "made")] == [
        True
    ] * 3


def test_a_script_would_not_run(browser, pages, tmp_path):
    page = (pages / "tree.html").read_text(encoding="utf-8")
    copy = tmp_path / "copy.html"
    copy.write_text(page.replace("</main>", "<script>document.title = 'obeyed'</script></main>"), encoding="utf-8")
    browser.open(copy, 1280)
    assert browser.value("document.querySelectorAll('script').length") == 1
    assert browser.value("document.title") == "OCTHClassifier"


@pytest.mark.parametrize("name", ["register.html", "tree.html", "areas.html"])
def test_texts_of_the_tree_are_in_their_boxes_and_boxes_apart(browser, pages, name):
    browser.open(pages / name, 1280)
    outside = browser.value(
        """[...document.querySelectorAll('.tree g')].flatMap(g => {
            const box = g.querySelector('rect').getBBox();
            return [...g.querySelectorAll('text')].filter(t => {
                const b = t.getBBox();
                return b.x < box.x || b.x + b.width > box.x + box.width || b.y < box.y
                    || b.y + b.height > box.y + box.height;
            }).map(t => t.textContent);
        })"""
    )
    assert outside == []
    boxes = browser.value(
        "[...document.querySelectorAll('.tree g > rect:first-of-type')].map(r => { const b = r.getBBox();"
        " return [b.x, b.y, b.x + b.width, b.y + b.height]; })"
    )
    assert len(boxes) in (15, 31, 63)
    a, b = np.array(boxes)[:, None], np.array(boxes)[None]
    apart = (a[..., 2] <= b[..., 0]) | (b[..., 2] <= a[..., 0]) | (a[..., 3] <= b[..., 1]) | (b[..., 3] <= a[..., 1])
    assert (apart | np.eye(len(boxes), dtype=bool)).all()


def test_contrast_of_all_text(browser, pages):
    browser.open(pages / "register.html", 1280)
    colors = browser.value(
        """[...new Set([...document.querySelectorAll('body *')].filter(e =>
            [...e.childNodes].some(n => n.nodeType === 3 && n.textContent.trim())
        ).map(e => e.tagName === 'text' ? getComputedStyle(e).fill : getComputedStyle(e).color))]"""
    )
    assert len(colors) >= 4
    paper = luminance("rgb(238, 242, 246)")  # the darkest that text stands on
    for color in colors:
        assert (paper + 0.05) / (luminance(color) + 0.05) >= 4.5, color


def luminance(color):
    """As the guidelines for accessible content define it."""
    parts = np.array([float(v) for v in color.removeprefix("rgb(").removesuffix(")").split(",")]) / 255
    linear = np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)
    return float(linear @ [0.2126, 0.7152, 0.0722])
