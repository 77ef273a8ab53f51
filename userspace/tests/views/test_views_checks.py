# SPDX-License-Identifier: GPL-2.0
"""What the kernel counts and memtoll has not seen bounds the verdict; what it says of memory where computing leads."""

from __future__ import annotations

from typing import Any

import pytest

from facts import FAULT_HIT, FAULT_INSIDE, MAP_INSIDE, MS, PAGE, US, Facts, S

SWAPPED = ("pswpin", "zswpin")


def computing(major: int = 0, minor: int = 0) -> Facts:
    """A second of computing, by its samples, and faults that only the kernel has counted."""
    made = Facts()
    made.prices()
    made.slice()
    made.process()
    made.allocator()
    made.cpu(S, minor=minor, major=major)
    made.samples("user", 100, made.stack(("work", "/src/work.c", 11)))
    return made


def verdict(made: Facts) -> dict[str, Any]:
    return made.one("SELECT * FROM verdict")


def test_a_few_major_faults_unseen_are_no_doubt() -> None:
    """Fewer than could matter: memory is not denied, but nothing is said to be unknown."""
    made = computing(major=101)
    assert not made.one("SELECT * FROM checks WHERE name = 'major_faults'")["ok"]
    said = verdict(made)
    assert said["dominant"] == "compute" and said["sentence"].startswith("Computing takes")
    assert "do not agree" in said["sentence"] and "not what it waits for" not in said["sentence"]


@pytest.mark.parametrize(
    ("counts", "swapped", "said"),
    [
        ({"minor": 900_007}, 0, "what those page faults are: memory that the kernel faults in"),
        ({"major": 20_011}, 0, "what those page faults waited for: pages"),
        ({}, 20_011, "what brought those pages back from swap"),
    ],
    ids=["minor", "major", "swap"],
)
def test_what_cannot_be_advised_is_what_was_not_seen(counts: dict[str, int], swapped: int, said: str) -> None:
    made = computing(**counts)
    made.database.execute("UPDATE sample SET place = 'kernel'")
    if swapped:
        made.database.execute("UPDATE process_slice SET swap_bytes = 4096")
        made.row("system_counter", name="pswpin", value=swapped)
        made.meta(swap_in_counted="1")
    (found,) = made.rows("SELECT code, text FROM finding")
    assert found["code"] == "none" and found["text"].startswith("Nothing can be advised before it is known " + said)
    notes = [row["text"] for row in made.rows("SELECT text FROM note")]
    assert any("in calls that are not watched, as a driver's ioctl" in note for note in notes) == bool(counts)
    assert not any("MAP_POPULATE" in note for note in notes)


@pytest.mark.parametrize("swapped", [False, True])
def test_major_faults_unseen_may_be_of_files_and_of_swap(swapped: bool) -> None:
    """What was never seen takes what a disk does: 20,011 of 100 us, all of it asleep."""
    made = computing(major=20_011)
    if swapped:
        made.swap("out_kswapd", 30_011)
    said = verdict(made)
    assert said["sentence"].startswith(
        "Not all was seen: the kernel counts 20,011 page faults (20,011 of them waited for a file or for swap) more "
        "than memtoll, which may take up to 67 % of the observed time. What dominates is not known:"
    )
    assert said["dominant"] == "none" and said["low"] == pytest.approx(1 / 3, rel=0.06)
    assert made.toll("file.fault")["high"] == pytest.approx(2 / 3, rel=0.01)
    assert made.toll("swap.in")["high"] == pytest.approx(2 / 3 if swapped else 0, rel=0.01)
    assert made.toll("zero.kernel")["high"] < 0.01
    assert made.toll("compute")["low"] == pytest.approx(1 / 3, rel=0.06)


def test_major_faults_unseen_take_what_the_others_did() -> None:
    made = computing(major=2_003 + 1_009)
    made.fault("file_major", 1_009, 20 * US + FAULT_INSIDE, area="file", blocked_ns=1_009 * 180 * US)
    seen = made.toll("file.fault")
    assert seen["time_ns"] == pytest.approx(1_009 * 200 * US, rel=0.01)
    assert seen["high"] == pytest.approx(3_012 * 200 / (1e6 + 3_012 * 180), rel=0.02)
    assert verdict(made)["sentence"].startswith("Not all was seen: the kernel counts 2,003 page faults (2,003")


@pytest.mark.parametrize("passed", [0, 2_003])
def test_major_faults_that_were_passed_over_are_counted(passed: int) -> None:
    """Thinning counts those that it does not look at: no disagreement, and no less time in doubt."""
    made = computing(major=2_003 + 1_009)
    made.fault("file_major", 1_009, 20 * US + FAULT_INSIDE, area="file", blocked_ns=1_009 * 180 * US)
    if passed:
        made.row("loss", slice=1, name="faults_passed", count=passed)
    check = made.one("SELECT * FROM checks WHERE name = 'major_faults'")
    assert (check["ours"], check["ok"]) == (1_009 + passed, passed > 0)
    assert made.toll("file.fault")["high"] >= 0.98 * 3_012 * 200 / (1e6 + 3_012 * 180)


@pytest.mark.parametrize(("counted", "has"), [(False, True), (True, False), (True, True)])
def test_pages_from_swap_unseen_are_swap(counted: bool, has: bool) -> None:
    """Where those of all processes are counted, and it has some on swap; else they may be anybody's."""
    made = computing()
    if has:
        made.database.execute("UPDATE process_slice SET swap_bytes = 4096")
    for name in SWAPPED:
        made.row("system_counter", name=name, value=20_011)
    if counted:
        made.meta(swap_in_counted="1")
    said = verdict(made)
    doubted = said["sentence"].startswith("Not all was seen: the kernel counts 40,022 pages from swap more than")
    assert doubted == (counted and has), said
    assert made.toll("swap.in")["high"] == pytest.approx(40_022 * 12_500 / S if doubted else 0, rel=0.01)
    assert "not what it waits for" not in said["sentence"]


def test_swap_of_others_is_no_matter_to_a_process_without_any() -> None:
    """A neighbour swaps, and of what is its a part is missing: each fault of the target itself was seen."""
    made = computing()
    made.row("system_counter", name="pswpin", value=40_022)
    made.swap("in_device", 37_003, pid=0)
    made.meta(swap_in_counted="1")
    assert not made.one("SELECT * FROM checks WHERE name = 'swapped_in'")["ok"]
    assert "memory is not what it waits for" in verdict(made)["sentence"]
    made.swap("out_kswapd", 11)
    said = verdict(made)["sentence"]
    assert "not what it waits for" not in said and "do not agree" in said


@pytest.mark.parametrize("direct", [0, 1])
def test_faults_inside_a_read_are_taken_out_at_their_own_price(direct: int) -> None:
    """Past the page cache the kernel takes them for the program: other ones, and no probe is hit."""
    made = computing(minor=10_007)
    made.fault("zero", 101, 2 * US + FAULT_INSIDE)
    made.fault("zero_populated", 211, 5 * US)
    made.row(
        "file_read",
        **dict.fromkeys(("failed", "blocked_ns", "cached_calls", "cached_bytes", "filled_pages"), 0)
        | {"slice": 1, "pid": 42, "file": 1, "call": "pread64", "stack_id": 0, "direct": direct}
        | {"calls": 7, "bytes": 211 * PAGE, "cpu_ns": 9 * MS, "faults": 211},
    )
    each = 5 * US if direct else 2 * US + FAULT_HIT
    assert made.toll("file.read")["time_ns"] == pytest.approx(9 * MS - 211 * each)


def test_time_asleep_in_a_call_that_faults_pages_in_is_of_that_call() -> None:
    made = computing(minor=211)
    made.fault("zero_populated", 211, 5 * US, blocked_ns=3 * MS)
    assert made.one("SELECT populated_ns FROM populate_measure")["populated_ns"] == pytest.approx(211 * 5 * US + 3 * MS)


def test_a_few_major_faults_do_not_widen_what_clears() -> None:
    made = computing(major=7, minor=100_003)
    made.fault("zero", 100_003, 2 * US + FAULT_INSIDE)
    zero = made.toll("zero.kernel")
    assert not made.one("SELECT * FROM checks WHERE name = 'major_faults'")["ok"]
    assert zero["share"] * 0.9 < zero["low"] <= zero["share"] <= zero["high"] < zero["share"] * 1.1


def test_faults_that_only_memtoll_counts_are_said() -> None:
    made = computing(minor=100_003)
    made.fault("zero", 300_007, 2 * US + FAULT_INSIDE)
    said = verdict(made)
    assert said["sentence"].startswith(
        "Not all is certain: memtoll counts 200,004 page faults more than the kernel, of"
    )
    assert said["dominant"] == "zeroing" and said["low"] < 0.6 * 0.4


def with_memory(mapping_ns: float, faults: int) -> Facts:
    made = computing(minor=faults)
    made.fault("zero", faults, 2 * US + FAULT_INSIDE)
    made.map_call(
        "munmap", made.stack(("drop", "/src/work.c", 19)), 1_009, 1_009 * PAGE, mapping_ns + 1_009 * MAP_INSIDE
    )
    return made


@pytest.mark.parametrize(
    ("mapping_ms", "faults", "said"),
    [
        (0, 503, "memory is not what it waits for (0.1 % in all, most in zeroing: 0.1 %)."),
        (340, 70_001, "memory takes 48 % in all, most in mapping: 34 %."),
        (120, 10_007, "memory takes 14 % in all, most in mapping: 12 %."),
    ],
)
def test_computing_names_the_largest_of_memory(mapping_ms: int, faults: int, said: str) -> None:
    made = with_memory(mapping_ms * MS, faults)
    sentence = verdict(made)["sentence"]
    assert sentence.startswith("Computing takes") and sentence.endswith(said), sentence


def test_computing_that_leads_and_does_not_dominate_names_it_too() -> None:
    made = with_memory(300 * MS, 140_009)
    made.fault("cow", 70_001, 2 * US + FAULT_INSIDE)
    made.fault("file_minor", 60_013, 2 * US + FAULT_INSIDE)
    made.database.execute("UPDATE process_slice SET minor_faults = minor_faults + 70001 + 60013")
    made.database.execute("UPDATE process_slice SET cpu_ns = cpu_ns + 200000000")
    made.database.execute("UPDATE sample SET samples = 30")
    said = verdict(made)
    assert said["dominant"] == "none", said
    assert "the largest, compute, takes" in said["sentence"]
    assert said["sentence"].endswith("Memory takes 70 % in all, most in mapping: 25 %."), said


def test_access_that_ends_in_a_signal_is_no_fault_of_the_kernels_count() -> None:
    """A write barrier by mprotect and SIGSEGV: the kernel counts only what it has answered with a page."""
    made = computing(minor=2_003)
    made.fault("zero", 2_003, 1 * US)
    made.fault("forbidden", 18_433, 1 * US)
    row = made.one("SELECT * FROM checks WHERE name = 'minor_faults'")
    assert (row["ours"], row["kernel"], row["ok"]) == (2_003, 2_003, 1)
    assert made.toll("fault.other")["count"] == 18_433
