# SPDX-License-Identifier: GPL-2.0
"""Faults that rest: where even to count them is over the limit they are seen in windows, and none is lost."""

from __future__ import annotations

import os
import shlex
from pathlib import Path

import pytest

from harness import MIB, PAGE, Recording, record, workload

pytestmark = pytest.mark.root

CALLS = 353
BLOCK, BLOCKS, PASSES = 512, 1009, 4001
COPIED, CHILDREN = 101, 10_007
# What counting takes of a program that does nothing but fault is ten times as much on any machine.
LIMIT = ("--overhead-limit", "0.5%")


def assert_all_counted(recording: Recording) -> None:
    check = recording.report["checks"]["minor_faults"]
    assert abs(check["difference"]) <= 3, check


def test_storm_in_order(out: Path) -> None:
    """As many as there were, of the kind that they are, at their line, and the most of them without any probe."""
    recording = record(out, *LIMIT, command=[workload("storms"), "advise", str(CALLS), "1", str(16 * MIB)], exact=False)
    pages = CALLS * 16 * MIB // PAGE
    assert_all_counted(recording)
    ((faults, zero),) = recording.query("SELECT SUM(faults), SUM(faults) FILTER (WHERE class = 'zero') FROM fault")
    assert pages <= faults <= 1.01 * pages
    assert zero >= 0.99 * faults
    ((seen, passed),) = recording.query("SELECT SUM(seen), SUM(passed) FROM thinned WHERE what = 'fault'")
    ((hits,),) = recording.query("SELECT SUM(hits) FROM hit WHERE probe = 'fault'")
    assert passed > pages / 10 and hits <= faults - passed + 1000
    assert seen + passed <= faults
    assert recording.dominant == "zeroing"


def test_children_are_counted(out: Path) -> None:
    """Faults of children that come and go between two windows, and are never met."""
    recording = record(out, *LIMIT, command=[workload("cow_fork"), str(COPIED * PAGE), str(CHILDREN)], exact=False)
    assert_all_counted(recording)
    ((passed,),) = recording.query("SELECT SUM(passed) FROM thinned WHERE what = 'fault'")
    ((faults, copied),) = recording.query("SELECT SUM(faults), SUM(faults) FILTER (WHERE class = 'cow') FROM fault")
    assert passed > faults / 10
    # Classes are those of windows, some dozens of them, each of several children.
    assert copied == pytest.approx(COPIED * CHILDREN, rel=0.25)


def test_each_process_has_its_own(out: Path) -> None:
    """Beside another storm of another kind, with less than a CPU for each: nobody's faults are the other's."""
    calls = CALLS // 2
    storm = [str(workload("storms")), "advise", str(calls), "1", str(16 * MIB)]
    copies = [str(workload("cow_fork")), str(COPIED * PAGE), str(CHILDREN // 2)]
    lines = f"{shlex.join(storm)} & {shlex.join(copies)} & {shlex.join(storm)} & wait"
    recording = record(out, *LIMIT, command=["sh", "-c", lines], exact=False)
    assert_all_counted(recording)
    pages = calls * 16 * MIB // PAGE
    faults = recording.query(
        "SELECT SUM(f.faults), SUM(f.faults) FILTER (WHERE f.class = 'zero'), (SELECT SUM(s.minor_faults)"
        " FROM process_slice s WHERE s.pid = p.pid) FROM fault f JOIN process p USING (pid)"
        " WHERE p.comm = 'storms' GROUP BY p.pid"
    )
    assert len(faults) == 2
    for counted, zero, kernels in faults:
        assert pages <= kernels <= 1.01 * pages
        assert counted == pytest.approx(kernels, rel=0.01)
        assert zero >= 0.99 * counted


def reads_that_are_counted(recording: Recording, made: int) -> int:
    """Those that go unwatched, as a program that does nothing for a second is idle, are counted as that.

    Where one in so many is looked at in the end, and they do not rest, those passed over last have none that speaks for
    them, and are counted as well.
    """
    query = "SELECT SUM(r.calls), SUM(r.bytes) FROM file_read r JOIN file f USING (file) WHERE f.path LIKE '%/data'"
    ((calls, read),) = recording.query(query)
    # The kernel tells a read of one file from that of another no more: those of the start are a dozen.
    losses = recording.report["losses"]
    assert made - 16 - losses["reads_unwatched"] - losses["reads_passed"] <= calls <= made + 16
    assert read == pytest.approx(calls * BLOCK, abs=16 * BLOCK)
    return int(calls)


def read_again_and_again(out: Path, call: str, *options: str) -> Recording:
    """Four million reads of a cached file."""
    data = out.with_name("data")
    data.write_bytes(os.urandom(BLOCKS * BLOCK))
    words = [str(data), call, str(BLOCK), str(BLOCKS), str(PASSES), *options]
    recording = record(out, *LIMIT, command=[workload("reader"), *words], exact=False)
    (witness,) = recording.witness
    assert witness["reads"] == BLOCKS * PASSES
    return recording


@pytest.mark.parametrize("options", [["pread"], ["read", "--beside"]], ids=" ".join)
def test_reads_are_counted(out: Path, options: list[str]) -> None:
    """Every read of a cached file, and its bytes, the most of them without any probe; where from is told as ever.

    That there may be waiting for locks, as from the second thread on, is no reason to see each call.
    """
    recording = read_again_and_again(out, *options)
    calls = reads_that_are_counted(recording, BLOCKS * PASSES)
    ((seen, passed),) = recording.query("SELECT SUM(seen), SUM(passed) FROM thinned WHERE what = 'read'")
    assert passed > calls / 2 and seen + passed <= calls + 1000
    ((hits,),) = recording.query("SELECT SUM(hits) FROM hit WHERE probe = 'read'")
    assert hits < calls / 2
    assert recording.report["losses"]["reads_unwatched"] < 0.1 * calls
    # Nor is their time told twice: samples in them are of reads, but for the way into the kernel and out.
    samples = dict(recording.query("SELECT place, SUM(samples) FROM sample GROUP BY place"))
    assert samples["read"] > samples["kernel"], samples


def test_mapping_calls_are_seen_by_their_lock(out: Path) -> None:
    """Beside reads that rest: every one, and where it is, so that what is faulted in and unmapped has its owner."""
    recording = read_again_and_again(out, "pread", "--map", "101")
    mapped = recording.witness[0]["mapped"]
    assert mapped == BLOCKS * PASSES // 101
    calls = reads_that_are_counted(recording, BLOCKS * PASSES)
    ((hits,),) = recording.query("SELECT SUM(hits) FROM hit WHERE probe = 'read'")
    assert hits < calls / 2
    # One may be half way when a rest ends: it is counted as that.
    lost = recording.report["losses"]["maps_unwatched"]
    assert lost <= 8
    sites = [site for site in recording.report["sites"] if site["toll"] == "map"]
    counted = {
        function: sum(
            site["count"] for site in sites if function in [at["function"] for at in site["allocated_at"][:2]]
        )
        for function in ("map_area", "lengthen_area", "unmap_area", "sbrk", "madvise")
    }
    assert all(mapped - lost <= count <= mapped for count in counted.values()), (counted, mapped, lost)
    assert_all_counted(recording)
    # A byte of each area, and one of what it is longer by.
    ((faults,),) = recording.query("SELECT SUM(faults) FROM fault WHERE class = 'zero' AND allocated_call = 'mmap'")
    assert faults == pytest.approx(2 * mapped, rel=0.01)
    ((given,),) = recording.query("SELECT SUM(calls) FROM giveback WHERE how = 'munmap'")
    assert given == pytest.approx(mapped, rel=0.01)


def test_reads_before_a_pause_are_counted(out: Path) -> None:
    """Those since the last window, of a program that is idle from then on, and is left alone for a while."""
    recording = read_again_and_again(out, "pread", "--pause", "3")
    reads_that_are_counted(recording, BLOCKS * PASSES)
