# SPDX-License-Identifier: GPL-2.0
"""Storms of new processes, of which few are looked at: facts written by hand. No root, no tracer."""

from __future__ import annotations

import pytest

from facts import INSIDE, MS, Facts

SEEN, UNSEEN = 7, 97
CPU_NS = 3 * MS
ALLOC_NS = 1 * MS


@pytest.fixture
def made() -> Facts:
    """A shell and what it starts: each program spends a third of its time in malloc, where that was looked at."""
    facts = Facts()
    facts.prices()
    facts.slice()
    facts.process(comm="sh")
    facts.cpu(CPU_NS)
    stack = facts.stack(("malloc", "", 0), ("fill", "/src/fill.c", 27))
    for pid in range(101, 101 + SEEN):
        facts.process(pid, "fill", role="child")
        facts.cpu(CPU_NS, pid)
        facts.call("malloc", stack, 1, pid=pid, cpu_ns=round(ALLOC_NS + INSIDE))
    for pid in range(1001, 1001 + UNSEEN):
        facts.process(pid, "fill", role="child", executable="", command="")
        facts.cpu(CPU_NS, pid)
    return facts


def alloc_ns(facts: Facts) -> float:
    return float(facts.one("SELECT SUM(time_ns) AS ns FROM process_toll WHERE toll = 'alloc'")["ns"])


def storm_notes(facts: Facts) -> list[str]:
    return [str(row["text"]) for row in facts.rows("SELECT text FROM note") if "in a storm" in str(row["text"])]


def test_calls_of_the_unseen_are_estimated(made: Facts) -> None:
    made.row("loss", slice=1, name="programs_passed", count=UNSEEN)
    assert alloc_ns(made) == pytest.approx((SEEN + UNSEEN) * ALLOC_NS, rel=0.02)
    error = made.one("SELECT SUM(error_ns) AS ns FROM process_toll WHERE toll = 'alloc' AND pid > 1000")
    assert error["ns"] == pytest.approx(UNSEEN * ALLOC_NS, rel=0.02)
    notes = storm_notes(made)
    assert len(notes) == 1
    assert f"{UNSEEN} of {1 + SEEN + UNSEEN} processes" in notes[0]
    assert "(92 % of the CPU time)" in notes[0]


def test_without_a_storm_nothing_is_estimated(made: Facts) -> None:
    """A process that was gone before it could be read is none of a storm."""
    assert alloc_ns(made) == pytest.approx(SEEN * ALLOC_NS, rel=0.02)
    assert not storm_notes(made)


def test_other_programs_say_nothing(made: Facts) -> None:
    """Of a program of which none was looked at nothing is known."""
    made.row("loss", slice=1, name="programs_passed", count=UNSEEN)
    made.database.execute("UPDATE process SET comm = 'other' WHERE pid > 1000")
    assert alloc_ns(made) == pytest.approx(SEEN * ALLOC_NS, rel=0.02)
