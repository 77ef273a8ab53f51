# SPDX-License-Identifier: GPL-2.0
"""Every class of fault: what the kernel did, on how many pages, in how many faults.

Witnesses: getrusage around the very loop that faults, smaps, /proc/vmstat. What a test sets on the machine (huge
pages, swap) it puts back.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from contiguous import make_huge_pieces
from faults import Faults
from harness import MIB, PAGE, WORKLOADS, Recording, record, record_several, workload
from leftovers import noted
from swapping import in_cgroup, memory_with_swap, vmstat

pytestmark = [pytest.mark.root, pytest.mark.machine]

ARENA = 64 * MIB

THP = Path("/sys/kernel/mm/transparent_hugepage")
KSM = Path("/sys/kernel/mm/ksm")
ZSWAP = Path("/sys/module/zswap/parameters")
HUGE_PAGES = 512


def restore(stack: ExitStack, control: Path) -> None:
    """Put a control of sysfs back to what it is now: "always [madvise] never", or a plain value."""
    text = control.read_text().strip()
    value = text[text.index("[") + 1 : text.index("]")] if "[" in text else text
    stack.enter_context(noted("setting", control, value))
    stack.callback(control.write_text, value)


def set_controls(stack: ExitStack, folder: Path, **values: str) -> None:
    for name, value in values.items():
        control = folder / name.replace("__", "/").replace("_kB", "kB")
        restore(stack, control)
        control.write_text(value)


def run(out: Path, *command: object) -> tuple[Recording, Faults, dict[str, Any]]:
    name, *words = map(str, command)
    recording = record(out, command=[workload(name), *words])
    return recording, Faults(recording), recording.witness[-1]


def assert_checked(recording: Recording) -> None:
    check = recording.report["checks"]["minor_faults"]
    assert check["ours"] == pytest.approx(check["kernel"], rel=0.01)


def test_sequential_faults_beside_another_thread(out: Path) -> None:
    """Pages written in order are classified by the one before, but for those touched, dropped or read in between."""
    pages = 20_011
    # Where folios of several pages are possible no page is classified by the one before.
    with ExitStack() as stack:
        for control in THP.glob("hugepages-*kB/enabled"):
            restore(stack, control)
            control.write_text("never")
        recording, faults, witness = run(out, "inorder", pages)
    meddled, seen = witness["meddled"], witness["seen"]
    assert (meddled, seen) == (len(range(50, pages - 1, 101)), len(range(0, pages, 89)))
    by_line = {name: faults.touched("inorder.c", name) for name in ("meddle", "write", "look", "rewrite", "grow")}
    counted = {name: {kind: line.of(kind).faults for kind in line.kinds} for name, line in by_line.items()}
    assert counted == {
        "meddle": {"zero": meddled},
        "write": {"zero": pages - meddled},
        "look": {"zero_read": seen},
        "rewrite": {"zero": pages - seen, "zero_upgrade": seen},
        "grow": {"zero": pages},
    }
    # What the kernel counted of the passes; it is the whole process, whose stacks fault, too.
    for name in ("written", "rewritten", "grown"):
        assert pages <= witness[name] <= pages + 8
    assert all(line.pages == line.faults for line in by_line.values())
    # Each was hit once, whichever way it was counted; faults of the loader's and of libc's are among them.
    ((hits, told),) = recording.query(
        "SELECT SUM(hits), (SELECT SUM(faults) FROM fault) FROM hit WHERE probe = 'fault'"
    )
    assert hits == told
    assert_checked(recording)


# Huge pages.


@pytest.fixture
def huge_on_request() -> Iterator[None]:
    """Huge pages of the whole size, and of no smaller one, where a program asks by madvise."""
    with ExitStack() as stack:
        for control in THP.glob("hugepages-*kB/enabled"):
            restore(stack, control)
            control.write_text("inherit" if control.parent.name == "hugepages-2048kB" else "never")
        restore(stack, THP / "enabled")
        restore(stack, THP / "defrag")
        (THP / "enabled").write_text("madvise")
        (THP / "defrag").write_text("madvise")
        make_huge_pieces()
        yield


def test_huge_pages(out: Path, huge_on_request: None) -> None:
    """Seven faults clear 14 MiB; all of it is charged to the block and to the line that wrote."""
    before = vmstat()
    recording, faults, witness = run(out, "touch", 7 * HUGE_PAGES, "huge", "w")
    after = vmstat()
    assert witness["faults"][0] == 7, "the machine gave no huge pages: the test shows nothing"
    assert witness["anon_huge_kb"] == 7 * 2048
    assert after["thp_fault_alloc"] - before["thp_fault_alloc"] >= 7
    written = faults.touched("touch.c", "write")
    assert written.kinds == {"zero_huge"}, written
    assert (written.faults, written.pages) == (7, 7 * HUGE_PAGES)
    assert faults.allocated("touch.c", "block").of("zero_huge").pages == 7 * HUGE_PAGES
    assert faults.of("zero_huge").bytes == 14 * MIB
    small = faults.of("zero", "zero_upgrade").bytes
    assert recording.toll("zero.kernel", "bytes") == 14 * MIB + small
    assert_checked(recording)


def test_huge_zero_page(out: Path, huge_on_request: None) -> None:
    """Read, then written: the huge zero page gives way. One clearing, whatever the sizes."""
    _, faults, witness = run(out, "touch", 5 * HUGE_PAGES, "huge", "rw")
    read, written = faults.touched("touch.c", "read"), faults.touched("touch.c", "write")
    assert read.kinds == {"zero_read"}, read
    assert (read.faults, read.pages) == (witness["faults"][0], 5 * HUGE_PAGES)
    assert written.kinds <= {"zero_huge", "zero_upgrade"}, written
    assert (written.faults, written.pages) == (witness["faults"][1], 5 * HUGE_PAGES)
    if witness["faults"][1] == 5:
        # Since Linux 6.13 a whole huge page at once.
        assert written.kinds == {"zero_huge"}, written


@pytest.fixture
def folios(request: pytest.FixtureRequest) -> Iterator[int]:
    """Anonymous memory in folios of one size, in KiB, where a program asks by madvise."""
    with ExitStack() as stack:
        for control in THP.glob("hugepages-*kB/enabled"):
            restore(stack, control)
            size = f"hugepages-{request.param}kB"
            control.write_text("madvise" if control.parent.name == size else "never")
        make_huge_pieces()
        yield request.param


SIZES = (16, 64, 128, 512, 1024)
SET_SIZE = f"""size() {{
for control in {THP}/hugepages-*kB/enabled; do
case $control in */hugepages-$1kB/*) echo madvise ;; *) echo never ;; esac >$control
done
}}
"""


@pytest.mark.parametrize("folios", [SIZES[0]], indirect=True)
def test_folios_of_several_pages(out: Path, folios: int) -> None:
    """61 folios of each size: as many faults, and every page of them; also where an arena's heap could begin."""
    runs = [(size, boundary) for size in SIZES for boundary in (2 * MIB, ARENA)]
    steps = [f'size {size} && "$0" {61 * size * 1024 // PAGE} huge w {boundary}' for size, boundary in runs]
    recording = record(out, command=["sh", "-c", SET_SIZE + " && ".join(steps), workload("touch")])
    said = [witness["faults"][0] for witness in recording.witness]
    assert said == [61] * len(runs), "no such folios: this shows nothing"
    everybodys = Faults(recording)
    for (size, _), witness in zip(runs, recording.witness):
        each = size * 1024 // PAGE
        faults = everybodys.by(witness["pid"])
        written = faults.touched("touch.c", "write")
        assert written.kinds == {"zero_mthp"}, written
        assert (written.faults, written.pages) == (61, 61 * each)
        assert faults.allocated("touch.c", "block").of("zero_mthp").pages == 61 * each
    assert recording.toll("zero.kernel", "bytes") >= sum(61 * size * 1024 for size, _ in runs)
    assert_checked(recording)


@pytest.mark.parametrize("folios", [64, 1024], indirect=True)
def test_pages_of_another_thread_are_not_of_this_fault(out: Path, folios: int) -> None:
    """Folios are possible, and two threads fault side by side: each fault maps one page, whatever came up meanwhile."""
    recording, faults, witness = run(out, "abreast", 10007)
    assert sum(witness["faults"]) == pytest.approx(2 * 10007, abs=2 * 10), "stacks of threads fault, too"
    written = faults.touched("abreast.c", "write")
    assert written.kinds == {"zero"}, written
    assert (written.faults, written.pages) == (2 * 10007, 2 * 10007)
    assert faults.allocated("abreast.c", "block").of("zero").pages == 2 * 10007
    assert_checked(recording)


# Programs one after the other, in one recording.

Several = tuple[Recording, dict[str, dict[str, Any]]]
FORK_PAGES, CHILDREN = 5003, 3


@pytest.fixture(scope="module")
def several(tmp_path_factory: pytest.TempPathFactory) -> Several:
    commands: dict[str, list[object]] = {
        "rw": ["touch", 10007, "small", "rw"],
        "rr": ["touch", 10007, "small", "rr"],
        "fork": ["cow", "fork", FORK_PAGES, CHILDREN],
        "in kernel": ["in_kernel", "write", 1009],
    }
    recording, witness = record_several(tmp_path_factory.mktemp("several") / "several.memtoll", commands)
    assert_checked(recording)
    return recording, witness


# The shared zero page.


def test_read_then_write_clears_once(several: Several) -> None:
    recording, witness = several[0], several[1]["rw"]
    everybodys = Faults(recording)
    faults = everybodys.by(witness["pid"])
    assert witness["faults"][:2] == [10007, 10007]
    read, written = faults.touched("touch.c", "read"), faults.touched("touch.c", "write")
    assert (read.kinds, read.faults, read.pages) == ({"zero_read"}, 10007, 10007)
    assert (written.kinds, written.faults, written.pages) == ({"zero_upgrade"}, 10007, 10007)
    cleared = faults.of("zero", "zero_upgrade").bytes
    # Populated: the pages for the arguments of each program, by exec.
    everybodys_cleared = everybodys.of("zero", "zero_upgrade", "zero_populated", "shared_zero")
    assert recording.toll("zero.kernel", "bytes") == everybodys_cleared.bytes
    assert 10007 * PAGE <= cleared < 10307 * PAGE


def test_read_only_clears_nothing(several: Several) -> None:
    witness = several[1]["rr"]
    faults = Faults(several[0]).by(witness["pid"])
    assert witness["faults"][:2] == [10007, 0]
    read = faults.touched("touch.c", "read")
    assert (read.kinds, read.faults) == ({"zero_read"}, 10007)
    assert faults.of("zero", "zero_upgrade").bytes < 300 * PAGE


# Copy on write.


def test_fork_copies_then_reuse(several: Several) -> None:
    """Three children copy what they write; what is left to the parent alone it takes without a copy."""
    pages, children = FORK_PAGES, CHILDREN
    recording, witness = several[0], several[1]["fork"]
    faults = Faults(recording)
    assert faults.touched("cow.c", "first").of("zero").pages == pages
    copied = faults.touched("cow.c", "child")
    assert copied.of("cow").pages == pytest.approx(children * pages, rel=0.02)
    assert copied.of("cow").faults <= witness["child_faults"]
    own = faults.touched("cow.c", "parent")
    # A page of its code may have been evicted meanwhile, which is a fault of its own.
    assert pages <= witness["parent_faults"] <= pages + 3
    assert (own.kinds, own.faults, own.pages) == ({"reuse"}, pages, pages)
    # Nothing is copied by the parent. What the loader writes of a library may have to be read from its file before.
    assert recording.toll("cow", "bytes") == faults.of("cow", "cow_major").bytes
    assert faults.of("cow").pages == pytest.approx(children * pages, rel=0.02)
    # A child inherits the block: charged to the parent's call, in the child's name.
    child = faults.by(witness["last_child"]).allocated("cow.c", "block")
    assert child.of("cow").pages == pages, child
    assert child.of("cow").touched("cow.c", "child").pages == pages
    assert faults.by(witness["pid"]).allocated("cow.c", "block").of("cow").pages == 0
    assert recording.site("cow.c", "block", "aligned_alloc", "memalign").calls == 1


def test_pages_that_ksm_has_merged(out: Path) -> None:
    """Each write copies one, with no fork behind it; pages beside that were not offered are written without a fault."""
    pages, spared = 2003, 101
    if not KSM.exists():
        pytest.skip("this kernel does not merge pages")
    with ExitStack() as stack:
        set_controls(stack, KSM, pages_to_scan="20000", sleep_millisecs="1", run="1")
        recording, faults, witness = run(out, "cow", "merged", pages, spared)
    # A fault that KSM comes between is taken again.
    assert pages <= witness["merged_faults"] <= pages + 3
    written = faults.touched("cow.c", "merged")
    assert written.kinds == {"cow_merged"}
    assert pages <= written.pages == written.faults <= witness["merged_faults"]
    assert recording.toll("cow", "bytes") == faults.of("cow", "cow_major", "cow_merged").bytes
    assert_checked(recording)
    ((merged,),) = recording.query("SELECT merged_bytes FROM copied_measure")
    assert merged == written.bytes


@pytest.fixture
def file(request: pytest.FixtureRequest) -> Iterator[Path]:
    """Pages on the file system of the build, since /tmp may be memory."""
    path = WORKLOADS / f"pages.{os.getpid()}"
    with noted("file", path):
        with path.open("wb") as written:
            for page in range(request.param):
                written.write(page.to_bytes(4, "little") * (PAGE // 4))
            os.fsync(written.fileno())
        yield path


@pytest.mark.parametrize("file", [2003], indirect=True)
@pytest.mark.parametrize("phases", ["w", "rw"])
def test_private_file_pages_are_copied(out: Path, file: Path, phases: str) -> None:
    recording, faults, witness = run(out, "cow", "file", file, phases)
    assert witness["private_kb"] == 2003 * 4
    written = faults.touched("cow.c", "file_write")
    assert (written.faults, written.pages) == (witness["write_faults"], 2003)
    read = faults.touched("cow.c", "file_read")
    # Should the machine have dropped a page of the file meanwhile, it was read again first.
    again = {"file_major", "file_again_major"}
    assert written.kinds <= {"cow", "cow_major", *again}
    assert read.kinds <= {"file_minor", *again}
    assert faults.of("cow_major", *again).faults <= witness["majflt"] < 50
    assert read.faults == witness["read_faults"]
    assert read.pages == (2003 if phases == "rw" else 0)
    assert faults.of("zero").pages < 300
    assert_checked(recording)


# Faults that a system call takes for the program.


@pytest.mark.parametrize("file", [3001], indirect=True)
def test_read_into_a_fresh_block(out: Path, file: Path) -> None:
    """The kernel faults while it copies: as any first write, and charged to the block."""
    recording, faults, witness = run(out, "in_kernel", "read", file)
    assert (witness["pages"], witness["faults"]) == (3001, 3001)
    read = faults.touched("in_kernel.c", "read")
    assert (read.kinds, read.faults, read.pages) == ({"zero"}, 3001, 3001)
    assert read.allocated("in_kernel.c", "block").pages == 3001
    # What was read came from the page cache by copying, not by faults.
    assert faults.of("file_major").pages < 300
    assert_checked(recording)


def test_write_from_a_block_never_written(several: Several) -> None:
    """The kernel reads: the shared zero page is mapped, nothing is cleared."""
    witness = several[1]["in kernel"]
    faults = Faults(several[0]).by(witness["pid"])
    assert witness["faults"] == 1009
    wrote = faults.allocated("in_kernel.c", "block").of("zero_read")
    assert (wrote.faults, wrote.pages) == (1009, 1009), faults.allocated("in_kernel.c", "block")


def test_populated_mapping(out: Path) -> None:
    """No fault is taken, no event is raised: the pages are counted by their effect."""
    pages = 4001
    recording, _, witness = run(out, "in_kernel", "populate", pages)
    assert witness["faults"] == pages
    rows = recording.query("SELECT SUM(populated) FROM map_call WHERE call = 'mmap'")
    assert rows[0][0] == pytest.approx(pages, abs=3)
    assert_checked(recording)


def test_pages_another_call_makes(out: Path) -> None:
    """process_vm_writev takes the faults itself, unseen: then the checks say so, and nothing is made up."""
    pages = 4001
    recording, faults, witness = run(out, "in_kernel", "other", pages)
    assert pages <= witness["faults"] <= pages + 3
    assert faults.allocated("in_kernel.c", "block").pages <= 1
    check = recording.report["checks"]["minor_faults"]
    assert check["kernel"] - check["ours"] == pytest.approx(pages, rel=0.01)


def test_page_tables_and_zeros_are_no_computing(out: Path) -> None:
    """fork and mprotect go over page tables, read of /dev/zero writes: no faults, CPU samples only."""
    recording, _, witness = run(out, "in_kernel", "tables", 20_011)
    mine = f"FROM sample WHERE pid = {witness['pid']} GROUP BY place, in_call"
    places = {(row[0], row[1]): row[2] for row in recording.query(f"SELECT place, in_call, SUM(samples) {mine}")}
    # Some thirty samples each, 307 ms at 99 Hz.
    assert min(places.get(kind, 0) for kind in (("pages", "clone"), ("pages", "mprotect"), ("clear", "read"))) >= 3
    # The children give back as many page tables as were copied for them, when they have no memory any more.
    ends = "FROM sample WHERE place = 'pages' AND in_call = 'exit_group'"
    assert recording.query(f"SELECT COALESCE(SUM(samples), 0) >= 3 {ends}") == [(1,)]
    tolls = recording.report["toll"]
    assert tolls["map"]["time_s"] > 0.06 and tolls["zero.kernel"]["time_s"] > 0.03
    assert "memory is not what it waits for" not in recording.report["verdict"]["sentence"]
    assert_checked(recording)


# Swap without a device.


@pytest.fixture(scope="module")
def zswap() -> Iterator[Path]:
    """A cgroup of 80 MiB whose pages are compressed in memory before they reach the swap file."""
    with ExitStack() as stack:
        set_controls(stack, ZSWAP, max_pool_percent="50", accept_threshold_percent="90", enabled="Y")
        yield stack.enter_context(memory_with_swap())


def pagez(out: Path, cgroup: Path, *words: object) -> tuple[Recording, Faults, dict[str, int]]:
    before = vmstat()
    recording = record(out, command=in_cgroup(cgroup, workload("pagez"), *map(str, words)))
    after = vmstat()
    return recording, Faults(recording), {name: after[name] - before[name] for name in after}


def swapped(recording: Recording) -> dict[str, int]:
    return {what: pages for what, pages in recording.query("SELECT what, SUM(pages) FROM swap GROUP BY what")}


def assert_two_owners(faults: Faults, kind: str, marker: str) -> None:
    mine = faults.of(kind)
    assert mine.allocated("pagez.c", "malloc").pages >= 0.99 * mine.pages
    assert mine.touched("pagez.c", marker).pages >= 0.99 * mine.pages


def test_zswap(out: Path, zswap: Path) -> None:
    """What comes back was compressed in memory: no device was read."""
    recording, faults, counted = pagez(out, zswap, 20, 3)
    pages = 20 * 8 * MIB // PAGE
    assert counted["zswpin"] > 1.5 * pages, "zswap kept nothing: the test shows nothing"
    rows = swapped(recording)
    assert rows["in_zswap"] == pytest.approx(counted["zswpin"], rel=0.01)
    assert rows.get("in_device", 0) == pytest.approx(counted["pswpin"], abs=100)
    major, minor = faults.of("swap_zswap_major"), faults.of("swap_minor")
    assert major.pages + minor.pages == pytest.approx(2 * pages, rel=0.02)
    assert major.pages == pytest.approx(recording.witness[-1]["majflt"], rel=0.02)
    assert faults.of("swap_major").pages < 0.02 * pages
    assert_two_owners(faults, "swap_zswap_major", "change")
    assert recording.dominant == "swap"


def test_zero_pages_on_swap(out: Path, zswap: Path) -> None:
    """Pages full of zeros are kept nowhere, and cleared again when they come back."""
    recording, faults, counted = pagez(out, zswap, 20, 3, "--zero")
    pages = 20 * 8 * MIB // PAGE
    assert counted["swpin_zero"] > 1.5 * pages, "this kernel keeps pages of zeros: the test shows nothing"
    rows = swapped(recording)
    assert rows["in_zero"] == pytest.approx(counted["swpin_zero"], rel=0.01)
    assert rows.get("in_zswap", 0) == pytest.approx(counted["zswpin"], abs=100)
    major, minor = faults.of("swap_zero_major"), faults.of("swap_minor")
    assert major.pages + minor.pages == pytest.approx(2 * pages, rel=0.02)
    assert major.pages == pytest.approx(recording.witness[-1]["majflt"], rel=0.02)
    assert_two_owners(faults, "swap_zero_major", "clear")
