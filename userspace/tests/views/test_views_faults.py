# SPDX-License-Identifier: GPL-2.0
"""Faults that are no zeroing, times that cannot be, and huge pages: what is said of them."""

from __future__ import annotations

import pytest

import facts
from facts import MS, PAGE, US, Facts

HUGE = 512


def recorded(cpu_ns: float = 100 * MS, minor: int = 0) -> Facts:
    made = Facts()
    made.prices()
    made.slice()
    made.process()
    made.allocator()
    made.cpu(cpu_ns, minor=minor)
    return made


def sentence(made: Facts) -> tuple[str, str]:
    row = made.one("SELECT dominant, sentence FROM verdict")
    return row["dominant"], row["sentence"]


def advice(made: Facts) -> dict[str, str]:
    return {row["code"]: row["text"] for row in made.rows("SELECT code, text FROM finding")}


def test_a_handler_is_waited_for() -> None:
    made = recorded()
    place = made.stack(("main", "/src/lazy.c", 22))
    made.fault("user", 4_099, 3 * US, blocked_ns=4_099 * 300 * US, touched_stack=place)
    dominant, text = sentence(made)
    assert dominant == "userfault"
    assert text.startswith("Waiting for a userfaultfd handler takes")
    assert "4,099 faults" in text and "lazy.c:22 (main)" in text
    toll = made.toll("fault.user")
    assert (toll["count"], toll["bytes"]) == (4_099, 4_099 * PAGE)
    assert toll["blocked_ns"] == 4_099 * 300 * US
    assert made.toll("zero.kernel")["count"] == 0
    given = advice(made)
    assert "UFFDIO_COPY" in given["userfault"]
    assert "first-touch" not in given and "huge" not in given["userfault"]


def lazy(waits: int) -> Facts:
    made = recorded()
    made.fault("user", waits, 3 * US, blocked_ns=waits * 300 * US)
    return made


def test_the_handler_is_named() -> None:
    """Its thread and its line, half of the waits, and the longest."""
    made = lazy(1_000)
    made.handler(997, 250 * US, stack_id=made.stack(("answer", "/src/lazy.c", 91)))
    waits = {(200 * US, 300 * US): 900, (300 * US, 400 * US): 97}
    made.longest_wait(380 * US, waits, stack_id=made.stack(("use", "/src/lazy.c", 22)))
    who = "thread handler (43), UFFDIO_COPY at lazy.c:91 (answer)"
    assert f"Who answers: {who}. Half of them waited less than 255 us" in sentence(made)[1]
    assert "the longest waited 380 us, at lazy.c:22 (use)" in sentence(made)[1]
    assert f"One thread answers all of them: {who}." in advice(made)["userfault"]
    assert "Let more threads handle faults" in advice(made)["userfault"]
    row = made.one("SELECT * FROM latency_text WHERE call = 'fault.user'")
    assert (row["calls"], row["max_ns"]) == (997, 380 * US)
    assert row["p50_ns"] < row["p99_ns"] <= row["max_ns"]


@pytest.mark.parametrize("known", [True, False])
def test_no_quantile_of_waits_lies_above_the_longest(known: bool) -> None:
    made = lazy(1_000)
    made.handler(997, 65 * US)
    made.longest_wait(66 * US, {(64 * US, 128 * US): 997})
    if not known:
        made.database.execute("DELETE FROM longest_wait")
    row = made.one("SELECT p50_ns, p99_ns FROM handler_measure")
    assert row["p50_ns"] == pytest.approx(66 * US if known else 96 * US)
    assert row["p99_ns"] == pytest.approx(66 * US if known else 127 * US, rel=0.01)


def test_handlers_of_another_process() -> None:
    made = lazy(1_000)
    made.longest_wait(300 * US, {(200 * US, 300 * US): 900})
    for tid, waits in ((70, 500), (71, 400)):
        made.handler(waits, 250 * US, handler_pid=70, handler_tid=tid, comm="pager", process="restorer")
    who = "thread pager (70) of process restorer (70), which is not traced, by UFFDIO_COPY"
    assert f"Who answers most: {who}" in sentence(made)[1]
    given = advice(made)["userfault"]
    assert f"2 threads answer them, most {who}" in given
    assert "more threads" not in given


def test_what_is_not_known_is_other() -> None:
    made = recorded(1 * MS)
    made.fault("other", 1_009, 2 * US, area="device")
    assert sentence(made)[0] == "other"
    assert made.toll("fault.other")["count"] == 1_009
    assert made.toll("zero.kernel")["count"] == 0
    assert "as far as is known" in sentence(made)[1]


def test_pages_that_are_moved() -> None:
    """Compaction moves pages of anybody: who touches one waits until it has arrived."""
    made = recorded(1 * MS)
    made.fault("moved", 3, 95_000 * US, area="anon")
    made.fault("other", 1_009, 2 * US, area="device")
    dominant, said = sentence(made)
    assert dominant == "other" and "99 % of that time waits for pages that the kernel is moving" in said


@pytest.mark.parametrize(("times", "doubtful"), [(4, False), (160, True)])
def test_faults_too_slow_for_clearing_are_doubted(times: int, doubtful: bool) -> None:
    """First touches that sleep: what they waited for is not known, and no advice rests on it."""
    made = recorded(10 * MS, 1_009)
    work = facts.FAULT_NS * times
    made.fault("zero", 1_009, 1 * US, blocked_ns=round(1_009 * work))
    dominant, text = sentence(made)
    toll = made.toll("zero.kernel")
    assert text.startswith("Whether this is zeroing is doubtful: 1,009 first-touch faults") == doubtful
    can_ns = 1_009 * facts.FAULT_NS + toll["clear_ns"]
    assert (toll["low_ns"] <= can_ns) == doubtful
    assert ("first-touch" in advice(made)) == (not doubtful)
    assert dominant == ("none" if doubtful else "compute")


def test_doubt_is_said_where_zeroing_comes_second() -> None:
    """Its lower bound falls as far: that is not done without a word."""
    made = recorded(400 * MS, 1_009)
    made.fault("zero", 1_009, 1 * US, blocked_ns=round(1_009 * facts.FAULT_NS * 160))
    dominant, text = sentence(made)
    assert dominant == "compute"
    assert text.startswith("Whether the kernel clears for 114 ms is doubtful: 1,009 first-touch faults take 113 us")
    assert (made.toll("zero.kernel")["strange"], made.toll("zero.app")["strange"]) == (1, 0)
    assert "first-touch" not in advice(made)


@pytest.mark.parametrize(
    ("setting", "by_the_program", "by_the_system"),
    [("always", False, True), ("madvise", True, False), ("", True, True)],
)
def test_huge_pages_are_turned_off_where_they_come_from(
    setting: str, by_the_program: bool, by_the_system: bool
) -> None:
    made = recorded(minor=997)
    if setting:
        made.meta(huge_pages=setting)
    made.database.execute("INSERT INTO huge_look VALUES (42, 61, 61, 3)")
    made.fault("zero_huge", 997, 95 * US, pages=997 * HUGE)
    said = advice(made)["huge-sparse"]
    assert ("Take away the madvise(MADV_HUGEPAGE)" in said) == by_the_program
    assert ("transparent_hugepage/enabled" in said) == by_the_system
    assert "madvise(MADV_NOHUGEPAGE) on this memory" in said


@pytest.mark.parametrize(
    ("looked", "used", "sparse"),
    [((0, 0, 61), None, True), ((61, 61, 3), "4.00 KiB", True), ((61, 61 * 500, 0), None, False)],
    ids=["gone", "sparse", "dense"],
)
def test_huge_pages_are_named(looked: tuple[int, int, int], used: str | None, sparse: bool) -> None:
    made = recorded(minor=997)
    made.database.execute("INSERT INTO huge_look VALUES (42, ?, ?, ?)", looked)
    made.fault("zero_huge", 997, 95 * US, pages=997 * HUGE)
    dominant, text = sentence(made)
    assert dominant == "zeroing"
    assert "997 of them of huge pages, which clear 2.00 MiB each" in text
    assert (f"where {used} is used" in text) == (used is not None)
    given = advice(made)
    assert ("huge-sparse" in given) == sparse
    if sparse:
        assert (f"of which {used} is used" in given["huge-sparse"]) == (used is not None)
        assert ("could not be looked at" in given["huge-sparse"]) == (used is None)
        gain = made.one("SELECT gain FROM finding WHERE code = 'huge-sparse'")["gain"]
        assert gain == pytest.approx(0.94, abs=0.03)
        # Small faults take here what they were timed to.
        made.fault("zero", 100, 10 * US)
        saves = made.one("SELECT huge_ns, huge_saves_ns FROM huge_measure")
        each = made.one("SELECT mean_ns FROM fault_price WHERE class = 'zero'")["mean_ns"]
        assert each > 2 * facts.FAULT_NS
        assert saves["huge_ns"] - saves["huge_saves_ns"] == pytest.approx(997 * each)
    assert "can save" not in given.get("first-touch", "")


@pytest.mark.parametrize(("call", "said"), [("malloc", "Call calloc"), ("mmap", "a language's runtime")])
def test_what_is_cleared_twice_is_named_by_its_faults(call: str, said: str) -> None:
    """Though no sample fell into the memset; and a runtime's own heap does not come from malloc."""
    made = recorded(minor=50_021)
    block = made.stack((call, "", 0), ("grow", "/src/heap.c", 7))
    wipe = made.stack(("__memset_avx512_unaligned_erms", "", 0), ("new_object", "/src/heap.c", 19))
    columns = {"allocated_call": call, "allocated_stack": block, "touched_stack": wipe, "in_memset": 1}
    made.fault("zero", 50_021, 1_900, **columns)
    text = advice(made)["app-double-clear"]
    assert text.startswith("The code at heap.c:19 (new_object) clears pages that the kernel had just cleared: 195 MiB")
    assert said in text and ("Call calloc" in text) == (call == "malloc")
