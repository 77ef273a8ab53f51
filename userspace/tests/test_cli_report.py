# SPDX-License-Identifier: GPL-2.0
"""Files that are no recordings, or old ones, given to report. No root needed."""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from harness import ROOT, assert_refused, memtoll

APPLICATION_ID = 0x6D746F6C


def refuse(path: Path | str) -> None:
    for options in ([], ["--json"], ["--folded", "zero.libc"]):
        assert_refused(memtoll("report", path, *options), 1, path)


def test_missing(tmp_path: Path) -> None:
    path = tmp_path / "missing.memtoll"
    refuse(path)
    assert not path.exists(), "report created the file it was to read"


def test_directory(tmp_path: Path) -> None:
    refuse(tmp_path)


@pytest.mark.parametrize(
    "content",
    [b"", b"\n", b"a text, no recording\n" * 500, b"\x7fELF" + bytes(8192), b"SQLite format 3\0", bytes(65536)],
    ids=["empty", "newline", "text", "elf", "magic-only", "zeros"],
)
def test_foreign(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "foreign.memtoll"
    path.write_bytes(content)
    refuse(path)
    assert path.read_bytes() == content


def database(path: Path, application_id: int, version: int, *statements: str) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(f"PRAGMA application_id = {application_id}")
        connection.execute(f"PRAGMA user_version = {version}")
        connection.execute("CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT) WITHOUT ROWID")
        for statement in statements:
            connection.execute(statement)
        connection.commit()


def test_other_database(tmp_path: Path) -> None:
    path = tmp_path / "other.db"
    database(path, 0x12345678, 1)
    refuse(path)


def test_database_of_nobody(tmp_path: Path) -> None:
    path = tmp_path / "plain.db"
    database(path, 0, 0)
    refuse(path)


def test_claimed_recording_without_tables(tmp_path: Path) -> None:
    path = tmp_path / "hollow.memtoll"
    database(path, APPLICATION_ID, 1)
    refuse(path)


@pytest.mark.parametrize("version", [-1, 0, 2, 2**31 - 1])
def test_unknown_format(tmp_path: Path, version: int) -> None:
    path = tmp_path / "later.memtoll"
    database(path, APPLICATION_ID, version)
    refuse(path)


def test_hostile_schema(tmp_path: Path) -> None:
    """A view of the reader's own name that never ends must not be run: the schema is not ours."""
    path = tmp_path / "hostile.memtoll"
    endless = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) AS json FROM n"
    database(path, APPLICATION_ID, 1, f"CREATE VIEW report_json AS {endless}", f"CREATE VIEW verdict AS {endless}")
    refuse(path)


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads everything")
def test_unreadable(tmp_path: Path) -> None:
    path = tmp_path / "closed.memtoll"
    path.write_bytes(b"x")
    path.chmod(0)
    refuse(path)


def test_not_a_regular_file(tmp_path: Path) -> None:
    """A pipe nobody writes to must not hang the reader."""
    path = tmp_path / "pipe.memtoll"
    os.mkfifo(path)
    refuse(path)


def test_recording_of_an_earlier_version() -> None:
    """Its views are in it, and later ones are not: what they would say is left out, and nothing else."""
    path = ROOT / "analysis" / "tests" / "recordings" / "format-1.memtoll"
    text = memtoll("report", path)
    assert text.status == 0, text
    assert text.stderr == ""
    assert "VERDICT" in text.stdout
    assert "Overhead: " in text.stdout
    assert memtoll("report", "--json", path).status == 0
