# SPDX-License-Identifier: GPL-2.0
"""What a look at who holds the memory costs the target, by its own count: blocks that it replaces in a large heap."""

from __future__ import annotations

import threading
from collections.abc import Generator, Mapping
from contextlib import closing
from functools import partial

import pytest

from harness import Program, ask, memtoll, workload
from measuring import Bound, between, control, middle, settle

pytestmark = [pytest.mark.root, pytest.mark.measure]

HEAP_MIB = 128
TURN_MS = 700


def pace(program: Program) -> float:
    """Of a block that is replaced: the time by the clock, so that what it waits for counts; but not for a processor,
    for which it and the looks would not be alone."""
    told = ask(program, f"work {TURN_MS}")
    return float(told["ns"] - told["waited_ns"]) / float(told["turns"])


def pace_beside(looks: list[int], looked_at: Program, program: Program) -> float:
    """The same while that one is looked at, one time after the other."""
    over = threading.Event()

    def look() -> None:
        while not over.is_set():
            result = memtoll("hold", "--json", "-p", str(looked_at.pid))
            assert result.status in (0, 4), result
            looks.append(len(result.stdout))

    looker = threading.Thread(target=look)
    looker.start()
    try:
        return pace(program)
    finally:
        over.set()
        looker.join()


def test_a_look_does_not_slow_the_target() -> None:
    """Within one hundredth, though it never ends here; `record --hold` looks once a second at most.

    It is compared with looks at another process that is alike: those share with it what a processor shares with the
    next, speed, caches, the way to memory, which is the machine's, but neither its locks nor its page tables.
    """
    looks: list[int] = []
    size = (workload("holder"), "full", str(HEAP_MIB))

    def rounds() -> Generator[Mapping[str, float], None, None]:
        with Program(*size) as program, Program(*size) as twin:
            bare = partial(pace_beside, looks, twin, program)
            watched = partial(pace_beside, looks, program, program)
            for alone, (of_it, again) in between(bare, [watched, bare], middle):
                yield {"lost, %": 100 * (1 - alone / of_it), "the twin against the twin": again / alone}

    with closing(rounds()) as made:
        settle(lambda: next(made), {"lost, %": Bound(most=1), "the twin against the twin": control(1)}, 90)
    assert looks
