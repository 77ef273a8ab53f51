# SPDX-License-Identifier: GPL-2.0
"""Writes files atomically.

A file is written beside its destination under another name and renamed when it is complete and
synced. Without force an existing file is never replaced, even if it was created meanwhile. Whoever
may not read the recording may not read what is made of it: `may`, the permissions of the recording.
"""

from __future__ import annotations

import os
import shutil
import stat
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from ..errors import Error

# The name that stands for standard output, as with other tools.
STDOUT: Final = "-"


class Exists(Error):
    """There is something at the destination, and it is not to be replaced."""


def _exists(path: Path) -> Exists:
    return Exists(f"{path} exists already; choose another name, or force=True (--force) to replace it")


def permissions(recording: Path) -> int:
    try:
        return stat.S_IMODE(recording.stat().st_mode)
    except OSError:  # it is gone by now
        return 0o600


def _umask() -> int:
    mask = os.umask(0o077)
    os.umask(mask)
    return mask


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _publish(temporary: Path, path: Path, force: bool) -> None:
    """Give a finished file its name."""
    if force:
        temporary.replace(path)
        return
    try:
        # Unlike rename(2), link(2) refuses what exists.
        os.link(temporary, path, follow_symlinks=False)
    except FileExistsError:
        raise _exists(path) from None
    except OSError:  # a file system without links
        if os.path.lexists(path):
            raise _exists(path) from None
        temporary.rename(path)


@contextmanager
def new_file(path: Path, force: bool, may: int) -> Iterator[Path]:
    """A path to write to; when the block ends well it becomes the file at path, else it is gone.

    Exists: there is one, and force is not set. OSError as from open().
    """
    if not force and os.path.lexists(path):
        raise _exists(path)
    if path.is_dir():
        raise IsADirectoryError(21, "Is a directory", str(path))
    try:
        handle, name = tempfile.mkstemp(prefix=f".{path.name}.", suffix=".part", dir=path.parent)
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(path)) from None
    os.close(handle)
    temporary = Path(name)
    try:
        yield temporary
        temporary.chmod(0o666 & ~_umask() & may)
        _sync(temporary)
        _publish(temporary, path, force)
        _sync(path.parent)
    finally:
        temporary.unlink(missing_ok=True)


@contextmanager
def new_directory(path: Path, force: bool, may: int, mark: str) -> Iterator[Path]:
    """The same for a directory. mark: a file in it by which one of ours is known; force replaces no other."""
    if os.path.lexists(path):
        if not force:
            raise _exists(path)
        if not (path / mark).is_file():
            raise Exists(f"{path} exists and is no export of memtoll (it has no {mark}): it is not replaced")
    try:
        temporary = Path(tempfile.mkdtemp(prefix=f".{path.name}.", suffix=".part", dir=path.parent))
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(path)) from None
    old = temporary.with_suffix(".old")
    try:
        yield temporary
        # Who may read it may enter it.
        temporary.chmod(0o777 & ~_umask() & (may | (may & 0o444) >> 2))
        for file in temporary.iterdir():
            file.chmod(0o666 & ~_umask() & may)
            _sync(file)
        _sync(temporary)
        if force and path.exists():
            path.rename(old)
        try:
            temporary.rename(path)  # refuses a directory that has something in it
        except OSError:
            if old.exists():
                old.rename(path)
            raise _exists(path) from None
        _sync(path.parent)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
        shutil.rmtree(old, ignore_errors=True)


@contextmanager
def new_output(path: Path, force: bool, may: int) -> Iterator[Path]:
    """new_file, or for "-" a file that is copied to standard output when it is complete."""
    if str(path) != STDOUT:
        with new_file(path, force, may) as temporary:
            yield temporary
        return
    handle, name = tempfile.mkstemp(prefix="memtoll-")
    os.close(handle)
    try:
        yield Path(name)
        with Path(name).open("rb") as file:
            shutil.copyfileobj(file, sys.stdout.buffer)
        sys.stdout.buffer.flush()
    finally:
        with suppress(FileNotFoundError):
            Path(name).unlink()
