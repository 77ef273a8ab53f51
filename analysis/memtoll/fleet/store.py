# SPDX-License-Identifier: GPL-2.0
"""The files of a dataset, and how they get there.

    DIR/toll/host=web1/day=2026-11-21/ID.parquet    the other tables in the same way
    DIR/_memtoll/dataset.json                       version of the schema
    DIR/_memtoll/commits/TIME-ID.json               one for each addition: its recordings, its files
    DIR/_memtoll/pending/ID.json                    an addition under way, locked by its writer
    DIR/_memtoll/lock                               held while one is made visible

An addition is visible when its commit file exists, which is renamed into place. If a writer dies
before that, its files still have a leading dot, which readers ignore, and the next writer removes
them: it finds the pending file without a lock. The set of existing recordings is read again under
the lock, so that of two writers with the same recording only one adds it. The locks are flock(2),
which works on local file systems and NFS.
"""

from __future__ import annotations

import fcntl
import json
import os
import re
import time
import uuid
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, TextIO
from urllib.parse import quote

from ..errors import DamagedRecording, Error
from ..extras import need
from .schema import TABLES, VERSION, arrow_schema, check_version
from .summary import Summary

OURS: Final = "_memtoll"
MARK: Final = "dataset.json"
# Files written at once: most of the time goes into waiting for the disk.
THREADS: Final = 8
# Files of tables within a dataset; nothing else is read or deleted.
PLACE: Final = re.compile(r"[a-z]+/host=[^/\0]+/day=\d{4}-\d\d-\d\d/[0-9a-f]{32}\.parquet")


class NotADataset(Error):
    """The directory is something else."""


@dataclass(frozen=True)
class File:
    """A file of a table: its path within the dataset, how many rows, whose and of when."""

    table: str
    path: str
    rows: int
    host: str
    day: str


@dataclass
class Commits:
    """What has been added so far."""

    names: set[str] = field(default_factory=set)
    recordings: set[str] = field(default_factory=set)
    files: list[File] = field(default_factory=list)


def _write_json(path: Path, value: Any) -> None:
    """A file that is there whole or not at all."""
    temporary = path.with_name(f".{path.name}.{uuid.uuid4().hex}")
    try:
        with temporary.open("w", encoding="utf-8") as file:
            json.dump(value, file)
            file.flush()
            os.fsync(file.fileno())
        temporary.rename(path)
    finally:
        temporary.unlink(missing_ok=True)


def _read_json(path: Path) -> dict[str, Any]:
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise DamagedRecording(f"{path} is damaged: {error}") from None
    if not isinstance(value, dict):
        raise DamagedRecording(f"{path} is damaged")
    return value


def is_dataset(path: Path) -> bool:
    """Whether a directory is a dataset."""
    return (path / OURS / MARK).is_file()


class Store:
    """The files of one dataset."""

    def __init__(self, path: Path, *, create: bool = False) -> None:
        self.path = path
        self.ours = path / OURS
        if create and not is_dataset(path):
            if path.exists() and (not path.is_dir() or any(entry.name != OURS for entry in path.iterdir())):
                raise NotADataset(f"{path} exists and is no dataset of memtoll; choose an empty directory")
            for name in ("commits", "pending"):
                (self.ours / name).mkdir(parents=True, exist_ok=True)
            # Of several that come here at once each writes the same.
            _write_json(self.ours / MARK, {"memtoll_dataset": VERSION})
        if not is_dataset(path):
            raise NotADataset(f"{path} is no dataset of memtoll (it has no {OURS}/{MARK})")
        self._check_version(_read_json(self.ours / MARK).get("memtoll_dataset"), self.path)
        self.commits = Commits()

    def _check_version(self, version: Any, path: Path) -> None:
        if not isinstance(version, int):
            raise DamagedRecording(f"{path} is damaged: it has no schema version")
        check_version(version, str(path))

    # ---- reading

    def refresh(self) -> Commits:
        """Everything that has been added until now."""
        names = {path.name for path in (self.ours / "commits").glob("[!.]*.json")}
        for name in sorted(names - self.commits.names):
            commit = _read_json(self.ours / "commits" / name)
            self._check_version(commit.get("memtoll_dataset"), self.ours / "commits" / name)
            try:
                files = [File(**file) for file in commit["files"]]
                if not all(PLACE.fullmatch(file.path) and file.table in TABLES for file in files):
                    raise KeyError("files")
                self.commits.files += files
                self.commits.recordings.update(commit["recordings"])
            except (KeyError, TypeError) as error:
                raise DamagedRecording(f"{self.ours / 'commits' / name} is damaged: {error}") from None
            self.commits.names.add(name)
        return self.commits

    # ---- writing

    @contextmanager
    def _locked(self) -> Iterator[None]:
        with (self.ours / "lock").open("a") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield

    def _recover(self) -> None:
        """Take away what writers left that died; the lock is held."""
        committed = {name.rsplit("-", 1)[1] for name in self.refresh().names}
        for path in (self.ours / "pending").glob("[!.]*.json"):
            try:
                with path.open("r+") as file:
                    try:
                        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    except BlockingIOError:
                        continue
                    if path.name not in committed:
                        self._drop(file.read().splitlines())
                    path.unlink(missing_ok=True)
            except FileNotFoundError:
                continue

    def add(self, summaries: Sequence[Summary]) -> list[bool]:
        """Add recordings, as one addition; for each whether it is new, in their order.

        OSError: the disk is full and the like; nothing has been added then.
        """
        known = set(self.refresh().recordings)
        fresh: list[Summary] = []
        added = []
        for summary in summaries:
            added.append(summary.recording not in known)
            if added[-1]:
                known.add(summary.recording)
                fresh.append(summary)
        if fresh:
            done = self._add(fresh)
            added = [new and summary.recording in done for new, summary in zip(added, summaries)]
        return added

    def _add(self, fresh: list[Summary]) -> set[str]:
        """Ids of those that were not added by another one meanwhile."""
        name = f"{uuid.uuid4().hex}.json"
        pending = self.ours / "pending" / name
        with self._journal(pending) as journal:
            try:
                files = self._write_files(fresh, name, journal)
                with self._locked():
                    self._recover()
                    there = self.commits.recordings
                    late = [summary for summary in fresh if summary.recording in there]
                    if late:
                        self._drop([file.path for file in files])
                        fresh = [summary for summary in fresh if summary.recording not in there]
                        files = self._write_files(fresh, name, journal)
                    if fresh:
                        self._commit(fresh, files, name)
            except BaseException:
                if not any(path.name.endswith(f"-{name}") for path in (self.ours / "commits").iterdir()):
                    journal.seek(0)
                    self._drop(journal.read().splitlines())
                raise
            finally:
                pending.unlink(missing_ok=True)
        return {summary.recording for summary in fresh}

    @contextmanager
    def _journal(self, pending: Path) -> Iterator[TextIO]:
        """The list of an addition's files, locked for as long as its writer lives."""
        while True:
            with pending.open("a+") as journal:
                fcntl.flock(journal, fcntl.LOCK_EX)
                # Between the two somebody may have taken it for a dead one's.
                if not pending.exists() or not os.path.samestat(pending.stat(), os.fstat(journal.fileno())):
                    continue
                yield journal
                return

    def _commit(self, fresh: Iterable[Summary], files: list[File], name: str) -> None:
        for file in files:
            _part(self.path / file.path).rename(self.path / file.path)
        for directory in {(self.path / file.path).parent for file in files}:
            _sync(directory)
        value = {
            "memtoll_dataset": VERSION,
            "recordings": sorted(summary.recording for summary in fresh),
            "files": [vars(file) for file in files],
        }
        _write_json(self.ours / "commits" / f"{time.time_ns():020d}-{name}", value)
        _sync(self.ours / "commits")

    def _write_files(self, fresh: list[Summary], name: str, journal: TextIO) -> list[File]:
        """The rows of recordings, a file for each table, host and day, under names of before the commit."""
        groups: dict[tuple[str, str], list[Summary]] = {}
        for summary in fresh:
            groups.setdefault((summary.host, summary.day), []).append(summary)
        jobs = []
        for table in TABLES:
            for (host, day), members in groups.items():
                rows = sum(len(member.tables[table]["recording"]) for member in members)
                if rows:
                    place = f"{table}/host={quote(host, safe='')}/day={day}/{name.removesuffix('.json')}.parquet"
                    jobs.append((File(table, place, rows, host, day), members))
        # Known before they exist: whoever clears up after us must find them all.
        journal.writelines(f"{file.path}\n" for file, _ in jobs)
        journal.flush()
        with ThreadPoolExecutor(THREADS) as pool:
            for _ in pool.map(self._write_file, *zip(*jobs)):
                pass
        return [file for file, _ in jobs]

    def _write_file(self, file: File, members: list[Summary]) -> None:
        arrow, parquet = need("arrow", "pyarrow"), need("arrow", "pyarrow.parquet")
        schema = arrow_schema(file.table)
        columns = {
            column: [value for member in members for value in member.tables[file.table][column]]
            for column in schema.names
        }
        target = _part(self.path / file.path)
        target.parent.mkdir(parents=True, exist_ok=True)
        with target.open("wb") as out:
            # Snappy: files of a host and day are small, and zstd takes twice the time for them.
            parquet.write_table(arrow.table(columns, schema=schema), out, compression="snappy")
            out.flush()
            os.fsync(out.fileno())

    def _drop(self, places: Iterable[str]) -> None:
        """Delete files by their names in the dataset."""
        for place in places:
            if PLACE.fullmatch(place):
                (self.path / place).unlink(missing_ok=True)
                _part(self.path / place).unlink(missing_ok=True)


def _part(path: Path) -> Path:
    """A file's name before it counts: other readers of Parquet directories skip leading dots."""
    return path.with_name(f".{path.name}.part")


def _sync(directory: Path) -> None:
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
