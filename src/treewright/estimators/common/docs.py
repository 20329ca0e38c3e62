"""Docstrings of estimators, whose shared entries are written once: in the docstrings of the classes that share them."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeVar

__all__ = ["documented"]

C = TypeVar("C", bound=type)


@dataclass(frozen=True)
class _Entry:
    """An entry of a section: its names, their type (empty if it is left to the base classes) and its text."""

    names: tuple[str, ...]
    kind: str
    text: tuple[str, ...]


def documented(kind: C) -> C:
    """Complete the docstring of an estimator, in the sections Parameters and Attributes.

    Names without type and text get those of the base class that has them, the nearest one first; names without type get
    the type alone. Defaults are those of the signature.

    Examples
    --------
    >>> class Timed:
    ...     '''Base.
    ...
    ...     Parameters
    ...     ----------
    ...     time_limit : float or None
    ...         Seconds.
    ...     '''
    >>> @documented
    ... class Model(Timed):
    ...     '''A model.
    ...
    ...     Parameters
    ...     ----------
    ...     depth : int
    ...         Depth.
    ...     time_limit
    ...     '''
    ...
    ...     def __init__(self, depth=2, time_limit=60.0): ...
    >>> Model.__doc__.splitlines()[-2:]
    ['time_limit : float or None, default=60.0', '    Seconds.']
    """
    if kind.__doc__ is None:  # python -OO
        return kind
    doc = inspect.cleandoc(kind.__doc__)
    for section in ("Parameters", "Attributes"):
        shared: dict[str, _Entry] = {}
        for base in reversed(kind.__mro__[1:]):
            for entry in _entries(inspect.cleandoc(base.__dict__.get("__doc__") or ""), section):
                shared |= dict.fromkeys(entry.names, entry)
        parameters = inspect.signature(kind).parameters if section == "Parameters" else {}
        lines = [line for entry in _entries(doc, section) for line in _completed(entry, shared, parameters)]
        place = _place(doc, section)
        doc = doc[: place.start] + "\n".join(lines) + doc[place.stop :]
    kind.__doc__ = doc
    return kind


def _place(doc: str, section: str) -> slice:
    """Where the entries of a section are; an empty place if there are none."""
    found = re.search(rf"^{section}\n-+\n(.*?)(?=\n+[^\n]+\n---|\s*\Z)", doc, re.MULTILINE | re.DOTALL)
    return slice(0, 0) if found is None else slice(*found.span(1))


def _entries(doc: str, section: str) -> list[_Entry]:
    """The entries of a section of a docstring."""
    entries: list[_Entry] = []
    for line in doc[_place(doc, section)].splitlines():
        if line and not line.startswith(" "):
            names, _, kind = line.partition(" : ")
            entries.append(_Entry(tuple(re.findall(r"\w+", names)), kind, ()))
        else:
            entries[-1] = replace(entries[-1], text=(*entries[-1].text, line))
    return entries


def _completed(entry: _Entry, shared: dict[str, _Entry], parameters: Mapping[str, Any]) -> Iterator[str]:
    """Lines of an entry; of the shared ones of its names, if it is nothing but names."""
    if entry.text:
        parts = [(list(entry.names), entry.kind or shared[entry.names[0]].kind, entry.text)]
    else:
        found = dict.fromkeys(shared[name] for name in entry.names)
        parts = [([name for name in part.names if name in entry.names], part.kind, part.text) for part in found]
    for names, kind, text in parts:
        defaults = [parameters[name].default for name in names if name in parameters]
        shown = dict.fromkeys(f'"{value}"' if isinstance(value, str) else repr(value) for value in defaults)
        yield f"{', '.join(names)} : {kind}" + (f", default={' and '.join(shown)}" if shown else "")
        yield from text
