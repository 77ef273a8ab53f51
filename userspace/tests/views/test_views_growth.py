# SPDX-License-Identifier: GPL-2.0
"""Blocks that realloc makes larger in small steps: what is counted, and when it is advised on."""

from __future__ import annotations

from typing import Any

import pytest

from facts import FAULT_INSIDE, FAULT_NS, INSIDE, KIB, MIB, MS, US, Facts, S, loop_stack

CALLS = 2003
STEP = 4099
SIZE = 4 * MIB


def growing(step: int = STEP, calls: int = CALLS, **columns: Any) -> tuple[Facts, int]:
    """realloc takes half of the time: so many calls, each of which makes a block larger by a step."""
    made = Facts()
    made.prices()
    made.slice()
    made.process()
    made.cpu(1 * S)
    made.allocator()
    stack = loop_stack(made, "realloc", 42)
    values = {
        "bytes": calls * SIZE,
        "cpu_ns": calls * (250 * US + INSIDE),
        "slow_calls": calls,
        "slow_cpu_ns": calls * (250 * US + INSIDE),
        "grown_calls": calls,
        "grown_bytes": calls * step,
        "copied_calls": 307,
        "copied_bytes": 307 * SIZE,
    }
    made.call("realloc", stack, calls, **(values | columns))
    return made, stack


def found(made: Facts) -> dict[str, dict[str, Any]]:
    return {row["code"]: row for row in made.judged("finding", "SELECT * FROM finding ORDER BY position")}


def test_small_steps_are_told_with_what_they_copy() -> None:
    made, stack = growing()
    site = made.one("SELECT * FROM growth_site")
    assert (site["stack_id"], site["small"], site["step"], site["size"]) == (stack, 1, STEP, SIZE)
    assert (site["grown_calls"], site["copied_calls"], site["copied_bytes"]) == (CALLS, 307, 307 * SIZE)
    codes = found(made)
    advice = codes["small-steps"]
    assert "4.00 KiB at a time, to 4.00 MiB on average: 2,003 calls. 307 of them moved" in advice["text"]
    assert "by a factor" in advice["text"]
    assert "given back" not in advice["text"]
    assert advice["gain"] == pytest.approx(0.5, rel=0.01)
    # It is the same time: nothing is left for the general advice.
    assert "alloc-cpu" not in codes


@pytest.mark.parametrize(
    ("columns", "calls"),
    [
        ({"step": SIZE // 9}, CALLS),  # by an eighth: a factor
        ({"step": STEP}, 15),  # too few to tell
        ({"grown_calls": 0, "grown_bytes": 0}, CALLS),  # sizes not known, or smaller each time
    ],
    ids=["by a factor", "few", "unknown"],
)
def test_other_growth_is_left_alone(columns: dict[str, int], calls: int) -> None:
    made, _ = growing(calls=calls, **columns)
    assert "small-steps" not in found(made)


def test_steps_in_place_copy_nothing() -> None:
    """As the last block of glibc's heap grows, or a mapping that mremap moves."""
    made, _ = growing(copied_calls=0, copied_bytes=0)
    assert "moved" not in found(made)["small-steps"]["text"]
    assert "; none of them moved it." in found(made)["small-steps"]["evidence"]


@pytest.mark.parametrize("got_call", ["realloc", "malloc"])
def test_growth_comes_before_the_storm_that_it_makes(got_call: str) -> None:
    made, stack = growing(cpu_ns=CALLS * (100 * US + INSIDE), slow_cpu_ns=CALLS * (100 * US + INSIDE))
    freed = loop_stack(made, "free", 43)
    made.gave("brk", freed, 101, 1999 * MIB, span_bytes=90 * MIB)
    made.again("brk", freed, stack, 1997 * MIB // (4 * KIB), got_call=got_call)
    made.fault("zero", 1999 * MIB // (4 * KIB), None)
    codes = list(found(made))
    assert "trim-storm" in codes
    first = codes.index("small-steps") < codes.index("trim-storm")
    assert first == (got_call == "realloc")
    assert ("given back" in found(made)["small-steps"]["text"]) == first
    assert ("in what small-steps saves, too" in found(made)["trim-storm"]["text"]) == first, "no sum of the two"


def test_mapping_calls_of_growth_are_no_first_touches() -> None:
    made, stack = growing()
    made.fault("zero", 100_003, FAULT_NS + FAULT_INSIDE, allocated_stack=stack, in_call="realloc")
    made.fault("zero", 100_019, FAULT_NS + FAULT_INSIDE)
    made.map_call("mmap", stack, 7, 7 * SIZE, 90 * MS, in_call="realloc")
    measured = made.one("SELECT growth_inside_ns, growth_touch_ns FROM growth_measure")
    assert measured["growth_touch_ns"] == pytest.approx(100_003 * FAULT_NS)
    assert measured["growth_inside_ns"] == pytest.approx(100_003 * FAULT_NS + 90 * MS, rel=0.001)
    gain = made.one("SELECT gain * base_ns AS ns FROM advice_state, weighed WHERE code = 'first-touch'")["ns"]
    assert gain == pytest.approx(100_019 * FAULT_NS)


def test_counts_are_scaled_as_the_calls_are() -> None:
    """Watched in windows: a tenth of the time."""
    made, _ = growing()
    made.row("watch", slice=1, call="realloc", windows=10, watched_ns=100 * MS, watched_cpu_ns=100 * MS)
    site = made.one("SELECT * FROM growth_site")
    calls = made.one("SELECT calls FROM call_estimate WHERE call = 'realloc'")["calls"]
    assert calls > 2 * CALLS
    assert site["copied_calls"] == pytest.approx(307 * calls / CALLS)
    assert site["step"] == STEP
