# SPDX-License-Identifier: GPL-2.0
"""Swap (casebook 4): which block goes through it, at which line, and what stalls.

Makes a swap file and a memory cgroup of its own, and takes both down again, whatever happens. Swap that the
machine had before stays as it was; the limit of the cgroup alone makes pages move. Witnesses: the kernel's counters
of that cgroup, and what the process has on swap by its page table.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

import pytest

from harness import (
    MIB,
    PAGE,
    WORKLOADS,
    Program,
    Recording,
    assert_refused,
    changed_text,
    finish,
    load,
    memtoll,
    record,
    site_line,
    start_record,
    wait_attached,
    wait_until,
    workload,
)
from leftovers import noted
from swapping import LIMIT, in_cgroup, make_cgroup, memory_with_swap, set_limit, swap_area, swapped_in

pytestmark = pytest.mark.root

# Swap areas are the machine's: whose pages go to which is nobody's choice.
machine = pytest.mark.machine


@pytest.fixture
def any_swap(request: pytest.FixtureRequest) -> Iterator[Path]:
    """A cgroup whose processes have 80 MiB, and swap of either kind: 'file' or 'zram'."""
    with memory_with_swap(request.param) as cgroup:
        yield cgroup


@pytest.fixture
def small_memory() -> Iterator[Path]:
    """The same, with a swap file."""
    with memory_with_swap("file") as cgroup:
        yield cgroup


def times_at_limit(cgroup: Path) -> int:
    """How often the kernel found the cgroup full: only then does it push its pages out."""
    count = cgroup / "memory.failcnt"
    if count.exists():
        return int(count.read_text())
    events = dict(line.split() for line in (cgroup / "memory.events").read_text().splitlines())
    return int(events["max"])


def kind_of_swap(recording: Recording) -> str:
    ((kind,),) = recording.query("SELECT kind FROM swap_device")
    return str(kind)


def pagez(out: Path, cgroup: Path, *words: int | str) -> tuple[Recording, int]:
    """Record pagez in the cgroup, and how many of its pages the kernel counted back from swap meanwhile."""
    before = swapped_in(cgroup)
    recording = record(out, command=in_cgroup(cgroup, workload("pagez"), *map(str, words)))
    return recording, swapped_in(cgroup) - before


def pagez_alone(cgroup: Path, *words: int | str) -> tuple[dict[str, Any], int]:
    """The same without memtoll: its last line."""
    before = swapped_in(cgroup)
    command = in_cgroup(cgroup, workload("pagez"), *map(str, words))
    done = subprocess.run(command, check=True, timeout=60, capture_output=True, text=True)
    return dict(json.loads(done.stdout)), swapped_in(cgroup) - before


# What came and went between the process's look at its page table and its end. It writes a line and exits, which
# brings a handful of pages; where the cgroup is full each may push out SWAP_CLUSTER_MAX (mm/vmscan.c) others.
AT_THE_END = 16 * 32


def pushed_by(recording: Recording) -> Counter[str]:
    """Pages of the target that went out, by who pushed: out_self, and out_kswapd and out_other where there were any."""
    return Counter(
        dict(
            recording.query(
                "SELECT what, SUM(pages) FROM swap WHERE pid > 0 AND what LIKE 'out!_%' ESCAPE '!' GROUP BY what"
            )
        )
    )


# The kernel adds what its processors count up when there is so much of it (mm/percpu_counter.c): /proc may be as far
# off.
COUNTED_AT_ONCE = max(32, 2 * (os.cpu_count() or 1)) * (os.cpu_count() or 1)


def assert_pushed(recording: Recording) -> None:
    """What went out and did not come back is on swap as it ends, by the kernel's count, whatever the disk was at.

    The process has looked itself a moment before. Meanwhile much may go: what waits for a slow disk is not free yet,
    and its reclaim goes on until some is.
    """
    out, back = (recording.toll(name, "pages") for name in ("swap.out", "swap.in"))
    pid = recording.witness[-1]["pid"]
    ((last,),) = recording.query(f"SELECT swap_bytes FROM process_slice WHERE pid = {pid} ORDER BY slice DESC LIMIT 1")
    assert out - back == pytest.approx(last // PAGE, abs=COUNTED_AT_ONCE), pushed_by(recording)
    assert recording.witness[-1]["swapped"] <= last // PAGE + COUNTED_AT_ONCE


def frames(recording: Recording, toll: str, owner: str) -> list[tuple[dict[str, Any], dict[str, Any]]]:
    return [(site, frame) for site in recording.report["sites"] if site["toll"] == toll for frame in site[owner]]


def pages_at(recording: Recording, toll: str, owner: str, marker: str) -> float:
    """Pages of a toll whose owner's stack goes through a marked line of pagez."""
    line = site_line("pagez.c", marker)
    return sum(
        int(site["bytes"]) / PAGE
        for site, frame in frames(recording, toll, owner)
        if Path(frame["file"]).name == "pagez.c" and frame["line"] == line
    )


def malloc_access(recording: Recording) -> dict[str, Any]:
    """How the blocks of pagez were gone over."""
    (row,) = (row for row in recording.report["access"] if row["call"] == "malloc" and row["first_pages"] > 1000)
    return dict(row)


@machine
@pytest.mark.parametrize("memory", ["pageout", "shared"])
def test_pushed_out_by_the_program_itself(out: Path, small_memory: Path, memory: str) -> None:
    """There is room for all of it: MADV_PAGEOUT, and use again, are one story, of anonymous memory and of a memfd."""
    pages, passes = 5_003, 7
    command = in_cgroup(small_memory, workload("giveaway"), str(pages), str(passes), memory)
    recording = record(out, command=command)
    assert recording.witness[-1]["given"] == passes * pages * PAGE
    gone = {row["how"]: row["pages"] for row in recording.report["dropped"] if row["what"] == "swap"}
    # The kernel leaves out what it does not get hold of at once (a page that is on its way to the lists, or is still
    # being written, of which a slow disk makes many), and what is being written then goes when room is made: its own
    # count is the witness. All but those of the last pass come back.
    count = sum(gone.values())
    assert pages < gone["madvise"] and 0.9 * count < gone["madvise"] and count <= 1.01 * passes * pages, gone
    assert recording.report["checks"]["swapped_out"]["ok"], recording.report["checks"]
    assert count - 1.01 * pages <= recording.toll("swap.in", "pages") <= count
    (site,) = (one for one in recording.report["sites"] if (one["toll"], one["call"]) == ("reclaim", "madvise"))
    assert site["count"] == passes
    assert recording.dominant == "swap"
    said = recording.report["verdict"]["sentence"]
    assert f"madvise(MADV_PAGEOUT) at giveaway.c:{site_line('giveaway.c', 'give')} (give)" in said
    # No limit is to blame.
    assert "may keep only" not in said
    advice = {each["code"]: each["text"] for each in recording.report["verdict"]["advice"]}
    assert "Do not give back what is used again" in advice["swap-in"]
    assert "limit of about" not in advice["swap-in"]
    assert not advice.keys() & {"map-churn", "reclaim-stall"}


@machine
@pytest.mark.parametrize(
    ("any_swap", "marker"),
    [("file", "change"), ("file", "load"), ("zram", "store"), ("zram", "load")],
    indirect=["any_swap"],
)
def test_cyclic_sweep_thrashes(out: Path, any_swap: Path, marker: str) -> None:
    """B: 160 MiB, four times over, in 80 MiB. Every page of three passes comes back from swap.

    Swap dominates by what is done: it writes out and reads in each page three times, and at the first touch the
    kernel clears memory for half of them, the rest being what was just pushed out.
    """
    words = [] if marker == "change" else [f"--{marker}"]
    recording, counted = pagez(out, any_swap, 20, 4, *words)
    report = recording.report
    pages = 20 * 8 * MIB // PAGE
    assert recording.dominant == "swap"
    swapped = recording.toll("swap.in", "pages")
    assert swapped == pytest.approx(counted, rel=0.01)
    assert swapped == pytest.approx(3 * pages, rel=0.01)
    assert_pushed(recording)
    assert recording.toll("reclaim", "time_s") > 0
    # Both owners: the malloc and the line of the loop.
    assert pages_at(recording, "swap.in", "allocated_at", "malloc") >= 0.99 * swapped
    assert pages_at(recording, "swap.in", "touched_at", marker) >= 0.99 * swapped
    # The stalls, too, are at the line that wanted the page, in three passes of four at least, for the same block.
    assert pages_at(recording, "reclaim", "allocated_at", "malloc") >= 0.95 * recording.toll("reclaim", "pages")
    assert pages_at(recording, "reclaim", "touched_at", marker) >= 0.75 * recording.toll("reclaim", "pages")
    # One page is cleared once, however often it is written.
    assert recording.toll("zero.kernel", "pages") == pytest.approx(pages, rel=0.01)
    check = report["checks"]["major_faults"]
    assert check["ours"] == pytest.approx(check["kernel"], rel=0.01)
    assert check["kernel"] == pytest.approx(recording.witness[-1]["majflt"], rel=0.01)
    for name in ("minor_faults", "major_faults", "swapped_in"):
        assert report["checks"][name]["ok"], report["checks"]
    assert report["checks"]["swapped_in"]["kernel"] == pytest.approx(counted, rel=0.01)
    # Where they came from: zram needs no read-ahead, each page is a major fault of its own.
    source = report["memory"]["swap_in_pages"]
    if kind_of_swap(recording) == "zram":
        assert source["zram"] >= 0.99 * swapped
        assert source["device"] == 0
    else:
        assert source["zram"] == 0
        assert source["cache"] > 4 * source["device"] > 0
    # How: in order, again and again; each page three times.
    access = malloc_access(recording)
    assert access["pattern"] == "cyclic sweep"
    assert access["first_pages"] == pytest.approx(pages, rel=0.01)
    assert access["distinct_pages"] == pytest.approx(pages, rel=0.01)
    assert access["returns"] == pytest.approx(3.0, rel=0.01)
    assert access["max_returns"] in (3, 4)
    assert report["memory"]["limit_bytes"] == LIMIT
    assert "came back 3.0 times" in report["verdict"]["sentence"]
    assert "80.0 MiB" in report["verdict"]["sentence"]
    assert "swap-in" in {advice["code"] for advice in report["verdict"]["advice"]}


@machine
def test_estimate_is_enough_memory(out: Path, small_memory: Path) -> None:
    """With the limit that the report asks for B swaps no more; with a tenth less than it has it still does.

    The estimate is an upper bound: pages on their way to a slow disk are charged and resident nowhere.
    """
    recording, before = pagez(out, small_memory, 20, 2)
    enough = recording.report["memory"]["fits_bytes"]
    assert 0.98 * 160 * MIB <= enough <= 1.15 * 160 * MIB
    assert set_limit(small_memory, int(1.02 * enough))
    recording, after = pagez(out.with_name("enough.memtoll"), small_memory, 20, 2)
    assert after < 0.01 * before
    assert malloc_access(recording)["pattern"] == "fits"
    assert set_limit(small_memory, int(0.9 * 160 * MIB))
    _, less = pagez_alone(small_memory, 20, 2)
    assert less > 0.3 * before


@machine
def test_random_order_is_no_sweep(out: Path, small_memory: Path) -> None:
    """160 MiB in no order, twice, in 80 MiB."""
    recording, counted = pagez(out, small_memory, 20, 2, "--random")
    access = malloc_access(recording)
    assert recording.dominant == "swap"
    assert access["pattern"] == "random"
    assert access["sequential_pages"] < 0.1 * access["swap_in_pages"]
    assert recording.report["checks"]["swapped_in"]["ok"]
    # Pages read ahead and not used are reported: the kernel read more than was wanted.
    ahead = recording.report["memory"]["readahead_pages"]
    assert recording.toll("swap.in", "pages") + ahead == pytest.approx(counted, rel=0.01)
    assert "in no order" in recording.report["verdict"]["sentence"]


@machine
@pytest.mark.parametrize(("any_swap", "marker"), [("file", "change"), ("zram", "store")], indirect=["any_swap"])
def test_one_pass_sweep_is_no_thrash(out: Path, any_swap: Path, marker: str) -> None:
    """A: 640 MiB, once, in 80 MiB. Pages go out and stay out."""
    recording, counted = pagez(out, any_swap, 80, 1, *([] if marker == "change" else [f"--{marker}"]))
    # Reclaim and first touch are all of it; where the host backs memory late the latter is more.
    assert recording.dominant in ("swap", "zeroing")
    assert malloc_access(recording)["pattern"] == "one-pass sweep"
    if recording.dominant == "swap":
        assert "once over 640 MiB" in recording.report["verdict"]["sentence"]
    pages = 80 * 8 * MIB // PAGE
    assert pages_at(recording, "zero.kernel", "touched_at", marker) >= 0.99 * pages
    assert_pushed(recording)
    pushed = recording.toll("swap.out", "pages")
    # All that was written and has no room: what is resident in the end is in the limit.
    assert pages - LIMIT // PAGE <= pushed <= pages + counted
    held = recording.report["memory"]["swap_peak_bytes"] // PAGE
    assert pushed - recording.toll("swap.in", "pages") == pytest.approx(held, rel=0.01)
    assert counted < 0.005 * pushed
    assert recording.toll("zero.kernel", "pages") == pytest.approx(pages, rel=0.01)
    # All that nobody else is named for by the target itself, in the reclaim of its cgroup. What is unmapped is freed
    # when the disk has it: until then it is charged. And pages of files are freed there, too, a few.
    who = pushed_by(recording)
    assert who.total() == pushed, who
    ((reclaimed,),) = recording.query("SELECT SUM(pages) FROM swap WHERE pid > 0 AND what = 'reclaim_memcg'")
    assert who["out_self"] - LIMIT // PAGE <= reclaimed <= 1.01 * who["out_self"], who
    advice = {advice["code"]: advice["text"] for advice in recording.report["verdict"]["advice"]}
    assert "no thrash" in advice["reclaim-stall"]
    assert "swap-in" not in advice


def on_swap(pid: int) -> int:
    """Pages of a process that are on swap, by its page table."""
    fields = (line.split() for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines())
    return next(int(words[1]) for words in fields if words[0] == "Swap:") * 1024 // PAGE


@machine
def test_pushed_out_by_a_neighbour(out: Path, small_memory: Path) -> None:
    """A process that idles on 48 MiB, and another in its cgroup that needs 64; then it wakes, and there is room."""
    with Program(*in_cgroup(small_memory, workload("pagez"), "6", "1", "--hold")) as victim:
        tracer = start_record(out, "-p", str(victim.pid))
        wait_attached(tracer, victim.pid)
        before = on_swap(victim.pid)
        pagez_alone(small_memory, 8, 1)
        pushed = on_swap(victim.pid) - before
        victim.go()
        victim.last()
        result = finish(tracer)
    assert result.status == 0, result
    recording = load(out, result)
    rows = dict(recording.query("SELECT what, SUM(pages) FROM swap WHERE pid > 0 GROUP BY what"))
    assert "out_self" not in rows
    # It idles: what went stays out, until it is used again.
    assert rows["out_other"] + rows.get("out_kswapd", 0) == pytest.approx(pushed, abs=AT_THE_END)
    assert pushed > 0
    assert recording.toll("reclaim", "count") == 0
    assert recording.toll("swap.in", "pages") == pytest.approx(pushed, abs=AT_THE_END)
    assert recording.dominant == "swap"
    (row,) = (row for row in recording.report["access"] if row["swap_in_pages"] > pushed // 2)
    assert (row["pattern"], row["max_returns"]) == ("back once", 1)
    said = recording.report["verdict"]["sentence"]
    assert "no working set that is too large" in said
    assert f"most by pagez (memory cgroup {small_memory.name})" in said
    advice = {advice["code"]: advice["text"] for advice in recording.report["verdict"]["advice"]}
    assert "memory.low of its own cgroup" in advice["swap-woken"]
    assert "swap-in" not in advice
    assert any("none of them by the target itself" in note for note in recording.report["notes"])


def follows_swap(tracer: int) -> bool:
    """Whether it has the tracepoint of pages that go there: a link of its own says so."""
    for link in Path(f"/proc/{tracer}/fdinfo").iterdir():
        with suppress(FileNotFoundError):  # closed since
            if "rss_stat" in link.read_text():
                return True
    return False


@machine
def test_swap_that_is_switched_on_meanwhile(out: Path) -> None:
    """What follows it is loaded only then; from then on all that goes and comes back is counted."""
    if len(Path("/proc/swaps").read_text().splitlines()) > 1:
        pytest.skip("this machine has swap on, which is not ours to switch off")
    with ExitStack() as stack:
        small_memory = make_cgroup(stack, swap=True)
        victim = stack.enter_context(Program(*in_cgroup(small_memory, workload("pagez"), "6", "1", "--hold")))
        tracer = start_record(out, "-p", str(victim.pid))
        wait_attached(tracer, victim.pid)
        swap_area(stack, "file")
        wait_until(lambda: follows_swap(tracer.pid), "the tracer at swap")
        pagez_alone(small_memory, 8, 1)
        pushed = on_swap(victim.pid)
        victim.go()
        victim.last()
        result = finish(tracer)
        assert result.status == 0, result
    recording = load(out, result)
    assert pushed > 0
    assert pushed_by(recording).total() == pytest.approx(pushed, abs=AT_THE_END)
    assert recording.toll("swap.in", "pages") == pytest.approx(pushed, abs=AT_THE_END)
    assert recording.query("SELECT kind FROM swap_device") == [("file",)]
    assert recording.dominant == "swap"
    # By the kernel, each page that comes in, where it tells (6.14 and later).
    if recording.query("SELECT value FROM meta WHERE key = 'swap_in_counted'"):
        ((device,),) = recording.query("SELECT SUM(pages) FROM swap WHERE what = 'in_device'")
        assert device > 0


@pytest.fixture
def cgroup() -> Iterator[Path]:
    """80 MiB, and no swap."""
    with ExitStack() as stack:
        yield make_cgroup(stack)


def test_processes_of_a_cgroup(out: Path, cgroup: Path) -> None:
    """One that is there, one that comes later; what is outside stays outside. Named as below the root."""
    loop = workload("calloc_loop")
    with (
        Program(*in_cgroup(cgroup, loop, str(MIB), "0", "--seconds", "100", "--rest", "1000")) as first,
        Program(loop, str(MIB), "0", "--seconds", "100", "--rest", "1000") as outside,
    ):
        tracer = start_record(out, "-c", cgroup.name)
        wait_attached(tracer, first.pid)
        with Program(*in_cgroup(cgroup, loop, str(MIB), "0", "--seconds", "100", "--rest", "1000")) as second:
            wait_attached(tracer, second.pid)
            first.beats()
            second.beats()
            assert changed_text(outside.pid) == []
            tracer.send_signal(signal.SIGINT)
            result = finish(tracer)
            pids = {first.pid, second.pid}
    assert result.status == 0, result
    recording = load(out, result)
    assert set(recording.report["target"]["pids"]) == pids
    limit = recording.query("SELECT value FROM meta WHERE key = 'cgroup_memory_limit_bytes'")
    assert limit == [(str(LIMIT),)]
    assert {pid for (pid,) in recording.query("SELECT pid FROM call WHERE call = 'calloc' AND calls > 0")} == pids


def test_no_such_cgroup(out: Path) -> None:
    assert_refused(memtoll("record", "-o", out, "-c", "memtoll/none", "-d", "1s"), 1, "memtoll/none")
    assert not out.exists()


@machine
def test_reads_into_what_was_pushed_out(out: Path, small_memory: Path) -> None:
    """The read's pages are in the page cache, and its buffer's on swap: it is the buffer that is waited for."""
    data, block, blocks = WORKLOADS / "read_into.data", 4 * PAGE, 11
    with noted("file", data):
        data.write_bytes(b"x" * block * blocks)
        words = [str(data), "pread", str(block), str(blocks), "1", "--held", "--fill", "96"]
        recording = record(out, command=in_cgroup(small_memory, workload("reader"), *words))
    assert recording.witness[-1]["majflt"] >= blocks
    (row,) = (file for file in recording.report["files"] if file["path"] == str(data))
    assert row["count"] == blocks
    assert row["cached_bytes"] == row["bytes"] == block * blocks
    assert recording.toll("swap.in", "count") >= blocks
    assert row["blocked_s"] < 0.1 * recording.toll("swap.in", "time_s")


@machine
def test_working_set_that_fits(out: Path, small_memory: Path) -> None:
    """C: 16 MiB, fifty times, in 80 MiB."""
    recording, counted = pagez(out, small_memory, 2, 50)
    assert malloc_access(recording)["pattern"] == "fits"
    assert (counted, recording.witness[-1]["swapped"]) == (0, 0)
    assert recording.query("SELECT COUNT(*) FROM swap WHERE pid > 0") == [(0,)]
    assert times_at_limit(small_memory) == 0
    for toll in ("swap.in", "swap.out", "reclaim"):
        assert recording.toll(toll, "count") == 0
    assert recording.dominant != "swap"
    assert recording.toll("zero.kernel", "pages") == pytest.approx(2 * 8 * MIB // PAGE, rel=0.01)
