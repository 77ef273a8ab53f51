# SPDX-License-Identifier: GPL-2.0
"""Recordings of the real tracer: while it writes, and after it was killed."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

import memtoll

import harness

pytestmark = pytest.mark.root


def test_while_it_records(tmp_path: Path) -> None:
    path = tmp_path / "live.memtoll"
    with harness.Program(harness.workload("churn"), "10", "--seconds", "60", "--rest", "5000") as program:
        tracer = harness.start_record(path, "-p", str(program.pid))
        harness.wait_slices(path, 2)
        durations = []
        for _ in range(5):
            with memtoll.open(path) as rec:
                assert rec.verdict.sentence and not rec.complete
                durations.append(rec.duration_s)
                sums = rec.timeline.groupby("toll", observed=True)["count"].sum()
                assert sums["alloc"] == rec.toll.loc["alloc", "count"]
        harness.wait_slices(path, 4)
        tracer.send_signal(signal.SIGINT)
        result = harness.finish(tracer)
    assert result.status == 0, result
    assert durations == sorted(durations)
    with memtoll.open(path) as rec:
        assert rec.complete
        assert rec.duration_s > durations[-1]
    assert harness.integrity(path) == "ok"


def test_after_the_tracer_was_killed(tmp_path: Path) -> None:
    path = tmp_path / "killed.memtoll"
    with harness.Program(harness.workload("churn"), "10", "--seconds", "60", "--rest", "5000") as program:
        tracer = harness.start_record(path, "-p", str(program.pid))
        harness.wait_slices(path, 2)
        tracer.send_signal(signal.SIGKILL)
        harness.finish(tracer)
    with memtoll.open(path) as rec:
        assert rec.toll.loc["alloc", "count"] > 0
        assert "incomplete" in repr(rec.toll)


def test_compare_real(tmp_path: Path) -> None:
    """Casebook 1: the memset of reused blocks goes when the threshold is pinned."""
    before, after = tmp_path / "before.memtoll", tmp_path / "after.memtoll"
    command = [harness.workload("calloc_loop"), "10485760", "509", "--seconds", "1"]
    pinned = {"GLIBC_TUNABLES": "glibc.malloc.mmap_threshold=131072"}
    one = harness.record(before, "--slice", "100ms", command=command)
    two = harness.record(after, "--slice", "100ms", command=command, env=pinned)
    work = [float(rec.witness[-1]["calls"]) for rec in (one, two)]
    both = memtoll.diff(before, after, work_before=work[0], work_after=work[1])
    libc = both.toll.loc["zero.libc"]
    assert libc["after"] == 0
    # Whether so few slices prove it is the machine's.
    assert libc["low"] <= libc["difference"] <= libc["high"] and libc["difference"] < 0
    # Per call the cleared bytes are the block's size.
    cleared = both.table("toll", "bytes").loc["zero.libc", "before"]
    assert cleared == pytest.approx(10485760, rel=0.01)
    first = both.sites.reset_index().iloc[0]
    assert first["toll"] == "zero.libc"
    assert first["allocated_at"].endswith(";clear_block;calloc")
