# SPDX-License-Identifier: GPL-2.0
"""What is measured: operations of a small program, and whole programs under a load."""

from __future__ import annotations

import os
import random
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import tools

from harness import MIB, SOURCES, Program, end, environment, spawn, tool, wait_until, workload

CACHED_BYTES: Final = 41 * MIB
CONNECTIONS_PER_SECOND: Final = 100


@dataclass(frozen=True)
class Cost:
    """Of one unit of work: the traced process's CPU time, and the time that went by."""

    cpu_ns: float
    wall_ns: float

    def mean(self, other: Cost) -> Cost:
        return Cost((self.cpu_ns + other.cpu_ns) / 2, (self.wall_ns + other.wall_ns) / 2)


@dataclass(frozen=True)
class Target:
    """A running process: who it is, and a piece of work that it does and tells the cost of."""

    pid: int
    work: Callable[[float], Cost]  # of about so many seconds
    workers: tuple[int, ...] = ()  # children that do it


# Starts the process anew, behind what a contender puts before its command, with a directory for its files.
Start = Callable[[list[str], Path], AbstractContextManager[Target]]


@dataclass(frozen=True)
class Line:
    name: str
    unit: str
    start: Start
    contenders: tuple[str, ...]
    seconds: float  # of one run
    again: tuple[str, ...] = ()  # these AGAIN times more in each round, between bare runs: their difference is small


def told(program: Program) -> Target:
    """A workload that works for as many milliseconds as it is told, and says what that has cost."""

    def work(seconds: float) -> Cost:
        stdin, before = program.process.stdin, len(program.lines)
        assert stdin
        begun = time.monotonic_ns()
        stdin.write(f"{int(seconds * 1000)}\n")
        stdin.flush()
        wait_until(lambda: len(program.lines) > before, "the end of the work", 60)
        line = program.lines[-1]
        wall = (time.monotonic_ns() - begun) / line["ops"]
        return Cost(line["ops_cpu_ns"] / line["ops"], wall)

    return Target(int(program.lines[0]["pid"]), work, tuple(program.lines[0].get("workers", ())))


def price(kind: str, threads: int = 1) -> Start:
    @contextmanager
    def start(prefix: list[str], _scratch: Path) -> Iterator[Target]:
        with Program(*prefix, workload("price"), kind, str(threads)) as program:
            yield told(program)

    return start


def load(kind: str) -> Start:
    """Reads, faults and processes: what never is an allocator's call."""

    @contextmanager
    def start(prefix: list[str], scratch: Path) -> Iterator[Target]:
        file = scratch / "cached.bin"
        if not file.exists():
            file.write_bytes(bytes(CACHED_BYTES))
        with Program(*prefix, workload("loads"), kind, file) as program:
            yield told(program)

    return start


def python_load(kind: str) -> Start:
    @contextmanager
    def start(prefix: list[str], scratch: Path) -> Iterator[Target]:
        with Program(*prefix, "/usr/bin/python3", SOURCES / "loads.py", kind, scratch) as program:
            yield told(program)

    return start


PYTHON_JOB: Final = """
import json, os, sys, time
def job():
    rows = [{"name": "n%d" % i, "values": list(range(i % 97))} for i in range(2003)]
    back = json.loads(json.dumps(rows))
    back.sort(key=lambda row: len(row["values"]))
    return len(back)
job()
print(json.dumps({"pid": os.getpid()}), flush=True)
for line in sys.stdin:
    until, done = time.monotonic() + int(line) / 1000, 0
    cpu, wall = time.process_time_ns(), time.monotonic_ns()
    while time.monotonic() < until:
        done += job()
    cpu, wall = time.process_time_ns() - cpu, time.monotonic_ns() - wall
    print(json.dumps({"cpu": cpu / done, "wall": wall / done}), flush=True)
"""


@contextmanager
def python(prefix: list[str], _scratch: Path) -> Iterator[Target]:
    with Program(*prefix, "/usr/bin/python3", "-c", PYTHON_JOB) as program:

        def work(seconds: float) -> Cost:
            stdin, before = program.process.stdin, len(program.lines)
            assert stdin
            stdin.write(f"{int(seconds * 1000)}\n")
            stdin.flush()
            wait_until(lambda: len(program.lines) > before, "the end of the work", 60)
            return Cost(program.lines[-1]["cpu"], program.lines[-1]["wall"])

        yield Target(int(program.lines[0]["pid"]), work)


def loaded(pid: int, load: Callable[[int], None], per_second: int) -> Callable[[float], Cost]:
    """A server's work: requests for about so long, what one costs it, how long it takes.

    per_second: a guess for the first run. Then it is known from the run before: had a run half the time that it is
    meant to have, the budget would not have settled after the first, nor a window come in the second.
    """
    rate = float(per_second)

    def work(seconds: float) -> Cost:
        nonlocal rate
        requests = max(int(seconds * rate), 100)
        cpu, wall = tools.cpu_ns(pid), time.monotonic_ns()
        load(requests)
        cpu, wall = tools.cpu_ns(pid) - cpu, time.monotonic_ns() - wall
        rate = requests / wall * 1e9
        return Cost(cpu / requests, wall / requests)

    return work


def answers(command: list[str]) -> bool:
    done = subprocess.run(command, capture_output=True, timeout=30, env=environment(), check=False)
    return done.returncode == 0


@contextmanager
def redis(prefix: list[str], scratch: Path) -> Iterator[Target]:
    # One executable; which of its programs it is depends on its name.
    program, socket = scratch / "redis-server", scratch / "redis.socket"
    if not program.exists():
        program.symlink_to(Path(tool("redis-check-rdb")).resolve())
    socket.unlink(missing_ok=True)
    options = ["--port", "0", "--unixsocket", str(socket), "--save", "", "--appendonly", "no", "--daemonize", "no"]
    client = [tool("redis-cli"), "-s", str(socket)]
    server = spawn([*prefix, program, *options], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd=scratch)
    try:
        wait_until(lambda: answers([*client, "ping"]), "redis-server")
        info = dict(line.split(":", 1) for line in tools.run([*client, "info", "server"]).split("\n") if ":" in line)

        def load(requests: int) -> None:
            bench = [tool("redis-benchmark"), "-s", str(socket), "-q", "-r", "4999", "-c", "10", "-t", "set,get"]
            tools.run([*bench, "-d", "101", "-n", str(requests // 2)])

        yield Target(int(info["process_id"]), loaded(int(info["process_id"]), load, 40000))
    finally:
        end(server)


ROWS: Final = 5003


@contextmanager
def mariadb(prefix: list[str], scratch: Path) -> Iterator[Target]:
    data, socket = scratch / "mariadb", scratch / "mariadb.socket"
    client = [tool("mariadb"), "--no-defaults", "-S", str(socket), "-u", "root"]
    fresh = not data.exists()
    if fresh:
        install = [tool("mariadb-install-db"), "--no-defaults", "--user=root", f"--datadir={data}"]
        tools.run([*install, "--auth-root-authentication-method=normal", "--skip-test-db"])
    pidfile = scratch / "mariadb.pid"
    options = [f"--datadir={data}", f"--socket={socket}", f"--pid-file={pidfile}", "--skip-networking"]
    command = [*prefix, tool("mariadbd"), "--no-defaults", "--user=root", *options]
    server = spawn(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        wait_until(lambda: socket.exists() and answers([*client, "-e", "SELECT 1"]), "mariadbd", 40)
        if fresh:
            columns = "id INT PRIMARY KEY, k INT, s VARCHAR(200), KEY(k)"
            rows = f"SELECT seq, seq*7919%1009, REPEAT(CHAR(97+seq%26),101) FROM seq_1_to_{ROWS}"
            tools.run(client, f"CREATE DATABASE t; USE t; CREATE TABLE a ({columns}); INSERT INTO a {rows};")
        pid = int(pidfile.read_text())
        numbers = random.Random(7)

        def load(requests: int) -> None:
            ids = (numbers.randrange(1, ROWS) for _ in range(requests))
            tools.run([*client, "t"], "".join(f"SELECT s FROM a WHERE id={i} OR k={i % 1009};\n" for i in ids))

        yield Target(pid, loaded(pid, load, 2500))
    finally:
        end(server)


@contextmanager
def postgresql(prefix: list[str], scratch: Path) -> Iterator[Target]:
    """A process for each connection, which makes its own cache of the catalogue first."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin"))
    assert found, "PostgreSQL is not installed"
    programs, data = found[-1], scratch / "postgresql"
    as_nobody = ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups"]
    if not data.exists():
        data.mkdir()
        tools.run(["chown", "65534:65534", data])
        options = ["-D", str(data), "-U", "t", "--no-sync", "-A", "trust", "--no-locale"]
        tools.run([*as_nobody, programs / "initdb", *options])
    settings = ["-c", "listen_addresses=", "-c", f"unix_socket_directories={data}", "-c", "fsync=off"]
    command = [*prefix, *as_nobody, str(programs / "postgres"), "-D", str(data), *settings]
    server = spawn(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    client = [str(programs / "psql"), "-h", str(data), "-U", "t", "-d", "postgres", "-X", "-q", "-t"]
    try:
        wait_until(lambda: answers([*client, "-c", "SELECT 1"]), "postgres", 40)
        pid = int((data / "postmaster.pid").read_text().split()[0])

        def cpu_ns() -> int:
            """Its own, and that of the children that it has waited for."""
            fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
            return sum(map(int, fields[11:15])) * 1_000_000_000 // os.sysconf("SC_CLK_TCK")

        def connect(count: int) -> None:
            bench = [str(programs / "pgbench"), "-h", str(data), "-U", "t", "-n", "-C", "-c", "1", "-t", str(count)]
            tools.run([*bench, "-f", "/dev/stdin", "postgres"], "SELECT COUNT(*) FROM pg_class;\n")

        def work(seconds: float) -> Cost:
            count = max(int(seconds * CONNECTIONS_PER_SECOND), 3)
            cpu, wall = cpu_ns(), time.monotonic_ns()
            connect(count)
            return Cost((cpu_ns() - cpu) / count, (time.monotonic_ns() - wall) / count)

        yield Target(pid, work)
    finally:
        end(server)


ALL: Final = (tools.BARE, tools.DEFAULT, tools.FULL, tools.MEMLEAK, tools.BPFTRACE, tools.HEAPTRACK, tools.PERF_TRACE)
CALLS: Final = (
    tools.BARE,
    tools.FLOOR_ENTRY,
    tools.FLOOR,
    tools.UNWALKED,
    tools.FULL,
    tools.DEFAULT,
    tools.MEMLEAK,
    tools.BPFTRACE,
    tools.HEAPTRACK,
)
THREADS: Final = (tools.BARE, tools.FLOOR, tools.FULL)
STARTS: Final = (tools.BARE, tools.DEFAULT, tools.COMMAND)
FAULTS: Final = (tools.BARE, tools.FULL, tools.DEFAULT, tools.BPFTRACE, tools.PERF_TRACE)

HELD: Final = (tools.BARE, tools.FULL, tools.DEFAULT)

AGAIN: Final = 6
AGAINST_BARE: Final = (tools.DEFAULT,)
AGAINST_EMPTY: Final = (tools.FLOOR, tools.UNWALKED)

LINES: Final = (
    Line("malloc and free", "pair", price("pair"), CALLS, 1.0, AGAINST_EMPTY),
    Line("malloc and free, 16 threads", "pair", price("pair", 16), THREADS, 1.0),
    Line("calloc", "call", price("calloc"), CALLS, 1.0),
    Line("first touch of a page", "fault", price("fault"), FAULTS, 1.0),
    Line("a thread, made and waited for", "thread", price("thread"), STARTS, 1.0, AGAINST_BARE),
    Line("a process, forked and waited for", "process", price("fork"), STARTS, 1.0, AGAINST_BARE),
    Line("a program, spawned and waited for", "process", price("spawn"), STARTS, 1.0, AGAINST_BARE),
    Line("fault storm", "page", price("storm"), ALL, 2.0, AGAINST_BARE),
    Line("redis-server", "request", redis, ALL, 2.0, AGAINST_BARE),
    Line("Python, JSON", "row", python, ALL, 2.0, AGAINST_BARE),
    Line("mariadbd", "query", mariadb, ALL, 2.0, AGAINST_BARE),
    # What no probe can be detached for: one in so many is looked at.
    Line("pread of a cached file", "read", load("pread"), HELD, 1.0, AGAINST_BARE),
    Line("random first touch", "fault", load("random"), HELD, 1.0, AGAINST_BARE),
    Line("random reads of a mapped file", "look", load("mapped"), HELD, 1.0, AGAINST_BARE),
    Line("mappings of a page", "mapping", load("maps"), HELD, 1.0, AGAINST_BARE),
    Line("a child that writes", "child", load("fork"), HELD, 1.0, AGAINST_BARE),
    Line("a child for each connection", "connection", load("accept"), HELD, 1.0, AGAINST_BARE),
    Line("five children that were forked before", "request", load("prefork"), HELD, 1.0, AGAINST_BARE),
    Line("SQLite, scan of cached pages", "scan", python_load("scan"), HELD, 2.0, AGAINST_BARE),
    Line("numpy, random reads of a memmap", "look", python_load("memmap"), HELD, 1.0, AGAINST_BARE),
    Line("Python, a mapping at each call", "call", python_load("maps"), HELD, 1.0, AGAINST_BARE),
    Line("PostgreSQL, short connections", "connection", postgresql, HELD, 2.0, AGAINST_BARE),
)
