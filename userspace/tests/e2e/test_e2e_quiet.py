# SPDX-License-Identifier: GPL-2.0
"""Who makes system calls that tell nothing is not slowed down by their tracepoints; what comes then is not missed."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import pytest

from harness import (
    Program,
    Recording,
    end,
    finish,
    load,
    lost,
    memtoll,
    query,
    start_record,
    wait_attached,
    wait_slices,
    wait_until,
    workload,
)

# Alone: other tracers' tracepoints slow system calls down, too.
pytestmark = pytest.mark.root

TIMES: Final = 499
PAUSE_US: Final = 4000
TOUCHED: Final = 4001


def has_unwatched_tracepoints() -> bool:
    btf = Path("/sys/kernel/btf/vmlinux").read_bytes()
    names = ("mm_filemap_get_pages", "mmap_lock_acquire_returned", "block_bio_queue")
    return all(f"btf_trace_{name}\0".encode() in btf for name in names)


def tracepoints(tracer: subprocess.Popen[str]) -> set[str]:
    """Of system calls, to which a tracer's programs are attached: as the kernel has its links."""
    names = set()
    for link in Path(f"/proc/{tracer.pid}/fdinfo").iterdir():
        try:
            names.update(re.findall(r"^tp_name:\s*(sys_\w+)$", link.read_text(), re.MULTILINE))
        except FileNotFoundError:
            continue
    return names


@contextmanager
def traced(out: Path, file: Path, *options: str, rest_ms: int = 3) -> Iterator[tuple[Program, subprocess.Popen[str]]]:
    """The workload, and a tracer of it that has begun; ended when the block is left, if not before."""
    with Program(workload("quiet"), file, workload("liblate.so"), str(rest_ms)) as program:
        tracer = start_record(out, "-p", str(program.pid), *options)
        try:
            wait_attached(tracer, program.pid)
            yield program, tracer
        finally:
            end(tracer)


def ask(program: Program, kind: str, number: int, pause_us: int = 0) -> None:
    before = len(program.lines)
    assert program.process.stdin
    program.process.stdin.write(f"{kind} {number} {pause_us}\n")
    program.process.stdin.flush()
    wait_until(lambda: len(program.lines) > before, f"{number} times {kind}")
    assert program.lines[-1]["done"] == kind


def finished(out: Path, program: Program, tracer: subprocess.Popen[str]) -> Recording:
    """End the program, and the recording with it."""
    assert program.process.stdin
    program.process.stdin.close()
    program.last()
    result = finish(tracer)
    assert result.status == 0, result
    return load(out, result)


def wait_gone(tracer: subprocess.Popen[str]) -> None:
    wait_until(lambda: not tracepoints(tracer), "the tracepoints of system calls to go", every=0.2)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "file"
    path.write_bytes(bytes(65536))
    return path


@pytest.fixture
def out(tmp_path: Path) -> Path:
    return tmp_path / "quiet.memtoll"


needs_tellers = pytest.mark.skipif(
    not has_unwatched_tracepoints(),
    reason="this kernel has no tracepoints for unwatched calls: they are watched always",
)

MAPPED: Final = "SELECT COALESCE(SUM(calls), 0) FROM map_call WHERE call IN ('mmap', 'munmap')"
READ: Final = "SELECT COALESCE(SUM(calls), 0) FROM file_read WHERE call = 'pread64'"


def slices(out: Path) -> int:
    return int(query(out, "SELECT count(*) FROM slice")[0][0])


def seen_and_lost(out: Path, kind: str) -> tuple[int, int]:
    """So far, of calls of a kind: those that were told, and those that went unseen and were counted."""
    sql, loss = (MAPPED, "maps_unwatched") if kind == "map" else (READ, "reads_unwatched")
    return int(query(out, sql)[0][0]), lost(out, loss)


@needs_tellers
def test_comes_back_with_the_first_calls(out: Path, file: Path) -> None:
    """With mappings, with reads, and with reads past the page cache: each after all was let go again."""
    before: dict[str, tuple[int, int]] = {}
    after: dict[str, tuple[int, int]] = {}
    with traced(out, file, "--overhead-limit", "5%") as (program, tracer):
        # Not every file system has O_DIRECT.
        reads = ["pread", "direct"] if program.lines[0]["direct"] else ["pread"]
        for kind in ("map", *reads):
            wait_gone(tracer)
            # So that something goes unseen: two more seconds. What the kind before did is written by then.
            wait_slices(out, slices(out) + 2)
            if kind == "direct":
                after["pread"] = seen_and_lost(out, "pread")
            before[kind] = seen_and_lost(out, kind)
            ask(program, kind, TIMES, PAUSE_US)
            assert tracepoints(tracer) == {"sys_enter", "sys_exit"}
        recording = finished(out, program, tracer)
    scaled = query(out, "SELECT COUNT(*) FROM estimated_count WHERE toll IN ('map', 'file.read')")[0][0]
    for kind, (seen_before, lost_before) in before.items():
        seen_after, lost_after = after.get(kind) or seen_and_lost(out, kind)
        seen, unseen = seen_after - seen_before, lost_after - lost_before
        calls = 2 * TIMES if kind == "map" else TIMES
        print(kind, seen, unseen, recording.report["overhead"]["duty_cycle"])
        # What goes unseen is counted: at the border twice, at most, where what was seen is not scaled. How long it
        # takes is the machine's; the call that wakes the probes is one of them.
        assert calls <= seen + unseen <= (1.2 * calls if scaled else calls + 8), kind
        assert seen > 0, kind
        assert unseen > 0, kind
    assert 0 < recording.report["overhead"]["duty_cycle"]["syscall"] < 1
    if "direct" not in before:
        pytest.skip("no O_DIRECT on the file system of the tests: reads past the page cache were left out")


@needs_tellers
def test_comes_back_with_faults(out: Path, file: Path) -> None:
    """Memory that is faulted in without any system call."""
    with traced(out, file, "--overhead-limit", "5%") as (program, tracer):
        wait_gone(tracer)
        ask(program, "touch", TOUCHED)
        wait_until(lambda: "sys_enter" in tracepoints(tracer), "the tracepoints to come back", every=0.2)
        recording = finished(out, program, tracer)
    losses = recording.report["losses"]
    assert (losses["maps_unwatched"], losses["reads_unwatched"]) == (0, 0)
    # Mapped before it was traced, by the workload itself.
    assert recording.toll("zero.kernel", "pages") >= TOUCHED


@needs_tellers
def test_code_that_was_mapped_unseen_is_known(out: Path, file: Path) -> None:
    """A library comes by dlopen while nobody looks, and allocates: its stack is whole."""
    with traced(out, file, "--overhead-limit", "5%", "--min-size", "64K") as (program, tracer):
        wait_gone(tracer)
        ask(program, "library", 1)
        wait_until(lambda: "sys_enter" in tracepoints(tracer), "the tracepoints to come back", every=0.2)
        ask(program, "library", TIMES)
        recording = finished(out, program, tracer)
    assert recording.report["losses"]["maps_unwatched"] >= 4
    names = [[frame["function"] for frame in row["allocated_at"]] for row in recording.report["allocations"]]
    assert any("main" in frames and "late_keep" in frames for frames in names), names


@needs_tellers
def test_without_limit_everything_is_watched(out: Path, file: Path) -> None:
    with traced(out, file, "--overhead-limit", "none") as (program, tracer):
        wait_slices(out, 4)
        assert "sys_enter" in tracepoints(tracer)
        ask(program, "map", TIMES)
        recording = finished(out, program, tracer)
    assert query(out, MAPPED) == [(2 * TIMES,)]
    assert recording.report["losses"]["maps_unwatched"] == 0
    assert "syscall" not in recording.report["overhead"].get("duty_cycle", {})


def test_cost_to_unwatched_calls_is_charged(out: Path, file: Path) -> None:
    """Calls that nobody looks at are slower while some are watched: they are counted, in windows, and charged.

    By how much is calibrated; where that is less than its error the report says so.
    """
    with Program(workload("quiet"), file, workload("liblate.so")) as program:
        tracer = start_record(out, "-p", str(program.pid), "--overhead-limit", "none")
        try:
            wait_attached(tracer, program.pid)
            ask(program, "map", 1, 1_000_000)
            recording = finished(out, program, tracer)
        finally:
            end(tracer)
    counted = int(query(out, "SELECT SUM(hits) FROM hit WHERE probe = 'syscall'")[0][0])
    price, error = query(out, "SELECT hit_ns, error_ns FROM price WHERE probe = 'syscall'")[0]
    ((charged, unsure),) = query(
        out, "SELECT SUM(overhead_ns), SUM(error_ns) FROM probe_overhead WHERE probe = 'syscall'"
    )
    # How near the windows come to the number of calls is for test_measure_quiet.py: a neighbour makes them slower.
    assert counted > 0
    assert price >= 0
    assert charged == pytest.approx(counted * price)
    assert unsure == pytest.approx(counted * max(error, 0.1 * price))
    told = recording.report["overhead"]
    assert (told["ns_per_hit"]["syscall"], told["ns_per_hit_error"]["syscall"]) == (
        pytest.approx(price, abs=0.06),
        pytest.approx(error, abs=0.06),
    )
    said = " ".join(memtoll("report", "--full", out).stdout.split())
    assert ("(syscall) does not differ measurably from zero here" in said) == (error > 0 and error >= price), said
    # They are no hits.
    others = int(query(out, "SELECT SUM(hits) FROM hit WHERE probe <> 'syscall'")[0][0])
    assert told["hits"] == others


@needs_tellers
def test_tracepoints_only(out: Path, file: Path) -> None:
    """--overhead-limit 0 knows no budget, and lets them go all the same."""
    with Program(workload("quiet"), file, workload("liblate.so"), "3") as program:
        tracer = start_record(out, "-p", str(program.pid), "--overhead-limit", "0")
        try:
            wait_slices(out, 1)
            wait_gone(tracer)
            ask(program, "map", TIMES, PAUSE_US)
            assert "sys_enter" in tracepoints(tracer)
            recording = finished(out, program, tracer)
        finally:
            end(tracer)
    assert 0 < recording.report["overhead"]["duty_cycle"]["syscall"] < 1
