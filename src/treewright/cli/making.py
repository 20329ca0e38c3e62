"""How a fit of the command line was made, for its report."""

from __future__ import annotations

import argparse
import os
from collections.abc import Sequence

from treewright.cli.reading import FitRows
from treewright.cli.totals import knows_totals
from treewright.report import About, table_making

__all__ = ["about"]


def about(rows: FitRows, args: argparse.Namespace, title: str, more: Sequence[tuple[str, str]] = ()) -> About:
    """What the report of a fit is told beside the model; `more` of how it was made."""
    return About(
        title=title,
        target=args.target,
        groups=rows.more.get("groups"),
        group_name=args.groups or "",
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
    named = {args.protected: "the protected groups", args.groups: "the groups of the totals", args.id: "the id"}
    named |= {args.weight: "the weight", args.target: "the target"}
    aside |= {name: why for name, why in named.items() if name is not None}
    pairs = table_making(rows.table, rows.encoder, file=os.path.basename(args.data), aside=aside)
    more = []
    if args.totals is not None:
        by = "" if args.groups is None else f" by {args.groups},"
        which = (
            "all rows; those with a label were subtracted" if args.totals_of == "all" else "the rows without a label"
        )
        tolerance = f"; shares may be missed by {args.totals_tolerance:g}" if args.totals_tolerance else ""
        more.append(("totals", f"{os.path.basename(args.totals)},{by} of {which}{tolerance}"))
    if args.weight is not None:
        whose = ", of the rows with a label" if knows_totals(type(rows.estimator)) else ""
        more.append(("weight", f"{args.weight}{whose}"))
    return [pairs[0], *more, *pairs[1:]]
