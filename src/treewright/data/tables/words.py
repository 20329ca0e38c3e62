"""Features of a table in words: what stands in a rule instead of ``race=White <= 0.5``."""

from __future__ import annotations

import numpy as np

from treewright.core.names import quoted
from treewright.data.tables.codes import ColumnCode
from treewright.data.tables.encoder import TableEncoder
from treewright.data.tables.mixed_encoder import MixedEncoder
from treewright.tree.words import DateWords, FeatureWords, FlagWords

__all__ = ["feature_words"]


def feature_words(encoder: TableEncoder | MixedEncoder) -> dict[int, FeatureWords]:
    """Words for the features of an encoder that are no numbers as they are, by the numbers of the features.

    Parameters
    ----------
    encoder : TableEncoder or MixedEncoder
        How columns became features.

    Returns
    -------
    dict of int to FeatureWords
        As :func:`treewright.tree.export_text` takes them.

    Examples
    --------
    >>> from treewright.data.tables.files import Table
    >>> table = Table({"age": [31.0, 45.0, 50.0], "race": ["White", "Black", "Other"], "area": ["a", "b", "a"]})
    >>> for feature, words in feature_words(TableEncoder.fit(table, ["age", "race", "area"])).items():
    ...     print(feature, words.yes, words.no, sep="; ")
    1; race is Other; race is not Other
    2; race is White; race is not White
    3; area is b; area is a
    """
    if isinstance(encoder, MixedEncoder):
        dates = {name: "%H" in form for name, form in encoder.formats.items()}
        return {j: DateWords(name, dates[name]) for j, name in enumerate(encoder.columns) if name in dates}
    found: list[FeatureWords | None] = []
    for name, code in encoder.codes.items():
        found += _level_words(name, code) if code.kind == "text" else [_number_words(name, code)]
        if code.gaps:
            filled = None if code.fill is None else (len(found) - 1, code.fill)
            found.append(FlagWords(f"{name} is missing", f"{name} is known", name, filled))
    return {j: words for j, words in enumerate(found) if words is not None}


def _number_words(name: str, code: ColumnCode) -> FeatureWords | None:
    if code.kind != "date":
        return None
    words = DateWords(name, "%H" in code.format)
    return words if code.fill is None else words._replace(since=_new_year(code.fill))


def _new_year(days: float) -> int:
    """The first day of the year of a date, as days since 1970-01-01."""
    year = np.datetime64(int(days // 1), "D").astype("datetime64[Y]")
    return int(year.astype("datetime64[D]").astype(np.int64))


def _level_words(name: str, code: ColumnCode) -> list[FeatureWords]:
    shown = [level for level in code.levels if level != code.base]
    # of two levels the other one is the better word, unless missing values are there too
    pair = len(shown) == 1 and code.base is not None and not code.gaps
    others = [f"{name} is {quoted(code.base)}" if pair else f"{name} is not {quoted(level)}" for level in shown]
    return [
        FlagWords(f"{name} is {quoted(level)}", other, name, many=code.pooled)
        for level, other in zip(shown, others, strict=True)
    ]
