"""Parameters of estimators, each declared and described once: in its class, or in the base class that several share."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any, TypeVar, dataclass_transform

__all__ = ["estimator", "parameter", "parameters"]

T = TypeVar("T")


def parameter(*, default: Any, allowed: list[Any] | str, kw_only: bool = True) -> Any:
    """A parameter of an estimator.

    Parameters
    ----------
    default : object
        Its default.
    allowed : list or str
        Constraints of scikit-learn, any of which must hold; "no_validation" for none.
    kw_only : bool
        Whether it is given by name alone.
    """
    return field(default=default, kw_only=kw_only, metadata={"allowed": allowed})


@dataclass_transform(eq_default=False, kw_only_default=True, field_specifiers=(parameter,))
def parameters(kind: type[T]) -> type[T]:
    """Class decorator that makes parameters those of the constructor, as a dataclass does; subclasses have them too.

    The constructor does nothing else than set them, as scikit-learn wants it.
    """
    kind = dataclass(eq=False, repr=False)(kind)
    allowed = {entry.name: entry.metadata["allowed"] for entry in fields(kind)}  # type: ignore[arg-type]
    kind._parameter_constraints = allowed  # type: ignore[attr-defined]
    return kind


@dataclass_transform(eq_default=False, kw_only_default=True, field_specifiers=(parameter,))
def estimator(kind: type[T]) -> type[T]:
    """Class decorator of public estimators: :func:`parameters`, and a docstring that describes all of them.

    In the sections Parameters and Attributes, names without type and text get those of the base class that has them,
    the nearest one first; names with a text of their own get the type. Defaults are added. The signature has the order
    of the docstring.

    Examples
    --------
    >>> from numbers import Integral, Real
    >>> @parameters
    ... class Timed:
    ...     '''Base.
    ...
    ...     Parameters
    ...     ----------
    ...     time_limit : float or None
    ...         Seconds.
    ...     '''
    ...
    ...     time_limit: float | None = parameter(default=60.0, allowed=[Real, None])
    >>> @estimator
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
    ...     depth: int = parameter(default=2, allowed=[Integral], kw_only=False)
    >>> list(inspect.signature(Model).parameters), Model(3).depth
    (['depth', 'time_limit'], 3)
    >>> Model.__doc__.splitlines()[-2:]
    ['time_limit : float or None, default=60.0', '    Seconds.']
    """
    kind = parameters(kind)
    if kind.__doc__ is None:  # python -OO
        return kind
    doc = inspect.cleandoc(kind.__doc__)
    signature = inspect.signature(kind.__init__)
    for section in ("Parameters", "Attributes"):
        shared: dict[str, _Entry] = {}
        for base in reversed(kind.__mro__[1:]):
            for entry in _entries(inspect.cleandoc(base.__dict__.get("__doc__") or ""), section):
                shared |= dict.fromkeys(entry.names, entry)
        own, known = _entries(doc, section), signature.parameters if section == "Parameters" else {}
        place, lines = _place(doc, section), [line for entry in own for line in _completed(entry, shared, known)]
        doc = doc[: place.start] + "\n".join(lines) + doc[place.stop :]
        if known:
            order = ["self", *(name for entry in own for name in entry.names)]
            ordered = sorted(known.values(), key=lambda given: order.index(given.name))
            kind.__init__.__signature__ = signature.replace(parameters=ordered)  # type: ignore[attr-defined]
    kind.__doc__ = doc
    return kind


@dataclass(frozen=True)
class _Entry:
    """An entry of a section: its names, their type (empty if it is left to the base classes) and its text."""

    names: tuple[str, ...]
    kind: str
    text: tuple[str, ...]


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
