# SPDX-License-Identifier: GPL-2.0
"""Recordings of a fleet: a few real files, and thousands of summaries made of theirs."""

from __future__ import annotations

import datetime
import hashlib
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import memtoll
from memtoll.fleet.summary import Summary, summarize

import facts

DAY_NS = 86_400 * facts.S
# 2026-11-18, 09:20 UTC
START_NS = 1_795_000_000 * facts.S


def recording(
    path: Path,
    scenario: str = "heap-blocks",
    *,
    host: str = "web1",
    day: int = 0,
    number: int = 0,
    build: str = "4f1e09aa",
    cgroup: str | None = None,
    losses: int = 0,
) -> Path:
    """A recording of facts.py as if it were made on a host on a day."""
    made = facts.SCENARIOS[scenario](path)
    made.database.close()
    values = {
        "host": host, "kernel": "6.12.43", "machine": "x86_64", "tool_version": "0.1.0",
        "start_realtime_ns": START_NS + day * DAY_NS + number, "start_ns": 1000 * facts.S,
        "command_line": f"memtoll record {number}",
    }  # fmt: skip
    with closing(sqlite3.connect(path)) as database, database:
        database.executemany("INSERT INTO meta VALUES (?, ?)", [(key, str(value)) for key, value in values.items()])
        database.execute(
            "UPDATE frame SET module = (SELECT executable FROM process), build_id = ? WHERE file <> ''", (build,)
        )
        if cgroup:
            database.execute("UPDATE process SET memory_cgroup = ?", (cgroup,))
        if losses:
            database.execute("INSERT INTO loss_kind VALUES ('ring_faults', 'fault runs', 'a larger ring')")
            database.execute("INSERT INTO loss SELECT slice, 'ring_faults', ? FROM slice", (losses,))
    return path


def summaries(directory: Path) -> list[Summary]:
    """One of each scenario."""
    made = []
    for scenario in sorted(facts.SCENARIOS):
        with memtoll.open(recording(directory / f"{scenario}.memtoll", scenario)) as rec:
            made.append(summarize(rec))
    return made


def varied(base: Summary, *, host: str, day: int, number: int, build: str, factor: int) -> Summary:
    """Another recording like it: other host, day and build, everything in it taking factor times as much."""
    when = datetime.datetime.fromtimestamp((START_NS + day * DAY_NS) // facts.S, datetime.UTC)
    keys = {"recording": hashlib.sha256(f"{host} {day} {number}".encode()).hexdigest()[:32], "build": build}
    scaled = ("time_s", "bytes", "count", "pages", "observed_s", "family_observed_s", "clear_s", "blocked_s")
    tables: dict[str, dict[str, list[Any]]] = {}
    for name, columns in base.tables.items():
        tables[name] = {
            column: [keys[column]] * len(values)
            if column in keys
            else [None if value is None else value * factor for value in values]
            if column in scaled
            else values
            for column, values in columns.items()
        }
    return Summary(keys["recording"], host, when.date().isoformat(), f"{number}.memtoll", tables)


def fleet(bases: list[Summary], count: int, hosts: int, days: int) -> Iterator[tuple[Summary, dict[str, Any]]]:
    """So many recordings by day and host, each with what the test needs to know of it."""
    for number in range(count):
        day = number * days // count
        host = number % hosts
        base = bases[number % len(bases)]
        build = f"{'new' if day > days // 2 and host % 3 == 0 else 'old'}{number % len(bases)}"
        factor = 1 + (number * 7919) % 13
        made = varied(base, host=f"host{host}", day=day, number=number, build=build, factor=factor)
        yield made, {"host": host, "day": day, "base": number % len(bases), "build": build, "factor": factor}
