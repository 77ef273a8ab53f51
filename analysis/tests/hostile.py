# SPDX-License-Identifier: GPL-2.0
"""Recordings of somebody who means ill.

Names that try everything (markup, scripts, formulas, control and direction characters), facts that make a view work
for ever, and views that state another verdict.
"""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

from facts import FAULT_NS, MS, Facts, S, finished

SCRIPT = "</script><script>document.title='taken'</script>"
IMAGE = "<img src=x onerror=\"document.title='taken'\">"
TURNED = "abc\u202egnp.exe\u2066"
CONTROLS = "bell\x07 escape\x1b[31m line\nfeed\x00 \x7f \ud800"
FORMULA = r"$\frac{1}{$ cost$ _x^y \end"
FORMULAS = ("=cmd|' /C calc'!A0", "+1+1", "-2+3", "@SUM(1;2)")
NAMES = (
    *FORMULAS,
    SCRIPT,
    IMAGE,
    TURNED,
    CONTROLS,
    FORMULA,
    "]]>&amp;&lt;",
    "'\"><svg onload=alert(1)>",
    "\u05e9\u05dc\u05d5\u05dd",
    "x" * 5000,
)


def stored(text: str) -> str:
    """As SQLite can hold it."""
    return text.replace("\x00", "").encode("utf-8", "replace").decode()


def hostile(path: Path) -> None:
    facts = Facts(path)
    facts.prices()
    facts.slice(1, 2.0)
    facts.process(comm=stored(SCRIPT)[:15], command=stored(IMAGE), executable=stored(TURNED))
    facts.allocator()
    for at, name in enumerate(map(stored, NAMES)):
        made = facts.stack(
            ("malloc", "", 0), (name, f"/src/{name}.c", 3), ("main", "/src/a.c", 5), module=f"/srv/{name}"
        )
        touched = facts.stack((name, name, 7), ("main", "/src/a.c", 6))
        facts.fault(
            "zero",
            1009 * (at + 1),
            FAULT_NS + 100,
            allocated_stack=made,
            allocated_call="malloc",
            touched_stack=touched,
        )
        facts.fault("file_minor", 11 + at, FAULT_NS, touched_stack=touched, area="file", area_name=name)
        facts.call("malloc", made, 13 + at, bytes=4099 * (at + 1), cpu_ns=7 * MS)
        begin, pages = 1_000 * S + at * S // 10, 1009 * (at + 1)
        facts.row(
            "fault_run", slice=1, pid=42, tid=42, **{"class": "zero"}, address=0x10000000 + 0x4000000 * at, pages=pages,
            faults=pages, first_ns=begin, last_ns=begin + S // 10, allocated_stack=made, allocated_call="malloc",
            touched_stack=touched, area="anon",
        )  # fmt: skip
    facts.row("loss_kind", name="ring_fault", meaning=stored(IMAGE), remedy=stored(SCRIPT))
    facts.row("loss", slice=1, name="ring_fault", count=17)
    facts.row("not_captured", toll="cow", reason=stored(SCRIPT))
    facts.cpu(500 * MS, minor=50_000)
    facts.meta(host=stored(SCRIPT), kernel=stored(IMAGE))
    finished(facts, stored(SCRIPT) + stored(TURNED))
    facts.database.close()


def endless(path: Path) -> Path:
    """An allocator thousands of times over, which no recording has: each is joined with each."""
    with closing(sqlite3.connect(path)) as database:
        database.execute("PRAGMA legacy_alter_table = ON")
        database.execute("ALTER TABLE allocator RENAME TO one")
        database.execute(
            "CREATE TABLE allocator AS WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 3001)"
            " SELECT one.* FROM one, n"
        )
        database.execute("DROP TABLE one")
        database.commit()
    return path


WELL = (
    "SELECT 'swap' AS dominant, 1.0 AS share, 1.0 AS low, 1.0 AS high, 'All is well.' AS sentence, 1 AS position,"
    " 'All is well.' AS text, 'all-well' AS code, '{\"forged\": 1}' AS json, 'main;well' AS stack, 1 AS weight,"
    " 'zero.libc' AS toll, 1 AS time_ns, 0 AS exceeds, 1 AS rank, 1 AS stack_id, 0 AS depth, 'well' AS name"
)


def forged(path: Path, view: str = WELL) -> Path:
    """Its views, its advice and the tolls of its fault classes state another verdict."""
    with closing(sqlite3.connect(path, isolation_level=None)) as database:
        database.execute("UPDATE advice SET condition = '1', gain = '1', title = 'All is well.', evidence = 'none'")
        database.execute("UPDATE advice_text SET condition = '1', text = 'All is well.'")
        database.execute("UPDATE fault_class SET toll = 'swap.in'")
        database.execute("PRAGMA writable_schema = ON")
        changed = "UPDATE sqlite_master SET sql = 'CREATE VIEW ' || name || ' AS ' || ? WHERE type = 'view'"
        assert database.execute(changed, [view]).rowcount > 50
    return path
