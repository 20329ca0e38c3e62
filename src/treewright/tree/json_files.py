"""JSON files read strictly and written atomically: what every model file goes through."""

from __future__ import annotations

import json
import math
import os
import stat
from collections import Counter
from typing import Any, NoReturn

from treewright.core.files import replacing
from treewright.exceptions import ModelFileError

__all__ = ["MAX_BYTES", "parse_json", "read_json", "shown", "write_json"]

MAX_BYTES = 2**28
"""Largest file that is read or written unless the caller allows more."""


def parse_json(text: str | bytes, where: str = "") -> Any:
    """Parse the JSON of a model file strictly.

    Parameters
    ----------
    text : str or bytes
        The text; bytes must be UTF-8.
    where : str, default=""
        Name of the source, put before error texts.

    Returns
    -------
    object
        Lists, dicts, strings, numbers, booleans and None.

    Raises
    ------
    ModelFileError
        If the text is empty, truncated, not UTF-8, nested too deep, has a key twice in one object, or has a
        number that is NaN, infinite or too long.

    Examples
    --------
    >>> parse_json('{"a": [1, 2.5]}')
    {'a': [1, 2.5]}
    >>> parse_json('{"a": 1, "a": 2}')
    Traceback (most recent call last):
    ...
    treewright.exceptions.ModelFileError: key 'a' occurs twice in one object
    """
    prefix = f"{where}: " if where else ""
    try:
        if isinstance(text, bytes):
            text = text.decode("utf-8")
        if not text.strip():
            raise ModelFileError(f"{prefix}empty, expected JSON")
        return json.loads(
            text,
            object_pairs_hook=_unique_keys,
            parse_constant=_refuse_constant,
            parse_float=_finite_float,
        )
    except UnicodeDecodeError as error:
        raise ModelFileError(f"{prefix}not UTF-8: {error.reason} at byte {error.start}") from error
    except json.JSONDecodeError as error:
        problem = f"{error.msg} at line {error.lineno} column {error.colno}"
        raise ModelFileError(f"{prefix}not JSON, or truncated: {problem}") from error
    except RecursionError as error:
        raise ModelFileError(f"{prefix}nested too deep") from error
    except ModelFileError:
        raise
    except ValueError as error:
        message = str(error) if isinstance(error, _Refused) else "a number has too many digits"
        raise ModelFileError(f"{prefix}{message}") from error


def read_json(path: str | os.PathLike[str], max_bytes: int = MAX_BYTES) -> Any:
    """Read a JSON file strictly.

    Parameters
    ----------
    path : path-like
        The file.
    max_bytes : int, default=MAX_BYTES
        Larger files are refused.

    Returns
    -------
    object
        What :func:`parse_json` returns.

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    ModelFileError
        If it cannot be read, is too large, or is not strict JSON; the text has the path and the place.

    Examples
    --------
    >>> import os, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "model.json")
    ...     write_json(path, {"a": [1, 2.5]})
    ...     read_json(path)
    {'a': [1, 2.5]}
    """
    name = os.fspath(path)
    try:
        status = os.stat(name)
        if stat.S_ISDIR(status.st_mode):
            raise ModelFileError(f"{name}: a folder, expected a file")
        if not stat.S_ISREG(status.st_mode):
            raise ModelFileError(f"{name}: not a regular file")
        with open(name, "rb") as file:
            # One byte more than allowed: the file may have grown since it was measured.
            content = file.read(max_bytes + 1) if status.st_size <= max_bytes else b""
    except (FileNotFoundError, ModelFileError):
        raise
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise ModelFileError(f"{name!r}: cannot be read: {reason}") from error
    if max(status.st_size, len(content)) > max_bytes:
        size = max(status.st_size, len(content))
        raise ModelFileError(f"{name}: {size} bytes are too many, at most {max_bytes} are allowed")
    return parse_json(content, where=name)


def write_json(path: str | os.PathLike[str], data: object, max_bytes: int = MAX_BYTES) -> None:
    """Write a JSON file in UTF-8, entirely or not at all.

    A crash leaves the old file or the new one and never a part, see :func:`treewright.core.files.replacing`.

    Parameters
    ----------
    path : path-like
        The file.
    data : object
        Dicts, lists, strings, finite numbers, booleans and None.
    max_bytes : int, default=MAX_BYTES
        More is refused, since :func:`read_json` would refuse it too.

    Raises
    ------
    ModelFileError
        If the data has NaN or infinite numbers, refers to itself, or is too large.
    TypeError
        If the data has something that JSON has not.
    OSError
        If the file cannot be written.

    Examples
    --------
    >>> import os, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "model.json")
    ...     write_json(path, {"labels": ["no", "yes"]})
    ...     os.listdir(folder)
    ['model.json']
    """
    try:
        content = (json.dumps(data, allow_nan=False, ensure_ascii=False) + "\n").encode("utf-8")
    except (ValueError, RecursionError) as error:
        raise ModelFileError(f"{os.fspath(path)}: cannot be written as JSON: {error}") from error
    if len(content) > max_bytes:
        raise ModelFileError(f"{os.fspath(path)}: {len(content)} bytes are too many, at most {max_bytes} are allowed")
    with replacing(path) as file:
        file.write(content)


class _Refused(ValueError):
    """A document is JSON to Python's parser, but not to us."""


def _unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        twice = next(key for key, times in Counter(key for key, _ in pairs).items() if times > 1)
        raise _Refused(f"key {shown(twice)} occurs twice in one object")
    return found


def _refuse_constant(text: str) -> NoReturn:
    raise _Refused(f"{text} is not a JSON number")


def _finite_float(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise _Refused(f"number {shown(text)} is too large")
    return number


def shown(value: object) -> str:
    """Short text for a value of a model file that may be hostile: huge, deep or without end."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(int(value)) if value.bit_length() <= 64 else f"an integer of {value.bit_length()} bits"
    if isinstance(value, float):
        return repr(float(value))
    if isinstance(value, str):
        return repr(str(value)) if len(value) <= 40 else f"{str(value[:37])!r}..."
    if isinstance(value, list):
        return f"a list of {len(value)}"
    return "an object" if isinstance(value, dict) else f"a {type(value).__name__}"
