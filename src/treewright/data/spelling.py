"""Names that are written alike: Yes and yes, Nord and nord, José and Jose."""

from __future__ import annotations

import unicodedata
from collections.abc import Collection, Iterable, Mapping, Sequence

from treewright.core.names import counted

__all__ = ["alike", "alike_words", "spelling_key", "known_names"]

_UMLAUTS = str.maketrans({"ä": "ae", "ö": "oe", "ü": "ue"})


def spelling_key(name: object) -> str:
    """A label or group name in small letters, without marks on letters, with single blanks, and what cannot be seen.

    Umlauts are as they are written where a keyboard has none.

    Examples
    --------
    >>> spelling_key(" Bad  Ems"), spelling_key("JOSÉ"), spelling_key("Süd"), spelling_key("North\u200b")
    ('bad ems', 'jose', 'sued', 'north')
    """
    text = str(name)
    if not text.isascii():
        text = unicodedata.normalize("NFKC", text).casefold().translate(_UMLAUTS)
        text = "".join(c for c in unicodedata.normalize("NFD", text) if unicodedata.category(c) not in ("Mn", "Cf"))
    return " ".join(text.casefold().split())


def alike(counts: Mapping[str, int]) -> list[list[tuple[str, int]]]:
    """Labels or group names that are written alike, with their rows, the most frequent of each first.

    Examples
    --------
    >>> alike({"Yes": 12, "no": 7, "yes": 30, "NO ": 9})
    [[('yes', 30), ('Yes', 12)], [('NO ', 9), ('no', 7)]]
    """
    found: dict[str, list[tuple[str, int]]] = {}
    for name, n in counts.items():
        found.setdefault(spelling_key(name), []).append((name, n))
    return [sorted(names, key=lambda pair: (-pair[1], pair[0])) for names in found.values() if len(names) > 1]


def alike_words(found: Sequence[Sequence[tuple[str, int]]], limit: int = 5) -> str:
    """Labels or group names that are written alike, and how many rows have each, in words.

    Examples
    --------
    >>> alike_words(alike({"Yes": 1, "yes": 30}))
    "'yes' (30 rows) and 'Yes' (1 row)"
    """
    said = [" and ".join(f"{name!r} ({counted(n, 'row')})" for name, n in names) for names in found[:limit]]
    more = f", and {len(found) - limit} more" if len(found) > limit else ""
    return ", ".join(said) + more


def known_names(names: Iterable[str], known: Collection[str]) -> dict[str, str]:
    """The known label or group for each that is written like one and is none; of several the first.

    Examples
    --------
    >>> known_names(["Yes", "no", "may be"], ["yes", "no"])
    {'Yes': 'yes'}
    """
    by_key: dict[str, str] = {}
    for name in known:
        by_key.setdefault(spelling_key(name), name)
    meant = {name: by_key.get(spelling_key(name)) for name in names if name not in known}
    return {name: other for name, other in meant.items() if other is not None}
