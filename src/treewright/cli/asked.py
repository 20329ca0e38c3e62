"""From arguments of the command line to what is asked of the library, by the names that Python has for it."""

from __future__ import annotations

import argparse
import ast
from collections.abc import Sequence
from dataclasses import fields
from typing import Any

from treewright.app.options import FitOptions, TotalsOptions
from treewright.exceptions import InvalidInputError

__all__ = ["fit_options", "totals_options"]


def totals_options(args: argparse.Namespace) -> TotalsOptions:
    """Totals that are asked for, and how files are read."""
    return TotalsOptions(**_of(args, TotalsOptions))


def fit_options(args: argparse.Namespace) -> FitOptions:
    """What is asked of a fit, with a seed if none is given."""
    given = {"settings": _settings(args.settings), "suspects": args.suspects is not None}
    return FitOptions(**_of(args, FitOptions) | given).with_seed()


def _of(args: argparse.Namespace, kind: type[TotalsOptions]) -> dict[str, Any]:
    """Arguments that are called as what they ask for."""
    own = {field.name: getattr(args, field.name) for field in fields(kind) if hasattr(args, field.name)}
    return own | {"margins": args.margin}


def _settings(texts: Sequence[str]) -> dict[str, object]:
    """What ``--set`` names, and the values."""
    found: dict[str, object] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        name = name.strip().replace("-", "_")
        if not equals or not name:
            raise InvalidInputError(f"--set {text}: expected NAME=VALUE")
        if name in found:
            raise InvalidInputError(f"--set {text}: {name} is given twice")
        found[name] = _literal(value.strip())
    return found


def _literal(text: str) -> object:
    """Return the number, bool, None or list that a text spells, else the text itself."""
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError, TypeError, RecursionError, MemoryError):
        return text
