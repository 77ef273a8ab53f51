# SPDX-License-Identifier: GPL-2.0
"""The benchmark runs, every line of it; the tables of doc/overhead.md are what its results give."""

from __future__ import annotations

import argparse
import contextlib
import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from harness import MEMTOLL, TESTS, environment, wait_until

BENCH: Final = TESTS / "bench"
sys.path.insert(0, str(BENCH))

import memleak  # noqa: E402
import table  # noqa: E402
import tools  # noqa: E402
from lines import LINES, Cost, Line, Target  # noqa: E402

import bench  # noqa: E402


def test_page_has_the_results() -> None:
    """Each machine's under its own name, with every line; what is promised beside what each of them measured."""
    machines = table.all_results()
    assert table.PAGE.read_text() == table.page_with(machines)
    for results in machines:
        assert json.loads(table.results_file(results["machine"]).read_text()) == results
        # A line is there before each machine has measured it.
        assert {line["name"] for line in results["lines"]} <= {line.name for line in LINES}
    assert [len(row.split(" | ")) for row in table.promises(machines)[2:]] == [len(machines) + 1] * 6
    assert not any("|  |" in row for row in table.promises(machines))


def test_each_processor_has_a_file_of_its_own() -> None:
    names = {
        "Intel(R) Xeon(R) Processor": "intel-xeon",
        "Intel(R) Core(TM) i7-8550U CPU @ 1.80GHz": "intel-core-i7-8550u",
        "AMD EPYC": "amd-epyc",
        "aarch64": "aarch64",
    }
    assert {name: table.results_file({"cpu": name}).stem for name in names} == names


def test_ratios_are_of_the_same_round() -> None:
    bare = {"name": "bare", "rounds": [0, 1, 2], "cpu_ns": [10.0, 20.0, 40.0]}
    traced = {"name": "traced", "rounds": [0, 2], "cpu_ns": [20.0, 60.0]}
    assert table.ratios(traced, bare, "cpu_ns") == [2.0, 1.5]
    assert table.spread([2.0, 1.5]) == "1.75 (1.50-2.00)"
    assert table.added({"contenders": [bare, traced]}, "traced") == {0: 10.0, 2: 20.0}
    assert table.added({"contenders": [bare]}, "traced") == {}
    assert table.rounds({"lines": [{"rounds": 1}], "figures": []}) == "1 interleaved round"
    assert table.rounds({"lines": [{"rounds": 5}], "figures": [{"runs": [1.0, 2.0]}]}) == "2 to 5 interleaved rounds"


def test_drift_cancels_between_two_bare_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The machine becomes slower with each run; what the contender adds, a tenth, is seen all the same."""
    runs: list[float] = []
    adds: list[float] = [1.0]

    @contextlib.contextmanager
    def attached(contender: str, *_: object) -> Iterator[None]:
        adds.append({tools.BARE: 1.0, tools.DEFAULT: 1.1}[contender])
        yield
        adds.pop()

    def work(_seconds: float) -> Cost:
        runs.append((1000 + 7 * len(runs)) * adds[-1])
        return Cost(runs[-1], 2 * runs[-1])

    monkeypatch.setattr(tools, "attached", attached)
    line = Line("any", "run", lambda *_: contextlib.nullcontext(Target(1, work)), (), 1.0, (tools.DEFAULT,))
    measured = bench.Measured(line, [tools.BARE, tools.DEFAULT])
    for number in range(2):
        measured.round(number, 2, 3, tmp_path, 1.0, 1.0)
    costs = {one["name"]: one for one in measured.result(2)["contenders"]}
    assert costs[tools.BARE]["rounds"] == costs[tools.DEFAULT]["rounds"] == list(range(8))
    for what in ("cpu_ns", "wall_ns"):
        assert table.ratios(costs[tools.DEFAULT], costs[tools.BARE], what)[2:] == pytest.approx([1.1] * 6)


def test_overhead_has_an_interval() -> None:
    runs = [
        {"name": "bare", "rounds": [0, 1, 2], "cpu_ns": [10.0] * 3},
        {"name": "memtoll", "rounds": [0, 1, 2], "cpu_ns": [10.1, 10.3, 10.2]},
    ]
    assert table.percent_added({"contenders": runs}, "cpu_ns") == "2.0 % (1.0 to 3.0)"


def test_renewing_keeps_the_other_lines_of_this_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    results = table.all_results()[0]
    arguments = argparse.Namespace(quick=True, rounds=1, lines="^none of them$", renew=True, out=tmp_path / "out")
    monkeypatch.setattr(bench, "machine", lambda: results["machine"])
    renewed = bench.measure(arguments, tmp_path)
    assert (renewed["lines"], renewed["figures"]) == (results["lines"], results["figures"])
    monkeypatch.setattr(bench, "machine", lambda: results["machine"] | {"cpu": "another"})
    with pytest.raises(SystemExit, match="this machine has no results"):
        bench.measure(arguments, tmp_path)


def test_memleak_gets_the_newest_headers_in_one_tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("platform.release", lambda: "0.0.0-none")
    sources, scratch = tmp_path / "src", tmp_path / "scratch"
    sources.mkdir()
    with pytest.raises(FileNotFoundError, match="linux-headers-amd64"):
        memleak.headers(scratch, sources)
    for version in ("6.1.0-9", "6.1.0-10"):
        for tree, name in (("amd64", "include/generated/autoconf.h"), ("common", "include/linux/kconfig.h")):
            for file in (name, f"arch/x86/include/asm/{tree}.h"):
                path = sources / f"linux-headers-{version}-{tree}" / file
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(f"{version} {tree}")
    merged = memleak.headers(scratch, sources)
    assert merged
    assert (merged / "include/generated/autoconf.h").read_text() == "6.1.0-10 amd64"
    assert (merged / "include/linux/kconfig.h").read_text() == "6.1.0-10 common"
    assert memleak.headers(scratch, sources) == merged


@pytest.mark.root
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_leaves_nothing_when_it_is_ended(number: signal.Signals, tmp_path: Path) -> None:
    """Neither its servers nor its tracers, nor a result, though a shell in the background had SIGINT ignored."""
    out = tmp_path / "results.json"

    def children() -> list[str]:
        listed = Path(f"/proc/{bench_run.pid}/task/{bench_run.pid}/children")
        return listed.read_text().split() if listed.exists() else []

    def name(pid: str) -> str:
        try:
            return Path(f"/proc/{pid}/comm").read_text().strip()
        except (FileNotFoundError, ProcessLookupError):  # clients come and go
            return ""

    def server() -> list[str]:
        return [pid for pid in children() if name(pid) == "redis-server"]

    bench_run = subprocess.Popen(
        [
            "sh",
            "-c",
            'trap "" INT; exec "$@"',
            "sh",
            sys.executable,
            "-B",
            BENCH / "bench.py",
            "--rounds",
            "1",
            "--lines",
            "^redis",
            "--out",
            out,
        ],
        env=environment({"MEMTOLL": str(MEMTOLL)}),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        (pid,) = wait_until(server, "the server to be started")
        bench_run.send_signal(number)
        assert bench_run.wait(120) == 128 + number
    finally:
        bench_run.kill()
        bench_run.wait()
    assert not Path(f"/proc/{pid}").exists()
    assert not out.exists()


def test_ends_what_nobody_knows_of() -> None:
    """A signal between the fork and the return of spawn() loses the process, in a group of its own or not yet."""
    script = (
        "import subprocess, bench\n"
        "def start(own):\n"
        "    return subprocess.Popen(['sleep', '90'], stdout=-3, stderr=-3, start_new_session=own).pid\n"
        "lost = start(True), start(False)\n"
        "bench.end_children()\n"
        "print(*lost)\n"
    )
    env = environment({"MEMTOLL": str(MEMTOLL), "PYTHONPATH": f"{BENCH}:{TESTS}"})
    command = [sys.executable, "-Bc", script]
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=30, check=True)
    pids = done.stdout.split()
    assert len(pids) == 2
    assert not [pid for pid in pids if Path(f"/proc/{pid}").exists()]
