"""How a fit to a table was made, for its report."""

from __future__ import annotations

from collections.abc import Sequence

from treewright.app.options import knows_totals
from treewright.app.rows import FitRows
from treewright.core.names import option
from treewright.report import About, table_making

__all__ = ["about_fit"]


def about_fit(rows: FitRows, title: str, model_file: str = "", more: Sequence[tuple[str, str]] = ()) -> About:
    """What the report of a job is told beside the model; `more` of how it was made."""
    options = rows.options
    return About(
        title=title,
        target=options.target,
        groups=rows.more.get("groups"),
        group_name=options.group_name,
        model_file=model_file,
        making=[*_making(rows), *more],
        totals_of=options.totals_of,
        id_name=options.id or "",
    )


def _making(rows: FitRows) -> list[tuple[str, str]]:
    """The table, what became of its columns, totals and weights: what is told, and the words for it."""
    options = rows.options
    why = f"not named by {option('features')}"
    aside = dict.fromkeys(rows.table.columns, why) if options.features is not None else {}
    aside |= dict.fromkeys(rows.untold, "empty in all rows without a label")
    aside |= dict.fromkeys(options.drop, "dropped")
    margins = options.asked_margins
    named = {options.protected: "the protected groups", options.id: "the id"}
    named |= {margin.column: "the groups of the totals" for margin in margins}
    named |= {options.weight: "the weight", options.target: "the target"}
    aside |= {name: why for name, why in named.items() if name is not None}
    pairs = table_making(rows.table, rows.encoder, file=rows.file, aside=aside)
    more = []
    if margins:
        which = (
            "all rows; those with a label were subtracted" if options.totals_of == "all" else "the rows without a label"
        )
        more.append(options.totals_words(f", of {which}"))
    if options.weight is not None:
        whose = ", of the rows with a label" if knows_totals(type(rows.estimator)) else ""
        more.append(("weight", f"{options.weight}{whose}"))
    return [pairs[0], *more, *pairs[1:]]
