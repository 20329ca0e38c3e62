"""Text tables made ready for a fast reader, which trusts them: in UTF-8, and every record as wide as the header.

The reader (polars) fills short records up with empty cells, takes blank lines for rows, and splits records at quotes
that stand within a cell. So the bytes are looked at first. What is well-formed is read as it lies on the disk; what is
not in UTF-8, packed, or oddly quoted is rewritten to a passing file.
"""

from __future__ import annotations

import codecs
import contextlib
import csv
import gzip
import io
import shutil
import warnings
import zlib
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import BinaryIO

import numpy as np

from treewright.core.arrays import IntArray
from treewright.core.files import PassingFolder, passing_folder
from treewright.core.names import option
from treewright.data.columns_checked import listing
from treewright.exceptions import InvalidInputError

__all__ = ["STRIDE", "TextFile", "check_encoding", "check_names", "reading_errors", "text_file"]

_DELIMITERS = ",;\t|"
_CHUNK = 1 << 21
_HEAD = 1 << 20  # bytes that are looked at for delimiter and header
STRIDE = 1000
"""Rows between those whose place in the file is kept."""
_LONGEST = 1 << 26  # bytes of a record, beyond which a quote must have been left open
_QUOTE, _LINE_END, _RETURN = ord('"'), ord("\n"), ord("\r")
_UTF8 = ("utf-8", "utf-8-sig", "ascii")  # read as they are; a mark at the beginning is skipped with the header
_BOMS = {codecs.BOM_UTF8: "utf-8-sig", codecs.BOM_UTF16_LE: "utf-16", codecs.BOM_UTF16_BE: "utf-16"}


@dataclass(frozen=True)
class TextFile:
    """A text table that can be read as it is, and what was found in it."""

    path: Path
    """The file, or a passing copy of it."""
    delimiter: str
    names: list[str]
    """Names of the columns, as they are written."""
    n_lines: int
    """Lines before the first row."""
    n_rows: int
    """Number of rows; what follows are blank lines."""
    offsets: tuple[int, ...] = ()
    """Where in the file every `STRIDE`-th row begins, and where the last one ends."""
    encoding: str = "utf-8"
    """What the file was written in."""


@contextlib.contextmanager
def reading_errors(path: Path) -> Iterator[None]:
    """Name the file of a table in errors of reading it."""
    try:
        yield
    except FileNotFoundError:
        raise
    except (OSError, EOFError, zlib.error) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise InvalidInputError(f"{path}: cannot be read: {reason}") from error


def check_encoding(encoding: str | None) -> None:
    """Refuse names of encodings of a table's file that Python does not know.

    Examples
    --------
    >>> check_encoding("iso8859-15")
    >>> check_encoding("latin-99")
    Traceback (most recent call last):
    ...
    treewright.exceptions.InvalidInputError: 'latin-99' is no known encoding; such as utf-8, cp1252, ...
    """
    try:
        known = encoding is None or codecs.lookup(encoding)._is_text_encoding
    except LookupError:
        known = False
    if not known:
        raise InvalidInputError(
            f"{encoding!r} is no known encoding; such as utf-8, cp1252, latin-1, iso8859-15, cp437, utf-16"
        )


def check_names(names: Sequence[str], path: Path) -> None:
    """Refuse columns of a table without a name and columns of the same name, all in one error."""
    nameless = [number for number, name in enumerate(names, start=1) if not name.strip()]
    twice = [name for name, times in Counter(names).items() if times > 1 and name.strip()]
    said = []
    if nameless:
        which = (
            f"column {nameless[0]} of {len(names)} has" if len(nameless) == 1 else f"columns {listing(nameless)} have"
        )
        said.append(f"{which} no name in the header")
    if twice:
        said.append(f"the header has columns of the same name: {listing(twice)}")
    if said:
        raise InvalidInputError(f"{path}: {'; '.join(said)}")


@contextlib.contextmanager
def text_file(path: Path, encoding: str | None = None) -> Iterator[TextFile]:
    """Give a text table that can be read as it is; a passing copy, if there must be one, is removed at the end.

    Parameters
    ----------
    path : Path
        A text table, perhaps packed (``.gz``).
    encoding : str or None
        Its encoding; None for UTF-8 or what its first bytes say, and cp1252 with a warning where that cannot be.
    """
    check_encoding(encoding)
    with passing_folder() as folder:
        with reading_errors(path):
            plain = _unpacked(path, folder)
            found = _encoding_of(plain, path) if encoding is None else codecs.lookup(encoding).name
            if found not in _UTF8:
                plain = _recoded(plain, found, folder / "recoded", path)
            elif encoding is not None and (line := _wrong_line(plain)):
                raise InvalidInputError(f"{path}: not UTF-8 in line {line}; say which it is ({option('encoding')})")
            file = replace(_structure(plain, path, folder), encoding=found.removesuffix("-sig"))
        yield file


# ---------------------------------------------------------------------- bytes


def _unpacked(path: Path, folder: PassingFolder) -> Path:
    """The file itself, or a copy of what is packed or can be read only once."""
    packed = path.suffix.lower() == ".gz"
    if path.is_file() and not packed:
        return path
    with gzip.open(path) if packed else open(path, "rb") as source, open(folder / "plain", "wb") as copy:
        shutil.copyfileobj(source, copy, _CHUNK)
    return folder / "plain"


def _chunks(stream: BinaryIO) -> Iterator[bytes]:
    return iter(lambda: stream.read(_CHUNK), b"")


def _wrong_line(path: Path) -> int:
    """The first line that is not UTF-8, 0 if all are."""
    decoder, before = codecs.getincrementaldecoder("utf-8")(), 0
    with open(path, "rb") as stream:
        for chunk in _chunks(stream):
            rest = decoder.getstate()[0]
            try:
                if rest or not chunk.isascii():
                    decoder.decode(chunk)
            except UnicodeDecodeError as error:
                return _lines_before(path, before - len(rest) + error.start) + 1
            before += len(chunk)
    return _lines_before(path, before) + 1 if decoder.getstate()[0] else 0


def _lines_before(path: Path, place: int) -> int:
    """Lines that end before a place in a file: counted only where somebody asks."""
    with open(path, "rb") as stream:
        return sum(stream.read(min(_CHUNK, place - at)).count(b"\n") for at in range(0, place, _CHUNK))


def _encoding_of(path: Path, shown: Path) -> str:
    """UTF-8 if the file is that, the encoding that its first bytes name, or else one of a byte a character."""
    with open(path, "rb") as stream:
        start = stream.read(4096)
    for mark, name in _BOMS.items():
        if start.startswith(mark):
            return name
    if b"\0" in start:
        raise InvalidInputError(
            f"{shown}: has zero bytes, as UTF-16 has; say which it is ({option('encoding', 'utf-16')})"
        )
    line = _wrong_line(path)
    if not line:
        return "utf-8"
    decoder = codecs.getincrementaldecoder("cp1252")()
    try:
        with open(path, "rb") as stream:
            for chunk in _chunks(stream):
                decoder.decode(chunk)
        found, whose = "cp1252", "Windows, Western Europe"
    except UnicodeDecodeError:
        found, whose = "latin-1", "ISO 8859-1"
    warnings.warn(
        f"{shown}: not UTF-8 in line {line}; read as {found} ({whose}). If names or levels look wrong, say which it is "
        f"({option('encoding')}), or save the file as UTF-8",
        UserWarning,
        stacklevel=5,
    )
    return found


def _recoded(path: Path, encoding: str, target: Path, shown: Path) -> Path:
    """A copy in UTF-8; without a mark, which some encodings keep as a character."""
    decoder, line, first = codecs.getincrementaldecoder(encoding)(), 1, True
    with open(path, "rb") as source, open(target, "wb") as copy:
        chunk = b"first"
        while chunk:
            chunk = source.read(_CHUNK)
            try:
                text = decoder.decode(chunk, final=not chunk)
            except UnicodeError as error:
                raise InvalidInputError(f"{shown}: not {encoding} after line {line}: {error}") from error
            copy.write((text.removeprefix("\ufeff") if first else text).encode("utf-8"))
            line, first = line + text.count("\n"), False
    return target


# ---------------------------------------------------------------------- records


def _structure(path: Path, shown: Path, folder: PassingFolder) -> TextFile:
    """Find delimiter, header and number of rows; rewrite what is oddly quoted or has blank lines between rows."""
    with open(path, "rb") as stream:
        raw = stream.read(_HEAD)
    head = codecs.getincrementaldecoder("utf-8-sig")().decode(raw)
    delimiter = _delimiter(head, preferred="\t" if ".tsv" in shown.suffixes else ",")
    reader = csv.reader(io.StringIO(head, newline=""), delimiter=delimiter, strict=True)
    try:
        names = next((row for row in reader if row), [])
    except csv.Error as error:
        raise InvalidInputError(f"{shown}: line {reader.line_num}: {error}") from error
    if not names:
        return TextFile(path, delimiter, [], 0, 0)
    check_names(names, shown)
    scan = _Scan(delimiter, len(names), shown)
    n_rows = scan.rows_of(path)
    # a carriage return within a name is a line to csv and none to polars
    if n_rows is not None and not any("\r" in name for name in names):
        return TextFile(path, delimiter, names, reader.line_num, n_rows, scan.places)
    target = folder / "rewritten"
    _rewrite(path, delimiter, len(names), target, shown)
    scan = _Scan(delimiter, len(names), shown, n_headers=0)
    return TextFile(target, delimiter, names, 0, scan.rows_of(target) or 0, scan.places)


def _delimiter(text: str, preferred: str) -> str:
    """Return the delimiter that gives the most columns, the same number in each of the first rows."""
    order = preferred + _DELIMITERS.replace(preferred, "")
    best, most = preferred, (False, 1)
    for delimiter in order:
        rows = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter)
        widths: list[int] = []
        with contextlib.suppress(csv.Error):  # read again, and reported, with the delimiter that is chosen
            widths.extend(len(row) for row in islice((r for r in rows if r), 50))
        if widths and widths[0] > 1:
            score = (len(set(widths)) == 1, widths[0])
            if score > most:
                best, most = delimiter, score
    return best


def _ragged(path: Path, delimiter: str, width: int, line: int, n_fields: int, others: int) -> InvalidInputError:
    more = f"; {others} other lines differ from the header too" if others else ""
    return InvalidInputError(
        f"{path}: line {line} has {n_fields} fields, the header has {width} (delimiter {delimiter!r}){more}"
    )


class _Scan:
    """Counts the cells of all records; whole chunks at once, as quotes come in pairs where they are well placed."""

    def __init__(self, delimiter: str, width: int, shown: Path, n_headers: int = 1) -> None:
        self.delimiter, self.width, self.shown, self.n_headers = delimiter, width, shown, n_headers
        self.byte = 0  # where the next record begins
        self.end = 0  # of the last record that is not blank
        self.offsets: list[int] = []
        self.line = 0  # ended so far
        self.records = 0  # that are not blank, the header among them
        self.after_blank = self.blank = False
        self.ragged: tuple[int, int] | None = None
        self.n_ragged = 0

    @property
    def places(self) -> tuple[int, ...]:
        """Where every so many rows begin, and the end."""
        return (*self.offsets, self.end)

    def rows_of(self, path: Path) -> int | None:
        """The number of rows; None if the file must be rewritten to be read. Refuses records of another width."""
        rest = b""
        with open(path, "rb") as stream:
            if stream.read(len(codecs.BOM_UTF8)) == codecs.BOM_UTF8:
                self.byte = len(codecs.BOM_UTF8)
            else:
                stream.seek(0)
            while chunk := stream.read(_CHUNK):
                data = rest + chunk
                end = self._whole_records(data)
                if end is None or len(data) - end > _LONGEST:
                    return None
                rest = data[end:]
        if rest and self._whole_records(rest + b"\n") != len(rest) + 1:
            return None
        if self.ragged is not None:
            raise _ragged(self.shown, self.delimiter, self.width, *self.ragged, others=self.n_ragged - 1)
        return None if self.after_blank else self.records - self.n_headers

    def _whole_records(self, data: bytes) -> int | None:
        """Count the records that end within the data, and say where; None if quotes or line ends are odd."""
        cells = np.frombuffer(data, dtype=np.uint8)
        lines = np.flatnonzero(cells == _LINE_END)
        ends, marks = lines, np.flatnonzero(cells == ord(self.delimiter))
        quotes = np.flatnonzero(cells == _QUOTE) if b'"' in data else None
        if quotes is not None:
            ends = ends[np.searchsorted(quotes, ends) % 2 == 0]
            marks = marks[np.searchsorted(quotes, marks) % 2 == 0]
        if not len(ends):
            return 0
        end = int(ends[-1]) + 1
        if not self._well_placed(cells[:end], None if quotes is None else quotes[quotes < end], b"\r" in data):
            return None
        starts = np.concatenate([[0], ends[:-1] + 1])
        width = np.diff(np.searchsorted(marks, ends), prepend=0) + 1
        length = ends - starts
        blank = (length == 0) | ((length == 1) & (cells[starts] == _RETURN))
        full = np.flatnonzero(~blank)
        if len(full):
            rows = self.records - self.n_headers + np.arange(len(full))
            self.offsets += (self.byte + starts[full[(rows >= 0) & (rows % STRIDE == 0)]]).tolist()
            self.end = self.byte + int(ends[full[-1]]) + 1
        self._count(blank, width, ends, lines)
        self.byte += end
        self.line += int(np.searchsorted(lines, end))
        return end

    def _well_placed(self, cells: np.ndarray, quotes: IntArray | None, returns: bool) -> bool:
        """Whether quotes stand around whole cells, and carriage returns before line ends, or within quotes."""
        if returns:
            at = np.flatnonzero(cells == _RETURN)
            if quotes is not None:
                at = at[np.searchsorted(quotes, at) % 2 == 0]
            if np.any(cells[at + 1] != _LINE_END):  # the last character is a line end: there is a next one
                return False
        if quotes is None or not len(quotes):
            return True
        opening, closing = quotes[::2], quotes[1::2]
        if len(opening) != len(closing):
            return False
        before = cells[opening[opening > 0] - 1]
        after = cells[closing + 1]
        edge = (ord(self.delimiter), _LINE_END, _QUOTE)
        return bool(np.isin(before, edge).all() and np.isin(after, (*edge, _RETURN)).all())

    def _count(self, blank: np.ndarray, width: IntArray, ends: IntArray, lines: IntArray) -> None:
        bad = ~blank & (width != self.width)
        if bad.any():
            first = int(np.argmax(bad))
            if self.ragged is None:
                self.ragged = self.line + int(np.searchsorted(lines, ends[first])) + 1, int(width[first])
            self.n_ragged += int(np.count_nonzero(bad))
        full = np.flatnonzero(~blank)
        if len(full):
            # blank lines before the header are skipped with it, those at the end are not reached
            begun = 0 if self.records else int(full[0])
            self.after_blank |= self.blank or bool(blank[begun : full[-1]].any())
            self.blank = False
        if self.records or len(full):
            self.blank |= bool(blank[-1])
        self.records += len(full)


def _rewrite(path: Path, delimiter: str, width: int, target: Path, shown: Path) -> None:
    """Write the rows anew, without blank lines and with quotes where they belong.

    Slow and rare: it is for quotes within cells, carriage returns as line ends, and blank lines between rows.
    """
    header, ragged, n_ragged = True, None, 0
    with (
        open(path, encoding="utf-8-sig", newline="") as source,
        open(target, "w", encoding="utf-8", newline="") as copy,
    ):
        reader = csv.reader(source, delimiter=delimiter, strict=True)
        writer = csv.writer(copy, delimiter=delimiter, lineterminator="\n")
        try:
            for row in reader:
                if not row:
                    continue
                if len(row) != width:
                    ragged, n_ragged = ragged or (reader.line_num, len(row)), n_ragged + 1
                if not header:
                    writer.writerow(row)
                header = False
        except csv.Error as error:
            raise InvalidInputError(f"{shown}: line {reader.line_num}: {error}") from error
    if ragged is not None:
        raise _ragged(shown, delimiter, width, *ragged, others=n_ragged - 1)
