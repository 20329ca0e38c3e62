"""A model as the source of one Python function that imports nothing."""

from __future__ import annotations

from collections.abc import Iterator

from treewright.exports.content import AGREED, SHARE, Content, Sum
from treewright.tree.structure import LEAF, Tree

__all__ = ["to_python"]

_GAP = """
    def read(key, place):
        value = row[key] if named else row[place]
        missing = value is None or type(value).__name__ in ("NAType", "NaTType") or bool(value != value)
        return None if missing else value
"""


def to_python(content: Content) -> str:
    """Write a model as the source of a function ``predict(row)``; :meth:`TreeModel.to_python` says what it returns."""
    lines = ["def predict(row):", f'    """{_says(content)}"""', "    named = isinstance(row, dict)"]
    if content.used:
        lines += _GAP.strip("\n").split("\n")
    lines += [line for j in content.used for line in _reading(content, j)]
    if content.way == "leaf":
        lines += _nested(content, content.trees[0], 0, "    ")
        return "\n".join(lines) + "\n"
    for k, tree in enumerate(content.trees):
        lines += _nested(content, tree, k, "    ")
    return "\n".join(lines + _joined(content)) + "\n"


def _says(content: Content) -> str:
    found = "value" if content.classes is None else "label and probabilities by label"
    found = "list of values" if content.classes is None and content.n_outputs > 1 else found
    return f"Return {found} of one row: a dict by name of the feature, or a sequence of {len(content.names)} values."


def _reading(content: Content, j: int) -> Iterator[str]:
    """A feature, None where it is missing."""
    yield f"    x{j} = read({content.names[j]!r}, {j})"
    if content.levels[j] is not None:
        return
    if content.gaps:
        yield f"    x{j} = None if x{j} is None else float(x{j})"
    else:
        yield f"    if x{j} is None:"
        yield f"        raise ValueError('missing: ' + {content.names[j]!r})"
        yield f"    x{j} = float(x{j})"


def _nested(content: Content, tree: Tree, k: int, indent: str) -> list[str]:
    """The tree as nested conditions."""
    lines: list[str] = []
    todo: list[tuple[int, str, bool]] = [(0, indent, False)]
    while todo:
        node, blank, is_else = todo.pop()
        if is_else:
            lines.append(f"{blank}else:")
        if is_else or node:
            blank += "    "
        if tree.left[node] == LEAF:
            lines += [blank + line for line in _leaf(content, tree, k, node)]
            continue
        lines.append(f"{blank}if {_condition(content, tree, node)}:")
        todo += [(int(tree.right[node]), blank, True), (int(tree.left[node]), blank, False)]
    return lines


def _condition(content: Content, tree: Tree, node: int) -> str:
    gap = " or ".join(f"x{j} is None" for j in content.needed(tree, node) if _may_lack(content, j))
    if tree.category[node] >= 0:
        x = f"x{tree.category[node]}"
        condition = f"{x} in {tuple(content.listed(tree, node))!r}"
    else:
        condition = f"{_sum(content.split(tree, node))} <= {float(tree.threshold[node])!r}"
    if not gap:
        return condition
    if tree.missing_left[node]:
        return f"{gap} or {condition}"
    return f"not ({gap}) and {condition}"


def _may_lack(content: Content, j: int) -> bool:
    return content.gaps or content.levels[j] is not None


def _sum(terms: Sum) -> str:
    lanes = [" + ".join(f"{weight!r} * x{j}" for j, weight in lane) for lane in terms.lanes]
    text = " + ".join(f"({lane})" for lane in lanes) if len(lanes) > 1 else "".join(lanes) or "0.0"
    return f"{text} - {terms.less!r}" if terms.less else text


def _leaf(content: Content, tree: Tree, k: int, leaf: int) -> list[str]:
    """What is said in a leaf: the answer, or what this tree adds to it."""
    if content.classes is None:
        values = []
        for output in range(content.n_outputs):
            constant, terms = content.value(tree, leaf, output)
            values.append(repr(constant) if terms is None else f"{constant!r} + ({_sum(terms)})")
        return [f"return {values[0] if len(values) == 1 else '[' + ', '.join(values) + ']'}"]
    shares = content.shares[k][leaf].tolist()
    if content.way == "leaf":
        told = ", ".join(f"{c!r}: {p!r}" for c, p in zip(content.classes, shares, strict=True))
        return [f"return {content.classes[content.labels[k][leaf]]!r}, {{{told}}}"]
    if content.way == "votes":
        return [f"vote_{k}, shares_{k} = {int(content.labels[k][leaf])}, {tuple(shares)!r}"]
    score, said = content.score(k, leaf)
    lines = [f"score_{k}, share_{k} = {_sum(score) if isinstance(score, Sum) else repr(score)}, {shares[k]!r}"]
    if isinstance(score, Sum) and content.cut(k, leaf):
        lines.append(f"score_{k} = {said!r} if score_{k} * {said!r} < 0 else score_{k}")
    return [*lines, f"score_{k} += {SHARE!r} * {float(content.trees[k].shares()[leaf, k])!r}"]


def _joined(content: Content) -> list[str]:
    """What several trees say together."""
    assert content.classes is not None
    trees = range(len(content.trees))
    lines = [f"classes = {content.classes!r}"]
    if content.way == "votes":
        votes = ", ".join(f"vote_{k}" for k in trees)
        lines.append(f"scores = [({votes}).count(k) for k in range({len(content.classes)})]")
        parts = ", ".join(f"shares_{k}" for k in trees)
        lines.append(f"shares = [sum(parts) / {len(content.trees)} for parts in zip({parts})]")
    else:
        lines.append(f"scores = [{', '.join(f'score_{k}' for k in trees)}]")
        lines.append(f"total = {' + '.join(f'share_{k}' for k in trees)}")
        lines.append(f"shares = [{', '.join(f'share_{k} / total' for k in trees)}]")
    lines.append("best = scores.index(max(scores))")
    if content.agree:
        lines += [
            "joined = [k for k, share in enumerate(shares) if share >= shares[best]]",
            "if len(joined) > 1:",
            "    mean = sum(shares[k] for k in joined) / len(joined)",
            f"    shares = [(mean if k in joined else share) * {1.0 - AGREED!r} for k, share in enumerate(shares)]",
            f"    shares[best] += {AGREED!r}",
        ]
    return ["    " + line for line in [*lines, "return classes[best], dict(zip(classes, shares))"]]
