# SPDX-License-Identifier: GPL-2.0
"""Opens a recording read-only, or fails with one line that says what is wrong.

The file is never changed and never locked for long: a finished recording is read in place, an
unfinished one is first copied in one read transaction, so that its tracer can go on writing and
all figures are of the same moment.
"""

from __future__ import annotations

import errno
import os
import shutil
import sqlite3
import stat
import struct
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Final
from urllib.parse import quote

from .errors import DamagedRecording, Error, IncompleteRecording, NewerFormat, NotARecording
from .schema import columns_of, put_before, schema, split
from .version import APPLICATION_ID, FORMAT

Progress = Callable[[str, int, int], None]
"""progress(what, done, all): called now and then while something takes long."""

# SQLite's file format, 1.3: the first bytes; page size at 16 (1 means 65,536), pages at 28.
MAGIC: Final = b"SQLite format 3\0"
HEADER: Final = 100
# The end of a journal that names a super-journal (file format, 3.): no recording's ever does.
SUPER_JOURNAL: Final = bytes.fromhex("d9d505f920a163d7")
# A commit of the writer takes far less.
BUSY_S: Final = 5.0
# PRAGMA quick_check reads everything, a second for 250 MB: larger files show damage when read.
CHECKED_BYTES: Final = 64 << 20
# Virtual machine steps between two looks for a pending signal: about 10 ms.
SIGNAL_STEPS: Final = 1_000_000
# What all views may take: userspace/recording/recording_guard.h. There are more frames than a report has, so it is
# twice as much for each byte.
STEPS: Final = 150_000_000
STEPS_PER_BYTE: Final = 120
STEP_S: Final = 40e-9
HEAP_BYTES: Final = 512 << 20
HEAP_PER_BYTE: Final = 64
HEAP_BYTES_MAX: Final = 2 << 30
# As often as that is asked for, some 20 us, and as often as clocks and sizes are looked at.
HANDLER_STEPS: Final = 1000
LOOK_S: Final = 0.002
# A file system may make so many bytes of one.
COMPRESSED: Final = 4
# What no recording's schema takes of the processor, a slow one, and of SQLite's steps, which are looked at so often.
SCHEMA_S: Final = 3.0
SCHEMA_STEPS_MAX: Final = 75_000
SCHEMA_STEPS: Final = 5000
# A value of the file, and what is made of all of them.
VALUE_BYTES: Final = 4 << 20
MADE_BYTES: Final = 1_000_000_000
# What a redacted recording is called: its own name may tell as much as what is in it.
REDACTED: Final = Path("redacted.memtoll")
# Pages copied between two calls of progress.
COPIED_PAGES: Final = 16384
READING: Final = frozenset(
    (
        sqlite3.SQLITE_SELECT,
        sqlite3.SQLITE_READ,
        sqlite3.SQLITE_RECURSIVE,
        sqlite3.SQLITE_SAVEPOINT,
        sqlite3.SQLITE_TRANSACTION,
        sqlite3.SQLITE_CREATE_TEMP_INDEX,
        sqlite3.SQLITE_CREATE_TEMP_TABLE,
        sqlite3.SQLITE_CREATE_TEMP_VIEW,
        sqlite3.SQLITE_DROP_TEMP_INDEX,
        sqlite3.SQLITE_DROP_TEMP_TABLE,
        sqlite3.SQLITE_DROP_TEMP_VIEW,
    )
)
WRITING: Final = frozenset(
    (sqlite3.SQLITE_INSERT, sqlite3.SQLITE_UPDATE, sqlite3.SQLITE_DELETE, sqlite3.SQLITE_REINDEX)
)
# Pragmas that tell something of the file, and the one that is set.
PRAGMAS: Final = frozenset(
    (
        "application_id",
        "data_version",
        "page_count",
        "page_size",
        "quick_check",
        "table_info",
        "table_xinfo",
        "temp_store",
        "user_version",
    )
)
# Functions that reach beyond the database, where a build of SQLite has them.
OUTSIDE: Final = frozenset(("edit", "fts3_tokenizer", "load_extension", "readfile", "writefile"))


class _Denied(threading.local):
    """How many statements the guard has refused, of this thread."""

    count = 0


_denied: Final = _Denied()


class Budget:
    """What all statements over one file's facts may take together, as in recording_guard.h. The schema is not read by
    one, nor what is copied.

    steps: of SQLite's machine; one that takes long counts as the many that take as long. bytes: by which the process
    grows meanwhile, where its size can be read.
    """

    def __init__(self, file_bytes: int) -> None:
        self.steps = STEPS + STEPS_PER_BYTE * file_bytes
        self.bytes = min(HEAP_BYTES + HEAP_PER_BYTE * file_bytes, HEAP_BYTES_MAX)
        self._seen_s = self._cpu_s = 0.0
        self._counted = self._resident = 0

    def begin(self) -> None:
        self._cpu_s, self._seen_s, self._counted = time.thread_time(), time.monotonic(), 0
        self._resident = _resident_bytes()

    def step(self) -> int:
        """Called every HANDLER_STEPS. 1: it is to end."""
        self.steps -= HANDLER_STEPS
        self._counted += HANDLER_STEPS
        if time.monotonic() - self._seen_s > LOOK_S:
            self.charge()
        return int(self.steps < 0 or self.bytes < 0)

    def charge(self) -> None:
        now, resident = time.thread_time(), _resident_bytes()
        self.steps -= max(int((now - self._cpu_s) / STEP_S) - self._counted, 0)
        self.bytes -= max(resident - self._resident, 0)
        self._cpu_s, self._seen_s, self._counted = now, time.monotonic(), 0
        self._resident = max(resident, self._resident)

    def check(self, path: Path) -> None:
        if self.steps < 0 or self.bytes < 0:
            more = "work" if self.steps < 0 else "memory"
            raise DamagedRecording(
                f"{path} cannot be read: it asks for more {more} than a recording of its size can need"
            )


@dataclass(frozen=True)
class Opened:
    """An open recording: read only, or a private copy of one that was not finished."""

    connection: sqlite3.Connection
    budget: Budget
    path: Path
    format: int
    complete: bool
    copied: bool


def line(said: object) -> str:
    """What SQLite or numpy says, which may cite the file, as part of one line: nothing that a terminal obeys."""
    text = " ".join(str(said).split())[:200]
    return "".join(each if each.isprintable() else "?" for each in text)


@contextmanager
def reading(path: Path) -> Iterator[None]:
    """Turn SQLite's errors into this package's."""
    refused = _denied.count
    try:
        yield
    except UnicodeDecodeError as error:  # of a message of SQLite's that cites the file
        raise DamagedRecording(f"{path} is damaged: it holds text that is none") from error
    except sqlite3.Warning as error:
        raise Error(f"{path}: one statement at a time") from error
    except sqlite3.Error as error:
        name = str(getattr(error, "sqlite_errorname", "") or "")
        # Where Ctrl-C meets the guard, of a statement that is got ready, sqlite3 drops it and says that it was refused
        # (of a function as SQLITE_ERROR).
        was_refused = name == "SQLITE_AUTH" or str(error).startswith("not authorized")
        if name == "SQLITE_INTERRUPT" or (was_refused and _denied.count == refused):
            raise KeyboardInterrupt from None
        if str(error).startswith("You can only execute one statement"):  # no error of SQLite's
            raise Error(f"{path}: one statement at a time") from error
        if name.startswith(("SQLITE_BUSY", "SQLITE_LOCKED")):
            raise Error(f"{path} is locked by another program; try again when it is done") from error
        if name == "SQLITE_AUTH":
            raise Error(
                f"{path} is only read, and with this package's views, not with its own: {line(error)}"
            ) from error
        if name.startswith(("SQLITE_CORRUPT", "SQLITE_NOTADB")):
            raise DamagedRecording(f"{path} is damaged: its tables cannot be read") from error
        raise DamagedRecording(f"{path} cannot be read: {line(error)}") from error


@contextmanager
def understanding(path: Path) -> Iterator[None]:
    """What numpy, pandas, matplotlib and json say of values that no tracer writes is DamagedRecording.

    SQLite keeps any value in any column: a text for a number, or what becomes infinite. Only for code whose input is
    the recording, and nothing that its caller chose.
    """
    try:
        yield
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError, struct.error) as error:
        said = line(f"{type(error).__name__}: {error}")
        raise DamagedRecording(f"{path} is damaged: it holds a value that no tracer writes ({said})") from error


def _expected_bytes(path: Path) -> int:
    """Length of the database as its header has it; NotARecording where it has no such header."""
    status = path.stat()
    if stat.S_ISDIR(status.st_mode):
        raise NotARecording(f"{path} is a directory, not a recording")
    if not stat.S_ISREG(status.st_mode):
        raise NotARecording(f"{path} is no regular file, not a recording")
    with path.open("rb") as file:
        header = file.read(HEADER)
    if not header:
        raise NotARecording(f"{path} is empty: nothing was recorded in it")
    if not header.startswith(MAGIC):
        raise NotARecording(f"{path} is not a recording of memtoll (no SQLite database)")
    if len(header) < HEADER:
        return HEADER
    # SQLite would make files beside it. No tracer writes such a one.
    (application,) = struct.unpack_from(">I", header, 68)
    if header[18:20] != b"\x01\x01" and application == APPLICATION_ID:
        raise DamagedRecording(f"{path} is damaged: it has a write-ahead log, which no recording has")
    (page_size,) = struct.unpack_from(">H", header, 16)
    (pages,) = struct.unpack_from(">I", header, 28)
    return int((65536 if page_size == 1 else page_size) * pages)


def _check_length(path: Path) -> None:
    expected, there = _expected_bytes(path), path.stat().st_size
    if there < expected:
        raise DamagedRecording(f"{path} is truncated: {there} of {expected} bytes are there")


def guard(connection: sqlite3.Connection, unread: frozenset[str]) -> None:
    """From here on it reads, and writes to temporary tables: the rules of userspace/recording/recording_guard.c.

    What else a statement asks for (ATTACH, VACUUM INTO and the like write files with the rights of who reads) is an
    error; so is what is unread of the file's: its views are statements of whoever made it.
    """

    def judge(action: int, first: str | None, second: str | None, database: str | None, _trigger: str | None) -> int:
        allowed = (
            (
                action in READING
                and not (action == sqlite3.SQLITE_READ and database == "main" and (first or "").lower() in unread)
            )
            or (action in WRITING and database == "temp")
            # How a table-valued function (json_each) says its columns.
            or (action == sqlite3.SQLITE_UPDATE and first == "sqlite_master")
            or (action == sqlite3.SQLITE_FUNCTION and second not in OUTSIDE)
            or (action == sqlite3.SQLITE_PRAGMA and first in PRAGMAS)
        )
        if not allowed:
            _denied.count += 1
        return sqlite3.SQLITE_OK if allowed else sqlite3.SQLITE_DENY

    connection.set_authorizer(judge)


def _resident_bytes() -> int:
    try:
        return int(Path("/proc/self/statm").read_bytes().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:  # elsewhere than on Linux
        return 0


def _budget(connection: sqlite3.Connection, path: Path) -> Budget:
    """By its size; of a file with holes, by what is there, which a file system may have compressed."""
    (pages,), (page,) = (connection.execute(f"PRAGMA {name}").fetchone() for name in ("page_count", "page_size"))
    blocks, size = path.stat().st_blocks, int(pages) * int(page)
    return Budget(min(size, blocks * 512 * COMPRESSED) if blocks else size)


@contextmanager
def bounded(connection: sqlite3.Connection, path: Path, budget: Budget) -> Iterator[None]:
    """What the file's facts make of a view ends.

    Errors: as of reading(); DamagedRecording where it asks for more than is left.
    """
    budget.begin()
    connection.set_progress_handler(budget.step, HANDLER_STEPS)
    try:
        budget.check(path)
        with reading(path):
            yield
    except (KeyboardInterrupt, MemoryError):
        budget.check(path)
        raise
    finally:
        budget.charge()
        connection.set_progress_handler(lambda: 0, SIGNAL_STEPS)


def limit_values(connection: sqlite3.Connection, made: bool) -> None:
    """made: of all of the file's facts, JSON."""
    connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, MADE_BYTES if made else VALUE_BYTES)


def _read_schema(connection: sqlite3.Connection, path: Path) -> None:
    """First of all: of a file that is all schema SQLite never gets ready."""
    until = time.thread_time() + SCHEMA_S
    steps = 0

    def is_over() -> bool:
        return time.thread_time() > until or steps > SCHEMA_STEPS_MAX

    def step() -> int:
        nonlocal steps
        steps += SCHEMA_STEPS
        return int(is_over())

    connection.set_progress_handler(step, SCHEMA_STEPS)
    try:
        connection.execute("SELECT COUNT(*) FROM sqlite_master").fetchone()
    except sqlite3.OperationalError as error:
        if not is_over():
            raise
        raise DamagedRecording(f"{path} is damaged: its schema is larger than that of any recording") from error
    finally:
        connection.set_progress_handler(lambda: 0, SIGNAL_STEPS)


def _connect(path: Path | str, mode: str = "ro") -> sqlite3.Connection:
    name = f"file:{quote(str(Path(path).absolute()))}?mode={mode}" if path else ""
    connection = sqlite3.connect(name, uri=True, timeout=BUSY_S, isolation_level=None, check_same_thread=False)
    # The schema of a file from elsewhere may call nothing that has effects.
    connection.execute("PRAGMA trusted_schema = OFF")
    connection.execute("PRAGMA temp_store = MEMORY")
    # Nor compute anything: quick_check asks constraints of what can be written to.
    connection.execute("PRAGMA ignore_check_constraints = ON")
    # Signals are seen between two of Python's instructions only: give it some.
    connection.set_progress_handler(lambda: 0, SIGNAL_STEPS)
    limit_values(connection, made=False)
    return connection


def _copy(source: sqlite3.Connection, progress: Progress | None) -> sqlite3.Connection:
    """All of it, as of now, in a private temporary database that goes away by itself."""

    def step(_status: int, left: int, pages: int) -> None:
        if progress:
            progress("copying", pages - left, pages)

    target = _connect("")
    try:
        # Without a transaction of its own the copy would begin again at each commit of the tracer.
        source.execute("BEGIN")
        source.execute("SELECT COUNT(*) FROM sqlite_master").fetchone()
        source.backup(target, pages=COPIED_PAGES, progress=step)
        source.execute("COMMIT")
    except BaseException:
        target.close()
        raise
    return target


def _redacted(source: sqlite3.Connection, path: Path, budget: Budget, progress: Progress | None) -> sqlite3.Connection:
    """What is read of it, in tables of our own, with pseudonyms: userspace/recording/recording_redact.c."""
    target = _connect("")
    tables = [table for table in schema().tables if not table.rows]
    try:
        target.execute("BEGIN")
        for table in schema().tables:
            target.execute(table.sql)
            marks = ", ".join("?" * len(table.columns))
            target.executemany(f'INSERT INTO main."{table.name}" VALUES ({marks})', table.rows)
        with bounded(source, path, budget):
            source.execute("SAVEPOINT redact")
            for done, table in enumerate(tables):
                if progress:
                    progress("copying", done, len(tables))
                names = ", ".join(f'"{name}"' for name in columns_of(target, table.name))
                marks = ", ".join("?" * len(table.columns))
                rows = source.execute(f'SELECT {names} FROM "{table.name}"')
                target.executemany(f'INSERT OR IGNORE INTO main."{table.name}" VALUES ({marks})', rows)
            source.execute("RELEASE redact")
        with bounded(target, path, budget):
            for statement in split((resources.files(__package__) / "redact.sql").read_text(encoding="utf-8")):
                target.execute(statement)
        target.execute("COMMIT")
        target.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        target.execute(f"PRAGMA user_version = {FORMAT}")
    except BaseException:
        target.close()
        raise
    return target


def _journal(path: Path) -> bytes | None:
    """What the journal beside it holds that its tracer may have left; None where it is somebody else's doing.

    SQLite deletes the file that a journal calls its super-journal (file format, 3.), with the rights of who reads.
    """
    try:
        fd = os.open(f"{path}-journal", os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        return b""
    except OSError as error:
        if error.errno == errno.ELOOP:
            return None
        raise
    with os.fdopen(fd, "rb") as file:
        status = os.fstat(fd)
        if not stat.S_ISREG(status.st_mode) or status.st_uid != path.stat().st_uid:
            return None
        found = file.read()
    return None if found.endswith(SUPER_JOURNAL) else found


def _recovered(path: Path, journal: bytes | None) -> sqlite3.Connection:
    """The tracer was killed in a commit: its journal is played back, in a copy; one that is not its own is not."""
    with tempfile.TemporaryDirectory(prefix="memtoll-") as directory:
        copy = Path(directory) / "copy"
        shutil.copyfile(path, copy)
        if journal:
            Path(f"{copy}-journal").write_bytes(journal)
        with closing(_connect(copy, "rw")) as source:
            _read_schema(source, path)
            return _copy(source, None)


def _connected(path: Path) -> tuple[sqlite3.Connection, bool]:
    """A connection that has read its first page, and whether it is to a copy."""
    # Before SQLite looks at it, which gives a journal to the recording's owner where root is it who looks.
    if _journal(path) is None:
        return _recovered(path, None), True
    connection = _connect(path)
    try:
        _read_schema(connection, path)
        return connection, False
    except sqlite3.OperationalError as error:
        connection.close()
        name = str(getattr(error, "sqlite_errorname", "") or "")
        if not name.startswith(("SQLITE_READONLY", "SQLITE_CANTOPEN")) or not Path(f"{path}-journal").exists():
            raise
        return _recovered(path, _journal(path)), True
    except BaseException:
        connection.close()
        raise


def _is_plain(connection: sqlite3.Connection) -> bool:
    """No recording has a virtual table, whose rows its module makes up, or a column that is computed.

    A single instruction of SQLite's can take for ever, and quick_check computes them.
    """
    (virtual,) = connection.execute(
        "SELECT COUNT(*) FROM sqlite_master WHERE type = 'table' AND (rootpage = 0 OR sql NOT LIKE 'CREATE TABLE %')"
    ).fetchone()
    (computed,) = connection.execute(
        "SELECT COUNT(*) FROM sqlite_master m, pragma_table_xinfo(m.name, 'main') x"
        " WHERE m.type = 'table' AND x.hidden > 1"
    ).fetchone()
    return not virtual and not computed


def _check_content(connection: sqlite3.Connection, path: Path) -> int:
    """The format; an error where this is no recording that can be read."""
    (application,) = connection.execute("PRAGMA application_id").fetchone()
    (found,) = connection.execute("PRAGMA user_version").fetchone()
    if application != APPLICATION_ID:
        raise NotARecording(f"{path} is an SQLite database, but not a recording of memtoll")
    if found > FORMAT:
        raise NewerFormat(
            f"{path} has format {found}, of a newer memtoll; this one reads up to format {FORMAT}: upgrade it"
        )
    if found < 1:
        raise NotARecording(f"{path} has format {found}, which no memtoll wrote")
    if not _is_plain(connection):
        raise DamagedRecording(f"{path} is damaged: it has tables that no recording has")
    if path.stat().st_size <= CHECKED_BYTES:
        (answer,) = connection.execute("PRAGMA quick_check(1)").fetchone()
        if answer != "ok":
            raise DamagedRecording(f"{path} is damaged: {line(answer)}")
    return int(found)


def open_file(
    path: str | os.PathLike[str], *, incomplete: bool, progress: Progress | None, redact: bool = False
) -> Opened:
    """Open a recording for reading. Errors: OSError, and those of memtoll.open."""
    file = Path(path)
    _expected_bytes(file)
    with reading(file):
        connection, copied = _connected(file)
    try:
        with reading(file):
            if not copied:
                _check_length(file)  # only now: a commit may have been under way
            found = _check_content(connection, file)
            guard(connection, put_before(connection, file))
            budget = _budget(connection, file)
            with bounded(connection, file, budget):
                row = connection.execute("SELECT value FROM meta WHERE key = 'complete'").fetchone()
            complete = bool(row and row[0] == "1")
            if not complete and not incomplete:
                raise IncompleteRecording(
                    f"{file} is incomplete: its tracer is still at work or was killed;"
                    " incomplete=True reads what is there"
                )
            if not complete and not copied:
                source = connection
                connection = _copy(source, progress)
                source.close()
                copied = True
                guard(connection, put_before(connection, file))
            if redact:
                source = connection
                connection = _redacted(source, file, _budget(source, file), progress)
                source.close()
                file, copied = REDACTED, True
                guard(connection, put_before(connection, file))
    except BaseException:
        connection.close()
        raise
    return Opened(connection, budget, file, found, complete, copied)
