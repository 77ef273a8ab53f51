# SPDX-License-Identifier: GPL-2.0
"""Latency of single calls: every call in its bucket, and what the long ones did."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

import pytest
from test_e2e_compare import compare

from harness import (
    MIB,
    PAGE,
    Program,
    Recording,
    finish,
    load,
    own_frame,
    record,
    site_line,
    start_record,
    wait_attached,
    wait_until,
    workload,
)
from swapping import CGROUPS, in_cgroup, memory_with_swap, vmstat

pytestmark = pytest.mark.root

# No neighbour takes the processor away in the middle of the one call that the test is about.
UNDISTURBED = ("chrt", "--rr", "1")
# Neighbours wait for it; the tracer, which has to see which lock it is that is waited for, hardly does.
AHEAD = ("nice", "-n", "-15")
SMALL = 600_011  # blocks of casebook 6: all of them are gone over, for milliseconds where none is beside the top
FEWER = 50_021  # whose stall is no verdict, and has its cause all the same
US = 1_000
NO_FAST_BINS = "GLIBC_TUNABLES=glibc.malloc.mxfast=0"


def outliers(recording: Recording, source: str, marker: str, pid: int) -> list[dict[str, Any]]:
    """Records of calls that a process made at that marked line, the longest first."""
    line = site_line(source, marker)
    found = []
    for outlier in recording.report["outliers"]:
        frame = own_frame(outlier["allocated_at"])
        if outlier["pid"] == pid and frame and Path(frame["file"]).name == source and frame["line"] == line:
            found.append(outlier)
    return found


def check_buckets(recording: Recording) -> None:
    """Each timed call of each site is in one bucket: the sums are equal, exactly."""
    rows = recording.query(
        "SELECT c.pid, c.call, c.stack_id, SUM(c.timed_calls), (SELECT SUM(l.calls) FROM latency l"
        " WHERE l.pid = c.pid AND l.call = c.call AND l.stack_id = c.stack_id)"
        " FROM call c GROUP BY c.pid, c.call, c.stack_id HAVING SUM(c.timed_calls) > 0"
    )
    assert rows
    for pid, call, stack, calls, bucketed in rows:
        assert calls == bucketed, (pid, call, stack)
    for name, row in recording.report["latency"].items():
        assert row["calls"] == recording.report["calls"][name], name
        assert row["p50_ns"] <= row["p90_ns"] <= row["p99_ns"] <= row["p999_ns"], row


def check_witness(recording: Recording, outlier: dict[str, Any], took_ns: int) -> None:
    """The program's own clock saw the call, its two probes and those of the faults inside; we tell the call alone."""
    price = recording.report["overhead"]["ns_per_hit"]
    # Each fault may have had its stack walked; what that costs is calibrated, a busy machine takes half as much more.
    each = sum(price.get(probe, 0) for probe in ("fault", "fault_end", "walk"))
    probes = 1.5 * sum(outlier["faults"].values()) * each
    assert outlier["wall_ns"] <= took_ns
    assert took_ns - outlier["wall_ns"] < 0.1 * took_ns + 200 * US + probes, (outlier, took_ns, probes)


def test_every_call_is_in_a_bucket(tmp_path: Path) -> None:
    recording = record(tmp_path / "r", command=[workload("churn"), "20011", "--family"])
    (witness,) = recording.witness
    check_buckets(recording)
    latency = recording.report["latency"]
    for call in ("calloc", "realloc", "reallocarray", "posix_memalign"):
        assert latency[call]["calls"] == witness[call], call
    # glibc up to 2.37 has one function under both names.
    aligned = [latency[call]["calls"] for call in ("aligned_alloc", "memalign") if call in latency]
    assert sum(aligned) == witness["aligned_alloc"] + witness["memalign"]
    assert recording.report["losses"]["calls_full"] == 0


def check_consolidation(recording: Recording, witness: dict[str, Any], count: int) -> dict[str, Any]:
    (stall,) = outliers(recording, "consolidate.c", "large", witness["pid"])
    assert (stall["call"], stall["cause"], stall["size_bytes"]) == ("malloc", "consolidation", 1024)
    check_witness(recording, stall, witness["took_ns"])
    # One thread: every free of its own is known, and no more but those of stdio.
    assert stall["frees"] == count
    assert stall["faults"] == {"zero": 0, "swap": 0, "other": 0}
    assert not any(stall["map_calls"].values()) and stall["lock_waits"] == 0
    return stall


def test_consolidation(tmp_path: Path) -> None:
    """Casebook 6: the malloc that pays for the frees."""
    recording = record(tmp_path / "r", command=[*UNDISTURBED, workload("consolidate"), str(SMALL), "--between"])
    (witness,) = recording.witness
    check_buckets(recording)
    stall = check_consolidation(recording, witness, SMALL)
    assert stall["parts_ns"]["cpu"] > 1000 * max(stall["median_ns"], 25)
    verdict = recording.report["verdict"]
    assert verdict["dominant"] == "allocator", verdict
    for word in ("malloc of 1,024 bytes", "consolidate.c", "times the median", f"{SMALL:,} frees", "glibc 2.43"):
        assert word in verdict["sentence"], verdict
    (advice,) = (advice for advice in verdict["advice"] if advice["code"] == "consolidation")
    assert NO_FAST_BINS in advice["text"] and "frees" in advice["cost"]
    assert advice["try"].startswith(f"memtoll compare --set {NO_FAST_BINS} -- "), advice
    for word in ("consolidate.c", f"{SMALL:,} frees", "glibc 2.43", "the median"):
        assert word in advice["text"], advice


# Each of these stalls is that of a process of its own, by which it is found in what all have in common.
JEMALLOC = next(Path("/usr/lib").glob("*/libjemalloc.so.2"))
STALLS = {
    "1000 bytes": ["consolidate", str(FEWER), "1000"],
    "1001 bytes": ["consolidate", str(FEWER), "1001"],
    "stdio in between": ["consolidate", str(FEWER), "--between"],
    "jemalloc": ["consolidate", str(FEWER)],
    "trim": ["stalls", "trim", "100"],
    "clear": ["stalls", "clear", "64"],
}


@pytest.fixture(scope="module")
def stalls(tmp_path_factory: pytest.TempPathFactory) -> tuple[Recording, dict[str, dict[str, Any]]]:
    lines = {name: shlex.join([str(workload(program)), *words]) for name, (program, *words) in STALLS.items()}
    lines["jemalloc"] = f"LD_PRELOAD={JEMALLOC} {lines['jemalloc']}"
    script = " && ".join(lines.values())
    recording = record(tmp_path_factory.mktemp("stalls") / "r", command=[*UNDISTURBED, "sh", "-c", script])
    check_buckets(recording)
    consolidating = sum(program == "consolidate" for program, *_ in STALLS.values())
    assert recording.site("consolidate.c", "free", "free").calls == consolidating * FEWER
    return recording, dict(zip(STALLS, recording.witness, strict=True))


@pytest.mark.parametrize("name", ["1000 bytes", "1001 bytes"])
def test_threshold_of_consolidation(stalls: tuple[Recording, dict[str, dict[str, Any]]], name: str) -> None:
    """1000 bytes still come without it, 1001 do not."""
    recording, said = stalls
    causes = {outlier["cause"] for outlier in outliers(recording, "consolidate.c", "large", said[name]["pid"])}
    assert ("consolidation" in causes) == (name == "1001 bytes")


def test_consolidation_with_stdio_in_between(stalls: tuple[Recording, dict[str, dict[str, Any]]]) -> None:
    """The small blocks do not lie beside the top of the heap."""
    recording, said = stalls
    check_consolidation(recording, said["stdio in between"], FEWER)


def test_jemalloc_does_not_consolidate(stalls: tuple[Recording, dict[str, dict[str, Any]]]) -> None:
    recording, said = stalls
    pid = said["jemalloc"]["pid"]
    assert ("jemalloc",) in recording.query(f"SELECT kind FROM allocator WHERE pid = {pid}")
    causes = {outlier["cause"] for outlier in recording.report["outliers"] if outlier["pid"] == pid}
    assert "consolidation" not in causes


def test_trim_is_a_mapping_call(stalls: tuple[Recording, dict[str, dict[str, Any]]]) -> None:
    """The first look-alike: a free that gives 100 MiB back."""
    recording, said = stalls
    (stall,) = outliers(recording, "stalls.c", "free", said["trim"]["pid"])
    assert (stall["call"], stall["cause"]) == ("free", "mapping calls")
    assert stall["map_calls"]["brk"] == 1
    check_witness(recording, stall, said["trim"]["took_ns"])
    (trimmed,) = recording.query(
        f"SELECT SUM(bytes) FROM map_call WHERE call = 'brk' AND in_call = 'free' AND pid = {said['trim']['pid']}"
    )
    assert 100 << 20 <= trimmed[0] < (100 << 20) + 64 * PAGE


def test_clearing_is_no_consolidation(stalls: tuple[Recording, dict[str, dict[str, Any]]]) -> None:
    recording, said = stalls
    (stall,) = outliers(recording, "stalls.c", "calloc", said["clear"]["pid"])
    assert (stall["call"], stall["cause"]) == ("calloc", "clearing")
    assert stall["cleared_bytes"] >= 64 << 20
    check_witness(recording, stall, said["clear"]["took_ns"])


def test_no_fast_bins_no_consolidation(tmp_path: Path) -> None:
    """What is to be tried, by memtoll compare: the same calls, and none of them long."""
    command: list[str | Path] = [*UNDISTURBED, workload("consolidate"), str(FEWER)]
    found = compare("--set", NO_FAST_BINS, "-o", tmp_path / "r", command=command, runs=1)
    calls = found.toll("alloc")
    assert calls["count_before"] == calls["count_after"] >= 2 * FEWER
    without, with_it = (load(tmp_path / f"r-{side}-1.memtoll", found.result) for side in ("without", "with"))
    assert "consolidation" in {outlier["cause"] for outlier in without.report["outliers"]}
    check_buckets(with_it)
    assert "consolidation" not in {outlier["cause"] for outlier in with_it.report["outliers"]}
    assert with_it.report["latency"]["free"]["calls"] >= FEWER


def push_out(cgroup: Path, limit: int) -> None:
    """Everything in the cgroup to swap, by a limit that is too low for a moment."""
    control = cgroup / ("memory.limit_in_bytes" if (CGROUPS / "memory").is_dir() else "memory.max")

    def lowered() -> bool:
        try:
            control.write_text(str(4 * MIB))
        except OSError:  # EBUSY: some of it is still there
            return False
        return True

    wait_until(lowered, "the cgroup to be pushed out")
    control.write_text(str(limit))


@pytest.mark.machine
def test_swapped_pages_are_swap(tmp_path: Path) -> None:
    """The second look-alike: a malloc whose pages have been pushed out. It consolidates them, too."""
    size, limit = 24, 200 * MIB
    with (
        memory_with_swap("file", limit=limit) as cgroup,
        Program(*in_cgroup(cgroup, workload("stalls"), "swapped", str(size))) as program,
    ):
        tracer = start_record(tmp_path / "r", "-p", str(program.pid), "--overhead-limit", "none")
        wait_attached(tracer, program.pid)
        push_out(cgroup, limit)
        before = vmstat()
        program.go()
        took = program.last()["took_ns"]
        after = vmstat()
        result = finish(tracer)
    assert result.status == 0, result
    recording = load(tmp_path / "r", result)
    (stall,) = outliers(recording, "stalls.c", "malloc", program.pid)
    assert (stall["call"], stall["cause"]) == ("malloc", "swap")
    check_witness(recording, stall, took)
    # The pages of the small blocks that were out came back, each by one fault.
    pages = size * MIB // PAGE
    assert 0.5 * pages <= stall["faults"]["swap"] <= 1.1 * pages
    assert after["pswpin"] - before["pswpin"] >= 0.5 * pages
    assert not any(stall["map_calls"].values())
    assert recording.dominant == "swap"


def wait_for_locks(tmp_path: Path, arenas: int) -> Recording:
    return record(
        tmp_path / f"arenas{arenas}",
        command=[*AHEAD, workload("arenas"), "251"],
        env={"MALLOC_ARENA_MAX": str(arenas)},
    )


def test_waiting_for_an_arena(tmp_path: Path) -> None:
    """Eight threads: with one arena they wait for each other, with eight they do not."""
    one, eight = wait_for_locks(tmp_path, 1), wait_for_locks(tmp_path, 8)
    for recording in (one, eight):
        check_buckets(recording)
        (witness,) = recording.witness
        malloc = recording.report["latency"]["malloc"]
        assert recording.site("arenas.c", "malloc", "malloc").calls == witness["malloc"]
        # The program's own clocks saw all of the calls and the probes around them.
        assert malloc["wall_s"] <= 1.02 * witness["malloc_ns"] / 1e9
        assert malloc["lock_s"] <= malloc["wall_s"] + 1e-9
    locked, free = one.report["latency"]["malloc"], eight.report["latency"]["malloc"]
    # How long a call waits for a processor is its neighbours'.
    assert locked["lock_s"] > max(locked[part] for part in ("own_s", "fault_s", "map_s")), locked
    assert free["lock_s"] < 0.1 * locked["lock_s"], free
    codes = {advice["code"] for advice in one.report["verdict"]["advice"]}
    # Where they wait longer for a processor than for each other, that is not what it says.
    most = 2 * locked["lock_s"] >= locked["wall_s"]
    assert ("arena-lock" in codes) == most, locked
    # Where few samples came no family is known to be the largest, and the sentence says that.
    if one.dominant == "allocator":
        assert ("lock of an arena" in one.report["verdict"]["sentence"]) == most, one.report["verdict"]
    assert "arena-lock" not in {advice["code"] for advice in eight.report["verdict"]["advice"]}
    assert "lock" in {outlier["cause"] for outlier in one.report["outliers"]}
