# SPDX-License-Identifier: GPL-2.0
"""Recordings made of facts written by hand: the real schema, no tracer."""

from __future__ import annotations

import functools
import re
import sqlite3
from collections.abc import Iterable
from contextlib import closing
from pathlib import Path
from typing import Any, Final

VIEWS: Final = Path(__file__).resolve().parent.parent / "views"
SQL: Final = tuple((VIEWS / "order").read_text().split())
APPLICATION_ID: Final = 0x6D746F6C
FORMAT: Final = 1

KIB: Final = 1 << 10
MIB: Final = 1 << 20
PAGE: Final = 4096
US: Final = 1_000
MS: Final = 1_000_000
S: Final = 1_000_000_000

# What a hit costs and how much of it lies between the probes, in ns; and the machine's figures.
HIT: Final = 900.0
INSIDE: Final = 400.0
FAULT_HIT: Final = 70.0
MAP_INSIDE: Final = 200.0
MALLOC_NS: Final = 25.0
FAULT_NS: Final = 700.0
FAULT_INSIDE: Final = 100.0
CLEAR_4K: Final = 16e9

MEMSET: Final = ("__memset_avx2_unaligned", "", 0)
CALLER: Final = ("round_once", "/src/calloc_loop.c", 42)


@functools.cache
def blank() -> sqlite3.Connection:
    """A recording without rows, to copy from: to read the views' text takes three times as long."""
    database = sqlite3.connect(":memory:")
    for name in SQL:
        if name == "advice_source":  # views whose text is in the tables
            database.executescript(*database.execute("SELECT sql FROM advice_source").fetchone())
        else:
            database.executescript((VIEWS / name).read_text())
    database.execute(f"PRAGMA application_id = {APPLICATION_ID}")
    database.execute(f"PRAGMA user_version = {FORMAT}")
    return database


@functools.cache
def views_of_recording() -> tuple[tuple[str, str, str], ...]:
    """Each view in order: name, what report.c makes of it, and its text."""
    return tuple(
        blank().execute(
            "SELECT name, CASE WHEN name IN (SELECT name FROM kept_view) THEN 'VIEW' ELSE 'TABLE' END, sql"
            " FROM sqlite_master WHERE type = 'view' ORDER BY rowid"
        )
    )


@functools.cache
def blank_tables() -> sqlite3.Connection:
    """One without its views, which SQLite would read whole, 10 ms, at the first row."""
    database = sqlite3.connect(":memory:")
    blank().backup(database)
    for name, _, _ in views_of_recording():
        database.execute(f'DROP VIEW "{name}"')
    database.execute("VACUUM")
    return database


def words_of(sql: str) -> set[str]:
    return set(re.findall(r"\w+", sql))


def body_of(name: str, view: str) -> str:
    return view.split(name, 1)[1].lstrip().removeprefix("AS")


@functools.cache
def builds_on() -> dict[str, set[str]]:
    """Each view, and those before it that it asks, and that they ask."""
    needed: dict[str, set[str]] = {}
    for name, _, text in views_of_recording():
        asked = words_of(body_of(name, text)) & needed.keys()
        needed[name] = {name}.union(*(needed[word] for word in asked))
    return needed


@functools.cache
def indexes() -> dict[str, str]:
    """By which columns the tables of views are looked up."""
    with closing(blank().execute("SELECT name, columns FROM indexed_view")) as cursor:
        return dict(cursor)


class Facts:
    """A recording under construction. Rows default to one slice and one process."""

    def __init__(self, path: Path | str = ":memory:") -> None:
        self.database = sqlite3.connect(path)
        (blank_tables() if path == ":memory:" else blank()).backup(self.database)
        self.stacks = 0
        self.frames = 0
        # Rows that had been changed by then, and views that are tables since.
        self.worked_out: tuple[int, set[str]] = (0, set())

    def row(self, table: str, **columns: Any) -> None:
        names = ", ".join(columns)
        marks = ", ".join("?" * len(columns))
        self.database.execute(f"INSERT INTO {table} ({names}) VALUES ({marks})", list(columns.values()))

    def _work_out(self, sql: str) -> None:
        """Make tables of the views that it asks for, as report.c does: nested, they take seconds to be planned.

        What it keeps as views is made again among them: a view of the recording sees that one's views alone.
        """
        views = views_of_recording()
        if self.worked_out[0] != self.database.total_changes:
            for name, kind, _ in reversed(views):
                if name in self.worked_out[1]:
                    self.database.execute(f'DROP {kind} temp."{name}"')
            self.worked_out = (0, set())
        made = self.worked_out[1]
        needed = builds_on()
        wanted = set().union(*(needed[word] for word in words_of(sql) & needed.keys()))
        for name, kind, text in views:
            if name in wanted - made:
                self.database.execute(f'CREATE TEMP {kind} "{name}" AS {body_of(name, text)}')
                if name in indexes():
                    self.database.execute(f'CREATE INDEX temp."{name}_index" ON "{name}" ({indexes()[name]})')
                made.add(name)
        self.worked_out = (self.database.total_changes, made)

    def rows(self, sql: str, *values: Any) -> list[dict[str, Any]]:
        self._work_out(sql)
        with closing(self.database.execute(sql, values)) as cursor:
            names = [column[0] for column in cursor.description]
            return [dict(zip(names, row)) for row in cursor]

    def one(self, sql: str, *values: Any) -> dict[str, Any]:
        (row,) = self.rows(sql, *values)
        return row

    def judged(self, last: str, sql: str, *values: Any) -> list[dict[str, Any]]:
        """rows() of a view that builds on many others."""
        return self.rows(sql, *values)

    def toll(self, name: str) -> dict[str, Any]:
        return self.one("SELECT * FROM toll WHERE toll = ?", name)

    def save(self) -> None:
        self.database.commit()

    # Facts, each with the columns a test does not care about filled in.

    def meta(self, **values: str) -> None:
        for key, value in values.items():
            self.row("meta", key=key, value=value)

    def prices(self) -> None:
        for probe in ("malloc", "calloc", "free"):
            self.row("price", probe=probe, hit_ns=HIT, inside_ns=INSIDE, error_ns=10.0)
        self.row("price", probe="fault", hit_ns=FAULT_HIT, inside_ns=0.0, error_ns=5.0)
        self.row("price", probe="fault_end", hit_ns=300.0, inside_ns=0.0, error_ns=50.0)
        self.row("price", probe="map", hit_ns=500.0, inside_ns=MAP_INSIDE, error_ns=5.0)
        for name, value in (
            ("fault_ns", FAULT_NS),
            ("fault_timed_inside_ns", FAULT_INSIDE),
            ("fault_timed_error_ns", 5.0),
            ("malloc_ns", MALLOC_NS),
            ("clear_4k_bytes_per_s", CLEAR_4K),
            ("clear_2m_bytes_per_s", 20e9),
            ("memset_bytes_per_s", 120e9),
            ("memcpy_bytes_per_s", 60e9),
            ("loops_per_s", 3e9),
        ):
            self.row("calibration", name=name, value=value)

    def calibrate_fault(self, bare_ns: float, inside_ns: float = FAULT_INSIDE) -> None:
        """inside_ns: by how much what the windows time exceeds the fault."""
        for name, value in (("fault_ns", bare_ns), ("fault_timed_inside_ns", inside_ns)):
            self.database.execute("UPDATE calibration SET value = ? WHERE name = ?", (value, name))

    def slice(self, number: int = 1, seconds: float = 1.0) -> None:
        start = 1_000 * S + round((number - 1) * seconds * S)
        self.row("slice", slice=number, start_ns=start, end_ns=start + round(seconds * S))

    def process(self, pid: int = 42, comm: str = "program", **columns: Any) -> None:
        values = {"command": f"./{comm}", "executable": f"/srv/{comm}", "start_ns": 1_000 * S, "role": "target"}
        self.row("process", **({"pid": pid, "comm": comm} | values | columns))

    def cpu(
        self,
        cpu_ns: float,
        pid: int = 42,
        minor: int = 0,
        major: int = 0,
        number: int = 1,
        rss_bytes: int | None = None,
        swap_bytes: int | None = None,
    ) -> None:
        self.row(
            "process_slice",
            slice=number,
            pid=pid,
            cpu_ns=round(cpu_ns),
            minor_faults=minor,
            major_faults=major,
            rss_bytes=rss_bytes,
            swap_bytes=swap_bytes,
        )

    def allocator(self, kind: str = "glibc", pid: int = 42, **columns: Any) -> None:
        module = "/usr/lib/x86_64-linux-gnu/libc.so.6" if kind == "glibc" else f"/opt/lib{kind}.so"
        values = {
            "version": "2.36",
            "functions": "",
            "refused": "",
            "tunables": "",
            "dynamic": 1,
            "linkage": "dynamic" if kind == "glibc" else "preloaded",
        }
        self.row("allocator", **({"pid": pid, "module": module, "kind": kind} | values | columns))
        for call in ("malloc", "calloc", "realloc", "free"):
            self.probe(call, pid=pid, module=module)

    def probe(self, symbol: str, pid: int, module: str, **columns: Any) -> None:
        values = {"call": symbol, "offset": 0, "instruction": "push %r12", "timed": 1, "refusal": ""}
        self.row("allocator_probe", **({"pid": pid, "module": module, "symbol": symbol} | values | columns))

    def stack(self, *frames: tuple[str, str, int], module: str = "/srv/program", pid: int = 42) -> int:
        """A stack of (function, file, line), leaf first; no file: a function of libc."""
        self.stacks += 1
        # Ids are hashes: some are negative.
        stack_id = self.stacks * (-1 if self.stacks % 2 else 1) * 0x0123456789ABCD
        self.row("stack", stack_id=stack_id, pid=pid, how="fp", complete=1)
        for depth, (function, file, line) in enumerate(frames):
            self.frames += 1
            self.row(
                "frame",
                frame_id=self.frames,
                function=function,
                module=module if file else "/usr/lib/x86_64-linux-gnu/libc.so.6",
                file=file,
                line=line,
                kind="native",
                build_id="",
                module_offset=0x1000 + self.frames,
            )
            self.row(
                "stack_frame",
                stack_id=stack_id,
                depth=depth,
                address=0x400000 + depth,
                frame_id=self.frames,
                inlined=0,
            )
        return stack_id

    def call(self, call: str, stack_id: int, calls: int, **columns: Any) -> None:
        values: dict[str, Any] = dict.fromkeys(
            (
                "failed",
                "bytes",
                "cpu_ns",
                "map_cpu_ns",
                "map_calls",
                "faults",
                "cleared_calls",
                "cleared_bytes",
                "cleared_cpu_ns",
                "cleared_faults",
                "mmapped_calls",
                "nested_calls",
            ),
            0,
        )
        values |= {"slice": 1, "pid": 42, "timed_calls": calls, "known_clearing": 1}
        self.row("call", **({"call": call, "stack_id": stack_id, "calls": calls} | values | columns))

    def block(self, call: str, stack_id: int, made: int, made_bytes: int, **columns: Any) -> None:
        values = {"slice": 1, "pid": 42, "freed": made, "freed_bytes": made_bytes, "never_used_bytes": 0}
        made_here = {"call": call, "stack_id": stack_id, "made": made, "made_bytes": made_bytes}
        self.row("block", **(made_here | values | columns))

    def fault(self, fault_class: str, faults: int, each_ns: float | None, **columns: Any) -> None:
        """Faults of one page; each_ns: measured time of each (probe included), all timed; None: none timed."""
        timed = faults if each_ns is not None else 0
        each_us = int((each_ns or 0) / 1000)
        values: dict[str, Any] = {
            "slice": 1,
            "pid": 42,
            "allocated_stack": 0,
            "allocated_call": "",
            "touched_stack": 0,
            "area": "anon",
            "area_name": "",
            "in_call": "",
            "in_memset": 0,
            "pages": faults,
            "timed_faults": timed,
            "timed_cpu_ns": round(timed * (each_ns or 0)),
            "timed_cpu_us2": timed * each_us * each_us,
            "blocked_ns": 0,
        }
        self.row("fault", **({"class": fault_class, "faults": faults} | values | columns))

    def access(self, call: str, stack_id: int, first_pages: int, in_pages: int = 0, **columns: Any) -> None:
        """One sweep, as often as it takes; outside of allocations: call "", stack 0, and an area."""
        values: dict[str, Any] = {
            "pid": 42,
            "area": "",
            "area_name": "",
            "first_sequential_pages": first_pages,
            "in_sequential_pages": in_pages,
            "distinct_pages": min(first_pages, in_pages),
            "max_returns": -(-in_pages // first_pages) if first_pages else in_pages,
            "untracked_pages": 0,
        }
        used = {"call": call, "allocated_stack": stack_id, "first_pages": first_pages, "in_pages": in_pages}
        self.row("access", **(used | values | columns))

    def page_fill(self, first_pages: int, in_pages: int = 0, **columns: Any) -> None:
        """Pages of a file that came into the page cache, in one sweep after the other; a request for each 32."""
        values: dict[str, Any] = {
            "dev": 1,
            "inode": 7,
            "cause": "fault",
            "area_name": "/srv/data",
            "library": 0,
            "bytes": first_pages * PAGE,
            "requests": -(-(first_pages + in_pages) // 32),
            "first_sequential_pages": first_pages,
            "in_sequential_pages": in_pages,
            "distinct_pages": min(first_pages, in_pages),
            "max_returns": -(-in_pages // first_pages) if first_pages else 0,
            "untracked_pages": 0,
            "vain_pages": 0,
            "used_pages": first_pages + in_pages,
        }
        self.row("page_fill", **({"first_pages": first_pages, "in_pages": in_pages} | values | columns))

    def page_drop(self, how: str, pages: int, **columns: Any) -> None:
        values: dict[str, Any] = {"slice": 1, "pid": 42, "what": "file", "stack_id": 0, "comm": "", "memory_cgroup": ""}
        self.row("page_drop", **(values | {"how": how, "pages": pages} | columns))

    def advised(self, advice: str, stack_id: int, calls: int, pages: int, **again: Any) -> None:
        """Advice on so many pages, and (class, again_faults, again_pages) what came back."""
        key = {"slice": 1, "pid": 42, "advice": advice, "stack_id": stack_id}
        blank = {"class": "", "calls": 0, "bytes": 0, "again_faults": 0, "again_pages": 0}
        self.row("advised", **(key | blank | {"calls": calls, "bytes": pages * PAGE}))
        self.row("advised", **(key | blank | again))

    def handler(self, waits: int, wait_ns: int, **columns: Any) -> None:
        """A handler's thread, and waits that all take as long."""
        values: dict[str, Any] = {"slice": 1, "pid": 42, "handler_pid": 42, "handler_tid": 43, "stack_id": 0}
        names = {"comm": "handler", "process": "lazy", "request": "UFFDIO_COPY"}
        self.row("handler", **(values | names | {"waits": waits, "wait_ns": waits * wait_ns} | columns))

    def longest_wait(self, wait_ns: int, waits: dict[tuple[int, int], int], **columns: Any) -> None:
        """The longest wait, and of how many waits the times are between two."""
        values: dict[str, Any] = {"pid": 42, "start_ns": 0, "tid": 42, "address": 4096, "stack_id": 0}
        self.row("longest_wait", **(values | {"handler_tid": 43, "wait_ns": wait_ns} | columns))
        for (low, high), count in waits.items():
            self.row("fault_wait", pid=42, low_ns=low, high_ns=high, waits=count)

    def reuse(self, subject: str, uses: int, different: int, distances: dict[int, int]) -> None:
        """distances: how many uses with so many different blocks since the last one of the same."""
        again = sum(distances.values())
        values = {"file": 0, "block_bytes": PAGE, "rate": 1.0, "error": 0.0, "max_distance": max(distances, default=0)}
        counts = {"uses": uses, "different": different, "first": uses - again}
        self.row("reuse", **({"subject": subject} | values | counts))
        for distance, count in distances.items():
            row = {"subject": subject, "file": 0, "low": distance, "high": distance + 1, "uses": count}
            self.row("reuse_distance", **row)

    def swap(self, what: str, pages: int, **columns: Any) -> None:
        values: dict[str, Any] = {"slice": 1, "pid": 42, "count": pages, "cpu_ns": 0, "blocked_ns": 0}
        self.row("swap", **({"what": what, "pages": pages} | values | columns))

    def reclaim(self, stack_id: int, count: int, each_ns: int, **columns: Any) -> None:
        """Stalls at one place, which table swap has in its sum."""
        values: dict[str, Any] = {"slice": 1, "pid": 42, "what": "reclaim_memcg", "stack_id": stack_id}
        spent = {"cpu_ns": count * each_ns, "blocked_ns": 0}
        self.row("reclaim_site", **(values | {"count": count, "pages": 32 * count} | spent | columns))

    def memory_cgroup(self, limit_bytes: int | None, path: str = "/box", pid: int = 42, **columns: Any) -> None:
        """The group of a process that exists, counters={name: difference}."""
        counters: dict[str, int] = columns.pop("counters", {})
        values: dict[str, Any] = {
            "version": 2,
            "limit_path": path if limit_bytes is not None else None,
            "swap_limit_bytes": None,
            "usage_bytes": None,
            "peak_bytes": None,
            "file_bytes": None,
            "beside_bytes": None,
        }
        self.row("memory_cgroup", **({"path": path, "limit_bytes": limit_bytes} | values | columns))
        self.database.execute("UPDATE process SET memory_cgroup = ? WHERE pid = ?", (path, pid))
        for name, value in counters.items():
            self.row("memory_cgroup_counter", path=path, name=name, value=value)

    def swap_device(self, kind: str = "disk", path: str = "/dev/vdb", **columns: Any) -> None:
        values = {"size_bytes": 8 << 30, "priority": -2, "type": 0}
        self.row("swap_device", **({"kind": kind, "path": path} | values | columns))

    def map_call(self, call: str, stack_id: int, calls: int, bytes_: int, cpu_ns: float, **columns: Any) -> None:
        values: dict[str, Any] = {"slice": 1, "pid": 42, "in_call": "", "failed": 0, "cpu_ns": round(cpu_ns)}
        made_here = {"call": call, "stack_id": stack_id, "calls": calls, "bytes": bytes_}
        self.row("map_call", **(made_here | values | columns))

    def gave(self, how: str, stack_id: int, calls: int, bytes_: int, **columns: Any) -> None:
        """Given back, by free unless said otherwise."""
        values: dict[str, Any] = {"gave_call": "free", "got_call": "", "got_stack": 0, "class": ""}
        values |= {"largest_bytes": bytes_ // calls if calls else 0, "span_bytes": 0}
        self._giveback(how, stack_id, values | {"calls": calls, "gave_bytes": bytes_} | columns)

    def again(self, how: str, gave_stack: int, got_stack: int, faults: int, **columns: Any) -> None:
        """Got again, by malloc unless said otherwise: faults of one page."""
        values: dict[str, Any] = {"gave_call": "free", "got_call": "malloc", "got_stack": got_stack, "class": "zero"}
        self._giveback(how, gave_stack, values | {"again_faults": faults, "again_bytes": faults * PAGE} | columns)

    def _giveback(self, how: str, stack_id: int, columns: dict[str, Any]) -> None:
        names = ("calls", "gave_bytes", "largest_bytes", "span_bytes", "again_faults", "again_bytes", "twice_bytes")
        values: dict[str, Any] = dict.fromkeys(names, 0) | {"slice": 1, "pid": 42}
        self.row("giveback", **({"how": how, "gave_stack": stack_id} | values | columns))

    def samples(self, place: str, samples: int, stack_id: int = 0, **columns: Any) -> None:
        values: dict[str, Any] = {"slice": 1, "pid": 42, "in_call": ""}
        self.row("sample", **({"place": place, "stack_id": stack_id, "samples": samples} | values | columns))

    def hits(self, **probes: int) -> None:
        for probe, hits in probes.items():
            self.row("hit", slice=1, pid=42, probe=probe, hits=hits)


def finished(facts: Facts, command: str) -> Facts:
    facts.meta(format="1", target_command=command, overhead_limit="none", complete="1")
    facts.save()
    return facts


def loop_stack(facts: Facts, leaf: str, line: int) -> int:
    return facts.stack((leaf, "", 0), ("round_once", "/src/calloc_loop.c", line), ("main", "/src/calloc_loop.c", 60))


def heap_blocks(path: Path | str = ":memory:") -> Facts:
    """Casebook 1, 10 MiB: 3001 callocs, 2999 of them memset whole, nothing touched."""
    calls, cleared, size, memset = 3001, 2999, 10 * MIB, 83 * US
    facts = Facts(path)
    facts.prices()
    facts.slice()
    facts.process(comm="calloc_loop")
    facts.allocator(mmap_threshold_low=10489856, mmap_threshold_high=10489856)
    site, freed = loop_stack(facts, "calloc", 42), loop_stack(facts, "free", 43)
    touched = facts.stack(MEMSET, ("calloc", "", 0), CALLER)
    faults = 2560
    memset_ns = cleared * (memset + INSIDE + MALLOC_NS) + faults * (FAULT_NS + FAULT_HIT)
    facts.call(
        "calloc",
        site,
        calls,
        bytes=calls * size,
        cpu_ns=round(memset_ns + 2 * (INSIDE + MALLOC_NS + 10 * US + 500)),
        map_cpu_ns=20 * US,
        map_calls=2,
        faults=faults,
        cleared_calls=cleared,
        cleared_bytes=cleared * size,
        cleared_cpu_ns=round(memset_ns),
        cleared_faults=faults,
        mmapped_calls=2,
    )
    facts.call("free", freed, calls, cpu_ns=round(calls * (INSIDE + MALLOC_NS)))
    facts.block("calloc", site, calls, calls * size, never_used_bytes=2 * size)
    facts.fault(
        "zero",
        faults,
        FAULT_NS + FAULT_INSIDE,
        allocated_stack=site,
        allocated_call="calloc",
        touched_stack=touched,
        in_call="calloc",
        in_memset=1,
    )
    facts.map_call("mmap", site, 2, 2 * size, 10 * US, in_call="calloc")
    facts.map_call("munmap", freed, 2, 2 * size, 10 * US, in_call="free")
    net = cleared * memset + 2 * calls * MALLOC_NS + faults * FAULT_NS + 4 * 5 * US + 2 * MS
    facts.hits(calloc=calls, free=calls, fault=faults, map=4)
    facts.cpu(net + 2 * calls * HIT + faults * FAULT_HIT + 4 * 500, minor=faults)
    facts.samples("calloc_memset", 25, site, in_call="calloc")
    return finished(facts, "./calloc_loop 10485760 3001")


def mapped_blocks(path: Path | str = ":memory:") -> Facts:
    """Casebook 1, 100 MiB: every calloc maps, every free unmaps, nothing is cleared."""
    calls, size = 3001, 100 * MIB
    facts = Facts(path)
    facts.prices()
    facts.slice()
    facts.process(comm="calloc_loop")
    facts.allocator(mmap_threshold_low=131072, mmap_threshold_high=131072)
    site, freed = loop_stack(facts, "calloc", 42), loop_stack(facts, "free", 43)
    touched = facts.stack(("_int_malloc", "", 0), ("calloc", "", 0), CALLER)
    mmap, munmap = 3 * US, 4 * US
    facts.call(
        "calloc",
        site,
        calls,
        bytes=calls * size,
        cpu_ns=round(calls * (INSIDE + 300 + mmap + MAP_INSIDE + 300 + FAULT_NS + FAULT_HIT)),
        map_cpu_ns=round(calls * (mmap + MAP_INSIDE)),
        map_calls=calls,
        faults=calls,
        mmapped_calls=calls,
    )
    facts.call(
        "free",
        freed,
        calls,
        cpu_ns=round(calls * (INSIDE + 300 + munmap + MAP_INSIDE + 300)),
        map_cpu_ns=round(calls * (munmap + MAP_INSIDE)),
        map_calls=calls,
    )
    facts.block("calloc", site, calls, calls * size, never_used_bytes=calls * (size - PAGE))
    facts.fault(
        "zero",
        calls,
        FAULT_NS + FAULT_INSIDE,
        allocated_stack=site,
        allocated_call="calloc",
        touched_stack=touched,
        in_call="calloc",
    )
    facts.map_call("mmap", site, calls, calls * size, calls * (mmap + MAP_INSIDE), in_call="calloc")
    facts.map_call("munmap", freed, calls, calls * size, calls * (munmap + MAP_INSIDE), in_call="free")
    net = calls * (600 + mmap + munmap + FAULT_NS) + MS
    facts.hits(calloc=calls, free=calls, fault=calls, map=2 * calls)
    facts.cpu(net + calls * (2 * HIT + FAULT_HIT + 2 * 500), minor=calls)
    facts.samples("map", 2, site, in_call="calloc")
    facts.samples("user", 1, site)
    return finished(facts, "./calloc_loop 104857600 3001")


def naive_calloc(path: Path | str = ":memory:") -> Facts:
    """Casebook 2: an allocator of its own whose calloc is mmap and memset. 11 calls of 100 MiB."""
    calls, size = 11, 100 * MIB
    pages = calls * size // PAGE
    facts = Facts(path)
    facts.prices()
    facts.slice()
    facts.process(comm="calloc_loop")
    facts.allocator()
    facts.allocator("naivecalloc", dynamic=None, version="")
    facts.database.execute("UPDATE allocator SET kind = 'unknown' WHERE kind = 'naivecalloc'")
    site, freed = loop_stack(facts, "calloc", 42), loop_stack(facts, "free", 43)
    touched = facts.stack(MEMSET, ("calloc", "", 0), CALLER)
    memset = 3 * MS
    facts.call(
        "calloc",
        site,
        calls,
        known_clearing=0,
        bytes=calls * size,
        cpu_ns=round(calls * (INSIDE + memset + 5 * US + 500) + pages * (FAULT_NS + FAULT_HIT)),
        map_cpu_ns=calls * 5 * US,
        map_calls=calls,
        faults=pages,
    )
    facts.call(
        "free",
        freed,
        calls,
        known_clearing=0,
        cpu_ns=round(calls * (INSIDE + 9 * US + 500)),
        map_cpu_ns=calls * 9 * US,
        map_calls=calls,
    )
    facts.block("calloc", site, calls, calls * size)
    facts.fault(
        "zero",
        pages,
        FAULT_NS + FAULT_INSIDE,
        allocated_stack=site,
        allocated_call="calloc",
        touched_stack=touched,
        in_call="calloc",
        in_memset=1,
    )
    facts.map_call("mmap", site, calls, calls * size, calls * 5 * US, in_call="calloc")
    facts.map_call("munmap", freed, calls, calls * size, calls * 9 * US, in_call="free")
    facts.hits(calloc=calls, free=calls, fault=pages, map=2 * calls)
    facts.cpu(calls * (memset + 14 * US) + pages * (FAULT_NS + FAULT_HIT) + MS, minor=pages)
    facts.samples("calloc_memset", 4, site, in_call="calloc")
    facts.samples("fault", 22, site, in_call="calloc")
    return finished(facts, "./calloc_loop 104857600 11")


def cpu_loop(path: Path | str = ":memory:") -> Facts:
    """Casebook 8: nothing but arithmetic."""
    facts = Facts(path)
    facts.prices()
    facts.slice(1, 2.0)
    facts.process(comm="spin")
    facts.allocator()
    start = facts.stack(("_dl_start", "", 0), ("main", "/src/spin.c", 5))
    loop = facts.stack(("spin", "/src/spin.c", 17), ("main", "/src/spin.c", 23))
    facts.fault("zero", 37, FAULT_NS + FAULT_INSIDE, touched_stack=start, area="stack")
    facts.fault("file_minor", 53, FAULT_NS + FAULT_INSIDE, touched_stack=start, area="file")
    facts.hits(fault=90)
    facts.cpu(2 * S, minor=91)
    facts.samples("user", 197, loop)
    facts.samples("kernel", 1, loop)
    return finished(facts, "./spin")


def small_churn(path: Path | str = ":memory:") -> Facts:
    """Casebook 8: malloc and free of small objects that stay in tcache, with other work around."""
    calls = 300007
    facts = Facts(path)
    facts.prices()
    facts.slice()
    facts.process(comm="churn")
    facts.allocator()
    site = facts.stack(("malloc", "", 0), ("make", "/src/churn.c", 31), ("main", "/src/churn.c", 47))
    freed = facts.stack(("free", "", 0), ("drop", "/src/churn.c", 36), ("main", "/src/churn.c", 48))
    work = facts.stack(("work", "/src/churn.c", 12), ("main", "/src/churn.c", 46))
    facts.call("malloc", site, calls, bytes=calls * 64, cpu_ns=round(calls * (INSIDE + 20)))
    facts.call("free", freed, calls, cpu_ns=round(calls * (INSIDE + 15)))
    facts.fault("zero", 41, FAULT_NS + FAULT_INSIDE, area="heap")
    facts.hits(malloc=calls, free=calls, fault=41)
    facts.cpu(2 * calls * HIT + calls * 35 + 41 * (FAULT_NS + FAULT_HIT) + 240 * MS, minor=41)
    # At 99 Hz; the probes take most of this program's time.
    facts.samples("user", 24, work)
    facts.samples("probe", 31, site)
    facts.samples("probe", 22, site, in_call="malloc")
    facts.samples("allocator", 1, site, in_call="malloc")
    return finished(facts, "./churn 300007")


def touched_churn(path: Path | str = ":memory:") -> Facts:
    """Casebook 7: 33 MiB malloc, touch, free: 8448 faults a round, 73 rounds."""
    rounds, size = 73, 33 * MIB
    pages = rounds * size // PAGE
    facts = Facts(path)
    facts.prices()
    facts.slice()
    facts.process(comm="touch_loop")
    facts.allocator(mmap_threshold_low=131072, mmap_threshold_high=131072)
    site = facts.stack(("malloc", "", 0), ("round_once", "/src/touch_loop.c", 21), ("main", "/src/touch_loop.c", 40))
    touched = facts.stack(("fill", "/src/touch_loop.c", 14), ("round_once", "/src/touch_loop.c", 22))
    facts.call(
        "malloc",
        site,
        rounds,
        bytes=rounds * size,
        cpu_ns=round(rounds * (INSIDE + 7 * US + 300)),
        map_cpu_ns=rounds * 7 * US,
        map_calls=rounds,
        mmapped_calls=rounds,
    )
    facts.block("malloc", site, rounds, rounds * size)
    facts.fault(
        "zero", pages, FAULT_NS + FAULT_INSIDE, allocated_stack=site, allocated_call="malloc", touched_stack=touched
    )
    facts.map_call("mmap", site, rounds, rounds * size, rounds * 7 * US, in_call="malloc")
    facts.map_call("munmap", site, rounds, rounds * size, rounds * 900 * US, in_call="free")
    facts.hits(malloc=rounds, fault=pages, map=2 * rounds)
    facts.cpu(pages * (FAULT_NS + FAULT_HIT) + rounds * 1.5 * MS, minor=pages)
    facts.samples("fault", 38, touched)
    facts.samples("user", 5, touched)
    return finished(facts, "./touch_loop 33")


SCENARIOS: Final = {
    "heap-blocks": heap_blocks,
    "mapped-blocks": mapped_blocks,
    "naive-calloc": naive_calloc,
    "cpu-loop": cpu_loop,
    "small-churn": small_churn,
    "touched-churn": touched_churn,
}


def main(names: Iterable[str]) -> None:
    """python3 facts.py DIRECTORY: write every scenario there as NAME.memtoll."""
    for directory in names:
        for name, make in SCENARIOS.items():
            make(Path(directory) / f"{name}.memtoll")


if __name__ == "__main__":
    import sys

    main(sys.argv[1:])
