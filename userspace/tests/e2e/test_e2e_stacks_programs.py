# SPDX-License-Identifier: GPL-2.0
"""Stacks of a busy program, of Debian's python3, redis-server and mariadbd under a small load, of node."""

from __future__ import annotations

import re
import signal
import subprocess
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import pytest

from chains import Stacks
from harness import (
    MIB,
    SOURCES,
    Program,
    Recording,
    end,
    environment,
    finish,
    load,
    record,
    spawn,
    start_record,
    tool,
    wait_slices,
    wait_until,
)

pytestmark = pytest.mark.root

CHAINS: Final = SOURCES / "chains"
WHOLE: Final = 0.95


def whole_share(recording: Recording) -> float:
    """Of the cost; as the report has it."""
    stacks = recording.report["stacks"]
    assert stacks["whole_share"] + sum(stacks["stopped"].values()) == pytest.approx(1, abs=1e-4)
    return float(stacks["whole_share"])


def run(command: Sequence[str | Path], text: str | None = None, cwd: Path | None = None) -> str:
    words = [str(word) for word in command]
    done = subprocess.run(
        words, input=text, capture_output=True, text=True, timeout=60, cwd=cwd, env=environment(), check=False
    )
    assert done.returncode == 0, done
    return done.stdout


def record_under(out: Path, pid: int, work: Callable[[], None]) -> Recording:
    """A running process, while work keeps it busy: from the second slice on."""
    tracer = start_record(out, "-p", str(pid))
    wait_until(lambda: out.exists() or tracer.poll() is not None, "the recording")
    wait_slices(out, 1)
    work()
    tracer.send_signal(signal.SIGINT)
    result = finish(tracer)
    assert result.status == 0, result
    recording = load(out, result)
    assert recording.complete
    return recording


# CPU samples.


def built(directory: Path, name: str) -> Path:
    flags = "-std=gnu11 -O2 -fomit-frame-pointer -fno-builtin -Wall -Wextra -Werror".split()
    run(["gcc", *flags, CHAINS / f"{name}.c", "-o", directory / name])
    return directory / name


def sampled(
    out: Path, directory: Path, name: str, seconds: int = 2
) -> tuple[Recording, list[tuple[str, bool, list[str], int]]]:
    """A program of ours without frame pointers: place, whether whole, names from the leaf on, samples.

    But for those in the moment in which the kernel has taken a return address and not noted it down yet: they say so.
    """
    program = built(directory, name)
    # A machine that others use takes fewer samples in a second of a program's: it runs on until there are enough.
    for longer in (1, 3, 9):
        recording = record(out.with_name(f"{longer}.memtoll"), command=[program, str(longer * seconds)])
        if recording.query("SELECT SUM(samples) FROM sample")[0][0] >= 50 * seconds:
            break
    stacks = Stacks(recording)
    rows = recording.query(
        "SELECT place, stack_id, SUM(samples) FROM sample WHERE stack_id NOT IN"
        " (SELECT stack_id FROM stack WHERE stopped = 'probe')"
        # At a thread's end there is no memory, and so no stack, any more.
        " AND stack_id <> 0 GROUP BY place, stack_id"
    )
    samples = []
    for place, stack_id, count in rows:
        stack = stacks.by_id[stack_id]
        samples.append((place, stack.complete, [frame.function for frame in stack.frames], count))
    assert samples
    return recording, samples


def assert_whole(samples: list[tuple[str, bool, list[str], int]]) -> None:
    """And whole means what it says: the process's start is there, and it called main, or the loader before it."""
    whole = [row for row in samples if row[1]]
    assert sum(row[3] for row in whole) >= WHOLE * sum(row[3] for row in samples)
    started = [row for row in samples if "_dl_start" not in row[2]]
    in_main = [row for row in started if row[1] and "main" in row[2]]
    assert sum(row[3] for row in in_main) >= WHOLE * sum(row[3] for row in started)
    for _, _, names, _ in in_main:
        assert names[-1] == "_start"
        assert 1 <= len(names) - 1 - names.index("main") <= 3


def test_samples_of_a_busy_program(out: Path, tmp_path: Path) -> None:
    """At any instruction: leaves, PLT entries, the vdso, system calls."""
    _, samples = sampled(out, tmp_path, "busy")
    assert_whole(samples)
    assert {"user", "kernel"} <= {place for place, *_ in samples}
    seen = {name for _, _, names, _ in samples for name in names}
    assert {"leaf", "saver", "through_plt", "in_vdso", "in_kernel", "at_depth"} <= seen
    assert any(names[:2] == ["clock_gettime", "clock_gettime"] for _, _, names, _ in samples), "none in the vdso"
    # The depth it had: at_depth stands up to thirteen times, next to one another.
    for _, _, names, _ in samples:
        depths = [at for at, name in enumerate(names) if name == "at_depth"]
        assert len(depths) <= 13
        assert depths == list(range(depths[0], depths[0] + len(depths))) if depths else True


def test_samples_in_the_probes(out: Path, tmp_path: Path) -> None:
    """Where the kernel's own code stands in the way: its trampoline for returns is not a frame."""
    recording, samples = sampled(out, tmp_path, "probed")
    assert_whole(samples)
    rows = recording.query("SELECT place, stopped = 'probe', samples FROM sample JOIN stack USING (stack_id)")
    between = sum(count for _, stopped, count in rows if stopped)
    assert {place for place, stopped, _ in rows if stopped} <= {"probe"}
    total = sum(count for *_, count in rows)
    assert between <= 0.1 * total
    # They are of the probe itself, and nothing of the program's is lost with their callers.
    lost = {name: count for name, count in recording.report["losses"].items() if name.startswith("unwind_")}
    assert not lost.pop("unwind_probe", 0)
    # The loader's first instructions, before its mapping is known, are code that nobody knows.
    rows = recording.query("SELECT stack_id, samples FROM sample JOIN stack USING (stack_id) WHERE stopped = 'mapping'")
    by_id = Stacks(recording).by_id
    unknown = sum(count for stack, count in rows if not any(frame.function for frame in by_id[stack].frames))
    assert unknown <= 0.05 * total
    lost["unwind_mapping"] -= unknown
    assert all(count <= 5 for count in lost.values()), lost
    callers = {"by_free", "by_malloc", "by_calloc", "by_realloc"}
    for place, whole, names, _ in samples:
        own = [name for name in names if name in callers or name in ("all", "main")]
        if place == "user" and whole and "all" in own:
            # main, all and by_*, at most by_free on top: nobody was skipped.
            assert own[-2:] == ["all", "main"]
            assert not callers & set(own) or own[-3] in callers - {"by_free"}


def test_samples_of_a_program_that_makes_threads(out: Path, tmp_path: Path) -> None:
    """In clone3, where the new thread begins and the one that makes it goes on: that one has callers."""
    _, samples = sampled(out, tmp_path, "spawner", 3)
    made = [(names, whole, count) for _, whole, names, count in samples if names[0] == "clone3"]
    by_spawn = sum(count for names, whole, count in made if whole and names[-1] == "_start" and "spawn" in names)
    alone = sum(count for names, _, count in made if names == ["clone3"])
    assert by_spawn >= 11
    assert alone <= 0.2 * by_spawn, samples


# What has a stack each time: the leaf, and where its stacks and how often they came are recorded.
FROM_SIX: Final = {
    "touch": ("touch", "touched_stack, SUM(pages) FROM fault WHERE class = 'zero' AND touched_stack <> 0"),
    "calloc": ("calloc", "stack_id, SUM(calls) FROM call WHERE call = 'calloc'"),
    "madvise": ("madvise", "stack_id, SUM(calls) FROM map_call WHERE call = 'madvise' AND in_call = ''"),
}


@pytest.fixture(scope="module")
def six_ways(tmp_path_factory: pytest.TempPathFactory) -> Recording:
    """Of each kind a program, one after the other."""
    directory = tmp_path_factory.mktemp("six")
    program = built(directory, "paths")
    return record(directory / "a.memtoll", command=["sh", "-c", " && ".join(f"{program} {what}" for what in FROM_SIX)])


@pytest.mark.parametrize("what", FROM_SIX)
def test_one_place_reached_six_ways(six_ways: Recording, what: str) -> None:
    """The same registers at each: a stack that was walked before is known again only where it is the same."""
    leaf, rows = FROM_SIX[what]
    said = six_ways.witness[list(FROM_SIX).index(what)]
    stacks = Stacks(six_ways)
    seen: dict[str, int] = {}
    for stack_id, count in six_ways.query(f"SELECT {rows} AND pid = {said['pid']} GROUP BY 1"):
        stack = stacks.by_id[stack_id]
        names = [frame.function for frame in stack.frames if frame.function != leaf]
        if middle := {"wide", "moved"} & set(names):
            names = names[names.index(middle.pop()) - 1 :]
            assert names[3] == "main" and stack.complete, names
            name = f"{names[2]} {names[0]}"
            seen[name] = seen.get(name, 0) + count
    assert seen == {name: count for name, count in said.items() if " " in name}


# A place of a sweep is believed for so many faults (bpf/probes/fault_streams.bpf.h). As a run it may go on to the
# pool's end.
BELIEVED: Final = 32 + 3


def test_by_turns_in_order(out: Path, tmp_path: Path) -> None:
    """Every page at its line, callers within what is believed, and hardly a stack is walked for it."""
    recording = record(out, "--overhead-limit", "none", command=[built(tmp_path, "pools"), "10007", "4999"])
    said = recording.witness[-1]
    stacks = Stacks(recording)
    seen: dict[str, int] = {}
    rows = "touched_stack, SUM(pages) FROM fault WHERE class = 'zero' AND touched_stack <> 0 GROUP BY 1"
    for stack_id, pages in recording.query(f"SELECT {rows}"):
        names = [frame.function for frame in stacks.by_id[stack_id].frames[:2]]
        name = "make_pool" if names[0] == "make_pool" else names[-1]
        seen[name] = seen.get(name, 0) + pages
    assert seen["make_pool"] == said["make_pool"]
    assert seen["early"] + seen["late"] == said["early"] + said["late"]
    assert 0 <= seen["early"] - said["early"] <= BELIEVED
    ((walks, faults),) = recording.query(
        "SELECT SUM(hits) FILTER (WHERE probe = 'walk'), SUM(hits) FILTER (WHERE probe = 'fault') FROM hit"
    )
    assert faults > 4 * 10007 and walks < faults / 7
    # What they cost beyond one more page of a run is charged by the fault, what a sample costs by the sample.
    price = dict(recording.query("SELECT probe, hit_ns FROM price"))
    charged = recording.query(
        "SELECT probe, hits, hit_ns FROM probe_overhead WHERE probe LIKE 'fault%' OR probe IN ('map', 'sample')"
    )
    of_probe = {probe: (hits, ns) for probe, hits, ns in charged}
    ((samples,),) = recording.query("SELECT SUM(samples) FROM sample")
    assert of_probe["fault"] == (faults, pytest.approx(price["fault"] + price["fault_more"]))
    assert of_probe["map"][1] == pytest.approx(1.4 * price["map"])
    assert of_probe["sample"] == (samples, pytest.approx(price["sample"]))
    # The mean has it; nothing is hit twice.
    ((hits,),) = recording.query("SELECT SUM(hits) FROM hit WHERE probe <> 'syscall'")
    assert recording.report["overhead"]["hits"] == hits
    assert "fault_more" not in dict(recording.query("SELECT probe, 0 FROM hit"))


# Debian's own programs.

# Begins on request: code is unknown for a while after it was mapped, and importing is mapping.
PYTHON_LOAD: Final = """
import json, re, sys, time
print("{}", flush=True)
sys.stdin.readline()
end = time.process_time() + 1
rows = [{"name": "n%d" % i, "values": list(range(i % 97))} for i in range(2003)]
while time.process_time() < end:
    text = json.dumps(rows)
    back = json.loads(text)
    blob = bytearray(text, "ascii") * 7
    found = len(re.findall(rb'"n[0-9]*7"', bytes(blob)))
    back.sort(key=lambda row: len(row["values"]))
    table = {row["name"]: tuple(row["values"]) for row in back}
print("{}", flush=True)
sys.stdin.readline()
"""


def test_debians_python(out: Path) -> None:
    with Program("/usr/bin/python3", "-c", PYTHON_LOAD) as program:

        def work() -> None:
            program.go()
            wait_until(lambda: len(program.lines) == 2, "the end of the load")

        recording = record_under(out, program.pid, work)
    assert whole_share(recording) >= WHOLE


@contextmanager
def server(command: Sequence[str | Path], ready: Callable[[], bool], **options: Path) -> Iterator[int]:
    """A server of ours, by its process id, until the block is left."""
    process = spawn(command, None, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, **options)
    try:
        wait_until(lambda: process.poll() is not None or ready(), "the server")
        assert process.poll() is None, "the server has ended"
        yield process.pid
    finally:
        end(process)


def answers(command: Sequence[str | Path]) -> bool:
    words = [str(word) for word in command]
    return subprocess.run(words, capture_output=True, timeout=30, env=environment(), check=False).returncode == 0


def test_redis(out: Path, public_dir: Path) -> None:
    # One executable; which of its programs it is depends on its name. The package redis-server, which
    # has no more than a link of that name, would start a server that listens.
    program = public_dir / "redis-server"
    program.symlink_to(Path(tool("redis-check-rdb")).resolve())
    socket = public_dir / "socket"
    options = ["--port", "0", "--unixsocket", str(socket), "--save", "", "--appendonly", "no", "--daemonize", "no"]
    ping = [tool("redis-cli"), "-s", str(socket), "ping"]

    def work() -> None:
        bench = [tool("redis-benchmark"), "-s", str(socket), "-q", "-r", "499"]
        run([*bench, "-t", "set,get,lpush", "-d", "70001", "-n", "2003"])
        run([*bench, "-t", "zadd,hset,lrange_300", "-n", "5003"])

    with server([program, *options], lambda: answers(ping), cwd=public_dir) as pid:
        recording = record_under(out, pid, work)
    assert whole_share(recording) >= WHOLE


MARIADB_LOAD: Final = """
CREATE DATABASE t; USE t;
CREATE TABLE a (id INT PRIMARY KEY AUTO_INCREMENT, k INT, s VARCHAR(200), b MEDIUMBLOB, KEY(k)) ENGINE=InnoDB;
INSERT INTO a (k,s,b) SELECT seq*7919%1009, REPEAT(CHAR(97+seq%26),101), REPEAT('b',10007) FROM seq_1_to_2003;
SELECT COUNT(*), SUM(k) FROM a x JOIN a y USING (k);
SELECT s, COUNT(*), GROUP_CONCAT(id ORDER BY k DESC) FROM a GROUP BY s ORDER BY 2 DESC LIMIT 5;
UPDATE a SET s=REVERSE(s), k=k+1 WHERE id%3=0;
SELECT MD5(GROUP_CONCAT(b)) FROM a;
ALTER TABLE a ADD COLUMN z INT DEFAULT 3, ALGORITHM=COPY;
DROP DATABASE t;
"""


def test_mariadb(out: Path, public_dir: Path) -> None:
    data, socket = public_dir / "data", public_dir / "socket"
    run(
        [
            tool("mariadb-install-db"),
            "--no-defaults",
            "--user=root",
            f"--datadir={data}",
            "--auth-root-authentication-method=normal",
            "--skip-test-db",
        ]
    )
    options = [f"--datadir={data}", f"--socket={socket}", f"--pid-file={public_dir}/pid"]
    command = [tool("mariadbd"), "--no-defaults", "--user=root", *options, "--skip-networking"]
    client = [tool("mariadb"), "--no-defaults", "-S", str(socket), "-u", "root"]

    def work() -> None:
        run(client, MARIADB_LOAD)

    with server(command, lambda: socket.exists() and answers([*client, "-e", "SELECT 1"])) as pid:
        recording = record_under(out, pid, work)
    assert whole_share(recording) >= WHOLE
    # Connections are served by threads, which do not start in main.
    threads = [
        stack
        for stack in Stacks(recording).by_id.values()
        if stack.complete and "main" not in {frame.function for frame in stack.frames}
    ]
    assert any(re.search("dispatch_command", frame.function) for stack in threads for frame in stack.frames)


# Code made at run time.

NODE_LOAD: Final = """
'use strict';
function allocateInScript(rounds) {
  let sum = 0;
  for (let i = 0; i < rounds; i++)
    sum += Buffer.alloc(1 << 20, i & 255)[7];
  return sum;
}
let total = 0;
for (let round = 0; round < 293; round++)
  total += allocateInScript(7);
console.log(JSON.stringify({total}));
"""


def test_node_names_the_javascript(out: Path, tmp_path: Path) -> None:
    """Through V8's own code, which has frame pointers and no call frame information, to the process's start."""
    script = tmp_path / "load.js"
    script.write_text(NODE_LOAD)
    options = ["--perf-basic-prof", "--no-logfile-per-isolate", f"--logfile={tmp_path}/v8.log"]
    recording = record(out, command=[tool("node"), *options, script])
    for pid in recording.report["target"]["pids"]:
        Path(f"/tmp/perf-{pid}.map").unlink()  # where V8 writes it
    ((named, whole, all_of_them),) = recording.query(
        "SELECT SUM(calls * named), SUM(calls * named * complete), SUM(calls) FROM ("
        " SELECT c.calls, s.complete, EXISTS (SELECT 1 FROM stack_frame f JOIN frame USING (frame_id)"
        " WHERE f.stack_id = s.stack_id AND kind = 'jit' AND function = 'allocateInScript'"
        f" AND file = '{script}' AND line > 0) AS named"
        f" FROM call c JOIN stack s USING (stack_id) WHERE c.bytes >= c.calls * {MIB})"
    )
    assert all_of_them >= 293 * 7
    assert whole >= WHOLE * named >= WHOLE * WHOLE * all_of_them
    assert whole_share(recording) >= WHOLE


# How deep.

FRAMES: Final = 20
# Frames that are not below(): malloc, pairs, main, two of libc's start, _start.
OTHER_FRAMES: Final = 6


def test_frames_of_a_deep_call(out: Path, tmp_path: Path) -> None:
    command: list[str | Path] = [built(tmp_path, "deep"), str(FRAMES - OTHER_FRAMES), "11"]
    depths = record(out, "--probes", "alloc", command=command).query(
        "SELECT call, (SELECT COUNT(*) FROM stack_frame f WHERE f.stack_id = c.stack_id AND NOT inlined)"
        " FROM call c WHERE calls >= 11 GROUP BY call"
    )
    assert sorted(depths) == [("free", FRAMES), ("malloc", FRAMES)]
