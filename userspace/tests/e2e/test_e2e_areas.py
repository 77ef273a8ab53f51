# SPDX-License-Identifier: GPL-2.0
"""Where a fault fell when it was in no large block: heap, arena, stack, library, file, shared memory, by name.

Witness: the workload's own /proc/self/pagemap before and after the loop that faults.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from contiguous import make_huge_pieces
from faults import Faults, stacks
from harness import PAGE, WORKLOADS, Recording, record, record_several, wait_until, workload
from leftovers import noted

pytestmark = pytest.mark.root

HUGE_PAGES = 512
LARGE_POOL = Path("/proc/sys/vm/nr_hugepages")


def run(out: Path, *command: object) -> tuple[Recording, Faults, dict[str, Any]]:
    name, *words = map(str, command)
    recording = record(out, command=[workload(name), *words])
    return recording, Faults(recording), recording.witness[-1]


def assert_checked(recording: Recording) -> None:
    check = recording.report["checks"]["minor_faults"]
    assert check["ours"] == pytest.approx(check["kernel"], rel=0.01)


# Memory without a name.


Several = tuple[Recording, dict[str, dict[str, Any]]]


# Two mappings of so many pages, and what their area is called.
SHARED: dict[str, tuple[str, int, str]] = {
    "memfd": ("memfd", 4099, "/memfd:memtoll-ring"),
    "sysv": ("sysv", 4099, "/SYSV00000000"),
    "few": ("anonymous", 13, "/dev/zero"),
    "anonymous": ("anonymous", 4099, "/dev/zero"),
}
# Files of so many pages, and those that are skipped.
CACHED: dict[str, tuple[int, int]] = {"large": (16411, 13), "whole": (1499, 0), "skipped": (1499, 5)}


def file_of(name: str) -> Path:
    """On the file system of the build, since /tmp may be memory."""
    return WORKLOADS / f"pages.{os.getpid()}.{name}"


def make_file(path: Path, pages: int) -> None:
    with path.open("wb") as written:
        for page in range(pages):
            written.write(page.to_bytes(4, "little") * (PAGE // 4))
        os.fsync(written.fileno())


@pytest.fixture(scope="module")
def several(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Several]:
    """A program for each area, one after the other."""
    numbers = {"heap": 4099, "arena": 4099, "stack": 503, "thread-stack": 503}
    commands: dict[str, list[object]] = {area: ["areas", area, number] for area, number in numbers.items()}
    commands["library"] = ["areas", "library", workload("libpages.so")]
    commands |= {name: ["shared", mode, pages] for name, (mode, pages, _) in SHARED.items()}
    next_segment = Path("/proc/sys/kernel/shm_next_id")
    if next_segment.exists():
        # As the first one after boot, whose inode is 0.
        next_segment.write_text("0")
    with ExitStack() as stack:
        for name, (pages, skip) in CACHED.items():
            stack.enter_context(noted("file", file_of(name)))
            make_file(file_of(name), pages)
            commands[name] = ["shared", "file", file_of(name), skip]
        recording, witness = record_several(tmp_path_factory.mktemp("several") / "several.memtoll", commands)
        assert_checked(recording)
        yield recording, witness


def of_family(recording: Recording, pid: int) -> Faults:
    """Of a program and its children."""
    children = recording.query(f"SELECT pid FROM process WHERE parent_pid = {pid}")
    return Faults(recording).by(pid, *(child for (child,) in children))


@pytest.mark.parametrize("area", ["heap", "arena"])
def test_small_blocks(several: Several, area: str) -> None:
    """4099 blocks of 1008 bytes, four to a page, by the first thread and by another."""
    witness = several[1][area]
    faults = Faults(several[0]).by(witness["pid"])
    pages = witness["after"] - witness["before"]
    assert pages == pytest.approx(4099 / 4, abs=3)
    made = faults.touched("areas.c", "caller", "fill")
    cleared = made.of("zero")
    assert cleared.pages == cleared.faults == pages, made
    assert cleared.areas == {area}, cleared
    assert {row.allocated_call for row in cleared.rows} == {""}


@pytest.mark.parametrize("mode", ["stack", "thread-stack"])
def test_stack(several: Several, mode: str) -> None:
    """503 frames of a page."""
    witness = several[1][mode]
    faults = Faults(several[0]).by(witness["pid"])
    pages = witness["after"] - witness["before"]
    assert pages == pytest.approx(503, abs=9)
    deep = faults.touched("areas.c", "frame", "recurse")
    assert deep.of("zero").pages == pages == witness["faults"], deep
    assert deep.areas == {"stack"}, deep


@pytest.fixture
def large_pages() -> Iterator[None]:
    """Three more huge pages in the machine's pool."""
    before = LARGE_POOL.read_text()
    with noted("setting", LARGE_POOL, before):
        make_huge_pieces()
        LARGE_POOL.write_text(str(int(before) + 3))
        wait_until(lambda: int(LARGE_POOL.read_text()) >= int(before) + 3, "3 huge pages in the pool")
        yield


def test_pages_of_the_huge_pool(out: Path, large_pages: None) -> None:
    recording, faults, witness = run(out, "areas", "hugetlb", 3)
    assert (witness["faults"], witness["after"]) == (3, 3 * HUGE_PAGES)
    written = faults.touched("areas.c", "hugetlb")
    assert (written.kinds, written.faults, written.pages) == ({"zero_huge"}, 3, 3 * HUGE_PAGES)
    assert recording.toll("zero.kernel", "bytes") >= 3 * HUGE_PAGES * PAGE
    assert_checked(recording)


# Shared memory.


def assert_shared(faults: Faults, witness: dict[str, Any], pages: int) -> tuple[Faults, Faults]:
    """Written by one mapping, fault by fault, then read by another, several pages a fault."""
    written, read = faults.touched("shared.c", "write"), faults.touched("shared.c", "read")
    assert witness["write_pages"] == witness["read_pages"] == pages
    assert (written.kinds, read.kinds) == ({"shared_zero"}, {"shared_minor"})
    assert written.areas == read.areas == {"shared"}
    assert (written.faults, written.pages) == (witness["write_faults"], pages)
    assert (read.faults, read.pages) == (witness["read_faults"], pages)
    assert faults.of("zero").pages < 300
    return written, read


@pytest.mark.parametrize("name", SHARED)
def test_shared_memory(several: Several, name: str) -> None:
    mode, pages, area = SHARED[name]
    recording, witness = several
    faults = of_family(recording, witness[name]["pid"])
    written, read = assert_shared(faults, witness[name], pages)
    assert {found.removesuffix(" (deleted)") for found in written.names | read.names} == {area}
    if pages * PAGE < 65536:
        return
    # MAP_SHARED of 64 KiB and more, of no file or of one in memory: its owner is the mmap, in the child too; so with
    # shmat, which is a mapping like any other.
    assert {row.allocated_call for row in written.rows + read.rows} == {"mmap"}
    if mode in ("anonymous", "sysv"):
        assert written.allocated("shared.c", mode).pages == read.allocated("shared.c", mode).pages == pages
    if mode == "sysv":
        # One of the two was detached, all of it.
        attached, detached = ",".join(map(str, stacks(recording, "shared.c", mode))), pages * PAGE
        sql = f"SELECT SUM(made), SUM(freed), SUM(freed_bytes) FROM block WHERE stack_id IN ({attached})"
        assert recording.query(sql) == [(2, 1, detached)]


def test_shared_memory_is_cleared_by_the_kernel(several: Several) -> None:
    """Once, whoever writes to it first."""
    recording, _ = several
    shared = Faults(recording).of("shared_zero")
    assert sum(pages for _mode, pages, _name in SHARED.values()) <= shared.pages
    # Besides, a few that are no shared memory and no page of a block.
    assert 0 <= recording.toll("zero.kernel", "pages") - shared.pages - Faults(recording).of("zero").pages < 300


# Files.


@pytest.mark.parametrize("name", CACHED)
def test_cached_file(several: Several, name: str) -> None:
    """Some 64 MiB in the page cache, from a page on that is no boundary: fewer faults than pages, all pages."""
    recording, witness = several[0], several[1][name]
    pid = witness["pid"]
    faults = Faults(recording).by(pid)
    read = faults.touched("shared.c", "read")
    assert witness["read_pages"] == CACHED[name][0] - CACHED[name][1]
    assert witness["read_faults"] < witness["read_pages"] / 4, "nothing was mapped around: the test shows nothing"
    # Should the machine have dropped a page of the file meanwhile, it was read again first.
    assert read.kinds <= {"file_minor", "file_major", "file_again_major"}
    assert faults.of("file_major").faults <= witness["majflt"] < 50
    assert (read.faults, read.pages) == (witness["read_faults"], witness["read_pages"])
    assert (read.areas, read.names) == ({"file"}, {str(file_of(name))})
    # Every page once, at its address.
    wanted = stacks(recording, "shared.c", "read")
    at = witness["read_start"]
    runs = recording.query(f"SELECT touched_stack, address, pages FROM fault_run WHERE pid = {pid} ORDER BY 2")
    for stack, address, mapped in runs:
        if stack in wanted:
            assert address == at
            at += mapped * PAGE


def test_library(several: Several) -> None:
    """A library that came by dlopen: its constants, and the C library's pages."""
    recording, witness = several[0], several[1]["library"]
    faults = Faults(recording).by(witness["pid"])
    read = faults.touched("areas.c", "library")
    assert (read.faults, read.pages) == (witness["faults"], witness["after"] - witness["before"]), read
    assert (read.areas, read.names) == ({"library"}, {str(workload("libpages.so"))})
    libc = [row for row in faults.rows if Path(row.area_name).name == "libc.so.6"]
    assert {row.area for row in libc} == {"library"}
    assert sum(row.faults for row in libc) > 5
