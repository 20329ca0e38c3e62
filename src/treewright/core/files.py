"""The one way to write a file, entirely or not at all, and the one folder for passing ones."""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import shutil
import stat
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import BinaryIO

from treewright.core.budget import interrupts_wait

fcntl: ModuleType | None
try:
    import fcntl
except ImportError:  # Windows
    fcntl = None

__all__ = ["PassingFolder", "is_special", "passing_folder", "replacing", "told_of_files"]

_listeners: list[Callable[[str], None]] = []
"""Who is told of each file that is written."""

_PREFIX, _SUFFIX = ".treewright-", ".tmp"
_STALE = 3600.0
"""Seconds after the last write to a file under a passing name, when nobody can still be writing it."""
_FOLDERS, _LOCK = ".treewright-passing-", "in-use"
"""How passing folders begin, and the file in each that its process holds as long as it lives."""


@contextlib.contextmanager
def told_of_files(listener: Callable[[str], None]) -> Iterator[None]:
    """Call `listener` with the path of each file that is written, when it is.

    No Ctrl-C comes between the two, so that who is told knows all that was written.

    Examples
    --------
    >>> import os, tempfile
    >>> with tempfile.TemporaryDirectory() as folder, told_of_files(lambda path: print(os.path.basename(path))):
    ...     with replacing(os.path.join(folder, "a.txt")) as file:
    ...         _ = file.write(b"new")
    a.txt
    """
    _listeners.append(listener)
    try:
        yield
    finally:
        _listeners.remove(listener)


@contextlib.contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """Give a file to write to that takes the place of `path` if the block ends well.

    So `path` has its old content or all of the new one, whatever happens. A symbolic link stays a link, and what it
    points to is replaced; permissions, and where that is allowed the owner, are kept. The new file has no name before
    it is complete, so that a process that is killed leaves nothing behind; where the system has no such files, it has
    a passing name in the same folder, and is removed by the next one that writes there an hour later. Devices and
    pipes are not replaced but written to.

    Parameters
    ----------
    path : path-like
        The file.

    Yields
    ------
    file
        Open for writing bytes.

    Examples
    --------
    >>> import os, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "a.txt")
    ...     with replacing(path) as file:
    ...         _ = file.write(b"new")
    ...     os.listdir(folder), open(path).read()
    (['a.txt'], 'new')
    """
    if is_special(path):
        with open(path, "wb") as device:
            yield device
        _tell(path)
        return
    target = os.path.realpath(path)
    folder = os.path.dirname(target)
    if os.path.isdir(target):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), os.fspath(path))
    _remove_stale(folder)
    try:
        file, temporary = _new_file(folder)
    except OSError as error:  # about a name that the user has never heard of
        raise OSError(error.errno, error.strerror, os.fspath(path)) from error
    try:
        with file:
            yield file
            file.flush()
            _keep_owner_and_mode(target, file, temporary)
            os.fsync(file.fileno())
            if temporary is None:
                temporary = _passing_name(folder)
                _give_name(file, temporary, target)
        with interrupts_wait():
            os.replace(temporary, target)
            _tell(path)
    except BaseException:
        if temporary is not None:
            with contextlib.suppress(OSError):
                os.unlink(temporary)
        raise


def is_special(path: str | os.PathLike[str]) -> bool:
    """Whether a path to write is a device, a pipe or a socket, which is written to and cannot be replaced.

    Examples
    --------
    >>> is_special(os.devnull), is_special(".")
    (True, False)
    """
    try:
        mode = os.stat(path).st_mode
    except OSError:
        return False
    return not (stat.S_ISREG(mode) or stat.S_ISDIR(mode))


def _tell(path: str | os.PathLike[str]) -> None:
    for listener in _listeners:
        listener(os.fspath(path))


def _passing_name(folder: str) -> str:
    return os.path.join(folder, f"{_PREFIX}{secrets.token_hex(8)}{_SUFFIX}")


def _new_file(folder: str) -> tuple[BinaryIO, str | None]:
    """A new file and its passing name; None for a file without a name."""
    if hasattr(os, "O_TMPFILE") and os.path.isdir("/proc/self/fd"):
        try:
            return open(os.open(folder, os.O_TMPFILE | os.O_RDWR | os.O_CLOEXEC, 0o666), "w+b"), None
        except OSError:  # some file systems have no such files; what else is wrong, the next line says
            pass
    name = _passing_name(folder)
    return open(name, "x+b"), name


def _give_name(file: BinaryIO, name: str, target: str) -> None:
    """Give a passing name to a complete file that has none."""
    here = os.open(os.path.dirname(name), os.O_RDONLY | os.O_DIRECTORY)
    try:
        # With a folder given, Python follows the link in /proc to the file; without one it would link the link.
        os.link(f"/proc/self/fd/{file.fileno()}", os.path.basename(name), dst_dir_fd=here, follow_symlinks=True)
    except OSError:
        with open(name, "xb") as other:
            _keep_owner_and_mode(target, other, name)
            file.seek(0)
            shutil.copyfileobj(file, other)
            other.flush()
            os.fsync(other.fileno())
    finally:
        os.close(here)


def _keep_owner_and_mode(target: str, file: BinaryIO, temporary: str | None) -> None:
    try:
        old, new = os.stat(target), os.fstat(file.fileno())
    except FileNotFoundError:
        return
    if hasattr(os, "fchown") and (old.st_uid, old.st_gid) != (new.st_uid, new.st_gid):
        with contextlib.suppress(OSError):
            os.fchown(file.fileno(), old.st_uid, old.st_gid)
    os.chmod(file.fileno() if temporary is None else temporary, stat.S_IMODE(old.st_mode))


def _remove_stale(folder: str) -> None:
    """Remove files of writers that were killed; those of others may be in use and are recent."""
    with contextlib.suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            if entry.name.startswith(_PREFIX) and entry.name.endswith(_SUFFIX):
                with contextlib.suppress(OSError):
                    if time.time() - entry.stat(follow_symlinks=False).st_mtime > _STALE:
                        os.unlink(entry.path)


# ---------------------------------------------------------------------- passing folders


class PassingFolder:
    """A folder for passing files, made when the first of them is asked for."""

    def __init__(self) -> None:
        self._path: Path | None = None
        self._lock: int | None = None

    def __truediv__(self, name: str) -> Path:
        """The path of a file in it."""
        if self._path is None:
            self._path = Path(tempfile.mkdtemp(prefix=_FOLDERS))
            self._lock = _held(self._path)
        return self._path / name

    def remove(self) -> None:
        """Remove it, if it was made."""
        if self._path is not None:
            if fcntl is None and self._lock is not None:
                self._let_go()  # what is open cannot be removed there
            shutil.rmtree(self._path, ignore_errors=True)
        self._let_go()

    def _let_go(self) -> None:
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None


@contextlib.contextmanager
def passing_folder() -> Iterator[PassingFolder]:
    """Give a folder for passing files, which is removed at the end.

    A process that is killed leaves its folder, with what may be a copy of somebody's table: the next one that comes by
    here removes it. Whether a folder is still in use its lock says, which the system lets go with the process; numbers
    of processes are given out again, and mean nothing in another container. Folders of other users stay.

    Examples
    --------
    >>> with passing_folder() as folder:
    ...     _ = (folder / "copy.csv").write_text("a,b")
    ...     (folder / "copy.csv").exists()
    True
    >>> (folder / "copy.csv").exists()
    False
    """
    _remove_left_folders()
    folder = PassingFolder()
    try:
        yield folder
    finally:
        folder.remove()


def _held(folder: Path) -> int:
    """The lock of a new folder, held before it has its name: nobody takes a folder without one for left."""
    if fcntl is None:
        return os.open(folder / _LOCK, os.O_RDWR | os.O_CREAT)
    lock = os.open(folder / f"{_LOCK}.new", os.O_RDWR | os.O_CREAT, 0o600)
    with contextlib.suppress(OSError):  # some file systems have no locks; whoever comes by cannot take it either
        fcntl.flock(lock, fcntl.LOCK_EX)
    os.rename(folder / f"{_LOCK}.new", folder / _LOCK)
    return lock


def _remove_left_folders() -> None:
    with contextlib.suppress(OSError), os.scandir(tempfile.gettempdir()) as entries:
        for entry in entries:
            if entry.name.startswith(_FOLDERS):
                with contextlib.suppress(OSError):
                    _remove_left(Path(entry.path), entry.stat(follow_symlinks=False))


def _remove_left(folder: Path, status: os.stat_result) -> None:
    """Remove a folder whose process is gone; of those that never came to lock it, some time later."""
    own = not hasattr(os, "geteuid") or status.st_uid == os.geteuid()
    if not own or not stat.S_ISDIR(status.st_mode):
        return
    try:
        lock = os.open(folder / _LOCK, os.O_RDWR)
    except FileNotFoundError:
        if time.time() - status.st_mtime > _STALE:
            shutil.rmtree(folder, ignore_errors=True)
        return
    try:
        if fcntl is not None:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)  # an error where it is held
            shutil.rmtree(folder, ignore_errors=True)
    finally:
        os.close(lock)
    if fcntl is None:
        os.unlink(folder / _LOCK)  # an error where it is open
        shutil.rmtree(folder, ignore_errors=True)
