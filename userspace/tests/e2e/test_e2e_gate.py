# SPDX-License-Identifier: GPL-2.0
"""memtoll gate on real programs: those that did not change pass, careless changes do not, each with its place."""

from __future__ import annotations

import json
import re
import signal
import sqlite3
import subprocess
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

import libraries
from harness import MEMTOLL, SOURCES, Result, assert_refused, finish, memtoll, site_line, spawn, tool, workload

pytestmark = pytest.mark.root

SEEDED = re.findall(r"TASK\((\w+)\)", (SOURCES / "seeded.c").read_text())[1:]
# Those that go over bounds of different kinds are made in one run.
TOGETHER = [
    ["align_each", "map_each_time", "take_a_bigger_batch", "fork_in_a_loop"],
    ["clear_once_more", "lose_reuse", "remap_by_steps", "read_again", "populate_more"],
    ["copy_each_name", "trim_each_time", "give_back_and_take"],
    ["grow_by_steps", "a_thread_for_each", "leak", "shrink_each_time"],
    ["clear_what_is_filled", "write_after_fork", "read_in_pieces", "touch_more"],
]

JSON_JOB = """
import json
for round in range(2):
    data = {f"key{n}": {"a": [n, round, n * round], "b": "x" * (n % 97)} for n in range(500)}
    assert len(json.loads(json.dumps(data))) == 500
"""
INSERTS = """create table t (a, b);
with recursive n(i) as (values (1) union all select i + 1 from n where i < 1009)
insert into t select i, hex(i) || 'abcdefghijk' from n;
create index tb on t (b);"""


def bounds_of(path: Path, *lines: str) -> Path:
    path.write_text("\n".join(lines) + "\n")
    return path


def gate(*words: str | Path, command: list[str | Path], statuses: tuple[int, ...] = (0,)) -> dict[str, Any]:
    result = memtoll("gate", "--json", *words, "--", *command)
    assert result.status in statuses, result
    return dict(json.loads(result.stdout))


def over(found: dict[str, Any]) -> list[dict[str, Any]]:
    return [row for row in found["bounds"] if row["result"] == "over"]


def init(place: Path, *words: str | Path, command: list[str | Path]) -> Path:
    budget = place / "budget.toml"
    result = memtoll("gate", "--init", "--budget", budget, *words, "--", *command)
    assert (result.status, result.stdout) == (0, ""), result
    return budget


@pytest.mark.parametrize("program", ["Python job", "sqlite inserts"])
def test_what_did_not_change_is_within(program: str, tmp_path: Path) -> None:
    """A budget of a few runs, and one of them as a baseline, hold for the next ones.

    Not of threads: from whose arena a block comes, and so whether calloc clears it, is the scheduler's.
    """
    database = tmp_path / "job.db"
    commands: dict[str, list[str | Path]] = {
        "Python job": ["/usr/bin/python3", "-c", JSON_JOB],
        "sqlite inserts": ["sh", "-c", f'rm -f "$1" && exec {tool("sqlite3")} "$1" "$2"', "sh", database, INSERTS],
    }
    command = commands[program]
    budget = init(tmp_path, "--runs", "2", "-o", tmp_path / "kept", command=command)
    # Where the tracer is kept from running for long, events may be lost, and nothing can be shown: no alarm either.
    found = gate("--budget", budget, command=command, statuses=(0, 4))
    assert len(found["bounds"]) >= 8 and not over(found)
    found = gate("--baseline", tmp_path / "kept-now-2.memtoll", command=command, statuses=(0, 4))
    assert not over(found) and all(row["before"] is not None for row in found["bounds"])
    assert next(row["now"] for row in found["bounds"] if row["bound"] == "alloc.calls") > 100


@pytest.fixture(scope="module")
def seeded(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    """Of careless changes, by a budget and a recording of the program in which nobody was careless."""
    place = tmp_path_factory.mktemp("seeded")
    budget = init(place, "--runs", "3", "-o", place / "base", command=[workload("seeded"), "none"])
    words: list[str | Path] = ["--budget", budget, "--baseline", place / "base-now-1.memtoll", "--runs", "1"]
    return [gate(*words, command=[workload("seeded"), *changes], statuses=(5,)) for changes in TOGETHER]


@pytest.mark.parametrize("change", SEEDED)
def test_a_careless_change_is_over_and_named(change: str, seeded: list[dict[str, Any]]) -> None:
    """First of a bound, and by so much that it alone would be over it."""
    (found,) = (found for found, changes in zip(seeded, TOGETHER) if change in changes)
    rows = []
    for row in over(found):
        first = row["sites"][0]
        # touch(), read_whole() are called by several: the place is that and its caller.
        if change in (first["function"], *re.findall(r"\((\w+)\)", first["caller"] or "")):
            rows.append(row)
            assert Path(first["file"]).name == "seeded.c" and first["line"] > 0
            assert first["now"] - first["before"] > row["limit"] - row["before"], row
    assert rows, over(found)


def test_twenty_changes() -> None:
    assert len(SEEDED) == 20
    assert sorted(change for changes in TOGETHER for change in changes) == sorted(SEEDED)


def probes(path: Path) -> str:
    with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as database:
        return str(database.execute("SELECT value FROM meta WHERE key = 'probes'").fetchone()[0])


@pytest.mark.parametrize(
    ("bound", "loaded"),
    [
        ("alloc.calls = 100000", "alloc"),
        ("map.calls = 100000", "mappings"),
        ("file.read.calls = 100000", "reads"),
        ("faults.count = 100000", "faults,mappings"),
        ("site.main.faults.count = 100000", "alloc,faults,mappings"),
    ],
)
def test_only_what_the_bounds_need_is_loaded(bound: str, loaded: str, tmp_path: Path) -> None:
    budget = bounds_of(tmp_path / "b.toml", bound)
    gate("--budget", budget, "-o", tmp_path / "a", command=[workload("calloc_loop"), "1000", "10"])
    assert probes(tmp_path / "a-now-1.memtoll") == loaded


def test_counts_without_prices_are_the_same(tmp_path: Path) -> None:
    """Without -o nothing is calibrated, and nothing stays; the witness is the program's own count."""
    budget = bounds_of(tmp_path / "b.toml", "zero.libc.calls = 100", "zero.libc.bytes = 10", "alloc.calls = 200")
    place = tmp_path / "temporary"
    place.mkdir()
    words: list[str | Path] = ["--json", "--budget", budget, "--", workload("calloc_loop"), "100000", "100"]
    result = memtoll("gate", *words, env={"TMPDIR": str(place), "MEMTOLL_PRICES": ""})
    assert result.status == 5
    found = {row["bound"]: row for row in json.loads(result.stdout)["bounds"]}
    # Each block is freed; what is over is run again.
    calls = {json.loads(line)["calls"] for line in result.stderr.splitlines() if '"calls"' in line}
    assert calls == {100} and found["alloc.calls"]["now"] == 200
    assert (found["zero.libc.calls"]["now"], found["zero.libc.calls"]["result"]) == (100, "within")
    assert found["zero.libc.bytes"]["now"] == pytest.approx(100 * 100_000, rel=0.001)
    (site,) = found["zero.libc.bytes"]["sites"]
    assert Path(site["file"]).name == "calloc_loop.c"
    assert not list(place.iterdir())


def test_what_a_command_writes_is_passed_on(tmp_path: Path) -> None:
    """To stderr, all of it and in its order: stdout is the report's."""
    budget = bounds_of(tmp_path / "b.toml", "alloc.calls = 1000000")
    script = "for n in $(seq 3000); do echo out $n; echo err $n >&2; done"
    result = memtoll("gate", "--json", "--budget", budget, "--", "sh", "-c", script)
    assert result.status == 0 and json.loads(result.stdout)["result"] == "within"
    assert result.stderr.splitlines() == [f"{stream} {n}" for n in range(1, 3001) for stream in ("out", "err")]


def test_what_outlives_the_command_is_not_waited_for(tmp_path: Path) -> None:
    budget = bounds_of(tmp_path / "b.toml", "alloc.calls = 1000000")
    result = memtoll("gate", "--json", "--budget", budget, "--", "sh", "-c", "sleep 1000 & echo $!")
    assert result.status == 0, result
    # It still had its output open, and lived on.
    subprocess.run(["kill", result.stderr.strip()], check=True, timeout=60)


def test_who_never_stops_writing_is_not_waited_for(tmp_path: Path) -> None:
    """What outlives the command may write on for ever."""
    budget = bounds_of(tmp_path / "b.toml", "alloc.calls = 1000000")
    words: list[str | Path] = [MEMTOLL, "gate", "--json", "--budget", budget, "--", "sh", "-c", "yes &"]
    result = finish(spawn(words, stderr=subprocess.DEVNULL))
    assert result.status == 0 and json.loads(result.stdout)["result"] == "within", result


def test_interrupted_while_it_writes(tmp_path: Path) -> None:
    """Who writes more than is read hears of the signal all the same."""
    budget = bounds_of(tmp_path / "b.toml", "alloc.calls = 1000000")
    words: list[str | Path] = [MEMTOLL, "gate", "--budget", budget, "--", "yes"]
    process = spawn(words, {"TMPDIR": str(tmp_path)})
    assert process.stderr and process.stderr.readline() == "y\n"
    process.send_signal(signal.SIGTERM)
    said = ""
    while some := process.stderr.read(65536):
        said = (said + some)[-1000:]
    result = finish(process)
    assert (result.status, result.stdout) == (1, "")
    assert said.splitlines()[-1] == "memtoll: gate: interrupted"
    assert [path.name for path in tmp_path.iterdir()] == ["b.toml"]


def test_nobody_reads_what_a_command_writes(tmp_path: Path) -> None:
    """The run goes on, nothing stays, and the verdict is told."""
    budget = bounds_of(tmp_path / "b.toml", "alloc.calls = 1000000")
    script = f'"$@" 2>&1 >"{tmp_path}/said" | true; exit "${{PIPESTATUS[0]}}"'
    words: list[str | Path] = ["bash", "-c", script, "bash", MEMTOLL, "gate", "--json", "--budget", budget, "--"]
    result = finish(spawn([*words, "seq", "100000"], {"TMPDIR": str(tmp_path)}))
    assert result.status == 0, result
    assert json.loads((tmp_path / "said").read_text())["result"] == "within"
    assert {path.name for path in tmp_path.iterdir()} == {"b.toml", "said"}


@pytest.mark.parametrize(
    ("command", "says"),
    [
        (["false"], "'false' failed (exit status 1)"),
        (["sh", "-c", "kill -9 $$"], "'sh' was ended by signal 9"),
        (["/nowhere/program"], "/nowhere/program"),
    ],
)
def test_a_command_that_fails(command: list[str], says: str, tmp_path: Path) -> None:
    budget = bounds_of(tmp_path / "b.toml", "alloc.calls = 1000000")
    assert_refused(memtoll("gate", "--budget", budget, "--", *command, env={"TMPDIR": str(tmp_path)}), 1, says)
    assert [path.name for path in tmp_path.iterdir()] == ["b.toml"]


def test_interrupted(tmp_path: Path) -> None:
    budget = bounds_of(tmp_path / "b.toml", "alloc.calls = 1000000")
    words: list[str | Path] = [MEMTOLL, "gate", "--budget", budget, "--", "sh", "-c", "echo begun; sleep 1000"]
    process = spawn(words, {"TMPDIR": str(tmp_path)})
    assert process.stderr and process.stderr.readline() == "begun\n"
    process.send_signal(signal.SIGINT)
    result = finish(process)
    assert (result.status, result.stdout) == (1, "")
    assert [path.name for path in tmp_path.iterdir()] == ["b.toml"]


def test_against_another_command(tmp_path: Path) -> None:
    """Run in turns, without a recording and without a file of bounds."""
    base = f"{workload('seeded')} none"
    leak: list[str | Path] = [workload("seeded"), "leak"]
    found = gate("--against", base, "--runs", "2", command=leak, statuses=(5,))
    assert found["runs"] == 2 and found["against"] == base, "what is over is run again"
    row = next(row for row in over(found) if row["bound"] == "zero.kernel.bytes")
    assert row["sites"][0]["caller"].endswith("(leak)")
    same = gate("--against", base, command=[workload("seeded"), "none"])
    assert (same["runs"], same["result"]) == (1, "within")


def test_times(tmp_path: Path) -> None:
    """By runs in turns; only what no machine does is judged here."""
    budget = bounds_of(
        tmp_path / "b.toml", 'observed.time = "1 h"', 'family.zeroing.time = "1000000 x baseline"', "alloc.calls = 1"
    )
    loop: list[str | Path] = [workload("calloc_loop"), "1000000", "50"]
    words: list[str | Path] = ["--budget", budget, "--time", "--runs", "3", "--against", " ".join(map(str, loop))]
    found = gate(*words, command=loop, statuses=(5,))
    observed, zeroing, calls = found["bounds"]
    assert [row["result"] for row in (observed, zeroing, calls)] == ["within", "within", "over"]
    assert (observed["unit"], observed["limit"], found["runs"]) == ("s", 3600, 3)
    assert 0 < observed["low"] < observed["now"] < observed["high"]
    assert zeroing["limit"] == pytest.approx(1e6 * zeroing["before"])


def test_an_allocator_whose_clearing_is_not_known(tmp_path: Path) -> None:
    """It cannot be shown to be within; of its calls it can."""
    budget = bounds_of(tmp_path / "b.toml", 'zero.libc.bytes = "1 GiB"', "alloc.calls = 1000000")
    preloaded = f"LD_PRELOAD={libraries.preloadable('jemalloc')}"
    command: list[str | Path] = ["env", preloaded, workload("calloc_loop"), "10000", "10"]
    libc, calls = gate("--budget", budget, "--runs", "1", command=command, statuses=(4,))["bounds"]
    assert libc["result"] == "unsure" and "does not tell what its calloc clears" in libc["reason"]
    assert calls["result"] == "within" and calls["now"] >= 20


def text_of(result: Result) -> str:
    return " ".join(result.stdout.split())


def test_the_text_names_file_and_line(tmp_path: Path) -> None:
    budget = bounds_of(tmp_path / "b.toml", "", 'zero.libc.bytes = "1 MiB"')
    result = memtoll("gate", "--budget", budget, "--", workload("calloc_loop"), "1000000", "11")
    line = site_line("calloc_loop.c", "calloc")
    assert result.status == 5
    assert "OVER BUDGET: 1 of 1 bounds" in result.stdout
    assert "now: 3 runs of " in text_of(result)
    assert f"zero.libc.bytes <= 1 MiB ({budget}:2): 1.00 MiB (1,048,576 bytes); now 8." in text_of(result)
    assert f"calloc at calloc_loop.c:{line} (" in text_of(result)
    assert f"{SOURCES}/calloc_loop.c:{line}\n" in result.stdout
