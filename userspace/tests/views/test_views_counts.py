# SPDX-License-Identifier: GPL-2.0
"""Exact counts by site, what makes them doubtful, and what a place is called in another recording."""

from __future__ import annotations

from typing import Any

import pytest

from facts import MIB, PAGE, SCENARIOS, US, Facts

# Which allocator function's clearing is not known there is test_doubts'.
COUNTED = ("zero.kernel", "zero.libc", "cow", "file.fault", "alloc", "map")


@pytest.mark.parametrize("scenario", [name for name in SCENARIOS if name != "naive-calloc"])
def test_counts_are_those_of_the_toll_table(scenario: str) -> None:
    made = SCENARIOS[scenario]()
    exact = {
        row["toll"]: (row["count"], row["bytes"])
        for row in made.rows("SELECT toll, SUM(count) AS count, SUM(bytes) AS bytes FROM exact_count GROUP BY toll")
    }
    shown = {row["toll"]: row for row in made.rows("SELECT toll, count, bytes FROM toll")}
    assert exact
    for toll in COUNTED:
        assert exact.get(toll, (0, 0)) == (shown[toll]["count"], shown[toll]["bytes"]), toll


def doubts(made: Facts) -> dict[str, list[tuple[int | None, str]]]:
    found: dict[str, list[tuple[int | None, str]]] = {}
    for row in made.rows("SELECT * FROM count_doubt ORDER BY toll, reason"):
        found.setdefault(row["toll"], []).append((row["lost"], row["reason"]))
    return found


def test_nothing_is_doubted_of_a_whole_recording() -> None:
    assert doubts(SCENARIOS["heap-blocks"]()) == {}


def changed(sql: str, *values: Any, scenario: str = "heap-blocks") -> dict[str, list[tuple[int | None, str]]]:
    made = SCENARIOS[scenario]()
    made.database.execute(sql, values)
    return doubts(made)


@pytest.mark.parametrize(
    ("loss", "tolls"),
    [
        ("calls_full", {"alloc", "zero.libc"}),
        ("maps_full", {"map"}),
        ("reads_full", {"file.read"}),
        ("ring_faults", {"zero.kernel", "cow", "file.fault", "swap.in", "fault.user", "fault.other"}),
        ("swaps_full", {"swap.out", "reclaim"}),
        ("walk_failed", {"zero.kernel", "cow", "file.fault", "swap.in", "fault.user", "fault.other"}),
        ("header_unreadable", {"zero.libc"}),
        ("return_missed", {"alloc", "zero.libc"}),
        ("ring_outlier", set()),
        ("outliers_preempted", set()),
        ("call_sites", set()),
    ],
)
def test_lost_events(loss: str, tolls: set[str]) -> None:
    """Those of its own toll, and those who knows whose; a call without a place is counted."""
    found = changed("INSERT INTO loss (slice, name, count) VALUES (1, ?, 7)", loss)
    assert set(found) == tolls
    assert all(reasons == [(7, f"{loss} 7")] for reasons in found.values())


@pytest.mark.parametrize(
    "loss", ["late_attach", "attach_failed", "mappings_left_out", "ring_process", "processes_full"]
)
def test_what_nobody_looked_at(loss: str) -> None:
    """Of how many calls is not known."""
    found = changed("INSERT INTO loss (slice, name, count) VALUES (1, ?, 1)", loss)
    assert found["alloc"] == found["zero.libc"] == [(None, f"{loss} 1")]
    assert ("zero.kernel" in found) == (loss == "processes_full")


@pytest.mark.parametrize("static", [False, True])
def test_a_process_without_a_known_allocator(static: bool) -> None:
    """Nor is it known where the functions of a statically linked program are that was stripped."""
    made = SCENARIOS["heap-blocks"]()
    if static:
        values = {"version": "", "functions": "", "refused": "", "tunables": "", "linkage": "static"}
        made.row("allocator", pid=42, module="/srv/static", kind="glibc", **values)
    else:
        made.process(pid=43, role="child")
    found = doubts(made)
    assert set(found) == {"alloc", "zero.libc"}
    assert all(lost is None and "no allocator" in reason for ((lost, reason),) in found.values())


@pytest.mark.parametrize(
    ("facts", "reason"),
    [
        ({"end_reason": "target exited", "exit_status": "3"}, "the command failed (exit status 3)"),
        ({"end_reason": "signal", "exit_status": "0", "target_words": "x"}, "the command was interrupted"),
        ({"end_reason": "size limit"}, "the recording ended early: size limit"),
        ({"end_reason": "target exited", "exit_status": "0", "target_words": "x"}, None),
        ({"end_reason": "signal"}, None),
        ({"end_reason": "duration", "exit_status": "143", "target_words": "x"}, None),
    ],
)
def test_commands_that_did_not_do_all(facts: dict[str, str], reason: str | None) -> None:
    """A process that was attached to goes on, and -d ends a command: those are whole."""
    made = SCENARIOS["heap-blocks"]()
    for key, value in facts.items():
        made.database.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (key, value))
    found = doubts(made)
    assert {toll: rows for toll, rows in found.items() if rows != [(None, reason)]} == {}
    assert bool(found) == (reason is not None)


def place_doubts(sql: str, *values: Any) -> dict[str, int | None]:
    made = SCENARIOS["heap-blocks"]()
    made.database.execute(sql, values)
    return {row["toll"]: row["lost"] for row in made.rows("SELECT DISTINCT toll, lost FROM place_doubt")}


def test_doubts_of_places() -> None:
    """Of whose code it is, and with faults of who allocated the block."""
    faults = {"zero.kernel", "cow", "file.fault", "swap.in", "fault.user", "fault.other"}
    assert place_doubts("SELECT 1") == {}
    loss = "INSERT INTO loss (slice, name, count) VALUES (1, ?, 7)"
    assert place_doubts(loss, "call_sites") == {"alloc": 7, "zero.libc": 7}
    assert {"alloc", "map", "file.read"} | faults <= set(place_doubts(loss, "stacks_full"))
    assert place_doubts(loss, "blocks_full") == dict.fromkeys(faults)
    assert place_doubts(loss, "late_attach") == dict.fromkeys(faults)
    assert place_doubts("INSERT INTO not_captured VALUES ('alloc', 'left out')") == dict.fromkeys(faults)
    thinned = "INSERT INTO thinned (slice, what, seen, passed) VALUES (1, ?, 10, 90)"
    assert place_doubts(thinned, "small_map") == {"map": None}


def test_a_thread_without_a_state_makes_all_doubtful() -> None:
    found = changed("INSERT INTO loss (slice, name, count) VALUES (1, 'thread_state', 1)")
    assert {"alloc", "zero.libc", "zero.kernel", "map", "file.read", "swap.out"} <= set(found)


@pytest.mark.parametrize(
    ("call", "tolls"),
    [("calloc", {"alloc", "zero.libc"}), ("free", {"alloc"}), ("syscall", set()), ("malloc", {"alloc"})],
)
def test_calls_that_were_watched_in_windows(call: str, tolls: set[str]) -> None:
    """No window saw a malloc there, which is not that there was none; unwatched mapping calls are losses."""
    sql = "INSERT INTO watch (slice, call, windows, watched_ns, watched_cpu_ns) VALUES (1, ?, 1, 1000, 1000)"
    found = changed(sql, call)
    assert set(found) == tolls
    assert all(lost is None for reasons in found.values() for lost, _ in reasons)


def test_faults_of_which_some_were_looked_at() -> None:
    found = changed("INSERT INTO thinned (slice, what, seen, passed) VALUES (1, 'fault', 10, 90)")
    assert set(found) == {"zero.kernel", "cow", "file.fault", "swap.in", "fault.user", "fault.other"}


def test_reads_of_which_some_were_looked_at() -> None:
    found = changed("INSERT INTO thinned (slice, what, seen, passed) VALUES (1, 'read', 10, 90)")
    assert set(found) == {"file.read"}


def test_doubts() -> None:
    assert set(changed("SELECT 1", scenario="naive-calloc")) == {"zero.libc"}
    assert "alloc" in changed("DELETE FROM meta WHERE key = 'complete'")


def test_a_place_is_known_by_its_functions() -> None:
    """Not by its line, which is another in the next version; and by who calls it."""
    made = Facts()
    made.prices()
    made.slice()
    made.process()
    made.allocator()
    main, sort = ("main", "/src/a.c", 9), ("sort", "/src/a.c", 20)
    stacks = [
        made.stack(("malloc", "", 0), ("grow", "/src/a.c", 5), main),
        made.stack(("malloc", "", 0), ("grow", "/src/a.c", 7), ("main", "/src/a.c", 11)),
        made.stack(("malloc", "", 0), ("grow", "/src/a.c", 5), sort, main),
        made.stack(("malloc", "", 0), ("_dl_new_object", "", 0)),
    ]
    known = {row["stack_id"]: row for row in made.rows("SELECT * FROM stack_site")}
    first, line, caller, bare = (known[stack] for stack in stacks)
    assert first["site"] == line["site"] == "grow program < main program"
    assert caller["site"] == "grow program < sort program < main program"
    assert (first["place"], first["function"], first["file"], first["line"]) == (
        "a.c:5 (grow)",
        "grow",
        "/src/a.c",
        5,
    )
    assert (first["caller"], caller["caller"]) == ("a.c:9 (main)", "a.c:20 (sort)")
    assert (bare["function"], bare["caller"]) == ("malloc", None)


def test_faults_belong_to_who_touched_the_page() -> None:
    made = Facts()
    made.prices()
    made.slice()
    made.process()
    made.allocator()
    site = made.stack(("malloc", "", 0), ("make", "/src/a.c", 5))
    code = made.stack(("fill", "/src/a.c", 8))
    common = {"allocated_stack": site, "allocated_call": "malloc"}
    made.fault("zero", 10, US, touched_stack=code, **common)
    made.fault("zero_read", 3, US, touched_stack=0, **common)
    made.fault("cow", 4, US, area="file", area_name="/srv/x", pages=8)
    made.call("malloc", site, 2, bytes=MIB)
    rows = made.rows("SELECT toll, fault, stack_id, block_stack, area, count, bytes FROM exact_count ORDER BY count")
    assert [tuple(row.values()) for row in rows] == [
        ("alloc", 0, site, 0, "", 2, MIB),
        ("zero.kernel", 1, site, site, "anon", 3, 0),
        ("cow", 1, 0, 0, "file /srv/x", 4, 8 * PAGE),
        ("zero.kernel", 1, code, site, "anon", 10, 10 * PAGE),
    ]
