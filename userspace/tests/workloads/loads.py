# SPDX-License-Identifier: GPL-2.0
"""Work of Python programs in which the kernel's part is most of it, and what a unit of it costs.

usage: loads.py scan|memmap|maps DIRECTORY
  scan    SQLite reads a table that its own cache cannot hold; its pages are in the page cache
  memmap  numpy reads elements of a mapped file in no order
  maps    a function that maps a page, writes to it and unmaps it, called from several depths
For each line read, a number of milliseconds, it works that long. Then a line with the units done and their CPU time.
"""

from __future__ import annotations

import json
import mmap
import os
import sqlite3
import sys
import time
from collections.abc import Callable
from pathlib import Path

ROWS = 40_009
PAGES = 16_411


def scan(directory: Path) -> Callable[[], int]:
    path = directory / "scanned.db"
    base = sqlite3.connect(path)
    base.execute("CREATE TABLE IF NOT EXISTS t (id INTEGER PRIMARY KEY, text TEXT)")
    if not base.execute("SELECT COUNT(*) FROM t").fetchone()[0]:
        base.executemany("INSERT INTO t VALUES (?, ?)", ((i, f"{i:0>701}") for i in range(ROWS)))
        base.commit()
    base.execute("PRAGMA cache_size = 10")

    def once() -> int:
        base.execute("SELECT SUM(LENGTH(text)) FROM t").fetchone()
        return 1

    return once


def memmap(directory: Path) -> Callable[[], int]:
    import numpy

    path = directory / "mapped.bin"
    if not path.exists():
        path.write_bytes(bytes(PAGES * 4096))
    random = numpy.random.default_rng(7)

    def once() -> int:
        mapped = numpy.memmap(path, dtype=numpy.uint8, mode="r")
        mapped[random.integers(0, PAGES * 4096, 2003)].sum()
        return 2003

    return once


def maps(_directory: Path) -> Callable[[], int]:
    def map_one(depth: int) -> None:
        if depth:
            map_one(depth - 1)
            return
        page = mmap.mmap(-1, 4096)
        page[0] = 1
        page.close()

    def once() -> int:
        for depth in range(101):
            map_one(depth % 7)
        return 101

    return once


def main() -> None:
    once = {"scan": scan, "memmap": memmap, "maps": maps}[sys.argv[1]](Path(sys.argv[2]))
    once()
    print(json.dumps({"pid": os.getpid()}), flush=True)
    for line in sys.stdin:
        until, units, before = time.monotonic() + int(line) / 1000, 0, time.process_time_ns()
        while not units or time.monotonic() < until:
            units += once()
        print(json.dumps({"ops": units, "ops_cpu_ns": time.process_time_ns() - before}), flush=True)


main()
