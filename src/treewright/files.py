"""The one way to write a file: entirely or not at all."""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import shutil
import stat
import time
from collections.abc import Callable, Iterator
from typing import BinaryIO

from treewright.budget import interrupts_wait

__all__ = ["is_special", "replacing", "told_of_files"]

_listeners: list[Callable[[str], None]] = []
"""Who is told of each file that is written."""

_PREFIX, _SUFFIX = ".treewright-", ".tmp"
_STALE = 3600.0
"""Seconds after the last write to a file under a passing name, when nobody can still be writing it."""


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
    """Whether a path is a device, a pipe or a socket, which is written to and cannot be replaced.

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
