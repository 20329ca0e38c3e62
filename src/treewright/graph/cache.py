"""Graphs kept on disk, for tables that are fitted again and again."""

from __future__ import annotations

import hashlib
import importlib.metadata
import warnings
from collections.abc import Callable
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from treewright.core.files import replacing
from treewright.graph.laplacian import check_graph

__all__ = ["FoundGraph", "cached_graph"]

_VERSION = 2
"""To be raised when the same points and parameters give another graph than before."""

_PACKAGES = ("scikit-learn", "faiss-cpu")
"""Packages whose versions may change the neighbours that are found."""


class FoundGraph(NamedTuple):
    """A graph of neighbours.

    Examples
    --------
    >>> FoundGraph(sparse.csr_array([[0.0, 1.0], [1.0, 0.0]])).searched
    1.0
    """

    W: Any
    """Symmetric affinities; shape (n, n)."""
    searched: float = 1.0
    """Share of the points whose neighbours were searched for; the others have the edges that these have to them."""
    note: str = ""
    """What a budget cut short, in words; empty if nothing."""


def cached_graph(folder: str | PathLike[str], X: Any, make: Callable[[], FoundGraph], **parameters: Any) -> FoundGraph:
    """Graph from `folder` if it is there, else made and written there unless it was cut short.

    Parameters
    ----------
    folder : path
        Where graphs are kept; made if missing. Files are only ever added: delete them as you like.
    X : ndarray or sparse array
        Points; their bytes, shape and type are part of the key.
    make : callable
        Makes the graph.
    **parameters
        All else that the graph depends on.

    Returns
    -------
    FoundGraph
        The graph. A file that cannot be read is made anew with a warning; one that cannot be written is a warning too.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> X = np.array([[0.0], [1.0]])
    >>> with TemporaryDirectory() as folder:
    ...     graph = FoundGraph(sparse.csr_array([[0.0, 1.0], [1.0, 0.0]]))
    ...     first = cached_graph(folder, X, lambda: graph, n_neighbors=1)
    ...     second = cached_graph(folder, X, lambda: 1 / 0, n_neighbors=1)
    >>> bool((first.W != second.W).nnz == 0)
    True
    """
    path = Path(folder) / f"graph-{_key(X, parameters)}.npz"
    if path.exists():
        try:
            return FoundGraph(_read(path, X.shape[0]))
        except Exception as error:  # whatever a broken or hostile file brings about, the graph can be made
            warnings.warn(f"{path} cannot be read ({error}); the graph is made anew", UserWarning, stacklevel=2)
    graph = make()
    if graph.note:
        return graph
    try:
        _write(path, graph.W)
    except OSError as error:
        warnings.warn(f"the graph cannot be written to {path} ({error})", UserWarning, stacklevel=2)
    return graph


def _key(X: Any, parameters: dict[str, Any]) -> str:
    """Hash of all that the graph depends on."""
    known = hashlib.sha256()
    arrays = (X.data, X.indices, X.indptr) if sparse.issparse(X) else (X,)
    for array in arrays:
        array = np.ascontiguousarray(array)
        known.update(f"{array.dtype.str} {array.shape};".encode())
        known.update(array.view(np.uint8).data if array.size else b"")
    versions = {name: _version(name) for name in _PACKAGES}
    known.update(repr((_VERSION, X.shape, sorted(parameters.items()), sorted(versions.items()))).encode())
    return known.hexdigest()[:32]


def _version(package: str) -> str:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return ""


def _read(path: Path, n: int) -> Any:
    """Graph in a file, checked as one that a user gives: the file may be anybody's."""
    with np.load(path, allow_pickle=False) as file:
        data, indices, indptr = file["data"], file["indices"], file["indptr"]
    graph = sparse.csr_array((data, indices, indptr), shape=(n, n))
    graph.check_format(full_check=True)
    return check_graph(graph, n)


def _write(path: Path, graph: Any) -> None:
    """Write all or nothing: nobody ever finds half a file, and two writers do not mix."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path) as file:
        np.savez(file, data=graph.data, indices=graph.indices, indptr=graph.indptr)
