# SPDX-License-Identifier: GPL-2.0
"""Programs that are neither zeroing nor swap, and exact counts of the malloc family."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness import MIB, PAGE, WORKLOADS, Recording, record, workload
from leftovers import noted

pytestmark = pytest.mark.root

# Allocations of the loader and of start-up, which no workload asked for.
START_CALLS = 64
# First touches of a program's start: loader, libraries, stack.
START_PAGES = 500

CHURNED = 100_003


def test_populated_pages_are_no_surprise(out: Path) -> None:
    """Pages that mmap faults in itself raise no event; they are seen by their effect, and the checks agree."""
    pages = 5003
    flags = "mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | mmap.MAP_POPULATE"
    script = f"import mmap; m = mmap.mmap(-1, {pages * 4096}, flags={flags})"
    recording = record(out, command=["/usr/bin/python3", "-c", script])
    rows = recording.query("SELECT SUM(populated) FROM map_call WHERE call = 'mmap'")
    check = recording.report["checks"]["minor_faults"]
    # With huge pages for everybody a fault brings 512 of them.
    assert rows[0][0] == pytest.approx(pages, abs=3) or rows[0][0] >= pages // 512
    assert check["kernel"] >= rows[0][0]
    assert check["ours"] == pytest.approx(check["kernel"], rel=0.01)


def test_cpu_loop(out: Path) -> None:
    recording = record(out, command=[workload("cpu_loop"), "700", "--compat"], exact=False)
    # 700 ms beside a hundred faults or two of the start.
    assert recording.dominant == "compute"
    # The kernel's CPU time of one process by two ways; what the program's clock lacks is its exit.
    assert recording.report["target"]["observed_s"] == pytest.approx(recording.witness[-1]["cpu_ns"] / 1e9, rel=0.1)
    # System calls of 32-bit programs have numbers of their own: 199 with that of mmap are none.
    (mapped,) = recording.query("SELECT SUM(calls) FROM map_call WHERE call = 'mmap'")
    assert 0 < mapped[0] < START_CALLS and recording.witness[-1]["compat"] in (0, 199)


@pytest.fixture(scope="module")
def churn(tmp_path_factory: pytest.TempPathFactory) -> Recording:
    path = tmp_path_factory.mktemp("churn") / "churn.memtoll"
    return record(path, command=[workload("churn"), str(CHURNED), "--family"])


def test_churn_is_neither(churn: Recording) -> None:
    """The blocks stay in the thread's cache: nothing is cleared but for the start and calloc's 48 bytes."""
    assert churn.toll("zero.kernel", "pages") < START_PAGES
    assert churn.toll("zero.libc", "bytes") <= churn.witness[-1]["calloc"] * 2 * 48 + START_CALLS * PAGE
    assert churn.toll("swap.in", "count") == churn.toll("swap.out", "count") == 0
    assert churn.toll("alloc", "count") >= 2 * CHURNED


@pytest.mark.parametrize(
    "call", ["malloc", "calloc", "realloc", "reallocarray", "posix_memalign", "aligned_alloc", "memalign", "free"]
)
def test_churn_counts(churn: Recording, call: str) -> None:
    truth = churn.witness[-1][call]
    names = {call}
    libc = ctypes.CDLL("libc.so.6")
    address = {name: ctypes.cast(getattr(libc, name), ctypes.c_void_p).value for name in ("memalign", "aligned_alloc")}
    if call in address and address["memalign"] == address["aligned_alloc"]:
        names = set(address)  # one function with two names: either is right
    assert churn.site("churn.c", call, *names).calls == truth


def test_churn_bytes(churn: Recording) -> None:
    assert churn.site("churn.c", "malloc", "malloc").bytes == churn.witness[-1]["bytes"]


def test_churn_totals(churn: Recording) -> None:
    """All calls of the program; what glibc calls inside itself is not counted twice."""
    calls, truth = churn.report["calls"], churn.witness[-1]
    frees = truth["free"] + truth["family_free"]
    assert churn.site("churn.c", "family_free", "free").calls == truth["family_free"]
    assert truth["malloc"] <= calls["malloc"] <= truth["malloc"] + START_CALLS
    assert truth["calloc"] <= calls["calloc"] <= truth["calloc"] + START_CALLS
    assert frees <= calls["free"] <= frees + START_CALLS
    assert calls["realloc"] == pytest.approx(truth["realloc"], abs=START_CALLS)
    assert calls["reallocarray"] == truth["reallocarray"]
    assert calls["posix_memalign"] == truth["posix_memalign"]
    aligned = calls.get("aligned_alloc", 0) + calls.get("memalign", 0)
    assert aligned == truth["aligned_alloc"] + truth["memalign"]


def test_churn_more_calls_by_exactly_the_difference(out: Path, churn: Recording) -> None:
    """Start-up cancels out: totals, not sites."""
    few = record(out, "--probes", "alloc", command=[workload("churn"), "1013", "--family"])
    for call in ("malloc", "free"):
        assert churn.report["calls"][call] - few.report["calls"][call] == CHURNED - 1013


@pytest.fixture
def big_file() -> Iterator[Path]:
    """4001 pages on the file system of the build, since /tmp may be memory, which has no faults to read."""
    path = WORKLOADS / f"pages.{os.getpid()}"
    with noted("file", path):
        with path.open("wb") as file:
            for page in range(4001):
                file.write(page.to_bytes(4, "little") * (PAGE // 4))
            os.fsync(file.fileno())
        yield path


def test_cached_file_by_mmap(out: Path, big_file: Path) -> None:
    recording = record(out, command=[workload("file_map"), big_file, "warm", "53"])
    # 13,000 faults, each of which maps 16 pages, beside the first touches of the start.
    assert recording.dominant not in ("zeroing", "swap")
    assert recording.toll("swap.in", "count") == 0
    check = recording.report["checks"]["minor_faults"]
    assert check["ours"] == pytest.approx(check["kernel"], rel=0.01)
    assert recording.toll("file.fault", "count") > 0.5 * check["kernel"]
    assert recording.toll("zero.kernel", "pages") < 500


def test_uncached_file_by_mmap(out: Path, big_file: Path) -> None:
    """Major faults without any swap."""
    recording = record(out, command=[workload("file_map"), big_file, "cold", "1"])
    witness = recording.witness[-1]
    assert witness["majflt"] >= 4000, "the page cache could not be emptied: the test shows nothing"
    check = recording.report["checks"]["major_faults"]
    assert check["kernel"] == pytest.approx(witness["majflt"], rel=0.01)
    assert check["ours"] == pytest.approx(check["kernel"], rel=0.01)
    assert recording.toll("swap.in", "count") == 0
    assert recording.toll("swap.out", "count") == 0
    assert recording.toll("file.fault", "count") >= 4000
    # 4,000 waits for the disk.
    assert recording.dominant not in ("zeroing", "swap")


def test_fork_and_write_copies(out: Path) -> None:
    """The children's writes copy pages; only the parent's first writes clear any."""
    recording = record(out, command=[workload("cow_fork"), str(16 * MIB), "23"])
    witness = recording.witness[-1]
    assert recording.toll("cow", "pages") == pytest.approx(witness["copied_pages"], rel=0.02)
    assert recording.toll("zero.kernel", "pages") == pytest.approx(witness["cleared_pages"], abs=800)
    # 94,208 pages are read and written, 4,096 and those of the start are written only.
    assert recording.dominant == "cow"
    (advised,) = (each["text"] for each in recording.report["verdict"]["advice"] if each["code"] == "cow")
    assert "by its children" in advised
    check = recording.report["checks"]["minor_faults"]
    assert check["ours"] == pytest.approx(check["kernel"], rel=0.01)
