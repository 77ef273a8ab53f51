# SPDX-License-Identifier: GPL-2.0
"""The judgements on pages of files that come again: facts and figures by hand. No root, no tracer."""

from __future__ import annotations

from typing import Any

import pytest

from facts import FAULT_INSIDE, MAP_INSIDE, MIB, MS, PAGE, US, Facts, S

PAGES = 163 * MIB // PAGE


@pytest.fixture
def boxed() -> Facts:
    """One process in a group of 82 MiB, all but 2 of it page cache, and no swap."""
    made = Facts()
    made.prices()
    made.meta(memory_bytes=str(16_384 * MIB))
    made.slice()
    made.process(comm="reader")
    refaults = {"workingset_refault_file": 80_051}
    made.memory_cgroup(82 * MIB, usage_bytes=82 * MIB, file_bytes=80 * MIB, counters=refaults)
    made.cpu(S, rss_bytes=79 * MIB)
    return made


def mapped(made: Facts, passes: int, **columns: Any) -> None:
    """163 MiB of a mapped file, so many times over: a fault maps 16 pages, one in 1,000 waits for the device."""
    place = {"area": "file", "area_name": "/srv/data", "touched_stack": loop_stack(made)}
    faults = passes * PAGES // 16
    made.fault("file_minor", faults, 80 * US, pages=passes * PAGES, **place)
    made.fault("file_again_major", faults // 1_000, 90 * US, blocked_ns=100 * MS, **place)
    made.page_fill(PAGES, (passes - 1) * PAGES, **columns)
    made.reuse("cache", passes * PAGES, PAGES, {PAGES - 1: (passes - 1) * PAGES} if passes > 1 else {})
    made.swap("reclaim_memcg", (passes - 1) * PAGES, count=500, cpu_ns=50 * MS)


def loop_stack(made: Facts) -> int:
    return made.stack(("use_page", "/src/walk.c", 23), ("main", "/src/walk.c", 43))


def verdict(made: Facts) -> dict[str, Any]:
    return made.one("SELECT * FROM verdict")


def advice(made: Facts) -> dict[str, str]:
    return {row["code"]: row["text"] for row in made.rows("SELECT code, text FROM finding")}


def cache(made: Facts) -> dict[str, Any]:
    return made.one("SELECT * FROM page_cache")


def test_no_file_at_all(boxed: Facts) -> None:
    row = cache(boxed)
    assert (row["thrash"], row["wasteful"], row["single"], row["fill_pages"]) == (0, 0, 0, 0)


def test_what_it_reads_may_be_less_than_its_cgroup_holds(boxed: Facts) -> None:
    mapped(boxed, 4)
    boxed.database.execute("UPDATE memory_cgroup SET limit_bytes = ? WHERE limit_bytes > 0", (170 * MIB,))
    said = verdict(boxed)
    assert "may keep only" not in said["sentence"]
    assert (
        "163 MiB of /srv/data in order, more than once, beside what else is in its memory cgroup of 170 MiB"
        in (said["sentence"])
    )


def test_cyclic_sweep(boxed: Facts) -> None:
    mapped(boxed, 4)
    row = cache(boxed)
    assert (row["thrash"], row["pattern"], row["returns"]) == (1, "cyclic sweep", 3.0)
    assert row["working_bytes"] == 163 * MIB
    assert row["fits_bytes"] == (2 + 163) * MIB
    said = verdict(boxed)
    # Reclaim is of pages of files: one change lowers both.
    assert said["dominant"] == "file"
    assert boxed.toll("reclaim")["family"] == "file"
    assert "The page cache thrashes: 489 MiB of what it reads from files" in said["sentence"]
    assert "163 MiB of /srv/data in order, more than once, but may keep only 82.0 MiB" in said["sentence"]
    assert "came back 3.0 times" in said["sentence"]
    given = advice(boxed)
    assert set(given) == {"file-thrash"}
    assert "about 165 MiB instead of 82.0 MiB (its memory cgroup, /box)" in given["file-thrash"]
    assert "all passes over a part that fits" in given["file-thrash"]
    (evidence,) = boxed.rows("SELECT evidence FROM finding")
    assert "80,051 pages in its group" in evidence["evidence"]


def test_memory_of_who_is_gone_needs_room_too(boxed: Facts) -> None:
    """At the end the command has ended: what it used beside the page cache was seen before."""
    mapped(boxed, 4)
    boxed.database.execute("UPDATE memory_cgroup SET beside_bytes = 23 * 1048576")
    assert cache(boxed)["fits_bytes"] == (23 + 163) * MIB
    assert "163 MiB of files, beside 23.0 MiB of other memory" in advice(boxed)["file-thrash"]


def file_functions(made: Facts, count: int, name: str = "/srv/code") -> None:
    for number in range(count):
        code = made.stack((f"handler_{number}", "/src/code.c", 10 + number), ("main", "/src/code.c", 3))
        made.fault("file_major", 1_009, US, area="file", area_name=name, touched_stack=code, blocked_ns=S)


@pytest.mark.parametrize(("count", "one"), [(2, True), (11, False)])
def test_functions_of_which_no_single_one_matters_are_summed(boxed: Facts, count: int, one: bool) -> None:
    file_functions(boxed, count)
    said = verdict(boxed)["sentence"]
    assert (", most at code.c:1" in said) == one
    assert ("100 % of their time in /srv/code, by 11 functions, none of which takes more than 9 %" in said) != one


def test_a_file_without_a_path_is_not_what_many_functions_have_in_common(boxed: Facts) -> None:
    file_functions(boxed, 11, name="")
    said = verdict(boxed)["sentence"]
    assert "of their time in" not in said
    assert ", most at code.c:" in said


def test_reclaim_without_swap_is_of_files(boxed: Facts) -> None:
    """Files that are written once: nothing comes in by reads, nothing goes to swap."""
    boxed.swap("reclaim_memcg", 20_011, count=1_009, cpu_ns=1_500 * MS)
    said = verdict(boxed)
    assert said["dominant"] == "file"
    assert "pushed out pages of files." in said["sentence"]
    assert "Nothing goes to swap" in advice(boxed)["reclaim-stall"]
    assert "pushed out" not in boxed.one("SELECT evidence FROM finding WHERE code = 'reclaim-stall'")["evidence"]
    boxed.row("not_captured", toll="swap.out", reason="this kernel is old")
    assert verdict(boxed)["dominant"] == "swap"


def test_read_ahead_of_code_that_goes_unused_is_told(boxed: Facts) -> None:
    mapped(boxed, 4, library=1, vain_pages=5 * PAGES)
    assert "were thrown out unused: read-ahead makes it worse" in advice(boxed)["file-thrash"]


def test_pages_that_stay_need_room_too(boxed: Facts) -> None:
    """Attached to: a part of the file stays in memory all the time, and only a recording of all sees it come."""
    boxed.page_fill(36_611, 96_168, distinct_pages=32_768, bytes=163 * MIB)
    boxed.reuse("cache", 132_779, 36_611, {36_610: 96_168})
    assert cache(boxed)["working_bytes"] == 163 * MIB
    boxed.meta(target_command="reader", cgroup="/service")
    assert cache(boxed)["working_bytes"] == 163 * MIB
    boxed.database.execute("DELETE FROM meta WHERE key = 'cgroup'")
    assert cache(boxed)["working_bytes"] < 145 * MIB


def test_less_than_two_passes_do_not_tell_how_much_would_do(boxed: Facts) -> None:
    mapped(boxed, 1)
    boxed.fault("file_major", 1_009, 20 * US, area="file", area_name="/srv/data", blocked_ns=2 * S)
    boxed.database.execute("UPDATE page_fill SET in_pages = 20011, in_sequential_pages = 20011, distinct_pages = 20011")
    assert (cache(boxed)["thrash"], cache(boxed)["seen_once"], cache(boxed)["fits_bytes"]) == (1, 1, None)
    said = verdict(boxed)["sentence"]
    assert "In the time of this recording 78.2 MiB of /srv/data came again, in order" in said
    assert "shows in a recording of two passes" in advice(boxed)["file-thrash"]


def test_reads_that_were_not_looked_at_hide_what_came_between(boxed: Facts) -> None:
    """One read in ten was: few pages are seen twice, and the kernel counts all."""
    boxed.page_fill(5_003, 907, cause="read", requests=5_910, distinct_pages=887)
    boxed.reuse("cache", 5_910, 5_003, {1_009: 907})
    reader = boxed.stack(("main", "/src/reader.c", 17))
    boxed.row("file", file=1, dev=1, inode=7, path="/srv/data", kind="file", bytes=163 * MIB)
    boxed.reuse("files", 10_007, 9_001, {5_003: 1_006})
    where = {"slice": 1, "pid": 42, "file": 1, "call": "pread64", "stack_id": reader, "direct": 0}
    counts = {"calls": 100_003, "failed": 0, "bytes": 100_003 * PAGE, "cached_calls": 0, "cached_bytes": 0}
    spent = {"cpu_ns": S // 2, "blocked_ns": 2 * S, "filled_pages": 100_003, "faults": 0}
    boxed.row("file_read", **where, **counts, **spent)
    boxed.row("thinned", slice=1, what="read", seen=10_007, passed=89_996)
    row, said = cache(boxed), verdict(boxed)["sentence"]
    assert (row["thrash"], row["partial"], row["fits_bytes"]) == (1, 1, None)
    assert "The page cache thrashes: the kernel counts 80,051 pages in its group that came in again" in said
    assert "how much of /srv/data would have to stay is not known; it may keep only 82.0 MiB" in said
    assert "with 163 MiB for files all that it reads would stay" in advice(boxed)["file-thrash"]
    assert row["working_bytes"] is None
    # One in a hundred of all that came had been there before.
    boxed.database.execute("UPDATE memory_cgroup_counter SET value = 1009 WHERE name = 'workingset_refault_file'")
    boxed.database.execute("UPDATE page_fill SET first_pages = 9901, in_pages = 11, distinct_pages = 11")
    assert (cache(boxed)["thrash"], cache(boxed)["partial"]) == (0, 0)
    boxed.database.execute("UPDATE page_fill SET first_pages = 5003, in_pages = 907, distinct_pages = 887")
    # As many as were seen: what was looked at is all there is.
    boxed.database.execute("UPDATE memory_cgroup_counter SET value = 1009 WHERE name = 'workingset_refault_file'")
    assert (cache(boxed)["thrash"], cache(boxed)["partial"]) == (1, 0)
    assert "3.46 MiB of /srv/data came again" in verdict(boxed)["sentence"]


def test_the_kernel_tells_what_came_before(boxed: Facts) -> None:
    """Attached to for a part of a pass, no read-ahead: each page comes in once, and most had been there before."""
    mapped(boxed, 1, requests=PAGES)
    boxed.fault("file_major", PAGES, 20 * US, area="file", area_name="/srv/data", blocked_ns=2 * S)
    assert "returned" not in verdict(boxed)["sentence"] and cache(boxed)["returned"] == 1
    said, told = verdict(boxed)["sentence"], advice(boxed)
    assert "What it reads had been in memory before this recording began: the kernel counts 80,051 pages in" in said
    assert set(told) == {"file-thrash", "read-ahead-off"}
    assert "Neither reading ahead" not in told["file-thrash"], "read-ahead-off says that it does"
    # What read-ahead brought in vain is counted there, too; and a group that is not full throws nothing out.
    boxed.database.execute("UPDATE page_fill SET vain_pages = first_pages")
    assert not cache(boxed)["returned"]
    boxed.database.execute("UPDATE page_fill SET vain_pages = 0")
    boxed.database.execute("UPDATE memory_cgroup SET usage_bytes = 70 * 1048576")
    assert not cache(boxed)["returned"]


def test_one_pass_is_no_thrash(boxed: Facts) -> None:
    """What read-ahead brings may be thrown out before its turn, and come again: the program uses it once."""
    mapped(boxed, 1, vain_pages=PAGES)
    assert cache(boxed)["thrash"] == 0
    assert "thrash" not in verdict(boxed)["sentence"]
    given = advice(boxed)
    assert set(given) == {"file-fault"}
    assert "Read ahead" in given["file-fault"]


def test_random_order(boxed: Facts) -> None:
    """No order, and each fault brings 32 pages of which the most are never used."""
    mapped(
        boxed,
        2,
        first_sequential_pages=0,
        in_sequential_pages=0,
        vain_pages=20 * PAGES,
        requests=22 * PAGES // 32,
        used_pages=2 * PAGES,
    )
    row = cache(boxed)
    assert (row["thrash"], row["pattern"], row["wasteful"]) == (1, "random", 1)
    said = verdict(boxed)["sentence"]
    assert "in no order" in said
    assert "at most 326 MiB were used" in said
    given = advice(boxed)
    assert set(given) == {"file-thrash", "read-around"}
    assert "MADV_RANDOM" in given["read-around"] and "file-thrash saves, too" in given["read-around"]
    assert "keep on one page" in given["file-thrash"]


def test_read_ahead_that_is_off(boxed: Facts) -> None:
    mapped(boxed, 4, requests=4 * PAGES)
    assert set(advice(boxed)) == {"file-thrash", "read-ahead-off"}


def test_code_pages(boxed: Facts) -> None:
    mapped(boxed, 4, library=1, area_name="/srv/program", first_sequential_pages=0, in_sequential_pages=0)
    assert "489 MiB of the program's own code" in verdict(boxed)["sentence"]
    given = advice(boxed)["file-thrash"]
    assert "own code (text)" in given
    assert "mlock" in given


def test_own_memory_starves_the_cache(boxed: Facts) -> None:
    boxed.database.execute("UPDATE memory_cgroup SET file_bytes = ?", (30 * MIB,))
    mapped(boxed, 4)
    assert cache(boxed)["fits_bytes"] == (52 + 163) * MIB
    assert "Other memory of the group takes 52.0 MiB" in advice(boxed)["file-thrash"]


def test_without_a_limit(boxed: Facts) -> None:
    boxed.database.execute("UPDATE memory_cgroup SET limit_bytes = NULL, limit_path = NULL")
    mapped(boxed, 4)
    assert cache(boxed)["fits_bytes"] is None
    assert "the machine's memory does not hold it" in verdict(boxed)["sentence"]
    assert "With 163 MiB for the page cache" in advice(boxed)["file-thrash"]


def read_by(made: Facts, reads: int, cached: int = 97, blocked_ns: int = 100 * MS) -> None:
    made.row("file", file=1, dev=1, inode=7, path="/srv/data", kind="file", bytes=163 * MIB)
    made.row(
        "file_read",
        slice=1,
        pid=42,
        file=1,
        call="pread64",
        stack_id=loop_stack(made),
        direct=0,
        calls=reads,
        failed=0,
        bytes=reads * PAGE,
        cpu_ns=700 * MS,
        blocked_ns=blocked_ns,
        cached_calls=reads - cached,
        cached_bytes=(reads - cached) * PAGE,
        filled_pages=reads,
        faults=0,
    )


def test_reads(boxed: Facts) -> None:
    """The same by pread: no advice to read ahead, nor of the program's own cache."""
    reads = 3 * PAGES
    read_by(boxed, reads)
    boxed.page_fill(PAGES, 2 * PAGES, cause="read", area_name="")
    for subject in ("cache", "files"):
        boxed.reuse(subject, reads, PAGES, {PAGES - 1: 2 * PAGES})
    said = verdict(boxed)
    assert said["dominant"] == "file"
    assert "163 MiB of /srv/data in order" in said["sentence"]
    (given,) = boxed.rows("SELECT code, gain, text FROM finding")
    assert given["code"] == "file-thrash"
    # Two thirds of what it reads need not come from the device.
    assert given["gain"] == pytest.approx(2 / 3 * 0.8 / 1.1, rel=0.05)


@pytest.mark.parametrize("before", [True, False])
def test_reads_of_what_had_been_in_memory_before(boxed: Facts, before: bool) -> None:
    """A larger cache would help, if the kernel says that it has thrown that out; and what it saves are the reads."""
    read_by(boxed, PAGES, PAGES, 2 * S)
    boxed.page_fill(PAGES, cause="read", area_name="")
    boxed.reuse("files", PAGES, PAGES, {})
    if not before:
        boxed.database.execute("UPDATE memory_cgroup_counter SET value = 0")
    assert cache(boxed)["returned"] == before
    assert ("had been in memory before" in verdict(boxed)["sentence"]) == before
    found = {row["code"]: row for row in boxed.rows("SELECT code, gain, text FROM finding")}
    assert set(found) == {"file-thrash" if before else "file-read"}
    assert ("a larger cache would not help" in found.popitem()[1]["text"]) == (not before)
    if before:
        (gain,) = boxed.rows("SELECT gain, (SELECT read_uncached_ns FROM read_measure) AS ns FROM finding")
        observed = boxed.one("SELECT observed_ns FROM observed")["observed_ns"]
        assert gain["ns"] > 2 * S and gain["gain"] * observed == pytest.approx(gain["ns"])


@pytest.mark.parametrize(
    ("how", "columns", "said", "advised"),
    [
        (
            "fadvise",
            {},
            "the program itself gave back 67 %, most by posix_fadvise(POSIX_FADV_DONTNEED) at walk.c:23",
            "Do not give back what is used again. Of what",
        ),
        (
            "madvise",
            {},
            "the program itself gave back 67 %, most by madvise(MADV_PAGEOUT) at walk.c:23",
            "Do not give back what is used again. Of what",
        ),
        (
            "asked",
            {"pid": 7, "comm": "senpai"},
            "67 % went because senpai asked the kernel",
            "Do not ask the kernel to take back what is used again. Of what",
        ),
        (
            "other",
            {"pid": 7, "comm": "backup", "memory_cgroup": "nightly"},
            "other processes pushed out 67 %, for want of memory, most by backup (memory cgroup nightly)",
            "Limit those that push it out",
        ),
    ],
)
def test_who_throws_them_out(boxed: Facts, how: str, columns: dict[str, Any], said: str, advised: str) -> None:
    mapped(boxed, 4)
    given = how in ("fadvise", "madvise")
    boxed.page_drop(how, 2 * PAGES, stack_id=loop_stack(boxed) if given else 0, **columns)
    boxed.page_drop("self", PAGES)
    sentence = verdict(boxed)["sentence"]
    assert said in sentence
    assert "Of what was thrown out, " in sentence
    assert ("and it is not kept" in sentence) == (how != "other")
    assert advised in advice(boxed)["file-thrash"]


def test_it_throws_out_its_own(boxed: Facts) -> None:
    mapped(boxed, 4)
    boxed.page_drop("self", 3 * PAGES)
    boxed.page_drop("other", PAGES, pid=7, comm="backup")
    assert "backup" not in verdict(boxed)["sentence"]
    assert "what was thrown out" not in verdict(boxed)["sentence"]


@pytest.mark.parametrize(("cut", "thrash"), [(2 * PAGES, False), (PAGES // 2, True)])
def test_what_a_file_lost_as_it_was_cut_short_is_no_thrash(boxed: Facts, cut: int, thrash: bool) -> None:
    """The pages of a file that is truncated and made anew come in again each time."""
    mapped(boxed, 3)
    boxed.page_drop("cut", cut)
    assert cache(boxed)["thrash"] == thrash
    given = advice(boxed)
    assert ("file-thrash" in given) == thrash
    assert ("Keep the file at its length" in " ".join(given.get("file-fault", "").split())) != thrash
    sentence = verdict(boxed)["sentence"]
    assert ("The page cache thrashes" in sentence) == thrash
    assert "Of what was thrown out" not in sentence


@pytest.mark.parametrize(
    ("cut", "cause", "remade"),
    [(2 * PAGES, "fault", True), (4 * PAGES, "map", True), (5 * PAGES, "fault", False), (2 * PAGES, "read", False)],
)
def test_only_what_comes_again_can_be_what_was_cut(boxed: Facts, cut: int, cause: str, remade: bool) -> None:
    """Of files that were written and deleted nothing comes again, and a read clears nothing."""
    mapped(boxed, 3, cause=cause)
    boxed.page_drop("cut", cut)
    assert cache(boxed)["remade"] == remade
    assert ("They are lost as the file is cut short" in " ".join(advice(boxed)["file-fault"].split())) == remade


@pytest.mark.parametrize(("major", "said"), [(10, "Hardly any had to"), (1_000, "Read ahead")])
def test_read_ahead_is_for_what_is_read(boxed: Facts, major: int, said: str) -> None:
    place = {"area": "file", "area_name": "/srv/data", "touched_stack": loop_stack(boxed)}
    boxed.fault("file_minor", 10_007, 80 * US, **place)
    boxed.fault("file_major", major, 80 * US, **place)
    assert said in advice(boxed)["file-fault"]


@pytest.mark.parametrize("major", [1, 2])
def test_the_first_that_reads_waits_whatever_is_read_ahead(boxed: Facts, major: int) -> None:
    """A disk that others use: one read of it takes most of the time."""
    place = {"area": "file", "area_name": "/srv/data", "touched_stack": loop_stack(boxed)}
    boxed.fault("file_major", major, 80 * US, blocked_ns=S, **place)
    given = boxed.judged("finding", "SELECT code, gain FROM finding")
    gain = {row["code"]: row["gain"] for row in given}.get("file-fault")
    if major == 1:
        assert gain is None
    else:
        share = boxed.one("SELECT file_ns / base_ns AS share FROM weighed")["share"]
        assert gain == pytest.approx(share / 2, rel=0.01)


@pytest.mark.parametrize(
    ("area", "blocked_ns", "said"),
    [
        # A few that wait for the device take most of the time: what is said is of these.
        ("file", 100 * MS, "Read ahead"),
        ("file", 0, "Hardly any had to"),
        ("library", 100 * MS, "that had to be read first"),
        ("library", 0, "which each process maps in anew"),
    ],
)
def test_code_is_no_file_to_be_read_ahead(boxed: Facts, area: str, blocked_ns: int, said: str) -> None:
    place = {"area": area, "area_name": "/usr/bin/reader", "touched_stack": loop_stack(boxed)}
    boxed.fault("file_minor", 10_007, 80 * US, **place)
    boxed.fault("file_major", 11, 80 * US, blocked_ns=11 * blocked_ns, **place)
    text = " ".join(advice(boxed)["file-fault"].split())
    assert said in text
    assert ("MAP_POPULATE" in text) == (area == "file")


@pytest.mark.parametrize(("area", "said"), [("file", "mapped privately"), ("heap", "fork before the memory")])
def test_copies_of_a_files_pages_are_no_forks(boxed: Facts, area: str, said: str) -> None:
    name = "/srv/data" if area == "file" else ""
    boxed.fault("cow", 250_007, 2 * US, area=area, area_name=name, touched_stack=loop_stack(boxed))
    assert said in advice(boxed)["cow"]


@pytest.mark.parametrize(
    ("pid", "executable", "said"),
    [
        (42, "/srv/reader", "by the process that forked"),
        (43, "/srv/reader", "by its children"),
        (42, "/bin/true", "Pages shared with another process"),
    ],
    ids=["snapshot", "worker", "exec"],
)
def test_who_copies_after_a_fork_is_told(boxed: Facts, pid: int, executable: str, said: str) -> None:
    boxed.process(43, parent_pid=42, role="child", executable=executable)
    # Each start of a program makes relocations, in pages of its libraries.
    boxed.fault("cow", 400_009, 2 * US, pid=85 - pid, area="library", area_name="/lib/libc.so.6")
    boxed.fault("cow", 250_007, 2 * US, pid=pid, area="heap", touched_stack=loop_stack(boxed))
    boxed.fault("cow", 100_003, 2 * US, pid=85 - pid, area="heap")
    text = advice(boxed)["cow"]
    assert said in text
    assert ("977 MiB" in text) == (executable == "/srv/reader")


def test_pages_that_ksm_merges_are_no_forks(boxed: Facts) -> None:
    """Less than half of the copies: what is said is of most of them."""
    boxed.fault("cow", 100_003, 2 * US, area="heap")
    boxed.fault("cow_merged", 90_001, 2 * US, area="anon", touched_stack=loop_stack(boxed))
    assert "KSM" not in advice(boxed)["cow"]
    boxed.fault("cow_merged", 90_007, 2 * US, area="anon", touched_stack=loop_stack(boxed))
    assert advice(boxed)["cow"].startswith("KSM has made one of equal pages, and each that is written to is")
    assert "703 MiB" in advice(boxed)["cow"]


@pytest.mark.parametrize("how", ["madvise", "asked", "self"])
def test_what_goes_to_swap_as_it_was_asked_for(how: str) -> None:
    """MADV_PAGEOUT and what came back is one story; its time is reclaim's. No limit is to blame, where one asks."""
    made = Facts()
    made.prices()
    made.slice()
    made.process()
    made.memory_cgroup(60 << 20)
    made.cpu(100 * MS)
    place = made.stack(("give", "/src/give.c", 32))
    made.fault("swap_minor", 3_001, 10 * US)
    made.access("", 3_001, 3_001, in_sequential_pages=3_001, area="anon", distinct_pages=1_001)
    made.map_call("madvise", place, 7, 7 * 501 * PAGE, 50 * MS)
    made.swap("out_self", 3_507)
    made.page_drop(how, 3_507, what="swap", stack_id=place if how == "madvise" else 0)
    row = verdict(made)
    assert row["dominant"] == ("swap" if how == "madvise" else "mapping")
    assert made.toll("reclaim")["time_ns"] == pytest.approx(50 * MS if how == "madvise" else 0, rel=0.01)
    assert made.toll("map")["time_ns"] == pytest.approx(0 if how == "madvise" else 50 * MS, rel=0.01)
    if how == "madvise":
        assert "madvise(MADV_PAGEOUT) at give.c:32 (give), which takes 50.0 ms" in row["sentence"]
        assert "11.7 MiB came back from swap in 3,001 faults" in row["sentence"]
        assert "may keep only" not in row["sentence"]
    text = advice(made)["swap-in"]
    assert ("Do not give back what is used again" in text) == (how == "madvise")
    assert ("Do not ask the kernel to take back what is used again" in text) == (how == "asked")
    assert ("more memory than it may keep" in text) == (how != "madvise")
    assert ("map-churn" in advice(made)) == (how != "madvise")


@pytest.mark.parametrize(("what", "file_pages"), [("swap", 0), ("swap", 4_001), ("file", 4_001)])
def test_what_is_pushed_out_and_does_not_come_back(what: str, file_pages: int) -> None:
    """MADV_PAGEOUT takes the time: that is what can be changed. Files' pages may go beside, or alone."""
    made = Facts()
    made.prices()
    made.slice()
    made.process()
    made.cpu(100 * MS)
    place = made.stack(("give", "/src/give.c", 32), ("main", "/src/give.c", 71))
    made.map_call("madvise", place, 7, 7 * 1_009 * PAGE, 60 * MS)
    if what == "swap":
        made.swap("out_self", 3_507)
        made.fault("swap_minor", 11, 10 * US)
        made.page_drop("madvise", 3_507, what="swap", stack_id=place)
    if file_pages:
        made.page_drop("madvise", file_pages, stack_id=place)
    assert made.toll("reclaim")["family"] == what
    assert "(MADV_PAGEOUT) at give.c:32 (give), which takes 60.0 ms" in verdict(made)["sentence"]
    (found,) = made.rows("SELECT * FROM finding")
    assert (found["code"], found["gain"]) == ("given-out", pytest.approx(0.6, rel=0.01))
    assert "hardly any of it came back. Free what is not used again" in found["text"]
    assert found["evidence"].startswith("7 calls pushed ")
    site = made.one("SELECT call, allocated FROM site_short WHERE toll = 'reclaim'")
    assert (site["call"], site["allocated"]) == ("madvise", "give.c:32 (give)")
    measured = made.one("SELECT given_ns, given_file_ns FROM given_measure")
    assert measured["given_file_ns"] == pytest.approx(
        measured["given_ns"] * file_pages / (file_pages + (3_507 if what == "swap" else 0))
    )


def test_pushing_out_what_is_read_again_is_part_of_that(boxed: Facts) -> None:
    mapped(boxed, 4)
    place = boxed.stack(("give", "/src/give.c", 32))
    promised = "SELECT code, gain * (SELECT observed_ns FROM observed) AS saves_ns FROM finding"
    (before,) = boxed.rows(promised)
    boxed.map_call("madvise", place, 7, 7 * 1_009 * PAGE, 400 * MS)
    boxed.page_drop("madvise", 3 * PAGES, stack_id=place)
    (after,) = boxed.rows(promised)
    assert before["code"] == after["code"] == "file-thrash"
    assert after["saves_ns"] - before["saves_ns"] == pytest.approx(0.75 * 400 * MS, rel=0.01)


def test_what_is_let_go_is_no_part_of_the_thrash(boxed: Facts) -> None:
    mapped(boxed, 4)
    place = boxed.stack(("give", "/src/give.c", 96))
    promised = "SELECT code, gain * (SELECT observed_ns FROM observed) AS saves_ns FROM finding"
    before = {row["code"]: row["saves_ns"] for row in boxed.rows(promised)}
    boxed.fault("file_minor", 20_011, 80 * US, area="file", pages=20_011 * 16)
    boxed.map_call("madvise", place, 7, 7 * 10_007 * PAGE, 50 * MS)
    boxed.advised("dontneed", place, 7, 7 * 10_007, **{"class": "file_minor"}, again_faults=20_011, again_pages=320_176)
    after = {row["code"]: row["saves_ns"] for row in boxed.rows(promised)}
    assert (set(before), set(after)) == ({"file-thrash"}, {"file-thrash", "let-go"})
    assert after["file-thrash"] == pytest.approx(before["file-thrash"], rel=0.001)
    assert after["let-go"] == pytest.approx(50 * MS + 20_011 * 80 * US, rel=0.01)


def test_unmapped_and_mapped_in_again() -> None:
    """MADV_DONTNEED of a file's mapping: the calls and the faults are one finding."""
    made = Facts()
    made.prices()
    made.slice()
    made.process()
    made.cpu(100 * MS)
    place = made.stack(("give", "/src/give.c", 96))
    made.fault("file_minor", 5_003, 9 * US, area="file", pages=80_048)
    made.map_call("madvise", place, 7, 7 * 10_007 * PAGE, 50 * MS)
    made.advised("dontneed", place, 7, 7 * 10_007, **{"class": "file_minor"}, again_faults=5_003, again_pages=80_048)
    said = verdict(made)["sentence"]
    assert "madvise(MADV_DONTNEED) at give.c:96 (give) takes 274 MiB" in said
    assert "313 MiB are mapped in again in 5,003 faults: 94.5 ms in all" in said
    assert advice(made).keys() == {"let-go"}
    assert "leave them mapped" in advice(made)["let-go"]


@pytest.mark.parametrize(("area", "other"), [("file", "file-fault"), ("shared", "shared-map")])
@pytest.mark.parametrize("again", [3_001, 1_009])
def test_what_is_let_go_is_promised_once(area: str, other: str, again: int) -> None:
    """Other faults may be beside those of MADV_DONTNEED, and the same place may drop memory of its own, too."""
    made = Facts()
    made.prices()
    made.slice()
    made.process()
    made.cpu(100 * MS)
    place = made.stack(("madvise", "", 0), ("give", "/src/give.c", 96))
    kind = f"{area}_minor"
    made.fault(kind, 5_003, 9 * US + FAULT_INSIDE, area=area)
    made.map_call("madvise", place, 9, 400 * MIB, 40 * MS + 9 * MAP_INSIDE)
    made.advised("dontneed", place, 9, 400 * MIB // PAGE, **{"class": kind}, again_faults=again, again_pages=again)
    made.gave("dontneed", place, 2, 300 * MIB, gave_call="")
    made.again("dontneed", place, place, 299 * MIB // PAGE, gave_call="", got_call="")
    measured = made.one("SELECT let_go_bytes, let_go_ns, let_go_again_ns FROM advised_measure")
    assert measured["let_go_bytes"] == 100 * MIB
    assert measured["let_go_ns"] == pytest.approx(10 * MS, rel=0.01)
    assert measured["let_go_again_ns"] == pytest.approx(again * 9 * US)
    assert made.one("SELECT gave_ns FROM giveback_site")["gave_ns"] == pytest.approx(30 * MS, rel=0.01)
    found = made.rows("SELECT code, gain * (SELECT observed_ns FROM observed) AS saves_ns FROM finding")
    saves = {row["code"]: row["saves_ns"] for row in found}
    assert saves["let-go"] == pytest.approx(10 * MS + again * 9 * US, rel=0.01)
    assert (other in saves) == (again < 2_000)
    if other in saves:
        assert saves[other] == pytest.approx((5_003 - again) * 9 * US, rel=0.01)


def test_called_cold_and_used_again() -> None:
    made = Facts()
    made.prices()
    made.slice()
    made.process()
    made.memory_cgroup(60 * MIB)
    made.cpu(100 * MS)
    made.fault("swap_minor", 5_003, 15 * US)
    made.access("", 0, 5_003, 5_003, area="anon", distinct_pages=2_003)
    made.swap("out_self", 5_507)
    place = made.stack(("give", "/src/give.c", 32))
    made.advised("cold", place, 7, 7 * 1_009, **{"class": "swap_minor"}, again_faults=3_001, again_pages=3_001)
    assert (
        "11.7 MiB of what came back the program had called cold (MADV_COLD), most at give.c:32 (give)"
        in (verdict(made)["sentence"])
    )
    assert "do without the MADV_COLD at give.c:32 (give)" in advice(made)["swap-in"]
