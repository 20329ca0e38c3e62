"""Arguments of the command line."""

from __future__ import annotations

import argparse
import csv
from typing import Any, NoReturn

from treewright._version import __version__
from treewright.exceptions import InvalidInputError
from treewright.models.registry import CATEGORICAL, LABELLERS, SHORT_NAMES

__all__ = [
    "EXIT_FAILURE",
    "EXIT_INPUT",
    "EXIT_MODEL_FILE",
    "EXIT_OK",
    "EXIT_SOLVER",
    "make_parser",
]

EXIT_OK = 0
EXIT_FAILURE = 1
EXIT_INPUT = 2
EXIT_SOLVER = 3
EXIT_MODEL_FILE = 4

_EXIT_CODES = """exit codes:
  0    done; fit: a model was written, whatever its status
  1    unexpected failure (TREEWRIGHT_DEBUG=1 shows the traceback)
  2    bad usage or bad input
  3    the solver is not installed or has no licence
  4    the model file is missing, unreadable or corrupt
  130  interrupted by Ctrl-C; the last line on stderr has the files that were written, or says that none was
  143  the same after SIGTERM

With --json, stdout has one JSON document: the result, or {"error": {"type": ..., "message": ...}}.
"""

_DATA_HELP = ".csv, .tsv or .txt (also with .gz behind) with a header, .parquet, or .xlsx (first sheet)"


class _Parser(argparse.ArgumentParser):
    """Raises where argparse would print the usage and exit, and where it would take the last of several values."""

    def __init__(self, **how: Any) -> None:
        super().__init__(**how)
        for action in (None, "store"):
            self.register("action", action, _Once)
        self.register("action", "store_true", _OnceTrue)

    def error(self, message: str) -> NoReturn:
        raise InvalidInputError(f"{message}; see {self.prog} --help")


class _Once(argparse.Action):
    """Stores a value, and refuses a second one: it would silently take the place of the first."""

    def __call__(
        self, parser: argparse.ArgumentParser, namespace: argparse.Namespace, values: Any, option: str | None = None
    ) -> None:
        """Store the value."""
        given: list[str] = vars(namespace).setdefault("given", [])
        if option is not None and self.dest in given:
            raise InvalidInputError(f"{option} is given twice, and can be given once only; see {parser.prog} --help")
        given.append(self.dest)
        setattr(namespace, self.dest, values if self.nargs != 0 else self.const)


class _OnceTrue(_Once):
    """The same of an option without a value."""

    def __init__(self, option_strings: list[str], dest: str, help: str | None = None) -> None:
        super().__init__(option_strings, dest, nargs=0, const=True, default=False, help=help)


def make_parser() -> argparse.ArgumentParser:
    """Return the parser of all commands."""
    parser = _Parser(
        prog="treewright",
        description="Decision trees trained by optimization when labels are few, biased or wrong.",
        epilog=_EXIT_CODES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=f"treewright {__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    summaries = {
        "fit": "fit a model to a table",
        "predict": "predict the rows of a table",
        "show": "show a model: rules, parameters, how its fit ended",
        "solvers": "show which solvers are installed, licensed and able to do what",
    }
    add = {
        name: commands.add_parser(
            name,
            help=text,
            description=text[:1].upper() + text[1:] + ".",
            epilog=_EXIT_CODES,
            formatter_class=argparse.RawDescriptionHelpFormatter,
            allow_abbrev=False,
        )
        for name, text in summaries.items()
    }
    _add_fit(add["fit"])
    add["predict"].add_argument("model", metavar="MODEL", help="model file that fit wrote")
    add["predict"].add_argument("data", metavar="DATA", help=_DATA_HELP)
    add["predict"].add_argument("--out", required=True, metavar="FILE", help="table to write, .csv or .parquet")
    _add_new_totals(add["predict"])
    _add_report(add["predict"])
    add["show"].add_argument("model", metavar="MODEL", help="model file that fit wrote")
    for name in ("fit", "predict"):
        add[name].add_argument(
            "--na",
            action="append",
            default=[],
            metavar="VALUE",
            help="value that means missing, such as ? or -99; may be given several times"
            + ("" if name == "fit" else " (those of the fit count anyway)"),
        )
        add[name].add_argument(
            "--encoding",
            metavar="NAME",
            help="encoding of a text file, such as cp1252 or latin-1 (default: UTF-8; with a warning cp1252 where that "
            "cannot be)",
        )
        add[name].add_argument(
            "--spelling",
            choices=["merge", "keep"],
            help="what becomes of classes and groups whose names differ in capitals, blanks or marks on letters alone, "
            "such as Yes and yes: they are one (merge), or several (keep); default: they are refused",
        )
        add[name].add_argument(
            "--id",
            metavar="COLUMN",
            help="column that names the rows: no feature, and carried to the predictions as it is written",
        )
        add[name].add_argument(
            "--escape-formulas",
            action="store_true",
            help="put an apostrophe before text of the predictions that a spreadsheet would run as a formula",
        )
    for name in ("fit", "predict"):
        voice = add[name].add_mutually_exclusive_group()
        voice.add_argument("--quiet", action="store_true", help="print nothing but warnings and errors")
        voice.add_argument(
            "--verbose",
            action="store_true",
            help="print progress on stderr line by line, which a terminal has in one line anyway",
        )
    for command in add.values():
        command.add_argument("--json", action="store_true", help="print one JSON document instead of text")
    return parser


def _add_new_totals(predict: argparse.ArgumentParser) -> None:
    predict.add_argument(
        "--totals", metavar="FILE", help="known totals of the classes of these rows, which are labelled to meet them"
    )
    predict.add_argument("--groups", metavar="COLUMN", help="column with the groups of --totals")
    _add_margin(predict)
    predict.add_argument(
        "--totals-of",
        default="unlabeled",
        choices=["unlabeled", "all"],
        help="rows that --totals count, where some have an answer in the target column: those without (default), or "
        "all; answers are then subtracted",
    )
    predict.add_argument(
        "--answers",
        choices=["keep", "ignore"],
        help="what becomes of answers in the target column: they are kept as they are (default within --totals and "
        "for models of labels within totals), or have no part in the predictions (default for trees by themselves)",
    )
    predict.add_argument(
        "--totals-tolerance", type=float, default=0.0, metavar="T", help="by how much shares may be missed"
    )


def _add_report(files: argparse._ActionsContainer) -> None:
    files.add_argument(
        "--report",
        action="append",
        default=[],
        metavar="FILE",
        help="report for people: .html is one page with pictures that needs nothing else, all else plain text; may be "
        "given once for each",
    )


def _add_fit(fit: argparse.ArgumentParser) -> None:
    fit.add_argument("data", metavar="DATA", help=_DATA_HELP)
    fit.add_argument(
        "--target",
        required=True,
        metavar="COLUMN",
        help="column to predict; empty where the class is not known",
    )
    fit.add_argument(
        "--model",
        type=_model,
        choices=sorted([*SHORT_NAMES, *LABELLERS]),
        help="one kind of model alone. Without it, if there are --totals or rows without a label: labels of these rows "
        "(totals), how accurate they are likely to be, and a small tree that explains them (s2oct); otherwise oct-h. "
        f"{', '.join(CATEGORICAL)}: text columns are categories, empty cells missing values. Others: 0/1 columns for "
        "the levels of a text column, and empty cells filled in",
    )
    fit.add_argument(
        "--estimator",
        choices=["auto", "boosting", "extra-trees", "forest", "logistic"],
        help="what scores the rows for totals (default: auto, a blend that is chosen on labels left out), or the "
        "ensemble of c2rf (forest, the default, or extra-trees)",
    )
    fit.add_argument(
        "--weight",
        metavar="COLUMN",
        help="column with the weights of the rows: how much a label counts in training, in the tree and, within its "
        "class, in the estimate of accuracy; rows without a label count once, and totals count rows",
    )
    fit.add_argument(
        "--totals",
        metavar="FILE",
        help="known totals of the classes among the rows without a label: .csv with a column a class (or with columns "
        "class, low, high), or .json",
    )
    fit.add_argument("--groups", metavar="COLUMN", help="column with the groups of --totals that are known by group")
    _add_margin(fit)
    fit.add_argument(
        "--protected",
        metavar="COLUMN",
        help="column with the groups that fair-oct is to treat alike (--set fairness_weight=...); no feature unless "
        "--features names it",
    )
    fit.add_argument(
        "--totals-of",
        default="unlabeled",
        choices=["unlabeled", "all"],
        help="rows that --totals count: those without a label (default), or all; labelled ones are then subtracted",
    )
    fit.add_argument(
        "--totals-tolerance",
        type=float,
        default=0.0,
        metavar="T",
        help="by how much shares of --totals may be missed, such as 0.01 (default: not at all)",
    )
    fit.add_argument(
        "--allow-new-classes",
        action="store_true",
        help="--totals may name classes that no row is labelled with; otherwise that is taken for a misspelling",
    )
    chosen = fit.add_mutually_exclusive_group()
    chosen.add_argument(
        "--features",
        action="extend",
        type=_names,
        metavar="A,B",
        help="columns to use (default: all but target, weight, groups, protected, id); may be given several times",
    )
    chosen.add_argument(
        "--drop",
        action="extend",
        type=_names,
        metavar="A,B",
        default=[],
        help="columns not to use; may be given several times",
    )

    files = fit.add_argument_group("files to write")
    files.add_argument(
        "--out", metavar="FILE", help="the model (default: model.json, for labels with or without a tree model.zip)"
    )
    files.add_argument("--predictions", metavar="FILE", help="predictions for all rows, .csv or .parquet")
    _add_report(files)
    files.add_argument(
        "--suspects",
        metavar="FILE",
        help="rows by how suspicious their labels are, and the rule that each breaks, .csv or .parquet (octsvm, resvm)",
    )

    model = fit.add_argument_group(
        "parameters of the model (defaults: those of the model; without --model those of the tree that explains)"
    )
    model.add_argument("--max-depth", type=int, metavar="N", help="depth of the tree")
    model.add_argument("--time-limit", type=float, metavar="S", help="seconds for the whole fit")
    model.add_argument("--solver", metavar="NAME", help="see: treewright solvers")
    model.add_argument("--gap", type=float, metavar="G", help="relative gap that counts as optimal")
    model.add_argument("--n-jobs", type=int, metavar="N", help="threads, -1 for all cores")
    model.add_argument("--random-state", type=int, metavar="N", help="seed")
    model.add_argument("--warm-start", metavar="MODEL", help="model file whose tree to start from")
    model.add_argument(
        "--set",
        action="append",
        default=[],
        dest="settings",
        metavar="NAME=VALUE",
        help="any parameter of the model; may be given several times",
    )


def _margin(text: str) -> tuple[str, str]:
    """A column of groups, and the file with their totals."""
    column, equals, path = text.partition("=")
    if not equals or not column.strip() or not path.strip():
        raise argparse.ArgumentTypeError(f"expected COLUMN=FILE, such as region=totals_region.csv, got {text!r}")
    return column.strip(), path.strip()


def _add_margin(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--margin",
        action="append",
        default=[],
        type=_margin,
        metavar="COLUMN=FILE",
        help="column with groups, and file of their totals; given several times, the totals of all margins hold at "
        "once, such as by region and by sex (without --model, and --model totals)",
    )


def _model(text: str) -> str:
    """The name of a model, whatever hyphens and capitals it is written with."""
    written = text.casefold().replace("-", "").replace("_", "")
    return next((name for name in (*SHORT_NAMES, *LABELLERS) if name.replace("-", "") == written), text)


def _names(text: str) -> list[str]:
    """Split a list of column names; one with a comma in it is put in double quotes."""
    names = [name.strip() for name in next(csv.reader([text], skipinitialspace=True), [])]
    if not names or not all(names):
        raise argparse.ArgumentTypeError(f"expected column names separated by commas, got {text!r}")
    return names
