# SPDX-License-Identifier: GPL-2.0
"""Looks at who holds the memory: what they found first and last, and whether live blocks grow."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest

from facts import MIB, Facts, S, loop_stack


def looked(live: Sequence[int | None]) -> Facts:
    """A look each second; of None nothing is known. So many bytes live, and half as many are kept."""
    made = Facts()
    made.prices()
    made.slice(seconds=len(live))
    made.process()
    made.cpu(S)
    for look, size in enumerate(live, 1):
        made.row("hold_look", look=look, start_ns=(1_000 + look) * S, took_ns=S // 100, whole=size is not None)
        if size is not None:
            for part, size_of in (("live", size), ("trim", size // 2), ("rss", 2 * size), ("swap", 0)):
                made.row("hold_part", look=look, pid=42, part=part, bytes=size_of)
    return made


def growth(made: Facts) -> dict[str, Any]:
    return made.one("SELECT * FROM hold_growth")


@pytest.mark.parametrize(
    ("live", "grows"),
    [
        ((10, 20, 30, 40), True),
        # A tenth of it may go for a while.
        ((10, 25, 22, 40), True),
        ((10, 40, 20, 40), False),
        ((40, 30, 20, 10), False),
        # Two looks may be at any moment of what comes and goes.
        ((10, 40), False),
        ((10, None, 40), False),
        ((10, None, 30, 40), True),
        # A twentieth of what was there.
        ((1_000, 1_010, 1_020, 1_040), False),
        ((1_000, 1_010, 1_020, 1_060), True),
    ],
)
def test_growth_is_in_each_look(live: tuple[int | None, ...], grows: bool) -> None:
    made = looked([size and size * MIB for size in live])
    row = growth(made)
    assert bool(row["grows"]) == grows
    first, last = live[0] or 0, live[-1] or 0
    assert row["grown_bytes"] == (last - first) * MIB
    assert row["bytes_per_s"] == pytest.approx((last - first) * MIB / (len(live) - 1))


def test_less_than_a_megabyte_is_no_growth() -> None:
    assert not growth(looked([1 << 18, 1 << 19, 1 << 20]))["grows"]


def test_first_and_last_look_that_found_something() -> None:
    made = looked([None, 10 * MIB, 20 * MIB, None])
    span = made.one("SELECT * FROM hold_span")
    assert (span["first"], span["last"], span["looks"], span["seen"], span["seconds"]) == (2, 3, 4, 2, 1.0)
    parts = {row["part"]: (row["first_bytes"], row["last_bytes"]) for row in made.rows("SELECT * FROM hold_change")}
    # What was nothing both times is left out.
    assert parts == {
        "live": (10 * MIB, 20 * MIB),
        "trim": (5 * MIB, 10 * MIB),
        "rss": (20 * MIB, 40 * MIB),
    }


def test_processes_count_together() -> None:
    made = looked([MIB, 2 * MIB, 3 * MIB])
    made.row("hold_part", look=3, pid=43, part="live", bytes=7 * MIB)
    assert growth(made)["grown_bytes"] == 9 * MIB


def test_no_look_says_nothing() -> None:
    made = looked([None, None])
    assert made.rows("SELECT * FROM hold_change") == []
    assert made.rows("SELECT * FROM hold_growth") == []
    assert made.rows("SELECT * FROM hold_json") == []


def test_site_whose_blocks_grow() -> None:
    made = looked([0, 50 * MIB, 100 * MIB])
    work, kept = loop_stack(made, "malloc", 5), loop_stack(made, "malloc", 9)
    made.block("malloc", work, 1_009, 1_009 * MIB)
    made.block("malloc", kept, 97, 97 * MIB, freed=1, freed_bytes=MIB)
    row = growth(made)
    assert (row["stack_id"], row["made"], row["freed"], row["site_bytes"]) == (kept, 97, 1, 96 * MIB)
    assert row["site_part"] == pytest.approx(0.96) and not row["in_part"]
    # Who calls it, too: a wrapper of malloc has many callers.
    assert row["place"] == "calloc_loop.c:9 (round_once), called at calloc_loop.c:60 (main)"
    found = json.loads(made.one("SELECT json FROM hold_json")["json"])
    assert found["site"] == {
        "call": "malloc", "place": row["place"], "made": 97, "freed": 1, "bytes": 96 * MIB, "in_part": False
    }  # fmt: skip
    made.row("watch", slice=1, call="malloc", windows=3, watched_ns=S // 2, watched_cpu_ns=S // 2)
    assert growth(made)["in_part"]


def test_a_site_with_little_of_it_is_not_named() -> None:
    made = looked([0, 50 * MIB, 100 * MIB])
    made.block("malloc", loop_stack(made, "malloc", 9), 7, 7 * MIB, freed=0, freed_bytes=0)
    assert json.loads(made.one("SELECT json FROM hold_json")["json"])["site"] is None


def pins(made: Facts, look: int, *rows: tuple[str, int, str, int, int, float]) -> list[tuple[Any, ...]]:
    for at, size, call, stack, size_of, estimate in rows:
        made.row(
            "hold_pin", look=look, pid=42, at=at, size=size, call=call, stack_id=stack, blocks=7, bytes=size_of,
            estimate=estimate, hint="" if call else "vtable for Session",
        )  # fmt: skip
    columns = ("at", "call", "bytes", "size", "matters", "rank")
    return [tuple(row[name] for name in columns) for row in made.rows("SELECT * FROM hold_pinned ORDER BY at, rank")]


def test_a_sampled_site_stands_for_others_of_its_size() -> None:
    """Of 50 MiB a fiftieth was chosen; of what is left nobody knows who made it."""
    made = looked([MIB, MIB])
    kept = loop_stack(made, "malloc", 9)
    found = pins(made, 2, ("page", 96, "malloc", kept, MIB, 45.0 * MIB), ("page", 96, "", 0, 49 * MIB, 49.0 * MIB))
    assert found == [("page", "malloc", 45 * MIB, 96, 1, 1), ("page", "", 5 * MIB, 96, 1, 2)]
    (named, other) = json.loads(made.one("SELECT json FROM hold_json")["json"])["pinned"]
    place = "calloc_loop.c:9 (round_once), called at calloc_loop.c:60 (main)"
    assert (named["place"], named["hint"], named["blocks"]) == (place, None, 7)
    assert (other["place"], other["call"], other["hint"]) == (None, None, "vtable for Session")


def test_an_estimate_is_no_more_than_there_is() -> None:
    made = looked([MIB, MIB])
    one, other = loop_stack(made, "malloc", 5), loop_stack(made, "malloc", 9)
    found = pins(
        made, 2,
        ("page", 96, "malloc", one, 2 * MIB, 90.0 * MIB), ("page", 96, "malloc", other, MIB, 30.0 * MIB),
        ("page", 96, "", 0, 5 * MIB, 5.0 * MIB), ("page", 208, "malloc", one, 3 * MIB, 3.0 * MIB),
    )  # fmt: skip
    # Two sizes of one site count together; the size told is the one with more bytes.
    assert found == [("page", "malloc", 9 * MIB, 96, 1, 1), ("page", "malloc", 2 * MIB, 96, 1, 2)]


def test_the_last_look_counts() -> None:
    made = looked([MIB, MIB])
    kept = loop_stack(made, "malloc", 9)
    assert pins(made, 1, ("end", 208, "malloc", kept, 60 * MIB, 60.0 * MIB)) == []
    assert pins(made, 2, ("end", 208, "malloc", kept, MIB // 2, MIB / 2)) == [("end", "malloc", MIB // 2, 208, 0, 1)]


def test_what_a_trim_costs() -> None:
    """As much of what there is now as was used of what there was, by process."""
    made = looked([2 * MIB, 2 * MIB])
    made.row("hold_part", look=2, pid=43, part="trim", bytes=4 * MIB)
    for look, pid, pages, used in ((1, 42, 10, 10), (2, 42, 1_000, 250), (2, 43, 512, 0)):
        made.row("hold_reuse", look=look, pid=pid, since_ns=S, seconds=8.0, pages=pages, used_pages=used)
    row = made.one("SELECT * FROM hold_refault")
    assert (row["trim_bytes"], row["seconds"], row["matters"]) == (5 * MIB, 8.0, 1)
    assert row["used"] == pytest.approx(0.05)
    assert row["refaults_per_s"] == pytest.approx(64 / 8)
    assert json.loads(made.one("SELECT json FROM hold_json")["json"])["trim"] == {
        "bytes": 5 * MIB, "seconds": 8.0, "used_part": 0.05, "refaults_per_s": 8.0, "in_part": False
    }  # fmt: skip


def test_what_a_trim_costs_is_not_known_without_a_second_look() -> None:
    made = looked([MIB])
    assert made.rows("SELECT * FROM hold_refault") == []
    assert json.loads(made.one("SELECT json FROM hold_json")["json"])["trim"] is None
