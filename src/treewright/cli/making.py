"""How a fit of the command line was made, for its report."""

from __future__ import annotations

import argparse
import os
from collections.abc import Sequence

from treewright.cli.reading import FitRows
from treewright.cli.totals import asked_margins, group_name, knows_totals, totals_words
from treewright.report import About, table_making

__all__ = ["about"]


def about(rows: FitRows, args: argparse.Namespace, title: str, more: Sequence[tuple[str, str]] = ()) -> About:
    """What the report of a fit is told beside the model; `more` of how it was made."""
    return About(
        title=title,
        target=args.target,
        groups=rows.more.get("groups"),
        group_name=group_name(args),
        model_file=args.out,
        making=[*_making(rows, args), *more],
        totals_of=args.totals_of,
        id_name=args.id or "",
    )


def _making(rows: FitRows, args: argparse.Namespace) -> list[tuple[str, str]]:
    """The table, what became of its columns, totals and weights: what is told, and the words for it."""
    aside = {name: "not named by --features" for name in rows.table.columns} if args.features is not None else {}
    aside |= dict.fromkeys(rows.untold, "empty in all rows without a label")
    aside |= dict.fromkeys(args.drop, "dropped")
    margins = asked_margins(args)
    named = {args.protected: "the protected groups", args.id: "the id"}
    named |= {margin.column: "the groups of the totals" for margin in margins}
    named |= {args.weight: "the weight", args.target: "the target"}
    aside |= {name: why for name, why in named.items() if name is not None}
    pairs = table_making(rows.table, rows.encoder, file=os.path.basename(args.data), aside=aside)
    more = []
    if margins:
        which = (
            "all rows; those with a label were subtracted" if args.totals_of == "all" else "the rows without a label"
        )
        more.append(totals_words(args, f", of {which}"))
    if args.weight is not None:
        whose = ", of the rows with a label" if knows_totals(type(rows.estimator)) else ""
        more.append(("weight", f"{args.weight}{whose}"))
    return [pairs[0], *more, *pairs[1:]]
