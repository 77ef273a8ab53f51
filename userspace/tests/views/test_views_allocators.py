# SPDX-License-Identifier: GPL-2.0
"""The judgements on allocators: facts written by hand. No root, no tracer."""

from __future__ import annotations

from typing import Any

import pytest

from facts import INSIDE, MIB, MS, PAGE, Facts, S

CALLS = 97
BLOCK = 10 * MIB
JEMALLOC = "/opt/libjemalloc.so"

# What a memset of all blocks takes at the machine's rate (facts.py: 120e9 bytes a second).
MEMSET_NS = CALLS * BLOCK / 120


@pytest.fixture
def made() -> Facts:
    facts = Facts()
    facts.prices()
    facts.slice()
    facts.process()
    facts.cpu(S)
    return facts


def callocs(facts: Facts, net_ns: float, **columns: Any) -> int:
    stack = facts.stack(("calloc", "", 0), ("clear_block", "/src/calloc_loop.c", 27))
    cpu_ns = round(net_ns + CALLS * INSIDE)
    facts.call("calloc", stack, CALLS, bytes=CALLS * BLOCK, cpu_ns=cpu_ns, **({"known_clearing": 0} | columns))
    return stack


def coverage(facts: Facts, kind: str) -> dict[str, Any]:
    return facts.one("SELECT * FROM allocator_coverage WHERE kind = ?", kind)


def clearing(facts: Facts, module: str = JEMALLOC) -> dict[str, Any]:
    return facts.one("SELECT * FROM allocator_clearing WHERE module = ?", module)


def test_all_seen(made: Facts) -> None:
    made.allocator()
    made.call("malloc", 0, 1009, bytes=10090)
    row = coverage(made, "glibc")
    assert (row["coverage"], row["complete"], row["calls"]) == ("malloc, calloc, realloc, free seen: 100 %", 1, 1009)


def test_calls_are_told_apart(made: Facts) -> None:
    made.allocator()
    made.allocator("jemalloc")
    made.call("malloc", 0, 1009)
    made.call("free", 0, 503, known_clearing=0)
    assert coverage(made, "glibc")["calls"] == 1009
    assert coverage(made, "jemalloc")["calls"] == 503
    # Of two that are not glibc nobody knows whose calls they were, where no stack tells.
    made.allocator("mimalloc")
    assert coverage(made, "jemalloc")["calls"] is None


def test_coverage_names_unprobed_functions(made: Facts) -> None:
    made.allocator("jemalloc")
    made.database.execute(
        "UPDATE allocator_probe SET offset = NULL, timed = 0, refusal = 'a loop' WHERE symbol = 'free'"
    )
    made.database.execute("UPDATE allocator_probe SET timed = 0 WHERE symbol = 'realloc'")
    row = coverage(made, "jemalloc")
    assert row["complete"] == 0
    assert row["coverage"] == "malloc, calloc, realloc seen: 100 %; realloc counted, not timed; not seen: free (a loop)"


def test_budget_is_no_full_coverage(made: Facts) -> None:
    made.allocator()
    made.row("watch", slice=1, call="malloc", windows=1, watched_ns=S // 8, watched_cpu_ns=S // 8)
    made.row("watch", slice=1, call="free", windows=1, watched_ns=S // 4, watched_cpu_ns=S // 4)
    text = coverage(made, "glibc")["coverage"]
    assert text == "calloc, realloc seen: 100 %; malloc, free seen: 12.5 % of the time, and scaled"


@pytest.mark.parametrize(("kind", "words"), [("go", "Go's own allocator"), ("glibc", "no malloc symbol")])
def test_no_symbols(made: Facts, kind: str, words: str) -> None:
    made.allocator(kind, linkage="static")
    made.database.execute("DELETE FROM allocator_probe")
    row = coverage(made, kind)
    assert words in row["coverage"]
    assert (row["functions"], row["complete"], row["calls"]) == (0, 0, 0)
    for toll in ("alloc", "zero.libc"):
        assert made.toll(toll)["not_captured"] and made.toll(toll)["time_ns"] is None
    assert made.toll("zero.kernel")["not_captured"] is None
    assert [row for row in made.rows("SELECT text FROM note") if words in row["text"]]


def test_coverage_without_probes(made: Facts) -> None:
    made.allocator()
    made.database.execute("UPDATE allocator_probe SET offset = NULL, refusal = 'left out'")
    assert coverage(made, "glibc")["coverage"] == "not probed: faults and mappings only (left out)"
    assert clearing(made, "/usr/lib/x86_64-linux-gnu/libc.so.6")["rule"] == "none"


@pytest.mark.parametrize(
    ("time", "samples", "in_memset", "faulted", "cleared_by"),
    [
        (0.05, 0, 0, 0, "kernel"),  # too quick to have written anything
        (0.05, 1, 0, 0, "kernel"),
        (1.0, 0, 0, 0, "memset"),  # as long as writing takes
        (0.2, 0, 0, 0, "unknown"),  # the machine's rate is not known that well
        (0.2, 20, 19, 0, "memset"),  # the samples know
        (1.0, 20, 1, 0, "some"),
        (1.0, 20, 0, 0, "unknown"),  # something else takes the time
        (1.0, 20, 19, CALLS * BLOCK // PAGE, "both"),  # its memset was the first to touch
    ],
)
def test_observation(made: Facts, time: float, samples: int, in_memset: int, faulted: int, cleared_by: str) -> None:
    made.allocator("jemalloc")
    callocs(made, time * MEMSET_NS)
    made.samples("calloc_memset", in_memset, in_call="calloc")
    made.samples("allocator", samples - in_memset, in_call="calloc")
    if faulted:
        made.fault("zero", faulted, None, in_call="calloc", in_memset=1)
    row = clearing(made)
    assert (row["rule"], row["cleared_by"], row["calls"]) == ("observation", cleared_by, CALLS), row
    assert (row["samples"], row["memset_samples"], row["agrees"]) == (samples, in_memset, None)


@pytest.mark.parametrize(
    ("mappings", "mapped", "samples", "in_memset", "faulted", "cleared_by"),
    [
        (97, 1.0, 0, 0, 0, "kernel"),  # fresh, and nobody wrote it, however long it took
        (97, 1.0, 3, 1, 0, "kernel"),
        (97, 0.5, 0, 0, 0, "unknown"),  # the rest may have been written
        (50, 2.0, 0, 0, 0, "unknown"),  # twice as much for some, and others used again
        (97, 1.0, 20, 19, 0, "memset"),  # mapped for something else
        (97, 1.0, 0, 0, CALLS * BLOCK // PAGE, "both"),
    ],
)
def test_fresh_mappings_need_no_clock(
    made: Facts, mappings: int, mapped: float, samples: int, in_memset: int, faulted: int, cleared_by: str
) -> None:
    """A calloc that took a fifth of what writing takes would otherwise prove nothing."""
    made.allocator("jemalloc")
    stack = callocs(made, 0.2 * MEMSET_NS)
    made.map_call("mmap", stack, mappings, round(mapped * CALLS * BLOCK), MS, in_call="calloc")
    made.samples("calloc_memset", in_memset, in_call="calloc")
    made.samples("allocator", samples - in_memset, in_call="calloc")
    if faulted:
        made.fault("zero", faulted, None, in_call="calloc", in_memset=1)
    row = clearing(made)
    assert row["cleared_by"] == cleared_by, row
    assert f"{mappings} mmap inside calloc, of {mapped * CALLS * 10:.1f} MiB" in row["evidence"]


def test_small_callocs_do_not_show_who_clears(made: Facts) -> None:
    made.allocator("jemalloc")
    stack = made.stack(("calloc", "", 0))
    made.call("calloc", stack, 10007, bytes=10007 * 64, cpu_ns=MS, known_clearing=0)
    row = clearing(made)
    assert (row["cleared_by"], row["calls"]) == ("unknown", 0)
    assert row["evidence"] == "no large calloc was seen"


@pytest.mark.parametrize(("in_memset", "agrees"), [(40, 1), (35, 1), (10, 0), (0, 0)])
def test_samples_against_headers(made: Facts, in_memset: int, agrees: int) -> None:
    """Nearly all of calloc's time is clearing, the headers say; 40 samples are enough to doubt it."""
    made.allocator()
    net = CALLS * 100_000.0
    stack = callocs(
        made,
        net,
        known_clearing=1,
        cleared_calls=CALLS,
        cleared_bytes=CALLS * BLOCK,
        cleared_cpu_ns=round(net + CALLS * INSIDE),
    )
    assert stack
    made.samples("calloc_memset", in_memset, in_call="calloc")
    made.samples("allocator", 40 - in_memset, in_call="calloc")
    row = clearing(made, "/usr/lib/x86_64-linux-gnu/libc.so.6")
    assert (row["rule"], row["cleared_by"], row["agrees"]) == ("chunk header", "memset", agrees), row
    notes = [row["text"] for row in made.rows("SELECT text FROM note")]
    assert bool([text for text in notes if "do not agree" in text]) == (not agrees)


def test_notes_of_many_processes_are_one(made: Facts) -> None:
    """A service may have hundreds; those of another name have a line of their own."""
    for pid in range(1001, 1098):
        made.process(pid, "worker", role="child")
    made.process(2001, "alone", role="child")
    # It had ended before it was looked at.
    made.process(3001, "gone", role="child", command="", executable="")
    said = [row["text"] for row in made.rows("SELECT text FROM note") if "no known allocator" in row["text"]]
    assert sorted(text.split(" maps")[0] for text in said if "program" not in text) == [
        "97 processes (worker), each of which",
        "process 2001 (alone)",
    ]
