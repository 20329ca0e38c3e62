"""Few combinations of settings in which every two, or every three, settings meet."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import combinations, product
from typing import Any

import numpy as np

Row = dict[str, Any]
Meeting = tuple[tuple[str, Any], ...]


def meetings(row: Row, strength: int) -> set[Meeting]:
    """Every `strength` settings of a row, named."""
    return set(combinations(row.items(), strength))


def covering(
    factors: Mapping[str, Sequence[Any]], allowed: Callable[[Row], bool] = lambda row: True, strength: int = 2
) -> list[Row]:
    """Rows of settings that hold whatever `strength` settings meet in some allowed row.

    Greedy: the next row is the first of those with most that is new. The same list every time.
    """
    every = [row for values in product(*factors.values()) if allowed(row := dict(zip(factors, values, strict=True)))]
    number: dict[Meeting, int] = {}
    cells = np.array(
        [[number.setdefault(met, len(number)) for met in combinations(row.items(), strength)] for row in every]
    )
    new = np.ones(len(number), dtype=bool)
    chosen = []
    while new.any():
        best = int(np.argmax(new[cells].sum(axis=1)))
        chosen.append(every[best])
        new[cells[best]] = False
    return chosen
