# SPDX-License-Identifier: GPL-2.0
"""Opening: what is refused and how, that nothing is ever changed, recordings that are still written."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import sqlite3
import struct
import subprocess
import sys
import threading
import time
from contextlib import closing
from functools import partial
from pathlib import Path

import pytest

import memtoll
from memtoll.page import page as page_of

import facts
import harness
from harness import MIB
from hostile import WELL, endless, forged
from package import RECORDINGS


def assert_one_line(error: BaseException, path: Path) -> None:
    text = str(error)
    assert "\n" not in text
    assert str(path) in text, text


@pytest.mark.parametrize(
    "content",
    [b"", b"\n", b"a text, no recording\n" * 500, b"\x7fELF" + bytes(8192), bytes(65536)],
    ids=["empty", "newline", "text", "elf", "zeros"],
)
def test_foreign(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "foreign.memtoll"
    path.write_bytes(content)
    with pytest.raises(memtoll.NotARecording) as raised:
        memtoll.open(path)
    assert_one_line(raised.value, path)
    assert path.read_bytes() == content


def test_directory_and_pipe(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    for path in (tmp_path, pipe):
        with pytest.raises(memtoll.NotARecording):
            memtoll.open(path)


def test_missing_is_not_created(tmp_path: Path) -> None:
    path = tmp_path / "missing.memtoll"
    with pytest.raises(FileNotFoundError):
        memtoll.open(path)
    assert not path.exists()


def test_other_database(tmp_path: Path) -> None:
    path = tmp_path / "other.db"
    with closing(sqlite3.connect(path)) as database:
        database.execute("CREATE TABLE t (a)")
    with pytest.raises(memtoll.NotARecording):
        memtoll.open(path)


def altered(path: Path, *statements: str) -> Path:
    with closing(sqlite3.connect(path)) as database:
        for statement in statements:
            database.execute(statement)
        database.commit()
    return path


@pytest.mark.parametrize(
    ("version", "error"),
    [
        (2, memtoll.NewerFormat),
        (2**31 - 1, memtoll.NewerFormat),
        (0, memtoll.NotARecording),
        (-1, memtoll.NotARecording),
    ],
)
def test_unknown_format(heap_blocks: Path, version: int, error: type[memtoll.Error]) -> None:
    with pytest.raises(error) as raised:
        memtoll.open(altered(heap_blocks, f"PRAGMA user_version = {version}"))
    assert_one_line(raised.value, heap_blocks)
    assert str(version) in str(raised.value)


@pytest.mark.slow
def test_views_are_not_needed(busy: Path) -> None:
    """They are for other programs: a recording is its tables, and all of them are needed."""
    with memtoll.open(busy) as rec:
        expected = rec.report
    with closing(sqlite3.connect(busy)) as database:
        views = [name for (name,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'view'")]
    altered(busy, *(f"DROP VIEW {name}" for name in views), "DROP TABLE advice", "DROP TABLE advice_text")
    with memtoll.open(busy) as rec:
        assert rec.report == expected
    altered(busy, "DROP TABLE loss")
    with pytest.raises(memtoll.DamagedRecording, match="lacks a table of a recording: loss") as raised:
        memtoll.open(busy)
    assert_one_line(raised.value, busy)


@pytest.mark.parametrize(
    "change",
    [
        "type = 'view', rootpage = 0, sql = 'CREATE VIEW call AS SELECT * FROM block'",
        "sql = 'CREATE VIEW call AS SELECT * FROM block'",
        "rootpage = 0, sql = 'CREATE VIRTUAL TABLE call USING dbstat'",
        "sql = 'CREATE VIRTUAL TABLE call USING rtree_i32(call, a, b)'",
        "sql = replace(sql, 'failed ', 'succeeded ')",
    ],
    ids=["a view", "a view called a table", "a virtual table", "a virtual table with a page", "a column"],
)
def test_tables_are_read_as_tables(busy: Path, change: str) -> None:
    """Not what a view or a virtual table makes up."""
    altered(busy, "PRAGMA writable_schema = ON", f"UPDATE sqlite_master SET {change} WHERE name = 'call'")
    with pytest.raises(memtoll.DamagedRecording) as raised:
        memtoll.open(busy)
    assert_one_line(raised.value, busy)


@pytest.mark.parametrize(
    "statements",
    [
        ("CREATE TABLE x (a INT, b INT NOT NULL AS (a + 1))",),
        ("DROP VIEW toll", "CREATE TABLE toll (toll, time_ns)"),
        (
            "DROP TABLE meta",
            "CREATE VIEW meta AS WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n)"
            " SELECT 'k' || i AS key, i AS value FROM n",
        ),
        ("PRAGMA journal_mode = WAL",),
    ],
    ids=["a computed column", "a table called as a view", "an endless view", "a write-ahead log"],
)
def test_foreign_schemas_are_refused(busy: Path, statements: tuple[str, ...]) -> None:
    """Nothing of it is computed, and nothing comes to be beside it."""
    altered(busy, *statements)
    before = state(busy)
    with pytest.raises(memtoll.DamagedRecording) as raised:
        memtoll.open(busy, incomplete=True)
    assert_one_line(raised.value, busy)
    assert state(busy) == before


@pytest.mark.slow
def test_long_names(heap_blocks: Path) -> None:
    """Work is in proportion to them."""
    altered(heap_blocks, f"UPDATE frame SET module = '{'b' * MIB}{'a' * MIB}', file = module, line = 1")
    with memtoll.open(heap_blocks) as rec:
        assert rec.report["sites"]


@pytest.mark.parametrize("kept", [0.3, 0.7, 0.99])
def test_truncated(heap_blocks: Path, kept: float) -> None:
    with heap_blocks.open("r+b") as file:
        file.truncate(int(heap_blocks.stat().st_size * kept))
    with pytest.raises(memtoll.DamagedRecording) as raised:
        memtoll.open(heap_blocks)
    assert_one_line(raised.value, heap_blocks)


def test_overwritten(busy: Path) -> None:
    data = bytearray(busy.read_bytes())
    for page in range(3, len(data) // 4096, 2):
        data[page * 4096 : page * 4096 + 64] = bytes(64)
    busy.write_bytes(data)
    with pytest.raises(memtoll.DamagedRecording) as raised:
        memtoll.open(busy)
    assert_one_line(raised.value, busy)


@pytest.mark.slow
def test_incomplete(heap_blocks: Path) -> None:
    altered(heap_blocks, "DELETE FROM meta WHERE key = 'complete'")
    with pytest.raises(memtoll.IncompleteRecording) as raised:
        memtoll.open(heap_blocks, incomplete=False)
    assert "incomplete=True" in str(raised.value)
    assert_one_line(raised.value, heap_blocks)
    with memtoll.open(heap_blocks) as rec:
        assert not rec.complete
        assert rec.report["complete"] is False
        assert "incomplete" in repr(rec.toll)
        assert "incomplete" in repr(rec.toll.head(1))
    with memtoll.open(RECORDINGS / "format-1.memtoll", incomplete=True) as rec:
        assert rec.complete
        assert "incomplete" not in repr(rec.toll)


def state(path: Path) -> tuple[str, int, list[str]]:
    return (
        hashlib.sha256(path.read_bytes()).hexdigest(),
        path.stat().st_mtime_ns,
        sorted(entry.name for entry in path.parent.iterdir()),
    )


def test_never_changed(busy: Path) -> None:
    busy.chmod(0o444)
    before = state(busy)
    with memtoll.open(busy) as rec:
        for name in memtoll.recording.NAMES:
            getattr(rec, name)
        assert rec.report["complete"]
        with pytest.raises(memtoll.Error):
            rec.query("DELETE FROM main.meta")
        with pytest.raises(memtoll.Error):
            rec.query("CREATE TABLE main.t (a)")
    assert state(busy) == before


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_directory_of_others(busy: Path) -> None:
    busy.parent.chmod(0o555)
    try:
        with memtoll.open(busy) as rec:
            assert len(rec.toll) == 12
    finally:
        busy.parent.chmod(0o755)


@pytest.mark.slow
def test_odd_names(heap_blocks: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(heap_blocks.parent)
    for name in ("a?mode=rwc&x#y%41.memtoll", "file:b.memtoll", "c d\u00e9.memtoll"):
        shutil.copy(heap_blocks, name)
        with memtoll.open(name) as rec:
            assert rec.verdict.dominant == "zeroing"


def test_closed(heap_blocks: Path) -> None:
    rec = memtoll.open(heap_blocks)
    toll = rec.toll
    rec.close()
    rec.close()
    assert rec.toll is toll
    with pytest.raises(memtoll.Error, match="closed"):
        _ = rec.sites


def test_while_it_is_written(tmp_path: Path) -> None:
    """What was opened stays as it was, and the writer is not held up."""
    path = tmp_path / "live.memtoll"
    facts.heap_blocks(path).database.close()
    altered(path, "DELETE FROM meta WHERE key = 'complete'")
    with closing(sqlite3.connect(path, timeout=0, isolation_level=None)) as writer:
        writer.execute("BEGIN IMMEDIATE")
        writer.execute("INSERT INTO slice VALUES (2, 1001000000000, 1002000000000)")
        # A transaction under way does not show, and does not prevent reading.
        with memtoll.open(path, incomplete=True) as rec:
            writer.execute("COMMIT")
            writer.execute("INSERT INTO slice VALUES (3, 1002000000000, 1003000000000)")
            assert rec.duration_s == 1.0
            assert rec.timeline["slice"].nunique() == 1
        with memtoll.open(path, incomplete=True) as rec:
            assert rec.duration_s == 3.0


@pytest.mark.slow
def test_many_commits_while_opening(busy: Path) -> None:
    """Each opening sees whole slices: two tables that are always written together agree."""
    altered(busy, "DELETE FROM meta WHERE key = 'complete'", "DELETE FROM system_counter")
    stop = threading.Event()

    def write() -> None:
        with closing(sqlite3.connect(busy, timeout=20, isolation_level=None)) as writer:
            writer.execute("PRAGMA synchronous = OFF")
            number = 100
            while not stop.is_set():
                number += 1
                writer.execute("BEGIN")
                writer.execute("INSERT INTO slice VALUES (?, ?, ?)", (number, number * 10**9, (number + 1) * 10**9))
                writer.execute("INSERT OR REPLACE INTO system_counter VALUES ('last', ?)", (number,))
                writer.execute("COMMIT")

    thread = threading.Thread(target=write)
    thread.start()
    try:
        seen: set[int] = set()
        opened, until = 0, time.monotonic() + 60
        while opened < 7 or (len(seen) < 2 and time.monotonic() < until):
            opened += 1
            with memtoll.open(busy, incomplete=True) as rec:
                last = rec.query("SELECT MAX(slice) AS last FROM main.slice")["last"].iloc[0]
                if len(rec.system):
                    assert rec.system.loc["last", "value"] == last
                    seen.add(int(last))
        assert len(seen) > 1, "the writer did not get on"
    finally:
        stop.set()
        thread.join()


CUT_OFF = """
import os, sqlite3, sys
database = sqlite3.connect(sys.argv[1], isolation_level=None)
database.execute("PRAGMA cache_size = 1")
database.execute("BEGIN")
database.execute("DELETE FROM fault")
database.execute("DELETE FROM call")
database.execute("WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 20000)"
                 " INSERT INTO loss SELECT 1000 + i, 'x', i FROM n")
os._exit(0)
"""


@pytest.mark.slow
def test_cut_off_in_a_commit(busy: Path) -> None:
    """A journal was left: it is played back in a copy."""
    with memtoll.open(busy) as rec:
        expected = rec.report
    subprocess.run([sys.executable, "-c", CUT_OFF, str(busy)], check=True, timeout=30)
    assert Path(f"{busy}-journal").stat().st_size > 0, "no journal was left: the test tests nothing"
    before = state(busy)
    with memtoll.open(busy) as rec:
        assert rec.report == expected
        assert len(rec.faults) > 0
    assert state(busy) == before


@pytest.mark.slow
def test_killed_half_way_is_what_the_binary_says(busy: Path) -> None:
    altered(busy, "DELETE FROM meta WHERE key IN ('complete', 'end_ns', 'end_reason')")
    subprocess.run([sys.executable, "-c", CUT_OFF, str(busy)], check=True, timeout=30)
    printed = harness.memtoll("report", "--json", busy)
    with memtoll.open(busy) as rec:
        assert rec.report_text + "\n" == printed.stdout
        assert not rec.complete and rec.report["complete"] is False
        assert len(rec.faults) > 0


def planted_journal(recording: Path, victim: Path) -> bytes:
    """Hot, of no pages, and its super-journal is a file of somebody's (file format, 3.)."""
    magic, name = bytes.fromhex("d9d505f920a163d7"), os.fsencode(victim)
    header = magic + struct.pack(">5I", 0, 1, recording.stat().st_size // 4096, 512, 4096)
    record = struct.pack(">I", (1 << 30) // 4096 + 1) + name + struct.pack(">II", len(name), sum(name)) + magic
    return header.ljust(512, b"\0") + record


@pytest.mark.parametrize("how", ["names another file", "is a link"])
@pytest.mark.slow
def test_a_planted_journal_is_not_played_back(busy: Path, tmp_path: Path, how: str) -> None:
    with memtoll.open(busy) as rec:
        expected = rec.report
    victim, journal = tmp_path / "victim", Path(f"{busy}-journal")
    victim.write_text("of somebody else\n")
    if how == "is a link":
        journal.symlink_to(victim)
    else:
        journal.write_bytes(planted_journal(busy, victim))
    before = state(busy)
    with memtoll.open(busy) as rec:
        assert rec.report == expected
    assert victim.read_text() == "of somebody else\n"
    assert state(busy) == before
    # What SQLite itself does with such a file.
    if how == "names another file":
        with closing(sqlite3.connect(busy)) as database:
            database.execute("SELECT COUNT(*) FROM sqlite_master").fetchone()
        assert not victim.exists(), "the journal was not hot: the test tests nothing"


def everything(path: Path) -> list[str]:
    """What each part of the package says of a recording, as text."""
    with memtoll.open(path) as rec:
        said = [rec.report_text, str(rec), str(rec.verdict), json.dumps(rec.verdict), str(rec.notes)]
        said += [getattr(rec, name).to_csv() for name in memtoll.recording.NAMES]
        own = "SELECT * FROM verdict", "SELECT * FROM toll", "SELECT json FROM report_json", "SELECT * FROM stack_line"
        said += [rec.query(sql).to_csv() for sql in own]
    exported = path.with_name("exported")
    with memtoll.open(path) as rec, memtoll.open(RECORDINGS / "format-1.memtoll") as other:
        said += [page_of(rec), str(memtoll.diff(other, rec, force=True))]
        rec.export(exported, "folded", toll="zero.kernel", force=True)
    return [*said, exported.read_text()]


@pytest.fixture(scope="module")
def truth(_busy_once: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[str]]:
    """Where a copy of busy was, and what was said of it there."""
    path = Path(shutil.copy(_busy_once, tmp_path_factory.mktemp("truth")))
    return path, everything(path)


@pytest.mark.slow
@pytest.mark.parametrize(
    "view",
    [
        WELL,
        "SELECT * FROM pragma_wal_checkpoint",
        "SELECT load_extension(1) AS toll",
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i AS toll FROM n WHERE i < 0",
    ],
    ids=["another verdict", "a pragma", "an extension", "endless"],
)
def test_a_file_does_not_state_its_own_verdict(busy: Path, truth: tuple[Path, list[str]], view: str) -> None:
    """Its views are somebody's word: they are not asked, by no part of the package."""
    path, expected = truth
    assert "All is well" not in "".join(expected)
    shutil.copy(forged(busy, view), path)
    assert everything(path) == expected
    with memtoll.open(path) as rec, pytest.raises(memtoll.Error) as raised:
        rec.query("SELECT * FROM main.verdict")
    assert_one_line(raised.value, path)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("table", "column", "value"),
    [
        ("fault_run", "address", "text"),
        ("fault_run", "pages", b"\xff\xfe"),
        ("fault_run", "class", b"zero"),
        ("fault_run", "first_ns", 1e300),
        ("slice", "start_ns", "text"),
        ("slice", "end_ns", float("inf")),
        ("process", "exit_code", "none"),
        ("process_slice", "rss_bytes", "much"),
        ("stack_frame", "depth", -(2**63)),
        ("frame", "line", "text"),
        ("latency", "low_ns", "text"),
        ("system_counter", "value", 1e300),
        ("meta", "value", b"\xff\xfe"),
    ],
    ids=lambda value: repr(value),
)
def test_values_that_no_tracer_writes(busy: Path, table: str, column: str, value: object) -> None:
    """SQLite keeps any value in any column: what cannot be understood is said to be damaged, by all that reads it."""
    with closing(sqlite3.connect(busy)) as database:
        database.execute(f"UPDATE OR IGNORE {table} SET {column} = ?", [value])
        database.commit()
    errors: list[memtoll.Error] = []
    with memtoll.open(busy, incomplete=True) as rec:
        parts = [
            partial(getattr, rec, name) for name in ("report", "verdict", "meta", "notes", *memtoll.recording.NAMES)
        ]
        for part in (*parts, partial(str, rec), partial(page_of, rec), partial(memtoll.diff, rec, rec)):
            try:
                part()
            except memtoll.Error as error:
                errors.append(error)
    for each in errors:
        assert_one_line(each, busy)
    if (table, column) in (("fault_run", "address"), ("slice", "start_ns"), ("process_slice", "rss_bytes")):
        assert any(isinstance(each, memtoll.DamagedRecording) for each in errors)


def test_text_that_is_none(busy: Path) -> None:
    """SQLite's message cites the statement, which is of many lines."""
    altered(busy, "UPDATE frame SET function = CAST(x'fffe1b5b' AS TEXT), file = CAST(x'fffe' AS TEXT)")
    with memtoll.open(busy) as rec:
        for part in (
            partial(getattr, rec, "verdict"),
            partial(getattr, rec, "report"),
            partial(getattr, rec, "stacks"),
        ):
            with pytest.raises(memtoll.DamagedRecording) as raised:
                part()
            assert_one_line(raised.value, busy)
            assert str(raised.value).isprintable()


def test_facts_that_take_for_ever(heap_blocks: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memtoll.opening, "STEPS", 3_000_000)
    monkeypatch.setattr(memtoll.opening, "STEPS_PER_BYTE", 0)
    with (
        memtoll.open(endless(heap_blocks)) as rec,
        pytest.raises(memtoll.DamagedRecording, match="more work") as raised,
    ):
        assert rec.report
    assert_one_line(raised.value, heap_blocks)


@pytest.mark.slow
def test_one_budget_for_all(heap_blocks: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of work and memory. What is refused once is refused again, with the same words; holes make no file larger."""
    monkeypatch.setattr(memtoll.opening, "STEPS", 3_000_000)
    monkeypatch.setattr(memtoll.opening, "STEPS_PER_BYTE", 1)
    with endless(heap_blocks).open("r+b") as file:
        file.truncate(1 << 40)
        file.seek(28)
        file.write(((1 << 40) // 4096).to_bytes(4, "big"))
    for heap, more in ((1 << 40, "work"), (0, "memory")):
        monkeypatch.setattr(memtoll.opening, "HEAP_BYTES", heap)
        monkeypatch.setattr(memtoll.opening, "HEAP_BYTES_MAX", max(heap, 4 << 20))
        with memtoll.open(heap_blocks) as rec:
            for part in ("report", "sites", "report", "stacks"):
                with pytest.raises(memtoll.DamagedRecording, match=f"more {more} than") as raised:
                    getattr(rec, part)
                assert_one_line(raised.value, heap_blocks)
        monkeypatch.setattr(memtoll.opening, "STEPS", 1 << 60)


def test_more_than_a_recording_has(heap_blocks: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A schema that takes for ever to read, and a value that all views copy."""
    for limit in ("SCHEMA_S", "SCHEMA_STEPS_MAX"):
        monkeypatch.setattr(memtoll.opening, limit, -1)
        monkeypatch.setattr(memtoll.opening, "SCHEMA_STEPS", 100)
        with pytest.raises(memtoll.DamagedRecording, match="its schema is larger") as raised:
            memtoll.open(heap_blocks)
        assert_one_line(raised.value, heap_blocks)
        monkeypatch.undo()
    altered(heap_blocks, "UPDATE frame SET function = hex(zeroblob(3000000)) WHERE frame_id = 1")
    with memtoll.open(heap_blocks) as rec, pytest.raises(memtoll.DamagedRecording, match="too big") as raised:
        assert rec.report
    assert_one_line(raised.value, heap_blocks)


def test_nothing_else_is_written(busy: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    with memtoll.open(busy) as rec:
        for sql in (f"ATTACH '{other}' AS other", f"VACUUM INTO '{other}'", "PRAGMA mmap_size = 0"):
            with pytest.raises(sqlite3.DatabaseError, match="authori"):
                rec.views.connection.execute(sql)
    assert not other.exists()


def test_old_recordings() -> None:
    """One recording of every format there was, and what is said of it now."""
    found = sorted(RECORDINGS.glob("format-*.memtoll"))
    assert [path.stem for path in found] == [f"format-{n}" for n in range(1, memtoll.version.FORMAT + 1)]
    for path in found:
        assert path.stat().st_size < 200_000
        with memtoll.open(path) as rec:
            assert rec.report == json.loads(path.with_suffix(".json").read_text())
            for name in memtoll.recording.NAMES:
                assert getattr(rec, name) is not None
            assert rec.faults["touched_at"].notna().any()
