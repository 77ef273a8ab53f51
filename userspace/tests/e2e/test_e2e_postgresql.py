# SPDX-License-Identifier: GPL-2.0
"""PostgreSQL: small buffers before a page cache that has the table, or has no room for it; and short connections.

Witnesses: its own counters of the blocks that it reads, its own numbers of its backends, and the cgroup's counters.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pytest

from harness import (
    MEMTOLL,
    MIB,
    NOBODY,
    Recording,
    end,
    environment,
    finish,
    load,
    spawn,
    start_record,
    wait_attached,
    wait_until,
)
from leftovers import noted
from swapping import in_cgroup, make_cgroup, slow_disk

pytestmark = pytest.mark.root

ROWS: Final = 200_003
# Of a table whose rows take a block each.
BLOCKS: Final = 3511
BLOCK: Final = 8192
SCANS: Final = 7
BUFFERS: Final = "shared_buffers=1MB"


def program(name: str) -> str:
    found = sorted(Path("/usr/lib/postgresql").glob(f"*/bin/{name}"))
    assert found, f"{name} is not installed"
    return str(found[-1])


def as_nobody(*words: str | Path) -> list[str]:
    """It refuses to run as root."""
    return ["setpriv", "--reuid", str(NOBODY), "--regid", str(NOBODY), "--clear-groups", *map(str, words)]


def run(*words: str | Path, text: str = "") -> str:
    done = subprocess.run(
        list(words), input=text, env=environment(), text=True, capture_output=True, timeout=80, check=False
    )
    assert done.returncode == 0 and not done.stderr, (words, done.stderr)
    return done.stdout


@dataclass
class Server:
    data: Path
    pid: int

    @property
    def client(self) -> list[str]:
        return [program("psql"), "-h", str(self.data), "-U", "t", "-d", "postgres", "-X", "-q", "-t", "-A"]

    def ask(self, text: str) -> str:
        """In a connection of its own: what a backend has counted others see when it has ended."""
        return run(*self.client, text=text).strip()

    def blocks(self, table: str = "a") -> int:
        """Blocks of the table that it has asked the kernel for, each by a pread of its own."""
        return int(self.ask(f"SELECT heap_blks_read FROM pg_statio_user_tables WHERE relname = '{table}';"))


@pytest.fixture(scope="module")
def data() -> Iterator[Path]:
    """Beside the build: a temporary directory may be in memory, which no read has to wait for."""
    path = MEMTOLL.parent / f"postgresql.{os.getpid()}"
    shutil.rmtree(path, ignore_errors=True)
    with noted("directory", path):
        path.mkdir()
        os.chown(path, NOBODY, NOBODY)
        run(*as_nobody(program("initdb"), "-D", path, "-U", "t", "--no-sync", "-A", "trust", "--no-locale"))
        with postgresql(path) as server:
            row = "SELECT i, repeat('x', 100) AS pad FROM generate_series(1, %d) i"
            server.ask(f"CREATE TABLE a AS {row % ROWS}; VACUUM ANALYZE a;")
            server.ask("CREATE TABLE wide (pad text); ALTER TABLE wide ALTER pad SET STORAGE PLAIN;")
            server.ask(f"INSERT INTO wide SELECT repeat('x', 8000) FROM generate_series(1, {BLOCKS});")
            server.ask("VACUUM ANALYZE wide; CHECKPOINT;")
        os.sync()
        yield path


@contextmanager
def postgresql(data: Path, *join: str) -> Iterator[Server]:
    """A server on a socket in its directory. join: what puts it into its cgroups."""
    settings = ["listen_addresses=", f"unix_socket_directories={data}", BUFFERS, "fsync=off", "autovacuum=off"]
    settings += ["max_parallel_workers_per_gather=0"]
    command = as_nobody(program("postgres"), "-D", data, *(word for name in settings for word in ("-c", name)))
    quiet: dict[str, Any] = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    process = spawn([*join, *command], **quiet)
    server = Server(data, process.pid)
    ready = [program("pg_isready"), "-q", "-h", str(data)]
    try:
        wait_until(lambda: subprocess.run(ready, timeout=20, check=False).returncode == 0, "an answer", every=0.1)
        yield server
    finally:
        # Its backends are in sessions of their own: they are told.
        process.send_signal(signal.SIGQUIT)
        process.wait(timeout=60)
        end(process)


def record_scans(out: Path, server: Server, query: str, *target: str, table: str = "a") -> tuple[Recording, int]:
    """What memtoll recorded of it, and the blocks that PostgreSQL counted."""
    tracer = start_record(out, *target)
    wait_attached(tracer, server.pid)
    before = server.blocks(table)
    server.ask(query)
    counted = server.blocks(table) - before
    tracer.send_signal(signal.SIGINT)
    result = finish(tracer)
    assert result.status == 0, result
    return load(out, result), counted


def table_row(recording: Recording, server: Server, table: str = "a") -> dict[str, Any]:
    path = server.data / server.ask(f"SELECT pg_relation_filepath('{table}');")
    (row,) = (file for file in recording.report["files"] if file["path"] == str(path))
    return dict(row)


def advice(recording: Recording) -> dict[str, str]:
    return {advice["code"]: advice["text"] for advice in recording.report["verdict"]["advice"]}


def assert_buffers_are_known(recording: Recording) -> None:
    caches = {(cache["program"], cache["setting"], cache["bytes"]) for cache in recording.report["own_cache"]}
    assert caches == {("PostgreSQL", "shared_buffers", MIB)}


def test_small_buffers(out: Path, data: Path) -> None:
    """Nothing but scans out of the page cache, a row a block: calls and copies are what such a query's time goes to."""
    query = "SELECT COUNT(*) FROM wide;\n"
    with postgresql(data) as server:
        server.ask(query)
        recording, counted = record_scans(out, server, query * SCANS, "-p", str(server.pid), table="wide")
        row = table_row(recording, server, "wide")
    # Each scan begins with the few blocks that the last one left in the buffers.
    assert (SCANS - 1) * BLOCKS < counted <= SCANS * BLOCKS
    assert (row["count"], row["bytes"]) == (counted, counted * BLOCK)
    assert row["cached_bytes"] > 0.95 * row["bytes"]
    assert row["reread_factor"] == pytest.approx(SCANS, abs=0.5)
    assert recording.dominant == "file"
    said = advice(recording)
    assert "shared_buffers = " in said["file-reread"]
    assert "a quarter of shared_buffers" in said["file-reread"]
    assert "memory cgroup" not in said["file-reread"]
    assert "file-thrash" not in said
    assert_buffers_are_known(recording)


def test_cached_reads_are_no_reason_to_cry(out: Path, data: Path) -> None:
    """The same where the query has work to do: to read is little of it."""
    query = "SELECT SUM(sin(i) ^ 2 + cos(i) ^ 2 + exp(ln(i) / 7) + LENGTH(repeat(pad, 3))) FROM a;\n" * 3
    with postgresql(data) as server:
        server.ask("SELECT COUNT(*) FROM a;")
        recording, counted = record_scans(out, server, query, "-p", str(server.pid))
        row = table_row(recording, server)
    assert row["count"] == counted
    assert row["cached_bytes"] > 0.95 * row["bytes"]
    assert row["reread_factor"] == pytest.approx(3, abs=0.3)
    # Whether a wait for the few that were not cached outweighs all else is the disk's affair.
    assert not [code for code in advice(recording) if code.startswith("file")]
    assert_buffers_are_known(recording)


def test_page_cache_too_small(out: Path, data: Path) -> None:
    """A cgroup that does not hold the table: all of it is read from the disk by each scan."""
    limit = 20 * MIB
    # What is in memory already is another cgroup's.
    for path in data.glob("base/*/*"):
        with path.open("rb") as file:
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
    with ExitStack() as stack:
        cgroup = make_cgroup(stack, limit)
        slow = slow_disk(stack, "bps", 400 * MIB, cgroup)
        server = stack.enter_context(postgresql(data, *in_cgroup(cgroup, *in_cgroup(slow))))
        recording, counted = record_scans(out, server, "SELECT COUNT(*) FROM a;\n" * 7, "-c", str(cgroup))
        row = table_row(recording, server)
    assert row["count"] == counted
    cache = recording.report["page_cache"]
    assert (cache["thrash"], cache["path"], cache["limit_bytes"]) == (True, row["path"], limit)
    assert recording.dominant == "file"
    said = advice(recording)
    assert "instead of 20.0 MiB" in said["file-thrash"]
    # A twentieth of the limit is not what the page cache lacks.
    assert "shared_buffers" not in said["file-thrash"]
    assert "Its memory cgroup may have 20.0 MiB in all: raise that limit first" in said["file-reread"]


CONNECTIONS: Final = 23


def test_short_connections(out: Path, data: Path) -> None:
    """Each is a fork of the postmaster that ends within some 20 ms, before its record has been read, or after."""
    with postgresql(data) as server:
        table = server.data / server.ask("SELECT pg_relation_filepath('a');")
        tracer = start_record(out, "-p", str(server.pid))
        wait_attached(tracer, server.pid)
        before = server.blocks()
        backends = [int(server.ask("SELECT pg_backend_pid() FROM a WHERE i = 1 LIMIT 1;")) for _ in range(CONNECTIONS)]
        counted = server.blocks() - before
        tracer.send_signal(signal.SIGINT)
        result = finish(tracer)
    assert result.status == 0, result
    recording = load(out, result)
    rows = recording.query("SELECT pid, parent_pid, comm, start_ns < end_ns FROM process WHERE role = 'child'")
    seen = {pid: (parent, comm, in_order) for pid, parent, comm, in_order in rows}
    assert seen.keys() >= set(backends)
    assert {seen[pid] for pid in backends} == {(server.pid, "postgres", 1)}
    # Sums of a process are read before its fork is, or after it has gone: none may be lost.
    path = f"(SELECT file FROM file WHERE path = '{table}')"
    ((ours,),) = recording.query(f"SELECT TOTAL(calls) FROM file_read WHERE file = {path}")
    assert ours == counted
    for sums in ("file_read", "map_call"):
        calls = dict(recording.query(f"SELECT pid, SUM(calls) FROM {sums} GROUP BY pid"))
        usual = Counter(calls.get(pid, 0) for pid in backends).most_common(1)[0][0]
        assert usual > 0
        assert min(calls.get(pid, 0) for pid in backends) >= usual // 2, (sums, calls)
    # Nobody says of those that had ended before they could be looked at that they have no allocator.
    assert not [note for note in recording.report["notes"] if "no known allocator" in note]
    # One place of one binary is one row, whichever of them were there.
    assert not recording.query(
        "SELECT function, module, COUNT(DISTINCT module) FROM frame WHERE function = 'PostgresMain'"
        " GROUP BY function HAVING COUNT(DISTINCT module) > 1"
    )
