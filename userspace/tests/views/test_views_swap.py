# SPDX-License-Identifier: GPL-2.0
"""The judgements on swap: facts written by hand, figures worked out by hand. No root, no tracer."""

from __future__ import annotations

from typing import Any

import pytest

from facts import MIB, MS, PAGE, US, Facts, S

CHUNK_PAGES = 2048


@pytest.fixture
def boxed() -> Facts:
    """One process that may use 80 MiB, two seconds of CPU time."""
    made = Facts()
    made.prices()
    made.meta(memory_bytes=str(16_384 * MIB), swap_in_counted="1")
    for number in (1, 2):
        made.slice(number)
    made.process(comm="pagez")
    made.memory_cgroup(80 * MIB)
    made.cpu(S, number=1, rss_bytes=79 * MIB, swap_bytes=82 * MIB)
    made.cpu(S, number=2, rss_bytes=75 * MIB, swap_bytes=86 * MIB)
    return made


def malloc_stack(made: Facts) -> int:
    return made.stack(("malloc", "", 0), ("make_chunk", "/src/pagez.c", 17), ("main", "/src/pagez.c", 41))


def touch_stack(made: Facts) -> int:
    return made.stack(("change_pages", "/src/pagez.c", 23), ("main", "/src/pagez.c", 43))


def cyclic(made: Facts) -> int:
    """160 MiB, four passes: every page came back three times; read-ahead of eight."""
    blocks, loop = malloc_stack(made), touch_stack(made)
    pages = 20 * CHUNK_PAGES
    owners = {"allocated_stack": blocks, "allocated_call": "malloc", "touched_stack": loop}
    made.fault("zero", pages, 2 * US, **owners)
    made.fault("swap_major", 3 * pages // 8, 20 * US, **owners, blocked_ns=3 * pages // 8 * 10 * US)
    made.fault("swap_minor", 3 * pages - 3 * pages // 8, 8 * US, slice=2, **owners)
    made.access("malloc", blocks, pages, 3 * pages)
    made.swap("reclaim_memcg", 144_000, count=2_900, cpu_ns=500 * MS)
    made.swap("out_self", 144_000)
    made.swap("in_device", 3 * pages)
    return blocks


def memory(made: Facts) -> dict[str, Any]:
    return made.one("SELECT * FROM memory")


def verdict(made: Facts) -> dict[str, Any]:
    return made.one("SELECT * FROM verdict")


def advice(made: Facts) -> dict[str, str]:
    return {row["code"]: row["text"] for row in made.rows("SELECT code, text FROM finding")}


def pattern(made: Facts, call: str = "malloc") -> dict[str, Any]:
    return made.one("SELECT * FROM access_pattern WHERE call = ?", call)


def check(made: Facts, name: str) -> dict[str, Any]:
    return made.one("SELECT * FROM checks WHERE name = ?", name)


@pytest.mark.parametrize(("limit", "words"), [(170, "beside what else it uses"), (80, "but may keep only 80.0 MiB")])
def test_what_it_goes_over_may_be_less_than_it_may_keep(boxed: Facts, limit: int, words: str) -> None:
    """What else it uses is not gone over again and again, and counts as well."""
    cyclic(boxed)
    boxed.database.execute("UPDATE memory_cgroup SET limit_bytes = ? WHERE limit_bytes > 0", (limit * MIB,))
    sentence = verdict(boxed)["sentence"]
    assert words in sentence and f"{limit}" in sentence
    assert ("keep only" in sentence) == (limit == 80)


def test_cyclic_sweep(boxed: Facts) -> None:
    cyclic(boxed)
    assert pattern(boxed)["pattern"] == "cyclic sweep"
    assert pattern(boxed)["returns"] == 3.0
    row = memory(boxed)
    assert (row["limit_bytes"], row["limit_path"]) == (80 * MIB, "/box")
    assert (row["rss_peak_bytes"], row["swap_peak_bytes"]) == (79 * MIB, 86 * MIB)
    assert row["came_back_bytes"] == 160 * MIB
    # At most 161 MiB were held at one time, at most 79 of them resident, the limit holds 80.
    assert row["fits_bytes"] == (80 + 161 - 79) * MIB
    said = verdict(boxed)
    assert said["dominant"] == "swap"
    assert "came back 3.0 times" in said["sentence"]
    assert "only 80.0 MiB (its memory cgroup, /box)" in said["sentence"]
    assert "make_chunk" in said["sentence"]
    assert "about 162 MiB instead of 80.0 MiB" in advice(boxed)["swap-in"]
    assert "all passes over a part that fits" in advice(boxed)["swap-in"]


def test_reclaim_has_the_code_that_it_happened_in(boxed: Facts) -> None:
    """Stalls with a stack are sites of their own, for the block that this code touches; the rest stays."""
    blocks = cyclic(boxed)
    ((loop,),) = boxed.database.execute("SELECT DISTINCT touched_stack FROM fault").fetchall()
    boxed.reclaim(loop, 2_003, 100 * US)
    rows = boxed.rows("SELECT * FROM sites WHERE toll = 'reclaim' ORDER BY count")
    assert [(row["touched_stack"], row["allocated_stack"], row["call"], row["count"]) for row in rows] == [
        (0, 0, "", 2_900 - 2_003),
        (loop, blocks, "malloc", 2_003),
    ]
    assert sum(row["time_ns"] for row in rows) == pytest.approx(500 * MS)
    assert boxed.toll("reclaim")["time_ns"] == pytest.approx(500 * MS)
    assert boxed.toll("reclaim")["count"] == 2_900


def shared(made: Facts, segment: str, **owners: Any) -> None:
    """A segment of 160 MiB, four passes: twice as much as may be kept, so that half of it is out at a time."""
    pages = 20 * CHUNK_PAGES
    where = {"area": "shared", "area_name": segment, "touched_stack": touch_stack(made), **owners}
    made.fault("shared_zero", pages, 2 * US, **where)
    made.fault("swap_major", 3 * pages // 8, 20 * US, **where, blocked_ns=3 * pages // 8 * 10 * US)
    made.fault("swap_minor", 3 * pages - 3 * pages // 8, 8 * US, slice=2, **where)
    made.access(
        owners.get("allocated_call", ""),
        owners.get("allocated_stack", 0),
        pages,
        3 * pages,
        **({} if owners else {"area": "shared", "area_name": segment}),
    )
    made.swap("reclaim_memcg", 144_000, count=2_900, cpu_ns=500 * MS)
    for number, out in ((1, 3 * pages // 8 + 20_011), (2, 3 * pages - 3 * pages // 8)):
        made.swap("out_self", out, slice=number)
        made.swap("shared_out", out, slice=number)


def no_gauge_of_swap(made: Facts) -> None:
    made.database.execute("UPDATE process_slice SET swap_bytes = 0")


def test_shared_memory(boxed: Facts) -> None:
    no_gauge_of_swap(boxed)
    shared(boxed, "/memfd:pool")
    assert boxed.toll("swap.in")["pages"] == 3 * 20 * CHUNK_PAGES
    assert boxed.toll("swap.out")["pages"] == 3 * 20 * CHUNK_PAGES + 20_011
    assert boxed.toll("file.fault")["count"] == 0
    row = memory(boxed)
    # No process's own count of swapped pages has them.
    assert row["swap_peak_bytes"] == 20_011 * PAGE
    # Resident peaked in the first slice, and what was held in all as well.
    assert row["fits_bytes"] == 80 * MIB + 20_011 * PAGE
    said = verdict(boxed)
    assert said["dominant"] == "swap"
    assert "in shared memory (/memfd:pool)." in said["sentence"]
    assert "came back 3.0 times" in said["sentence"]
    told = advice(boxed)["swap-in"]
    assert "a smaller segment" in told
    assert "the allocator" not in told
    assert "file-fault" not in advice(boxed)


@pytest.mark.parametrize("segment", ["/memfd:pool", ""])
def test_memory_is_named_where_reclaim_takes_most(boxed: Facts, segment: str) -> None:
    """Which of the two takes longer is the machine's; whose memory went out and came back is not."""
    if segment:
        no_gauge_of_swap(boxed)
        shared(boxed, segment)
    else:
        cyclic(boxed)
    boxed.database.execute("UPDATE swap SET cpu_ns = 8 * cpu_ns WHERE what = 'reclaim_memcg'")
    sentence = verdict(boxed)["sentence"]
    assert "it had to reclaim memory itself 2,900 times" in sentence
    named = f"in shared memory ({segment})." if segment else "in memory of malloc at pagez.c:17 (make_chunk)."
    assert f"came back, most at pagez.c:23 (change_pages), {named}" in sentence


def test_shared_memory_that_was_out_before(boxed: Facts) -> None:
    """Attached to: as much goes as comes, and half of it was out before that began."""
    no_gauge_of_swap(boxed)
    pages = 20 * CHUNK_PAGES
    boxed.fault("swap_major", 3 * pages, 20 * US, area="shared", area_name="/SYSV00001234")
    boxed.access("", 0, 0, 3 * pages, area="shared", area_name="/SYSV00001234", distinct_pages=pages)
    boxed.swap("out_self", 3 * pages)
    boxed.swap("shared_out", 3 * pages)
    row = memory(boxed)
    # All 160 MiB came back, and 79 of them were resident at most.
    assert row["swap_peak_bytes"] == (160 - 79) * MIB
    assert row["fits_bytes"] == (80 + 160 - 79) * MIB
    # Several processes have it resident, and no more than the limit of it is.
    boxed.process(43)
    boxed.cpu(S, 43, number=1, rss_bytes=79 * MIB, swap_bytes=0)
    assert memory(boxed)["fits_bytes"] == 160 * MIB


@pytest.mark.parametrize("segment", ["/memfd:pool", ""])
def test_less_than_two_passes_do_not_tell_how_much_would_do(boxed: Facts, segment: str) -> None:
    """Attached to for a part of a pass: 51 MiB come back once. Of its own memory the gauge tells what is out."""
    if segment:
        no_gauge_of_swap(boxed)
    where = {"area": "shared", "area_name": segment} if segment else {"area": "mapping"}
    boxed.fault("swap_major", 13_127, 20 * US, **where, touched_stack=touch_stack(boxed), blocked_ns=2 * S)
    boxed.access("", 0, 0, 13_127, **where, distinct_pages=13_127)
    boxed.swap("out_self", 13_127)
    if segment:
        boxed.swap("shared_out", 13_127)
    assert memory(boxed)["fits_bytes"] == (None if segment else 162 * MIB)
    said, told = verdict(boxed)["sentence"], advice(boxed)["swap-in"]
    assert "In the time of this recording 51.3 MiB came back in order" in said and "more than once" not in said
    # 51 are no more than 80.
    assert "with what else it uses that is more than the 80.0 MiB that it may keep" in said and "only" not in said
    assert ("shows in a recording in which pages come back twice" in told) == bool(segment)
    assert ("With a limit of about" in told) == (not segment)
    # A cgroup has a name to show, and ran before; a command was followed from its start: nothing was out before.
    boxed.meta(target_command="walk", cgroup="/service")
    assert memory(boxed)["fits_bytes"] == (None if segment else 162 * MIB)
    boxed.database.execute("DELETE FROM meta WHERE key = 'cgroup'")
    assert memory(boxed)["fits_bytes"] is not None
    assert "more than once" in verdict(boxed)["sentence"]


def test_several_processes_wait_for_one_page(boxed: Facts) -> None:
    """Each of them has a fault, but it comes back once: what is out is not as much less."""
    no_gauge_of_swap(boxed)
    boxed.fault("swap_major", 5_003, 20 * US, area="shared", area_name="/memfd:pool")
    boxed.fault("swap_minor", 9_001, 20 * US, area="shared", area_name="/memfd:pool")
    boxed.access("", 0, 20_011, 14_004, area="shared", area_name="/memfd:pool", distinct_pages=5_003)
    boxed.swap("in_device", 5_003)
    boxed.swap("out_self", 15_013)
    boxed.swap("shared_out", 15_013)
    assert memory(boxed)["swap_peak_bytes"] == (15_013 - 5_003) * PAGE


def test_shared_memory_of_a_mapping(boxed: Facts) -> None:
    made = boxed.stack(("mmap", "", 0), ("make_pool", "/src/pool.c", 17))
    shared(boxed, "", allocated_stack=made, allocated_call="mmap")
    assert "in shared memory of mmap at pool.c:17 (make_pool)." in verdict(boxed)["sentence"]
    assert "a smaller segment" in advice(boxed)["swap-in"]
    assert {
        (row["call"], row["area"]) for row in boxed.rows("SELECT call, area FROM sites WHERE toll = 'swap.in'")
    } == {("mmap", "shared")}


def test_files_on_tmpfs_are_memory(boxed: Facts) -> None:
    shared(boxed, "/dev/shm/cache.bin")
    assert "What is kept on tmpfs (/dev/shm/cache.bin) is memory" in advice(boxed)["swap-in"]


def test_one_nanosecond_belongs_to_one_toll(boxed: Facts) -> None:
    cyclic(boxed)
    tolls = boxed.rows("SELECT toll, time_ns, blocked_ns FROM toll WHERE time_ns > 0")
    assert sum(row["time_ns"] for row in tolls) == pytest.approx(
        boxed.one("SELECT observed_ns FROM observed")["observed_ns"]
    )
    blocked = {row["toll"]: row["blocked_ns"] for row in tolls}
    assert blocked["swap.in"] == pytest.approx(3 * 20 * CHUNK_PAGES // 8 * 10 * US)
    assert blocked["zero.kernel"] == 0


def test_one_pass(boxed: Facts) -> None:
    blocks = malloc_stack(boxed)
    boxed.fault("zero", 163_841, 2 * US, allocated_stack=blocks, allocated_call="malloc")
    boxed.fault("swap_major", 97, 20 * US, allocated_stack=blocks, allocated_call="malloc")
    boxed.access("malloc", blocks, 163_841, 97)
    boxed.swap("reclaim_memcg", 143_881, count=2_953, cpu_ns=1_200 * MS)
    boxed.swap("out_self", 143_881)
    assert pattern(boxed)["pattern"] == "one-pass sweep"
    assert "once over 640 MiB" in verdict(boxed)["sentence"]
    assert "no thrash" in advice(boxed)["reclaim-stall"]
    assert "swap-in" not in advice(boxed)


def test_few_that_come_back_slowly_are_no_thrash(boxed: Facts) -> None:
    """A pass took 97 pages of the program itself along; the disk is busy and each takes 11 ms to come back."""
    blocks = malloc_stack(boxed)
    boxed.fault("zero", 163_841, 2 * US, allocated_stack=blocks, allocated_call="malloc")
    boxed.fault("swap_major", 97, 20 * US, blocked_ns=97 * 11 * MS)
    boxed.access("malloc", blocks, 163_841, 97)
    boxed.swap("reclaim_memcg", 143_881, count=2_953, cpu_ns=1_200 * MS)
    boxed.swap("out_self", 143_881)
    gain = boxed.one("SELECT gain, bound FROM advice_state WHERE code = 'swap-in'")
    assert gain["gain"] > gain["bound"]
    assert "no thrash" in advice(boxed)["reclaim-stall"]
    assert "swap-in" not in advice(boxed)
    # Pushed out by others, what comes back is all that it waits for.
    boxed.database.execute("DELETE FROM swap WHERE what LIKE 'reclaim%'")
    boxed.database.execute("UPDATE swap SET what = 'out_other' WHERE what = 'out_self'")
    assert "memory.low" in advice(boxed)["swap-woken"]


def test_one_pass_in_no_order_is_no_sweep(boxed: Facts) -> None:
    boxed.access("malloc", malloc_stack(boxed), 163_841, 97, first_sequential_pages=1_009)
    assert pattern(boxed)["pattern"] == "one pass"


def test_random_order(boxed: Facts) -> None:
    blocks = cyclic(boxed)
    boxed.database.execute("UPDATE access SET in_sequential_pages = 1009 WHERE allocated_stack = ?", (blocks,))
    assert pattern(boxed)["pattern"] == "random"
    assert "in no order" in verdict(boxed)["sentence"]
    assert "keep on one page" in advice(boxed)["swap-in"]


def test_pattern_fits(boxed: Facts) -> None:
    boxed.access("calloc", malloc_stack(boxed), 4_099)
    assert pattern(boxed, "calloc")["pattern"] == "fits"
    assert memory(boxed)["fits_bytes"] is None


def test_pages_swapped_out_by_others(boxed: Facts) -> None:
    cyclic(boxed)
    boxed.database.execute("UPDATE swap SET what = 'out_other' WHERE what = 'out_self'")
    assert "does not push them out itself" in verdict(boxed)["sentence"]
    assert "Other processes push it out" in advice(boxed)["swap-in"]


def woken(made: Facts, **out: int) -> None:
    """60 MiB that were out come back once."""
    pages = 60 * MIB // PAGE
    made.database.execute("DELETE FROM meta WHERE key = 'target_command'")
    loop = touch_stack(made)
    made.fault("swap_major", pages // 8, 20 * US, slice=2, area="anon", touched_stack=loop, blocked_ns=8 * S)
    made.fault("swap_minor", pages - pages // 8, 8 * US, slice=2, area="anon", touched_stack=loop)
    made.swap("in_device", pages, slice=2)
    made.access("", 0, 0, pages, area="anon", distinct_pages=pages, max_returns=1)
    for what, count in out.items():
        made.swap(what, count, slice=2)
    no_gauge_of_swap(made)


@pytest.mark.parametrize(("what", "count"), [("out_other", 0), ("out_other", 17_011), ("out_self", 3_001)])
def test_what_had_been_pushed_out_comes_back_once(boxed: Facts, what: str, count: int) -> None:
    """Nothing goes out for it, or others push it: no limit is to blame."""
    woken(boxed, **{what: count})
    row = memory(boxed)
    assert (row["woke"], row["swap_peak_bytes"], row["fits_bytes"]) == (1, 60 * MIB, 79 * MIB)
    assert pattern(boxed, "")["pattern"] == "back once"
    said = verdict(boxed)
    assert said["dominant"] == "swap"
    assert "no working set that is too large" in said["sentence"]
    assert ("before this recording began" in said["sentence"]) == (count < 10_000)
    assert "may keep only" not in said["sentence"]
    assert "memory.low of its cgroup for 79.0 MiB, mlock" in advice(boxed)["swap-woken"]
    assert "swap-in" not in advice(boxed)


@pytest.mark.parametrize("what", ["out_self", "out_traced", "out_kswapd"])
def test_what_goes_out_for_what_comes_back_does_not_fit(boxed: Facts, what: str) -> None:
    """Attached for less than a pass: what comes back pushes out as much."""
    woken(boxed, **{what: 14_009})
    assert not memory(boxed)["woke"]
    assert "swap-in" in advice(boxed)
    assert "more than the 80.0 MiB that it may keep" in verdict(boxed)["sentence"]


def test_without_a_cgroup_the_machine_is_the_limit(boxed: Facts) -> None:
    cyclic(boxed)
    boxed.database.execute("DELETE FROM memory_cgroup")
    assert memory(boxed)["limit_bytes"] is None  # others have nearly all of it
    boxed.database.execute("UPDATE meta SET value = ? WHERE key = 'memory_bytes'", (str(200 * MIB),))
    row = memory(boxed)
    assert row["limit_bytes"] == 200 * MIB
    assert row["fits_bytes"] == (200 + 161 - 79) * MIB
    assert "(the machine)" in verdict(boxed)["sentence"]


def test_estimate_without_gauges_goes_by_what_went_and_came(boxed: Facts) -> None:
    cyclic(boxed)
    boxed.database.execute("UPDATE process_slice SET rss_bytes = NULL, swap_bytes = NULL")
    row = memory(boxed)
    assert row["swap_peak_bytes"] == (144_000 - 3 * 20 * CHUNK_PAGES) * PAGE
    assert row["fits_bytes"] == 80 * MIB + row["swap_peak_bytes"]


def test_peaks_are_of_all_processes_at_one_time(boxed: Facts) -> None:
    """The second lives in the first slice only, the third in the second only."""
    boxed.process(43, "one", end_ns=1_000 * S + 3 * S // 4)
    boxed.process(44, "other", start_ns=1_001 * S)
    boxed.cpu(1, 43, number=1, rss_bytes=31 * MIB, swap_bytes=7 * MIB)
    boxed.cpu(1, 44, number=2, rss_bytes=41 * MIB, swap_bytes=5 * MIB)
    row = memory(boxed)
    assert row["rss_peak_bytes"] == max(79 + 31, 75 + 41) * MIB
    assert row["swap_peak_bytes"] == max(82 + 7, 86 + 5) * MIB


def test_pages_that_were_not_followed_are_reported(boxed: Facts) -> None:
    blocks = cyclic(boxed)
    boxed.database.execute("UPDATE access SET untracked_pages = 20000 WHERE allocated_stack = ?", (blocks,))
    assert pattern(boxed)["returns"] == pytest.approx((122_880 - 20_000) / 40_960)
    assert any("not followed: 20,000" in row["text"] for row in boxed.rows("SELECT text FROM note"))


def test_swap_is_held_against_the_machine(boxed: Facts) -> None:
    cyclic(boxed)
    boxed.swap("in_device", 1_009, pid=0)
    boxed.swap("out_kswapd", 2_003, pid=0)
    for name, value in {"pswpin": 122_880 + 1_009, "zswpin": 0, "pswpout": 144_000 + 2_003, "zswpout": 0}.items():
        boxed.row("system_counter", name=name, value=value)
    assert check(boxed, "swapped_in") | {"position": 0} == {
        "position": 0,
        "name": "swapped_in",
        "ours": 123_889,
        "kernel": 123_889,
        "difference": 0,
        "ok": 1,
    }
    assert check(boxed, "swapped_out")["ours"] == 146_003
    assert check(boxed, "swapped_out")["ok"]
    # Everybody else's are no toll of the target.
    assert boxed.toll("swap.out")["pages"] == 144_000
    assert boxed.toll("swap.in")["pages"] == 122_880


def test_a_difference_is_shown_and_widens_the_verdict(boxed: Facts) -> None:
    cyclic(boxed)
    boxed.database.execute("UPDATE process_slice SET minor_faults = 148480, major_faults = 15360 WHERE slice = 1")
    boxed.row("system_counter", name="pswpin", value=122_880)
    boxed.row("system_counter", name="pswpout", value=144_000)
    narrow = verdict(boxed)
    boxed.database.execute("UPDATE system_counter SET value = 140000 WHERE name = 'pswpin'")
    wide = verdict(boxed)
    assert not check(boxed, "swapped_in")["ok"]
    assert wide["low"] < narrow["low"] - 0.05
    assert wide["high"] >= narrow["high"]
    assert any(
        row["text"].startswith("swapped in: ours 122,880, the kernel's 140,000")
        for row in boxed.rows("SELECT text FROM note")
    )


def test_pages_go_out_again_unwritten(boxed: Facts) -> None:
    """A page that came back and was not changed needs no writing: at most as many as came."""
    boxed.swap("out_self", 150_011)
    boxed.row("system_counter", name="pswpin", value=7_001)
    boxed.row("system_counter", name="pswpout", value=144_000)
    assert check(boxed, "swapped_out")["ok"]
    boxed.database.execute("UPDATE system_counter SET value = 11 WHERE name = 'pswpin'")
    assert not check(boxed, "swapped_out")["ok"]


def test_faults_of_a_cgroup_against_its_memory_stat(boxed: Facts) -> None:
    boxed.fault("zero", 10_007, 1 * US)
    boxed.fault("swap_major", 503, 9 * US)
    boxed.database.execute("DELETE FROM memory_cgroup")
    boxed.memory_cgroup(80 * MIB, counters={"pgfault": 10_510, "pgmajfault": 503})
    boxed.memory_cgroup(80 * MIB, "/box/inner", counters={"pgfault": 9_001, "pgmajfault": 3})
    assert boxed.rows("SELECT 1 FROM checks WHERE name LIKE 'cgroup%'") == []
    boxed.meta(cgroup="/sys/fs/cgroup/box")
    minor, major = check(boxed, "cgroup_minor_faults"), check(boxed, "cgroup_major_faults")
    assert (minor["ours"], minor["kernel"], minor["ok"]) == (10_007, 10_007, 1)
    assert (major["ours"], major["kernel"], major["ok"]) == (503, 503, 1)


@pytest.mark.parametrize(
    ("fault_class", "words"),
    [
        ("swap_major", "read from a device"),
        ("swap_zram_major", "decompressed from zram"),
        ("swap_zswap_major", "decompressed from zswap"),
        ("swap_zero_major", "all zeros, kept nowhere"),
        ("swap_minor", "found in the swap cache"),
    ],
)
def test_sources(boxed: Facts, fault_class: str, words: str) -> None:
    boxed.fault(fault_class, 50_021, 30 * US)
    boxed.access("", 0, 0, 50_021, area="heap", distinct_pages=25_010)
    assert f"50,021 {words}" in verdict(boxed)["sentence"]
    assert boxed.toll("swap.in")["count"] == 50_021


def test_bytes_of_cow_are_what_was_copied(boxed: Facts) -> None:
    boxed.fault("cow", 1_009, 1 * US)
    boxed.fault("reuse", 2_003, 1 * US)
    row = boxed.toll("cow")
    assert (row["count"], row["pages"], row["bytes"]) == (3_012, 1_009, 1_009 * PAGE)


def test_areas_have_their_names(boxed: Facts) -> None:
    boxed.fault("file_minor", 1_009, 1 * US, area="library", area_name="/usr/lib/libz.so.1")
    boxed.fault("zero", 97, 1 * US, area="arena")
    areas = {row["toll"]: row["area"] for row in boxed.rows("SELECT toll, area FROM sites WHERE area <> ''")}
    assert areas == {"file.fault": "library /usr/lib/libz.so.1", "zero.kernel": "arena"}


def test_each_slice_of_timed_faults_weighs_by_its_faults(boxed: Facts) -> None:
    """All of 1,000 in the first slice took 20 us; of 100,000 in the second 1,000 were timed, at 2 us."""
    boxed.fault("zero", 1_000, 20_100)
    boxed.fault(
        "zero", 100_000, 2_100, slice=2, timed_faults=1_000, timed_cpu_ns=1_000 * 2_100, timed_cpu_us2=1_000 * 4
    )
    # The timing itself takes 100 ns of each.
    assert boxed.toll("zero.kernel")["time_ns"] == pytest.approx(1_000 * 20_000 + 100_000 * 2_000)
