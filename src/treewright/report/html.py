"""A report as one HTML file that needs nothing else: no script, no request, styles and pictures inside."""

from __future__ import annotations

import html
from collections.abc import Sequence
from importlib.resources import files
from typing import Any

from treewright._version import __version__
from treewright.core.names import counted, printable, shortened
from treewright.report.advice import advice
from treewright.report.facts import Facts
from treewright.report.svg import class_color, interval_svg, share_bar, total_bar, tree_svg
from treewright.report.words import (
    INTERRUPTED,
    KEPT,
    LEAF_COLUMN,
    NEW_TREE,
    NOT_TRAINING,
    SEEN,
    STATUS_WORDS,
    SUBTRACTED,
    asked_totals,
    asked_words,
    assumed_words,
    difference_words,
    group_sizes,
    largest_words,
    left_out_words,
    margin_words,
    new_accuracy_words,
    office_words,
    spaced,
    totals_words,
    unless_words,
)
from treewright.report.words import page_text as _text

__all__ = ["facts_html"]

_POLICY = "default-src 'none'; style-src 'unsafe-inline'"
"""What the browser is told: whatever a name may be, nothing is run and nothing is loaded."""
_NAME, _FULL = 48, 400
"""Characters of a name, and of the name in full where it is pointed at."""
_GROUP, _COLUMN = 32, 138
"""Characters of the name of a group, and pixels of a class in a table of totals by group."""
_GROUPS = 300
"""Most groups of a table of totals."""
_CLASSES = 16
"""Most classes of a legend."""


def facts_html(facts: Facts) -> str:
    """Write the facts of a report as a page.

    Parameters
    ----------
    facts : Facts
        What the report says.

    Returns
    -------
    str
        The whole file, ending in a line end.
    """
    tree = NEW_TREE if facts.changes else "A tree that explains the labels" if facts.explains else "The tree"
    sections = [
        ("asked", "What was asked", _asked(facts)),
        ("reached", "What was reached", _reached(facts)),
        ("warnings", "Warnings", _warnings(facts)),
        ("changed", "What changed since the fit", _changed(facts)),
        ("accuracy", "How accurate it is likely to be", _accuracy(facts)),
        ("tree", tree, _trees(facts)),
        ("next", "What to do next", _next(facts)),
        ("made", "How it was made", _made(facts)),
        ("parameters", "Parameters", _parameters(facts)),
    ]
    body = "\n".join(
        f'<section aria-labelledby="{key}"><h2 id="{key}">{heading}</h2>\n{content}</section>'
        for key, heading, content in sections
        if content
    )
    style = files("treewright.report").joinpath("page.css").read_text(encoding="utf-8")
    title = html.escape(shortened(facts.title, 2 * _NAME))
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{_POLICY}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="generator" content="treewright {__version__}">
<title>{title}</title>
<style>
{style}</style>
</head>
<body>
<header><h1>{_name(facts.title, 2 * _NAME)}</h1>
{_cards(facts)}</header>
<main>
{body}
</main>
<footer>Written by treewright {__version__}. This file is complete: it loads nothing and runs nothing.</footer>
</body>
</html>
"""


# ---------------------------------------------------------------------- pieces


def _name(value: object, limit: int = _NAME) -> str:
    """A name that a user gave: kept apart from the text around it, shortened, in full where it is pointed at."""
    shown, whole = shortened(value, limit), shortened(value, _FULL)
    told = "" if shown == whole else f' title="{html.escape(whole)}"'
    return f"<bdi{told}>{html.escape(shown)}</bdi>"


def _rows(n: int) -> str:
    return f"{spaced(n)} {'row' if n == 1 else 'rows'}"


def _table(header: Sequence[str], rows: Sequence[Sequence[str]], caption: str, numeric: Sequence[int] = ()) -> str:
    """A table of cells that are HTML already; the first of each row names it."""
    kinds = [' class="n"' if j in numeric else "" for j in range(len(header))]
    head = "".join(f'<th scope="col"{kind}>{cell}</th>' for cell, kind in zip(header, kinds, strict=True))
    lines = []
    for row in rows:
        bar = [' class="bar"' if cell.startswith("<svg") else kind for cell, kind in zip(row, kinds, strict=True)]
        cells = "".join(f"<td{kind}>{cell}</td>" for cell, kind in zip(row[1:], bar[1:], strict=True))
        lines.append(f'<tr><th scope="row">{row[0]}</th>{cells}</tr>')
    kind = ' class="bars"' if any(cell.startswith("<svg") for row in rows for cell in row) else ""
    return _scroll(
        f"<table{kind}><caption>{caption}</caption><thead><tr>{head}</tr></thead><tbody>{''.join(lines)}</tbody></table>",
        caption,
    )


def _scroll(content: str, label: str, kind: str = "") -> str:
    """A box that scrolls by itself, with the keyboard too, so that the page never does sideways."""
    classes = f"scroll {kind}".strip()
    return f'<div class="{classes}" role="region" tabindex="0" aria-label="{label}">{content}</div>\n'


def _cards(facts: Facts) -> str:
    """The three figures that matter."""
    cards = [(spaced(facts.n_rows), "rows, all with a label")]
    if facts.changes is not None:
        cards = [(spaced(facts.n_hidden), "rows were labelled")]
    elif facts.n_hidden:
        cards = [(spaced(facts.n_hidden), f"rows without a label, of {spaced(facts.n_rows)}")]
    if facts.totals:
        asked = asked_totals(facts.totals)
        met = sum(row["low"] <= row["reached"] <= row["high"] for row in asked)
        cards.append((f"{spaced(met)} of {spaced(len(asked))}", "totals are met"))
    estimate = facts.estimate
    if estimate is not None:
        interval = f"{estimate.level:.0%} interval: {estimate.low:.1%} to {estimate.high:.1%}"
        unless = f", {words}" if (words := unless_words(estimate)) else ""
        cards.append((f"{estimate.value:.1%}", f"of the labels are likely to be right ({interval}){unless}"))
    elif facts.explains and facts.changes is None:
        cards.append(("not known", "how many of the labels are right"))
    elif facts.n_labelled and facts.confusion is not None:
        right = int(facts.confusion.trace())
        cards.append((f"{right / facts.n_labelled:.1%}", "of the labels that the fit has seen are found again"))
    items = "".join(f"<li><b>{figure}</b> <span>{words}</span></li>" for figure, words in cards)
    return f'<ul class="cards">{items}</ul>\n'


# ---------------------------------------------------------------------- asked and reached


def _asked(facts: Facts) -> str:
    labels = f"with a label, {spaced(facts.n_hidden)} without"
    labels += f"; {KEPT}" if facts.changes else ""
    told = facts.changes is None or facts.n_labelled
    pairs = [("target", _name(facts.target))] if facts.target else []
    pairs += [
        ("rows", _rows(facts.n_rows) + (f": {spaced(facts.n_labelled)} {labels}" if told else "")),
        ("classes", ", ".join(map(_name, facts.classes[:_CLASSES])) + (" …" if len(facts.classes) > _CLASSES else "")),
        ("totals", _totals_asked(facts)),
        ("model", _text(facts.model)),
    ]
    shown = "".join(f"<dt>{name}</dt><dd>{value}</dd>" for name, value in pairs)
    if facts.changes is not None:
        return f"<dl>{shown}</dl>\n"
    total = max(1, facts.n_labelled)
    rows = [
        [_name(name), spaced(n), f"{n / total:.1%}", share_bar(n / total, class_color(k))]
        for k, (name, n) in enumerate(zip(facts.classes, facts.given, strict=True))
    ]
    return f"<dl>{shown}</dl>\n" + _table(
        ["class", "labels", "share", ""], rows, "Labels as they were given", numeric=(1, 2)
    )


def _totals_asked(facts: Facts) -> str:
    if not facts.totals:
        return "none were given"
    groups = {(row.get("margin", 0), row["group"]) for row in facts.totals}
    margins = {margin for margin, _ in groups}
    by = f" (by {_name(facts.group_name)})" if facts.group_name else ""
    words = counted(len(facts.classes), "class", "classes")
    if len(margins) > 1:
        names = dict.fromkeys(margin_words(row) for row in facts.totals)
        named = f", by {', '.join(map(_name, names))}" if any("by" in row for row in facts.totals) else ""
        words += f" in {len(groups)} groups of {len(margins)} divisions that cross{named}"
    elif next(iter(groups))[1] is not None:
        words += f" in {'1 group' if len(groups) == 1 else f'each of {len(groups)} groups'}{by}"
    given = "all rows" if facts.subtracted else "the rows without a label"
    words += ", of these rows" if facts.changes and not facts.n_labelled else f", of {given}"
    part = "" if facts.totals_used else f"; {_text(facts.model)} does not know totals, they had no part in the fit"
    return words + part


def _reached(facts: Facts) -> str:
    parts = [_reached_totals(facts)] if facts.totals else []
    if facts.explains and not facts.totals:
        parts.append("<p>No totals were given: each row has the class that fits it best.</p>\n")
    total = max(1, facts.n_rows)
    rows = [
        [_name(name), spaced(n), f"{n / total:.1%}", share_bar(n / total, class_color(k))]
        for k, (name, n) in enumerate(zip(facts.classes, facts.found, strict=True))
    ]
    what = "Labels of all rows, given ones as they are" if facts.explains else "Predictions for all rows"
    what = what.partition(",")[0] if facts.changes else what
    parts.append(_table(["class", "rows", "share", ""], rows, what, numeric=(1, 2)))
    return "".join(parts)


def _reached_totals(facts: Facts) -> str:
    words = totals_words(facts.totals)
    met = all(row["low"] <= row["reached"] <= row["high"] for row in facts.totals)
    summary = f'<p><span class="{"met" if met else "miss"}">{words[:1].upper()}{words[1:]}.</span> '
    whose = "Totals are about the rows without a label. " if not facts.subtracted else f"{SUBTRACTED} "
    summary += "" if facts.changes and not facts.n_labelled else whose
    summary += "A bar is as long as the share of the class among the rows"
    summary += f"{' of its group' if any(row['group'] is not None for row in facts.totals) else ''}."
    summary += "</p>\n"
    legend = (
        '<ul class="legend" aria-hidden="true">'
        f"<li>{total_bar(60, 60, 60, 100)}reached, and a mark where it was asked</li>"
        f"<li>{total_bar(60, 40, 75, 100)}a frame: an interval was asked</li>"
        f"<li>{total_bar(60, 75, 75, 100)}missed</li></ul>\n"
    )
    margins: dict[int, list[dict[str, Any]]] = {}
    for row in facts.totals:
        margins.setdefault(row.get("margin", 0), []).append(row)
    tables = []
    for number, rows in enumerate(margins.values(), start=1):
        more = "" if len(margins) == 1 else f", division {number} of {len(margins)}"
        more = f", by {_name(margin_words(rows[0]))}" if "by" in rows[0] else more
        ungrouped = all(row["group"] is None for row in rows)
        tables.append(_class_totals(rows, more) if ungrouped else _group_totals(facts, rows, more))
    return summary + legend + "".join(tables)


def _class_totals(rows: list[dict[str, Any]], more: str) -> str:
    """A line a class."""
    size = sum(row["reached"] for row in rows)
    whole = all("labelled" in row for row in rows)
    table = [
        [
            _name(row["class"]),
            *([office_words(row, size, spaced), spaced(row["labelled"])] if whole else []),
            asked_words(row, size, spaced),
            spaced(row["reached"]),
            _missed(row) or "0",
            total_bar(row["reached"], row["low"], row["high"], size),
        ]
        for row in rows
    ]
    head = ["class", *(["of all rows", "labelled"] if whole else []), "asked", "reached", "difference", ""]
    return _table(head, table, f"Totals asked and reached{more}", range(1, len(head) - 1))


def _missed(row: dict[str, Any]) -> str:
    difference = difference_words(row)
    return "" if difference == "0" else f'<span class="miss">{difference}</span>'


def _group_totals(facts: Facts, rows: list[dict[str, Any]], more: str) -> str:
    """A line a group and a column a class; those that miss come first where not all are shown."""
    sizes = group_sizes(rows)
    groups: dict[Any, dict[str, dict[str, Any]]] = {}
    for row in rows:
        groups.setdefault((row.get("margin", 0), row["group"]), {})[str(row["class"])] = row
    shown = list(groups)
    if len(shown) > _GROUPS:
        shown = sorted(shown, key=lambda g: (not any(map(_missed, groups[g].values())), -sizes[g]))[:_GROUPS]
        more += f"; {_GROUPS} of {len(groups)} groups, those that miss first, then the largest"
    lines = []
    for key in shown:
        cells = [_total_cell(groups[key][name], sizes[key]) for name in facts.classes]
        group = f"{_name(key[1], _GROUP)}<br><small>{_rows(sizes[key])}</small>"
        lines.append(f'<tr><th scope="row">{group}</th>{"".join(cells)}</tr>')
    column = rows[0].get("by") or facts.group_name
    what = _name(column) if column else "group"
    head = "".join(f'<th scope="col">{_name(name)}</th>' for name in facts.classes)
    wide = _COLUMN * (len(facts.classes) + 1)
    caption = f"Totals asked and reached{more}"
    head = f'<thead><tr><th scope="col">{what}</th>{head}</tr></thead>'
    table = f'<table class="matrix" style="min-width:{wide}px"><caption>{caption}</caption>{head}'
    return _scroll(f"{table}<tbody>{''.join(lines)}</tbody></table>", "Totals by group")


def _total_cell(row: dict[str, Any], size: int) -> str:
    asked = asked_words(row, size, spaced)
    free = asked.endswith("(free)")
    words = "free" if free else f"asked {asked}"
    if "labelled" in row and not free:
        words += f": {office_words(row, size, spaced)} less {spaced(row['labelled'])} labelled"
    bar = total_bar(row["reached"], row["low"], row["high"], size)
    return f"<td><b>{spaced(row['reached'])}</b> <small>{words}</small> {_missed(row)}{bar}</td>"


# ---------------------------------------------------------------------- accuracy


def _warnings(facts: Facts) -> str:
    lines = "".join(f"<li>{_text(text)}</li>" for text in facts.warnings)
    return f'<ul class="warnings">{lines}</ul>\n' if lines else ""


def _changed(facts: Facts) -> str:
    """What is different from the rows of the fit, of new ones."""
    changes = facts.changes
    if changes is None:
        return ""
    parts, now = [], max(1, facts.n_rows)
    head = ["at the fit", "share", "", "now", "share", ""]
    if changes.then is not None:
        then = max(1, sum(changes.then))
        pairs = enumerate(zip(facts.classes, changes.then, facts.found, strict=True))
        rows = [[_name(name), *_then_and_now(a / then, a, b / now, b, class_color(k))] for k, (name, a, b) in pairs]
        parts.append(_table(["class", *head], rows, "Classes at the fit and now", numeric=(1, 2, 4, 5)))
    parts += [f"<ul>{''.join(f'<li>{_text(note)}</li>' for note in changes.notes)}</ul>\n"] if changes.notes else []
    if changes.leaves:
        then = max(1, sum(leaf[2] for leaf in changes.leaves))
        color = {name: class_color(k) for k, name in enumerate(facts.classes)}
        rows = [
            [f"leaf {number}: {_name(label)}", *_then_and_now(a / then, a, b / now, b, color[label])]
            for number, label, a, b in changes.leaves
        ]
        parts.append(_table(["leaf", *head], rows, "Leaves of the tree at the fit and now", numeric=(1, 2, 4, 5)))
    return "".join(parts) or "<p>Nothing is known of the rows of the fit.</p>\n"


def _then_and_now(before: float, then: int, after: float, now: int, color: str) -> list[str]:
    return [
        spaced(then),
        f"{before:.1%}",
        share_bar(before, color),
        spaced(now),
        f"{after:.1%}",
        share_bar(after, color),
    ]


def _accuracy(facts: Facts) -> str:
    if facts.changes is not None:
        return f"<p>{new_accuracy_words(facts.changes.estimated)}</p>\n"
    return _estimated(facts) if facts.explains else _seen(facts)


def _estimated(facts: Facts) -> str:
    estimate = facts.estimate
    if estimate is None:
        reason = f"no labels were left out ({_text(facts.no_estimate)})"
        reason = INTERRUPTED if facts.no_estimate == INTERRUPTED else reason
        return f"<p>It is not known: {reason}. The accuracy on given labels is no guess at it: {NOT_TRAINING}</p>\n"
    unless = f", {words}" if (words := unless_words(estimate)) else ""
    parts = [
        f"<p><b>{estimate.value:.1%}</b> of the labels of the rows without one are likely to be right; the "
        f"{estimate.level:.0%} interval is <b>{estimate.low:.1%} to {estimate.high:.1%}</b>{unless}.</p>\n",
        f'<div style="max-width:640px">{interval_svg(estimate.value, estimate.low, estimate.high)}'
        '<p class="muted" style="display:flex;justify-content:space-between;margin:0">'
        "<span>0%</span><span>50%</span><span>100%</span></p></div>\n",
        f"<h3>Why {'not 100%' if estimate.value < 1 else 'that is no proof'}</h3>\n<ul>",
    ]
    more = f" With more time ({facts.option('time_limit')}) all are." if estimate.short else ""
    told = left_out_words(estimate, spaced).replace(" left out", " were left out")
    counting, alike = assumed_words(estimate)
    why = [
        f"{told[:1].upper()}{told[1:]} and found again without them.{more} What was found "
        "wrong there is what to expect of the other rows.",
        f"{counting} A class of which fewer are found lowers the whole as far as it is frequent.",
        alike,
        f"The accuracy on given labels is another thing: {NOT_TRAINING}",
    ]
    if facts.totals:
        why.insert(0, "Totals are counts: that they are met says how many rows have each class, and not which.")
    parts += [f"<li>{_text(line)}</li>" for line in why]
    rows = [
        [_name(name), spaced(n), f"{share:.1%}", share_bar(share, class_color(k))]
        for k, (name, n, share) in enumerate(zip(facts.classes, facts.left_out, facts.recall, strict=True))
        if share is not None
    ]
    heads = ["class", "labels left out", "found", ""]
    table = _table(heads, rows, "Labels found when they were left out", numeric=(1, 2))
    return "".join(parts) + "</ul>\n" + table


def _seen(facts: Facts) -> str:
    """The accuracy on training rows, said to be that."""
    counts = facts.confusion
    if counts is None or not facts.n_labelled:
        return "<p>No row has a label to compare with.</p>\n"
    right = int(counts.trace())
    rows = [[_name(name), *map(spaced, row)] for name, row in zip(facts.classes, counts.tolist(), strict=True)]
    return (
        f"<p>{spaced(right)} of {spaced(facts.n_labelled)} rows with a label are predicted as they are labelled "
        f"({right / facts.n_labelled:.1%}). {_text(SEEN)} "
        f"{_text(largest_words(facts.classes, facts.given))}</p>\n"
    ) + _table(
        ["", *map(_name, facts.classes)],
        rows,
        "Rows with a label: what they are (down) and what is predicted (across)",
        numeric=range(1, len(rows) + 1),
    )


# ---------------------------------------------------------------------- tree, advice, parameters


def _trees(facts: Facts) -> str:
    if not facts.trees:
        return ""
    parts = []
    if facts.agreed is not None and facts.changes is not None:
        share = f"<b>{facts.agreed[0] / max(1, facts.n_rows):.1%}</b>"
        parts.append(
            f"<p>It agrees with the labels on {spaced(facts.agreed[0])} of {_rows(facts.n_rows)} ({share}). It is the "
            "labels that meet the totals; the tree is for reading.</p>\n"
        )
    elif facts.agreed is not None:
        agreed, right = facts.agreed
        parts.append(
            f"<p>It agrees with the labels on {spaced(agreed)} of {spaced(facts.n_hidden)} rows without a label "
            f"(<b>{agreed / max(1, facts.n_hidden):.1%}</b>), and with {spaced(right)} of {spaced(facts.n_labelled)} "
            "given labels. It is the labels that meet the totals; the tree is for reading.</p>\n"
        )
    elif facts.record.status in STATUS_WORDS:
        parts.append(f"<p>{_text(_sentence(STATUS_WORDS[facts.record.status]))}</p>\n")
    if facts.n_voting > 1:
        parts.append(f"<p>This is the first of {facts.n_voting} trees, which vote.</p>\n")
    numbered = any(leaf.rows is not None for leaf in facts.trees[0].leaves.values())
    parts.append(f"<p>{_text(LEAF_COLUMN)} " if numbered else "<p>")
    parts.append(
        f"Read from the left: where a condition holds, follow “yes”. Bars in the leaves: "
        f"{_text(facts.trees[0].counted)}, by class.</p>\n"
    )
    parts.append("".join(f"<p>{_text(note)}</p>\n" for note in facts.tree_notes))
    for number, tree in enumerate(facts.trees):
        if tree.title:
            parts.append(f"<h3>{_name(tree.title, 2 * _NAME)}</h3>\n")
        else:
            parts.append(_legend(tree.classes))
        picture = tree_svg(tree, f"tree{number}", facts.n_rows if numbered else None)
        parts.append(_scroll(picture, "Picture of the tree", "tree"))
    rules = html.escape("\n".join(printable(line) for line in facts.trees[0].rules.splitlines()))
    parts.append(f"<details><summary>The same as text</summary><pre>{rules}</pre></details>\n")
    return "".join(parts)


def _legend(classes: list[str]) -> str:
    shown = [
        f'<li><svg class="swatch" viewBox="0 0 14 12" aria-hidden="true"><rect width="14" height="12" '
        f'fill="{class_color(k)}"/></svg>{_name(name)}</li>'
        for k, name in enumerate(classes[:_CLASSES])
    ]
    more = "<li>…</li>" if len(classes) > _CLASSES else ""
    return f'<ul class="legend">{"".join(shown)}{more}</ul>\n'


def _sentence(words: str) -> str:
    return f"{words[:1].upper()}{words[1:]}."


def _next(facts: Facts) -> str:
    said = advice(facts)
    lines = [f"<li>{_text(text)}{f'<pre>{_text(command)}</pre>' if command else ''}</li>" for text, command in said]
    return f'<ol class="next">{"".join(lines)}</ol>\n' if lines else ""


def _made(facts: Facts) -> str:
    return f"<dl>{''.join(f'<dt>{_text(name)}</dt><dd>{_text(words)}</dd>' for name, words in facts.making)}</dl>\n"


def _parameters(facts: Facts) -> str:
    parts = []
    for name, pairs in facts.parameters:
        items = "".join(f"<li><code>{_text(key)}={_text(shortened(value, _FULL))}</code></li>" for key, value in pairs)
        parts.append(f'<h3>{_text(name)}</h3>\n<ul class="parameters">{items}</ul>\n')
    return "".join(parts)
