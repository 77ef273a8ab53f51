# SPDX-License-Identifier: GPL-2.0
"""Recordings of a fleet: a few real files, and thousands of summaries made of theirs."""

from __future__ import annotations

import dataclasses
import datetime
import hashlib
import os
import signal
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import memtoll
from memtoll.fleet import _summary, add, store
from memtoll.fleet.summary import Summary, summarize

import facts

DAY_NS = 86_400 * facts.S
# 2026-11-18, 09:20 UTC
START_NS = 1_795_000_000 * facts.S


@cache
def _scenario(name: str) -> bytes:
    with TemporaryDirectory() as directory:
        facts.SCENARIOS[name](Path(directory) / name).database.close()
        return (Path(directory) / name).read_bytes()


READ: dict[tuple[object, ...], Summary] = {}


def read_once(path: Path, **options: Any) -> Summary | str:
    """As memtoll.fleet reads a recording, but one of the same name and bytes once in a run."""
    beside = (path, *(path.with_name(path.name + ending) for ending in ("-journal", "-wal")))
    content = [hashlib.sha256(each.read_bytes()).digest() if each.is_file() else b"" for each in beside]
    key = (*content, path.name, *sorted(options.items()))
    if key not in READ:
        made = _summary(path, **options)
        if isinstance(made, str):
            return made
        READ[key] = made
    return dataclasses.replace(READ[key], source=str(path))


def adds(directory: str, paths: list[str], ready: Any, results: Any) -> None:
    """What a process of its own does: add, at the same time as others."""
    ready.wait()
    results.put([each.new for each in add(directory, paths)])


def dies(stage: str, directory: Path, path: Path) -> None:
    """Add, in a process of its own that is killed when it has come so far."""
    write, sync = store._write_json, store._sync

    def die(*_: Any) -> None:
        os.kill(os.getpid(), signal.SIGKILL)

    if stage == "written":
        store.Store._locked = die  # type: ignore[assignment,method-assign]
    elif stage == "renamed":
        store._write_json = lambda path, value: die() if path.parent.name == "commits" else write(path, value)
    elif stage == "committed":
        store._sync = lambda path: die() if path.name == "commits" else sync(path)
    add(directory, path)


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
    path.write_bytes(_scenario(scenario))
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


@cache
def summaries() -> list[Summary]:
    """One of each scenario."""
    made = []
    with TemporaryDirectory() as directory:
        for scenario in sorted(facts.SCENARIOS):
            with memtoll.open(recording(Path(directory) / f"{scenario}.memtoll", scenario)) as rec:
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
