"""numba: loops that are compiled once for a machine and kept, and how long compiling takes.

What is compiled is kept in ``NUMBA_CACHE_DIR`` where that is set, or else beside the source, or else in the user's
folder for such things: in the first of them that can be written to. What another user, or who made an image, has kept
in one of the first two is used wherever it can be read.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any, TypeVar

import numba
from numba import types
from numba.core import caching, config
from numba.core.event import Event, Listener, register

from treewright.core.progress import note, stage
from treewright.exceptions import warn_user

__all__ = ["compiling_seconds", "fields_of", "njit", "prepare", "where_kept"]

T = TypeVar("T")


class _Clock(Listener):
    """Seconds in which at least one thread compiles; what is compiled on the way to something else counts once."""

    def __init__(self) -> None:
        self.total, self._running, self._began = 0.0, 0, 0.0
        self._lock = threading.Lock()

    def on_start(self, event: Event) -> None:
        with self._lock:
            if not self._running:
                self._began = time.perf_counter()
            self._running += 1

    def on_end(self, event: Event) -> None:
        with self._lock:
            self._running -= 1
            if not self._running:
                self.total += time.perf_counter() - self._began

    def seconds(self) -> float:
        with self._lock:
            return self.total + (time.perf_counter() - self._began if self._running else 0.0)


_clock = _Clock()
register("numba:compile", _clock)


def compiling_seconds() -> float:
    """Seconds that this process has spent compiling so far."""
    return _clock.seconds()


# ---------------------------------------------------------------------- where compiled loops are kept

# Names of numba 0.60 have an underscore.
_NAMED, _BESIDE, _HOME = (
    vars(caching).get(name) or vars(caching)["_" + name]
    for name in ("UserProvidedCacheLocator", "InTreeCacheLocator", "UserWideCacheLocator")
)


class _InAHome(_HOME):  # type: ignore[misc, valid-type]
    """The user's folder; without a home numba would make one that is called "~" where the user happens to be."""

    def ensure_cache_path(self) -> None:
        if not os.path.isabs(self.get_cache_path()):
            raise FileNotFoundError("there is no home")
        super().ensure_cache_path()


class _NamedAsItIs(_NAMED):  # type: ignore[misc, valid-type]
    """The folder of NUMBA_CACHE_DIR, to be read alone."""

    def ensure_cache_path(self) -> None:
        pass


class _BesideAsItIs(_BESIDE):  # type: ignore[misc, valid-type]
    """The folder beside the source, to be read alone."""

    def ensure_cache_path(self) -> None:
        pass


def _files(function: Callable[..., Any], *places: Any) -> Any:
    """Files of a function in the first of some places that will do; None if there is none."""

    class Files(caching.CompileResultCacheImpl):
        _locator_classes = list(places)

    class Kept(caching.FunctionCache):
        _impl_class = Files

    try:
        return Kept(function)
    except RuntimeError:  # numba's "no locator available"
        return None


class _Cache(caching.NullCache):
    """Compiled forms of one function: read wherever they are, written where that can be."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.own = _files(function, _NAMED, _BESIDE, _InAHome)
        others = [_files(function, _BesideAsItIs)]
        if vars(config).get("CACHE_DIR"):
            others.insert(0, _files(function, _NamedAsItIs))
        self._read = [files for files in (self.own, *others) if files is not None]

    @property
    def cache_path(self) -> str | None:
        """Where compiled forms are written; None for nowhere."""
        return None if self.own is None else str(self.own.cache_path)

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        for files in self._read:
            try:
                found = files.load_overload(sig, target_context)
            except OSError:  # files that this user may not read
                continue
            if found is not None:
                return found
        return None

    def save_overload(self, sig: Any, data: Any) -> None:
        try:
            if self.own is not None:
                self.own.save_overload(sig, data)
                return
        except OSError:  # a full disk, or files of another user
            self.own = None
        _warn_once()

    def has(self, sig: Any, target_context: Any) -> bool:
        """Whether a compiled form is kept, without reading it."""
        target_context.refresh()
        for files in self._read:
            try:
                if files._index_key(sig, target_context.codegen()) in files._cache_file._load_index():
                    return True
            except OSError:
                continue
        return False


_warned = False


def _warn_once() -> None:
    global _warned
    if not _warned:
        _warned = True
        warn_user(
            "loops were compiled that cannot be kept, so that each process compiles them again, for up to a minute: "
            "the folder of treewright cannot be written to, and there is no home. Set NUMBA_CACHE_DIR to a folder that "
            "can be, or have `treewright warm-up` run once by a user who may write to the first"
        )


# ---------------------------------------------------------------------- what is compiled

_LOOPS: dict[str, list[tuple[Any, tuple[str, ...]]]] = {}
"""Loops and the types of what Python calls them with, by module."""
_ready: set[str] = set()
"""Modules that have been looked after."""
_SECOND = 1100
"""Bytes of bytecode that are compiled in a second: what users are told to expect is that rough."""


_fields: dict[type, str] = {}
"""Types of the fields of named tuples."""


def fields_of(words: str) -> Callable[[type[T]], type[T]]:
    """Say the types of the fields of a named tuple that loops are called with, in the words of :func:`njit`."""

    def noted(kind: type[T]) -> type[T]:
        _fields[kind] = words
        return kind

    return noted


def njit(*called_with: str, **options: Any) -> Callable[[Callable[..., Any]], Any]:
    """Compile a function with numba, and keep what was compiled.

    Parameters
    ----------
    called_with : str
        Types of arguments that Python calls the function with: ``"f8** ro:i8* Rules f8"`` are floats of eight bytes in
        an array of two dimensions (C order), integers in one that cannot be written to, a named tuple of
        the same module (:func:`fields_of`), and a number. :func:`prepare` compiles for each of them. Functions that
        only compiled ones call have none.
    options
        Of numba's ``njit``.
    """

    def compiled(function: Callable[..., Any]) -> Any:
        loop = numba.njit(**options)(function)
        loop._cache = _Cache(function)
        _LOOPS.setdefault(function.__module__, []).append((loop, called_with))
        return loop

    return compiled


def _types_of(words: str, names: dict[str, Any]) -> tuple[Any, ...]:
    """Types of arguments from their words.

    Examples
    --------
    >>> _types_of("f8** i8", {})
    (Array(float64, 2, 'C', False, aligned=True), int64)
    """
    return tuple(_type_of(word, names) for word in words.split())


def _type_of(word: str, names: dict[str, Any]) -> Any:
    if word in names:
        return types.NamedTuple(_types_of(_fields[names[word]], names), names[word])
    writable, stars = not word.startswith("ro:"), word.count("*")
    name, _, times = word.removeprefix("ro:").rstrip("*").partition("x")
    kind = vars(types)[name]
    if times:
        return types.UniTuple(kind, int(times))
    return types.Array(kind, stars, "C", readonly=not writable) if stars else kind


def where_kept() -> str | None:
    """The folder in which compiled loops are kept, that of the package for those beside the source; None for none."""

    def any_loop() -> None:
        """It is never called."""

    own = _Cache(any_loop).own
    if own is None:
        return None
    beside = isinstance(own._impl.locator, _BESIDE)
    return os.path.dirname(os.path.dirname(os.path.abspath(__file__))) if beside else os.path.dirname(own.cache_path)


def prepare(modules: Sequence[str], stopped: Callable[[], bool] = lambda: False) -> int:
    """Compile all that loops of some modules are called with, unless it is kept already or cannot be kept.

    So the first fit of a model compiles what its later fits need, in one go that is told beforehand.

    Parameters
    ----------
    modules : sequence of str
        Modules below ``treewright`` with compiled loops.
    stopped : callable
        Asked between loops; True ends it.

    Returns
    -------
    int
        How many forms of loops were compiled.
    """
    new = [name for name in modules if name not in _ready]
    if not new or where_kept() is None:
        return 0
    for name in new:
        import_module(f"treewright.{name}")
    wanted = [form for name in new for form in _forms(name)]
    lacking = [(loop, form) for loop, form in wanted if not loop._cache.has(form, loop.targetctx)]
    if lacking:
        about = _seconds(new) * len(lacking) / len(wanted)
        with stage(f"compiling for this machine, once, for some {about:.0f} s"):
            for count, (loop, form) in enumerate(lacking):
                if stopped():
                    return count
                note(part=(count + 1, len(lacking)))
                loop.compile(form)
    _ready.update(new)
    return len(lacking)


def _forms(module: str) -> list[tuple[Any, Any]]:
    """Loops of a module and the types that each is called with."""
    loops = _LOOPS[f"treewright.{module}"]
    return [(loop, _types_of(words, loop.py_func.__globals__)) for loop, called_with in loops for words in called_with]


def _seconds(modules: Sequence[str]) -> float:
    """Rough seconds that compiling all loops of some modules takes."""
    loops = [loop for name in modules for loop, _ in _LOOPS[f"treewright.{name}"]]
    return max(1.0, sum(len(loop.py_func.__code__.co_code) for loop in loops) / _SECOND)
