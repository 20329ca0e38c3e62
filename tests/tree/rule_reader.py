"""A reader of rules who knows nothing but their words: what they say of rows, for tests."""

import re

import numpy as np

_TERM = re.compile(r"\s*([+-]?)\s*(?:([0-9.e-]+)\*)?(\([^)]*\)|[A-Za-z]\w*)\s*")
_NUMBER, _DAY = r"-?[0-9][0-9.e+-]*", r"\d{4}-\d\d-\d\d(?: [\d:]+)?"


def day(text):
    return (np.asarray(text, dtype="datetime64[s]") - np.datetime64("1970-01-01", "s")).astype(float) / 86400


def value(name, columns):
    """What a reader takes a term for: a column, 1 where something holds, or years from a day."""
    if not name.startswith("("):
        return columns[name]
    years = re.fullmatch(r"\(years from (\S+) to (\w+)\)", name)
    if years:
        return (day(columns[years[2]]) - day(years[1])) / 365.25
    return holds(name[1:-1], columns).astype(float)


def is_missing(column):
    return np.array([cell is None or cell != cell for cell in column.tolist()])


def literal(text, columns):
    """One column is something, or is not."""
    name, rest = re.fullmatch(r"(\w+) is (.*)", text).groups()
    column = columns[name]
    if rest == "known":
        return ~is_missing(column)
    rest = re.sub(r"in group (\d+)", r"in_group_\1", rest)
    none = re.fullmatch(r"neither (.*) nor (\w+)", rest)
    several = re.fullmatch(r"(.*) or (\w+)", rest)
    names = [rest.removeprefix("not ")]
    for found in (none, several):
        if found:
            names = [*found[1].split(", "), found[2]]
    names = [level for one in names for level in columns.get((name, one), [one])]  # of a group its levels
    held = np.isin(column.astype(str), names) & ~is_missing(column)
    if "missing" in names:
        held |= is_missing(column)
    return ~held if none or rest.startswith("not ") else held


def parts_at(text, word):
    """Parts of a text between a word, outside of brackets, where another condition begins."""
    depth, parts, start = 0, [], 0
    for i, c in enumerate(text):
        depth += (c == "(") - (c == ")")
        if depth == 0 and re.match(rf" {word} (\(|\w+ is |\w+ [<>])", text[i:]):
            parts.append(text[start:i])
            start = i + len(word) + 2
    return [*parts, text[start:]]


def logic(text, columns):
    """Conditions joined by "and" and "or"."""
    if text.startswith("at least two of these hold: "):
        return sum(logic(one, columns).astype(int) for one in text.partition(": ")[2].split("; ")) >= 2
    for word, join in (("or", np.logical_or), ("and", np.logical_and)):
        parts = parts_at(text, word)
        if len(parts) > 1:
            return join.reduce([holds(part, columns) for part in parts])
    return logic(text[1:-1], columns) if text.startswith("(") else literal(text, columns)


def thresholds(base, cases, columns, n, read):
    """What rows are compared with: in some cases another number, or more, or less."""
    found, held = np.full(n, read(base)), []
    for case in re.split(rf", (?={_DAY} where|{_NUMBER} (?:more |less )?where)", cases or ""):
        if not case:
            continue
        number, how, where = re.fullmatch(rf"({_DAY}|{_NUMBER}) (more |less )?where (.*)", case).groups()
        here = np.logical_and.reduce(held) if where == "both" else logic(where, columns)
        held.append(here)
        if how:
            found = found + here * read(number) * (1.0 if how == "more " else -1.0)
        else:
            found[here] = read(number)
    return found


def holds(condition, columns):
    n = len(next(iter(columns.values())))
    for word, join in (("or", np.logical_or), ("and", np.logical_and)):
        parts = parts_at(condition, word)
        if len(parts) > 1:
            return join.reduce([holds(part, columns) for part in parts])
    dates = re.fullmatch(rf"(\w+) is ({_DAY}) or (earlier|later)(?: \((.*)\))?", condition)
    if dates:
        at = thresholds(dates[2], dates[4], columns, n, lambda text: day(text.replace(" ", "T")))
        seen = day(columns[dates[1]])
        return seen <= at if dates[3] == "earlier" else seen >= at
    compared = re.fullmatch(rf"(.*) (<=|>=|<|>) ({_NUMBER})(?: \((.*)\))?", condition)
    if not compared:
        return logic(condition, columns)
    left, sign, right, cases = compared.groups()
    total, at = 0.0, 0
    while at < len(left):
        term = _TERM.match(left, at)
        total = total + (-1.0 if term[1] == "-" else 1.0) * float(term[2] or 1) * value(term[3], columns)
        at = term.end()
    right = thresholds(right, cases, columns, n, float)
    return {"<=": np.less_equal, ">=": np.greater_equal, "<": np.less, ">": np.greater}[sign](total, right)


def groups_by_notes(notes):
    """Levels of groups of columns, as literals ask for them."""
    found = (re.fullmatch(r'Group (\d+) of "(\w+)": (.*)\.', note) for note in notes)
    return {(one[2], f"in_group_{one[1]}"): one[3].split(", ") for one in found if one}


def leaves_by_rules(rules, columns, n):
    """Leaf of each row by nothing but the text."""
    lines = []
    for line in filter(str.strip, rules.splitlines()):
        broken = lines and lines[-1].lstrip().startswith("if ") and not lines[-1].endswith(":")
        lines[-1:] = [f"{lines[-1]} {line.strip()}"] if broken else [*lines[-1:], line]
    found, masks = np.full(n, -1), {}
    for line in lines:
        level, text = (len(line) - len(line.lstrip())) // 4, line.strip()
        here = masks.get(level, np.ones(n, dtype=bool))
        if text == "else:":
            masks[level + 1] = masks[level] & ~masks[level, "if"]
        elif text.startswith("if "):
            true = holds(text[3:-1], columns)
            masks[level], masks[level, "if"], masks[level + 1] = here, true, here & true
        else:
            found[here] = int(re.match(r"leaf (\d+)", text)[1])
    return found
