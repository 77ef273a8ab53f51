# SPDX-License-Identifier: GPL-2.0
"""Programs whose time goes to clearing, and their near relatives whose time does not."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import pytest

from harness import MIB, PAGE, Recording, record, site_line, workload

pytestmark = pytest.mark.root

TEN = 10 * MIB
HUNDRED = 100 * MIB
ROUNDS = 1009
PINNED = {"GLIBC_TUNABLES": "glibc.malloc.mmap_threshold=131072"}

# Blocks of 32 MiB less a page are the last that glibc's dynamic threshold moves to the heap
# (DEFAULT_MMAP_THRESHOLD_MAX, malloc.c): 33554432 less the page that rounding adds, less a header.
LAST_FROM_HEAP = 33550312

# Faults of a process before and after the loop: loader, start-up, stack.
START_FAULTS = 250


def calloc_loop(*args: object) -> list[str | Path]:
    return [workload("calloc_loop"), *map(str, args)]


def calls_of_loop(recording: Recording) -> int:
    site = recording.site("calloc_loop.c", "calloc", "calloc")
    assert site.function == "clear_block"
    return site.calls


@pytest.fixture(scope="module")
def ten(tmp_path_factory: pytest.TempPathFactory) -> Recording:
    """As a user would run it: no options."""
    path = tmp_path_factory.mktemp("ten") / "ten.memtoll"
    return record(path, command=calloc_loop(TEN, ROUNDS), exact=False)


def test_heap_blocks_are_zeroing(ten: Recording) -> None:
    """10 GB of clearing, a second or so; what else a call does is a thousandth of its 2,560 pages' clearing.

    By samples, some hundred: within the bounds that are stated.
    """
    assert ten.dominant == "zeroing"
    assert ten.report["verdict"]["high"] >= 0.85


def test_heap_blocks_calls_and_bytes(ten: Recording) -> None:
    assert calls_of_loop(ten) == ROUNDS
    assert ten.toll("zero.libc", "bytes") == pytest.approx((ROUNDS - 1) * TEN, rel=0.01)
    assert ten.site("calloc_loop.c", "calloc", "calloc").bytes == ROUNDS * TEN
    assert ten.site("calloc_loop.c", "free", "free").calls == ROUNDS


def test_heap_blocks_fault_once(ten: Recording) -> None:
    """Only the first time the heap's top is used: 2560 pages over the whole run."""
    assert ten.toll("zero.kernel", "pages") <= TEN // PAGE + ROUNDS * 0.1 + START_FAULTS
    assert ten.witness[-1]["minflt"] <= TEN // PAGE + ROUNDS * 0.1 + 2 * START_FAULTS


def test_heap_blocks_top_site(ten: Recording) -> None:
    top = ten.report["sites"][0]
    assert top["toll"] == "zero.libc"
    assert top["call"] == "calloc"
    lines = [(Path(frame["file"]).name, frame["line"]) for frame in top["allocated_at"]]
    own = [where for where in lines if where[0] == "calloc_loop.c"]
    assert own[0] == ("calloc_loop.c", site_line("calloc_loop.c", "calloc")), lines


def test_heap_blocks_advice(ten: Recording) -> None:
    """The dynamic threshold, its present value, the tunable, and what the tunable costs."""
    text = " ".join(
        f"{advice['code']} {advice['text']} {advice['evidence']}" for advice in ten.report["verdict"]["advice"]
    )
    assert "glibc.malloc.mmap_threshold" in text
    assert "dynamic" in text
    # 10 MiB and a header, rounded up to a page.
    assert re.search(r"10489856|10,489,856|10(\.0+)? ?MiB", text), text
    assert re.search(r"fault", text), text
    assert re.search(r"\bus(e|es|ed|ing)\b|touch|writ", text), text


def test_heap_blocks_checks(ten: Recording) -> None:
    check = ten.report["checks"]["minor_faults"]
    assert check["ours"] == pytest.approx(check["kernel"], rel=0.01)
    assert check["kernel"] > TEN // PAGE


# Blocks that are mapped: large ones, those that the tunable has mapped, and the first size that always is.
MAPPED: dict[str, tuple[int, dict[str, str]]] = {
    "100-MiB": (HUNDRED, {}),
    "pinned": (TEN, PINNED),
    "first-from-mmap": (LAST_FROM_HEAP + 1, {}),
}


def test_mapped_blocks_are_not_cleared(out: Path) -> None:
    """A program for each, one after the other."""
    sizes, lines = {}, []
    for calls, (size, env) in zip((1009, 1013, 1019), MAPPED.values()):
        sizes[calls] = size
        variables = [f"{name}={value}" for name, value in env.items()]
        lines.append(shlex.join(map(str, ["env", *variables, *calloc_loop(size, calls)])))
    recording = record(out, command=["sh", "-c", " && ".join(lines)])
    rows = recording.query("SELECT SUM(calls), SUM(bytes) FROM call WHERE call = 'calloc' GROUP BY pid")
    assert {(calls, calls * size) for calls, size in sizes.items()} <= set(rows)
    total, size_of_all = sum(sizes), sum(calls * size for calls, size in sizes.items())
    assert calls_of_loop(recording) == total
    assert recording.site("calloc_loop.c", "calloc", "calloc").bytes == size_of_all
    assert recording.toll("zero.libc", "bytes") < PAGE
    # One page of each block is touched, that of its header; the rest is never used.
    assert recording.toll("zero.kernel", "pages") <= total + (len(sizes) + 1) * START_FAULTS
    assert recording.report["zeroing"]["bytes_never_used"] == pytest.approx(size_of_all, rel=0.01)
    assert "calloc-reuse-memset" not in {advice["code"] for advice in recording.report["verdict"]["advice"]}
    # malloc maps and free unmaps, once each; the loader adds its own.
    assert recording.toll("map", "count") >= 2 * total


def test_last_size_from_heap(out: Path) -> None:
    calls = 101
    recording = record(out, command=calloc_loop(LAST_FROM_HEAP, calls))
    # 3 GB are cleared, in a hundred calls.
    assert recording.dominant == "zeroing"
    assert calls_of_loop(recording) == calls
    assert recording.toll("zero.libc", "bytes") == pytest.approx((calls - 1) * LAST_FROM_HEAP, rel=0.01)


def test_two_live_blocks_are_hardly_cleared(out: Path) -> None:
    """Freeing both trims the heap, so the next round's memory is the kernel's, clean already.

    What calloc still clears is the padded top that the trim leaves: 33 pages a round, which are
    faulted in by that very memset. That is most of what little such a round costs.
    """
    calls = 2002
    recording = record(out, command=calloc_loop(TEN, calls, "--live", 2))
    assert calls_of_loop(recording) == calls
    assert recording.toll("zero.libc", "bytes") <= 0.02 * calls * TEN
    assert recording.toll("zero.kernel", "bytes") <= 0.02 * calls * TEN
    assert not [a for a in recording.report["verdict"]["advice"] if a["code"] == "calloc-reuse-memset"]


USED = 53


@pytest.fixture(scope="module")
def used(tmp_path_factory: pytest.TempPathFactory) -> Recording:
    """Blocks of which each page is written to, mapped one by one."""
    path = tmp_path_factory.mktemp("used") / "used.memtoll"
    return record(path, command=calloc_loop(TEN, USED, "--touch"), env=PINNED)


def test_used_mapped_blocks_fault(used: Recording) -> None:
    """The price of the tunable: the kernel clears every page of every block."""
    recording, calls = used, USED
    witness = recording.witness[-1]
    assert recording.dominant == "zeroing"
    assert recording.toll("zero.kernel", "bytes") == pytest.approx(calls * TEN, rel=0.01)
    assert recording.toll("zero.kernel", "clear_s") < recording.toll("zero.kernel", "time_s")
    assert recording.toll("zero.libc", "bytes") < PAGE
    assert recording.report["zeroing"]["bytes_twice"] < 0.01 * calls * TEN
    check = recording.report["checks"]["minor_faults"]
    assert check["ours"] == pytest.approx(check["kernel"], rel=0.01)
    assert check["kernel"] == pytest.approx(witness["minflt"], rel=0.02)


def test_used_mapped_blocks_owners(used: Recording) -> None:
    """One chain: the faults are charged to the calloc and to the store that touched the page."""
    top = used.report["sites"][0]
    assert top["toll"] == "zero.kernel"
    assert top["call"] == "calloc"
    assert top["bytes"] == pytest.approx(USED * TEN, rel=0.01)
    made = [frame["line"] for frame in top["allocated_at"] if Path(frame["file"]).name == "calloc_loop.c"]
    touched = [frame["line"] for frame in top["touched_at"] if Path(frame["file"]).name == "calloc_loop.c"]
    assert made[0] == site_line("calloc_loop.c", "calloc")
    assert touched[0] == site_line("calloc_loop.c", "touch")


CACHED_CALLS = 41


def preload(library: str, witness: Path) -> dict[str, str]:
    return {"LD_PRELOAD": str(workload(library)), "MEMTOLL_TEST_WITNESS": str(witness)}


def test_naive_calloc_clears_twice(out: Path, tmp_path: Path) -> None:
    calls = 7
    witness = tmp_path / "witness.json"
    recording = record(out, command=calloc_loop(HUNDRED, calls), env=preload("libnaivecalloc.so", witness))
    counted = json.loads(witness.read_text())
    assert counted["bytes"] >= calls * HUNDRED
    assert recording.dominant == "zeroing"
    assert recording.report["zeroing"]["bytes_twice"] == pytest.approx(counted["bytes"], rel=0.02)
    assert recording.toll("zero.kernel", "bytes") == pytest.approx(counted["bytes"], rel=0.02)
    assert calls_of_loop(recording) == calls
    assert recording.report["verdict"]["advice"], "nothing is advised"


def test_cached_calloc_clears_once(out: Path, tmp_path: Path) -> None:
    calls = CACHED_CALLS
    witness = tmp_path / "witness.json"
    recording = record(out, command=calloc_loop(HUNDRED, calls), env=preload("libcachedcalloc.so", witness))
    counted = json.loads(witness.read_text())
    assert counted["reused"] == calls - 1
    assert recording.dominant == "zeroing"
    assert calls_of_loop(recording) == calls
    # Only the first block is fresh: the kernel clears it once, and the memset after it.
    assert recording.toll("zero.kernel", "bytes") == pytest.approx(HUNDRED, rel=0.05)
    assert recording.report["zeroing"]["bytes_twice"] == pytest.approx(HUNDRED, rel=0.05)
