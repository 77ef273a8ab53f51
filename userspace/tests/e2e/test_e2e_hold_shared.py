# SPDX-License-Identifier: GPL-2.0
"""memtoll hold, of much: processes that share their memory since a fork, which a look leaves shared (witness: Pss, and
how much is in huge pages); millions of blocks (mallinfo2, malloc_trim); and what is on swap (VmSwap).
"""

from __future__ import annotations

import json
import re
import signal
from collections import Counter
from pathlib import Path

import pytest

from harness import (
    MIB,
    PAGE,
    Program,
    ask,
    finish,
    memtoll,
    query,
    start_record,
    wait_attached,
    wait_until,
    workload,
)
from swapping import in_cgroup, memory_with_swap, set_limit

pytestmark = pytest.mark.root
CHILDREN = 5
HEAP = 32 * MIB
CACHED = 7  # in the thread's cache
NODES = 3_000_017  # of 32 bytes


def children(pid: int) -> list[int]:
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def kernels_sums(pids: list[int]) -> Counter[str]:
    sums: Counter[str] = Counter()
    for pid in pids:
        text = Path(f"/proc/{pid}/smaps_rollup").read_text()
        sums.update({name: int(size) * 1024 for name, size in re.findall(r"^(\w+): +(\d+) kB", text, re.M)})
    return sums


def test_what_processes_share_stays_shared() -> None:
    with Program(workload("holder"), "forked", str(HEAP // MIB)) as program:
        pids = [program.pid, *children(program.pid)]
        assert len(pids) == CHILDREN + 1
        before = kernels_sums(pids)
        # One of them, and all together.
        for who in (str(pids[-1]), ",".join(map(str, pids))):
            result = memtoll("hold", "--json", "-p", who)
            assert result.status == 0, result
        after = kernels_sums(pids)
    assert before["Pss"] < 2 * HEAP + 8 * MIB
    assert after["Pss"] == pytest.approx(before["Pss"], abs=MIB)
    assert after["AnonHugePages"] == before["AnonHugePages"]
    found = json.loads(result.stdout)
    assert sum(process["sum"]["pss"] for process in found["processes"]) == pytest.approx(before["Pss"], rel=0.02)


def test_what_processes_share_is_held_once(out: Path) -> None:
    """In a recording's looks, too: nothing grows where processes are made that share their memory."""
    with Program(workload("holder"), "forked", str(HEAP // MIB)) as program:
        pids = [program.pid, *children(program.pid)]
        tracer = start_record(out, "--hold", "1s", "-p", ",".join(map(str, pids)))
        wait_attached(tracer, program.pid)
        wait_until(lambda: query(out, "SELECT COUNT(*) FROM hold_look")[0][0] >= 1, "a look", every=0.1)
        sums = kernels_sums(pids)
        tracer.send_signal(signal.SIGINT)
        assert finish(tracer).status == 0
    of_part = "SUM(bytes) FILTER (WHERE part = '{}')"
    sql = f"SELECT {of_part.format('rss')}, {of_part.format('live')} FROM hold_part GROUP BY look"
    for resident, live in query(out, sql):
        assert resident == pytest.approx(sums["Pss"], rel=0.05)
        assert live < 1.1 * sums["Pss"] < 0.5 * sums["Rss"]


def test_a_list_of_millions_of_nodes_that_were_freed() -> None:
    """All of them are found where there is memory to keep them; else what is not known is no live memory."""
    with Program(workload("holder"), "mapped", "1") as program:
        told = ask(program, f"nodes {NODES}")
        result = memtoll("hold", "--json", "-p", str(program.pid))
        assert ask(program, "info") == told
        trimmed = ask(program, "trim")
    (found,) = json.loads(result.stdout)["processes"]
    malloc, chunks = found["malloc"], found["malloc"]["chunks"]
    assert chunks["live"]["bytes"] < MIB
    assert malloc["torn_lists"] == 0
    assert told["fsmblks"] == 32 * (NODES - CACHED)
    assert result.status == (4 if malloc["cut_lists"] else 0), result
    assert chunks["fast"]["bytes"] + malloc["unfollowed"]["bytes"] == pytest.approx(told["fsmblks"], abs=MIB)
    if not malloc["cut_lists"]:
        assert (chunks["fast"]["bytes"], malloc["unfollowed"]["bytes"]) == (told["fsmblks"], 0)
        given = trimmed["before"] - trimmed["after"]
        assert malloc["trim"]["resident"] == pytest.approx(given, rel=0.02, abs=4 * PAGE)


def swapped(pid: int) -> int:
    (size,) = re.findall(r"^VmSwap:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text(), re.M)
    return int(size) * 1024


@pytest.mark.machine
def test_what_is_on_swap_is_brought_back_only_where_there_is_room() -> None:
    """Into a full cgroup it would push out other pages, or have the program killed."""
    with (
        memory_with_swap(limit=8 * HEAP, size=8 * HEAP) as cgroup,
        Program(*in_cgroup(cgroup, workload("holder"), "full", str(2 * HEAP // MIB))) as program,
    ):
        wait_until(lambda: set_limit(cgroup, HEAP), "its pages to be pushed out")
        before = swapped(program.pid)
        assert before > HEAP // 2
        words = ("hold", "--json", "--read-swapped", "-p", str(program.pid))
        full = memtoll(*words)
        assert swapped(program.pid) > before - 2 * MIB
        assert set_limit(cgroup, 8 * HEAP)
        roomy = memtoll(*words)
        assert swapped(program.pid) < MIB
    assert full.status == 4 and "its memory cgroup has room for" in full.stderr, full
    hidden = [json.loads(said.stdout)["processes"][0]["malloc"]["hidden"]["bytes"] for said in (full, roomy)]
    assert hidden[0] > HEAP // 4 and hidden[1] == 0
    assert roomy.status == 0 and "room" not in roomy.stderr, roomy
