"""Names of features, classes, groups and files as text that people read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar

__all__ = ["counted", "on_command_line", "option", "printable", "quoted", "shortened"]

_ON_COMMAND_LINE: ContextVar[bool] = ContextVar("treewright_command_line", default=False)
_OTHER_OPTIONS = {"margins": "--margin", "settings": "--set"}
"""Options of the command line that are not called as the parameter is."""

_MARKS = ",{}'\""
"""Marks that part names from one another, or quote them."""
_OWN_WORDS = {"missing", "known"}
"""What rules say of a column instead of a level."""
_JOINING = {"or", "nor"}
"""Words between levels."""


@contextmanager
def on_command_line() -> Iterator[None]:
    """Let :func:`option` name what is asked for as the command line does."""
    token = _ON_COMMAND_LINE.set(True)
    try:
        yield
    finally:
        _ON_COMMAND_LINE.reset(token)


def option(name: str, value: object = None) -> str:
    """What a user calls something that is asked for: a parameter in Python, an option on the command line.

    Parameters
    ----------
    name : str
        Name of the parameter.
    value : object
        Its value if that is to be named too; of ``settings`` a mapping, of ``na`` a list.

    Examples
    --------
    >>> option("totals_of"), option("totals_of", "all"), option("settings", {"teacher": "auto"})
    ('totals_of', "totals_of='all'", "settings={'teacher': 'auto'}")
    >>> with on_command_line():
    ...     option("totals_of"), option("totals_of", "all"), option("settings", {"teacher": "auto"})
    ('--totals-of', '--totals-of all', '--set teacher=auto')
    """
    if not _ON_COMMAND_LINE.get():
        return name if value is None else f"{name}={value!r}"
    written = _OTHER_OPTIONS.get(name, "--" + name.replace("_", "-"))
    if value is True:
        return written
    if isinstance(value, list):
        return " ".join(f"{written} {one!r}" for one in value)
    if isinstance(value, Mapping):
        settings = [f"{key}={one}" for key, one in value.items()]
        return " ".join(f'{written} "{text}"' if "'" in text else f"{written} {text}" for text in settings)
    return written if value is None else f"{written} {value}"


def counted(n: int, one: str, many: str = "") -> str:
    """A number and what is counted, in the singular or the plural, for any message.

    Parameters
    ----------
    n : int
        The number.
    one, many : str
        What is counted: one of it, and several; by default with an s.

    Examples
    --------
    >>> counted(1, "row"), counted(2, "row"), counted(0, "leaf", "leaves")
    ('1 row', '2 rows', '0 leaves')
    """
    return f"{n} {one}" if n == 1 else f"{n} {many or one + 's'}"


def printable(name: object) -> str:
    r"""Text of a name as part of a line of any message, with nothing in it that a terminal would obey or hide.

    Control characters, line ends, what changes the direction of text and what cannot be seen are written as escapes of
    Python; letters of all alphabets stay.

    Parameters
    ----------
    name : object
        Name of a feature, class, group or file, as a user or a file gives it.

    Returns
    -------
    str
        A printable text without line ends.

    Examples
    --------
    >>> print(printable("größe"), printable("\x1b[31mred\x07"), printable("a\nb"), printable("a\u202eb"))
    größe \x1b[31mred\x07 a\nb a\u202eb
    """
    text = str(name)
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() and c != "\\" else c.encode("unicode_escape").decode("ascii") for c in text)


def quoted(name: object) -> str:
    """Printable text of a level or class name in any message, in quotes where it could be taken for words of a rule.

    That is so where it would not be clear where the name begins or ends, and for names such as "missing" that a rule
    has for something else.

    Parameters
    ----------
    name : object
        Name of a level or class.

    Examples
    --------
    >>> print(quoted("red"), quoted("red, dark"), quoted("missing"), quoted("red or blue"), quoted(""))
    red 'red, dark' 'missing' 'red or blue' ''
    """
    text = printable(name)
    words = text.casefold().split()
    unclear = text != text.strip() or any(mark in text for mark in _MARKS)
    own = not words or (len(words) == 1 and words[0] in _OWN_WORDS)
    return repr(text) if unclear or own or _JOINING & set(words) else text


def shortened(name: object, limit: int = 60) -> str:
    """Printable text of a name for any message, its middle left out if it is long: both ends may tell names apart.

    Parameters
    ----------
    name : object
        A name.
    limit : int
        Most characters, at least 3.

    Examples
    --------
    >>> shortened("region"), shortened("a very long name of a region", limit=11)
    ('region', 'a ver…egion')
    """
    text = printable(name)
    if len(text) <= limit:
        return text
    tail = (limit - 1) // 2
    return f"{text[: limit - 1 - tail]}…{text[-tail:]}"
