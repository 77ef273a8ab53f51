# SPDX-License-Identifier: GPL-2.0
"""Probes past the threads' caches (--place): of large blocks nothing is missed, of others nothing is made up.

The witnesses: a program's own prime numbers of calls, and a library that counts them, preloaded in
a run of its own.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import libraries
from harness import SOURCES, Program, Recording, memtoll, record, tool, workload
from releases import others

pytestmark = pytest.mark.root

SOURCE = "past_cache.c"
# No more than what is judged here: the probes of faults are dear to load.
ALLOC = ["--probes", "alloc"]
MAPPINGS = ["--probes", "alloc,mappings"]
LARGE, HUGE, PAGE = 100 << 10, 700 << 10, 4096
CACHED_BYTES, CACHED, MIDDLE = 1032, 20011, 3001
MALLOCS, CALLOCS, REALLOCS, NEW, ALIGNED, POSIX, FAILING, HUGE_MALLOCS = 1009, 503, 307, 19, 101, 53, 7, 211
# By call and the marker of its line: calls and their bytes, of each thread.
SITES = {
    ("malloc", "malloc"): (MALLOCS, MALLOCS * LARGE),
    ("malloc", "huge"): (HUGE_MALLOCS, HUGE_MALLOCS * HUGE),
    ("malloc", "before"): (REALLOCS, REALLOCS * LARGE),
    ("malloc", "failing"): (FAILING, 0),
    ("malloc", "middle"): (MIDDLE, MIDDLE * 2000),
    ("calloc", "calloc"): (CALLOCS, CALLOCS * LARGE),
    ("realloc", "realloc"): (REALLOCS, REALLOCS * 2 * LARGE),
    ("realloc", "new"): (NEW, NEW * LARGE),
    ("aligned_alloc", "aligned"): (ALIGNED, ALIGNED * 25 * PAGE),
    ("posix_memalign", "posix"): (POSIX, POSIX * LARGE),
}


class Run(NamedTuple):
    recording: Recording
    threads: int


def build_static(directory: Path) -> Path:
    path = directory / "past_cache"
    flags = ["-std=gnu11", "-D_GNU_SOURCE", "-O1", "-g", "-fno-builtin", "-static"]
    subprocess.run([tool("gcc"), *flags, "-o", path, SOURCES / SOURCE, "-lpthread"], check=True, timeout=60)
    return path


def build_with_library(directory: Path, suite: str) -> Path:
    """With the C library of another release of the distribution."""
    root = libraries.package(suite, "libc6")
    library = next(path for path in root.rglob("libc.so.6") if path.is_file()).parent
    path = directory / "past_cache"
    flags = ["-std=gnu11", "-D_GNU_SOURCE", "-DALONE", "-O1", "-g", "-fno-builtin", "-nostartfiles"]
    linker = [f"-Wl,--dynamic-linker={library / 'ld-linux-x86-64.so.2'}", f"-Wl,-rpath,{library}"]
    command: list[str | Path] = [tool("gcc"), *flags, *linker, "-o", path, SOURCES / SOURCE]
    subprocess.run(command, check=True, timeout=60)
    return path


def build(directory: Path, kind: str) -> Path:
    if kind == "static":
        return build_static(directory)
    return workload("past_cache") if kind in OWN else build_with_library(directory, kind)


OWN = ["one-thread", "threads"]
# Of these releases the ways are found in the stripped library; with threads by the one that is here.
OTHERS = ["bullseye", "trixie", "sid"] if libraries.distribution() == "debian" else []


@pytest.fixture(scope="module", params=[*OWN, "static", *others(OTHERS)])
def run(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Run:
    directory = tmp_path_factory.mktemp("past")
    program = build(directory, request.param)
    threads = 3 if request.param in ("threads", "static") else 0
    command: list[str | Path] = [program, *(["--threads", str(threads)] if threads else [])]
    probes = [] if request.param == "threads" else MAPPINGS
    return Run(record(directory / "a.memtoll", *probes, "--place", "slow", command=command), max(1, threads))


def of_call(recording: Recording, call: str, figure: str) -> int:
    ((value,),) = recording.query(f"SELECT SUM({figure}) FROM call WHERE call = '{call}'")
    return int(value or 0)


@pytest.mark.parametrize(("call", "marker"), SITES, ids=[marker for _, marker in SITES])
def test_every_call_has_its_site(run: Run, call: str, marker: str) -> None:
    calls, size = SITES[call, marker]
    site = run.recording.site(SOURCE, marker, call)
    assert (site.calls, site.bytes) == (calls * run.threads, size * run.threads)


def test_calls_that_fail_are_counted_once(run: Run) -> None:
    """Where threads have arenas malloc tries another one: that is the same call."""
    assert of_call(run.recording, "malloc", "failed") == FAILING * run.threads
    assert not run.recording.query("SELECT * FROM losses WHERE count > 0 AND name IN ('return_missed', 'blocks_full')")


def test_large_blocks_are_freed(run: Run) -> None:
    """Made and freed of each function: the way of free past the cache missed none."""
    blocks = {
        call: (made, freed)
        for call, made, freed in run.recording.query(
            "SELECT call, SUM(made), SUM(freed) FROM block WHERE call <> 'mmap' GROUP BY call"
        )
    }
    made = {"malloc": MALLOCS + HUGE_MALLOCS + REALLOCS, "calloc": CALLOCS, "realloc": REALLOCS + NEW}
    made |= {"aligned_alloc": ALIGNED, "posix_memalign": POSIX}
    assert blocks == {call: (count * run.threads, count * run.threads) for call, count in made.items()}


def test_zeroing_ledger_is_exact(run: Run) -> None:
    """All but those cut from fresh memory are cleared, and of these nothing is said that is not so."""
    site = run.recording.query(
        "SELECT SUM(c.cleared_calls), SUM(c.cleared_bytes), SUM(c.mmapped_calls) FROM call c"
        f" WHERE c.call = 'calloc' AND c.bytes >= {LARGE} * c.calls"
    )
    ((cleared_calls, cleared, mapped),) = site
    assert cleared_calls == CALLOCS * run.threads and mapped == 0
    assert CALLOCS * run.threads * LARGE <= cleared <= CALLOCS * run.threads * (LARGE + PAGE)


def test_cached_calls_are_not_counted(run: Run) -> None:
    """Hits are what is saved: of the calls that the cache answers the first of a size, at most, is one."""
    hits = dict(run.recording.query("SELECT probe, SUM(hits) FROM hit GROUP BY probe"))
    large = sum(calls for (call, _), (calls, _) in SITES.items() if call == "malloc")
    # realloc of nothing is malloc's.
    assert 0 <= hits["malloc"] - (large + NEW) * run.threads <= 100 * run.threads
    assert hits["free"] < CACHED * run.threads


def test_what_is_not_counted_is_said(run: Run) -> None:
    report = run.recording.report
    assert report["past_cache"] == {"malloc": CACHED_BYTES, "free": CACHED_BYTES}
    (allocator,) = [entry for entry in report["allocators"] if entry["kind"] == "glibc"]
    assert "seen past the threads' caches: all of more than 1,032 bytes" in allocator["coverage"]
    probes = {probe["symbol"]: probe for probe in allocator["probes"]}
    assert probes["malloc"]["timed"] and probes["malloc"]["offset"] is None
    assert probes["calloc"]["offset"] is not None
    (note,) = [note for note in report["notes"] if "past the threads' caches" in note]
    assert "blocks of more than 1,032 bytes are all counted" in note
    by_line = {
        entry["allocated_at"][1]["line"]: entry
        for entry in report["allocations"]
        if entry["call"] == "malloc" and len(entry["allocated_at"]) > 1
    }
    exact = [entry for entry in by_line.values() if not entry["at_least"]]
    assert sum(entry["calls"] for entry in exact) >= (MALLOCS + HUGE_MALLOCS + REALLOCS) * run.threads
    text = memtoll("report", "--full", str(run.recording.path)).stdout
    (alloc,) = [line for line in text.splitlines() if line.startswith("alloc  ")]
    assert ">= " in alloc


def test_mapping_calls_are_the_allocators(run: Run) -> None:
    """Arenas, which are made before the place, and what free gives back behind it."""
    inside = {
        (call, fn): n
        for call, fn, n in run.recording.query("SELECT call, in_call, SUM(calls) FROM map_call GROUP BY 1, 2")
    }
    assert inside[("munmap", "free")] >= 1
    assert not [call for call, fn in inside if call == "brk" and fn == "" and inside[call, fn] > 4]
    blocks = run.recording.query("SELECT SUM(made) FROM block WHERE call = 'mmap'")
    # The threads' stacks, and no arena.
    assert (blocks[0][0] or 0) <= (0 if run.threads == 1 else 2 * run.threads)


def test_latency_of_what_is_seen(run: Run) -> None:
    latency = run.recording.report["latency"]
    assert latency["malloc"]["calls"] == of_call(run.recording, "malloc", "timed_calls") > 0


def preloaded_counts(command: list[str | Path], path: Path) -> dict[str, tuple[int, int]]:
    env = os.environ | {"LD_PRELOAD": str(workload("libcallcount.so")), "MEMTOLL_TEST_WITNESS": str(path)}
    subprocess.run([str(word) for word in command], check=True, timeout=120, env=env, stdout=subprocess.DEVNULL)
    counts = json.loads(path.read_text())
    return {call: (calls, size) for call, (calls, size) in counts.items()}


SCRIPT = """
import json, sqlite3
rows = [{"n": n, "text": str(n) * 10} for n in range(1999)]
base = sqlite3.connect(":memory:")
base.execute("CREATE TABLE t (a INTEGER PRIMARY KEY, b TEXT)")
for _ in range(11):
    parsed = json.loads(json.dumps(rows))
    base.executemany("INSERT INTO t (b) VALUES (?)", [(row["text"],) for row in parsed])
    block = bytearray(99991)
    text = "x" * 70001
print(base.execute("SELECT COUNT(*) FROM t").fetchone()[0])
"""


def test_large_blocks_of_a_real_program(tmp_path: Path) -> None:
    """JSON and SQLite in Python: as many calls, and bytes, as the preloaded counter has."""
    script = tmp_path / "work.py"
    script.write_text(SCRIPT)
    command: list[str | Path] = ["env", "PYTHONHASHSEED=0", "/usr/bin/python3", "-S", "-E", script]
    counted = preloaded_counts(command, tmp_path / "counts.json")
    assert counted["malloc"][0] >= 22, counted
    recording = record(tmp_path / "a.memtoll", *MAPPINGS, "--place", "slow", command=command)
    made = {
        call: (n, size)
        for call, n, size in recording.query(
            "SELECT call, SUM(made), SUM(made_bytes) FROM block WHERE call <> 'mmap' GROUP BY call"
        )
    }
    assert {call: made.get(call, (0, 0)) for call in counted} == counted


def test_another_allocator_keeps_its_entries(tmp_path: Path) -> None:
    env = {"LD_PRELOAD": str(libraries.preloadable("jemalloc"))}
    recording = record(tmp_path / "a.memtoll", *ALLOC, "--place", "slow", command=[workload("past_cache")], env=env)
    (line,) = [line for line in recording.result.stderr.splitlines() if "jemalloc" in line]
    assert "is probed at the entries of its functions: it is not glibc's" in line
    assert recording.site(SOURCE, "cached", "malloc").calls == CACHED
    assert recording.site(SOURCE, "malloc", "malloc").calls == MALLOCS


def test_entries_stay_where_caches_hold_larger_blocks(tmp_path: Path) -> None:
    """By --min-size, and by a tunable of the program that is started later."""
    for number, (size, env) in enumerate([("1032", {}), ("64K", {"GLIBC_TUNABLES": "glibc.malloc.tcache_max=65536"})]):
        arguments = [*ALLOC, "--place", "slow", "--min-size", size]
        recording = record(tmp_path / f"{number}.memtoll", *arguments, command=[workload("past_cache")], env=env)
        (line,) = [line for line in recording.result.stderr.splitlines() if "probed at the entries" in line]
        assert "its threads may cache blocks of" in line and "--min-size is" in line
        assert recording.site(SOURCE, "cached", "malloc").calls == CACHED
        # env itself, in the same process, has a cache like any other.
        assert env or recording.report["past_cache"] == {}


def test_auto_says_nothing(tmp_path: Path) -> None:
    recording = record(tmp_path / "a.memtoll", *ALLOC, "--place", "auto", command=[workload("past_cache")])
    assert recording.report["past_cache"] and "probed at the entries" not in recording.result.stderr
    entry = record(tmp_path / "b.memtoll", *ALLOC, command=[workload("past_cache")])
    assert entry.report["past_cache"] == {} and entry.site(SOURCE, "cached", "malloc").calls == CACHED


def test_running_process(tmp_path: Path) -> None:
    with Program(workload("pairs"), "--seconds", "20", "--every", "101", "--size", str(LARGE)) as program:
        recording = record(tmp_path / "a.memtoll", *ALLOC, "--place", "slow", "-p", str(program.pid), "-d", "400ms")
    hits = dict(recording.query("SELECT probe, SUM(hits) FROM hit GROUP BY probe"))
    assert hits.get("malloc", 0) <= 1 < hits["calloc"]
    # A hundred small blocks are freed for each large one. The probes come and go one after the other, while it runs.
    assert 0.5 * hits["calloc"] < hits["free"] < 2 * hits["calloc"]
    assert not recording.query("SELECT * FROM losses WHERE count > 0 AND exceeds")


def test_usage() -> None:
    for arguments in (["--place", "other"], ["--place", "slow", "--sample", "4K"]):
        result = memtoll("record", *arguments, "--", sys.executable, "-c", "")
        assert result.status == 2 and result.stderr.count("\n") == 1 and "--place" in result.stderr, result


def test_stat_and_sampling(tmp_path: Path) -> None:
    """Smaller blocks are sampled at entries, whatever is chosen by itself."""
    arguments = [*ALLOC, "--place", "auto", "--sample", "64K"]
    recording = record(tmp_path / "a.memtoll", *arguments, command=[workload("past_cache")])
    assert recording.report["past_cache"] == {}
    result = memtoll("stat", *ALLOC, "--place", "slow", "--json", "--", workload("past_cache"))
    found: dict[str, Any] = json.loads(result.stdout.splitlines()[-1]) if result.stdout else {}
    assert result.status == 0 and found["past_cache"]["malloc"] == CACHED_BYTES
