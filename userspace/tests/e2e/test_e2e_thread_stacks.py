# SPDX-License-Identifier: GPL-2.0
"""Stacks of threads, which the C library gives back when they end and the next threads fault in again.

By what is done to them, as most systems have no names for the C library's own functions. getrusage(2) is
the witness.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from harness import MIB, PAGE, end, record, site_line, spawn, workload

pytestmark = pytest.mark.root

# Of a program that ends before anybody looks at it, no place is named.
ROUNDS = 211
KIB = 509
# glibc: what a thread keeps, and how much of all stacks together.
KEPT = 5
CACHE = 40 * MIB
STACK = 8 * MIB


@pytest.mark.parametrize("threads", [3, 17], ids=["kept", "unmapped"])
def test_stacks_come_again(out: Path, threads: int) -> None:
    command: list[str | Path] = [
        "sh",
        "-c",
        f"ulimit -s {STACK // 1024}; exec $0 {ROUNDS} {threads} {KIB}",
        workload("thread_stacks"),
    ]
    recording = record(out, command=command)
    rows = recording.query("SELECT how, SUM(calls), SUM(gave_bytes), SUM(again_bytes) FROM giveback GROUP BY how")
    calls = {how: count for how, count, _, _ in rows}
    assert calls["stack"] == ROUNDS * threads
    assert ("stack_unmapped" in calls) == (threads * STACK > CACHE)
    assert "dontneed" not in calls
    used = KIB * 1024 // PAGE
    again = sum(came for how, _, _, came in rows if how.startswith("stack")) // PAGE
    # Of all rounds but the first, as those threads find no stack that was used before.
    assert again <= recording.witness[-1]["faults"] - threads * (used - KEPT)
    assert again == pytest.approx((ROUNDS - 1) * threads * (used - KEPT), rel=0.1)
    advice = {each["code"]: each["text"] for each in recording.report["verdict"]["advice"]}
    assert f"thread_stacks.c:{site_line('thread_stacks.c', 'use')} (use)" in advice["stack-storm"]
    assert "own-storm" not in advice
    assert ("stack_cache_size" in advice["stack-storm"]) == (threads * STACK > CACHE)


# Where the limit has one fault in several looked at, those since a CPU's last one speak for none. Draws are multiples
# of the root of two: of one in 64, the fewest, at most 99 lie from one to the next (the three-distance theorem).
LEFT = 99 * (os.cpu_count() or 1)


@pytest.mark.parametrize("left", [0, LEFT], ids=["all looked at", "default limit"])
def test_both_counts_are_of_the_same_faults(out: Path, left: int) -> None:
    """Attached, and left while threads begin and end: our count and the kernel's begin and end together."""
    program = spawn([workload("thread_stacks"), "1000000", "3", str(KIB)])
    limit = () if left else ("--overhead-limit", "none")
    try:
        recording = record(out, "-p", str(program.pid), "-d", "300ms", *limit, exact=False)
    finally:
        end(program)
    check = recording.report["checks"]["minor_faults"]
    # By far less than what one thread takes; 3 is what the report takes for none.
    assert check["kernel"] > 0 and abs(check["difference"]) <= left + 3, check
