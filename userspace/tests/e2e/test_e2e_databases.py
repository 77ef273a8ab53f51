# SPDX-License-Identifier: GPL-2.0
"""Databases that read the same pages again and again (casebook 5), and one that needs no advice.

Witnesses: InnoDB's own counters of the reads it makes, and runs with the pool sizes that the curve is about.
The table has 80 MB, less than a third of the casebook's: more pages than the pools have.
"""

from __future__ import annotations

import re
import signal
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pytest

from harness import (
    MEMTOLL,
    MIB,
    Recording,
    end,
    environment,
    finish,
    load,
    memtoll,
    spawn,
    start_record,
    tool,
    wait_attached,
    wait_until,
)
from leftovers import noted
from swapping import OutOfMemory, in_cgroup, memory_with_swap, set_limit, slow_disk, vmstat

pytestmark = [pytest.mark.root, pytest.mark.machine]

# Long ones: to make them takes longer than to fill the pages.
ROWS: Final = 264_000  # 80 MB
STEP: Final = 54  # a page has about 55 rows: one query for nearly every page
POOL: Final = 16 * MIB
SMALL_POOL: Final = 8 * MIB
READS_PER_S: Final = 2000

COUNTERS: Final = ("Innodb_buffer_pool_reads", "Innodb_data_read", "Innodb_data_reads")


def run(words: Sequence[str | Path], text: str = "") -> str:
    done = subprocess.run(
        [str(word) for word in words],
        input=text,
        env=environment(),
        text=True,
        capture_output=True,
        timeout=80,
        check=False,
    )
    assert done.returncode == 0, (words, done.stderr)
    return done.stdout


@dataclass
class Server:
    pid: int
    client: list[str]

    def ask(self, text: str) -> str:
        return run(self.client, text)

    def counters(self) -> dict[str, int]:
        rows = (line.split() for line in self.ask("SHOW GLOBAL STATUS LIKE 'Innodb%read%';").splitlines())
        return {name: int(value) for name, value in rows if name in COUNTERS}


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Data beside the build: a temporary directory may be in memory, where O_DIRECT reads nothing."""
    path = MEMTOLL.parent / "database"
    run(["rm", "-rf", path])
    with noted("directory", path):
        path.mkdir()
        yield path


def options_of(directory: Path, pool: int) -> list[str]:
    return [
        "--no-defaults",
        "--user=root",
        f"--datadir={directory}/data",
        f"--socket={directory}/s",
        f"--pid-file={directory}/pid",
        "--skip-networking",
        "--performance-schema=0",
        f"--innodb-buffer-pool-size={pool}",
        "--innodb-flush-method=O_DIRECT",
        "--innodb-flush-log-at-trx-commit=0",
        "--innodb-doublewrite=0",
        "--innodb-buffer-pool-dump-at-shutdown=0",
        "--innodb-buffer-pool-load-at-startup=0",
        # A page that was just read may become a young one at once: else only 3/8 of the pool are an LRU list
        # for whatever is read within a second, and a short test would measure that part.
        "--innodb-old-blocks-time=0",
        # Pages that it keeps free besides: 1536 by default, more than the smallest pool here has.
        "--innodb-lru-scan-depth=100",
    ]


def answers(client: Sequence[str]) -> bool:
    words = [*client, "-e", "SELECT 1"]
    return subprocess.run(words, env=environment(), capture_output=True, timeout=20, check=False).returncode == 0


@contextmanager
def mariadb(
    directory: Path,
    pool: int,
    cgroup: Path | None = None,
    tracer: Sequence[str | Path] = (),
    options: Sequence[str] = (),
) -> Iterator[Server]:
    """The server, in a cgroup and traced from its start where asked for."""
    client = [tool("mariadb"), "--no-defaults", "-N", "-S", f"{directory}/s", "-u", "root"]
    command: list[str | Path] = [tool("mariadbd"), *options_of(directory, pool), *options]
    if cgroup:
        command = [*in_cgroup(cgroup, *command)]
    quiet: dict[str, Any] = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    process = spawn([*tracer, *command], **quiet)
    try:
        wait_until(lambda: answers(client), "the server's first answer", every=0.1)
        yield Server(int((directory / "pid").read_text()), client)
        client_pid = int((directory / "pid").read_text())
        subprocess.run(["kill", str(client_pid)], check=True, timeout=60)
        process.wait(timeout=60)
    finally:
        end(process)


@contextmanager
def slowed(pid: int) -> Iterator[None]:
    """So many reads a second from the disk: each that is not in the pool is then most of a query's time."""
    with ExitStack() as stack:
        cgroup = slow_disk(stack, "iops", READS_PER_S)
        (cgroup / "cgroup.procs").write_text(str(pid))
        stack.callback((cgroup.parent / "cgroup.procs").write_text, str(pid))
        yield


@pytest.fixture(scope="module")
def table(directory: Path) -> Path:
    install = [tool("mariadb-install-db"), "--no-defaults", "--user=root", f"--datadir={directory}/data"]
    run([*install, "--auth-root-authentication-method=normal", "--skip-test-db"])
    with mariadb(directory, 256 * MIB) as server:
        server.ask(
            "CREATE DATABASE t; USE t; SET unique_checks=0; SET foreign_key_checks=0;"
            "CREATE TABLE a (id INT PRIMARY KEY, pad CHAR(250) CHARACTER SET latin1 NOT NULL) ENGINE=InnoDB;"
            f"INSERT INTO a SELECT seq, REPEAT(CHAR(97+seq%26),250) FROM seq_1_to_{ROWS};"
        )
    return directory


def queries(order: str, passes: int = 2) -> str:
    """A: each query twice in a row. B: passes. In the server: sent one by one, parsing would outweigh the reads."""
    query = "SELECT pad INTO @pad FROM a WHERE id = i;"
    one = f"SET i = 1; WHILE i < {ROWS} DO {query if order == 'B' else 2 * query} SET i = i + {STEP}; END WHILE;"
    return f"""USE t;
DELIMITER //
BEGIN NOT ATOMIC
DECLARE i INT;
{one if order == "A" else passes * one}
END//
"""


def record_server(out: Path, server: Server, work: str) -> tuple[Recording, dict[str, int]]:
    """What memtoll, and what InnoDB, counted over a piece of work."""
    tracer = start_record(out, "-p", str(server.pid))
    wait_attached(tracer, server.pid)
    # Its probes are in place one after the other; the allocator's come last.
    before = server.counters()
    server.ask(work)
    after = server.counters()
    tracer.send_signal(signal.SIGINT)
    result = finish(tracer)
    assert result.status == 0, result
    return load(out, result), {name: after[name] - before[name] for name in COUNTERS}


def table_row(recording: Recording) -> dict[str, Any]:
    (row,) = (file for file in recording.report["files"] if file["path"].endswith("/data/t/a.ibd"))
    return dict(row)


def advised_pool(recording: Recording) -> int:
    (advice,) = (a for a in recording.report["verdict"]["advice"] if a["code"] == "file-reread")
    match = re.search(r"innodb_buffer_pool_size=(\d+)M ", advice["text"])
    assert match, advice
    return int(match[1]) * MIB


@pytest.mark.parametrize(("order", "factor"), [("A", 1.0), ("B", 2.0)])
def test_two_orders_of_the_same_queries(out: Path, table: Path, order: str, factor: float) -> None:
    with mariadb(table, POOL) as server, slowed(server.pid):
        recording, counted = record_server(out, server, queries(order))
    row = table_row(recording)
    assert row["count"] == pytest.approx(counted["Innodb_buffer_pool_reads"], rel=0.03)
    assert recording.toll("file.read", "bytes") == pytest.approx(counted["Innodb_data_read"], rel=0.03)
    assert row["direct_bytes"] >= 0.99 * row["bytes"]
    assert row["reread_factor"] == pytest.approx(factor, abs=0.1)
    assert recording.toll("file.read", "reread_factor") == pytest.approx(factor, abs=0.1)
    assert recording.dominant == "file"
    sentence = recording.report["verdict"]["sentence"]
    assert row["path"] in sentence
    codes = {advice["code"] for advice in recording.report["verdict"]["advice"]}
    assert recording.report["own_cache"] == [
        {
            "pid": recording.report["target"]["pids"][0],
            "program": "InnoDB",
            "setting": "innodb_buffer_pool_size",
            "bytes": POOL,
            "source": "command line",
        }
    ]
    if order == "A":
        assert "Hardly any of it was read more than once" in sentence
        assert "file-reread" not in codes
        return
    assert "read 2.0 times" in sentence
    assert "file-reread" in codes
    # The proof: with the pool that is advised the second pass reads nothing.
    pool = advised_pool(recording)
    assert 80 * MIB < pool <= 120 * MIB
    with mariadb(table, pool) as server:
        server.ask(queries("B", passes=1))
        before = server.counters()
        server.ask(queries("B"))
        assert server.counters()["Innodb_buffer_pool_reads"] - before["Innodb_buffer_pool_reads"] <= 20


DRAWS: Final = 15_000


def random_queries() -> str:
    """Pages in no order, each as likely as the other, in one statement."""
    row = f"1 + {STEP} * (CONV(SUBSTR(MD5(seq),1,8),16,10) % {ROWS // STEP})"
    return f"USE t; SELECT SUM(LENGTH(pad)) FROM seq_1_to_{DRAWS} STRAIGHT_JOIN a ON a.id = CAST({row} AS SIGNED);"


def test_curve_against_three_pools(out: Path, table: Path) -> None:
    """Reads that larger pools would make, foretold from those that the smallest makes."""
    with mariadb(table, SMALL_POOL) as server:
        recording, counted = record_server(out, server, random_queries())
    assert counted["Innodb_buffer_pool_reads"] > 0.8 * DRAWS
    curve = [(point["cache_bytes"], point["miss_ratio"]) for point in recording.report["miss_ratio_curve"]["files"]]
    for pool in (24 * MIB, 40 * MIB, 56 * MIB):
        # What the pool holds of pages, beside its own bookkeeping.
        ratio = min(ratio for bytes_, ratio in curve if bytes_ <= pool)
        with mariadb(table, pool) as server:
            before = server.counters()
            server.ask(random_queries())
            truth = server.counters()["Innodb_buffer_pool_reads"] - before["Innodb_buffer_pool_reads"]
        assert ratio * counted["Innodb_buffer_pool_reads"] == pytest.approx(truth, rel=0.1), pool // MIB


def ask_swapped_pool(out: Path, table: Path) -> tuple[dict[str, int], int]:
    """Record a server whose pool is larger than its memory: what it read meanwhile, and pages that the kernel did."""
    # In one statement each: parsing many would be most of the work. The limit comes down when the pool is
    # full: reads past the page cache into memory that has to be freed first can be too fast for that.
    one_pass = (
        f"SELECT SUM(LENGTH(pad)) FROM t.seq_0_to_{ROWS // STEP - 1} s STRAIGHT_JOIN t.a ON a.id = 1 + {STEP} * s.seq;"
    )
    with memory_with_swap("zram", 400 * MIB) as cgroup:
        tracer: list[str | Path] = [MEMTOLL, "record", "-o", out, "--overhead-limit", "none", "--"]
        # The first pass is by the page cache, of nobody's in the cgroup: how fast a disk is is not what this is about.
        for file in (table / "data").rglob("*"):
            if file.is_file():
                file.read_bytes()
        before = vmstat()
        with mariadb(table, 160 * MIB, cgroup, tracer, ("--innodb-flush-method=fsync",)) as server:
            server.ask(one_pass)
            wait_until(lambda: set_limit(cgroup, 56 * MIB), "the limit to come down")
            reads = server.counters()
            server.ask(7 * one_pass)
            reads = {name: value - reads[name] for name, value in server.counters().items()}
        return reads, vmstat()["pswpin"] - before["pswpin"]


def test_pool_larger_than_its_memory(tmp_path: Path, table: Path) -> None:
    """Then the pool itself is swapped, and its counters do not show it."""
    for attempt in range(3):
        out = tmp_path / f"{attempt}.memtoll"
        with suppress(OutOfMemory):
            reads, swapped_in = ask_swapped_pool(out, table)
            break
    else:
        pytest.fail("the kernel killed the server each time")
    recording = load(out, memtoll("report", "--full", out))
    assert reads["Innodb_buffer_pool_reads"] <= 100
    assert recording.dominant == "swap"
    # What was read ahead and not used is in the kernel's count alone.
    assert recording.report["checks"]["swapped_in"]["ok"], recording.report["checks"]
    assert 10_000 < recording.toll("swap.in", "pages") <= 1.01 * swapped_in
    sites = [site for site in recording.report["sites"] if site["toll"] == "swap.in"]
    pool = [site for site in sites if site["call"] == "mmap"]
    assert sum(site["bytes"] for site in pool) > 0.7 * sum(site["bytes"] for site in sites)
    sentence = recording.report["verdict"]["sentence"]
    assert "the server's own counters cannot show this" in sentence
    assert "InnoDB keeps a cache of 160 MiB" in sentence
