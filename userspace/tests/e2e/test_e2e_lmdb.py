# SPDX-License-Identifier: GPL-2.0
"""LMDB: a database that leaves all of its memory to the page cache, in a memory cgroup that is too small for it.

Witnesses: what LMDB says of its tree; its process's own count of major faults; what the kernel counts of the cgroup;
and the same passes, not traced, with the memory that is advised and with less.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Final

import pytest

from harness import (
    MIB,
    PAGE,
    SOURCES,
    WORKLOADS,
    Program,
    Recording,
    environment,
    finish,
    load,
    record,
    start_record,
    wait_attached,
    wait_until,
)
from leftovers import noted
from swapping import in_cgroup, make_cgroup, slow_disk

pytestmark = pytest.mark.root

LEAVES: Final = 37_003  # 145 MiB, one row of each is looked up in a pass
LIMIT: Final = 128 * MIB
PYTHON: Final = ("/usr/bin/python3", "-B", SOURCES / "python_lmdb.py")

Tree = dict[str, int]


@pytest.fixture(scope="module")
def data() -> Iterator[tuple[Path, Tree]]:
    """The file, and LMDB's own count of its pages. Beside the build: a temporary directory may be in memory."""
    path = WORKLOADS / f"lmdb.{os.getpid()}.data"
    with noted("file", path):
        made = subprocess.run(
            [*PYTHON, "make", path], env=environment(), capture_output=True, text=True, timeout=60, check=False
        )
        assert made.returncode == 0, made.stderr
        yield path, json.loads(made.stdout)


def box(stack: ExitStack, path: Path, limit: int) -> Path:
    """A cgroup; and nothing of the file is in memory."""
    with path.open("rb") as file:
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
    return make_cgroup(stack, limit)


def statistics(cgroup: Path) -> dict[str, int]:
    rows = (line.split() for line in (cgroup / "memory.stat").read_text().splitlines())
    return {name: int(value) for name, value in rows}


def refaults(path: Path, limit: int, *passes: str) -> int:
    """Pages that came back in the same passes, not traced."""
    with ExitStack() as stack:
        cgroup = box(stack, path, limit)
        done = subprocess.run(
            in_cgroup(cgroup, *PYTHON, path, *passes), env=environment(), capture_output=True, timeout=60, check=False
        )
        assert done.returncode == 0, done.stderr
        return statistics(cgroup)["workingset_refault_file"]


def advice(recording: Recording) -> dict[str, str]:
    return {advice["code"]: advice["text"] for advice in recording.report["verdict"]["advice"]}


def majors(recording: Recording) -> int:
    ((faults,),) = recording.query("SELECT TOTAL(faults) FROM fault WHERE class IN ('file_major', 'file_again_major')")
    return int(faults)


def attached(out: Path, program: Program) -> Recording:
    """Of the passes between two waits, not of the start, nor of the end."""
    with program:
        tracer = start_record(out, "-p", str(program.pid))
        wait_attached(tracer, program.pid)
        program.go()
        wait_until(lambda: len(program.lines) > 1, "the passes")
        tracer.send_signal(signal.SIGINT)
        result = finish(tracer)
        assert result.status == 0, result
        recording = load(out, result)
        recording.witness = program.lines
    return recording


def assert_too_small(recording: Recording, path: Path, tree: Tree, pattern: str) -> None:
    cache, said = recording.report["page_cache"], recording.report["verdict"]["sentence"]
    assert recording.dominant == "file"
    assert (cache["thrash"], cache["pattern"], cache["path"]) == (True, pattern, str(path))
    assert cache["limit_bytes"] == LIMIT
    assert str(path) in said
    assert "page cache thrashes" in said
    assert "(look)" in said
    assert f"instead of {LIMIT // MIB} MiB" in advice(recording)["file-thrash"]
    size = (tree["leaf_pages"] + tree["branch_pages"]) * PAGE
    assert size <= cache["working_bytes"] <= 1.02 * size


def assert_enough(recording: Recording, path: Path, *passes: str) -> None:
    """The limit that is advised is so much that a seventh more is enough, and a seventh less is not."""
    fits = recording.report["page_cache"]["fits_bytes"]
    # Where others have pushed out its code meanwhile that comes back, too, 2 MiB at a time: not each time.
    assert any(refaults(path, int(fits * 1.15), *passes) < LEAVES // 100 for _ in range(3))
    assert refaults(path, int(fits / 1.15), *passes) > LEAVES // 10


def test_scan(out: Path, data: tuple[Path, Tree]) -> None:
    """It maps its file with read-ahead by default: hardly a fault has to wait, and all of it comes in each time."""
    path, tree = data
    scans = ("scan", "scan", "scan")
    with ExitStack() as stack:
        cgroup = box(stack, path, LIMIT)
        # Some 4.4 s for what takes 0.4 s of a processor: also where that comes late, while the disk reads ahead.
        slow = slow_disk(stack, "bps", 100 * MIB, cgroup)
        command = in_cgroup(cgroup, *in_cgroup(slow, *PYTHON, path, "wait", *scans, "wait"))
        recording = attached(out, Program(*command))
        counted = statistics(cgroup)["workingset_refault_file"]
    assert tree["leaf_pages"] == LEAVES
    done = recording.witness[-1]
    assert done["used"] == 3 * LEAVES
    assert majors(recording) == done["majflt"]
    cache = recording.report["page_cache"]
    assert cache["again_pages"] + cache["vain_pages"] == pytest.approx(counted, rel=0.02)
    assert_too_small(recording, path, tree, "cyclic sweep")
    assert advice(recording).keys() == {"file-thrash"}
    assert_enough(recording, path, *scans)


def test_random(out: Path, data: tuple[Path, Tree]) -> None:
    """MDB_NORDAHEAD: each page that is out is a major fault of its own, the same number to everybody."""
    path, tree = data
    passes = ("scan", "random:alone")
    with ExitStack() as stack:
        cgroup = box(stack, path, LIMIT)
        slow = slow_disk(stack, "iops", 20_000, cgroup)
        recording = record(out, command=in_cgroup(cgroup, *in_cgroup(slow, *PYTHON, path, *passes)))
        counted = statistics(cgroup)["workingset_refault_file"]
    (done,) = recording.witness
    assert done["used"] == 2 * LEAVES
    # Those of its start and end are in one count only.
    assert done["majflt"] <= majors(recording) <= done["majflt"] + 16
    cache = recording.report["page_cache"]
    assert cache["again_pages"] + cache["vain_pages"] == pytest.approx(counted, rel=0.02)
    assert_too_small(recording, path, tree, "random")
    assert advice(recording).keys() == {"file-thrash"}
    assert_enough(recording, path, *passes)


def test_read_ahead_in_no_order(out: Path, data: tuple[Path, Tree]) -> None:
    """The default, where it is wrong: each fault brings in as much as the device's read_ahead_kb says."""
    path, _ = data
    # The kernel gives read-ahead up after a hundred misses (MMAP_LOTSAMISS).
    looks = 97
    with ExitStack() as stack:
        recording = record(out, command=in_cgroup(box(stack, path, LIMIT), *PYTHON, path, f"random:{looks}"))
    (done,) = recording.witness
    assert done["used"] == looks
    cache = recording.report["page_cache"]
    assert cache["filled_pages"] > 8 * looks
    assert "madvise(MADV_RANDOM)" in advice(recording)["read-around"]
    assert "read-ahead-off" not in advice(recording)


def test_scan_without_read_ahead(out: Path, data: tuple[Path, Tree]) -> None:
    """MDB_NORDAHEAD where it is wrong: each leaf, in order, is waited for."""
    path, _ = data
    looks = 9973
    with ExitStack() as stack:
        recording = record(out, command=in_cgroup(box(stack, path, LIMIT), *PYTHON, path, f"scan:alone:{looks}"))
    (done,) = recording.witness
    assert done["majflt"] > looks
    assert done["majflt"] <= majors(recording) <= done["majflt"] + 16
    assert recording.dominant == "file"
    assert "leave read-ahead on" in advice(recording)["read-ahead-off"]
    assert "read-around" not in advice(recording)


def test_all_of_it_in_no_order(out: Path, data: tuple[Path, Tree]) -> None:
    """MDB_NORDAHEAD where all of it is used and stays: thousands of requests for what a few bring in."""
    path, _ = data
    limit = 200 * MIB
    with ExitStack() as stack:
        recording = record(out, command=in_cgroup(box(stack, path, limit), *PYTHON, path, "random:alone"))
    (done,) = recording.witness
    assert done["majflt"] > LEAVES * 9 // 10
    assert done["majflt"] <= majors(recording) <= done["majflt"] + 16
    assert recording.dominant == "file"
    assert "read ahead (no MADV_RANDOM)" in advice(recording)["file-fault"]
    with ExitStack() as stack:
        words = in_cgroup(box(stack, path, limit), *PYTHON, path, "random")
        ahead = subprocess.run(words, env=environment(), capture_output=True, text=True, timeout=60, check=True)
    assert json.loads(ahead.stdout)["majflt"] < done["majflt"] // 10


def test_enough_memory(out: Path, data: tuple[Path, Tree]) -> None:
    """All of it has come in: nothing is left to advise."""
    path, _ = data
    passes = ["random:alone"] * 7
    with ExitStack() as stack:
        command = in_cgroup(box(stack, path, 200 * MIB), *PYTHON, path, "scan", "wait", *passes, "wait")
        recording = attached(out, Program(*command))
    done = recording.witness[-1]
    assert (done["used"], majors(recording)) == (7 * LEAVES, done["majflt"])
    assert not recording.report["page_cache"]["thrash"]
    # Of the database: code that others have pushed out of memory meanwhile may have to be read, 2 MiB at a time.
    ((filled,),) = recording.query(f"SELECT TOTAL(first_pages + in_pages) FROM page_fill WHERE area_name = '{path}'")
    assert filled < LEAVES // 100
    assert recording.dominant != "file"
    assert advice(recording).keys() == {"none"}
