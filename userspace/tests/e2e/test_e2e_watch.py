# SPDX-License-Identifier: GPL-2.0
"""memtoll watch: recordings one after the other without a gap, metrics that a parser takes, a closer look."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import urllib.error
import urllib.request
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families

from harness import (
    MEMTOLL,
    NOBODY,
    ROOT,
    Program,
    bpf_objects,
    changed_text,
    finish,
    integrity,
    query,
    spawn,
    tool,
    wait_until,
    workload,
)
from shape import TOLLS

pytestmark = pytest.mark.root

CALLS = 2503
BLOCK = 200 << 10


class Metrics:
    """The collector's file, read again and again: counters never fall."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.counters: dict[Any, float] = {}
        self.names: set[str] = set()

    def take(self, text: str) -> dict[Any, float]:
        samples: dict[Any, float] = {}
        for family in text_string_to_metric_families(text):
            assert family.name.startswith("memtoll_") and family.documentation, family.name
            for sample in family.samples:
                key = (sample.name, *sorted(sample.labels.items()))
                assert key not in samples
                samples[key] = sample.value
                self.names.add(sample.name)
                if family.type == "counter":
                    assert sample.value >= self.counters.get(key, 0), f"{key} has fallen"
                    self.counters[key] = sample.value
        return samples

    def value(self, name: str, **labels: str) -> float | None:
        if not self.path.exists():
            return None
        return self.take(self.path.read_text()).get((f"memtoll_{name}", *sorted(labels.items())))


def fetch(url: str, method: str = "GET") -> tuple[int, str, str]:
    try:
        with urllib.request.urlopen(urllib.request.Request(url, method=method), timeout=60) as answer:
            return answer.status, answer.headers["Content-Type"], answer.read().decode()
    except urllib.error.HTTPError as refused:
        with refused:
            return refused.code, "", ""


def copy_of(program: str, name: str, directory: Path) -> str:
    shutil.copy(workload(program), directory / name)
    return str(directory / name)


def test_watch(tmp_path: Path, public_dir: Path) -> None:
    first, second = f"mtwa{os.getpid()}", f"mtwb{os.getpid()}"
    directory, log = tmp_path / "kept", tmp_path / "log"
    metrics, lines = Metrics(tmp_path / "memtoll.prom"), tmp_path / "lines"
    (tmp_path / "kept").mkdir()
    (directory / "mine.memtoll").write_text("somebody's")
    command: list[str | Path] = [
        MEMTOLL,
        "watch",
        "-n",
        first,
        "-n",
        second,
        "-o",
        directory,
        "-I",
        "1s",
        "--rotate",
        "1h",
    ]
    command += ["--overhead-limit", "none", "--detail-limit", "none", "--metrics", metrics.path]
    command += [f"--json={lines}", "--listen", "127.0.0.1:0", "--when", "rss.bytes > 1 for 1s", "--detail-for", "1h"]
    with log.open("w") as said, Program(copy_of("calloc_loop", first, public_dir), str(BLOCK), str(CALLS),
                                        "--wait", "--rest", "1000") as program:  # fmt: skip
        watch = spawn(command, stderr=said)
        wait_until(lambda: metrics.value("processes", target=first) == 1, "the first interval")
        program.go()
        with Program(copy_of("sleeper", second, public_dir)):
            wait_until(lambda: metrics.value("processes", target=second) == 1, "a target that has come")
            wait_until(lambda: metrics.value("detailed") == 1, "the detailed recording")
            watch.send_signal(signal.SIGHUP)
            wait_until(lambda: metrics.value("recordings_total", kind="detailed") == 1, "a rotation")
            program.last()
            found = re.search(r"http://127\.0\.0\.1:\d+", log.read_text())
            assert found, log.read_text()
            status, kind, text = fetch(f"{found[0]}/metrics")
            assert (status, kind.split(";")[0]) == (200, "application/openmetrics-text")
            assert Metrics(metrics.path).take(text), "it may be the one before"
            assert [fetch(found[0] + path)[0] for path in ("/", "/etc/passwd")] == [200, 404]
            assert fetch(f"{found[0]}/metrics", "POST")[0] == 405
            watch.send_signal(signal.SIGTERM)
            assert finish(watch).status == 0
    recordings = sorted(directory.glob("watch-*.memtoll"))
    assert ["-detail" in path.name for path in recordings] == [False, True, True], log.read_text()
    assert {path.name for path in directory.iterdir()} - {path.name for path in recordings} == {
        "mine.memtoll",
        ".memtoll-watch.lock",
    }
    calls = 0
    for path in recordings:
        assert integrity(path) == "ok"
        meta = dict(query(path, "SELECT key, value FROM meta"))
        assert (meta["complete"], meta["end_reason"]) == ("1", "rotated")
        calls += query(path, "SELECT COALESCE(SUM(calls), 0) FROM call WHERE call = 'calloc'")[0][0]
    assert calls >= CALLS, "a gap between two recordings"
    assert metrics.value("unwatched_seconds_total") == 0
    assert metrics.value("triggers_total") == 1
    cleared = metrics.value("toll_bytes_total", target=first, toll="zero.libc")
    assert cleared and cleared >= (CALLS - 8) * BLOCK, "all but the first ones, which are mapped"
    assert {key[2][1] for key in metrics.counters if key[0] == "memtoll_toll_seconds_total"} == set(TOLLS)
    assert any(dict(key[1:]).get("call") == "calloc" for key in metrics.counters if "place_bytes" in key[0])
    page = set(re.findall(r"memtoll_[a-z_]+", (ROOT / "userspace" / "doc" / "watch.md").read_text()))
    # None was lost, and no target is a cgroup.
    absent = {"memtoll_losses_total", "memtoll_cgroup_memory_bytes", "memtoll_cgroup_memory_events_total"}
    assert metrics.names | absent == page
    told = [json.loads(line) for line in lines.read_text().splitlines()]
    assert {line["recording"] for line in told} == {path.name for path in recordings}
    assert sum(line["targets"][first]["toll"]["zero.libc"]["time_s"] for line in told) > 0


def test_no_space(tmp_path: Path) -> None:
    """A recording that cannot be begun has failed, and its process has not crashed; -d ends the tries."""
    script = 'mount -t tmpfs -o size=64k none "$0" && exec "$@"'
    command: list[str | Path] = [tool("unshare"), "-m", "--propagation", "private", "sh", "-c", script, tmp_path]
    done = finish(spawn([*command, MEMTOLL, "watch", "-n", "mtnone", "-o", tmp_path / "kept", "-d", "1s"]))
    assert done.status == 1, done
    assert "no space left" in done.stderr and "was not finished" not in done.stderr


def worker_of(watch: int) -> int | None:
    """The process that makes the recording."""
    for pid in Path(f"/proc/{watch}/task/{watch}/children").read_text().split():
        with suppress(OSError):
            if bpf_objects(int(pid))["prog"]:
                return int(pid)
    return None


def has_taken(pid: int, number: int) -> bool:
    """A signal that was sent to it, which it does not let interrupt it."""
    with suppress(OSError):
        (pending,) = re.findall(r"^ShdPnd:\s*(\w+)$", Path(f"/proc/{pid}/status").read_text(), re.M)
        return not int(pending, 16) >> (number - 1) & 1
    return True


def test_files_are_for_the_user_behind_sudo(tmp_path: Path, public_dir: Path) -> None:
    """All that it makes; what was there before stays whose it was."""
    user = {"SUDO_UID": str(NOBODY), "SUDO_GID": str(NOBODY)}
    kept, lines, prom, there = (tmp_path / name for name in ("kept", "lines", "memtoll.prom", "there"))
    there.touch()
    program = Path(shutil.copy(workload("calloc_loop"), public_dir / "mtsudo"))
    with Program(program, str(BLOCK), "0", "--seconds", "600", "--rest", "20000"):
        words: list[str | Path] = ["-n", program.name, "-I", "1s", "-o", kept, "--metrics", prom, f"--json={lines}"]
        watch = spawn([MEMTOLL, "watch", *words], env=user)
        wait_until(lambda: lines.exists() and prom.exists() and lines.read_text(), "an interval")
        watch.send_signal(signal.SIGTERM)
        assert finish(watch).status == 0
    again = spawn([MEMTOLL, "watch", "-n", "mtnone", "-o", kept, f"--json={there}", "-d", "1s"], env=user)
    assert finish(again).status == 0
    made = [kept, lines, prom, *kept.iterdir()]
    assert any(path.suffix == ".memtoll" for path in made)
    assert {(path.stat().st_uid, path.stat().st_gid) for path in made} == {(NOBODY, NOBODY)}, made
    assert there.stat().st_uid == os.geteuid()


def test_killed(tmp_path: Path, public_dir: Path) -> None:
    """Of a recording whose process is killed nothing is left, and another begins; without the watch it ends, whole."""
    name, directory, metrics = f"mtwk{os.getpid()}", tmp_path / "kept", Metrics(tmp_path / "memtoll.prom")
    command: list[str | Path] = [MEMTOLL, "watch", "-n", name, "-o", directory, "-I", "1s", "--metrics", metrics.path]
    with Program(copy_of("sleeper", name, public_dir)) as program:
        watch = spawn(command)
        wait_until(lambda: metrics.value("processes", target=name) == 1, "the first interval")
        first = worker_of(watch.pid)
        assert first
        os.kill(first, signal.SIGKILL)
        wait_until(lambda: metrics.value("recording_failures_total") == 1, "the failure to be counted")
        wait_until(lambda: (metrics.value("unwatched_seconds_total") or 0) > 0, "the next recording")
        second = wait_until(lambda: worker_of(watch.pid), "what makes it")
        assert second and second != first
        # The watch dies while the recording ends, as each does when the next one has taken over.
        os.kill(second, signal.SIGTERM)
        wait_until(lambda: has_taken(second, signal.SIGTERM), "the end of counting")
        watch.kill()
        wait_until(lambda: not Path(f"/proc/{second}").exists(), "the end of the recording")
        wait_until(lambda: not list(directory.glob(".*.part")), "that of the next one, which nobody wants any more")
        assert "was not finished" in finish(watch).stderr
        assert changed_text(program.pid) == []
    recordings = [path for path in directory.iterdir() if path.name != ".memtoll-watch.lock"]
    assert recordings
    for path in recordings:
        assert path.name.startswith("watch-")
        assert query(path, "SELECT value FROM meta WHERE key = 'complete'") == [("1",)]
