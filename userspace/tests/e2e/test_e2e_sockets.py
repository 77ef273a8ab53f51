# SPDX-License-Identifier: GPL-2.0
"""Reads of sockets tell nothing: they are charged, and left alone where they cost too much; files are not missed."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness import query, record, workload

pytestmark = pytest.mark.root

SOCKETS = 100_003
FILES = 1009


@pytest.fixture
def out(tmp_path: Path) -> Path:
    return tmp_path / "sockets.memtoll"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "file"
    path.write_bytes(bytes(4096))
    return path


def hits(path: Path, probe: str) -> int:
    return int(query(path, f"SELECT COALESCE(SUM(hits), 0) FROM hit WHERE probe = '{probe}'")[0][0])


def test_each_is_charged(out: Path, file: Path) -> None:
    recording = record(out, command=[workload("sockets"), file, str(SOCKETS)])
    assert recording.witness[-1]["sockets"] == SOCKETS
    assert hits(out, "read_other") == SOCKETS
    # How much that is has been calibrated; it may be less than its error.
    assert query(out, "SELECT hit_ns >= 0 FROM price WHERE probe = 'read_other'") == [(1,)]
    assert recording.report["overhead"]["hits"] >= SOCKETS
    assert "read_other" not in recording.report["overhead"].get("duty_cycle", {})
    assert recording.report["losses"]["reads_unwatched"] == 0


def test_sockets_are_left_alone_and_files_are_not(out: Path, file: Path) -> None:
    """Five seconds of sockets only, over any limit; then files, one among thousands of reads."""
    command: list[str | Path] = [workload("sockets"), file, "0", "5", "2000", str(FILES)]
    recording = record(out, command=command, exact=False)
    overhead, said = recording.report["overhead"], recording.witness[-1]
    watched, lost = overhead["duty_cycle"].get("read_other", 1), recording.report["losses"]["reads_unwatched"]
    calls = query(out, "SELECT COALESCE(SUM(calls), 0) FROM file_read WHERE call = 'read' AND bytes = 4096 * calls")
    seen = int(calls[0][0])
    print(watched, lost, calls, overhead, said)
    assert said["files"] == FILES
    if b"btf_trace_mm_filemap_get_pages\0" not in Path("/sys/kernel/btf/vmlinux").read_bytes():
        # Nothing would tell of files: all is watched.
        assert (watched, lost, seen) == (1, 0, FILES)
        return
    # How much of the time, and how soon they come back, is the machine's.
    assert watched < 1
    assert hits(out, "read_other") < said["sockets"]
    # A read may be lost twice: its own end, and its look into the page cache.
    assert FILES <= seen + lost <= FILES + 4
    assert 0 < lost < FILES
