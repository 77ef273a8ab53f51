# SPDX-License-Identifier: GPL-2.0
"""Large tables from the pages of the file: the same as through SQLite, or not at all."""

from __future__ import annotations

import random
import sqlite3
from contextlib import closing
from functools import cache
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import memtoll
from memtoll import bulk, pages

import facts

MANY = 1 << 60
EDGES = [0, 1, 2, -1, -2, 127, 128, -128, -129]
EDGES += [
    sign * (1 << bits) + more
    for bits in (15, 16, 23, 24, 31, 32, 47, 48, 62)
    for sign in (1, -1)
    for more in (-1, 0, 1)
]
EDGES += [(1 << 63) - 1, -(1 << 63)]
COLUMNS = (
    "slice, pid, tid, class, address, pages, faults, first_ns, last_ns, allocated_stack, allocated_call,"
    " touched_stack, area"
)


def runs(path: Path, rows: list[tuple[Any, ...]], page_size: int = 4096, *more: str) -> Path:
    """A recording with these fault runs."""
    facts.heap_blocks(path).database.close()
    with closing(sqlite3.connect(path)) as database:
        if page_size != 4096:
            database.execute(f"PRAGMA page_size = {page_size}")
            database.execute("VACUUM")
        database.executemany(f"INSERT INTO fault_run ({COLUMNS}) VALUES ({', '.join('?' * 13)})", rows)
        for statement in more:
            database.execute(statement)
        database.commit()
    return path


@cache
def random_rows(seed: int, count: int) -> list[tuple[Any, ...]]:
    rng = random.Random(seed)

    def small() -> int:
        return rng.choice([e for e in EDGES if -(1 << 31) <= e < 1 << 31])

    texts = ["zero", "swap_major", "swap_zram_major", "swap_zswap_major", "x" * 57, "", "zero_hug\u00e9", "other"]
    stacks = [rng.getrandbits(64) - (1 << 63) for _ in range(9)]
    return [
        (
            small(), small(), small(), rng.choice(texts), rng.choice(EDGES[:-1]) & ((1 << 63) - 1), rng.choice(EDGES),
            rng.choice(EDGES), rng.choice(EDGES), rng.choice(EDGES), rng.choice(stacks),
            rng.choice(["", "malloc", "posix_memalign"]), rng.choice(stacks), rng.choice(["anon", "unknown", ""]),
        )
        for _ in range(count)
    ]  # fmt: skip


def both_ways(path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[pd.DataFrame, pd.DataFrame, bool]:
    """The runs from pages and from the cursor, and whether the pages were taken."""
    taken = []
    cursor = bulk._load_cursor

    def counted(*words: Any) -> bulk.Arrays:
        taken.append(1)
        return cursor(*words)

    monkeypatch.setattr(bulk, "_load_cursor", counted)
    monkeypatch.setattr(bulk, "WORTH_PAGES", 0)
    with memtoll.open(path) as rec:
        first = rec.faults
    by_pages = not taken
    monkeypatch.setattr(bulk, "WORTH_PAGES", MANY)
    with memtoll.open(path) as rec:
        second = rec.faults
    assert taken
    return first, second, by_pages


@pytest.mark.slow
@pytest.mark.parametrize("page_size", [512, 1024, 4096, 65536])
@pytest.mark.parametrize("count", [1, 2, 50, 20011])
def test_same_as_sqlite(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, page_size: int, count: int) -> None:
    rows = random_rows(count, count)
    path = runs(tmp_path / "a.memtoll", rows, page_size)
    ours, theirs, by_pages = both_ways(path, monkeypatch)
    assert by_pages
    assert len(ours) == count
    pd.testing.assert_frame_equal(ours, theirs)
    # And against the rows themselves: not what two readers make of them.
    assert list(ours["end_ns"]) == [row[8] for row in rows]
    assert list(ours["address"]) == [row[4] for row in rows]
    assert list(ours["class"]) == [row[3] for row in rows]


def test_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ours, theirs, _ = both_ways(runs(tmp_path / "a.memtoll", []), monkeypatch)
    assert len(ours) == 0
    pd.testing.assert_frame_equal(ours, theirs)


def test_row_ids_of_all_lengths(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.memtoll"
    facts.heap_blocks(path).database.close()
    rows = random_rows(3, 64 * 9)
    with closing(sqlite3.connect(path)) as database:
        for number, row in enumerate(rows):
            at = number - 40 + (1 << 7 * (number // 64)) if number >= 64 else number - 1000
            database.execute(f"INSERT INTO fault_run (rowid, {COLUMNS}) VALUES ({', '.join('?' * 14)})", (at, *row))
        database.commit()
    ours, theirs, by_pages = both_ways(path, monkeypatch)
    assert by_pages
    assert len(ours) == len(rows)
    pd.testing.assert_frame_equal(ours, theirs)


@pytest.mark.slow
def test_holes_and_free_pages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = random_rows(5, 5003)
    path = runs(
        tmp_path / "a.memtoll", rows, 4096,
        "DELETE FROM fault_run WHERE rowid % 3 = 0", "DELETE FROM fault_run WHERE rowid BETWEEN 1000 AND 3000",
        "INSERT INTO loss SELECT slice, 'x' || rowid, 1 FROM fault_run GROUP BY rowid",
    )  # fmt: skip
    ours, theirs, by_pages = both_ways(path, monkeypatch)
    assert by_pages
    pd.testing.assert_frame_equal(ours, theirs)


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE fault_run SET class = printf('%.60c', 'x') WHERE rowid = 77",
        "UPDATE fault_run SET class = printf('%.9000c', 'x') WHERE rowid = 77",
        "UPDATE fault_run SET class = 'c' || rowid",
        "ALTER TABLE fault_run ADD COLUMN later INTEGER NOT NULL DEFAULT 5",
    ],
    ids=["text-of-60", "overflow", "many-texts", "short-rows"],
)
@pytest.mark.slow
def test_unusual_goes_through_sqlite(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, statement: str) -> None:
    path = runs(tmp_path / "a.memtoll", random_rows(7, 1009))
    with closing(sqlite3.connect(path, isolation_level=None)) as database:
        database.execute(statement)
    ours, theirs, by_pages = both_ways(path, monkeypatch)
    assert not by_pages
    pd.testing.assert_frame_equal(ours, theirs)


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> tuple[bytes, int]:
    """A recording, and the first page of its fault runs."""
    path = runs(tmp_path_factory.mktemp("sound") / "a.memtoll", random_rows(11, 2003))
    with closing(sqlite3.connect(path)) as database:
        ((root,),) = database.execute("SELECT rootpage FROM sqlite_master WHERE name = 'fault_run'")
    return path.read_bytes(), root


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(40))
def test_damage_never_crashes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int, sound: tuple[bytes, int]
) -> None:
    """Bytes at random: rows, Unusual and so SQLite's own word, or DamagedRecording; nothing else."""
    rng = random.Random(seed)
    path = tmp_path / "a.memtoll"
    whole, root = sound
    data = bytearray(whole)
    for _ in range(rng.choice([1, 10, 100])):
        at = rng.randrange(4096, len(data)) if rng.random() < 0.8 else (root - 1) * 4096 + rng.randrange(64)
        data[at] = rng.randrange(256)
    path.write_bytes(data)
    with path.open("rb") as file:
        names = {number: "int64" for number in (0, 1, 2, 4, 5, 6)} | {3: "text"}
        try:
            for chunk in pages.read_table(path, root, 13, names):
                assert len(chunk) == len(names)
        except pages.Unusual:
            pass
        assert file.read(16) == b"SQLite format 3\0"
    monkeypatch.setattr(bulk, "WORTH_PAGES", 0)
    try:
        with memtoll.open(path) as rec:
            assert rec.faults is not None
    except memtoll.Error:
        pass
