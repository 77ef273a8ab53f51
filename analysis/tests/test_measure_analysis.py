# SPDX-License-Identifier: GPL-2.0
"""How long large recordings take."""

from __future__ import annotations

import resource
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

import pytest

import memtoll
from memtoll import pages, pictures
from memtoll.page import page

import facts
from browser import DESKTOP, PHONE, browser
from crowd import crowd
from facts import Facts, S, finished
from package import environment

pytestmark = pytest.mark.measure


MEASURE = """
import os, resource, sys, time
import memtoll
start, cpu = time.monotonic(), time.process_time()
with memtoll.open(sys.argv[1]) as rec:
    faults = rec.faults
wall, cpu = time.monotonic() - start, time.process_time() - cpu
assert faults.address.iloc[-1] == 139637976727552 + 4096 * (9999999 * 7919 % 4000000), faults.tail(1)
assert int(faults.pages.sum()) == 30000000
print(len(faults), wall, cpu, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024)
"""

GENERATE = """
WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < 9999999)
INSERT INTO fault_run (slice, pid, tid, class, address, pages, faults, first_ns, last_ns, allocated_stack,
	allocated_call, touched_stack, area)
SELECT 1 + i / 100000, 42, 42 + i % 7, CASE WHEN i % 3 = 0 THEN 'zero' ELSE 'swap_major' END,
	139637976727552 + 4096 * (i * 7919 % 4000000), 1 + i % 5, 1 + i % 5, 1000000000000 + i * 10000,
	1000000000000 + i * 10000 + 500, (1 + i % 3) * 0x0123456789ABCD * (1 - 2 * ((1 + i % 3) % 2)), 'malloc',
	0x0123456789ABCD * (i % 1009), 'anon' FROM n
"""


def test_ten_million_runs(tmp_path: Path) -> None:
    """In under 10 s and 4 GiB."""
    path = tmp_path / "large.memtoll"
    facts.heap_blocks(path).database.close()
    with closing(sqlite3.connect(path)) as database:
        database.execute("PRAGMA synchronous = OFF")
        database.execute("PRAGMA journal_mode = OFF")
        database.execute(GENERATE)
        database.commit()
        database.execute("PRAGMA journal_mode = DELETE")
    done = subprocess.run(
        [sys.executable, "-c", MEASURE, str(path)],
        env=environment(), capture_output=True, text=True, timeout=110, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    rows, wall, cpu, memory = map(float, done.stdout.split())
    print(f"{rows:.0f} runs: {wall:.1f} s, {cpu:.1f} s of processor time, {memory / 2**30:.2f} GiB")
    assert rows == 10_000_000
    assert memory < 4 << 30
    threads = len(__import__("os").sched_getaffinity(0))
    assert wall < 10 or cpu / min(threads, pages.THREADS) < 10, (wall, cpu)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss < 4 << 20


def test_page_of_many_sites(tmp_path: Path) -> None:
    """100,000 sites: loaded, searched and sorted in seconds."""
    crowd(tmp_path / "crowd.memtoll", sites=100_000)
    with memtoll.open(tmp_path / "crowd.memtoll") as rec:
        (tmp_path / "crowd.html").write_text(page(rec))
    with browser() as tab:
        for screen in (DESKTOP, PHONE):
            tab.screen(*screen)
            began = time.monotonic()
            tab.open(tmp_path / "crowd.html")
            assert time.monotonic() - began < 6
        began = time.monotonic()
        tab.run("document.getElementById('site-search').focus()")
        tab.press("part3.c:500")
        tab.until("document.getElementById('site-status').innerText.includes(' of 100,000')")
        tab.run("document.querySelector('[data-sort=count]').click()")
        assert time.monotonic() - began < 6


def test_timeline_of_many_slices(tmp_path: Path) -> None:
    path = tmp_path / "long.memtoll"
    made = Facts(path)
    made.prices()
    made.process()
    made.database.executemany(
        "INSERT INTO slice (slice, start_ns, end_ns) VALUES (?, ?, ?)",
        ((at, 1000 * S + at * 10 * S, 1010 * S + at * 10 * S) for at in range(17_011)),
    )
    finished(made, "./long").database.close()
    with memtoll.open(path) as rec:
        _ = rec.timeline
        began = time.monotonic()
        pictures.timeline(rec).canvas.draw()
        assert time.monotonic() - began < 10


def test_map_of_very_many_runs(tmp_path: Path) -> None:
    crowd(tmp_path / "crowd.memtoll", sites=11, runs=400_000)
    with memtoll.open(tmp_path / "crowd.memtoll") as rec:
        _ = rec.faults, rec.verdict
        began = time.monotonic()
        pictures.address_map(rec).canvas.draw()
        assert time.monotonic() - began < 15
