# SPDX-License-Identifier: GPL-2.0
"""A recording of facts with a bit of everything in it, the same at every call."""

from __future__ import annotations

import random
from pathlib import Path

from facts import FAULT_HIT, FAULT_NS, HIT, INSIDE, MAP_INSIDE, MIB, MS, US, Facts, S

SLICES = 23
PIDS = (42, 43, 47)
CLASSES = ("zero", "zero_huge", "zero_upgrade", "zero_read", "cow", "swap_minor", "swap_major", "file_minor", "other")


def busy_recording(path: Path | str, seed: int = 1, slices: int = SLICES, speed: float = 1.0) -> None:
    """speed: how much of everything happens in a slice."""
    rng = random.Random(seed)
    facts = Facts(path)
    facts.prices()
    row = facts.row
    for pid in PIDS:
        facts.process(pid, comm=f"worker{pid}")
        facts.allocator(pid=pid)
    stacks = [
        facts.stack(("calloc", "", 0), ("load", "/src/load.c", 11), ("main", "/src/main.c", 5)),
        facts.stack(("malloc", "", 0), ("parse;all", "/src/parse.c", 29), ("main", "/src/main.c", 7)),
        facts.stack(("free", "", 0), ("drop", "/src/load.c", 17), ("main", "/src/main.c", 8)),
        facts.stack(("fill", "/src/load.c", 13), ("load", "/src/load.c", 12), ("main", "/src/main.c", 5)),
        facts.stack(("", "", 0), ("sweep", "/src/parse.c", 31)),
    ]
    for number in range(1, slices + 1):
        start = (999 + number) * S
        row("slice", slice=number, start_ns=start, end_ns=start + (S // 2 if number == slices else S))
        for pid in PIDS:
            _slice(facts, rng, number, pid, stacks, speed)
        row("loss", slice=number, name="ring_fault", count=3)
    row("loss_kind", name="ring_fault", meaning="fault runs", remedy="a larger ring")
    row("loss_kind", name="runs_unstored", meaning="runs without a place", remedy="none needed")
    row("loss", slice=1, name="runs_unstored", count=7)
    facts.meta(
        format="1", target_command="./busy", overhead_limit="none", host="here", machine="x86_64",
        min_size_bytes="65536", probes="alloc,faults,mappings,samples", complete="1",
    )  # fmt: skip
    facts.save()
    facts.database.close()


def _slice(facts: Facts, rng: random.Random, number: int, pid: int, stacks: list[int], speed: float) -> None:
    here = {"slice": number, "pid": pid}
    calloc, malloc, free, fill, sweep = stacks
    spent = 40.0 * MS

    def some(low: int, high: int) -> int:
        return round(rng.randint(low, high) * speed)

    calls = some(1, 90)
    cleared = calls * 2 // 3
    # Some rows take less than their probes cost: the views cut those off at 0.
    net = rng.choice((-200, 30 * US, 90 * US))
    facts.call(
        "calloc", calloc, calls, **here, bytes=calls * MIB, cpu_ns=round(calls * (INSIDE + max(net, -300))),
        cleared_calls=cleared, cleared_bytes=cleared * MIB, cleared_cpu_ns=round(cleared * (INSIDE + max(net, 0))),
    )  # fmt: skip
    facts.call("malloc", malloc, calls, **here, bytes=calls * 100, cpu_ns=round(calls * (INSIDE + 55)))
    facts.call("free", free, calls, **here, cpu_ns=round(calls * (INSIDE + 20)))
    facts.block("calloc", calloc, calls, calls * MIB, **here)
    facts.map_call("mmap", calloc, some(1, 9), MIB, rng.choice((10, 9)) * MAP_INSIDE, **here, in_call="calloc")
    spent += calls * (max(net, 0) + 75 + 3 * HIT)
    faults = 0
    for fault_class in CLASSES:
        if rng.random() < 0.4:
            continue
        count = some(1, 500)
        faults += count
        timed = min(count, rng.randint(0, 40))
        facts.fault(
            fault_class, count, FAULT_NS + rng.randint(0, 400), **here,
            allocated_stack=calloc, allocated_call="calloc", touched_stack=rng.choice((fill, sweep, 0)),
            timed_faults=timed, timed_cpu_ns=timed * 1100, timed_cpu_us2=timed * 1,
            blocked_ns=timed * 9000 if fault_class == "swap_major" else 0, in_memset=int(rng.random() < 0.2),
        )  # fmt: skip
        spent += count * (FAULT_NS + FAULT_HIT + 1000)
        facts.row(
            "fault_run", **here, tid=pid, **{"class": fault_class}, address=0x7F0000000000 + rng.randrange(1 << 30),
            pages=count, faults=count, first_ns=(1000 + number) * S + faults,
            last_ns=(1000 + number) * S + 2 * faults,
            allocated_stack=calloc, touched_stack=fill, allocated_call="calloc", area="anon",
        )  # fmt: skip
    facts.samples("user", some(1, 5), fill, **here)
    facts.samples("memset", some(0, 3), sweep, **here)
    for what in ("reclaim_direct", "out_self", "in_device"):
        count = some(0, 9)
        facts.row("swap", **here, what=what, count=count, pages=count * 8, cpu_ns=count * 500, blocked_ns=count * 70)
    for probe, hits in (("calloc", calls), ("malloc", calls), ("free", calls), ("fault", faults), ("map", 9)):
        facts.row("hit", **here, probe=probe, hits=hits)
    facts.cpu(spent, pid=pid, minor=faults, number=number)
