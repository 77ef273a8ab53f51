# SPDX-License-Identifier: GPL-2.0
"""Pages that the kernel faults in inside system calls, pages that are freed, and what the checks miss."""

from __future__ import annotations

import json
from typing import Any

import pytest

from facts import FAULT_INSIDE, FAULT_NS, MAP_INSIDE, MS, PAGE, US, Facts, S

PAGES = 500_009
EACH_NS = 1_200.0
POPULATED_NS = PAGES * EACH_NS


def made_with(minor: int, cpu_ns: float = S) -> Facts:
    made = Facts()
    made.prices()
    made.slice()
    made.process()
    made.allocator()
    made.cpu(cpu_ns, minor=minor)
    return made


def verdict(made: Facts) -> dict[str, Any]:
    return made.one("SELECT * FROM verdict")


def findings(made: Facts) -> dict[str, dict[str, Any]]:
    return {row["code"]: row for row in made.rows("SELECT * FROM finding ORDER BY position")}


def locked(call: str, *frames: tuple[str, str, int]) -> Facts:
    """101 calls that fault in all pages, each of its time but a bare call's the faults'."""
    made = made_with(PAGES)
    stack = made.stack(*frames)
    made.fault("zero_populated", PAGES, EACH_NS, touched_stack=stack)
    made.map_call(
        call,
        stack,
        101,
        PAGES * PAGE,
        POPULATED_NS + 101 * (2 * US + MAP_INSIDE),
        populated=PAGES,
        populated_ns=round(POPULATED_NS),
    )
    return made


def test_pages_of_a_call_are_zeroing_at_the_price_of_the_call() -> None:
    made = locked("mlock", ("mlock", "", 0), ("lock_buffer", "/src/box.c", 7))
    assert made.one("SELECT * FROM checks WHERE name = 'minor_faults'")["ok"] == 1
    kernel = made.toll("zero.kernel")
    assert (kernel["count"], kernel["bytes"]) == (PAGES, PAGES * PAGE)
    # No probe is in it, nothing is taken out.
    assert kernel["time_ns"] == pytest.approx(POPULATED_NS)
    assert made.toll("map")["time_ns"] == pytest.approx(101 * 2 * US)
    said = verdict(made)
    assert said["dominant"] == "zeroing"
    assert "inside mlock at box.c:7 (lock_buffer)" in said["sentence"]
    assert "MLOCK_ONFAULT" in findings(made)["populated"]["text"]
    assert "map-churn" not in findings(made)


@pytest.mark.parametrize(
    ("call", "word"), [("madvise", "MADV_POPULATE"), ("mmap", "MAP_POPULATE"), ("brk", "MCL_FUTURE")]
)
def test_advice_goes_by_the_call(call: str, word: str) -> None:
    assert word in findings(locked(call, ("make", "/src/box.c", 9)))["populated"]["text"]


@pytest.mark.parametrize(("cls", "again"), [("zero_populated", True), ("zero", False)])
@pytest.mark.parametrize(("how", "code"), [("munmap", "own-storm"), ("stack_unmapped", "stack-storm")])
def test_what_a_call_faults_in_again_and_again_is_said_once(cls: str, again: bool, how: str, code: str) -> None:
    """The call that faults it in can leave that to its use; keeping the memory is the same advice from either end."""
    made = locked("mlock", ("mlock", "", 0), ("lock_buffer", "/src/box.c", 7))
    frames = [("munmap", "", 0), ("drop", "/src/box.c", 9)]
    drop = made.stack(*(frames if how == "munmap" else [frames[0], ("", "", 0), frames[1]]))
    lock = made.stack(("mlock", "", 0), ("lock_buffer", "/src/box.c", 7))
    made.map_call("munmap", drop, 101, PAGES * PAGE, 100 * MS + 101 * MAP_INSIDE)
    made.gave(how, drop, 101, PAGES * PAGE, gave_call="")
    made.again(how, drop, lock, PAGES - PAGES // 101, gave_call="", got_call="", **{"class": cls})
    if cls == "zero":
        made.fault("zero", PAGES - PAGES // 101, None, touched_stack=lock)
    found = findings(made)
    assert ("populated" in found, code in found) == (True, not again)
    assert "map-churn" not in found
    text, gain = found["populated"]["text"], found["populated"]["gain"]
    if again:
        # Pages that are not faulted in are not freed either.
        assert gain == pytest.approx((POPULATED_NS * 100 / 101 + 100 * MS) / S, rel=0.01)
        assert ("munmap at box.c:9 (drop) gives it back each time" in text) == (how == "munmap")
    else:
        assert gain < POPULATED_NS / S + 0.001


def test_stacks_of_threads_have_advice_of_their_own() -> None:
    frames = (("mprotect", "", 0), ("pthread_create", "", 0), ("scan", "/src/scan.c", 8))
    said = findings(locked("mprotect", *frames))["populated"]
    assert "thread's stack" in said["text"]
    assert "--set GLIBC_TUNABLES=glibc.pthread.stack_cache_size=134217728" in said["try"]


def test_recordings_of_before_count_them_in_calls_only() -> None:
    made = made_with(PAGES)
    made.map_call("mmap", 5, 101, PAGES * PAGE, POPULATED_NS, populated=PAGES)
    assert made.one("SELECT * FROM checks WHERE name = 'minor_faults'")["ours"] == PAGES
    assert made.toll("map")["time_ns"] == pytest.approx(POPULATED_NS - 101 * MAP_INSIDE)


def sampled(populate: int, kernel: int, user: int, missed: int = PAGES) -> Facts:
    made = made_with(missed)
    stack = made.stack(("syscall", "", 0), ("pin", "/src/ring.c", 24))
    if populate:
        made.samples("populate", populate, stack, in_call="io_uring_register")
    if kernel:
        made.samples("kernel", kernel, stack)
    made.samples("user", user, stack)
    return made


def test_calls_that_are_not_watched_are_told_by_samples() -> None:
    made = sampled(populate=70, kernel=0, user=30)
    kernel = made.toll("zero.kernel")
    assert (kernel["count"], kernel["bytes"]) == (PAGES, PAGES * PAGE)
    assert kernel["time_ns"] == pytest.approx(0.7 * S)
    assert 0.58 < kernel["low"] < 0.62 and 0.77 < kernel["high"] < 0.85
    site = made.one("SELECT * FROM sites WHERE toll = 'zero.kernel'")
    assert (site["area"], site["count"]) == ("system call io_uring_register", PAGES)
    said = verdict(made)
    assert said["dominant"] == "zeroing" and said["sentence"].startswith("Zeroing takes 70 %")
    assert findings(made)["populated"]["text"].startswith("io_uring_register at ring.c:24 (pin)")
    # How much a call faults in is not known by samples.
    made.database.execute("UPDATE sample SET in_call = 'mmap' WHERE in_call <> ''")
    assert "(pin) faults in its whole range (MAP_POPULATE, or" in findings(made)["populated"]["text"]
    process = json.loads(made.one("SELECT json FROM report_json")["json"])["processes"][0]
    assert process["toll_s"]["zero.kernel"] == pytest.approx(0.7)


@pytest.mark.parametrize(("kernel", "dominant"), [(60, "compute"), (97, "none")])
def test_unseen_faults_are_the_first_sentence_and_bound_the_rest(kernel: int, dominant: str) -> None:
    """What the checks miss may be much of the time, in code of the kernel that is not known."""
    faults = PAGES if dominant == "compute" else 2 * PAGES
    made = sampled(populate=0, kernel=kernel, user=100 - kernel, missed=faults)
    assert made.one("SELECT * FROM checks WHERE name = 'minor_faults'")["ok"] == 0
    said = verdict(made)
    assert said["sentence"].startswith(f"Not all was seen: the kernel counts {faults:,} page faults more")
    assert "memory is not what it waits for" not in said["sentence"]
    assert said["dominant"] == dominant
    missed = faults * FAULT_NS / S
    assert made.toll("zero.kernel")["high"] == pytest.approx(missed, rel=0.01)
    assert 1 - missed - 0.06 < made.toll("compute")["low"] < 1 - missed  # zero.app may be a little
    assert said["low"] == made.toll("compute")["low"]
    assert made.toll("compute")["high"] == pytest.approx(1, rel=0.01)
    assert "Nothing can be advised" in findings(made)["none"]["text"]


def test_unseen_faults_have_no_more_room_than_samples_leave() -> None:
    made = sampled(populate=0, kernel=0, user=1_000)
    assert made.toll("zero.kernel")["high"] < 0.01
    said = verdict(made)
    assert said["dominant"] == "compute" and said["sentence"].startswith("Computing takes 100 %")
    # The check fails all the same: that is no ground to deny memory.
    assert "memory is not what it waits for" not in said["sentence"]


@pytest.mark.parametrize(("missed", "denied"), [(3, True), (PAGES // 20, False)])
def test_memory_is_denied_only_where_the_checks_agree(missed: int, denied: bool) -> None:
    made = sampled(populate=0, kernel=60, user=40, missed=missed)
    said = verdict(made)
    assert said["dominant"] == "compute" and said["sentence"].startswith("Computing takes")
    assert ("memory is not what it waits for" in said["sentence"]) == denied


def test_freeing_pages_is_the_mapping_toll() -> None:
    made = made_with(0)
    stack = made.stack(("close", "", 0), ("drop", "/src/store.c", 31))
    made.samples("pages", 50, stack, in_call="close")
    made.samples("user", 50, stack)
    assert made.toll("map")["time_ns"] == pytest.approx(0.5 * S)
    assert made.toll("compute")["time_ns"] == pytest.approx(0.5 * S)
    made.map_call("munmap", stack, 1_009, 1_009 * PAGE, 300 * MS + 1_009 * MAP_INSIDE)
    assert made.toll("map")["time_ns"] == pytest.approx(0.8 * S)
    said = verdict(made)
    assert said["dominant"] == "mapping"
    assert "most in close at store.c:31 (drop)" in said["sentence"]
    assert "Most of it, 800 ms, is unmapping memory and freeing its pages." in said["sentence"]
    advice = findings(made)["map-churn"]["text"]
    assert "use it again" in advice and "larger" not in advice
    # Also where blocks that were never used come and go beside: what is freed was not made.
    made.block("malloc", 7, 101, 101 * PAGE, freed=101, never_used_bytes=101 * PAGE)
    assert "Making" not in findings(made)["map-churn"]["text"]


def test_populated_faults_leave_the_price_of_others_alone() -> None:
    made = locked("mlock", ("lock", "/src/box.c", 7))
    made.fault("zero", 1_009, FAULT_NS + 100)
    price = {row["class"]: row["mean_ns"] for row in made.rows("SELECT * FROM fault_price")}
    assert price["zero"] == pytest.approx(FAULT_NS)
    assert price["zero_populated"] == pytest.approx(EACH_NS)
    # Of no class that was timed: what other classes cost, not what calls do.
    assert price["other"] == pytest.approx(FAULT_NS)


def test_time_is_promised_once() -> None:
    """What is populated, and what a storm brings again by touch, are not first-touch's to save."""
    made = locked("mlock", ("mlock", "", 0), ("lock_buffer", "/src/box.c", 7))
    freed, got = (made.stack((name, "", 0), ("cycle", "/src/box.c", 11)) for name in ("free", "malloc"))
    made.fault("zero", 150_001, FAULT_NS + FAULT_INSIDE)
    made.gave("brk", freed, 13, 50_021 * PAGE)
    made.again("brk", freed, got, 50_021)
    made.again("brk", freed, got, 907, **{"class": "zero_populated"})
    weight = made.one("SELECT storm_touch_ns FROM giveback_weight")
    assert weight["storm_touch_ns"] == pytest.approx(50_021 * FAULT_NS)
    state = {row["code"]: row["gain"] for row in made.rows("SELECT code, gain FROM advice_state")}
    observed = made.one("SELECT observed_ns FROM observed")["observed_ns"]
    assert state["populated"] * observed == pytest.approx(POPULATED_NS)
    assert state["first-touch"] * observed == pytest.approx((150_001 - 50_021) * FAULT_NS)


@pytest.mark.parametrize("in_call", ["calloc", ""])
def test_pages_that_came_again_and_are_cleared_twice_are_taken_out_once(in_call: str) -> None:
    made = made_with(150_001)
    freed, got = (made.stack((name, "", 0), ("cycle", "/src/box.c", 11)) for name in ("free", "calloc"))
    columns = {"allocated_call": "calloc", "allocated_stack": got, "in_call": in_call}
    made.fault("zero", 60_013, FAULT_NS + FAULT_INSIDE, in_memset=1, **columns)
    made.fault("zero", 89_988, FAULT_NS + FAULT_INSIDE)
    made.gave("brk", freed, 13, 50_021 * PAGE)
    made.again("brk", freed, got, 50_021, got_call="calloc", twice_bytes=40_009 * PAGE if in_call else 0)
    gain = made.one("SELECT gain * base_ns AS ns FROM advice_state, weighed WHERE code = 'first-touch'")["ns"]
    # Of calloc it is known how many came again; the program's own may be all that did.
    once = 60_013 + 50_021 - 40_009 if in_call else 60_013
    assert gain == pytest.approx((150_001 - once) * FAULT_NS)
    code = "SELECT gain * base_ns AS ns FROM advice_state, weighed WHERE code = 'app-double-clear'"
    assert made.one(code)["ns"] == pytest.approx(0 if in_call else (60_013 - 50_021) * FAULT_NS)


def test_huge_pages_that_are_cleared_twice_are_taken_out_once() -> None:
    made = made_with(997)
    wipe = made.stack(("wipe", "/src/box.c", 11))
    each = {"pages": 512 * 100, "touched_stack": wipe}
    made.fault("zero_huge", 100, 95 * US + FAULT_INSIDE, in_memset=1, **each)
    made.fault("zero_huge", 897, 95 * US + FAULT_INSIDE, **(each | {"pages": 512 * 897}))
    made.database.execute("INSERT INTO huge_look VALUES (42, 61, 61, 3)")
    assert made.one("SELECT huge_sparse FROM huge_measure")["huge_sparse"] == 1
    kept = made.one("SELECT huge_ns - huge_saves_ns AS ns FROM huge_measure")["ns"]
    gain = made.one("SELECT gain * base_ns AS ns FROM advice_state, weighed WHERE code = 'first-touch'")["ns"]
    assert gain == pytest.approx(kept * 897 / 997, rel=0.001)


@pytest.mark.parametrize(
    ("call", "does", "remedy"),
    [
        ("clone", "is copying page tables for child processes.", "posix_spawn"),
        ("fork", "is copying page tables for child processes.", "posix_spawn"),
        ("mprotect", "is changing the protection of pages.", "Protect larger ranges"),
        ("pkey_mprotect", "is changing the protection of pages.", "Protect larger ranges"),
    ],
)
def test_page_tables_copied_and_rewritten_are_the_mapping_toll(call: str, does: str, remedy: str) -> None:
    made = made_with(0)
    stack = made.stack((call, "", 0), ("serve", "/src/serve.c", 12))
    made.samples("pages", 60, stack, in_call=call)
    made.samples("user", 40, stack)
    assert made.toll("map")["time_ns"] == pytest.approx(0.6 * S)
    said = verdict(made)
    assert said["dominant"] == "mapping"
    assert f"most in {call} at serve.c:12 (serve). Most of it, 600 ms, {does}" in said["sentence"]
    found = findings(made)["map-churn"]
    assert remedy in found["text"] and "serve.c:12 (serve)" in found["text"]
    assert "600 ms" in found["evidence"] and "0 mapping calls" not in found["evidence"]


@pytest.mark.parametrize(
    ("call", "said"), [("fork", "Making child processes"), ("mprotect", "Changing the protection")]
)
def test_calls_that_samples_tell_are_named_beside_others(call: str, said: str) -> None:
    """One munmap takes more than any one place does of the forks; an allocator's mappings are beside it."""
    made = made_with(0)
    for line in (12, 13, 14):
        made.samples("pages", 18 + line, made.stack((call, "", 0), ("serve", "/src/serve.c", line)), in_call=call)
    made.samples("user", 40)
    drop = made.stack(("munmap", "", 0), ("drop", "/src/store.c", 31))
    made.map_call("munmap", drop, 3, 3 * PAGE, 350 * MS + 3 * MAP_INSIDE)
    block = made.stack(("malloc", "", 0), ("grow", "/src/store.c", 7))
    made.call("malloc", block, 101, mmapped_calls=101, bytes=101 * 131 * PAGE)
    made.map_call("mmap", block, 101, 101 * 131 * PAGE, 400 * US + 101 * MAP_INSIDE, in_call="malloc")
    sentence = verdict(made)["sentence"]
    assert f"most in {call} at serve.c:14 (serve)." in sentence and "munmap" not in sentence
    found = findings(made)["map-churn"]
    assert found["text"].startswith(said) and f"most by {call} at serve.c:14 (serve)" in found["text"]
    assert "Reuse one buffer" not in found["text"]
    assert found["evidence"].startswith("Mapping calls, as CPU samples tell, took ")
    measured = made.one("SELECT mapper_each_ns, map_each_ns, mapper_share FROM measure")
    assert measured["mapper_each_ns"] == pytest.approx(350.4 * MS / 101, rel=0.01)
    assert measured["map_each_ns"] == pytest.approx(350.4 * MS / 104, rel=0.01)
    # Where mapping calls were watched they are counted.
    made.database.execute("DELETE FROM sample WHERE in_call = ?", (call,))
    assert findings(made)["map-churn"]["evidence"].startswith("104 mapping calls took 350 ms")


@pytest.mark.parametrize("call", ["exit_group", "execve"])
def test_the_end_of_a_program_is_the_mapping_toll(call: str) -> None:
    """Its memory is given back when it ends, or its process begins another: nothing there could be kept."""
    made = made_with(0)
    made.samples("pages", 60, 0 if call == "exit_group" else made.stack((call, "", 0)), in_call=call)
    made.samples("user", 40, made.stack(("serve", "/src/serve.c", 12)))
    assert made.toll("map")["time_ns"] == pytest.approx(0.6 * S)
    said = verdict(made)
    assert said["dominant"] == "mapping"
    assert "most at the end of programs, where all of their memory is given back." in said["sentence"]
    assert "map-churn" not in findings(made)
    area = "the end of a process" if call == "exit_group" else ""
    assert made.one("SELECT area FROM sites WHERE toll = 'map'")["area"] == area


def test_mprotect_that_faults_pages_in_has_its_time_once() -> None:
    made = locked("mprotect", ("mprotect", "", 0), ("scan", "/src/scan.c", 8))
    made.samples("pages", 60, made.stack(("mprotect", "", 0)), in_call="mprotect")
    made.samples("user", 40)
    assert made.toll("map")["time_ns"] == pytest.approx(101 * 2 * US)


def test_one_mprotect_that_faults_pages_in_does_not_hide_the_others() -> None:
    """A compiler at run time changes protections all the time; one thread's stack is locked beside."""
    made = made_with(101)
    start = made.stack(("mprotect", "", 0), ("pthread_create", "", 0), ("serve", "/src/serve.c", 9))
    made.fault("zero_populated", 101, EACH_NS, touched_stack=start)
    made.map_call("mprotect", start, 1, 101 * PAGE, 2 * MS, populated=101, populated_ns=round(101 * EACH_NS))
    jit = made.stack(("mprotect", "", 0), ("seal", "/src/jit.c", 8))
    made.samples("pages", 60, jit, in_call="mprotect")
    made.samples("user", 40)
    assert made.one("SELECT SUM(time_ns) AS ns FROM sampled_work")["ns"] == pytest.approx(598 * MS)
    assert made.toll("map")["time_ns"] == pytest.approx(600 * MS, rel=0.01)
    assert "seal" in findings(made)["map-churn"]["text"]
    # The calls that were seen and what samples say of others: a toll of two parts, in one row.
    (row,) = made.rows("SELECT time_ns, count FROM process_toll WHERE pid = 42 AND toll = 'map'")
    assert (row["time_ns"], row["count"]) == (made.toll("map")["time_ns"], 1)


def test_memory_filled_with_zeros_for_a_read_is_zeroing_without_faults() -> None:
    made = made_with(0)
    stack = made.stack(("read", "", 0), ("wipe", "/src/wipe.c", 5))
    made.samples("clear", 80, stack, in_call="read")
    made.samples("user", 20, stack)
    kernel = made.toll("zero.kernel")
    assert (kernel["count"], kernel["strange"]) == (0, 0)
    assert kernel["time_ns"] == kernel["clear_ns"] == pytest.approx(0.8 * S)
    said = verdict(made)
    assert said["dominant"] == "zeroing"
    assert (
        "fills memory that is there already with zeros, most of it inside read at wipe.c:5 (wipe)." in said["sentence"]
    )
    assert "first-touch" not in said["sentence"]
    found = findings(made)
    assert found["zeros-read"]["text"].startswith("read at wipe.c:5 (wipe) fills memory")
    assert found["zeros-read"]["gain"] == pytest.approx(0.8)
    assert "800 ms of CPU samples" in found["zeros-read"]["evidence"]
    assert "populated" not in found and "first-touch" not in found


@pytest.mark.parametrize("clears", [60, 25])
def test_zeros_that_are_read_and_pages_that_are_faulted_in_have_each_their_place(clears: int) -> None:
    """Reads at many places beside one lock: the largest place is the lock's, whatever takes more."""
    made = made_with(PAGES)
    lock = made.stack(("io_uring_register", "", 0), ("pin", "/src/ring.c", 24))
    made.samples("populate", 30, lock, in_call="io_uring_register")
    for line in range(5):
        read = made.stack(("read", "", 0), ("wipe", "/src/wipe.c", 5 + line))
        made.samples("clear", clears // 5 + (line == 3), read, in_call="read")
    made.samples("user", 9)
    sentence = verdict(made)["sentence"]
    assert ("most of it inside read at wipe.c:8 (wipe)." in sentence) == (clears == 60)
    assert ("first-touch faults, most of them inside io_uring_register at ring.c:24 (pin)" in sentence) == (
        clears == 25
    )
    found = findings(made)
    assert found["zeros-read"]["text"].startswith("read at wipe.c:8 (wipe)")
    assert found["populated"]["text"].startswith("io_uring_register at ring.c:24 (pin)")
    samples = 40 + clears
    assert found["populated"]["gain"] == pytest.approx(30 / samples)
    assert found["zeros-read"]["gain"] == pytest.approx((clears + 1) / samples)


def test_reads_of_what_was_never_written_clear_nothing() -> None:
    """Each maps the page of zeros. To keep the memory would cost a clearing, and save none."""
    made = made_with(PAGES)
    block = made.stack(("calloc", "", 0), ("table", "/src/table.c", 3))
    loop = made.stack(("sum", "/src/table.c", 9))
    columns = {"allocated_stack": block, "allocated_call": "calloc", "touched_stack": loop}
    made.fault("zero_read", PAGES, EACH_NS, **columns)
    made.gave("munmap", block, 1_009, PAGES * PAGE, gave_call="free")
    made.again("munmap", block, loop, PAGES, gave_call="free", **{"class": "zero_read"})
    said = verdict(made)
    assert said["dominant"] == "zeroing"
    assert f"{PAGES:,} faults are reads of memory that was never written" in said["sentence"]
    assert "nothing is cleared" in said["sentence"] and "the kernel clears" not in said["sentence"]
    found = findings(made)
    assert "do not read beyond it" in found["first-touch"]["text"]
    assert "map-storm" not in found


def test_what_clears_nothing_has_no_word_of_clearing() -> None:
    """One huge page, and what a memset touches first: of pages that are only read both would be most."""
    made = made_with(PAGES)
    loop = made.stack(("sum", "/src/table.c", 9))
    made.fault("zero_read", PAGES, EACH_NS, touched_stack=loop)
    made.fault("zero_huge", 1, 95 * US, pages=512, touched_stack=loop, in_memset=1)
    sentence = verdict(made)["sentence"]
    assert "nothing is cleared for it, most outside the followed blocks, touched at table.c:9 (sum)." in sentence
    assert "huge" not in sentence and "again" not in sentence
    assert "clearing" not in findings(made)["first-touch"]["text"]
