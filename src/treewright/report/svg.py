"""Pictures of a report as SVG: a tree from its root at the left to its leaves at the right, and bars."""

from __future__ import annotations

import html
import math
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from treewright.core.arrays import FloatArray, IntArray
from treewright.core.names import counted, shortened
from treewright.report.trees import TreeFacts
from treewright.report.words import page_text, spaced
from treewright.tree.structure import LEAF
from treewright.tree.text import read_children

__all__ = ["class_color", "interval_svg", "share_bar", "text_width", "total_bar", "tree_svg"]

_COLORS = ("#1f6fb4", "#d9730d", "#2f8f5b", "#b4519c", "#c9a20a", "#4aa3d9", "#8a5a3b", "#6a51a3")
_OTHER = "#8d99a5"
_INK, _LINE = "#1c2733", "#8493a1"

_ENDS = 64
"""Most leaves that are drawn; of larger trees the upper part is."""
_LINES = 7
"""Most lines of a condition."""
_SIGNS = ("<=", "<", ">", ">=")
_SIZE, _STEP, _PAD = 13.0, 17.0, 9.0
_SPACE = 10.0
"""Room between leaves."""
_WIDE, _NARROW, _DEEP = (208.0, 56.0, 300.0), (170.0, 46.0, 266.0), 4
"""Widths of a condition, of branches behind it and of a leaf; of trees of this depth and deeper the narrower ones."""
_SHARE_LINES = 3
"""Most lines of the shares of a leaf."""
_FULL = 400
"""Characters of a text that is shown in full where it is pointed at."""


def class_color(k: int) -> str:
    """Colour of a class in a report; beyond those there are, grey."""
    return _COLORS[k] if k < len(_COLORS) else _OTHER


# ---------------------------------------------------------------------- text


def text_width(text: str, size: float = _SIZE) -> float:
    """Width of a text in a picture of a report in pixels, rather too much than too little: of a wide sans-serif.

    Examples
    --------
    >>> text_width("ill") < text_width("MWM"), text_width("") == 0
    (True, True)
    """
    return sum(map(_em, text)) * size


def _em(c: str) -> float:
    if c in "iljtfrI.,:;'|!()[]{} -`/":
        return 0.42
    if c in "mwMW@%&" or unicodedata.east_asian_width(c) in "WF":
        return 1.02
    return 0.78 if c.isupper() or ord(c) > 0x250 else 0.65


def _fitted(text: str, width: float) -> str:
    """A text that is not wider, its middle left out where it would be."""
    limit = len(text)
    while limit > 3 and text_width(shortened(text, limit)) > width:
        limit = min(limit - 1, int(limit * width / text_width(shortened(text, limit))) + 1)
    return shortened(text, limit)


def _wrapped(pieces: Sequence[str], width: float) -> list[str]:
    """Words in lines that fit, a few at most."""
    lines: list[str] = []
    for piece in pieces:
        # a sign stays with what it is the sign of, and a term is rather begun on a new line than broken
        words = piece.split(" ")
        if words[0] in ("+", "-") and len(words) > 1:
            words[:2] = [f"{words[0]} {words[1]}"]
        start = lines.pop() if lines and text_width(f"{lines[-1]} {piece}") <= width else ""
        for word in words:
            longer = f"{start} {word}" if start else word
            if start and text_width(longer) > width:
                lines.append(start)
                longer = word
            start = _fitted(longer, width)
        lines.append(start)
    if len(lines) > _LINES:
        # whatever is cut, the threshold stays: it is at the end, but for what it is in other cases
        compared = [piece for piece in pieces if any(f" {sign} " in piece for sign in _SIGNS)]
        sign = max(compared[0].rfind(f" {sign} ") for sign in _SIGNS) if compared else -1
        end = [_fitted(compared[0][sign + 1 :], width)] if sign >= 0 else []
        lines = lines[: _LINES - len(end)]
        while " " in lines[-1] and text_width(f"{lines[-1]} …") > width:
            lines[-1] = lines[-1].rpartition(" ")[0]
        lines[-1] = _fitted(lines[-1], width - text_width(" …")) + " …"
        lines += end
    return lines


def _text(x: float, y: float, text: str, more: str = "") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}"{more}>{page_text(text)}</text>'


# ---------------------------------------------------------------------- the tree


@dataclass(frozen=True)
class _End:
    """What is written in a leaf, or for what is below a node and not drawn: in lines, and in full."""

    heading: str
    amount: list[str]
    shares: list[str]
    full: str
    color: str
    width: float

    @property
    def height(self) -> float:
        """Height of its box."""
        return (1 + len(self.amount) + len(self.shares)) * _STEP + 12.0 + 2 * _PAD

    @property
    def inner(self) -> float:
        """Width of what is written in it."""
        return self.width - 2 * _PAD - 6


@dataclass(frozen=True, eq=False)
class _Layout:
    """Which nodes are drawn, and where: the left edge and the middle of each; and what is written in the ends."""

    nodes: list[int]
    end: dict[int, _End]
    left: list[int]
    right: list[int]
    depth: int
    x: FloatArray
    y: FloatArray
    node: float
    gap: float
    rows: FloatArray
    n_leaves: IntArray
    width: float
    height: float


def tree_svg(facts: TreeFacts, ident: str, n_rows: int | None) -> str:
    """Draw a tree for a report.

    Parameters
    ----------
    facts : TreeFacts
        The tree, its conditions in words and what is in its leaves.
    ident : str
        What ids in the picture begin with; no two pictures of a page have the same.
    n_rows : int or None
        Rows of the table, of which the shares of leaves are told.

    Returns
    -------
    str
        An ``svg`` element.
    """
    place = _layout(facts, n_rows)
    edges = [_edge(place, node, child, yes) for node in place.nodes for child, yes in _children(place, node)]
    boxes = [_end(facts, place, node) if node in place.end else _split(facts, place, node) for node in place.nodes]
    n_leaves = int(place.n_leaves[place.nodes[0]])
    name = f"Decision tree with {counted(n_leaves, 'leaf', 'leaves')} and depth {place.depth}"
    return (
        f'<svg role="img" aria-labelledby="{ident}-title" width="{place.width:.0f}" height="{place.height:.0f}" '
        f'viewBox="0 0 {place.width:.0f} {place.height:.0f}" font-size="{_SIZE:g}" fill="{_INK}">'
        f'<title id="{ident}-title">{html.escape(name)}; the rules are written out below the picture</title>'
        f"{''.join(edges)}{''.join(boxes)}</svg>"
    )


def _children(place: _Layout, node: int) -> list[tuple[int, bool]]:
    return [] if node in place.end else [(place.left[node], True), (place.right[node], False)]


def _layout(facts: TreeFacts, n_rows: int | None) -> _Layout:
    tree = facts.tree
    root, left, right = read_children(tree, facts.words)
    depth, n_leaves, rows = [-1] * tree.n_nodes, [1] * tree.n_nodes, [0.0] * tree.n_nodes
    depth[root] = 0
    for node in range(tree.n_nodes):  # children are numbered after their parent
        for child in (left[node], right[node]) if left[node] != LEAF and depth[node] >= 0 else ():
            depth[child] = depth[node] + 1
    for node in range(tree.n_nodes)[::-1]:
        if left[node] == LEAF:
            leaf = facts.leaves[node]
            rows[node] = sum(leaf.counts) if leaf.rows is None else leaf.rows
        else:
            n_leaves[node] = n_leaves[left[node]] + n_leaves[right[node]]
            rows[node] = rows[left[node]] + rows[right[node]]
    drawn = [node for node in range(tree.n_nodes) if depth[node] >= 0]
    deepest = _drawn_depth([depth[node] for node in drawn], [left[node] == LEAF for node in drawn])
    column = min(deepest, max(depth))
    wide, gap, end_width = _NARROW if column >= _DEEP else _WIDE
    order, end, todo = [], {}, [root]
    while todo:
        node = todo.pop()
        order.append(node)
        if left[node] == LEAF or depth[node] == deepest:
            end[node] = _end_words(facts, node, rows[node], n_leaves[node], n_rows, end_width)
        else:
            todo += [right[node], left[node]]
    y, at = np.zeros(tree.n_nodes), _SPACE / 2
    for node in order:
        if node in end:
            y[node], at = at + end[node].height / 2, at + end[node].height + _SPACE
    for node in order[::-1]:
        if node not in end:
            y[node] = (y[left[node]] + y[right[node]]) / 2
    x = np.array([column if node in end else depth[node] for node in range(tree.n_nodes)]) * (wide + gap) + 1.0
    width = column * (wide + gap) + end_width + 2.0
    return _Layout(order, end, left, right, max(depth), x, y, wide, gap, np.array(rows), np.array(n_leaves), width, at)


def _drawn_depth(depth: list[int], leaf: list[bool]) -> int:
    """The depth down to which a tree has few enough ends to be drawn, at least 1."""
    found = 1
    for level in range(1, max(depth) + 1):
        ends = sum(d == level or (d < level and is_leaf) for d, is_leaf in zip(depth, leaf, strict=True))
        if ends > _ENDS:
            break
        found = level
    return found


def _edge(place: _Layout, node: int, child: int, yes: bool) -> str:
    """A branch, as thick as its share of the rows."""
    x, y = float(place.x[node]) + place.node, float(place.y[node])
    turn, to, end = x + place.gap, float(place.y[child]), float(place.x[child])
    root = place.nodes[0]
    share = place.rows[child] / place.rows[root] if place.rows[root] else 0.0
    half = (x + turn) / 2
    path = f"M{x:.1f} {y:.1f}C{half:.1f} {y:.1f} {half:.1f} {to:.1f} {turn:.1f} {to:.1f}H{end:.1f}"
    thick = 1.5 + 6.5 * share
    halo = ' text-anchor="end" font-weight="600" font-size="12" stroke="#fcfdfe" stroke-width="4" paint-order="stroke"'
    label = _text(turn - 4, to - 4 - thick / 2, "yes" if yes else "no", halo)
    return f'<path d="{path}" fill="none" stroke="#b9c6d2" stroke-width="{thick:.1f}"/>{label}'


def _split(facts: TreeFacts, place: _Layout, node: int) -> str:
    lines = _wrapped(facts.conditions[node], place.node - 2 * _PAD)
    height = (len(lines) + 1) * _STEP + 2 * _PAD - 4
    x, top = float(place.x[node]), float(place.y[node]) - height / 2
    texts = [_text(x + _PAD, top + _PAD + 11 + i * _STEP, line) for i, line in enumerate(lines)]
    amount = _amount(facts, place.rows[node])
    texts.append(_text(x + _PAD, top + _PAD + 11 + len(lines) * _STEP, amount, ' fill="#55636f" font-size="12"'))
    full = html.escape(shortened(" ".join(facts.conditions[node]), _FULL))
    box = f'<rect x="{x:.1f}" y="{top:.1f}" width="{place.node:g}" height="{height:.1f}" rx="6" fill="#eef3f8" '
    return f'<g class="split"><title>{full}</title>{box}stroke="{_LINE}"/>{"".join(texts)}</g>'


def _end(facts: TreeFacts, place: _Layout, node: int) -> str:
    """A leaf, or what is below a node and not drawn."""
    end, leaf = place.end[node], facts.leaves.get(node)
    x, top = float(place.x[node]), float(place.y[node]) - end.height / 2
    left, first = x + _PAD + 6, top + _PAD + 11
    lines = [(end.heading, ' font-weight="700"'), *((line, "") for line in end.amount)]
    lines += [(line, ' fill="#45525e"') for line in end.shares]
    texts = "".join(_text(left, first + i * _STEP, line, more) for i, (line, more) in enumerate(lines))
    bar = "" if leaf is None else _stacked(facts, leaf.shown, left, top + len(lines) * _STEP + _PAD + 2, end.inner)
    box = f'<rect x="{x:.1f}" y="{top:.1f}" width="{end.width:g}" height="{end.height:g}" rx="6" fill="#fff" '
    stripe = f'<rect x="{x:.1f}" y="{top:.1f}" width="6" height="{end.height:g}" rx="3" fill="{end.color}"/>'
    title = f"<title>{page_text(end.full)}</title>"
    return f'<g class="leaf">{title}{box}stroke="{_LINE}"/>{stripe}{texts}{bar}</g>'


def _end_words(facts: TreeFacts, node: int, rows: float, n_leaves: int, n_rows: int | None, width: float) -> _End:
    """What is written for an end: names are shortened where there is no room, figures never."""
    leaf, amount = facts.leaves.get(node), [_amount(facts, rows)]
    if leaf is None:
        heading = f"{n_leaves} more leaves"
        return _End(heading, amount, ["see the rules below"], heading, _OTHER, width)
    if n_rows and leaf.rows is not None:
        share = leaf.rows / n_rows
        amount.append("<0.1% of all" if 0 < share < 0.0005 else f"{share:.1%} of all")
    told, seen = (
        " ".join(_share_lines(_share_parts(facts, of, math.inf), _FULL * _SIZE / 3, 1))
        for of in (leaf.shown, leaf.counts)
    )
    label, color = shortened(leaf.label, _FULL // 2), _color_in(facts, facts.classes.index(leaf.label))
    full = f"leaf {node}: {label}; {', '.join(amount)}; {facts.counted}: {told}"
    full += f"; {facts.seen}: {seen}" if facts.seen else ""
    end = _End(f"leaf {node}: {label}", amount, [], full, color, width)
    return replace(
        end,
        heading=f"leaf {node}: {_fitted(label, end.inner / 1.08 - text_width(f'leaf {node}: '))}",
        amount=[", ".join(amount)] if text_width(", ".join(amount)) <= end.inner else amount,
        shares=_share_lines(_share_parts(facts, leaf.shown, end.inner), end.inner, _SHARE_LINES),
    )


def _amount(facts: TreeFacts, rows: float) -> str:
    if any(leaf.rows is None for leaf in facts.leaves.values()):  # weights, of labels alone
        return f"{'weight' if facts.weighted else 'labels'}: {rows:g}"
    return f"{spaced(int(rows))} {'row' if rows == 1 else 'rows'}"


def _color_in(facts: TreeFacts, k: int) -> str:
    return class_color(k) if not facts.title else (_OTHER if k == 0 else _COLORS[0])


def _share_parts(facts: TreeFacts, counts: Sequence[float], width: float) -> list[str]:
    """The classes and their shares, the most frequent first, each no wider than this with what is behind it."""
    total = sum(counts)
    if not total:
        return ["none with a label"]
    parts = []
    for k in sorted((k for k, n in enumerate(counts) if n), key=lambda k: (-counts[k], k)):
        share = f"{counts[k] / total:.1%} "
        parts.append(share + _fitted(shortened(facts.classes[k], 24), width - text_width(f"{share}, …")))
    return parts


def _share_lines(parts: Sequence[str], width: float, most: int) -> list[str]:
    """Parts in lines, as many as there is room for, and at least one.

    Examples
    --------
    >>> wide = text_width("60% aa, 30% bb,")
    >>> _share_lines(["60% aa", "30% bb", "10% cc"], wide, 2), _share_lines(["60% aa", "30% bb", "10% cc"], wide, 1)
    (['60% aa, 30% bb,', '10% cc'], ['60% aa, …'])
    """
    for shown in range(len(parts), 0, -1):
        told = [f"{part}," for part in parts[: shown - 1]]
        told.append(parts[shown - 1] if shown == len(parts) else f"{parts[shown - 1]}, …")
        lines = told[:1]
        for part in told[1:]:
            longer = f"{lines[-1]} {part}"
            lines[-1:] = [longer] if text_width(longer) <= width else [lines[-1], part]
        if len(lines) <= most:
            break
    return lines


def _stacked(facts: TreeFacts, counts: Sequence[float], x: float, y: float, width: float) -> str:
    total, parts = sum(counts), []
    for k, n in enumerate(counts):
        if n:
            wide = width * n / total
            parts.append(
                f'<rect x="{x:.1f}" y="{y:.1f}" width="{wide:.1f}" height="8" fill="{_color_in(facts, k)}" '
                'stroke="#fff" stroke-width="0.5"/>'
            )
            x += wide
    return "".join(parts)


# ---------------------------------------------------------------------- bars


def _bar(inside: str) -> str:
    return f'<svg class="bar" viewBox="0 0 100 10" preserveAspectRatio="none" aria-hidden="true">{inside}</svg>'


def _mark(at: float) -> str:
    at = min(max(at, 0.5), 99.5)
    return f'<path d="M{at:.2f} 0V10" stroke="{_INK}" stroke-width="2.5" vector-effect="non-scaling-stroke"/>'


def total_bar(reached: int, low: int, high: int, size: int) -> str:
    """A total in a report as a bar: what was reached, a mark where it was asked, a frame for an interval.

    Examples
    --------
    >>> total_bar(3, 3, 3, 6).count("<rect"), total_bar(3, 2, 4, 6).count("<rect"), "<path" in total_bar(3, 0, 6, 6)
    (2, 3, False)
    """
    unit = 100.0 / max(size, 1)
    met = low <= reached <= high
    inside = '<rect width="100" height="10" fill="#e6ebf0"/>'
    inside += f'<rect y="2" width="{reached * unit:.2f}" height="6" fill="{_COLORS[0] if met else "#b8371f"}"/>'
    if low == high:
        inside += _mark(low * unit)
    elif low > 0 or high < size:
        inside += (
            f'<rect x="{low * unit:.2f}" y="0.7" width="{max((high - low) * unit, 0.8):.2f}" height="8.6" fill="none" '
            f'stroke="{_INK}" stroke-width="1.8" vector-effect="non-scaling-stroke"/>'
        )
    return _bar(inside)


def share_bar(share: float, color: str = _COLORS[0]) -> str:
    """A share in a report as a bar."""
    track = '<rect width="100" height="10" fill="#e6ebf0"/>'
    return _bar(f'{track}<rect y="1" width="{100 * share:.2f}" height="8" fill="{color}"/>')


def interval_svg(value: float, low: float, high: float) -> str:
    """A share between 0 and 100 % with its interval, drawn for a report."""
    track = '<rect y="3" width="100" height="4" fill="#e6ebf0"/>'
    band = f'<rect x="{100 * low:.2f}" y="1" width="{100 * (high - low):.2f}" height="8" fill="#9cc3e6"/>'
    return _bar(track + band + _mark(100 * value))
