# SPDX-License-Identifier: GPL-2.0
"""soak.py [HOURS]: watch and top on a machine whose programs start and end: does anything grow, or get lost?

Each few seconds what the watch, the process that answers HTTP, and both tops (of the machine, and of one process) have
in memory and open is noted; of each recording's own process the most, and its rows of processes. At the end: the slope
of memory after the first five minutes (or the first third), descriptors, rows of processes that ended, BPF objects that
are left, losses, gaps, and how fast Redis and MariaDB were before, meanwhile and after. Exit status 0: flat, whole,
and nothing lost.
MEMTOLL: the binary (default: .output/memtoll).
"""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import socket
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import ExitStack, closing, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from harness import (
    MEMTOLL,
    MIB,
    bpf_objects,
    end,
    environment,
    kernel_objects,
    spawn,
    tool,
    wait_until,
    workload,
)

LOOK_S: Final = 5
SELDOM_S: Final = 20
SETTLE_S: Final = 300
CHURN_S: Final = 0.1  # ten programs a second
SLOPE_MOST: Final = 1 * MIB  # an hour
# A few pages more or less are no slope: of ten minutes they would be one of megabytes an hour.
NOISE: Final = MIB // 4
CHURN: Final = "mtsoak"
BARE_S: Final = 60
GENTLY: Final = ("nice", "-n", "19")
# The watch's own limit, and as much for what its processes take of the machine.
SLOWER: Final = 0.04
# What the budget left unwatched, at most; code that had been mapped a moment before, or that a target has without
# rules for its callers, the stacks of which end there: no record was lost.
BOUNDS: Final = ("maps_unwatched", "reads_passed", "reads_unwatched", "unwind_mapping", "unwind_rule")
# What a process is in when it ends, or a sample finds the kernel itself in: one event each, of a moment's chance.
CHANCES: Final = ("return_missed", "thread_state")
CHANCE: Final = 1e-4  # of the processes that were started
# Ten programs a second are 600 in a recording; those that run at once, and ended in the last slices, are few.
ROWS_MOST: Final = 200
# What allocates now and then, and pays little for being looked at.
ONE: Final = """
import time
while True:
    bytearray(1 << 20)
    time.sleep(0.005)
"""
# So many of a process's figures are printed.
SHOWN: Final = 12


@dataclass
class Series:
    """What one process had over time, or the most that each in a row of processes had."""

    times: list[float] = field(default_factory=list)
    values: list[int] = field(default_factory=list)

    def add(self, at: float, value: int) -> None:
        self.times.append(at)
        self.values.append(value)

    def after(self, at: float) -> Series:
        kept = [(t, v) for t, v in zip(self.times, self.values) if t >= at]
        return Series([t for t, _ in kept], [v for _, v in kept])

    def slope(self) -> float:
        """By least squares, an hour."""
        if len(self.times) < 2:
            return 0.0
        middle = sum(self.times) / len(self.times)
        mean = sum(self.values) / len(self.values)
        over = sum((t - middle) * (v - mean) for t, v in zip(self.times, self.values))
        return 3600 * over / max(sum((t - middle) ** 2 for t in self.times), 1e-9)

    def has_risen(self, by: int) -> bool:
        """The least of the second half: what is open for a while, and not always, is no leak."""
        half = len(self.values) // 2
        return half > 0 and min(self.values[half:]) > min(self.values[:half]) + by

    def text(self, unit: int = 1) -> str:
        """In the order of time, and the most."""
        if not self.values:
            return "none"
        shown = self.values[:: max(1, len(self.values) // SHOWN)]
        return f"{' '.join(str(value // unit) for value in shown)}, most {max(self.values) // unit}"


def resident(pid: int) -> int:
    """Memory of its own."""
    for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
        if line.startswith("Private_Dirty:"):
            return int(line.split()[1]) << 10
    return 0


def processes_known(pid: int) -> int:
    """Rows of the table of targets in a recording's process."""
    held = set()
    for info in Path(f"/proc/{pid}/fdinfo").iterdir():
        with suppress(OSError):
            held |= {int(number) for number in re.findall(r"^map_id:\s*(\d+)", info.read_text(), re.M)}
    for table in bpftool("map", "show"):
        if table["id"] in held and table.get("name") == "processes":
            return len(bpftool("map", "dump", "id", str(table["id"])))
    return 0


def bpftool(*words: str) -> list[dict[str, Any]]:
    done = subprocess.run([tool("bpftool"), "-j", *words], capture_output=True, timeout=60, check=False)
    return list(json.loads(done.stdout)) if done.returncode == 0 else []


def descriptors(pid: int) -> int:
    return sum(1 for _ in Path(f"/proc/{pid}/fd").iterdir())


def listens(pid: int, place: Path) -> bool:
    """By what it has in place of a standard output; others inherit the socket for a moment."""
    sockets = {f"socket:[{words[6]}]" for words in unix_sockets() if words[7:] == [str(place)]}
    return str(Path(f"/proc/{pid}/fd/1").readlink()) in sockets


def unix_sockets() -> list[list[str]]:
    return [line.split() for line in Path("/proc/net/unix").read_text().splitlines()[1:]]


def children(pid: int) -> list[int]:
    return [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def processor_s(pid: int) -> float:
    """Its own, and that of the children that it has waited for."""
    words = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return sum(int(word) for word in words[11:15]) / os.sysconf("SC_CLK_TCK")


def churn(program: Path, over: threading.Event, started: list[int]) -> None:
    """`started`: the processes' numbers."""
    running: list[subprocess.Popen[bytes]] = []
    while not over.wait(CHURN_S):
        running = [process for process in running if process.poll() is None]
        if len(running) < 32:
            words = [str(program), str(200 << 10), "53", "--rest", "2000"]
            running.append(subprocess.Popen(words, stdout=subprocess.DEVNULL, env=environment()))
            started.append(running[-1].pid)
    for process in running:
        process.wait(timeout=60)


def answers(words: list[str]) -> bool:
    return not subprocess.run(words, capture_output=True, timeout=300, check=False).returncode


def run(words: list[str]) -> None:
    subprocess.run(words, capture_output=True, timeout=300, check=True)


class Redis:
    """Loaded by its own benchmark; its count of commands is the witness of what it gets done."""

    name: Final = "redis-server"

    def __init__(self, stack: ExitStack, place: Path) -> None:
        self.path, server = str(place / "redis"), place / self.name
        # One executable; which of its programs it is depends on its name.
        server.symlink_to(Path(tool("redis-check-rdb")).resolve())
        words: list[str | Path] = [server, "--port", "0", "--unixsocket", self.path, "--save", "", "--appendonly", "no"]
        words += ["--maxmemory", "64mb", "--maxmemory-policy", "allkeys-lru"]
        stack.callback(end, spawn(words, stdout=subprocess.DEVNULL))
        wait_until(lambda: self.done() is not None, "Redis")
        words = [*GENTLY, tool("redis-benchmark"), "-s", self.path, "-t", "set,get", "-c", "2", "-d", "4096"]
        self.load = spawn([*words, "-r", "20000", "-l", "-q"], stdout=subprocess.DEVNULL)
        stack.callback(end, self.load)

    def done(self) -> int | None:
        with suppress(OSError), socket.socket(socket.AF_UNIX) as client:
            client.settimeout(LOOK_S)
            client.connect(self.path)
            client.sendall(b"INFO stats\r\n")
            found = re.search(rb"total_commands_processed:(\d+)", client.recv(65536))
            return int(found[1]) if found else None
        return None


class MariaDB:
    """Loaded by a client that reads ranges and changes rows; the witness counts the answers that it had."""

    name: Final = "mariadbd"
    ROWS: Final = 200_003

    def __init__(self, stack: ExitStack, place: Path) -> None:
        server, client, install = (tool(name) for name in ("mariadbd", "mariadb", "mariadb-install-db"))
        data, path = place / "database", place / "mariadb"
        run([install, "--no-defaults", "--user=root", f"--datadir={data}"])
        options = ["--skip-networking", "--innodb-buffer-pool-size=16M", "--innodb-flush-log-at-trx-commit=0"]
        words = [server, "--no-defaults", "--user=root", f"--datadir={data}", f"--socket={path}", *options]
        stack.callback(end, spawn(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL))
        words = [client, "--no-defaults", "-N", "-S", str(path), "-u", "root", "--unbuffered"]
        wait_until(lambda: answers([*words, "-e", "SELECT 1"]), "MariaDB")
        fill = (
            "CREATE DATABASE soak; CREATE TABLE soak.t (id INT PRIMARY KEY, v CHAR(100));"
            f" INSERT INTO soak.t SELECT seq, REPEAT('x', 100) FROM soak.seq_1_to_{self.ROWS};"
        )
        run([*words, "-e", fill])
        self.answers = 0
        self.client = spawn([*GENTLY, *words, "soak"], stdin=subprocess.PIPE, stderr=None)
        stack.callback(end, self.client)
        threading.Thread(target=self._load, daemon=True).start()

    def _load(self) -> None:
        asked, answers = self.client.stdin, self.client.stdout
        assert asked and answers
        # Until the client is ended.
        with suppress(OSError, ValueError):
            while True:
                first = 1 + 7919 * self.answers % self.ROWS
                asked.write(f"UPDATE t SET v = REPEAT('y', 100) WHERE id = {first};\n")
                asked.write(f"SELECT COUNT(v) FROM t WHERE id BETWEEN {first} AND {first + 997};\n")
                asked.flush()
                if not answers.readline():
                    break
                self.answers += 1

    def done(self) -> int:
        return self.answers


@dataclass
class Pace:
    """What a server got done, by phase: rates between two looks."""

    server: Redis | MariaDB
    rates: dict[str, list[float]] = field(default_factory=dict)
    last: tuple[str, float, int] | None = None

    def look(self, phase: str) -> None:
        done = self.server.done()
        now = time.monotonic()
        if self.last and done is not None and self.last[0] == phase:
            self.rates.setdefault(phase, []).append((done - self.last[2]) / (now - self.last[1]))
        self.last = (phase, now, done) if done is not None else None

    def judge(self) -> list[str]:
        """Against before and after: what these two differ by is the machine's."""
        if any(phase not in self.rates for phase in ("before", "during", "after")):
            return [f"{self.server.name}: nothing to compare its speed with"]
        before, during, after = (statistics.median(self.rates[phase]) for phase in ("before", "during", "after"))
        bare, spread = (before + after) / 2, abs(before - after) / max(before, after)
        print(
            f"{self.server.name}: {before:.0f} a second before, {during:.0f} while it was watched,"
            f" {after:.0f} after: {during / bare:.3f} of it"
        )
        return (
            [f"{self.server.name} is slower by more than {SLOWER:.0%}"] if during < bare * (1 - SLOWER - spread) else []
        )


@dataclass
class Looks:
    """At everything that runs for long; workers: the recordings' processes, each by its most. http: what the one that
    answers listens on: by its few descriptors alone a worker that begins or ends would be taken for it.
    """

    watch: int
    tops: dict[str, int]
    http: Path
    memory: dict[str, Series] = field(default_factory=dict)
    open: dict[str, Series] = field(default_factory=dict)
    workers: dict[int, int] = field(default_factory=dict)
    rows: list[int] = field(default_factory=list)
    objects: dict[str, set[int]] = field(default_factory=lambda: {"prog": set(), "link": set()})
    looked_s: float = -SELDOM_S

    def note_objects(self, held: dict[str, set[int]]) -> None:
        for kind, numbers in held.items():
            self.objects[kind] |= numbers

    def look(self, at: float) -> None:
        lasting = {"watch": self.watch, **self.tops}
        # What asks the kernel for all its objects is dear, and would be taken for the tracer's cost.
        seldom = at - self.looked_s >= SELDOM_S
        self.looked_s = at if seldom else self.looked_s
        for pid in self.tops.values() if seldom else ():
            self.note_objects(bpf_objects(pid))
        for pid in children(self.watch):
            with suppress(OSError):
                held = bpf_objects(pid)
                self.note_objects(held)
                if held["prog"]:
                    if seldom:
                        self.rows.append(processes_known(pid))
                    self.workers[pid] = max(self.workers.get(pid, 0), resident(pid))
                elif listens(pid, self.http):
                    lasting["http"] = pid
        for name, pid in lasting.items():
            self.memory.setdefault(name, Series()).add(at, resident(pid))
            self.open.setdefault(name, Series()).add(at, descriptors(pid))


def metric(path: Path, name: str) -> dict[str, float]:
    found = {}
    for line in path.read_text().splitlines():
        if line.startswith(f"memtoll_{name}"):
            key, _, value = line.rpartition(" ")
            found[key] = float(value)
    return found


def faults_of_recordings(directory: Path) -> list[str]:
    wrong = []
    for path in sorted(directory.glob("watch-*.memtoll")):
        with closing(sqlite3.connect(path)) as database:
            if database.execute("SELECT value FROM meta WHERE key = 'complete'").fetchall() != [("1",)]:
                wrong.append(f"{path.name} is not whole")
    return wrong


def judge(looks: Looks, metrics: Path, directory: Path, settled_s: float, started: int) -> list[str]:
    wrong = faults_of_recordings(directory)
    for name, series in looks.memory.items():
        later = series.after(settled_s)
        hours = (later.times[-1] - later.times[0]) / 3600 if later.times else 0
        grown = later.slope() * hours
        print(f"{name}: private memory {series.text(1 << 10)} KiB, {later.slope() / MIB:+.2f} MiB an hour")
        if grown > max(SLOPE_MOST * hours, NOISE):
            wrong.append(f"{name} grows by {later.slope() / MIB:.1f} MiB an hour")
    for name, series in looks.open.items():
        later = series.after(settled_s)
        print(f"{name}: descriptors {series.text()}")
        if later.has_risen(2):
            wrong.append(f"{name} keeps descriptors")
    most = list(looks.workers.values())
    print(f"recordings: {len(most)}, private memory of each at most (MiB):", *(f"{value / MIB:.1f}" for value in most))
    # The first one has no prices yet, the last is short.
    if len(most) > 4 and max(most[-3:-1]) > max(most[1:3]) * 1.2 + MIB:
        wrong.append("a recording takes more than those before it")
    print(f"rows of processes: most {max(looks.rows, default=0)}")
    if max(looks.rows, default=0) > ROWS_MOST:
        wrong.append("rows of processes that have ended stay")
    left = {kind: numbers & kernel_objects(kind) for kind, numbers in looks.objects.items()}
    print("BPF objects:", *(f"{len(numbers)} of kind {kind}" for kind, numbers in looks.objects.items()))
    if any(left.values()):
        wrong.append(f"left in the kernel: {left}")
    for name in ("losses_total", "unwatched_seconds_total", "recording_failures_total"):
        values = metric(metrics, name)
        print(name, values or "none")
        if sum(value for key, value in values.items() if not any(named in key for named in (*BOUNDS, *CHANCES))):
            wrong.append(f"{name}: {values}")
        chances = sum(value for key, value in values.items() if any(named in key for named in CHANCES))
        if chances > max(1, CHANCE * started):
            wrong.append(f"{name}: {values}, of {started} processes")
    overhead = metric(metrics, "overhead_seconds_total")
    observed = metric(metrics, "observed_seconds_total")
    for (name, cost), spent in zip(overhead.items(), observed.values()):
        print(f"{name}: {100 * cost / max(cost + spent, 1e-9):.1f} % of its time")
    return wrong


def look_at_paces(paces: list[Pace], phase: str, seconds: float) -> None:
    began = time.monotonic()
    while time.monotonic() - began < seconds:
        for pace in paces:
            pace.look(phase)
        time.sleep(LOOK_S)


def soak(hours: float) -> list[str]:
    seconds = 3600 * hours
    settled_s = min(SETTLE_S, seconds / 3)
    with ExitStack() as stack:
        place = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="memtoll-soak-")))
        directory, metrics = place / "kept", place / "memtoll.prom"
        program = Path(shutil.copy(workload("calloc_loop"), place / CHURN))
        over = threading.Event()
        started: list[int] = []
        churning = threading.Thread(target=churn, args=(program, over, started))
        stack.callback(churning.join)
        stack.callback(over.set)
        churning.start()
        redis, mariadb = Redis(stack, place), MariaDB(stack, place)
        paces = [Pace(redis), Pace(mariadb)]
        look_at_paces(paces, "before", min(BARE_S, seconds / 5))
        words: list[str | Path] = [MEMTOLL, "watch", "-n", CHURN, "-o", directory, "--metrics", metrics, "-I", "5s"]
        words += ["--rotate", "1m", "--keep", "64M", "--listen", f"unix:{place}/http"]
        for pace in paces:
            words += ["-n", pace.server.name]
        watch = spawn(words, stderr=None, stdout=None)
        stack.callback(end, watch)
        tops = {}
        # Of one that no other memtoll traces, and whose speed is not looked at: top has a budget of its own.
        one = spawn(["/usr/bin/python3", "-c", ONE], stdout=subprocess.DEVNULL)
        stack.callback(end, one)
        for name, of in (("top of all", ["--all"]), ("top of one", ["-p", str(one.pid)])):
            words = [MEMTOLL, "top", *of, "--batch", "-I", "5s"]
            tops[name] = spawn(words, stdout=subprocess.DEVNULL, stderr=None)
            stack.callback(end, tops[name])
        looks = Looks(watch.pid, {name: top.pid for name, top in tops.items()}, place / "http")
        began = time.monotonic()
        while (at := time.monotonic() - began) < seconds:
            assert watch.poll() is None, "the watch has ended"
            for name, top in tops.items():
                assert top.poll() is None, f"{name} has ended"
            looks.look(at)
            for pace in paces:
                pace.look("during")
            time.sleep(LOOK_S)
        print(f"watch: {processor_s(watch.pid) / seconds:.3f} of a processor")
        watch.send_signal(signal.SIGTERM)
        assert watch.wait(timeout=120) == 0
        for top in tops.values():
            end(top)
        look_at_paces(paces, "after", min(BARE_S, seconds / 5))
        wrong = judge(looks, metrics, directory, settled_s, len(started))
        kept = sum(path.stat().st_blocks * 512 for path in directory.iterdir())
        print(f"kept: {len(list(directory.glob('*.memtoll')))} recordings, {kept / MIB:.1f} MiB")
        if kept > 64 * MIB:
            wrong.append("more is kept than --keep says")
        for pace in paces:
            wrong += pace.judge()
        return wrong


if __name__ == "__main__":
    # What was started is ended by whatever ends this.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    found = soak(float(sys.argv[1]) if len(sys.argv) > 1 else 1.0)
    for line in found:
        print("WRONG:", line)
    sys.exit(1 if found else 0)
