"""Data sets from a folder of tables with a manifest.

The folder has a tab-separated ``MANIFEST.tsv`` with the columns ``name``, ``papers`` (separated by semicolons),
``file`` (relative to the folder) and, if known, ``sha256``; other columns are not read. Tables are tab-separated
numbers with a header, plain or gzip, the last column ``target``.
"""

from __future__ import annotations

import csv
import gzip
import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from harness.instance import Data
from harness.sampling import drop_duplicate_rows
from harness.specification import DataSet
from treewright.core.arrays import FloatArray
from treewright.data.columns_checked import AnyArray, listing
from treewright.exceptions import InvalidInputError

__all__ = [
    "FileSet",
    "PaperSets",
    "read_classes",
    "read_coded_classes",
    "read_one_class",
    "read_table_of_numbers",
    "read_values",
]


@dataclass(frozen=True)
class _Entry:
    """A line of the manifest."""

    name: str
    papers: tuple[str, ...]
    file: str
    sha256: str


@dataclass(frozen=True)
class PaperSets:
    """Tables that a paper uses, in the order of their files."""

    paper: str
    """Its name in the manifest."""
    load: Callable[..., Data]
    """``load(path, **parameters)`` returns :class:`~harness.Data`."""
    names: tuple[str, ...] | None = None
    """Which of them, None for all there are."""
    parameters: Mapping[str, Any] = field(default_factory=dict)
    """As of :class:`~harness.DataSet`; the hash of the file is added."""

    def sets(self, folder: Path | None) -> tuple[DataSet, ...]:
        """Return the data sets."""
        folder, entries = _manifest(folder)
        own = sorted((entry for entry in entries if self.paper in entry.papers), key=lambda entry: entry.file)
        if not own:
            raise InvalidInputError(f"the manifest of {folder} has no data set of the paper {self.paper!r}")
        known = [entry.name for entry in own]
        missing = [name for name in self.names or () if name not in known]
        if missing:
            raise InvalidInputError(f"the manifest of {folder} has no {listing(missing)} for the paper {self.paper!r}")
        return tuple(
            DataSet(entry.name, self.load, _hashed(self.parameters, entry), (folder / entry.file,))
            for entry in own
            if self.names is None or entry.name in self.names
        )


@dataclass(frozen=True)
class FileSet:
    """A data set of one or several tables, named by their files in the manifest."""

    name: str
    """Its name in rows."""
    files: tuple[str, ...]
    """Files as the manifest has them."""
    load: Callable[..., Data]
    """``load(*paths, **parameters)`` returns :class:`~harness.Data`."""
    parameters: Mapping[str, Any] = field(default_factory=dict)
    """As of :class:`~harness.DataSet`; the hashes of the files are added."""
    keep: bool = False
    """Whether what was loaded is kept on disk for the next row."""

    def sets(self, folder: Path | None) -> tuple[DataSet, ...]:
        """Return the data set."""
        folder, entries = _manifest(folder)
        by_file = {entry.file: entry for entry in entries}
        missing = [file for file in self.files if file not in by_file]
        if missing:
            raise InvalidInputError(f"the manifest of {folder} has no file {listing(missing)}")
        parameters = _hashed(self.parameters, *(by_file[file] for file in self.files))
        return (DataSet(self.name, self.load, parameters, tuple(folder / file for file in self.files), self.keep),)


def _hashed(parameters: Mapping[str, Any], *entries: _Entry) -> dict[str, Any]:
    return {**parameters, "sha256": [entry.sha256 for entry in entries]}


def _manifest(folder: Path | None) -> tuple[Path, list[_Entry]]:
    if folder is None:
        raise InvalidInputError("the specification needs tables; name their folder with --data")
    path = Path(folder) / "MANIFEST.tsv"
    if not path.exists():
        raise InvalidInputError(f"{folder} has no MANIFEST.tsv, which names its tables")
    with path.open(newline="", encoding="utf-8") as file:
        lines = csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE)
        missing = {"name", "papers", "file"} - set(lines.fieldnames or ())
        if missing:
            raise InvalidInputError(f"{path} lacks the columns {listing(sorted(missing))}")
        return Path(folder), [
            _Entry(line["name"], tuple(line["papers"].split(";")), line["file"], line.get("sha256") or "")
            for line in lines
        ]


# ---------------------------------------------------------------------- reading


def read_table_of_numbers(path: Path, sha256: str = "") -> tuple[FloatArray, FloatArray]:
    """Return features and target of a table.

    numpy's reader is enough: it knows neither text nor missing values, and no table of the benchmarks has any.
    """
    body = _body(path, sha256)
    try:
        table = np.loadtxt(body, delimiter="\t", ndmin=2)
    except ValueError as error:
        raise InvalidInputError(f"{path} is not a table of numbers: {error}") from None
    return np.ascontiguousarray(table[:, :-1]), table[:, -1]


def _body(path: Path, sha256: str) -> list[str]:
    """Lines of a table without its header."""
    content = path.read_bytes()
    if sha256 and hashlib.sha256(content).hexdigest() != sha256:
        raise InvalidInputError(f"{path} is not the file of the manifest: its sha256 differs")
    text = (gzip.decompress(content) if path.suffix == ".gz" else content).decode("utf-8")
    header, _, body = text.partition("\n")
    if header.rstrip("\r").split("\t")[-1] != "target":
        raise InvalidInputError(f"the last column of {path} is not 'target'")
    return body.splitlines()


def _numbered(target: AnyArray) -> AnyArray:
    return np.unique(target, return_inverse=True)[1].astype(np.int64)


def read_classes(
    path: Path, sha256: Sequence[str] = ("",), distinct: bool = False, most_rows: int | None = None
) -> Data:
    """Return a table for classification, classes numbered from 0 in their order.

    Parameters
    ----------
    path : Path
        The table.
    sha256 : sequence of str
        Its hash, checked if there is one.
    distinct : bool
        Whether rows equal in features and label are dropped.
    most_rows : int or None
        Of more rows so many are drawn, always the same.
    """
    X, target = read_table_of_numbers(path, sha256[0])
    if distinct:
        kept = drop_duplicate_rows(X, target)
        X, target = X[kept], target[kept]
    if most_rows is not None and len(target) > most_rows:
        kept = np.random.default_rng(0).permutation(len(target))[:most_rows]
        X, target = X[kept], target[kept]
    return Data(X, _numbered(target))


def read_coded_classes(path: Path, sha256: Sequence[str] = ("",)) -> Data:
    """Return a table for classification whose features and target may be text: the numbers of their sorted values."""
    table = np.loadtxt(_body(path, sha256[0]), delimiter="\t", ndmin=2, dtype=str)
    columns = []
    for column in table[:, :-1].T:
        try:
            columns.append(column.astype(np.float64))
        except ValueError:
            columns.append(_numbered(column).astype(np.float64))
    return Data(np.column_stack(columns), _numbered(table[:, -1]))


def read_one_class(path: Path, sha256: Sequence[str] = ("",), keep_duplicates: Sequence[str] = ()) -> Data:
    """Return a table for one class against the others, as in the papers on totals.

    Rows equal in features and label are dropped, except in files whose name has one of `keep_duplicates` in it. Class 1
    are the rows of label 1, or of the rarer label where there is none.
    """
    X, target = read_table_of_numbers(path, sha256[0])
    if not any(word in path.name for word in keep_duplicates):
        kept = drop_duplicate_rows(X, target)
        X, target = X[kept], target[kept]
    labels, counts = np.unique(target, return_counts=True)
    first = 1.0 if 1.0 in labels else labels[np.argmin(counts)]
    return Data(X, (target == first).astype(np.int64))


def read_values(path: Path, sha256: Sequence[str] = ("",)) -> Data:
    """Return a table for regression."""
    return Data(*read_table_of_numbers(path, sha256[0]))
