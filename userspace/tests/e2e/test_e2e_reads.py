# SPDX-License-Identifier: GPL-2.0
"""Reads of files: counts, bytes and re-reads against the reader's own."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from harness import (
    MIB,
    PAGE,
    WORKLOADS,
    Recording,
    finish,
    memtoll,
    own_frame,
    record,
    record_several,
    site_line,
    spawn,
    workload,
)
from leftovers import noted

pytestmark = pytest.mark.root

BLOCK = 4 * PAGE
BLOCKS = 1009
LARGE = 389 * MIB  # three times as many blocks of 4 KiB as are followed of one file, and three quarters as of all
PASSES = 7  # over a file in no order

CALLS = {
    "read": "read",
    "pread": "pread64",
    "readv": "readv",
    "preadv": "preadv",
    "preadv2": "preadv2",
    "aio": "io_submit",
    "uring": "io_uring",
}


def make_file(path: Path, size: int) -> None:
    with path.open("wb") as out:
        chunk = os.urandom(MIB)
        for at in range(0, size, MIB):
            out.write(chunk[: min(MIB, size - at)])
        os.fsync(out.fileno())


@pytest.fixture(scope="module")
def data() -> Iterator[Path]:
    """On the file system of the build: /tmp may be memory, where nothing is read."""
    path = WORKLOADS / f"reads.{os.getpid()}"
    with noted("file", path):
        make_file(path, BLOCKS * BLOCK)
        yield path


def row_of(recording: Recording, path: Path) -> dict[str, Any]:
    (row,) = (file for file in recording.report["files"] if file["path"] == str(path))
    return dict(row)


Several = tuple[Recording, dict[str, Path]]

# Pipes, devices and what the kernel makes up.
OTHERS = (
    "for i in $(seq 7); do cat /proc/self/stat /sys/kernel/mm/transparent_hugepage/enabled; done | cat;"
    " head -c 65536 /dev/zero"
)


@pytest.fixture(scope="module")
def several(data: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Several]:
    """Files of their own, each read by a program in another way, one after the other; and what are no files."""
    ways: dict[str, list[object]] = {
        "warm": ["pread", BLOCK, BLOCKS, 2, "--held"],
        "cold": ["pread", BLOCK, BLOCKS, 3, "--cold"],
        "random": ["pread", BLOCK, BLOCKS, PASSES, "--random"],
        "pieces": ["read", 100, 20011, 1],
    }
    paths = {name: data.with_name(f"{data.name}.{name}") for name in ways}
    with ExitStack() as stack:
        for path in paths.values():
            stack.enter_context(noted("file", path))
            make_file(path, BLOCKS * BLOCK)
        lines = [shlex.join(map(str, [workload("reader"), paths[name], *words])) for name, words in ways.items()]
        out = tmp_path_factory.mktemp("several") / "several.memtoll"
        yield record(out, command=["sh", "-c", " && ".join([*lines, OTHERS])]), paths


def test_every_way_to_read(out: Path, data: Path) -> None:
    """Exact counts and bytes, under the call's own name; a process for each, one after the other."""
    commands: dict[str, list[object]] = {call: ["reader", data, call, BLOCK, BLOCKS, 2] for call in CALLS}
    recording, witness = record_several(out, commands)
    row = row_of(recording, data)
    for figure, name in (("count", "reads"), ("bytes", "bytes")):
        assert row[figure] == sum(said[name] for said in witness.values())
    assert row["device"] == (os.major(data.stat().st_dev) << 20 | os.minor(data.stat().st_dev))
    assert (row["inode"], row["file_bytes"]) == (data.stat().st_ino, BLOCKS * BLOCK)
    rows = recording.query(
        "SELECT r.pid, r.call, SUM(r.calls), SUM(r.bytes) FROM file_read r JOIN file f ON f.file = r.file"
        f" WHERE f.path = '{data}' GROUP BY 1, 2"
    )
    said = {(said["pid"], CALLS[call], said["reads"], said["bytes"]) for call, said in witness.items()}
    assert set(rows) == said and len(rows) == len(said)
    assert recording.toll("file.read", "count") >= row["count"]
    assert "file.read" not in recording.report["not_captured"]


@pytest.fixture(scope="module")
def past_it(data: Path, tmp_path_factory: pytest.TempPathFactory) -> Recording:
    """Three passes past the page cache, on the reader's own clock."""
    path = tmp_path_factory.mktemp("direct") / "direct.memtoll"
    words = ["pread", BLOCK, BLOCKS, 3, "--direct", "--clocked"]
    return record(path, command=[workload("reader"), data, *map(str, words)])


def test_page_cache_and_past_it(several: Several, data: Path, past_it: Recording) -> None:
    """In the cache, not in it, and never in it, of the same reads."""
    size = BLOCKS * BLOCK
    recording, paths = several
    warm, cold = row_of(recording, paths["warm"]), row_of(recording, paths["cold"])
    assert (warm["cached_bytes"], warm["direct_bytes"]) == (2 * size, 0), warm
    # What came in did so by the mapping that holds it.
    assert warm["filled_bytes"] == 0
    assert cold["filled_bytes"] == pytest.approx(3 * size, rel=0.01)
    assert cold["cached_bytes"] < cold["bytes"] == 3 * size
    direct_run, direct = past_it, row_of(past_it, data)
    assert direct["direct_bytes"] == direct["bytes"] == 3 * size
    assert (direct["cached_bytes"], direct["filled_bytes"]) == (0, 0)
    # A device is waited for; the cache is not. Where a hypervisor serves the read before the guest
    # goes on, the guest does not sleep: how long is the reader's to say.
    asleep_s = direct_run.witness[-1]["asleep_ns"] / 1e9
    assert direct["blocked_s"] == pytest.approx(asleep_s, rel=0.2)
    assert warm["blocked_s"] < 0.1 * direct["blocked_s"]
    assert direct_run.dominant == "file"
    assert cold["time_s"] > 0
    # The line that reads.
    site = next(site for site in direct_run.report["sites"] if site["toll"] == "file.read")
    frame = own_frame(site["touched_at"])
    assert frame
    assert (frame["function"], frame["line"]) == ("read_block", site_line("reader.c", "pread"))
    assert (site["call"], site["area"]) == ("pread64", f"file {data}")


def test_reads_of_other_than_files_are_not_counted(several: Several) -> None:
    recording, _ = several
    assert recording.query("SELECT COUNT(*) > 7 FROM process WHERE comm = 'cat'") == [(1,)]
    paths = {file["path"] for file in recording.report["files"]}
    assert not [path for path in paths if path.startswith(("/proc", "/sys", "/dev"))]


def test_many_files_at_once(tmp_path: Path, out: Path) -> None:
    """Each is a row of its own, for which the kernel has no memory ready while the program keeps its workers away.

    No more than the table for all has rows (bpf/probes/read.bpf.c): it may be that it has to hold them.
    """
    (tmp_path / "files").mkdir()
    recording = record(out, command=[workload("many_files"), str(tmp_path / "files"), "4001"])
    (witness,) = recording.witness
    assert witness["reads"] == 4001
    rows = recording.query(
        "SELECT COUNT(DISTINCT r.file), SUM(r.calls), SUM(r.bytes) FROM file_read r JOIN file f ON f.file = r.file"
        f" WHERE f.path LIKE '{tmp_path}/files/%'"
    )
    assert rows == [(4001, 4001, 4001)]
    assert recording.report["losses"]["reads_full"] == 0


def test_without_the_probe(out: Path, data: Path) -> None:
    command: list[str | Path] = [workload("reader"), data, "pread", str(BLOCK), "7", "1"]
    recording = record(out, "--probes", "faults", command=command)
    assert recording.report["not_captured"]["file.read"] == "reads were not traced"
    assert recording.report["files"] == []


def test_passes_over_a_file(data: Path, past_it: Recording) -> None:
    """Three passes: each block three times. A cache of the file's size saves two thirds, less saves none."""
    size = BLOCKS * BLOCK
    recording, row = past_it, row_of(past_it, data)
    assert (row["reread_factor"], row["reread_low"], row["reread_high"]) == (3.0, 3.0, 3.0)
    assert row["different_bytes"] == size
    for point in row["miss_ratio_curve"]:
        wanted = 1.0 if point["cache_bytes"] < size else 1 / 3
        assert point["miss_ratio"] == pytest.approx(wanted, abs=1e-4), point
    assert row["miss_ratio_curve"][-1]["cache_bytes"] == pytest.approx(size, rel=0.07)
    assert recording.dominant == "file"
    (advice,) = (a for a in recording.report["verdict"]["advice"] if a["code"] == "file-reread")
    assert str(data) in advice["text"]
    assert "read 3.0 times" in advice["text"]
    assert "not visible" in advice["text"]
    text = memtoll("report", "--full", recording.path).stdout
    assert "READS" in text
    assert "nothing read twice" in text


def test_small_pieces_of_a_block_are_one_read_of_it(several: Several) -> None:
    """A program that reads in order, 100 bytes at a time, reads nothing twice."""
    recording, paths = several
    row = row_of(recording, paths["pieces"])
    assert (row["count"], row["bytes"]) == (20011, 20011 * 100)
    assert row["reread_factor"] == pytest.approx(1.0, abs=0.01)


def test_one_pass_over_a_large_file(out: Path) -> None:
    """A sequential reader: nothing is read again, of more blocks than are followed one by one."""
    path = WORKLOADS / f"sparse.{os.getpid()}"
    with noted("file", path):
        with path.open("wb") as file:
            file.truncate(LARGE)
        recording = record(out, command=[workload("reader"), path, "read", str(MIB), str(LARGE // MIB), "1"])
        row = row_of(recording, path)
    assert (row["count"], row["bytes"]) == (LARGE // MIB, LARGE)
    assert (row["reread_factor"], row["different_bytes"]) == (1.0, LARGE)
    assert [point["miss_ratio"] for point in row["miss_ratio_curve"]] == [1.0]
    assert not [a for a in recording.report["verdict"]["advice"] if a["code"] == "file-reread"]


def test_curve_against_three_caches(several: Several) -> None:
    """Reads that the program's own LRU cache of each size leaves, foretold from those without a cache."""
    recording, paths = several
    row = row_of(recording, paths["random"])
    curve = [(point["cache_bytes"], point["miss_ratio"]) for point in row["miss_ratio_curve"]]
    for blocks in (251, 503, 757):
        ratio = min(ratio for size, ratio in curve if size <= blocks * BLOCK)
        sizes = [str(BLOCK), str(BLOCKS), str(PASSES)]
        command: list[str | Path] = [workload("reader"), paths["random"], "pread", *sizes]
        command += ["--random", "--cache", str(blocks)]
        (line,) = run_alone(command)
        assert ratio * row["count"] == pytest.approx(line["reads"], rel=0.1), blocks
    assert recording.report["losses"]["ring_read"] == 0


def run_alone(command: list[str | Path]) -> list[dict[str, Any]]:
    """The workload without memtoll: its lines."""
    result = finish(spawn(command))
    assert result.status == 0, result
    return result.witness
