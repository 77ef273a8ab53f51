# SPDX-License-Identifier: GPL-2.0
"""The judgements: facts written by hand, figures worked out by hand. No root, no tracer.

The text reports of the scenarios are kept in golden/. After a wanted change of the text:

    MEMTOLL_ACCEPT=1 python3 -m pytest views/test_views.py -k golden
"""

from __future__ import annotations

import json
import re
import sqlite3
import subprocess
from pathlib import Path
from typing import Any

import pytest

import facts
from facts import CALLER, CLEAR_4K, FAULT_HIT, FAULT_NS, HIT, INSIDE, MALLOC_NS, MAP_INSIDE, MIB, MS, PAGE, US, Facts, S
from golden import is_golden
from harness import MEMTOLL, assert_refused, integrity, memtoll
from shape import check_report


@pytest.fixture
def plain() -> Facts:
    """One process, one second of CPU time, nothing else."""
    made = Facts()
    made.prices()
    made.slice()
    made.process()
    made.cpu(S)
    return made


def advice(made: Facts) -> dict[str, dict[str, Any]]:
    return {row["code"]: row for row in made.judged("finding", "SELECT * FROM finding ORDER BY position")}


def verdict(made: Facts) -> dict[str, Any]:
    return made.one("SELECT * FROM verdict")


# Observed time and prices.


def probed(made: Facts, probe: int, other: int) -> dict[str, Any]:
    """Mallocs whose calibrated price is half of the CPU time; so many samples lie in their probes and elsewhere."""
    made.hits(malloc=int(S / 2 / HIT))
    made.samples("probe", probe)
    made.samples("user", other)
    return made.one("SELECT * FROM uprobe_profile")


def test_samples_that_agree_with_the_prices_are_not_used(plain: Facts) -> None:
    """Few samples: their error is the larger one."""
    row = probed(plain, probe=9, other=9)
    assert not row["sampled"] and row["scale"] == 1 and row["error"] is None
    assert row["priced_ns"] == pytest.approx(S / 2, rel=1e-5)
    assert plain.one("SELECT * FROM overhead_error")["source"] == "prices"


def test_samples_that_contradict_the_prices_are_believed(plain: Facts) -> None:
    """A hit costs half of what was calibrated: of 400 samples 100 lie in the probes, not 200."""
    row = probed(plain, probe=100, other=300)
    assert row["sampled"]
    assert row["sampled_ns"] == pytest.approx(0.25 * S)
    assert row["scale"] == pytest.approx(0.5, rel=1e-5)
    # Agresti and Coull about 102 / 404, and one part in fifty.
    part = 102 / 404
    error = 1.96 * (part * (1 - part) / 404) ** 0.5 + abs(part - 0.25) + 0.02 * 0.25
    assert row["sampled_error_ns"] == pytest.approx(error * S, rel=1e-6)
    assert plain.one("SELECT * FROM overhead_error")["source"] == "samples"
    assert plain.one("SELECT * FROM process_observed")["overhead_ns"] == pytest.approx(0.25 * S)


def test_no_sample_in_a_probe_says_nothing(plain: Facts) -> None:
    """A kernel that hides where its code is."""
    assert not probed(plain, probe=0, other=400)["sampled"]


def test_overhead_is_taken_out_and_sleep_in_faults_added(plain: Facts) -> None:
    plain.hits(malloc=100_003, calloc=1_009)
    plain.fault("swap_major", 97, 30 * US, blocked_ns=97 * 2 * MS)
    row = plain.one("SELECT * FROM process_observed")
    assert row["overhead_ns"] == pytest.approx(101_012 * HIT)
    # The hits' errors are 101,012 * 10 ns; a tenth of the overhead is more.
    assert row["overhead_error_ns"] == pytest.approx(0.1 * row["overhead_ns"])
    assert row["observed_ns"] == pytest.approx(S - 101_012 * HIT + 97 * 2 * MS)


def test_price_below_its_error(plain: Facts) -> None:
    """It is charged as it was measured, and named with the most that it can have been; who was not hit is not."""
    plain.row("price", probe="syscall", hit_ns=0.0, inside_ns=0.0, error_ns=15.0)
    plain.row("price", probe="read_other", hit_ns=12.0, inside_ns=0.0, error_ns=12.0)
    plain.row("price", probe="read", hit_ns=12.5, inside_ns=0.0, error_ns=12.0)
    plain.row("price", probe="idle", hit_ns=0.0, inside_ns=0.0, error_ns=15.0)
    plain.hits(syscall=200_003, read_other=1_009, read=1_013, malloc=11)
    assert plain.rows("SELECT probe, hits, hit_ns, error_ns, most_ns FROM price_untold ORDER BY probe") == [
        {"probe": "read_other", "hits": 1_009, "hit_ns": 12, "error_ns": 12, "most_ns": 24 * 1_009},
        {"probe": "syscall", "hits": 200_003, "hit_ns": 0, "error_ns": 15, "most_ns": 15 * 200_003},
    ]
    charged = plain.one("SELECT * FROM probe_overhead WHERE probe = 'syscall'")
    assert (charged["overhead_ns"], charged["error_ns"]) == (0, 15 * 200_003)


def test_report_names_a_price_below_its_error(tmp_path: Path) -> None:
    path = tmp_path / "a.memtoll"
    made = facts.heap_blocks(path)
    made.row("price", probe="syscall", hit_ns=0.0, inside_ns=0.0, error_ns=15.0)
    made.save()
    assert "measurably from zero" not in memtoll("report", "--full", path).stdout, "nothing hit it"
    made.hits(syscall=200_003)
    made.save()
    text = " ".join(memtoll("report", "--full", path).stdout.split())
    assert (
        "The price of other system calls, while some are watched (syscall) does not differ measurably from zero here, "
        "0 +- 15 ns a hit: 200,003 hits took at most 3.00 ms." in text
    ), text
    overhead = json.loads(memtoll("report", path, "--json").stdout)["overhead"]
    assert (overhead["ns_per_hit"]["syscall"], overhead["ns_per_hit_error"]["syscall"]) == (0, 15)


def test_function_without_price_costs_what_malloc_costs(plain: Facts) -> None:
    plain.hits(memalign=1_009)
    assert plain.one("SELECT * FROM observed")["overhead_ns"] == pytest.approx(1_009 * HIT)


@pytest.mark.parametrize("probe", ["fault", "map"])
def test_hit_costs_what_it_was_seen_to_cost_more(plain: Facts, probe: str) -> None:
    """fault_more raises the price of a fault, where it is charged; it is no probe, and nothing hits it."""
    plain.hits(**{probe: 1_009})
    before = plain.one("SELECT * FROM process_observed")
    plain.row("price", probe=f"{probe}_more", hit_ns=300.0, inside_ns=0.0, error_ns=30.0)
    after = plain.one("SELECT * FROM process_observed")
    assert after["overhead_ns"] - before["overhead_ns"] == pytest.approx(1_009 * 300)
    assert after["hits"] == before["hits"] == 1_009
    assert plain.rows("SELECT probe, hits FROM probe_overhead") == [{"probe": probe, "hits": 1_009}]


@pytest.mark.parametrize("probe", ["read", "map"])
def test_what_a_hit_was_paid_takes_the_place_of_its_calibration(plain: Facts, probe: str) -> None:
    """Of the error, too."""
    plain.database.execute("DELETE FROM price WHERE probe = ?", (probe,))
    plain.row("price", probe=probe, hit_ns=700.0, inside_ns=0.0, error_ns=7.0)
    plain.row("price", probe=f"{probe}_paid", hit_ns=1_000.0, inside_ns=0.0, error_ns=101.0)
    sql = f"SELECT hit_ns, error_ns FROM probe_price WHERE probe = '{probe}'"
    assert plain.one(sql) == {"hit_ns": 1_000.0, "error_ns": 101.0}
    plain.row("price", probe=f"{probe}_more", hit_ns=300.0, inside_ns=0.0, error_ns=30.0)
    assert plain.one(sql)["error_ns"] == 101.0 + (30.0 if probe == "map" else 0.0)


def test_fault_price_is_the_mean_less_the_probe(plain: Facts) -> None:
    plain.fault("zero", 1_000, 900)
    plain.fault("zero", 1_000, 1_700, area="heap")
    row = plain.one("SELECT * FROM fault_price WHERE class = 'zero'")
    assert row["source"] == "timed"
    assert row["mean_ns"] == pytest.approx(1_300 - 100)
    # All were timed: only the price's error is left.
    assert row["error_ns"] == pytest.approx(5)


@pytest.mark.parametrize("inside", [250.0, -250.0], ids=["probe", "entry-and-exit"])
def test_fault_price_is_the_whole_fault(plain: Facts, inside: float) -> None:
    """Between the timestamps is more than the fault by the probe's part, or less by what lies outside of them."""
    plain.calibrate_fault(FAULT_NS, inside)
    plain.fault("zero", 100, 1_500.0 + inside)
    assert plain.one("SELECT mean_ns FROM fault_price WHERE class = 'zero'")["mean_ns"] == pytest.approx(1_500)


def test_fault_price_without_a_calibration(plain: Facts) -> None:
    plain.database.execute("DELETE FROM calibration WHERE name LIKE 'fault_timed%'")
    plain.fault("zero", 100, 1_500)
    assert plain.one("SELECT mean_ns FROM fault_price WHERE class = 'zero'")["mean_ns"] == pytest.approx(1_500)


def test_fault_price_error_is_the_standard_error(plain: Facts) -> None:
    """10 timed of 1000, alternately 4 and 8 us: deviation 2 us, and up to 1 us that the cut hides."""
    plain.fault(
        "zero",
        1_000,
        None,
        timed_faults=10,
        timed_cpu_ns=5 * 4_000 + 5 * 8_000,
        timed_cpu_us2=5 * 16 + 5 * 64,
    )
    row = plain.one("SELECT * FROM fault_price WHERE class = 'zero'")
    variance_us2 = 400 / 10 - (6 - 0.5) ** 2 + 1
    expected = 1.96 * 1e3 * (variance_us2 / 9 * 0.99) ** 0.5 + 5
    assert row["error_ns"] == pytest.approx(expected, rel=1e-6)
    assert row["mean_ns"] == pytest.approx(5_900)


@pytest.mark.parametrize(
    ("fault_class", "price"),
    [
        ("zero", FAULT_NS),
        ("zero_read", FAULT_NS),
        ("zero_upgrade", FAULT_NS),
        ("file_minor", FAULT_NS),
        ("shared_minor", FAULT_NS),
        ("zero_huge", FAULT_NS + 2 * MIB / 20e9 * 1e9),
        ("cow", 1_400.0),  # the mean of the minor faults that were timed
    ],
)
def test_untimed_class_falls_back_and_is_half_uncertain(plain: Facts, fault_class: str, price: float) -> None:
    plain.fault("swap_minor", 100, 1_500)
    plain.fault("swap_major", 100, 90_000)
    plain.fault(fault_class, 1_000, None)
    row = plain.one("SELECT * FROM fault_price WHERE class = ?", fault_class)
    assert row["mean_ns"] == pytest.approx(price)
    assert row["error_ns"] == pytest.approx(price / 2)
    assert row["source"] != "timed"


def test_sleep_of_untimed_minor_faults_is_scaled(plain: Facts) -> None:
    plain.fault("zero", 1_000, None, timed_faults=100, timed_cpu_ns=100 * 1_100, timed_cpu_us2=100, blocked_ns=5 * MS)
    assert plain.toll("zero.kernel")["time_ns"] == pytest.approx(1_000 * 1_000 + 10 * 5 * MS)
    assert plain.one("SELECT * FROM observed")["blocked_ns"] == pytest.approx(50 * MS)


# Tolls.


def test_faults_by_toll(plain: Facts) -> None:
    plain.fault("zero", 1_009, FAULT_NS + 100)
    plain.fault("zero_huge", 11, 150_100, pages=11 * 512)
    plain.fault("zero_read", 101, FAULT_NS + 100)
    plain.fault("zero_upgrade", 103, FAULT_NS + 100)
    plain.fault("cow", 107, 2_100)
    plain.fault("swap_minor", 109, 3_100)
    plain.fault("swap_major", 113, 9_100, blocked_ns=113 * MS)
    plain.fault("file_minor", 127, 1_100, pages=127 * 16)
    plain.fault("shared_minor", 131, 1_100)
    plain.fault("other", 137, 1_100)
    zero = plain.toll("zero.kernel")
    assert zero["count"] == 1_009 + 11 + 101 + 103
    assert zero["pages"] == 1_009 + 11 * 512 + 103
    assert zero["bytes"] == zero["pages"] * PAGE
    assert zero["time_ns"] == pytest.approx((1_009 + 101 + 103) * FAULT_NS + 11 * 150_000)
    # a huge fault is all clearing but the work of a small one
    assert zero["clear_ns"] == pytest.approx((1_009 + 103) * PAGE / 16 + 11 * (150_000 - FAULT_NS))
    cow, swap, file = plain.toll("cow"), plain.toll("swap.in"), plain.toll("file.fault")
    assert (cow["count"], cow["bytes"]) == (107, 107 * PAGE)
    assert cow["time_ns"] == pytest.approx(107 * 2_000)
    assert (swap["count"], swap["bytes"]) == (222, 222 * PAGE)
    assert swap["time_ns"] == pytest.approx(109 * 3_000 + 113 * (9_000 + MS))
    assert (file["count"], file["bytes"]) == (258, (127 * 16 + 131) * PAGE)
    total = plain.one("SELECT SUM(time_ns) AS time_ns FROM toll")["time_ns"]
    assert total == pytest.approx(plain.one("SELECT * FROM observed")["observed_ns"])


@pytest.mark.parametrize(("faults", "times", "timed"), [(8, 2, True), (7, 2, False), (8, 9, False)])
def test_clearing_of_huge_pages_is_as_it_was_timed(plain: Facts, faults: int, times: int, timed: bool) -> None:
    """Too few say nothing; what takes nine times the calibrated price waited for something else."""
    clear_ns = 2 * MIB / 20
    each_ns = times * (FAULT_NS + clear_ns)
    plain.fault("zero_huge", faults, each_ns + 100, pages=faults * 512)
    expected = each_ns - FAULT_NS if timed else clear_ns
    assert plain.toll("zero.kernel")["clear_ns"] == pytest.approx(faults * expected)


def test_clearing_is_at_most_the_fault(plain: Facts) -> None:
    plain.fault("zero", 1_000, 120)
    zero = plain.toll("zero.kernel")
    assert zero["clear_ns"] == pytest.approx(zero["time_ns"]) == pytest.approx(20_000)


@pytest.mark.parametrize(("clearing", "rated"), [(9, False), (1, True), (0, True)])
def test_clearing_is_no_less_than_samples_show(plain: Facts, clearing: int, rated: bool) -> None:
    """Nine of a hundred bound it from below, where the calibrated rate, of another moment, says a fortieth."""
    pages, samples = 100_003, 100
    plain.fault("zero", pages, 4 * US + 100)
    plain.samples("fault", 40, clearing=clearing)
    plain.samples("user", samples - 40)
    (cpu_ns,) = plain.one("SELECT SUM(cpu_ns) FROM process_slice").values()
    part = (clearing + 2) / (samples + 4)
    least = (part - 1.96 * (part * (1 - part) / (samples + 4)) ** 0.5) * cpu_ns
    clear_ns = plain.toll("zero.kernel")["clear_ns"]
    assert clear_ns == pytest.approx(pages * PAGE / 16 if rated else least, rel=1e-3)


def test_libc_clearing_less_probes_faults_and_mapping(plain: Facts) -> None:
    site = plain.stack(("calloc", "", 0), ("main", "/src/a.c", 3))
    calls, cleared, faults = 101, 97, 1_009
    plain.fault("zero", faults, FAULT_NS + 100, in_call="calloc", allocated_stack=site, allocated_call="calloc")
    memset, maps = 50 * US, 101 * 2 * US
    rest = 4 * (INSIDE + 3 * US)
    cleared_ns = cleared * (memset + INSIDE + MALLOC_NS + 2 * US + 300) + faults * (FAULT_NS + FAULT_HIT)
    plain.call(
        "calloc",
        site,
        calls,
        cpu_ns=round(cleared_ns + rest),
        map_cpu_ns=maps,
        map_calls=calls,
        faults=faults,
        cleared_calls=cleared,
        cleared_cpu_ns=round(cleared_ns),
        cleared_bytes=cleared * MIB,
        cleared_faults=faults,
    )
    libc = plain.toll("zero.libc")
    assert libc["time_ns"] == pytest.approx(cleared * memset, rel=1e-6)
    assert (libc["count"], libc["bytes"]) == (cleared, cleared * MIB)
    # What is left of the calls: the allowance of those that cleared and the work of the other four.
    assert plain.toll("alloc")["time_ns"] == pytest.approx(cleared * MALLOC_NS + 4 * (3 * US - 2 * US - 300), abs=1)


def test_calls_of_a_slice_are_summed_before_they_are_cut_at_zero(plain: Facts) -> None:
    """Noise around the probes' price must not add up to time: short calls count as small mallocs, all of it error."""
    plain.slice(2)
    plain.call("malloc", 5, 1_000, cpu_ns=round(1_000 * (INSIDE - 100)))
    plain.call("malloc", 5, 1_000, cpu_ns=round(1_000 * (INSIDE + 100)), slice=2)
    alloc = plain.toll("alloc")
    assert alloc["time_ns"] == pytest.approx(2_000 * MALLOC_NS)
    assert alloc["low_ns"] == 0 and alloc["high_ns"] == pytest.approx(4_000 * MALLOC_NS)


def short_mallocs(plain: Facts, calls: int, off_ns: float, rest_ns: float = 0) -> None:
    """Nothing but short mallocs of 20 ns, whose probes take off_ns more than they were calibrated to."""
    plain.call("malloc", 5, calls, cpu_ns=round(calls * (INSIDE + 20 + off_ns * INSIDE / HIT)))
    plain.hits(malloc=calls)
    plain.cpu(calls * (HIT + 20 + off_ns) + rest_ns, number=2)


@pytest.mark.parametrize("off_ns", [-90, 0, 40])
def test_nothing_but_short_mallocs_is_not_over_corrected(plain: Facts, off_ns: float) -> None:
    """However the price of the probes came out, the same is said: that it allocates, with little confidence."""
    calls = 3_000_017
    plain.database.execute("DELETE FROM process_slice")
    short_mallocs(plain, calls, off_ns)
    alloc = plain.toll("alloc")
    assert alloc["time_ns"] == pytest.approx(calls * MALLOC_NS)
    assert alloc["low"] <= 0.01 and alloc["high"] == 1
    assert plain.one("SELECT doubtful FROM observed")["doubtful"] == 1
    verdict = plain.one("SELECT * FROM verdict")
    assert verdict["dominant"] == "allocator" and "Low confidence" in verdict["sentence"]
    notes = " ".join(row["text"] for row in plain.rows("SELECT text FROM note"))
    assert "low confidence" in notes and "small mallocs" in notes
    assert [row["code"] for row in plain.rows("SELECT code FROM finding")] == ["none"]


def test_short_calls_take_no_more_than_samples_have_room_for(plain: Facts) -> None:
    """The calibration says a fiftieth; of four hundred samples none was in the allocator."""
    calls, samples = 1_000_003, 400
    plain.database.execute("DELETE FROM process_slice")
    short_mallocs(plain, calls, 0, rest_ns=80 * MS)
    plain.samples("probe", 355)
    plain.samples("user", samples - 355)
    (cpu_ns,) = plain.one("SELECT SUM(cpu_ns) FROM process_slice").values()
    part = 2 / (samples + 4)
    most = (part + 1.96 * (part * (1 - part) / (samples + 4)) ** 0.5) * cpu_ns
    assert most < 0.7 * calls * MALLOC_NS
    alloc = plain.toll("alloc")
    assert alloc["time_ns"] == pytest.approx(most, rel=1e-3)
    assert alloc["low_ns"] == 0


def test_slow_calls_are_measured_among_short_ones(plain: Facts) -> None:
    """What a few slow calls took stands, however many short ones there are."""
    calls, slow = 1_000_003, 7
    plain.call(
        "malloc",
        5,
        calls,
        cpu_ns=round((calls - slow) * (INSIDE - 30) + slow * (5 * MS + INSIDE)),
        slow_calls=slow,
        slow_cpu_ns=round(slow * (5 * MS + INSIDE)),
    )
    assert plain.toll("alloc")["time_ns"] == pytest.approx(slow * 5 * MS + (calls - slow) * MALLOC_NS)


def test_computing_beside_short_mallocs_is_told(plain: Facts) -> None:
    """Where the rest is well above the error of the probes' price, it is counted as before."""
    plain.database.execute("DELETE FROM process_slice")
    short_mallocs(plain, 1_000_003, 0, 1 * S)
    assert plain.one("SELECT doubtful FROM observed")["doubtful"] == 0
    assert plain.toll("compute")["time_ns"] == pytest.approx(1 * S, rel=0.02)
    assert plain.one("SELECT dominant FROM verdict")["dominant"] == "compute"


def test_untimed_calls_count_as_small_ones(plain: Facts) -> None:
    plain.call("free", 5, 1_009, timed_calls=0)
    alloc = plain.toll("alloc")
    assert alloc["time_ns"] == pytest.approx(1_009 * MALLOC_NS)
    assert alloc["low_ns"] == 0


def test_unknown_allocator_is_divided_by_samples(plain: Facts) -> None:
    site = plain.stack(("calloc", "", 0), ("main", "/src/a.c", 3))
    plain.call("calloc", site, 10, known_clearing=0, cpu_ns=round(10 * (INSIDE + 20 * MS)))
    plain.samples("calloc_memset", 15, site, in_call="calloc")
    plain.samples("allocator", 5, site, in_call="calloc")
    plain.samples("fault", 50, site, in_call="calloc")  # no part of the call's net time
    plain.samples("map", 7, site, in_call="calloc")
    plain.fault(
        "zero", 211, FAULT_NS + 100, in_call="calloc", in_memset=1, allocated_stack=site, allocated_call="calloc"
    )
    libc = plain.toll("zero.libc")
    assert libc["time_ns"] == pytest.approx(200 * MS * 15 / 20)
    p = 17 / 24
    error = abs(p - 15 / 20) + 1.96 * (p * (1 - p) / 24) ** 0.5
    assert libc["high_ns"] - libc["time_ns"] == pytest.approx(200 * MS * error)
    assert libc["bytes"] == 211 * PAGE
    assert plain.one("SELECT * FROM sites WHERE toll = 'zero.libc'")["bytes"] == 211 * PAGE


def test_known_clearing_is_not_divided_by_samples(plain: Facts) -> None:
    plain.call("calloc", 5, 10, cpu_ns=round(10 * (INSIDE + 20 * MS)))
    plain.samples("calloc_memset", 20, 5, in_call="calloc")
    assert plain.toll("zero.libc")["time_ns"] == 0
    assert plain.toll("alloc")["time_ns"] == pytest.approx(200 * MS)


def test_memset_of_the_program_by_samples(plain: Facts) -> None:
    stack = plain.stack(("__memset_avx2", "", 0), ("clear", "/src/a.c", 9))
    plain.samples("memset", 60, stack)
    plain.samples("user", 40, stack)
    plain.fault("zero", 307, FAULT_NS + 100, in_memset=1, touched_stack=stack)
    plain.fault("zero", 311, FAULT_NS + 100, in_memset=1, in_call="calloc")
    app = plain.toll("zero.app")
    assert app["time_ns"] == pytest.approx(0.6 * S)
    assert (app["count"], app["bytes"], app["bytes_estimated"]) == (60, 72_000_000_000, 1)
    p = 62 / 104
    assert app["low_ns"] == pytest.approx((p - 1.96 * (p * (1 - p) / 104) ** 0.5) * S)
    assert plain.one("SELECT * FROM sites WHERE toll = 'zero.app'")["time_ns"] == pytest.approx(0.6 * S)


def test_bytes_of_loops_are_no_more_than_they_can_store(plain: Facts) -> None:
    buffer = plain.stack(("malloc", "", 0), ("make", "/src/a.c", 3))
    wipe = plain.stack(("wipe", "/src/a.c", 9))
    plain.samples("memset", 50, wipe, bytes_per_16_cycles=16, allocated_stack=buffer, allocated_call="malloc")
    plain.samples("memset", 20, wipe, bytes_per_16_cycles=16 * 64)
    plain.samples("user", 30)
    # A byte a cycle; and more than memset does.
    assert plain.toll("zero.app")["bytes"] == round(0.5 * 3e9 + 0.2 * 120e9)
    site = plain.one("SELECT * FROM sites WHERE toll = 'zero.app' AND allocated_stack <> 0")
    assert (site["call"], site["allocated_stack"], site["touched_stack"]) == ("malloc", buffer, wipe)
    assert (site["count"], site["bytes"]) == (50, round(0.5 * 3e9))
    verdict = plain.one("SELECT dominant, sentence FROM verdict")
    assert verdict["dominant"] == "zeroing"
    assert "its own code, outside the allocator, clears about 23.7 GiB" in verdict["sentence"]
    assert "most at a.c:9 (wipe), in memory of malloc at a.c:3 (make)." in verdict["sentence"]


@pytest.mark.parametrize(
    ("spread", "rate"), [(0, 120e9), (20_011, 300e9), (300_007, 200e9), (3_000_017, 120e9), (23_000_003, 10e9)]
)
def test_bytes_go_by_the_cache_that_holds_them(plain: Facts, spread: int, rate: float) -> None:
    for name, value in (("near", 300e9), ("middle", 200e9), ("far", 10e9)):
        plain.row("calibration", name=f"memset_{name}_bytes_per_s", value=value)
    wipe = plain.stack(("wipe", "/src/a.c", 9))
    # What is not known of one slice goes by the others.
    plain.samples("memset", 30, wipe, spread_bytes=spread)
    plain.samples("memset", 20, wipe, slice=2)
    plain.samples("copy", 10, wipe, spread_bytes=spread)
    plain.samples("user", 40)
    assert plain.toll("zero.app")["bytes"] == round(0.5 * rate)
    assert plain.toll("copy.app")["bytes"] == round(0.1 * rate / 2)


@pytest.mark.parametrize(("clear", "slowest"), [(CLEAR_4K, 10e9), (7e9, 7e9), (0.0, 10e9)])
def test_fillings_whose_spread_is_not_known_are_of_far_memory_at_least(
    plain: Facts, clear: float, slowest: float
) -> None:
    """The slower of what stores and the kernel's clearing of far memory take, where that could be measured."""
    plain.database.execute("UPDATE calibration SET value = ? WHERE name = 'clear_4k_bytes_per_s'", (clear,))
    plain.row("calibration", name="memset_far_bytes_per_s", value=10e9)
    plain.samples("memset", 50, plain.stack(("wipe", "/src/a.c", 9)))
    plain.samples("user", 50)
    app = plain.toll("zero.app")
    assert app["bytes_low"] == pytest.approx(0.5 * app["low_ns"] / 1e9 * slowest, rel=1e-6)


def test_bytes_go_by_the_length_of_a_filling_and_have_bounds(plain: Facts) -> None:
    for name, value in (("memset_near_bytes_per_s", 100e9), ("memset_begin_ns", 10), ("string_begin_ns", 20)):
        plain.row("calibration", name=name, value=value)
    wipe = plain.stack(("wipe", "/src/a.c", 9))
    stack = {"spread_bytes": 4096, "length_bytes": 2000, "area": "stack", "area_name": "worker"}
    plain.samples("memset", 60, wipe, **stack)
    plain.samples("user", 40)
    app = plain.toll("zero.app")
    # 2000 bytes in 20 ns of storing and 20 ns of beginning.
    assert app["bytes"] == pytest.approx(0.6 * 50e9)
    assert app["bytes_low"] == pytest.approx(0.5 * app["low_ns"] / 1e9 * 50e9, rel=1e-6)
    assert app["bytes_high"] == pytest.approx(1.4 * app["high_ns"] / 1e9 * 50e9, rel=1e-6)
    sentence = plain.one("SELECT sentence FROM verdict")["sentence"]
    assert "clears about 27.9 GiB (11.7 GiB to 45.0 GiB)" in sentence
    assert "most at a.c:9 (wipe), on the stack of thread worker." in sentence
    assert plain.one("SELECT area FROM sites WHERE toll = 'zero.app'")["area"] == "stack of thread worker"


@pytest.mark.parametrize(("copied", "text"), [(70, "most of it, 70 %"), (20, "20 % of the time it copies"), (3, "")])
def test_copying_is_computing_and_said_so(plain: Facts, copied: int, text: str) -> None:
    plain.samples("copy", copied, plain.stack(("__memmove_avx", "", 0), ("move", "/src/a.c", 7)))
    plain.samples("user", 100 - copied)
    copy = plain.toll("copy.app")
    assert (copy["family"], copy["time_ns"]) == ("compute", pytest.approx(copied / 100 * S))
    assert copy["bytes"] == pytest.approx(copied / 100 * 60e9)
    assert plain.toll("compute")["time_ns"] == pytest.approx((100 - copied) / 100 * S)
    family = plain.one("SELECT * FROM family WHERE family = 'compute'")
    assert family["share"] == pytest.approx(1)
    sentence = plain.one("SELECT sentence FROM verdict")["sentence"]
    assert text in sentence
    assert ("a.c:7 (move)" in sentence) == (copied >= 10)


def test_mapping_less_probes(plain: Facts) -> None:
    plain.map_call("mmap", 5, 1_009, 1_009 * MIB, 1_009 * (3 * US + MAP_INSIDE))
    row = plain.toll("map")
    assert (row["count"], row["bytes"]) == (1_009, 1_009 * MIB)
    assert row["time_ns"] == pytest.approx(1_009 * 3 * US)


def test_not_captured_is_null_and_takes_no_time(plain: Facts) -> None:
    plain.row("not_captured", toll="map", reason="mapping probes were off")
    plain.map_call("mmap", 5, 1_009, MIB, 100 * MS)
    row = plain.toll("map")
    assert row["not_captured"] == "mapping probes were off"
    assert all(row[name] is None for name in ("time_ns", "share", "low", "high", "count", "bytes", "pages"))
    assert plain.toll("compute")["time_ns"] == pytest.approx(S)
    assert plain.rows("SELECT * FROM sites WHERE toll = 'map'") == []
    assert plain.one("SELECT * FROM family WHERE family = 'mapping'")["share"] is None
    notes = [row["text"] for row in plain.rows("SELECT * FROM note")]
    assert "mapping was not captured: mapping probes were off" in notes
    report = json.loads(plain.one("SELECT json FROM report_json")["json"])
    assert report["toll"]["map"]["time_s"] is None
    assert report["not_captured"]["map"] == "mapping probes were off"


def test_more_than_was_observed_lowers_the_lower_bounds(plain: Facts) -> None:
    plain.map_call("mmap", 5, 1, MIB, 1.25 * S + MAP_INSIDE)
    row = plain.toll("map")
    assert row["share"] == 1
    assert row["low"] == pytest.approx(1.0, abs=1e-6)
    plain.fault("zero", 100_000, 7_600)
    plain.cpu(0, minor=100_000, number=2)
    assert plain.toll("map")["time_ns"] == pytest.approx(1.25 * S)
    # 2.0 s of which 1.0 s can be: each may be half as long.
    assert plain.toll("map")["low"] == pytest.approx(0.625, abs=0.001)
    assert plain.toll("zero.kernel")["low"] == pytest.approx(0.375, abs=0.001)
    assert plain.toll("compute")["time_ns"] == 0


# Bounds, losses and checks.


def test_losses_widen(plain: Facts) -> None:
    plain.fault("zero", 900_000, FAULT_NS + 100, touched_stack=7)
    plain.cpu(0, minor=900_000, number=2)
    before = plain.toll("zero.kernel")
    plain.row("loss", slice=1, name="ring_faults", count=100_000)
    after = plain.toll("zero.kernel")
    assert after["time_ns"] == before["time_ns"]
    assert after["high_ns"] == pytest.approx(before["high_ns"] * 1.1)
    assert after["low_ns"] == pytest.approx(before["low_ns"] * 0.9)
    loss = plain.one("SELECT * FROM losses WHERE name = 'ring_faults'")
    assert loss["share"] == pytest.approx(0.1)
    assert loss["exceeds"]


def test_events_of_threads_without_a_state(plain: Facts) -> None:
    """Their calls are lost as well as their faults: the share is of all that was counted."""
    plain.fault("zero", 900, FAULT_NS + 100)
    plain.cpu(0, minor=900, number=2)
    plain.call("malloc", 7, 98_100)
    plain.row("loss", slice=1, name="thread_state", count=1_000)
    assert plain.one("SELECT * FROM losses WHERE name = 'thread_state'")["share"] == pytest.approx(0.01)
    assert plain.rows("SELECT * FROM losses WHERE exceeds") == []
    plain.slice(2)
    plain.row("loss", slice=2, name="thread_state", count=11)
    assert [row["name"] for row in plain.rows("SELECT * FROM losses WHERE exceeds")] == ["thread_state"]


@pytest.mark.parametrize("name", ["stacks_full", "call_sites"])
def test_lost_places_are_too_much_above_a_hundredth(plain: Facts, name: str) -> None:
    """Nothing of the figures is lost with them, but who is behind those: a part of the events, not of the stacks."""
    stack = plain.stack(("work", "work.c", 7))
    plain.call("malloc", stack, 9_900)
    # These have none, or one that was not kept.
    plain.call("malloc", 0 if name == "call_sites" else 7, 100)
    before = plain.toll("alloc")
    plain.row("loss", slice=1, name=name, count=100)
    loss = plain.one(f"SELECT * FROM losses WHERE name = '{name}'")
    assert loss["share"] == pytest.approx(100 / 10_000)
    assert not loss["exceeds"]
    assert plain.toll("alloc") == before
    plain.slice(2)
    plain.row("loss", slice=2, name=name, count=2)
    assert plain.one(f"SELECT * FROM losses WHERE name = '{name}'")["exceeds"]


def test_stacks_that_were_not_kept_are_a_part_of_all_that_was_walked(plain: Facts) -> None:
    """Faults, calls of either kind and samples; at most all of them."""
    plain.call("malloc", 7, 3_001)
    plain.map_call("mmap", 7, 1_999, 1_999 * PAGE, 10 * MS)
    plain.samples("app", 503, 7)
    plain.fault("zero", 4_497, FAULT_NS + 100)
    plain.row("loss", slice=1, name="stacks_full", count=401)
    assert plain.one("SELECT * FROM losses WHERE name = 'stacks_full'")["share"] == pytest.approx(0.0401)
    plain.slice(2)
    plain.row("loss", slice=2, name="stacks_full", count=100_003)
    assert plain.one("SELECT * FROM losses WHERE name = 'stacks_full'")["share"] == 1


def test_losses_of_pictures_widen_nothing(plain: Facts) -> None:
    plain.fault("zero", 900, FAULT_NS + 100)
    plain.cpu(0, minor=900, number=2)
    plain.row("loss", slice=1, name="runs_unstored", count=100_000)
    assert plain.toll("zero.kernel")["high_ns"] < 1.02 * plain.toll("zero.kernel")["time_ns"]
    assert plain.rows("SELECT * FROM losses WHERE exceeds") == []


@pytest.mark.parametrize(
    ("ours", "kernel", "ok"), [(1_000, 1_010, 1), (1_000, 1_011, 0), (7, 10, 1), (6, 10, 0), (0, 0, 1)]
)
def test_checks_agree_within_one_percent_or_three(ours: int, kernel: int, ok: int) -> None:
    made = Facts()
    made.slice()
    made.process()
    made.cpu(S, minor=kernel, major=5)
    made.fault("zero", ours, None)
    made.fault("file_major", 5, 9_000)
    minor, major = made.rows("SELECT * FROM checks ORDER BY position")
    assert (minor["ours"], minor["kernel"], minor["difference"], minor["ok"]) == (ours, kernel, ours - kernel, ok)
    assert (major["ours"], major["kernel"], major["ok"]) == (5, 5, 1)
    assert made.one("SELECT * FROM widening WHERE toll = 'cow'")["share"] == pytest.approx(
        0 if ok else (kernel - ours) / kernel
    )


# Verdict.


@pytest.mark.parametrize(
    ("zero", "swap", "dominant", "named"),
    [
        (0.5, 0.1, "zeroing", "Zeroing"),
        (0.1, 0.5, "swap", "Swap"),
        (0.36, 0.34, "zeroing", "overlaps"),
        (0.0, 0.0, "compute", "Computing"),
    ],
)
def test_dominant(plain: Facts, zero: float, swap: float, dominant: str, named: str) -> None:
    # Half of each price is uncertain where it was not timed: the ranges overlap.
    plain.calibrate_fault(1_000)
    plain.fault("zero", round(zero * 1e6), None)
    plain.fault("swap_minor", round(swap * 1e6), None)
    row = verdict(plain)
    assert row["dominant"] == dominant
    assert named in row["sentence"]
    assert row["low"] <= row["share"] <= row["high"]


def test_none_dominates_below_a_third(plain: Facts) -> None:
    plain.calibrate_fault(1_000)
    plain.fault("zero", 260_000, 1_100)
    plain.fault("cow", 250_000, 1_100)
    plain.map_call("mmap", 5, 1, MIB, 0.24 * S)
    row = verdict(plain)
    assert row["dominant"] == "none"
    assert "zeroing" in row["sentence"]
    assert row["share"] == pytest.approx(0.26, abs=0.001)


def test_nothing_observed() -> None:
    made = Facts()
    assert verdict(made)["dominant"] == "none"
    assert "Nothing was observed" in verdict(made)["sentence"]


def test_heap_blocks() -> None:
    """Casebook 1, 10 MiB."""
    made = facts.heap_blocks()
    row = verdict(made)
    assert row["dominant"] == "zeroing"
    assert row["share"] > 0.95
    assert "calloc_loop.c:42 (round_once)" in row["sentence"]
    assert "29.3 GiB" in row["sentence"]
    libc = made.toll("zero.libc")
    assert libc["bytes"] == 2999 * 10 * MIB
    assert libc["time_ns"] == pytest.approx(2999 * 83 * US, rel=0.001)
    assert made.one("SELECT * FROM sites WHERE rank = 1")["toll"] == "zero.libc"
    text = advice(made)["calloc-reuse-memset"]["text"]
    assert "10,489,856 bytes" in text
    assert "GLIBC_TUNABLES=glibc.malloc.mmap_threshold=131072" in text
    # The price: 2560 faults of 700 ns against 83 us, so 4.6 % of the block.
    assert "2,560 faults x 700 ns = 1.79 ms" in text
    assert "the program used 0 %" in text


def test_places_of_several_processes_are_one(plain: Facts) -> None:
    """Each process has stacks of its own: three with 16 % each at one line are 48 % there."""
    plain.database.execute("UPDATE process_slice SET cpu_ns = cpu_ns / 2")
    for pid in (42, 43, 44):
        stack = plain.stack(("calloc", "", 0), CALLER, pid=pid)
        plain.call(
            "calloc",
            stack,
            100,
            pid=pid,
            cpu_ns=round(100 * (INSIDE + MALLOC_NS + 0.8 * MS)),
            cleared_calls=100,
            cleared_bytes=100 * MIB,
            cleared_cpu_ns=round(100 * (INSIDE + MALLOC_NS + 0.8 * MS)),
        )
    other = plain.stack(("calloc", "", 0), ("other", "/src/b.c", 1))
    memset = round(100 * (INSIDE + MALLOC_NS + 1.2 * MS))
    plain.call("calloc", other, 100, cpu_ns=memset, cleared_calls=100, cleared_bytes=100 * MIB, cleared_cpu_ns=memset)
    row = verdict(plain)
    assert row["dominant"] == "zeroing"
    assert "clears 400 MiB of reused memory, most at calloc_loop.c:42 (round_once)." in row["sentence"]
    finding = advice(plain)["calloc-reuse-memset"]
    assert finding["gain"] == pytest.approx(0.48, abs=0.005)
    assert "300 of 300 calls" in finding["evidence"]


def test_threshold_as_range_and_unseen() -> None:
    made = facts.heap_blocks()
    made.database.execute("UPDATE allocator SET mmap_threshold_low = 131072")
    assert "between 131,072 bytes and 10,489,856 bytes" in advice(made)["calloc-reuse-memset"]["text"]
    made.database.execute("UPDATE allocator SET mmap_threshold_low = NULL, mmap_threshold_high = NULL")
    assert "not seen exactly" in advice(made)["calloc-reuse-memset"]["text"]


def test_no_tunable_is_advised_where_one_pins_the_threshold() -> None:
    made = facts.heap_blocks()
    made.database.execute("UPDATE allocator SET dynamic = 0")
    codes = advice(made)
    assert "calloc-reuse-memset" not in codes
    assert "131072" not in codes["calloc-memset"]["text"]


def test_mapped_blocks() -> None:
    """Casebook 1, 100 MiB: mapping, and no advice that would make calloc clear."""
    made = facts.mapped_blocks()
    assert verdict(made)["dominant"] == "mapping"
    assert made.toll("zero.libc")["bytes"] == 0
    codes = advice(made)
    assert "calloc-reuse-memset" not in codes
    assert "Do not raise the mmap_threshold" in codes["never-used"]["text"]
    assert "map-churn" not in codes, "its time is promised already"
    assert made.one("SELECT * FROM zeroing")["bytes_never_used"] == 3001 * (100 * MIB - PAGE)


def test_naive_calloc_clears_twice() -> None:
    """Casebook 2."""
    made = facts.naive_calloc()
    assert verdict(made)["dominant"] == "zeroing"
    ledger = made.one("SELECT * FROM zeroing")
    assert ledger["bytes_twice"] == ledger["bytes_kernel"] == ledger["bytes_libc"] == 11 * 100 * MIB
    assert made.toll("zero.libc")["time_ns"] == pytest.approx(33 * MS, rel=0.01)
    assert "cleared twice" in advice(made)["calloc-double-clear"]["text"]
    assert any("unknown allocator" in row["text"] for row in made.rows("SELECT * FROM note"))


@pytest.mark.parametrize("make", [facts.cpu_loop, facts.small_churn])
def test_casebook_8_is_compute(make: Any) -> None:
    """Casebook 8."""
    made = make()
    assert verdict(made)["dominant"] == "compute"
    assert list(advice(made)) == ["none"]


def test_small_churn_counts() -> None:
    report = json.loads(facts.small_churn().one("SELECT json FROM report_json")["json"])
    assert report["calls"] == {"free": 300007, "malloc": 300007}


def test_touched_churn_raises_both_thresholds() -> None:
    """Casebook 7: mmap_threshold alone changes nothing."""
    made = facts.touched_churn()
    assert verdict(made)["dominant"] == "zeroing"
    text = advice(made)["first-touch"]["text"]
    threshold = re.search(r"glibc\.malloc\.mmap_threshold=(\d+)", text)
    trim = re.search(r"glibc\.malloc\.trim_threshold=(\d+)", text)
    assert threshold
    assert trim
    # Powers of two, well above what comes and goes.
    assert (int(threshold[1]), int(trim[1])) == (128 * MIB, 128 * MIB)


def test_mostly_unused_callocs_are_not_sent_to_the_heap() -> None:
    """One page of 100 MiB is used: from the heap, calloc would memset the whole block."""
    made = facts.mapped_blocks()
    made.database.execute("UPDATE fault SET timed_cpu_ns = 12 * timed_cpu_ns")
    text = advice(made)["first-touch"]["text"]
    assert "mmap_threshold" not in text
    assert "would not help: calloc would then memset all of each block, 874 us instead of" in text


def test_one_pass_is_not_called_churn(plain: Facts) -> None:
    site = plain.stack(("malloc", "", 0), ("load", "/src/a.c", 8))
    plain.block("malloc", site, 1, 4096 * MIB, freed=0, freed_bytes=0)
    plain.fault("zero", 700_000, 1_100, allocated_stack=site, allocated_call="malloc")
    text = advice(plain)["first-touch"]["text"]
    assert "again and again" not in text
    assert "a.c:8 (load)" in text
    # 700,000 pages at 16 GB/s are 179 ms of the 700 ms.
    assert "Of the 700 ms, 179 ms is the clearing itself and 521 ms" in text


def test_program_that_clears_fresh_memory(plain: Facts) -> None:
    stack = plain.stack(("__memset_avx2", "", 0), ("clear", "/src/a.c", 9))
    plain.fault("zero", 500_000, 1_100, in_memset=1, touched_stack=stack)
    plain.samples("fault", 50, stack)
    plain.samples("memset", 20, stack)
    plain.samples("user", 30, stack)
    codes = advice(plain)
    assert "a.c:9 (clear)" in codes["app-double-clear"]["text"]
    assert "first-touch" not in codes


def test_clearing_of_calls_that_were_not_watched_is_callocs(plain: Facts) -> None:
    """Its stack shows calloc, where that was not probed just then: none of it is the program's own."""
    plain.allocator()
    unseen = plain.stack(("__memset_avx2", "", 0), ("calloc", "", 0), ("make", "/src/a.c", 7))
    own = plain.stack(("__memset_avx2", "", 0), ("clear", "/src/a.c", 9))
    plain.fault("zero", 300_007, 1_100, in_memset=1, touched_stack=unseen)
    plain.fault("zero", 100_003, 1_100, in_memset=1, touched_stack=own)
    plain.fault("zero", 10_007, 1_100, in_memset=1, in_call="calloc")
    row = plain.one("SELECT twice_app_bytes, twice_calloc_bytes FROM measure")
    assert row["twice_app_bytes"] == pytest.approx(100_003 * PAGE)
    assert row["twice_calloc_bytes"] == pytest.approx((300_007 + 10_007) * PAGE)
    assert "a.c:9 (clear)" in advice(plain)["app-double-clear"]["text"]


# Sites, allocations, frames.


def test_sites_have_both_owners_and_add_up(plain: Facts) -> None:
    made_at = plain.stack(("malloc", "", 0), ("make", "/src/a.c", 5))
    used_at, used_too = (plain.stack((name, "/src/a.c", 7)) for name in ("use", "also"))
    plain.fault("zero", 101, FAULT_NS + 100, allocated_stack=made_at, allocated_call="malloc", touched_stack=used_at)
    plain.fault("zero", 103, FAULT_NS + 100, allocated_stack=made_at, allocated_call="malloc", touched_stack=used_too)
    plain.fault("zero_read", 107, FAULT_NS + 100, touched_stack=used_too)
    sites = plain.rows("SELECT * FROM sites WHERE toll = 'zero.kernel' ORDER BY rank")
    assert [(row["count"], row["bytes"], row["call"]) for row in sites] == [
        (107, 0, ""),
        (103, 103 * PAGE, "malloc"),
        (101, 101 * PAGE, "malloc"),
    ]
    assert {row["touched_stack"] for row in sites} == {used_at, used_too}
    assert sum(row["time_ns"] for row in sites) == pytest.approx(plain.toll("zero.kernel")["time_ns"])


@pytest.mark.parametrize("name", facts.SCENARIOS)
def test_sites_of_a_toll_add_up_to_it(name: str) -> None:
    made = facts.SCENARIOS[name]()
    rows = made.rows(
        "SELECT t.toll, t.time_ns, t.bytes, SUM(s.time_ns) AS sites, SUM(s.bytes) AS site_bytes"
        " FROM toll t JOIN sites s ON s.toll = t.toll GROUP BY t.toll"
    )
    assert rows
    for row in rows:
        assert row["sites"] == pytest.approx(row["time_ns"], rel=1e-6, abs=1), row
        if row["toll"] not in ("zero.app", "compute"):
            assert row["site_bytes"] == row["bytes"], row


def test_allocations_know_only_what_was_followed(plain: Facts) -> None:
    plain.call("malloc", 5, 10, bytes=10 * MIB, failed=1)
    plain.block("malloc", 5, 9, 9 * MIB, freed=4, freed_bytes=4 * MIB)
    plain.call("malloc", 7, 10, bytes=MIB)
    plain.block("malloc", 7, 3, MIB, freed=0, freed_bytes=0)
    rows = {row["stack_id"]: row for row in plain.rows("SELECT * FROM allocation")}
    assert (rows[5]["calls"], rows[5]["freed"], rows[5]["live_bytes"]) == (10, 4, 5 * MIB)
    assert (rows[7]["calls"], rows[7]["freed"], rows[7]["live_bytes"]) == (10, None, None)


def test_places_are_outside_the_c_library(plain: Facts) -> None:
    stack = plain.stack(("calloc", "/build/malloc.c", 3619), ("inner", "", 0), ("outer", "/a b/c.d.c", 7))
    plain.database.execute("UPDATE frame SET module = '/lib/x86_64-linux-gnu/libc.so.6' WHERE function = 'calloc'")
    best = plain.rows("SELECT * FROM stack_line WHERE stack_id = ? ORDER BY usable, depth", stack)
    assert [row["said"] for row in best] == ["c.d.c:7 (outer)", "malloc.c:3619 (calloc)", "inner (libc.so.6)"]


def test_stack_without_rows_is_empty(plain: Facts) -> None:
    plain.fault("zero", 101, FAULT_NS + 100, allocated_stack=99, allocated_call="malloc", touched_stack=98)
    report = json.loads(plain.one("SELECT json FROM report_json")["json"])
    (site,) = (site for site in report["sites"] if site["toll"] == "zero.kernel")
    assert site["allocated_at"] == []
    assert site["touched_at"] == []


def test_processes_have_their_own_tolls(plain: Facts) -> None:
    plain.process(43, "child", role="child", exit_code=9, end_ns=1_001 * S)
    plain.cpu(0.25 * S, pid=43)
    plain.map_call("mmap", 5, 1, MIB, 0.1 * S + MAP_INSIDE, pid=43)
    report = json.loads(plain.one("SELECT json FROM report_json")["json"])
    parent, child = report["processes"]
    assert (parent["pid"], parent["observed_s"]) == (42, 1.0)
    assert (child["exit_code"], child["observed_s"], child["toll_s"]["map"]) == (9, 0.25, 0.1)
    assert report["target"]["observed_s"] == 1.25


# Through the program.


@pytest.mark.parametrize("name", facts.SCENARIOS)
def test_json_keeps_the_contract(name: str, tmp_path: Path) -> None:
    path = tmp_path / "a.memtoll"
    made = facts.SCENARIOS[name](path)
    result = memtoll("report", "--json", path)
    assert (result.status, result.stderr) == (0, "")
    report = json.loads(result.stdout)
    check_report(report)
    # The shell reads the same numbers.
    assert report == json.loads(made.one("SELECT json FROM report_json")["json"])
    assert integrity(path) == "ok"


def test_sites_option_limits_and_keeps_advice(tmp_path: Path) -> None:
    path = tmp_path / "a.memtoll"
    facts.heap_blocks(path)
    every = json.loads(memtoll("report", path, "--json").stdout)
    few = json.loads(memtoll("report", path, "--json", "--sites", "2").stdout)
    assert few["sites"] == every["sites"][:2]
    assert len(every["sites"]) > 2
    assert few["verdict"] == every["verdict"]
    assert json.loads(memtoll("report", path, "--json", "--sites=0").stdout) == every


def test_folded(tmp_path: Path) -> None:
    path = tmp_path / "a.memtoll"
    facts.naive_calloc(path)
    result = memtoll("report", "--folded", "zero.kernel", path)
    assert result.stdout == f"main;round_once;calloc {round(281_600 * FAULT_NS / 1000)}\n"


@pytest.mark.parametrize("name", facts.SCENARIOS)
def test_golden_text(name: str, tmp_path: Path) -> None:
    path = tmp_path / "a.memtoll"
    facts.SCENARIOS[name](path)
    full = memtoll("report", "--full", path)
    assert (full.status, full.stderr) == (0, "")
    is_golden(f"{name}.txt", full.stdout)
    short = memtoll("report", "a.memtoll", cwd=tmp_path)
    assert (short.status, short.stderr) == (0, "")
    is_golden(f"{name}.short.txt", short.stdout)
    assert len(short.stdout.splitlines()) < 24, "one screen"


def test_text_says_what_is_wrong(tmp_path: Path) -> None:
    path = tmp_path / "a.memtoll"
    made = facts.heap_blocks(path)
    made.database.execute("DELETE FROM meta WHERE key = 'complete'")
    made.row("loss", slice=1, name="ring_faults", count=317)
    made.row("loss_kind", name="ring_faults", meaning="faults not recorded", remedy="raise --buffer")
    made.database.execute("UPDATE process SET comm = 'a' || char(27) || '[31m'")
    made.database.execute("UPDATE meta SET value = char(27) || ']0;x' WHERE key = 'target_command'")
    made.save()
    text = memtoll("report", "--full", path).stdout
    assert "!!! INCOMPLETE" in text
    assert text.splitlines()[-1].startswith("!!! ring_faults: 317, 11.02 % of its kind")
    assert "\x1b" not in text


# ESC, the same in one character (C1), a line of its own, writing turned round, and no UTF-8.
STEERING = ("\x1b[2J", "\x9b31m", "a\nmemtoll: all is well", "\u2028", "\u202egnp.exe", "\u2066x")
STEERS = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")


@pytest.mark.slow
@pytest.mark.parametrize("name", STEERING)
def test_names_do_not_control_the_output(tmp_path: Path, name: str) -> None:
    """Not the terminal, and not who reads: in text, stacks and JSON, whose value stays."""
    path = tmp_path / "a.memtoll"
    made = facts.heap_blocks(path)
    made.database.execute("UPDATE frame SET function = ?", [name])
    made.database.execute("UPDATE meta SET value = ? WHERE key = 'target_command'", [name])
    made.save()
    lines = []
    for words in ([], ["--json"], ["--full"], ["--folded", "zero.libc"]):
        result = memtoll("report", path, *words)
        assert result.status == 0 and not STEERS.search(result.stdout), words
        lines.append(len(result.stdout.splitlines()))
        if words == ["--json"]:
            assert json.loads(result.stdout)["target"]["command"] == name
    assert lines[1] == 1
    assert "memtoll: all is well" not in memtoll("report", "--full", path).stdout.splitlines()


@pytest.mark.parametrize("name", STEERING)
def test_messages_are_one_line(tmp_path: Path, name: str) -> None:
    result = memtoll("report", tmp_path / name)
    assert result.status == 1
    assert result.stderr.count("\n") == 1 and not STEERS.search(result.stderr)


def test_name_that_is_no_utf8(tmp_path: Path) -> None:
    """What is behind it is shown all the same."""
    done = subprocess.run(
        [MEMTOLL, "report", bytes(tmp_path) + b"/a\xff\xfeb.memtoll"], capture_output=True, check=False, timeout=30
    )
    assert done.returncode == 1
    assert b"/a??b.memtoll: No such file" in done.stderr, done.stderr


@pytest.mark.parametrize(
    ("words", "named"),
    [
        (["--bogus"], "--bogus"),
        (["--sites"], "--sites"),
        (["--sites", "many"], "many"),
        (["--sites", "-1"], "-1"),
        (["--folded", "nothing"], "nothing"),
        (["--json", "--folded", "map"], "--folded"),
        (["another"], "another"),
    ],
)
def test_usage(words: list[str], named: str, tmp_path: Path) -> None:
    path = tmp_path / "a.memtoll"
    facts.cpu_loop(path)
    assert_refused(memtoll("report", path, *words), 2, named)


def test_usage_without_file() -> None:
    assert_refused(memtoll("report"), 2, "recording")


@pytest.mark.slow
def test_full_output(tmp_path: Path) -> None:
    """Data that cannot be written is a failure."""
    path = tmp_path / "a.memtoll"
    facts.cpu_loop(path)
    for words in ([], ["--full"], ["--json"], ["--folded", "compute"]):
        with open("/dev/full", "w", encoding="utf-8") as full:
            done = subprocess.run(
                [MEMTOLL, "report", path, *words],
                stdout=full,
                stderr=subprocess.PIPE,
                text=True,
                check=False,
                timeout=60,
            )
        assert done.returncode == 1, words
        assert done.stderr == "memtoll: the report cannot be written: No space left on device\n", words


def test_bounds_where_nothing_happened() -> None:
    """Of what was watched, and did not happen once, both bounds are there."""
    made = facts.Facts()
    made.prices()
    made.slice(1)
    made.process()
    made.cpu(MS)
    for row in made.rows("SELECT toll FROM toll_kind WHERE toll NOT IN ('alloc', 'zero.libc', 'compute')"):
        made.row("not_captured", toll=row["toll"], reason="not traced")
    rows = made.rows("SELECT toll, low_ns, high_ns, low, high FROM toll WHERE not_captured IS NULL")
    assert {row["toll"]: tuple(row.values())[1:] for row in rows} == {
        "zero.libc": (0, 0, 0, 0),
        "alloc": (0, 0, 0, 0),
        "compute": (0, MS, 0, 1),
    }


@pytest.mark.slow
def test_many_rows(tmp_path: Path) -> None:
    path = tmp_path / "a.memtoll"
    made = facts.heap_blocks(path)
    for number in range(2, 102):
        made.slice(number)
    made.database.executemany(
        "INSERT INTO fault VALUES (?, 42, 'zero', ?, 'malloc', ?, 'anon', '', '', 0, 10, 10, 10, 8000, 6, 0)",
        ((number % 100 + 2, number % 1_009 + 1, number // 100 + 1) for number in range(100_000)),
    )
    made.save()
    result = memtoll("report", path, "--json")
    assert result.status == 0
    assert json.loads(result.stdout)["toll"]["zero.kernel"]["pages"] >= 100_000


def test_views_stay_within_sqlite_limits() -> None:
    """Every view can be prepared by a plain connection, with those that it builds on made."""
    made = facts.heap_blocks()
    names = [name for name, _, _ in facts.views_of_recording()]
    assert "report_json" in names
    for name in names:
        try:
            made.rows(f"SELECT * FROM {name}")
        except sqlite3.Error as error:
            pytest.fail(f"view {name}: {error}")


def steps_of_a_report(processes: int) -> int:
    """What SQLite does for it, in thousands of its machine's instructions."""
    made = Facts()
    made.prices()
    made.slice()
    stack = made.stack(("calloc", "malloc.c", 3), CALLER)
    # What windows saw is scaled by process and function.
    for call in ("malloc", "calloc", "realloc", "free", "posix_memalign", "aligned_alloc"):
        made.row("watch", slice=1, call=call, windows=3, watched_ns=S // 8, watched_cpu_ns=S // 8)
    for pid in range(1_000, 1_000 + processes):
        made.process(pid)
        made.cpu(S, pid)
        made.allocator("naive", pid)
        made.fault("zero", 3, FAULT_NS + 100, pid=pid, in_call="calloc", in_memset=1)
        made.call("calloc", stack, 3, pid=pid, bytes=3 * MIB, cpu_ns=3 * MS, known_clearing=0)
        made.samples("user", 7, pid=pid)
    steps = 0

    def count() -> int:
        nonlocal steps
        steps += 1
        return 0

    made.database.set_progress_handler(count, 1_000)
    (row,) = made.rows("SELECT json FROM report_json")
    assert len(json.loads(row["json"])["processes"]) == processes
    return steps


@pytest.mark.slow
def test_a_report_of_many_processes() -> None:
    """Four times as many take about four times as much, and not sixteen: of twenty thousand that was a minute."""
    assert steps_of_a_report(1_204) < 6 * steps_of_a_report(301)


@pytest.mark.parametrize(("off_ms", "own_ms", "other_ms"), [(9, 7, 2), (7, 7, 0), (4, 4, 0), (0, 0, 0)])
def test_time_on_the_cpu_in_a_wait_for_a_lock_counts_once(off_ms: int, own_ms: int, other_ms: int) -> None:
    """Of 7 ms that malloc waits for locks; it is 7.5 ms on the CPU itself, if none of them is spent waiting."""
    made = facts.small_churn()
    made.database.execute("UPDATE call SET lock_waits = 43, lock_ns = ?, off_ns = ? WHERE call = 'malloc'",
        (7 * MS, off_ms * MS))  # fmt: skip
    made.database.execute("INSERT INTO latency SELECT pid, call, stack_id, 32, 40, calls FROM call")
    row = made.one("SELECT * FROM latency_call WHERE call = 'malloc'")
    assert row["own_ns"] == pytest.approx(300007 * 25 - max(0, 7 - off_ms) * MS)
    assert row["own_ns"] // MS == own_ms
    assert (row["lock_ns"], row["off_ns"]) == (7 * MS, other_ms * MS)
    assert row["wall_ns"] == pytest.approx(row["own_ns"] + 7 * MS + other_ms * MS)
