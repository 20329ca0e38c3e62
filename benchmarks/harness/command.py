"""The command line that all benchmarks share."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from harness.runner import RowMade, Run, run
from harness.specification import SOLVER, Row, Selection, Specification, plan
from harness.store import Store, latest
from harness.summary import compared, render
from treewright.exceptions import InvalidInputError, TreewrightError
from treewright.solvers.registry import SOLVER_NAMES

__all__ = ["main"]

_IDENTITY = ("data", "sample", "draw", "method", "setting")
_OK, _FAILED, _USAGE, _INTERRUPTED = 0, 1, 2, 130


def main(*specifications: Specification, about: str | None = None, argv: Sequence[str] | None = None) -> int:
    """Run or summarize specifications as the command line says.

    Parameters
    ----------
    *specifications : Specification
        The script's; the first is run if none is named.
    about : str or None
        What the script is about, for ``--help``.
    argv : sequence of str or None
        Arguments, None for those of the process.

    Returns
    -------
    int
        Exit code: 0; 1 if a row failed; 2 for arguments that cannot be used; 130 after Ctrl-C.
    """
    names = [one.name for one in specifications]
    args = _parser(names, about).parse_args(argv)
    try:
        unknown = [part for part in args.parts if part not in names]
        if unknown:
            raise InvalidInputError(f"there is no part {unknown[0]!r}: {', '.join(names)}")
        store = Store(args.store or Path("results") / f"{names[0]}.jsonl")
        if args.against is not None and not args.against.exists():
            raise InvalidInputError(f"there is no store {args.against} to compare with")
        codes = [_OK]
        for one in specifications:
            if one.name in (args.parts or names[:1]) and codes[-1] != _INTERRUPTED:
                codes.append(_conduct(_changed(one, args), store, args))
        return max(codes)
    except TreewrightError as error:
        print(f"error: {error}", file=sys.stderr)
        return _USAGE


def _parser(names: list[str], about: str | None) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=about, formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("parts", nargs="*", metavar="PART", help=f"of {', '.join(names)}; {names[0]} if none is named")
    add("--data", type=Path, metavar="FOLDER", help="tables with a MANIFEST.tsv")
    add("--store", type=Path, metavar="FILE", help=f"what it has is not made again [results/{names[0]}.jsonl]")
    add("--jobs", type=int, default=1, metavar="N", help="rows at a time, each in a process; 0: in this one [1]")
    add("--threads", type=int, metavar="N", help="cores of a fit")
    add("--time-limit", type=float, metavar="S", help="seconds of a fit, for methods that have none of their own")
    add("--solver", choices=SOLVER_NAMES, help="solver of the methods whose benchmark leaves it open")
    add("--kill-after", type=float, metavar="S", help="kill the process of a row after so many seconds")
    add("--only", action="append", default=[], metavar="METHOD", help="only this method; may be repeated")
    add("--skip", action="append", default=[], metavar="METHOD", help="not this method; may be repeated")
    add("--sets", default="", metavar="A,B", help="only these data sets")
    add("--samples", default="", metavar="A,B", help="only these samples")
    add("--draws", type=int, metavar="N", help="draws of each sample")
    add("--quick", action="store_true", help="a small part, to see whether everything runs")
    add("--retry", action="store_true", help="make rows that failed again")
    add("--list", action="store_true", help="say which rows there are, and run nothing")
    add("--summary", action="store_true", help="summarize the store, and run nothing")
    add("--against", type=Path, metavar="FILE", help="compare with another store besides")
    add("--format", choices=["markdown", "text"], default="markdown", help="of the summary [markdown]")
    return parser


def _changed(specification: Specification, args: argparse.Namespace) -> Specification:
    """The specification with what the command line says of time limit, threads and solver."""
    if args.quick:
        if specification.quick is None:
            raise InvalidInputError(f"specification {specification.name!r} has no quick one")
        specification = specification.quick
    for name, least in (("time_limit", 0.0), ("threads", 1), ("draws", 1)):
        value = getattr(args, name)
        if value is not None and not value >= least:
            raise InvalidInputError(f"--{name.replace('_', '-')} is {value}; it must be at least {least:g}")
    if args.solver is not None and not any(SOLVER in one.parameters.values() for one in specification.methods):
        raise InvalidInputError(f"--solver: no method of {specification.name!r} leaves its solver open")
    names = ("time_limit", "threads", "solver")
    return replace(specification, **{name: getattr(args, name) for name in names if getattr(args, name) is not None})


def _selection(args: argparse.Namespace) -> Selection:
    sets, samples = (tuple(name for name in text.split(",") if name) for text in (args.sets, args.samples))
    return Selection(tuple(args.only), tuple(args.skip), sets, samples, args.draws)


def _conduct(specification: Specification, store: Store, args: argparse.Namespace) -> int:
    ended = Run(0, 0, 0, 0)
    if args.summary and args.data is None:
        rows = _told(specification, store, args)
    else:
        tasks = plan(specification, args.data, _selection(args))
        if args.list:
            have = {row.get("key") for row in store.rows()}
            for task in tasks:
                print(("done  " if task.key in have else "to do ") + task.key)
            return _OK
        if not args.summary:
            ended = run(
                tasks, store, jobs=args.jobs, kill_after=args.kill_after, retry=args.retry, on_row=_print_progress
            )
        by_key = {row.get("key"): row for row in store.rows(specification.name)}
        rows = [by_key[task.key] for task in tasks if task.key in by_key]
    print(render(specification.summary, rows, args.format))
    if args.against is not None:
        table = compared(rows, Store(args.against).rows(specification.name))
        print("\n" + (table.markdown() if args.format == "markdown" else table.text()))
    if ended.left:
        print(f"stopped: {ended.left} rows are left, the same command goes on", file=sys.stderr)
        return _INTERRUPTED
    return _FAILED if ended.failures else _OK


def _told(specification: Specification, store: Store, args: argparse.Namespace) -> list[Row]:
    """Rows of the store where the folder of tables is not known: the last of each identity, with a word of warning."""
    selection = _selection(args)
    rows = [row for row in latest(store.rows(specification.name)) if selection.allows(row)]
    last = latest(rows, _IDENTITY)
    if len(last) < len(rows):
        print(
            f"note: {len(rows) - len(last)} rows were made again with other parameters; the last of each counts "
            "(with --data, those of this command line)",
            file=sys.stderr,
        )
    return last


def _print_progress(now: RowMade) -> None:
    row = now.row
    if "failure" in row:
        end = f"failed: {row['failure']}"
    elif "skipped" in row:
        end = f"skipped: {row['skipped']}"
    else:
        told = [f"{row['seconds']:.1f} s", row.get("status")]
        told += [f"{name} {row[name]:.4g}" for name in ("objective", "accuracy", "error") if row.get(name) is not None]
        end = ", ".join(word for word in told if word)
    where = " ".join(str(row[name]) for name in _IDENTITY if row[name] != "")
    left = (now.total - now.done) * now.seconds / now.done
    print(f"[{now.done}/{now.total}, {_clock(left)} left] {where}: {end}", file=sys.stderr, flush=True)


def _clock(seconds: float) -> str:
    """Hours and minutes, or minutes and seconds."""
    whole = round(seconds)
    return f"{whole // 3600} h {whole % 3600 // 60:02d}" if whole >= 3600 else f"{whole // 60}:{whole % 60:02d}"
