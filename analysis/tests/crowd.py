# SPDX-License-Identifier: GPL-2.0
"""A recording with very many sites, stacks and fault runs, made of facts."""

from __future__ import annotations

import random
from pathlib import Path

from facts import FAULT_NS, Facts, S, finished

DEPTH = 9
FUNCTIONS = 1009


def crowd(path: Path, sites: int = 100_000, runs: int = 0, slices: int = 7) -> None:
    """Each site has a stack of its own of nine calls, from a thousand functions; costs fall off as 1/rank."""
    chance = random.Random(sites)
    facts = Facts(path)
    facts.prices()
    for number in range(1, slices + 1):
        facts.slice(number)
        facts.cpu(S // 2, number=number)
    facts.process(comm="crowd")
    facts.allocator()
    insert = facts.database.executemany
    insert(
        "INSERT INTO frame (frame_id, function, module, file, line, kind, build_id, module_offset)"
        " VALUES (?, ?, ?, ?, ?, 'native', '', ?)",
        (
            (at, f"function_{at:04}", "/srv/crowd", f"/src/part{at % 31}.c" if at % 7 else "", at % 997 + 1, 64 * at)
            for at in range(1, FUNCTIONS + 1)
        ),
    )
    ids = range(1, sites + 1)
    insert("INSERT INTO stack (stack_id, pid, how, complete) VALUES (?, 42, 'cfi', 1)", ((each,) for each in ids))
    insert(
        "INSERT INTO stack_frame (stack_id, depth, address, frame_id, inlined) VALUES (?, ?, ?, ?, 0)",
        (
            (each, depth, 4096 + depth, (each * (depth + 3) // (DEPTH - depth) ** 2) % FUNCTIONS + 1)
            for each in ids
            for depth in range(DEPTH)
        ),
    )
    insert(
        "INSERT INTO fault (slice, pid, class, allocated_stack, allocated_call, touched_stack, area, in_call,"
        " in_memset, faults, pages, timed_faults, timed_cpu_ns, timed_cpu_us2, blocked_ns)"
        " VALUES (?, 42, 'zero', ?, 'malloc', ?, 'anon', '', 0, ?, ?, ?, ?, ?, 0)",
        (
            (each % slices + 1, each, sites + 1 - each, n, n, n, round(n * FAULT_NS), n)
            for each in ids
            for n in (1 + 2 * sites // each,)
        ),
    )
    insert(
        "INSERT INTO fault_run (slice, pid, tid, class, address, pages, faults, first_ns, last_ns, allocated_stack,"
        " allocated_call, touched_stack, area) VALUES (?, 42, 42, ?, ?, 3, 3, ?, ?, ?, 'malloc', ?, 'anon')",
        (
            (
                each * slices // runs + 1,
                "zero" if each < runs // 4 else "swap_minor",
                0x7F0000000000 + each % 20011 * 3 * 4096,
                1_000 * S + each * slices * S // runs,
                1_000 * S + each * slices * S // runs + 1000,
                chance.randrange(1, 9),
                chance.randrange(1, 9),
            )
            for each in range(runs)
        ),
    )
    finished(facts, "./crowd").database.close()
