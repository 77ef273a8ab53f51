# SPDX-License-Identifier: GPL-2.0
"""Reads of what was read before, by programs with a cache of their own."""

from __future__ import annotations

from typing import Any

import pytest

from facts import MIB, MS, PAGE, Facts

TABLE = 24 * MIB // PAGE


def scanned(read_ns: int, program: str, box: int | None = None, own: int = MIB) -> dict[str, dict[str, Any]]:
    """A table read ten times, out of the page cache, in 100 ms of which the reads take so much."""
    made = Facts()
    made.prices()
    made.slice()
    made.process()
    made.cpu(100 * MS)
    made.row("file", file=1, dev=1, inode=2, path="/srv/table", kind="file", bytes=TABLE * PAGE)
    pages = 10 * TABLE
    sums = {"calls": pages, "bytes": pages * PAGE, "cached_calls": pages, "cached_bytes": pages * PAGE}
    where = {"slice": 1, "pid": 42, "file": 1, "call": "pread64", "stack_id": 0, "direct": 0, "failed": 0}
    spent = {"cpu_ns": read_ns, "blocked_ns": 0, "filled_pages": 0, "faults": 0}
    made.row("file_read", **where, **sums, **spent)
    made.reuse("files", pages, TABLE, {TABLE - 1: 9 * TABLE})
    if program:
        made.row("own_cache", pid=42, program=program, setting="shared_buffers", bytes=own, source="default")
    if box:
        made.memory_cgroup(box, usage_bytes=box, file_bytes=box - 4 * MIB)
    return {row["code"]: row for row in made.judged("finding", "SELECT * FROM finding ORDER BY position")}


# A read has to be dearer than its probe.
DEAR = 90 * MS


@pytest.mark.parametrize(
    ("read_ns", "program", "advised"),
    [(DEAR, "PostgreSQL", True), (24 * MS, "PostgreSQL", False), (DEAR, "", False)],
)
def test_copies_out_of_the_page_cache(read_ns: int, program: str, advised: bool) -> None:
    """A larger cache of its own saves them: worth its memory where they take more than a quarter of the time."""
    assert ("file-reread" in scanned(read_ns, program)) == advised


@pytest.mark.parametrize(("box", "said"), [(None, False), (16 * MIB, True), (64 * MIB, False)])
def test_cache_that_its_cgroup_has_no_room_for(box: int | None, said: bool) -> None:
    text = scanned(DEAR, "PostgreSQL", box)["file-reread"]["text"]
    assert "shared_buffers = 32MB" in text
    assert "a quarter of shared_buffers" in text
    assert ("raise that limit first" in text) == said
