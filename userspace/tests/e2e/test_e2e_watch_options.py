# SPDX-License-Identifier: GPL-2.0
"""memtoll watch --config: SIGHUP takes over what has changed, and nothing is lost meanwhile."""

from __future__ import annotations

import http.client
import os
import shutil
import signal
import socket
import stat
from datetime import datetime
from itertools import accumulate
from pathlib import Path
from typing import Any

import pytest

from harness import Program, finish, query, wait_until, workload
from watching import Watch

pytestmark = pytest.mark.root

CALLS = 5003
BLOCK = 200 << 10
REST_US = 1000


def seconds(line: dict[str, Any]) -> float:
    start, end = (datetime.fromisoformat(line[key].replace("Z", "+00:00")) for key in ("start", "end"))
    return (end - start).total_seconds()


def test_changed(tmp_path: Path, public_dir: Path) -> None:
    first, second = (f"mto{letter}{os.getpid()}" for letter in "ab")
    for name in (first, second):
        shutil.copy(workload("calloc_loop"), public_dir / name)
    watch = Watch(tmp_path)
    common = ["--rotate 1h", "--overhead-limit none"]
    watch.start(f"-n {first}", "-I 1s", *common)
    with Program(
        public_dir / first, str(BLOCK), str(CALLS), "--wait", "--rest", str(REST_US)
    ) as program, Program(public_dir / second, str(BLOCK), "0", "--seconds", "600", "--rest", "20000"):  # fmt: skip
        wait_until(lambda: watch.value("processes", target=first) == 1, "the first interval")
        program.go()
        wait_until(lambda: len(watch.told()) >= 3, "three of them")
        said = watch.reload(
            f"-n {first} -n {second}", "-I 2s", "--when 'rss.bytes > 1e15 for 1s'", "--keep 64M", *common
        )
        assert said == "memtoll: options: -n, -c, --keep, -I, --when changed\n"
        wait_until(lambda: watch.value("processes", target=second) == 1, "the new target")
        same = watch.reload(
            f"-n {first} -n {second}", "-I 2s", "--when 'rss.bytes > 1e15 for 1s'", "--keep 64M", *common
        )
        assert same == ""
        program.last()
        said = watch.reload(f"-n {second}", "-I 2s", "--keep 64M", "--listen 127.0.0.1:0", "--min-size 1M", *common)
        assert said == "memtoll: options: -n, -c, --min-size, --when changed; after a restart: --listen\n"
        wait_until(lambda: watch.value("processes", target=first) == 0, "the end of the old one")
        assert watch.value("processes", target=second) == 1
    watch.end()
    told = watch.told()
    assert [line["interval"] for line in told] == list(range(1, len(told) + 1))
    recordings = sorted(watch.kept.glob("watch-*.memtoll"))
    assert [path.name for path in recordings] == list(dict.fromkeys(line["recording"] for line in told))
    lengths = [[seconds(line) for line in told if line["recording"] == path.name][:-1] for path in recordings]
    assert lengths[0] and min(lengths[0]) < 2
    # One that is late makes the next one shorter.
    assert all(end >= 2 * count for of in lengths[1:] for count, end in enumerate(accumulate(of), 1)), lengths
    facts = [dict(query(path, "SELECT key, value FROM meta")) for path in recordings]
    assert [fact["min_size_bytes"] for fact in facts] == ["65536"] * 3 + [str(1 << 20)]
    assert second in facts[1]["command_line"]
    # None is missed. One that falls into two recordings is in both: of calls that lie REST_US apart or more, one more
    # at each of the three changes than there is room for while there are two.
    counted = sum(
        query(
            path,
            "SELECT COALESCE(SUM(c.calls), 0) FROM call c JOIN process p USING (pid)"
            f" WHERE c.call = 'calloc' AND p.comm = '{first}'",
        )[0][0]
        for path in recordings
    )
    twice = watch.value("watched_twice_seconds_total")
    assert watch.value("unwatched_seconds_total") == 0
    assert twice is not None
    assert CALLS <= counted <= CALLS + 3 + twice * 1e6 / REST_US


def test_in_error(tmp_path: Path, public_dir: Path) -> None:
    """One line with the file and its line; all is as before, and the watch goes on."""
    name = f"mtoe{os.getpid()}"
    shutil.copy(workload("sleeper"), public_dir / name)
    watch = Watch(tmp_path)
    with Program(public_dir / name):
        watch.start(f"-n {name}", "-I 1s")
        wait_until(lambda: watch.value("processes", target=name) == 1, "the first interval")
        kept = "; the options stay as they were\n"
        for lines, at in (
            (["-I 2s", "--rotatee 5s", f"-n {name}"], ":4: --rotatee: unknown option"),
            ([f"-n {name}", "--keep 1"], ":4: --keep '1'"),
            ([f"-n {name}", f"-I 2s -n {name}"], f":4: -n {name}: named twice"),
            ([f"-n '{name}"], ":3: a quotation mark"),
            (["-I 2s"], ": no target"),
            ([f"-n {name}", "-I 2s", "--help"], ": not options"),
        ):
            said = watch.reload(*lines)
            assert said.startswith(f"memtoll: {watch.options}{at}"), said
            assert said.endswith(kept) and said.count("\n") == 1, said
        watch.options.unlink()
        watch.process.send_signal(signal.SIGHUP)
        wait_until(lambda: f"{watch.options}: No such file or directory{kept}" in watch.log.read_text(), "a line")
        assert watch.value("processes", target=name) == 1
        watch.end()
    assert all(seconds(line) < 2 for line in watch.told()[:1])
    assert watch.value("unwatched_seconds_total") == 0


class UnixConnection(http.client.HTTPConnection):
    def __init__(self, path: Path) -> None:
        super().__init__("localhost", timeout=60)
        self.path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(60)
        self.sock.connect(str(self.path))


def get(path: Path, what: str) -> tuple[int, str]:
    connection = UnixConnection(path)
    try:
        connection.request("GET", what)
        answer = connection.getresponse()
        return answer.status, answer.read().decode()
    finally:
        connection.close()


def test_metrics_over_a_unix_socket(tmp_path: Path, public_dir: Path) -> None:
    """For its user and group; in the place of one that nobody listens at, never of a file; gone at the end."""
    name, at = f"mtol{os.getpid()}", public_dir / "metrics.sock"
    shutil.copy(workload("sleeper"), public_dir / name)
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(str(at))
    watch = Watch(tmp_path)
    with Program(public_dir / name):
        watch.start(f"-n {name}", "-I 1s", f"--listen unix:{at}")
        wait_until(lambda: watch.value("processes", target=name) == 1, "the first interval")
        mode = at.stat().st_mode
        assert stat.S_ISSOCK(mode) and stat.S_IMODE(mode) == 0o660
        line = f'\nmemtoll_processes{{target="{name}"}} 1\n'
        # It may have those before the first interval for a moment.
        wait_until(lambda: line in get(at, "/metrics")[1], "what the file has")
        status, text = get(at, "/metrics")
        assert status == 200 and text.endswith("# EOF\n")
        assert get(at, "/etc/passwd")[0] == 404
        second = Watch(public_dir)
        second.start(f"-n {name}", f"--listen unix:{at}")
        assert finish(second.process).status == 1
        assert second.log.read_text() == f"memtoll: --listen unix:{at}: Address already in use\n"
        assert get(at, "/metrics")[0] == 200
        watch.end()
    assert f"metrics at unix:{at}" in watch.log.read_text()
    assert not at.exists()
    at.write_text("somebody's")
    second.start(f"-n {name}", f"--listen unix:{at}")
    assert finish(second.process).status == 1
    assert at.read_text() == "somebody's"
