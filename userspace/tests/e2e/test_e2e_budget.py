# SPDX-License-Identifier: GPL-2.0
"""The overhead budget on programs that run: what it costs in knowledge is said, and nothing is left.

That it is kept, and what is seen of a part is true of the whole, is measured in test_measure_budget.py.
"""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from harness import (
    MEMTOLL,
    MIB,
    PAGE,
    Program,
    bpf_maps,
    bpf_objects,
    bpf_variable,
    changed_text,
    finish,
    kernel_objects,
    load,
    lost,
    map_dump,
    memtoll,
    query,
    record,
    report,
    start_record,
    stop,
    uprobe_pages,
    wait_attached,
    wait_slices,
    wait_until,
    workload,
)
from swapping import make_cgroup

pytestmark = pytest.mark.root

LIMIT = 5.0
SMALL_TARGET = """
import time
print("{}", flush=True)
while True:
    bytearray(1 << 20)
    time.sleep(0.002)
"""
FN_MALLOC = 1  # enum memtoll_fn


@pytest.fixture
def out(tmp_path: Path) -> Path:
    return tmp_path / "budget.memtoll"


def leftovers(program: Program) -> Any:
    return changed_text(program.pid) or uprobe_pages(program.pid) > 1


def test_calloc_that_comes_and_goes(out: Path) -> None:
    """Its memset is reached by a jump: outside of the windows samples alone tell that it is calloc's.

    4 MiB take 80 us and more to be cleared, a hundred small callocs 5 to 10 us without their probes.
    """
    size = 4 << 20
    recording = record(out, command=[workload("clears"), "9", str(size), "100"], exact=False)
    assert recording.dominant == "zeroing"
    site = recording.report["sites"][0]
    assert (site["toll"], site["call"]) == ("zero.libc", "calloc")
    rows = [row for row in recording.report["allocations"] if row["call"] == "calloc"]
    made = max(rows, key=lambda row: int(row["bytes"]))
    assert made["bytes"] / made["calls"] == pytest.approx(size, rel=0.01)
    assert abs(made["calls"] - recording.witness[-1]["calls"]) <= 3 * made["calls_error"]


def test_hot_program_is_watched_in_windows(out: Path) -> None:
    """Two hits of some hundred ns and 350 ns of work in turn: watched all the time they were half of it and more.

    Where the limit is 5 %, no more than a tenth is watched, then. When it stops allocating it is watched all the time
    again. Afterwards nothing is left.
    """
    missed = "SELECT COALESCE(MAX(slice), 0) FROM watch WHERE call = 'malloc'"
    # A slice in which nothing went unwatched has no row.
    hot = f"SELECT COUNT(*) FROM slice WHERE slice <= ({missed}) AND slice > 1"
    with Program(workload("pairs"), "--seconds", "100", "--work", "350") as program:
        tracer = start_record(out, "-p", str(program.pid), "--overhead-limit", "5%")
        wait_attached(tracer, program.pid)
        held = bpf_objects(tracer.pid)

        def number(sql: str) -> int:
            try:
                return int(query(out, sql)[0][0])
            except sqlite3.Error:  # not there yet
                return 0

        wait_until(lambda: number(hot) >= 2, "slices in which the budget let malloc go unwatched", every=0.2)
        os.kill(program.pid, signal.SIGUSR1)
        calm = "SELECT (SELECT MAX(slice) FROM slice) > (" + missed + ") + 1"
        wait_until(lambda: number(calm), "slices in which it is watched", every=0.2)
        tracer.send_signal(signal.SIGINT)
        result = finish(tracer)
        assert result.status == 0, result
        wait_until(lambda: not leftovers(program), "the breakpoints to go")
        wait_until(lambda: not held["link"] & kernel_objects("link"), "the links to go")
        wait_until(lambda: not held["prog"] & kernel_objects("prog"), "the programs to go")
    recording = load(out, result)
    overhead = recording.report["overhead"]
    assert overhead["limit_pct"] == LIMIT
    assert 0 < overhead["duty_cycle"]["malloc"] < 1
    # One group: their windows are the same.
    assert overhead["duty_cycle"]["malloc"] == pytest.approx(overhead["duty_cycle"]["free"])
    # While it was hot: the first slice begins with a try, in the last it became calm.
    ((watched, whole),) = recording.query(
        "SELECT SUM(COALESCE(watched_ns, end_ns - start_ns)), SUM(end_ns - start_ns) FROM slice s"
        f" LEFT JOIN watch w ON w.slice = s.slice AND call = 'malloc' WHERE s.slice > 1 AND s.slice < ({missed})"
    )
    assert 0 <= watched < 0.5 * whole
    rows = [row for row in recording.report["allocations"] if row["call"] in ("malloc", "free")]
    assert rows
    for row in rows:
        assert row["estimated"]
        assert row["calls_error"] > 0
        assert row["freed"] is None and row["live_bytes"] is None
    assert any("malloc: watched" in note for note in recording.report["notes"])


def test_cheap_probes_stay_attached(out: Path) -> None:
    """By default, and so its counts are exact: 10 MiB are 100 us and more, of which a hit is less than a hundredth."""
    recording = record(out, command=[workload("calloc_loop"), str(10 << 20), "211"], exact=False)
    assert recording.report["overhead"]["limit_pct"] == LIMIT
    assert recording.site("calloc_loop.c", "calloc", "calloc").calls == 211
    assert recording.report["overhead"]["duty_cycle"]["calloc"] == 1
    assert not any(row["estimated"] for row in recording.report["allocations"])


class Windows:
    """What the BPF side of a tracer has to say of them, by the kernel's word."""

    def __init__(self, tracer: subprocess.Popen[str]) -> None:
        self.maps = bpf_maps(tracer.pid)

    def variable(self, section: str, name: str) -> int:
        return int(bpf_variable(self.maps[f"memtoll_{section}"], name))

    def are_shut(self) -> bool:
        return self.variable(".bss", "shut_ns") > self.variable(".data", "open_until_ns")

    def mallocs(self, kind: str) -> int:
        """Hits of malloc so far: calls, that are counted with all that belongs to them, or idle, passed over."""
        (entry,) = map_dump(self.maps["rates"])
        return sum(int(row["value"][kind][FN_MALLOC]) for row in entry["formatted"]["values"])


def wait_calls(program: Program, more: int) -> None:
    least = program.calls() + more
    wait_until(lambda: program.calls() >= least, f"{more} more calls")


def test_a_stopped_tracer_leaves_no_window_open(out: Path) -> None:
    """It closes by itself: the program goes on, and of its calls none is counted any more."""
    # Windows of some tenths of a second, which a busy machine lets be met: hits take a tenth of the time.
    with Program(workload("pairs"), "--seconds", "100", "--work", "20000") as program:
        tracer = start_record(out, "-p", str(program.pid), "--overhead-limit", "5%")
        wait_attached(tracer, program.pid)
        windows = Windows(tracer)
        for _ in range(200):
            wait_until(lambda: changed_text(program.pid), "a window")
            stop(tracer)
            if changed_text(program.pid) and not windows.variable(".bss", "idle_fns"):
                break
            tracer.send_signal(signal.SIGCONT)
        else:
            raise AssertionError("it was never stopped in a window")
        wait_until(windows.are_shut, "a hit that finds the window's end past", every=0.1)
        calls, idle, pairs = windows.mallocs("calls"), windows.mallocs("idle"), program.calls()
        wait_calls(program, 20_011)
        assert windows.mallocs("calls") == calls
        # The first pace line may have been written some time before.
        assert windows.mallocs("idle") - idle >= (program.calls() - pairs) / 2
        tracer.send_signal(signal.SIGCONT)
        tracer.send_signal(signal.SIGINT)
        assert finish(tracer).status == 0


def test_calls_missed_by_a_stopped_tracer_are_counted(out: Path) -> None:
    """All is watched, were it not for the stop: each call was seen, or counted as passed over, which says for how many
    those stand that were seen; and the time that it was watched ends with the window.
    """
    with Program(workload("pairs"), "--pairs", "1000003", "--work", "200000", "--wait") as program:
        # A limit that a busy machine does not bring into debt either: then probes would be taken away for a while.
        tracer = start_record(out, "-p", str(program.pid), "--overhead-limit", "50%")
        wait_attached(tracer, program.pid)
        windows = Windows(tracer)
        program.go()
        wait_until(lambda: windows.mallocs("calls") > 100, "calls that are counted", every=0.1)
        stop(tracer)
        wait_until(windows.are_shut, "a hit that finds the window's end past", every=0.1)
        shut_ns = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
        idle = windows.mallocs("idle")
        wait_until(lambda: windows.mallocs("idle") > idle + 2003, "calls that are passed over", every=0.1)
        shut_ns -= time.clock_gettime_ns(time.CLOCK_MONOTONIC)
        counted = windows.mallocs("calls")
        tracer.send_signal(signal.SIGCONT)
        wait_until(lambda: windows.mallocs("calls") > counted + 100, "calls that are counted again", every=0.1)
        os.kill(program.pid, signal.SIGUSR1)
        done = program.last()["pairs"]
        result = finish(tracer)
    assert result.status == 0, result
    recording = load(out, result)
    (seen,) = recording.query("SELECT SUM(calls) FROM call WHERE call = 'free'")[0]
    (passed,) = recording.query("SELECT SUM(calls) FROM watch_passed WHERE call = 'free'")[0]
    # A batch is finished; whoever ends frees some blocks more.
    assert passed > 2003
    assert done <= seen + passed <= done + 50
    ((slice_ns, watched_ns),) = recording.query(
        "SELECT SUM(end_ns - start_ns), SUM(watched_ns) FROM watch JOIN slice USING (slice) WHERE call = 'free'"
    )
    assert watched_ns <= slice_ns + shut_ns
    row = next(row for row in recording.report["allocations"] if row["call"] == "free" and row["calls"] > 1000)
    assert row["estimated"] and row["calls"] > seen
    assert abs(row["calls"] - done) <= row["calls_error"]


def test_two_tracers_say_so(out: Path) -> None:
    """Of one process: the second that comes finds the first, and the first the second before it ends.

    A third, that comes when both have ended, finds nobody.
    """
    other, alone = out.with_name("other.memtoll"), out.with_name("alone.memtoll")
    with Program(workload("sleeper")) as program:
        said = f"another memtoll traces process {program.pid}, too"
        first = start_record(out, "-p", str(program.pid), "--overhead-limit", "5%")
        wait_attached(first, program.pid)
        second = start_record(other, "-p", str(program.pid), "--overhead-limit", "5%")
        wait_slices(other, 1)
        results = []
        for tracer in (first, second):
            tracer.send_signal(signal.SIGINT)
            results.append(finish(tracer))
        third = start_record(alone, "-p", str(program.pid), "--probes", "faults")
        wait_slices(alone, 1)
        third.send_signal(signal.SIGINT)
        results.append(finish(third))
    assert [(result.status, result.stderr.count(said)) for result in results] == [(0, 1), (0, 1), (0, 0)]
    for path, others in ((out, True), (other, True), (alone, False)):
        found = any(f"another memtoll traced process {program.pid}" in note for note in report(path)["notes"])
        assert found == others, path


# Calls itself memtoll and holds all maps of a process: a memtoll that looks for others, at its worst moment.
HOLDER = """
import ctypes, json, pathlib, sys, time
pathlib.Path("/proc/self/comm").write_text("memtoll")
tracer = int(sys.argv[1])
syscall = ctypes.CDLL(None, use_errno=True).syscall
process = syscall(434, tracer, 0)  # pidfd_open
def is_map(info):
    try:
        return "\\nmap_id:" in info.read_text()
    except OSError:  # closed meanwhile
        return False
infos = [info for info in pathlib.Path(f"/proc/{tracer}/fdinfo").iterdir() if is_map(info)]
held = [syscall(438, process, int(info.name), 0) for info in infos]  # pidfd_getfd
print(json.dumps({"held": sum(fd >= 0 for fd in held)}), flush=True)
time.sleep(600)
"""


def test_a_copy_of_its_own_maps_is_no_other_tracer(out: Path) -> None:
    with Program(workload("sleeper")) as program:
        tracer = start_record(out, "-p", str(program.pid))
        wait_attached(tracer, program.pid)
        with Program(sys.executable, "-B", "-c", HOLDER, str(tracer.pid)) as holder:
            assert holder.lines[0]["held"] > 5
            tracer.send_signal(signal.SIGINT)
            result = finish(tracer)
    assert (result.status, result.stderr.count("another")) == (0, 0)
    assert not any("another memtoll" in note for note in report(out)["notes"])


def test_zero_means_tracepoints_only(out: Path) -> None:
    with Program(workload("churn"), "0", "--seconds", "100", "--rest", "1000") as program:
        tracer = start_record(out, "-p", str(program.pid), "-d", "1s", "--overhead-limit", "0")
        wait_until(lambda: bpf_objects(tracer.pid)["link"], "the links")
        while tracer.poll() is None:
            assert changed_text(program.pid) == []
            time.sleep(0.05)
        result = finish(tracer)
    recording = load(out, result)
    assert recording.report["overhead"]["limit_pct"] == 0
    assert recording.report["allocations"] == []
    assert "alloc" in recording.report["not_captured"]


def test_doctor_tells_the_load() -> None:
    """What probes of a running program would cost, and none is left there. How much: test_measure_budget.py."""
    with Program(workload("pairs"), "--seconds", "100", "--work", "2000", "--every", "1000") as program:
        result = memtoll("doctor", "--json", "-p", str(program.pid))
        assert result.status == 0, result
        program.beats()
        assert changed_text(program.pid) == []
    load = {row["probes"]: row for row in json.loads(result.stdout)["load"]}
    # 2,000 hits against one and its block, at prices of the same kind.
    assert load["malloc, free"]["hits_per_s"] > 100 * load["calloc"]["hits_per_s"]
    assert load["malloc, free"]["cost_pct"] > 10 * load["calloc"]["cost_pct"] >= 0


def resident_kib(pid: int) -> int:
    """What a process holds of memory; what is mapped twice, as libbpf maps a ring buffer, counts once."""
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    except (ProcessLookupError, FileNotFoundError):
        return 0
    return next((int(line.split()[1]) for line in lines if line.startswith("Pss:")), 0)


def test_tracer_is_small(out: Path) -> None:
    """Ten thousand call sites, each with a stack of its own. Of its size 16 MiB are the ring buffer."""
    tracer = start_record(out, "-d", "60s", "--", workload("sites"), "10007", "1", "--size", "65536")
    sizes = []
    while tracer.poll() is None:
        sizes.append(resident_kib(tracer.pid))
        time.sleep(0.1)
    assert finish(tracer).status in (0, 4)
    print(f"tracer: {max(sizes) / 1024:.0f} MiB, seen {len(sizes)} times")
    ((sites, calls),) = query(out, "SELECT COUNT(DISTINCT stack_id), SUM(calls) FROM call WHERE call = 'malloc'")
    assert (lost(out, "calls_full"), lost(out, "stacks_full")) == (0, 0)
    # A tracer that is kept from running has no room for new places, and says so. Otherwise: test_measure_budget.py.
    assert calls >= 10007
    assert sites + lost(out, "call_sites") >= 10007
    assert sizes and max(sizes) / 1024 < 64


@pytest.mark.machine
def test_tracer_in_a_small_cgroup(out: Path) -> None:
    """Of the 75 MiB that a start takes 15 are the ring buffer's: the kernel kills who takes them in 68."""
    with ExitStack() as stack, Program("/usr/bin/python3", "-c", SMALL_TARGET) as program:
        group = make_cgroup(stack, 68 * MIB) / "cgroup.procs"
        join = ["sh", "-c", 'echo $$ > "$0" && exec "$@"', str(group)]
        command = [*join, str(MEMTOLL), "record", "-p", str(program.pid), "-d", "1s", "-o", str(out)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    # Who is kept from running loses events from so small a ring buffer, and says so: 4.
    assert done.returncode in (0, 4), done
    assert "kill" not in done.stderr
    assert query(out, "SELECT count(*) FROM slice")[0][0] > 0


# What no probe can be detached for: one in so many is looked at, and all are counted.

THINNED_LEFT = 64  # of each CPU, for whom no other has spoken yet
RANDOM_ROUND = 4099  # pages that "loads random" gives back at a time


@pytest.mark.parametrize(
    ("kind", "probes"),
    [("random", "all"), ("pread", "all"), ("maps", "all"), ("random", "faults"), ("maps", "mappings")],
)
def test_too_many_are_counted_and_some_looked_at(out: Path, tmp_path: Path, kind: str, probes: str) -> None:
    """Faults in no order, reads, small mappings: the program's own counters, and the kernel's, are met all the same.

    The limit is not of the allocator's probes alone: where there are none of them, it holds as well.
    """
    file = tmp_path / "cached.bin"
    file.write_bytes(bytes(9 << 20))
    what = {"random": "fault", "pread": "read", "maps": "small_map"}[kind]
    with Program(workload("loads"), kind, file) as program:

        def work(milliseconds: int) -> None:
            lines, stdin = len(program.lines), program.process.stdin
            assert stdin
            stdin.write(f"{milliseconds}\n")
            stdin.flush()
            wait_until(lambda: len(program.lines) > lines, "the end of the work")

        def most_are_passed() -> bool:
            """How soon depends on when the tracer gets to judge: work goes on until then."""
            rows = query(out, f"SELECT seen, passed FROM thinned WHERE what = '{what}'")
            return bool(sum(passed for _, passed in rows) > sum(seen for seen, _ in rows))

        work(1)
        # Where the tracer is kept from running a while, nothing is lost either.
        options = ("--overhead-limit", "5%", "--probes", probes, "--buffer", "64M")
        tracer = start_record(out, "-p", str(program.pid), *options)
        if probes == "all":
            wait_attached(tracer, program.pid)
        wait_slices(out, 1)
        before = len(program.lines)
        while not most_are_passed():
            work(300)
            assert len(program.lines) < before + 60
        work(300)
        tracer.send_signal(signal.SIGINT)
        result = finish(tracer)
        done = sum(line["ops"] for line in program.lines[before:])
    assert result.status == 0, result
    recording = load(out, result)
    left = THINNED_LEFT * (os.cpu_count() or 1)
    seen = recording.query(f"SELECT SUM(seen), SUM(passed) FROM thinned WHERE what = '{what}'")[0]
    assert seen[1] > seen[0] / 2, seen
    if kind == "random":
        faults = recording.query("SELECT SUM(faults) FROM fault WHERE class = 'zero'")[0][0]
        assert abs(faults - done) <= left + 0.01 * done
        assert recording.report["checks"]["minor_faults"]["ok"]
        assert ("zero.kernel",) in recording.query("SELECT toll FROM estimated_count")
        # Each page went before it came. But nobody has seen those of the first round in use before, and from when it
        # is looked at a part on, how many of those that go had been in use is known only within a round.
        again = sum(row["again_bytes"] for row in recording.report["giveback"] if row["how"] == "dontneed") // PAGE
        assert again <= faults and (again >= 0.98 * (done - RANDOM_ROUND) - RANDOM_ROUND or probes == "faults"), again
        site = recording.report["sites"][0]
        assert site["toll"] == "zero.kernel" and "loads.c" in json.dumps(site["touched_at"]), site
    elif kind == "maps":
        unwatched = lost(out, "maps_unwatched")
        for call in ("mmap", "munmap"):
            sql = f"SELECT SUM(calls), SUM(bytes) FROM map_call WHERE call = '{call}'"
            ((calls, mapped_bytes),) = recording.query(sql)
            assert done - unwatched <= calls <= done, (call, calls, done, unwatched)
            assert mapped_bytes == 4096 * calls
        # Three places in turn, told apart by those that were looked at.
        sql = "SELECT SUM(calls) FROM map_call WHERE call = 'mmap' GROUP BY stack_id ORDER BY 1 DESC LIMIT 3"
        assert all(row[0] / done == pytest.approx(1 / 3, abs=0.12) for row in recording.query(sql))
        assert ("map",) in recording.query("SELECT toll FROM estimated_count")
    else:
        ((calls, read_bytes),) = recording.query("SELECT SUM(calls), SUM(bytes) FROM file_read")
        # A program that was idle has its system calls unwatched until they are seen to come back.
        unwatched = lost(out, "reads_unwatched")
        # What is passed over is not looked at: the orders that it reads from its pipe may be taken for the file's.
        assert done - lost(out, "reads_passed") - unwatched <= calls <= done + len(program.lines)
        assert read_bytes == 4096 * calls
        assert ("file.read",) in recording.query("SELECT toll FROM estimated_count")
        assert recording.toll("file.read", "share") > 0
