# SPDX-License-Identifier: GPL-2.0
"""The advice as data: every expression can be evaluated, every template filled, opposites never agree."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest

import facts
from facts import FAULT_NS, INSIDE, KIB, MALLOC_NS, MIB, MS, PAGE, US, Facts

KINDS = ("", "glibc", "musl", "jemalloc", "tcmalloc", "mimalloc")


def given(made: Facts) -> dict[str, dict[str, Any]]:
    return {row["code"]: row for row in made.judged("finding", "SELECT * FROM finding ORDER BY position")}


def state(made: Facts, code: str) -> dict[str, Any]:
    (row,) = made.judged("advice_state", "SELECT * FROM advice_state WHERE code = ?", code)
    return row


def settings(made: Facts) -> set[str]:
    """What the advice that is given turns, and which way, read from its words."""
    found = set()
    for row in given(made).values():
        for name, value in re.findall(r"(mmap_threshold|trim_threshold)=(\d+)", f"{row['text']} {row['try']}"):
            found.add(f"{'down' if int(value) <= 128 * KIB else 'up'} {name}")
    return found


# The tables themselves.


def test_every_expression_is_valid_and_every_code_can_be_said() -> None:
    made = facts.heap_blocks()
    codes = {row["code"] for row in made.rows("SELECT code FROM advice")}
    rules = made.rows("SELECT * FROM advice_rule")
    assert len(made.judged("advice_test", "SELECT * FROM advice_test")) == len(rules) > 3 * len(codes)
    made.database.execute("CREATE TEMP TABLE one AS SELECT * FROM weighed LIMIT 0")
    for rule in rules:
        # By itself: an expression that would close the CASE around it does not pass.
        made.rows(f"SELECT ({rule['expression']}) FROM temp.one")
    for row in made.rows("SELECT * FROM advice_text"):
        assert row["code"] in codes, row
        # A choice that says nothing, so that the later ones are not said, has a condition and comes first.
        assert row["text"] or row["change"] or (row["choice"] == 0 and row["condition"] != "1"), row
    for code in codes:
        assert re.fullmatch(r"[a-z][a-z0-9]*(-[a-z0-9]+)*", code)
        last = made.rows("SELECT * FROM advice_text WHERE code = ? AND part = 1 ORDER BY choice DESC", code)[0]
        assert (last["condition"], last["allocator"]) == ("1", ""), f"{code}: nothing may be said in part 1"


def test_rows_are_complete() -> None:
    made = Facts()
    for row in made.rows("SELECT * FROM advice"):
        assert row["allocator"] in KINDS, row
        assert 0 < row["bound"] < 1, row
        for column in ("title", "evidence", "cost", "explain"):
            assert row[column].strip(), (row["code"], column)
        assert "{" not in row["title"] + row["explain"], f"{row['code']}: figures where none are filled in"
    for row in made.rows("SELECT * FROM advice_text"):
        assert row["allocator"] in KINDS, row
        assert (row["since"], row["before"]) == (0, 0) or row["allocator"] or _of(made, row["code"]), row
        for change in filter(None, row["change"].split(",")):
            assert re.fullmatch(r"(up|down) [a-z_]+", change.strip()), row
        assert not row["try"] or re.match(r"--(set|preload) ", row["try"]), row
        # A setting of one allocator is advised to nobody else.
        if re.search(r"GLIBC_TUNABLES|MALLOC_[A-Z_]+_=|glibc\.malloc", row["text"] + row["try"]):
            assert row["allocator"] == "glibc" or _of(made, row["code"]) == "glibc", row


def _of(made: Facts, code: str) -> str:
    return str(made.one("SELECT allocator FROM advice WHERE code = ?", code)["allocator"])


def test_every_name_in_a_template_is_a_figure() -> None:
    made = facts.heap_blocks()
    known = {row["name"] for row in made.judged("figure", "SELECT name FROM figure")}
    texts = [row["t"] for row in made.rows("SELECT evidence || cost AS t FROM advice")]
    texts += [row["t"] for row in made.rows("SELECT text || try AS t FROM advice_text")]
    used = {name for text in texts for name in re.findall(r"\{([^}]*)\}", text)}
    assert len(used) > 30
    assert used <= known, f"no figure: {sorted(used - known)}"


@pytest.mark.parametrize("name", facts.SCENARIOS)
def test_advice_that_is_given_is_filled_and_above_its_bound(name: str) -> None:
    made = facts.SCENARIOS[name](":memory:")
    for code, row in given(made).items():
        for column in ("text", "evidence", "cost", "try"):
            assert not re.search(r"[{}\t\n]|  ", row[column] or ""), (code, column, row[column])
        if code == "none":
            continue
        assert row["gain"] > row["bound"] > 0
        assert row["text"] and row["evidence"] and row["cost"] and row["title"]


# When it is given.


def test_bound_decides() -> None:
    made = facts.heap_blocks()
    gain = given(made)["calloc-reuse-memset"]["gain"]
    # Of the memset, less what a mapping for each block costs.
    assert gain == pytest.approx(0.96, abs=0.01)
    made.database.execute("UPDATE advice SET bound = ? WHERE code = 'calloc-reuse-memset'", (gain + 0.001,))
    assert list(given(made)) == ["none"]
    assert state(made, "calloc-reuse-memset")["applies"]
    made.database.execute("UPDATE advice SET bound = ? WHERE code = 'calloc-reuse-memset'", (gain - 0.001,))
    assert list(given(made)) == ["calloc-reuse-memset"]


def heap_blocks_of(kind: str, version: str) -> Facts:
    """The recording of heap_blocks, its allocator called something else."""
    made = facts.heap_blocks()
    made.database.execute("UPDATE allocator SET kind = ?, version = ?", (kind, version))
    made.database.execute("UPDATE call SET known_clearing = ?", (kind == "glibc",))
    made.database.execute("UPDATE sample SET samples = 100 * samples")  # clearing is known by samples now
    return made


@pytest.mark.parametrize("kind", ["unknown", "musl", "jemalloc", "tcmalloc", "mimalloc"])
def test_tunables_of_glibc_are_for_glibc(kind: str) -> None:
    made = heap_blocks_of(kind, "5.3")
    assert made.toll("zero.libc")["share"] > 0.5
    for row in given(made).values():
        assert not re.search("GLIBC|MALLOC_|mallopt|tunable", f"{row['text']} {row['try']}"), row
    made = facts.touched_churn()
    made.database.execute("UPDATE allocator SET kind = ?", (kind,))
    made.database.execute("UPDATE call SET known_clearing = 0")
    row = given(made)["first-touch"]
    assert not re.search("GLIBC|MALLOC_|mallopt", f"{row['text']} {row['try']}"), row


@pytest.mark.parametrize("slices", [1, 2])
def test_blocks_that_are_there_at_once_are_not_made_again_and_again(slices: int) -> None:
    """All of them are freed: within the slice, what was mapped rose by as much; or in a later slice."""
    made = facts.touched_churn()
    assert "again and again" in given(made)["first-touch"]["text"]
    ((size,),) = made.database.execute("SELECT SUM(made_bytes) FROM block").fetchall()
    main = made.stack(("free", "", 0), ("main", "/src/touch_loop.c", 41))
    made.gave("munmap", main, 73, size, span_bytes=size // 3)
    assert "again and again" in given(made)["first-touch"]["text"], "it rose by a third of them"
    if slices == 1:
        made.database.execute("UPDATE giveback SET span_bytes = 2 * span_bytes")
    else:
        made.slice(2)
        made.database.execute("INSERT INTO block SELECT 2, pid, call, stack_id, 0, 0, freed, freed_bytes, 0 FROM block")
        made.database.execute("UPDATE block SET freed = 0, freed_bytes = 0 WHERE slice = 1")
    row = given(made)["first-touch"]
    assert "used for the first time" in row["text"] and "again" not in row["text"], row
    assert not row["try"], row


@pytest.mark.parametrize(
    ("version", "setting"),
    [
        ("2.25", "MALLOC_MMAP_THRESHOLD_=131072"),
        ("2.26", "GLIBC_TUNABLES=glibc.malloc.mmap_threshold=131072"),
        ("2.9", "MALLOC_MMAP_THRESHOLD_=131072"),  # 9 is less than 26
        ("2.41", "GLIBC_TUNABLES=glibc.malloc.mmap_threshold=131072"),
        ("", "MALLOC_MMAP_THRESHOLD_=131072"),  # the older way works with all
    ],
)
def test_version_decides_what_is_said(version: str, setting: str) -> None:
    made = heap_blocks_of("glibc", version)
    row = given(made)["calloc-reuse-memset"]
    assert row["try"] == f"memtoll compare --set {setting} -- COMMAND"
    assert setting in row["text"]


@pytest.mark.slow
def test_limits_of_versions() -> None:
    made = facts.heap_blocks()
    for since, before, valid in ((2036, 0, 1), (2037, 0, 0), (0, 2037, 1), (0, 2036, 0), (2030, 2040, 1)):
        made.database.execute(
            "UPDATE advice SET since = ?, before = ? WHERE code = 'calloc-reuse-memset'", (since, before)
        )
        assert state(made, "calloc-reuse-memset")["valid"] == valid, (since, before)
    made.database.execute("UPDATE advice SET since = 0, before = 2043 WHERE code = 'calloc-reuse-memset'")
    made.database.execute("UPDATE allocator SET version = ''")
    assert not state(made, "calloc-reuse-memset")["valid"], "of an unknown version it is not known to be below"


def test_allocator_in_use_is_the_one_that_is_called() -> None:
    """A preloaded allocator: libc is mapped, but serves nothing."""
    made = facts.naive_calloc()
    assert made.one("SELECT * FROM allocator_used")["kind"] == "unknown"
    made = facts.heap_blocks()
    made.allocator("jemalloc", version="5.3.0")
    row = made.one("SELECT * FROM allocator_used")
    assert (row["kind"], row["number"]) == ("glibc", 2036)


# Opposites.


def churned_calloc(memset_bytes_per_s: float) -> Facts:
    """calloc of 33 MiB, all of it used, freed: fresh mappings every time, faults for every page."""
    made = facts.touched_churn()
    made.database.execute("UPDATE call SET call = 'calloc'")
    made.database.execute("UPDATE block SET call = 'calloc'")
    made.database.execute("UPDATE fault SET allocated_call = 'calloc'")
    made.database.execute("UPDATE calibration SET value = ? WHERE name = 'memset_bytes_per_s'", (memset_bytes_per_s,))
    return made


def test_memset_of_reused_heap_and_refault_of_fresh_mappings_are_opposites() -> None:
    reused, fresh = facts.heap_blocks(), facts.touched_churn()
    assert reused.one("SELECT dominant FROM verdict") == fresh.one("SELECT dominant FROM verdict")
    assert settings(reused) == {"down mmap_threshold"}
    assert settings(fresh) == {"up mmap_threshold", "up trim_threshold"}
    assert not set(given(reused)) & set(given(fresh))


def test_calloc_that_would_be_memset_is_not_kept_in_the_heap() -> None:
    """Where clearing by hand costs more than the faults, nothing is turned up; nor is it turned down."""
    slow = churned_calloc(memset_bytes_per_s=1e9)
    assert "would not help" in given(slow)["first-touch"]["text"]
    assert settings(slow) == set()
    assert settings(churned_calloc(memset_bytes_per_s=120e9)) == {"up mmap_threshold", "up trim_threshold"}


def both() -> Facts:
    """One process that does both: 10 MiB blocks memset in the heap, and 33 MiB ones faulted in each time."""
    made = facts.touched_churn()
    site = facts.loop_stack(made, "calloc", 42)
    calls, size, memset = 1_009, 10 * MIB, 800 * US
    made.call(
        "calloc",
        site,
        calls,
        bytes=calls * size,
        cpu_ns=round(calls * (INSIDE + MALLOC_NS + memset)),
        cleared_calls=calls,
        cleared_bytes=calls * size,
        cleared_cpu_ns=round(calls * (INSIDE + MALLOC_NS + memset)),
    )
    made.hits(calloc=calls)
    made.cpu(calls * memset, number=2)
    made.slice(2)
    return made


def test_opposite_advice_is_never_given_together() -> None:
    made = both()
    small, large = state(made, "first-touch"), state(made, "calloc-reuse-memset")
    assert small["applies"] and large["applies"] and small["valid"] and large["valid"]
    assert large["gain"] > small["gain"] > small["bound"], (large, small)
    assert (large["given"], small["given"], small["opposed_by"]) == (1, 0, "calloc-reuse-memset")
    assert settings(made) == {"down mmap_threshold"}
    # The other way round when the faults cost more.
    made.database.execute("UPDATE call SET cpu_ns = cpu_ns / 4, cleared_cpu_ns = cleared_cpu_ns / 4")
    small, large = state(made, "calloc-reuse-memset"), state(made, "first-touch")
    assert small["gain"] > small["bound"], small
    assert (large["given"], small["given"], small["opposed_by"]) == (1, 0, "first-touch")
    assert settings(made) == {"up mmap_threshold", "up trim_threshold"}


FRESH = 2  # callocs of heap_blocks that had mappings of their own


def seen_in_windows(made: Facts, part: float) -> None:
    """Only so much of the time was calloc watched, and its calls seen."""
    ((cpu_ns,),) = made.database.execute("SELECT SUM(cpu_ns) FROM process_slice")
    length = round(part * cpu_ns)
    made.row("watch", slice=1, call="calloc", windows=1, watched_ns=length, watched_cpu_ns=length)
    made.database.execute(
        "UPDATE call SET calls = ? * calls, bytes = ? * bytes, timed_calls = ? * timed_calls, cpu_ns = ? * cpu_ns,"
        " cleared_calls = ? * cleared_calls, cleared_bytes = ? * cleared_bytes, cleared_cpu_ns = ? * cleared_cpu_ns"
        " WHERE call = 'calloc'",
        (part,) * 7,
    )
    # What came fresh was seen: it is at the program's start.
    made.database.execute(
        "UPDATE call SET bytes = cleared_bytes + ?, calls = cleared_calls + ? WHERE call = 'calloc'",
        (FRESH * 10 * MIB, FRESH),
    )
    made.database.execute("UPDATE hit SET hits = ? * hits WHERE probe = 'calloc'", (part,))


@pytest.mark.parametrize("part", [1.0, 1 / 16])
@pytest.mark.parametrize("used", [0.0, 0.5, 1.0])
def test_what_is_used_of_blocks_does_not_depend_on_windows(part: float, used: float) -> None:
    """Faults are always counted, and callocs scaled: their quotient is of what was seen of both."""
    made = facts.heap_blocks()
    site = made.one("SELECT stack_id FROM call WHERE call = 'calloc'")["stack_id"]
    pages = round(used * FRESH * 10 * MIB / PAGE)
    if pages:
        made.fault("zero", pages, FAULT_NS, allocated_stack=site, allocated_call="calloc")
    if part < 1:
        seen_in_windows(made, part)
    assert made.one("SELECT libc_used FROM measure")["libc_used"] == pytest.approx(used, abs=0.001)
    found = given(made)
    assert ("calloc-reuse-memset" in found) == (used == 0), found
    if used:
        assert "would not help" in found["calloc-memset"]["text"]
        assert not any(row["try"] for row in found.values())


def test_price_of_few_calls_that_were_seen_is_a_lower_bound() -> None:
    """One window says next to nothing of how many calls there were: no more than their time has room for."""
    exact, made = facts.heap_blocks(), facts.heap_blocks()
    seen_in_windows(made, 1 / 16)
    made.database.execute("UPDATE call SET calls = calls / 8, cleared_calls = cleared_calls / 8 WHERE call = 'calloc'")
    made.database.execute(
        "UPDATE call SET bytes = calls * ?, cleared_bytes = cleared_calls * ? WHERE call = 'calloc'",
        (10 * MIB, 10 * MIB),
    )
    sql = "SELECT libc_each_ns, libc_each_least FROM measure"
    assert not exact.one(sql)["libc_each_least"]
    assert exact.one(sql)["libc_each_ns"] == pytest.approx(83 * US, rel=0.05)
    row = made.one(sql)
    assert row["libc_each_least"]
    assert row["libc_each_ns"] == pytest.approx(10 * MIB / 120.0, rel=0.01)
    assert "of each: at least 87" in given(made)["calloc-reuse-memset"]["text"]


@pytest.mark.parametrize(
    ("call", "size", "used", "harm"),
    [
        ("malloc", 3 * MIB, 1.0, True),
        ("malloc", 3 * MIB, None, True),  # none of it came fresh: it may be used
        ("malloc", 3 * MIB, 0.0, False),
        ("malloc", 100 * KIB, 1.0, False),  # stays in the heap
        ("calloc", 3 * MIB, 1.0, True),
        ("calloc", 3 * MIB, 0.0, False),
    ],
)
def test_pin_is_not_advised_where_it_costs_other_blocks(call: str, size: int, used: float | None, harm: bool) -> None:
    """The heap has them, and they are used again without a fault: the setting is for all of them."""
    made = facts.heap_blocks()
    site, calls = facts.loop_stack(made, call, 52), 1009
    fresh = 0 if used is None else 3
    cleared = {"cleared_calls": calls - fresh, "cleared_bytes": (calls - fresh) * size} if call == "calloc" else {}
    made.call(call, site, calls, bytes=calls * size, cpu_ns=round(calls * (INSIDE + MALLOC_NS)), mmapped_calls=fresh,
              **cleared)  # fmt: skip
    if used:
        made.fault("zero", round(used * fresh * size / PAGE), FAULT_NS, allocated_stack=site, allocated_call=call)
    found = given(made)
    assert ("calloc-reuse-memset" in found) == (not harm), found
    if harm:
        text = found["calloc-memset"]["text"]
        assert f"large blocks of {call} at calloc_loop.c:52 (round_once) would then be mapped as well" in text


def test_blocks_that_stay_are_not_mapped_anew() -> None:
    """Of malloc, from a heap that grew for them: each page has its one fault already."""
    made = facts.heap_blocks()
    site, calls, size = facts.loop_stack(made, "malloc", 52), 211, 3 * MIB
    made.call("malloc", site, calls, bytes=calls * size, cpu_ns=round(calls * (INSIDE + MALLOC_NS)))
    made.fault("zero", calls * size // PAGE, FAULT_NS, allocated_stack=site, allocated_call="malloc")
    beside = made.one("SELECT beside_ns FROM measure")["beside_ns"]
    assert beside == pytest.approx(calls * 3 * FAULT_NS)


def trimmed_heap(given: int = 600 * MIB) -> Facts:
    """The top is given back and comes again: the kernel clears it, and calloc's memset after that: 1,100 MiB in all."""
    made = facts.naive_calloc()
    made.database.execute("DELETE FROM allocator WHERE kind = 'unknown'")
    made.database.execute("UPDATE call SET known_clearing = 1, cleared_calls = calls, cleared_bytes = bytes")
    made.database.execute("UPDATE call SET cleared_cpu_ns = cpu_ns, cleared_faults = faults, mmapped_calls = 0")
    made.database.execute("UPDATE call SET cleared_calls = 0, cleared_bytes = 0 WHERE call = 'free'")
    made.database.execute("UPDATE allocator SET mmap_threshold_low = 131072, mmap_threshold_high = 131072")
    # Once, so that it is no storm.
    freed, made_by = facts.loop_stack(made, "free", 43), facts.loop_stack(made, "calloc", 42)
    made.gave("brk", freed, 1, given, span_bytes=given)
    made.again("brk", freed, made_by, given // PAGE, twice_bytes=given)
    return made


def test_clearing_twice_after_a_trim_keeps_the_top() -> None:
    made = trimmed_heap()
    row = given(made)["calloc-double-clear"]
    assert row["try"] == "memtoll compare --set GLIBC_TUNABLES=glibc.malloc.trim_threshold=2147483648 -- COMMAND"
    assert "up trim_threshold" in settings(made)


def test_clearing_twice_while_the_heap_grows_has_no_setting() -> None:
    """Most of it was never given back: what glibc gets in advance it takes for used."""
    row = given(trimmed_heap(90 * MIB))["calloc-double-clear"]
    assert row["try"] is None
    assert "Keep the buffer" in row["text"]


NEIGHBOURS: dict[str, Callable[[], Facts]] = {
    "reused": facts.heap_blocks,
    "fresh": facts.touched_churn,
    "fresh calloc": lambda: churned_calloc(120e9),
    "fresh calloc, slow memset": lambda: churned_calloc(1e9),
    "mapped, not used": facts.mapped_blocks,
    "trimmed": trimmed_heap,
    "both": both,
}


@pytest.mark.parametrize("name", NEIGHBOURS)
def test_no_recording_gets_both_directions(name: str) -> None:
    turned = settings(NEIGHBOURS[name]())
    for setting in turned:
        way, what = setting.split()
        assert f"{'down' if way == 'up' else 'up'} {what}" not in turned, turned


def test_gain_of_faults_is_theirs() -> None:
    """No advice promises time that its toll did not take, nor the first of 73 blocks, which is touched anyway."""
    made = facts.touched_churn()
    toll, observed = made.toll("zero.kernel"), made.one("SELECT * FROM observed")
    assert state(made, "first-touch")["gain"] == pytest.approx(72 / 73 * toll["time_ns"] / observed["observed_ns"])
    assert toll["time_ns"] == pytest.approx(73 * 33 * MIB // PAGE * FAULT_NS)
    assert state(made, "map-churn")["gain"] < 73 * MS / observed["observed_ns"] + 0.01


def test_zero_time_is_printed_as_in_the_tables() -> None:
    made = facts.cpu_loop()
    texts = {row["text"] for row in made.judged("figure", "SELECT text FROM figure")}
    assert "0 ns" in texts and "0.00 ns" not in texts


# What is claimed.


def test_use_of_fresh_blocks_decides_whether_calloc_is_pinned() -> None:
    """Faults of the program itself in blocks that came fresh from the kernel: all of it, or hardly any."""
    made = facts.heap_blocks()
    (site,) = (row["stack_id"] for row in made.rows("SELECT stack_id FROM call WHERE call = 'calloc'"))
    assert "the program used 0 %" in given(made)["calloc-reuse-memset"]["text"]
    made.fault("zero", 2 * 10 * MIB // PAGE, FAULT_NS, allocated_stack=site, allocated_call="calloc")
    made.database.execute("UPDATE process_slice SET cpu_ns = cpu_ns + ?", (round(5120 * FAULT_NS),))
    found = given(made)
    assert "calloc-reuse-memset" not in found
    assert "would not help" in found["calloc-memset"]["text"] and "100 % was used" in found["calloc-memset"]["text"]
    assert not any(row["try"] for row in found.values())
    # Not known: an upper bound, and the text says when it holds.
    made = facts.heap_blocks()
    made.database.execute("UPDATE call SET bytes = cleared_bytes, calls = cleared_calls WHERE call = 'calloc'")
    text = given(made)["calloc-reuse-memset"]["text"]
    assert "How much is used was not seen" in text


def test_blocks_of_the_heap_beside_larger_ones_of_the_same_place() -> None:
    """The mean is of both, and says nothing of the cleared ones; that they are as large as the heap's can be does."""
    made = facts.heap_blocks()
    made.database.execute(
        "UPDATE call SET calls = calls + 701, timed_calls = timed_calls + 701, mmapped_calls = mmapped_calls + 701,"
        " bytes = bytes + ?, cpu_ns = cpu_ns + ? WHERE call = 'calloc'", (701 * 200 * MIB, 701 * 3 * US),
    )  # fmt: skip
    found = given(made)["calloc-reuse-memset"]
    assert "gets blocks of 10.0 MiB from the heap" in found["text"] and found["gain"] > 0.9
    # Smaller than half of it: they may have been cut from a top that grew.
    made.database.execute("UPDATE allocator SET mmap_threshold_low = 33554432, mmap_threshold_high = 33554432")
    assert "calloc-reuse-memset" not in given(made)


@pytest.mark.slow
def test_never_used_is_no_more_than_its_mapping_calls() -> None:
    made = facts.mapped_blocks()
    row = given(made)["never-used"]
    share = made.one("SELECT share FROM family WHERE family = 'mapping'")["share"]
    assert row["gain"] == pytest.approx(share, rel=0.01)
    assert "map-churn" not in given(made), "nothing is promised twice"
    made.database.execute("UPDATE block SET never_used_bytes = made_bytes * 6 / 10")
    assert given(made)["never-used"]["gain"] == pytest.approx(0.6 * share, rel=0.01)
    assert given(made)["map-churn"]["gain"] == pytest.approx(0.4 * share, rel=0.01)
    # One block, however large, is two calls of many.
    made = facts.mapped_blocks()
    made.database.execute("UPDATE block SET never_used_bytes = 0")
    made.block("mmap", 7, 1, 1 << 50, never_used_bytes=1 << 50)
    assert "never-used" not in given(made)
    assert state(made, "never-used")["applies"] and state(made, "never-used")["gain"] < 0.001
    made = facts.mapped_blocks()
    made.database.execute("UPDATE block SET never_used_bytes = made_bytes * 6 / 10")
    # Pages that a call faulted in raise no fault, and were cleared.
    made.database.execute("UPDATE map_call SET populated = 3001 * 25600 WHERE call = 'mmap'")
    assert "never-used" not in given(made)
    # Blocks of which a part is used need their mapping calls all the same.
    made = facts.mapped_blocks()
    made.fault("zero", 3001, None, allocated_stack=1, allocated_call="malloc")
    assert "never-used" not in given(made)
    # Where pages that were used are the cost nothing is promised for others.
    made = facts.touched_churn()
    made.database.execute("UPDATE block SET never_used_bytes = made_bytes * 6 / 10")
    assert "never-used" not in given(made)


@pytest.mark.parametrize(
    ("words", "tunables", "command"),
    [
        ("./churn 3", "", "./churn 3"),
        # As the environment of that time, which is not that of now.
        ("./churn 3", "GLIBC_TUNABLES=a.b=3", "env GLIBC_TUNABLES=a.b=3 ./churn 3"),
        ("env GLIBC_TUNABLES=x=y ./churn 3", "GLIBC_TUNABLES=x=y", "env GLIBC_TUNABLES=x=y ./churn 3"),
        ("./mallocs --x=1", "MALLOC_CONF=a:1,b:2 MALLOC_ARENA_MAX=1", "env {} ./mallocs --x=1"),
        ("env MALLOC_ARENA_MAX=2 ./churn", "MALLOC_ARENA_MAX=2", "env MALLOC_ARENA_MAX=2 ./churn"),
        # The owner of the program wrote it, and a shell of root's may be given it.
        ("./churn", "MALLOC_CONF=a;id", "./churn"),
        ("./churn", "MALLOC_CONF=$(id)", "./churn"),
        ("./churn", "MALLOC_CONF=`id`", "./churn"),
        ("./churn", "MALLOC_CONF=a|id", "./churn"),
        ("./churn", "MALLOC_CONF=a&id", "./churn"),
        ("./churn", "MALLOC_CONF=a>b", "./churn"),
        ("./churn", "MALLOC_CONF=a\nid", "./churn"),
        ("./churn", "MALLOC_CONF=a'id'", "./churn"),
        ("./churn", 'MALLOC_CONF="\\', "./churn"),
        # One variable with a blank in its value.
        ("./churn", "MALLOC_CONF=a /tmp/other", "./churn"),
        ("./churn", "MALLOC_CONF=a LD_PRELOAD=/tmp/MALLOC_A=b", "./churn"),
        ("./churn", "MALLOC_CONF=a  MALLOC_ARENA_MAX=1", "./churn"),
        ("./churn", "-SMALLOC_CONF=a", "./churn"),
    ],
)
def test_trial_has_what_the_environment_set(words: str, tunables: str, command: str) -> None:
    made = facts.touched_churn()
    made.database.execute("DELETE FROM meta WHERE key = 'target_words'")
    made.meta(target_words=words)
    made.database.execute("UPDATE allocator SET tunables = ?", (tunables,))
    (trial,) = (row["try"] for row in given(made).values() if row["try"])
    assert trial.split(" -- ")[1] == command.format(tunables)


@pytest.mark.slow
def test_mappings_of_the_program_get_no_setting_of_the_allocator() -> None:
    """The kernel clears its own mappings; and its own mapping calls are the cost, not the allocator's."""
    made = facts.touched_churn()
    made.database.execute("UPDATE fault SET allocated_call = 'mmap'")
    made.database.execute("UPDATE block SET call = 'mmap'")
    row = given(made)["first-touch"]
    assert row["try"] is None and not re.search("glibc|allocator", row["text"]), row
    made = facts.mapped_blocks()
    made.database.execute("UPDATE block SET never_used_bytes = 0")
    assert "calloc at" in given(made)["map-churn"]["text"]
    made.database.execute("UPDATE map_call SET in_call = ''")
    text = given(made)["map-churn"]["text"]
    assert "Keep memory and use it again" in text and "threshold" not in text


def test_what_is_said_aside_gives_way_and_drives_nothing_out() -> None:
    made = facts.touched_churn()
    assert "MADV_HUGEPAGE" in given(made)["first-touch"]["text"]
    # Whatever its gain: another part turns the same setting the other way, and is not said aside.
    made.database.execute("UPDATE advice_text SET change = 'down trim_threshold' WHERE aside")
    found = given(made)
    assert "MADV_HUGEPAGE" not in found["first-touch"]["text"]
    assert "Keep the buffer" in found["first-touch"]["text"] and found["first-touch"]["try"]


def test_huge_pages_are_not_advised_where_they_are() -> None:
    made = facts.touched_churn()
    made.database.execute("UPDATE fault SET class = 'zero_huge'")
    assert "MADV_HUGEPAGE" not in given(made)["first-touch"]["text"]


@pytest.mark.parametrize(("part", "advised"), [(2, True), (400, False)])
def test_huge_pages_are_not_advised_for_blocks_of_which_little_is_used(part: int, advised: bool) -> None:
    made = facts.touched_churn()
    made.database.execute("UPDATE call SET bytes = ? * bytes", (part,))
    made.database.execute("UPDATE block SET made_bytes = ? * made_bytes, freed_bytes = ? * freed_bytes", (part, part))
    assert ("MADV_HUGEPAGE" in given(made)["first-touch"]["text"]) == advised


def all_that_is_said(made: Facts) -> str:
    return " ".join(f"{row['text']} {row['try']}" for row in given(made).values())


@pytest.mark.parametrize("kind", ["musl", "jemalloc", "tcmalloc", "mimalloc", "go", "unknown"])
@pytest.mark.parametrize("how", ["munmap", "brk", "dontneed", "heap", "fixed"])
def test_no_setting_of_glibc_where_it_is_not_used(kind: str, how: str) -> None:
    """Each way of giving back, by each allocator; glibc is mapped, too, where it can be."""
    made = facts.touched_churn()
    made.database.execute("UPDATE call SET known_clearing = 0, mmapped_calls = 0")
    made.database.execute("DELETE FROM allocator")
    made.database.execute("DELETE FROM allocator_probe")
    made.allocator(kind)
    if kind not in ("musl", "go"):
        made.allocator()
    freed, got = facts.loop_stack(made, "free", 43), facts.loop_stack(made, "malloc", 42)
    made.database.execute("UPDATE frame SET module = ? WHERE function IN ('free', 'malloc')", (f"/opt/lib{kind}.so",))
    made.gave(how, freed, 73, 600_011 * PAGE, gave_call="" if kind == "go" else "free", largest_bytes=33 * MIB)
    made.again(how, freed, got, 600_011)
    said = all_that_is_said(made)
    assert not re.search("GLIBC|glibc|MALLOC_[A-Z_]+_=|mallopt|top_pad|arena_max", said), said
    others = {"jemalloc": "MALLOC_CONF", "tcmalloc": "TCMALLOC_", "mimalloc": "MIMALLOC_"}
    for other, variable in others.items():
        if other != kind:
            assert not re.search(rf"\b{variable}", said), (kind, said)
