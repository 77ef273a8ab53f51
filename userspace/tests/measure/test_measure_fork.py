# SPDX-License-Identifier: GPL-2.0
"""What forks of a large process take, against Redis, which times its own: latest_fork_usec."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from harness import end, environment, finish, load, spawn, start_record, tool, wait_slices, wait_until
from measuring import Bound, settle

pytestmark = [pytest.mark.root, pytest.mark.measure, pytest.mark.machine]

FORKS = 41
KEYS, KEY_BYTES = 700_001, 1009  # nine tenths of a gigabyte


@dataclass
class Redis:
    pid: int
    client: list[str]

    def ask(self, *words: str) -> str:
        done = subprocess.run(
            [*self.client, *words], env=environment(), text=True, capture_output=True, timeout=80, check=True
        )
        return done.stdout

    def told(self, section: str, name: str) -> int:
        rows = dict(line.split(":", 1) for line in self.ask("INFO", section).splitlines() if ":" in line)
        return int(rows[name])

    def fork_once(self) -> int:
        """A snapshot that ends as soon as it has begun: what the fork took by the server's clock, in microseconds."""
        self.ask("BGSAVE")
        children = Path(f"/proc/{self.pid}/task/{self.pid}/children").read_text().split()
        for child in children:
            # The server takes this signal for no failure.
            os.kill(int(child), signal.SIGUSR1)
        wait_until(lambda: self.told("persistence", "rdb_bgsave_in_progress") == 0, "the snapshot's end", every=0.02)
        return self.told("stats", "latest_fork_usec")


@contextmanager
def redis(directory: Path) -> Iterator[Redis]:
    # One executable; which of its programs it is depends on its name.
    program, socket = directory / "redis-server", directory / "socket"
    program.symlink_to(Path(tool("redis-check-rdb")).resolve())
    options = ["--port", "0", "--unixsocket", str(socket), "--save", "", "--enable-debug-command", "yes"]
    client = [tool("redis-cli"), "-s", str(socket)]
    process = spawn([program, *options], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd=directory)
    server = Redis(process.pid, client)
    try:
        wait_until(lambda: socket.exists() and server.ask("PING") == "PONG\n", "the server's first answer", every=0.1)
        yield server
    finally:
        end(process)


def test_forks_take_what_the_server_says(public_dir: Path) -> None:
    with redis(public_dir) as server:
        server.ask("DEBUG", "POPULATE", str(KEYS), "key", str(KEY_BYTES))
        runs = 0

        def once() -> Mapping[str, float]:
            nonlocal runs
            runs += 1
            path = public_dir / f"{runs}.memtoll"
            tracer = start_record(path, "-p", str(server.pid), "--probes", "faults,mappings,samples", "-d", "10m")
            wait_slices(path, 1)
            took = sum(server.fork_once() for _ in range(FORKS)) / 1e6
            tracer.send_signal(signal.SIGINT)
            recording = load(path, finish(tracer))
            ((said,),) = recording.query("SELECT forked_ns / 1e9 FROM populate_measure")
            print(f"said {said:.3f} s, took {took:.3f}")
            return {"said, took": said / took}

        settle(once, {"said, took": Bound(0.7, 1.4)}, 90)
