"""What to do next, from the facts of a fit alone."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from treewright.core.names import counted, printable, shortened
from treewright.report.facts import Facts, GroupFacts
from treewright.report.words import (
    INTERRUPTED,
    asked_words,
    difference_words,
    group_sizes,
    margin_words,
)

__all__ = ["Advice", "advice"]

_NAMED = 5
"""Names that are told of many."""
_RIGHT = 0.995
"""Accuracy from which on more labels are not asked for."""
_WIDE = 0.05
"""Width of an interval that is worth making smaller."""
_AGREES = 0.9
"""Share of the labels with which a tree that explains should agree."""
_DOUBTED = 1.25
"""How many times as doubtful as all rows those of a group are that is named."""
_SHORT, _USED = 5.0, 0.95
"""Seconds for a tree that are few, and the share of others from which on they may have ended its search."""
_MOVED = 0.05
"""Share of the rows that come to a leaf, or leave it, from which on the model is one of other rows."""
_FEW = 10
"""Rows of a group of which nothing is said."""
_HARDLY, _TOLD = 0.5, 5
"""Share of the labels of a class, found when left out, below which single ones are no use; labels that tell that."""

_NOTHING = 0.9995
"""Gap from which on a bound, nearly 0, says nothing."""
_BETTER_TREE = "a better tree, or prove that there is none"


class Advice(NamedTuple):
    """A sentence, and a command to run, if there is one."""

    text: str
    command: str = ""


def advice(facts: Facts) -> list[Advice]:
    """Say in a report what to do next, the most urgent first.

    Parameters
    ----------
    facts : Facts
        What the fit was, and what it reached.

    Returns
    -------
    list of Advice
        Each follows from the facts; names in it are printable and short.
    """
    of_fits = (_unreliable, _totals, _never, _ending, _estimate, _labels, _groups, _tree, _rows, _suspects, _next)
    parts = of_fits if facts.changes is None else (_new_totals, _changed)
    return [said for part in parts for said in part(facts)]


def _some(names: Iterable[str]) -> str:
    shown = list(names)
    more = f" and {len(shown) - _NAMED} more" if len(shown) > _NAMED else ""
    return ", ".join(map(_named, shown[:_NAMED])) + more


def _named(name: object) -> str:
    """A name of a class or group, told apart from the words around it."""
    return f'"{shortened(name)}"'


# ---------------------------------------------------------------------- what not to do


def _unreliable(facts: Facts) -> Iterator[Advice]:
    """Classes that are hardly ever found: their number may be right, their rows are not."""
    hard = [
        (found / n, name, found, n)
        for name, (found, n) in zip(facts.classes, facts.found_again, strict=False)  # none are known, or all
        if n >= _TOLD and found < _HARDLY * n
    ]
    if not hard:
        return
    (_, worst, found, n), names = min(hard), {name for _, name, _, _ in hard}
    if len(hard) == 1:
        told = f"{_named(worst)}: {found} of {n} were found when left out"
    else:
        some = [f"{_named(name)} ({found} of {n} were found when left out)" for _, name, found, n in sorted(hard)]
        told = ", ".join(some[:_NAMED]) + (f" and {len(some) - _NAMED} more" if len(some) > _NAMED else "")
    column = f"column share_{shortened(worst)}" if len(hard) == 1 else "columns share_..."
    column = column if facts.model_file else "transduction_proba_"
    asked = [row for row in facts.totals if str(row["class"]) in names]
    sure = bool(asked) and all(row["low"] == row["reached"] == row["high"] for row in asked)
    words = "Their number is right by the totals; the" if sure else "The"
    yield Advice(f"Do not rely on single labels {told}. {words} probabilities ({column}) say more than the labels.")


# ---------------------------------------------------------------------- what was missed


def _totals(facts: Facts) -> Iterator[Advice]:
    missed = [row for row in facts.totals if not row["low"] <= row["reached"] <= row["high"]]
    if not facts.totals and facts.n_hidden and facts.totals_used:
        how = "--totals FILE" if facts.model_file else "totals={class: count}"
        yield Advice(
            f"No totals were given. If it is known how many of the {counted(facts.n_hidden, 'row')} without a label "
            f"have each class, in all or by group, give them ({how}): counts are met then, and rare classes are not "
            "overlooked."
        )
    if not missed:
        return
    sizes, missed = group_sizes(facts.totals), sorted(missed, key=lambda row: -row["deviation"])
    told = []
    for row in missed[:_NAMED]:
        group = "" if row["group"] is None else f"{_named(row['group'])}, "
        group = f"{printable(margin_words(row))} {group}" if "by" in row and row["group"] is not None else group
        asked = asked_words(row, sizes[row.get("margin", 0), row["group"]])
        told.append(f"{group}{_named(row['class'])} (asked {asked}, reached {row['reached']}: {difference_words(row)})")
    more = f"; and {len(missed) - _NAMED} more" if len(missed) > _NAMED else ""
    if any("margin" in row for row in missed):
        remedy = "they contradict one another, so no labels meet all: check the totals against each other"
    elif facts.totals_used:
        met = "no labels" if facts.explains else "no tree"
        who = "a fit without --model" if facts.model_file else "TotalsClassifier"
        remedy = f"{met} of this fit met them; {who} labels the rows within the totals, to the row"
    else:
        remedy = f"{facts.model} does not know totals: TotalsClassifier and S2OCTClassifier do"
    yield Advice(f"Totals are missed: {'; '.join(told)}{more}. {remedy[:1].upper()}{remedy[1:]}.")


def _never(facts: Facts) -> Iterator[Advice]:
    """Classes that rows are labelled and none is predicted."""
    if facts.confusion is None:
        return
    counts = zip(facts.classes, facts.confusion.sum(axis=1).tolist(), facts.confusion.sum(axis=0).tolist(), strict=True)
    lost = [(name, given) for name, given, predicted in counts if given and not predicted]
    if not lost:
        return
    rows = counted(sum(given for _, given in lost), "row is", "rows are")
    weights = {text for _, pairs in facts.parameters for name, text in pairs if name == "class_weight"}
    ways = [f"a deeper tree ({facts.option('max_depth')}) has leaves for more classes"]
    if weights == {"None"}:
        how = "--set class_weight=balanced" if facts.model_file else "class_weight='balanced'"
        ways.insert(0, f"{how} makes rare classes count as much as frequent ones, at the cost of these")
    yield Advice(
        f"No row with a label is predicted to be {_some(name for name, _ in lost)}, which {rows} labelled: "
        + "; ".join(ways)
        + "."
    )


def _ending(facts: Facts) -> Iterator[Advice]:
    record = facts.record
    if record.status not in ("time_limit", "interrupted"):
        return
    what, better = ("the labels", "labels") if facts.explains else ("the tree", "a tree")
    gap = "" if not record.gap or record.gap >= _NOTHING else f" with a gap of {record.gap:.1%}"
    open_ = f" Nothing is known of how much better {better} could be." if record.gap and not gap else ""
    if record.status == "interrupted":
        yield Advice(f"The fit was interrupted{gap}: run it to its end; {what} may be better then.{open_}")
    else:
        found = "better labels, or prove that there are none" if facts.explains else _BETTER_TREE
        yield Advice(
            f"The fit stopped at its time limit after {record.seconds:.1f} seconds{gap}.{open_} A longer time limit "
            f"({facts.option('time_limit')}) may find {found}."
        )


# ---------------------------------------------------------------------- how accurate


def _estimate(facts: Facts) -> Iterator[Advice]:
    if facts.explains:
        if facts.estimate is None and facts.n_hidden and facts.no_estimate == INTERRUPTED:
            yield Advice(f"How accurate the labels are is not known: {INTERRUPTED}. Run it to its end.")
        elif facts.estimate is None and facts.n_hidden:
            how = "" if facts.model_file else " (treewright.estimated_accuracy, to be given as estimate)"
            yield Advice(
                f"How accurate the labels are is not known ({printable(facts.no_estimate)}). Leaving labels out in "
                f"turn tells it{how}; that takes at least two labels of each of two classes, and time for the fits."
            )
        return
    if not facts.n_labelled:
        return
    if facts.totals_used:
        how = "fit without --model does that" if facts.model_file else "treewright.estimated_accuracy does that"
        words = f"leave labels out ({how})"
    else:
        words = "label rows that had no part in the fit, predict them and compare"
    yield Advice(f"The accuracy above is on labels that the fit has seen. To know that of other rows, {words}.")


def _labels(facts: Facts) -> Iterator[Advice]:
    """Of which class more labels make the interval smaller, label by label."""
    estimate = facts.estimate
    total = sum(facts.hidden)
    if estimate is None or not total:
        return
    none = [name for name, n, rows in zip(facts.classes, facts.given, facts.hidden, strict=True) if rows and not n]
    if none:
        yield Advice(
            f"No row is labelled {_some(none)}, and {'it counts' if len(none) == 1 else 'they count'} as half right. A "
            "few labels of it tell more than any others."
        )
    if estimate.value >= _RIGHT:
        return
    gain = []
    for k, (n, rows, share) in enumerate(zip(facts.given, facts.hidden, facts.recall, strict=True)):
        if n and share is not None:
            likely = (share * n + 1) / (n + 2)
            gain.append(((rows / total / n) ** 2 * likely * (1 - likely), k, share))
    if not gain:
        return
    _, k, share = max(gain)
    yield Advice(
        f"More labels help most among the rows that are held for {_named(facts.classes[k])}: these are "
        f"{facts.hidden[k] / total:.0%} of the rows without a label, and {facts.given[k]} of {facts.n_labelled} labels "
        f"tell of them ({share:.1%} were found when left out)."
    )
    if estimate.high - estimate.low >= _WIDE:
        yield Advice(
            f"The accuracy is likely to lie between {estimate.low:.1%} and {estimate.high:.1%}; it takes about four "
            "times as many labels to halve that interval."
        )


def _groups(facts: Facts) -> Iterator[Advice]:
    groups = facts.groups
    if groups is None or len(groups.names) < 2:
        return
    without = [
        name for name, n, rows in zip(groups.names, groups.labelled, groups.hidden, strict=True) if rows and not n
    ]
    if without and len(without) < len(groups.names):
        have = "has" if len(without) == 1 else "have"
        yield Advice(
            f"{len(without)} of {len(groups.names)} groups {have} no label at all: {_some(without)}. What is known of "
            "them comes from the other groups; label a few of their rows first."
        )
    free = _free_groups(facts)
    if free:
        these, them = ("this group is", "it") if len(free) == 1 else ("these groups are", "them")
        yield Advice(
            f"Nothing was asked of {_some(free)}: {these} labelled as all others together are. Totals of {them}, or "
            "shares with a tolerance, would say more."
        )
    yield from _doubtful(groups)


def _free_groups(facts: Facts) -> list[str]:
    sizes, bound = group_sizes(facts.totals), dict.fromkeys(group_sizes(facts.totals), False)
    for row in facts.totals:
        key = row.get("margin", 0), row["group"]
        bound[key] |= row["low"] > 0 or row["high"] < sizes[key]
    return [str(group) for (_, group), asked in bound.items() if not asked and group is not None]


def _doubtful(groups: GroupFacts) -> Iterator[Advice]:
    """The group whose labels are the least sure."""
    if groups.doubt is None or not sum(groups.hidden):
        return
    shares = [
        (doubt / rows, name)
        for name, doubt, rows in zip(groups.names, groups.doubt, groups.hidden, strict=True)
        if rows >= _FEW
    ]
    overall = sum(groups.doubt) / sum(groups.hidden)
    if not shares or max(shares)[0] < _DOUBTED * overall:
        return
    share, name = max(shares)
    yield Advice(
        f"The least sure labels are those of {_named(name)}: by their probabilities {share:.0%} may be wrong, of "
        f"all groups together {overall:.0%}. Labels of rows there tell most, above all of rows whose probabilities are "
        "near one another."
    )


# ---------------------------------------------------------------------- new rows


def _new_totals(facts: Facts) -> Iterator[Advice]:
    if facts.totals:
        yield from _totals(facts)
    elif facts.divides:
        yield Advice(
            "No totals were given: classes are as frequent as the model makes them, which learned from other rows. If "
            "it is known how many of these rows have each class, give that (--totals FILE), and counts are met."
        )


def _changed(facts: Facts) -> Iterator[Advice]:
    """Whether the model is still one of these rows."""
    changes = facts.changes
    assert changes is not None
    then, now = max(1, sum(leaf[2] for leaf in changes.leaves)), max(1, facts.n_rows)
    moved = [(abs(b / now - a / then), number, a / then, b / now) for number, _, a, b in changes.leaves]
    if moved and max(moved)[0] >= _MOVED:
        _, number, before, after = max(moved)
        yield Advice(
            f"Rows are others than at the fit: leaf {number} of the tree has {after:.1%} of them and had {before:.1%}. "
            "Label some of these rows and fit again."
        )
    elif changes.notes:
        yield Advice(
            "Look at what changed, above: of values and groups that the fit has not seen the model knows nothing. "
            "Labels of such rows, and another fit, would say more."
        )


# ---------------------------------------------------------------------- tree, rows, next year


def _tree(facts: Facts) -> Iterator[Advice]:
    record = facts.tree_record
    if record is None or facts.agreed is None or not facts.n_hidden:
        return
    option, limit = facts.option("time_limit"), float("inf") if facts.tree_limit is None else facts.tree_limit
    took = f"{record.seconds:.1f} seconds"
    longer = f"a longer one ({option}) may give a better tree. The labels do not depend on it."
    if record.status == "interrupted":
        yield Advice("The tree was interrupted; run it to its end for one that says more of the labels.")
    elif limit < _SHORT:
        yield Advice(f"The time limit left {limit:.1f} seconds for the tree, which is little: {longer}")
    elif record.status == "time_limit" or record.seconds >= _USED * limit:
        yield Advice(f"The tree is the best of {took}, up to the end of its time limit: {longer}")
    share, depth = facts.agreed[0] / facts.n_hidden, facts.trees[0].tree.depth
    if share < _AGREES:
        yield Advice(
            f"The tree says otherwise than the labels on {1 - share:.1%} of the rows without one. Count with the "
            f"labels; read the tree as their gist. A deeper one ({facts.option('max_depth')} {depth + 1}) says more."
        )


def _rows(facts: Facts) -> Iterator[Advice]:
    if facts.n_hidden and not facts.uses_hidden:
        how = "A fit without --model" if facts.model_file else "TotalsClassifier or S2OCTClassifier"
        if any(name == "teacher" for _, pairs in facts.parameters for name, _ in pairs):
            option = "--set teacher=auto" if facts.model_file else "teacher='auto'"
            how = f"With {option} a teacher labels them for the tree. {how}"
        yield Advice(
            f"{counted(facts.n_hidden, 'row')} without a label had no part in the fit: {facts.model} is supervised. "
            f"{how} makes use of {'it' if facts.n_hidden == 1 else 'them'}, and of totals."
        )


def _suspects(facts: Facts) -> Iterator[Advice]:
    if facts.n_suspects:
        noun = "label is" if facts.n_suspects == 1 else "labels are"
        where = "--suspects FILE writes which" if facts.model_file else "relabel_table() says which"
        yield Advice(f"{facts.n_suspects} {noun} held for wrong: check them at their source ({where}).")


def _next(facts: Facts) -> Iterator[Advice]:
    divided = facts.divides and bool(facts.totals)
    if not facts.model_file:
        if divided:
            yield Advice("Other rows, such as next year's, are labelled within their own totals by model.transduce.")
        return
    parts = ["treewright", "predict", shlex.quote(printable(facts.model_file)), "NEW_ROWS.csv"]
    if divided:
        parts += _totals_options(facts)
    parts += ["--id", shlex.quote(printable(facts.id_name))] if facts.id_name else []
    words = "Label next year's rows within next year's totals:" if divided else "Predict new rows:"
    yield Advice(words, " ".join([*parts, "--out", "new_labels.csv"]))


def _totals_options(facts: Facts) -> list[str]:
    """Options that name the files of new totals."""
    columns = list(dict.fromkeys(row["by"] for row in facts.totals if "by" in row))
    if not columns:
        group = ["--groups", shlex.quote(printable(facts.group_name))] if facts.group_name else []
        return ["--totals", "NEW_TOTALS.csv", *group]
    words = []
    for column in columns:
        name = printable(column)
        words += (
            ["--totals", "NEW_TOTALS.csv"]
            if column is None
            else ["--margin", shlex.quote(f"{name}=NEW_TOTALS_{name}.csv")]
        )
    return words
