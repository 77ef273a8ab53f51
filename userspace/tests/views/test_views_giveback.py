# SPDX-License-Identifier: GPL-2.0
"""The views of memory given back, over recordings made of facts written by hand."""

from __future__ import annotations

import pytest

from facts import FAULT_NS, MAP_INSIDE, MIB, MS, PAGE, US, Facts, loop_stack

FAULTS = 1009
CALLS = 13


@pytest.fixture
def storm() -> Facts:
    """A top that is trimmed and grown again; a mapping that goes and does not come again."""
    facts = Facts()
    facts.prices()
    facts.slice(1, 2.0)
    facts.process()
    facts.allocator()
    freed, made = loop_stack(facts, "free", 43), loop_stack(facts, "malloc", 42)
    facts.gave("brk", freed, CALLS, CALLS * 7 * MIB, largest_bytes=9 * MIB, span_bytes=11 * MIB)
    facts.again("brk", freed, made, FAULTS, twice_bytes=3 * PAGE)
    facts.again("brk", freed, loop_stack(facts, "calloc", 44), 11)
    facts.gave("munmap", loop_stack(facts, "free", 45), 1, 500 * MIB)
    facts.gave("dontneed", loop_stack(facts, "madvise", 46), 1, 0, gave_call="")
    facts.map_call("brk", freed, CALLS, CALLS * 7 * MIB, CALLS * (5 * US + MAP_INSIDE), in_call="free")
    facts.map_call("munmap", freed, 5, 5 * MIB, 5 * US, in_call="free")
    return facts


def test_most_expensive_is_first(storm: Facts) -> None:
    first, second = storm.rows("SELECT * FROM giveback_site ORDER BY rank")
    assert (first["how"], second["how"]) == ("brk", "munmap")
    assert first["again_bytes"] == (FAULTS + 11) * PAGE
    assert first["gave_bytes"] == CALLS * 7 * MIB
    assert first["twice_bytes"] == 3 * PAGE
    assert (first["largest_bytes"], first["span_bytes"]) == (9 * MIB, 11 * MIB)
    assert (second["again_bytes"], second["time_ns"], second["got_stack"]) == (0, 0, 0)


def test_rates_and_prices(storm: Facts) -> None:
    first = storm.one("SELECT * FROM giveback_site WHERE rank = 1")
    assert first["again_ns"] == pytest.approx((FAULTS + 11) * FAULT_NS)
    assert first["gave_ns"] == pytest.approx(CALLS * 5 * US)
    assert first["time_ns"] == first["again_ns"] + first["gave_ns"]
    assert first["gave_bytes_per_s"] == CALLS * 7 * MIB / 2
    assert first["again_bytes_per_s"] == (FAULTS + 11) * PAGE / 2


def test_places_of_release_and_reuse(storm: Facts) -> None:
    first = storm.one("SELECT * FROM giveback_site WHERE rank = 1")
    line = storm.one("SELECT said FROM stack_line WHERE stack_id = ? AND depth = 1", first["got_stack"])
    assert line["said"] == "calloc_loop.c:42 (round_once)"
    assert (first["gave_call"], first["got_call"], first["allocator"]) == ("free", "malloc", "glibc")


def test_allocator_is_that_of_the_module(storm: Facts) -> None:
    """Of two allocators in a process the one whose function it was; else the one that is not libc's."""
    storm.allocator("jemalloc")
    assert storm.one("SELECT allocator FROM giveback_site WHERE rank = 1")["allocator"] == "glibc"
    storm.database.execute("UPDATE frame SET module = '/opt/libjemalloc.so' WHERE function = 'free'")
    assert storm.one("SELECT allocator FROM giveback_site WHERE rank = 1")["allocator"] == "jemalloc"
    storm.database.execute("UPDATE frame SET module = '' WHERE function = 'free'")
    assert storm.one("SELECT allocator FROM giveback_site WHERE rank = 1")["allocator"] == "jemalloc"
    storm.database.execute("DELETE FROM allocator")
    assert storm.one("SELECT allocator FROM giveback_site WHERE rank = 1")["allocator"] == "unknown"


def test_call_that_was_not_probed(storm: Facts) -> None:
    """While free is not probed its munmap looks like the program's own: the stack tells."""
    stack = storm.stack(
        ("__munmap", "", 0), ("munmap_chunk", "", 0), ("__libc_free", "", 0), ("drop", "/src/drop.c", 7)
    )
    storm.gave("munmap", stack, 5, 5 * MIB, gave_call="")
    storm.again("munmap", stack, loop_stack(storm, "mmap", 44), 907, gave_call="", got_call="")
    row = storm.one("SELECT * FROM giveback_site WHERE how = 'munmap' AND gave_stack = ?", stack)
    assert (row["gave_call"], row["allocator"]) == ("free", "glibc")


@pytest.mark.parametrize(("span", "advised"), [(11 * MIB, 64 * MIB), (97 * MIB, 256 * MIB)])
def test_arena_that_is_trimmed(span: int, advised: int) -> None:
    """What stops it is well above what went up and down, and an arena's 64 MiB at least."""
    facts = Facts()
    facts.prices()
    facts.slice(1, 2.0)
    facts.process()
    facts.allocator()
    freed, made = loop_stack(facts, "free", 43), loop_stack(facts, "malloc", 42)
    facts.gave("dontneed", freed, CALLS, FAULTS * PAGE, span_bytes=span)
    facts.again("dontneed", freed, made, FAULTS)
    row = facts.one("SELECT kind, trim_value, mmap_value FROM giveback_storm")
    assert (row["kind"], row["trim_value"]) == ("trim", advised)


# glibc's thresholds.


def threshold(made: Facts, time_ns: int, low: int, high: int | None, how: str, **columns: object) -> None:
    values = {"pid": 42, "name": "mmap_threshold", "call": "", "stack_id": 0}
    made.row("threshold", **({"time_ns": time_ns, "low_bytes": low, "high_bytes": high, "how": how} | values | columns))


def test_threshold_state() -> None:
    made = Facts()
    made.slice()
    made.process()
    threshold(made, 1, 131072, 131072, "default")
    row = made.one("SELECT * FROM threshold_state")
    assert (row["low_bytes"], row["how"], row["changes"], row["changed_ns"]) == (131072, "default", 0, None)
    threshold(made, 7, 204800, 204800, "freed", stack_id=3, call="free")
    threshold(made, 9, 409600, 409600, "freed", stack_id=5, call="free")
    row = made.one("SELECT * FROM threshold_state")
    assert (row["low_bytes"], row["high_bytes"], row["how"], row["changes"]) == (409600, 409600, "freed", 2)
    assert (row["changed_ns"], row["stack_id"], row["before_low_bytes"]) == (9, 5, 204800)
    # More is known, but nothing changed.
    threshold(made, 11, 0, None, "mapped", name="top_pad")
    threshold(made, 13, 4096, 8192, "grew", name="top_pad")
    row = made.one("SELECT * FROM threshold_state WHERE name = 'top_pad'")
    assert (row["low_bytes"], row["high_bytes"], row["changes"], row["how"]) == (4096, 8192, 0, "mapped")
    # Another program: nothing is reported of the one before.
    threshold(made, 17, 0, None, "exec")
    assert [row["name"] for row in made.rows("SELECT name FROM threshold_state")] == ["top_pad"]
    threshold(made, 19, 65536, 65536, "tunable")
    row = made.one("SELECT * FROM threshold_state WHERE name = 'mmap_threshold'")
    assert (row["low_bytes"], row["how"], row["changes"]) == (65536, "tunable", 0)


# What stops it: settings of glibc.


def stormy(how: str, threshold: int | None, **columns: int) -> Facts:
    """As much goes as comes, again and again."""
    made = Facts()
    made.prices()
    made.slice(1, 2.0)
    made.process()
    made.allocator(mmap_threshold_low=threshold, mmap_threshold_high=threshold)
    freed, got = loop_stack(made, "free", 43), loop_stack(made, "malloc", 42)
    made.cpu(FAULTS * FAULT_NS)
    made.gave(how, freed, CALLS, FAULTS * PAGE, **columns)
    made.again(how, freed, got, FAULTS)
    made.fault("zero", FAULTS, FAULTS * FAULT_NS)
    return made


@pytest.mark.parametrize(
    ("how", "threshold", "columns", "tunables"),
    [
        # Never a hair above what was seen.
        ("brk", 131072, {"span_bytes": 63 * MIB}, "trim_threshold=134217728"),
        ("brk", 131072, {"span_bytes": 64 * MIB}, "trim_threshold=268435456"),
        # Raised by itself before: it stays as high as that may become.
        ("brk", 9003008, {"span_bytes": 5 * MIB}, "mmap_threshold=33554432:trim_threshold=16777216"),
        # Not known: set, for it may have been.
        ("brk", None, {"span_bytes": 5 * MIB}, "mmap_threshold=33554432:trim_threshold=16777216"),
        ("heap", 9003008, {}, "mmap_threshold=33554432:top_pad=67108864"),
        ("heap", 131072, {}, "top_pad=67108864"),
        ("munmap", 131072, {"largest_bytes": 33 * MIB, "span_bytes": 33 * MIB},
         "mmap_threshold=67108864:trim_threshold=134217728"),
        ("munmap", 131072, {"largest_bytes": 60 * MIB, "span_bytes": 180 * MIB},
         "mmap_threshold=134217728:trim_threshold=536870912"),
        # Other threads: a heap of theirs is kept whole, and no arena holds more than that.
        ("munmap", 131072, {"largest_bytes": 33 * MIB, "span_bytes": 33 * MIB, "thread_calls": CALLS},
         "mmap_threshold=67108864:trim_threshold=134217728:top_pad=67108864"),
        ("munmap", 131072, {"largest_bytes": 99 * MIB, "span_bytes": 99 * MIB, "thread_calls": CALLS},
         "arena_max=1:mmap_threshold=134217728:trim_threshold=268435456"),
    ],
)  # fmt: skip
def test_settings_that_stop_it(how: str, threshold: int | None, columns: dict[str, int], tunables: str) -> None:
    made = stormy(how, threshold, **columns)
    setting = "GLIBC_TUNABLES=" + ":".join("glibc.malloc." + one for one in tunables.split(":"))
    code = {"brk": "trim-storm", "heap": "heap-storm", "munmap": "map-storm"}[how]
    found = {row["code"]: row for row in made.judged("finding", "SELECT * FROM finding")}
    assert found[code]["try"] == f"memtoll compare --set {setting} -- COMMAND"
    assert setting in found[code]["text"]
    assert [row for row in found.values() if row["try"]] == [found[code]], "one trial, not two that differ"


@pytest.mark.parametrize(
    ("how", "threshold", "tunables"),
    [
        ("dontneed", 131072, "top_pad=67108864"),
        ("dontneed", 9003008, "mmap_threshold=33554432:top_pad=67108864"),
        # The main arena's top may be larger than that.
        ("brk", 131072, "trim_threshold=268435456:top_pad=67108864"),
    ],
)
def test_trimmed_heaps_that_go_whole_as_well(how: str, threshold: int, tunables: str) -> None:
    """What keeps the top of a thread's heap keeps the heap: one setting, by whichever of both findings."""
    made = stormy(how, threshold, span_bytes=64 * MIB if how == "brk" else 0)
    freed, got = loop_stack(made, "free", 43), loop_stack(made, "malloc", 42)
    made.gave("heap", freed, CALLS, FAULTS * PAGE, largest_bytes=64 * MIB)
    made.again("heap", freed, got, FAULTS)
    found = {row["code"]: row for row in made.judged("finding", "SELECT * FROM finding")}
    setting = "GLIBC_TUNABLES=" + ":".join("glibc.malloc." + one for one in tunables.split(":"))
    assert found["trim-storm"]["try"] == f"memtoll compare --set {setting} -- COMMAND"
    assert (found["heap-storm"]["try"] == found["trim-storm"]["try"]) == (how == "dontneed")
    assert "trim_threshold does not hold" in found["trim-storm"]["text"]
    assert "mallopt(M_TRIM_THRESHOLD" not in found["trim-storm"]["text"]


def test_calls_that_give_back_in_place_take_time(storm: Facts) -> None:
    """MADV_DONTNEED of memory of the program's own: none of its time is for what a file keeps."""
    stack = loop_stack(storm, "free", 47)
    storm.gave("dontneed", stack, 7, 101 * MIB)
    storm.again("dontneed", stack, loop_stack(storm, "malloc", 42), 101)
    storm.advised("dontneed", stack, 7, 101 * MIB // PAGE)
    storm.map_call("madvise", stack, 7, 101 * MIB, 7 * (11 * US + MAP_INSIDE), in_call="free")
    row = storm.one("SELECT gave_ns FROM giveback_site WHERE gave_stack = ?", stack)
    assert row["gave_ns"] == pytest.approx(7 * 11 * US)
    assert storm.one("SELECT let_go_ns FROM advised_measure")["let_go_ns"] == 0


@pytest.mark.parametrize(
    ("version", "how", "columns", "words"),
    [
        ("2.25", "brk", {"span_bytes": 5 * MIB},
         "--set MALLOC_MMAP_THRESHOLD_=33554432 --set MALLOC_TRIM_THRESHOLD_=16777216"),
        # An int: what does not fit is never.
        ("2.25", "brk", {"span_bytes": 1500 * MIB},
         "--set MALLOC_MMAP_THRESHOLD_=33554432 --set MALLOC_TRIM_THRESHOLD_=-1"),
        ("2.25", "munmap", {"largest_bytes": 33 * MIB},
         "--set MALLOC_MMAP_MAX_=0 --set MALLOC_TRIM_THRESHOLD_=134217728"),
        ("2.35", "munmap", {"largest_bytes": 33 * MIB},
         "--set GLIBC_TUNABLES=glibc.malloc.mmap_max=0:glibc.malloc.trim_threshold=134217728"),
        ("2.35", "munmap", {"largest_bytes": 20 * MIB},
         "--set GLIBC_TUNABLES=glibc.malloc.mmap_threshold=33554432:glibc.malloc.trim_threshold=67108864"),
    ],
)  # fmt: skip
def test_settings_of_older_versions(version: str, how: str, columns: dict[str, int], words: str) -> None:
    made = stormy(how, 9003008, **columns)
    made.database.execute("UPDATE allocator SET version = ?", (version,))
    trials = [row["try"] for row in made.judged("finding", "SELECT * FROM finding") if row["try"]]
    assert trials == [f"memtoll compare {words} -- COMMAND"]


@pytest.mark.parametrize(
    ("functions", "linkage", "kind"),
    [
        # jemalloc's thread, by the module; built in, by the names; and the program's own call.
        (("madvise", "a", "b"), "dynamic", "jemalloc"),
        (("madvise", "je_pages_purge_forced", "je_arena_decay"), "embedded", "jemalloc"),
        (("madvise", "drop_cache", "main"), "embedded", ""),
    ],
)
def test_who_purges_by_itself(functions: tuple[str, ...], linkage: str, kind: str) -> None:
    made = stormy("dontneed", 131072)
    made.allocator("jemalloc", linkage=linkage, module="/opt/thing")
    stack = made.stack(*((function, "", 0) for function in functions))
    made.database.execute("UPDATE frame SET module = '/opt/thing' WHERE function <> 'madvise'")
    made.database.execute("UPDATE frame SET module = '/lib/libc.so.6' WHERE function = 'madvise'")
    made.database.execute("UPDATE giveback SET gave_stack = ?, gave_call = ''", (stack,))
    assert made.one("SELECT allocator, gave_call FROM giveback_site")["allocator"] == kind
    codes = [row["code"] for row in made.judged("finding", "SELECT code FROM finding")]
    assert ("purge-storm" in codes, "own-storm" in codes) == (kind == "jemalloc", kind == "")


@pytest.mark.parametrize(("by_calloc", "saves"), [(0, 1.0), (500, 0.5), (1009, 0.0)])
def test_calloc_of_jemalloc_purges_what_was_kept(by_calloc: int, saves: float) -> None:
    """extent_recycle: what is dirty is given back for its zeros then; no time is saved by keeping it for calloc."""
    made = stormy("dontneed", 131072)
    made.allocator("jemalloc", version="5.3.0")
    made.database.execute("DELETE FROM allocator WHERE kind = 'glibc'")
    all_ns = made.one("SELECT purge_storm_ns FROM giveback_weight")["purge_storm_ns"]
    assert all_ns > 0
    freed = made.one("SELECT gave_stack FROM giveback LIMIT 1")["gave_stack"]
    made.database.execute("UPDATE giveback SET again_faults = ?, again_bytes = ? WHERE again_bytes > 0",
                          (FAULTS - by_calloc, (FAULTS - by_calloc) * PAGE))  # fmt: skip
    if by_calloc:
        made.again("dontneed", freed, loop_stack(made, "calloc", 44), by_calloc, got_call="calloc")
    row = made.one("SELECT purge_storm_ns FROM giveback_weight")
    assert row["purge_storm_ns"] == pytest.approx(saves * all_ns, rel=0.01, abs=1.0)
    assert ("purge-storm" in codes(made)) == (saves > 0.1)


@pytest.mark.parametrize(("blocks", "saves"), [(0, 1.0), (1, 1 - 131072 / (FAULTS * PAGE)), (1009, 0.0)])
def test_unknown_getters_are_calloc_as_far_as_there_are_such_blocks(blocks: int, saves: float) -> None:
    """Two of Python's own at its start are not those of a library whose allocator purges."""
    made = stormy("dontneed", 131072)
    made.allocator("jemalloc", version="5.3.0")
    made.database.execute("DELETE FROM allocator WHERE kind = 'glibc'")
    all_ns = made.one("SELECT purge_storm_ns FROM giveback_weight")["purge_storm_ns"]
    made.database.execute("UPDATE giveback SET got_call = '', got_stack = ? WHERE again_bytes > 0",
                          (made.stack(("add", "/src/a.c", 6)),))  # fmt: skip
    if blocks:
        made.call("calloc", 7, blocks, bytes=blocks * 131072, mmapped_calls=blocks)
    row = made.one("SELECT purge_storm_ns FROM giveback_weight")
    assert row["purge_storm_ns"] == pytest.approx(saves * all_ns, rel=0.01, abs=1.0)
    assert ("purge-storm" in codes(made)) == (saves > 0.1)


@pytest.mark.parametrize("how", ["stack", "stack_unmapped"])
def test_stacks_of_threads_have_advice_of_their_own(how: str) -> None:
    """Whether libc's functions have names or not; a program that makes stacks itself is the program."""
    made = Facts()
    made.prices()
    made.slice()
    made.process()
    made.cpu(100 * MS)
    libc = made.stack(("munmap", "", 0), ("", "", 0), ("main", "/srv/main.c", 7))
    own = made.stack(("munmap", "", 0), ("drop", "/srv/fiber.c", 3), ("main", "/srv/main.c", 7))
    touched = made.stack(("parse", "/srv/parse.c", 11))
    for stack in (libc, own):
        made.gave(how, stack, 101, 101 * MIB, gave_call="")
        made.again(how, stack, touched, 25801, gave_call="", got_call="")
    made.fault("zero", 2 * 25801, None)
    rows = made.judged("finding", "SELECT * FROM finding ORDER BY position")
    codes = {row["code"]: row["text"] for row in rows}
    went = (
        "101 stacks of threads that had ended were unmapped, 101 MiB"
        if how == "stack_unmapped"
        else "202 threads gave their stacks back, 202 MiB"
    )
    assert next(row["evidence"] for row in rows if row["code"] == "stack-storm").startswith(went)
    assert "most at parse.c:11 (parse)" in codes["stack-storm"]
    assert ("stacks were unmapped" in codes["stack-storm"]) == (how == "stack_unmapped")
    assert ("own-storm" in codes) == (how == "stack_unmapped")


@pytest.mark.parametrize(
    ("symbol", "variable"),
    [("malloc", "MALLOC_CONF"), ("je_malloc", "JE_MALLOC_CONF"), ("_rjem_malloc", "_RJEM_MALLOC_CONF")],
)
def test_variable_of_a_jemalloc_with_a_prefix(symbol: str, variable: str) -> None:
    made = stormy("dontneed", 131072)
    made.allocator("jemalloc", version="5.3.0", linkage="embedded")
    made.database.execute("UPDATE allocator_probe SET symbol = ? WHERE call = 'malloc'", (symbol,))
    made.database.execute("DELETE FROM allocator WHERE kind = 'glibc'")
    (row,) = (row for row in made.judged("finding", "SELECT * FROM finding") if row["code"] == "purge-storm")
    assert row["try"] == f"memtoll compare --set {variable}=dirty_decay_ms:-1 -- COMMAND"
    made.database.execute("UPDATE allocator SET version = '4.5.0'")
    (row,) = (row for row in made.judged("finding", "SELECT * FROM finding") if row["code"] == "purge-storm")
    assert row["try"] is None and "lg_dirty_mult" in row["text"]


@pytest.mark.parametrize("how", ["brk", "heap", "munmap"])
def test_thresholds_that_the_program_pins(how: str) -> None:
    """By mallopt, with no tunable set: what its environment says does nothing."""
    made = stormy(how, 131072, largest_bytes=33 * MIB, span_bytes=33 * MIB)
    made.database.execute("UPDATE allocator SET dynamic = 0")
    (row,) = (row for row in made.judged("finding", "SELECT * FROM finding") if row["code"].endswith("storm"))
    assert row["try"] is None and "GLIBC" not in row["text"] and "mallopt" in row["text"], row
    value = {"brk": "M_TRIM_THRESHOLD to", "heap": "M_TOP_PAD to 67108864", "munmap": "M_MMAP_MAX to 0 and M_TRIM"}
    assert value[how] in row["text"]
    made.database.execute("UPDATE allocator SET tunables = 'GLIBC_TUNABLES=glibc.malloc.top_pad=1'")
    (row,) = (row for row in made.judged("finding", "SELECT * FROM finding") if row["code"].endswith("storm"))
    assert row["try"]
    # ... but where it is mallopt's value all the same: with a tunable set none moves by itself.
    threshold(made, 1, 1, 1, "tunable", name="top_pad")
    (row,) = (row for row in made.judged("finding", "SELECT * FROM finding") if row["code"].endswith("storm"))
    assert row["try"]
    threshold(made, 2, 3, 3, "read", name="top_pad")
    (row,) = (row for row in made.judged("finding", "SELECT * FROM finding") if row["code"].endswith("storm"))
    assert row["try"] is None and value[how] in row["text"], row


# What keeping it costs.


def codes(made: Facts) -> set[str]:
    return {row["code"] for row in made.judged("finding", "SELECT code FROM finding")}


def large_blocks(got_call: str, *mapped_by: tuple[str, str, int]) -> Facts:
    """1,009 blocks of 40 MiB, of which a page each is used; 2 us of munmap for each."""
    made = Facts()
    made.prices()
    made.slice(1, 2.0)
    made.process()
    made.allocator()
    freed = made.stack(("__munmap", "", 0), ("munmap_chunk", "", 0), ("__libc_free", "", 0), ("drop", "/src/a.c", 7))
    got = made.stack(*mapped_by, ("make", "/src/a.c", 5))
    made.cpu(FAULTS * (FAULT_NS + 3 * US))
    # Watched a part of the time: what a call of free did is in two rows.
    for gave_call, calls in (("free", 9), ("", FAULTS - 9)):
        made.gave("munmap", freed, calls, calls * PAGE, largest_bytes=40 * MIB, gave_call=gave_call)
        made.again("munmap", freed, got, calls, gave_call=gave_call, got_call=got_call)
        made.map_call("munmap", freed, calls, calls * 40 * MIB, calls * (2 * US + MAP_INSIDE), in_call=gave_call)
    made.fault("zero", FAULTS, FAULT_NS)
    return made


@pytest.mark.parametrize(
    ("got_call", "frames", "advised"),
    [
        ("malloc", (("mmap", "", 0), ("__libc_malloc", "", 0)), True),
        ("calloc", (("mmap", "", 0), ("__libc_calloc", "", 0)), False),
        # calloc was not watched: its frame is in the stack.
        ("", (("mmap", "", 0), ("sysmalloc", "", 0), ("__libc_malloc", "", 0)), True),
        ("", (("mmap", "", 0), ("sysmalloc", "", 0), ("__libc_calloc", "", 0)), False),
    ],
)
def test_calloc_would_clear_what_is_not_used(
    got_call: str, frames: tuple[tuple[str, str, int], ...], advised: bool
) -> None:
    made = large_blocks(got_call, *frames)
    row = made.one("SELECT * FROM giveback_storm")
    assert (row["kind"], row["storm"], row["calls"], row["again_bytes"]) == ("map", 1, FAULTS, FAULTS * PAGE)
    assert row["got_call"] == ("malloc" if advised else "calloc")
    assert row["gave_ns"] == pytest.approx(FAULTS * 2 * US)
    assert row["memset_ns"] == (0 if advised else pytest.approx(FAULTS * 40 * MIB / 20.0))
    assert ("map-storm" in codes(made)) == advised


@pytest.mark.parametrize("kept", [0, 7])
@pytest.mark.parametrize("callocs", [FAULTS, 11])
def test_blocks_of_calloc_are_weighed_whole(callocs: int, kept: int) -> None:
    """Beside blocks of malloc that are used in part: of what comes again a hundredth is calloc's, of its blocks all."""
    made = large_blocks("", ("mmap", "", 0), ("sysmalloc", "", 0), ("__libc_malloc", "", 0))
    by_malloc = made.stack(("mmap", "", 0), ("sysmalloc", "", 0), ("__libc_malloc", "", 0), ("make", "/src/a.c", 5))
    by_calloc = made.stack(("mmap", "", 0), ("sysmalloc", "", 0), ("__libc_calloc", "", 0), ("clear", "/src/a.c", 6))
    freed = made.one("SELECT DISTINCT gave_stack FROM giveback")["gave_stack"]
    made.database.execute("UPDATE giveback SET again_faults = 100 * again_faults, again_bytes = 100 * again_bytes")
    made.again("munmap", freed, by_calloc, callocs, gave_call="", got_call="")
    made.map_call("mmap", by_malloc, FAULTS, FAULTS * 40 * MIB, FAULTS * MAP_INSIDE)
    made.map_call("mmap", by_calloc, callocs, callocs * 40 * MIB, callocs * MAP_INSIDE)
    if kept:  # calloc's, too, and never freed
        elsewhere = made.stack(("mmap", "", 0), ("__libc_calloc", "", 0), ("keep", "/src/a.c", 9))
        made.map_call("mmap", elsewhere, kept, kept << 40, kept * MAP_INSIDE)
    memset = made.one("SELECT memset_ns FROM giveback_storm")["memset_ns"]
    assert memset == pytest.approx(callocs * 40 * MIB / 20.0)
    assert ("map-storm" in codes(made)) == (callocs < FAULTS)


@pytest.mark.parametrize("heaps", [0, 3])
def test_trimmed_top_whose_heap_goes(heaps: int) -> None:
    """With trim_threshold alone what is not trimmed any more would go with its heap."""
    made = stormy("dontneed", 131072, span_bytes=5 * MIB)
    if heaps:
        made.gave("heap", loop_stack(made, "free", 47), heaps, heaps * PAGE)
    row = made.one("SELECT * FROM giveback_storm WHERE kind = 'trim'")
    assert row["pad_value"] == (64 * MIB if heaps else None)
    tunables = made.one("SELECT tunables FROM glibc_setting WHERE kind = 'trim_storm'")["tunables"]
    assert ("top_pad=67108864" in tunables) == bool(heaps)


@pytest.mark.parametrize("callocs", [True, False])
def test_no_setting_where_the_price_is_not_known(callocs: bool) -> None:
    """Who got it cannot be told: it may be calloc, where the process has large blocks of it."""
    made = large_blocks("", ("mmap", "", 0))
    made.call("calloc" if callocs else "malloc", 7, 3, bytes=3 * 40 * MIB, mmapped_calls=3)
    assert ("map-storm" in codes(made)) != callocs


@pytest.mark.parametrize("moved", [0, 101_009 * MIB])
def test_no_setting_for_blocks_that_grow_by_mremap(moved: int) -> None:
    """In a heap that is kept they would be copied."""
    made = stormy("brk", 131072, span_bytes=5 * MIB)
    if moved:
        stack = made.stack(("mremap", "", 0), ("realloc", "", 0), ("grow", "/src/a.c", 9))
        made.map_call("mremap", stack, 11, moved, 11 * US, in_call="realloc")
    assert made.one("SELECT copy_ns FROM giveback_storm")["copy_ns"] == pytest.approx(moved / 60.0)
    assert ("trim-storm" in codes(made)) == (not moved)


def test_calloc_clears_a_kept_heap_whole() -> None:
    """Blocks of 1 MiB of which little is used: the heap is trimmed, and what comes again is fresh."""
    made = stormy("brk", 33554432, span_bytes=5 * MIB)
    made.call("calloc", 7, 999, bytes=999 * 128 * MIB, cleared_bytes=9 * 128 * MIB)
    assert "trim-storm" in codes(made), "malloc gets it again"
    made.database.execute("UPDATE giveback SET got_call = 'calloc' WHERE again_bytes > 0")
    assert made.one("SELECT memset_ns FROM giveback_storm")["memset_ns"] == pytest.approx(990 * 128 * MIB / 120.0)
    assert "trim-storm" not in codes(made)


@pytest.mark.parametrize("caller", ["calloc", "malloc"])
@pytest.mark.parametrize("in_call", ["", "called"])
def test_what_the_heap_grows_by_in_calls_that_were_not_seen(caller: str, in_call: str) -> None:
    """Windows saw nine callocs of a thousand: mapping calls are seen all the time."""
    made = stormy("brk", 33554432, span_bytes=5 * MIB)
    made.database.execute("UPDATE giveback SET got_call = 'calloc' WHERE again_bytes > 0")
    made.call("calloc", 7, 9, bytes=9 * 128 * MIB)
    grown = made.stack(("brk", "", 0), ("sysmalloc", "", 0), (caller, "", 0), ("make", "/src/a.c", 5))
    made.map_call("brk", grown, 999, 999 * 128 * MIB, 999 * MAP_INSIDE, in_call=caller if in_call else "")
    cleared = 999 if caller == "calloc" else 9
    assert made.one("SELECT memset_ns FROM giveback_storm")["memset_ns"] == pytest.approx(cleared * 128 * MIB / 120.0)
    assert ("trim-storm" in codes(made)) == (caller == "malloc")


@pytest.mark.parametrize("how", ["brk", "heap"])
@pytest.mark.parametrize("others", [0, 2])
def test_pages_that_a_storm_brings_are_not_promised_twice(how: str, others: int) -> None:
    """calloc clears them again: to keep the heap saves both, and calloc-double-clear has what no storm brought."""
    made = stormy(how, 33554432, span_bytes=5 * MIB)
    made.database.execute("UPDATE giveback SET got_call = 'calloc', twice_bytes = again_bytes")
    if others:
        use = made.stack(("use", "/src/a.c", 7))
        made.fault("zero", others * FAULTS, others * FAULTS * FAULT_NS, touched_stack=use)
        made.database.execute("UPDATE process_slice SET cpu_ns = (1 + ?) * cpu_ns", (others,))
    made.database.execute("UPDATE fault SET in_memset = 1, in_call = 'calloc'")
    size = (1 + others) * FAULTS * PAGE
    made.call("calloc", 7, 999, bytes=size, cleared_bytes=size, cleared_calls=999)
    gains = {row["code"]: row["gain"] for row in made.judged("finding", "SELECT code, gain FROM finding")}
    assert ("calloc-double-clear" in gains) == bool(others), gains
    assert {"trim-storm", "heap-storm"} & gains.keys()
    assert sum(gains.values()) <= 1.01, gains


@pytest.mark.parametrize("span", [0, PAGE, 11 * MIB])
def test_how_far_the_heap_moved_is_said_where_it_is_known(storm: Facts, span: int) -> None:
    storm.database.execute("UPDATE giveback SET span_bytes = ?", (span,))
    said = storm.one("SELECT text FROM figure WHERE name = 'trim_storm_rose'")["text"]
    assert said == (" The heap fell and rose by 11.0 MiB at most." if span > PAGE else "")


@pytest.mark.parametrize("span", [0, PAGE, 11 * MIB])
def test_how_much_came_and_went_is_said_where_it_is_known(span: int) -> None:
    made = large_blocks("malloc", ("mmap", "", 0), ("__libc_malloc", "", 0))
    made.database.execute("UPDATE giveback SET span_bytes = ?", (span,))
    evidence = made.one("SELECT evidence FROM finding WHERE code = 'map-storm'")["evidence"]
    assert ("At most 11.0 MiB came and went." in evidence) == (span > PAGE)
    assert "came and went" not in evidence or span > PAGE


def test_no_setting_where_clearing_has_no_price() -> None:
    """calloc would clear 40 MiB for a page each: what that takes was not calibrated, and is not nothing."""
    made = large_blocks("calloc", ("mmap", "", 0), ("__libc_calloc", "", 0))
    made.database.execute("UPDATE calibration SET value = 0 WHERE name = 'memset_bytes_per_s'")
    assert "map-storm" not in codes(made)
