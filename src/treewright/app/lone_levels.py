"""Levels of text in a model file that one row alone of the fit has: whoever has the file reads a word of that row."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from treewright.core.names import counted, printable
from treewright.data.tables.cells import number_text
from treewright.data.tables.columns import BOOLEAN, level_codes
from treewright.data.tables.encoder import TableEncoder
from treewright.data.tables.files import Table
from treewright.data.tables.large import FileTable
from treewright.data.tables.mixed_encoder import MixedEncoder
from treewright.exceptions import ModelFileError

__all__ = ["alone_lines", "checked_alone", "levels_alone", "levels_alone_words"]


def levels_alone(table: Table | FileTable, encoder: TableEncoder | MixedEncoder | None, model: Any) -> dict[str, int]:
    """How many levels of a model file stand in one row of its table alone, by column, where there are any."""
    found = {}
    for name, levels in _levels(encoder, model).items():
        codes, _ = level_codes(table.series(name), tuple(levels))
        alone = int(np.count_nonzero(np.bincount(codes[codes >= 0], minlength=len(levels)) == 1))
        if alone and set(levels) - set(BOOLEAN):
            found[name] = alone
    return found


def _levels(encoder: TableEncoder | MixedEncoder | None, model: Any) -> dict[str, Sequence[str]]:
    if isinstance(encoder, TableEncoder):
        return {name: code.levels for name, code in encoder.codes.items() if code.levels}
    known = getattr(model, "categories_", None)
    if encoder is None or not known:
        return {}
    written = {name: of for name, of in zip(encoder.columns, known, strict=True) if of is not None}
    return {name: [v if isinstance(v, str) else str(number_text(float(v))) for v in of] for name, of in written.items()}


def levels_alone_words(alone: Mapping[str, int]) -> str:
    """Levels of a model file that one row alone has, in words.

    Examples
    --------
    >>> levels_alone_words({"occupation": 2, "town": 1})
    "2 levels of 'occupation', 1 level of 'town': whoever has the model can read them"
    >>> levels_alone_words({})
    'none'
    """
    told = [f"{counted(n, 'level')} of {printable(name)!r}" for name, n in alone.items()]
    return f"{', '.join(told)}: whoever has the model can read them" if told else "none"


def alone_lines(alone: Mapping[str, int] | None, always: bool = False) -> list[str]:
    """What a job, or `show`, says of levels that one row alone has; `show` says if there is none."""
    if alone is None or not (alone or always):
        return []
    return [f"levels of text in the model file that one row alone has: {levels_alone_words(alone)}"]


def checked_alone(entries: object, columns: Sequence[str], where: str) -> dict[str, int]:
    """Levels of one row alone as a model file has them, trusting nothing.

    Examples
    --------
    >>> checked_alone([["town", 2]], ["age", "town"], "alone")
    {'town': 2}
    """
    found: dict[str, int] = {}
    for pair in entries if isinstance(entries, list) else [None]:
        if not isinstance(pair, list) or len(pair) != 2 or pair[0] not in columns or type(pair[1]) is not int:
            raise ModelFileError(f"{where}: expected lists of a column and how many of its levels one row alone has")
        found[pair[0]] = pair[1]
    return found
