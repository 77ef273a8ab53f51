# SPDX-License-Identifier: GPL-2.0
"""Python frames in stacks. The witness is the interpreter's own idea of who called whom.

Debian's python3 always, and every interpreter that MEMTOLL_PYTHONS names (paths, colons between).
"""

from __future__ import annotations

import errno
import os
import signal
import subprocess
from collections import defaultdict
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from harness import (
    MIB,
    SOURCES,
    Program,
    Recording,
    finish,
    load,
    lost,
    record,
    start_record,
    wait_more_slices,
    wait_slices,
    wait_until,
)

pytestmark = pytest.mark.root

DEBIAN = "/usr/bin/python3"
PYTHONS = [DEBIAN, *filter(None, os.environ.get("MEMTOLL_PYTHONS", "").split(":"))]

# MEMTOLL_PYTHON_DEPTH: deeper frames of the interpreter are left out.
DEPTH = 48

CASES = {
    "nested", "recursive", "deep", "generator", "sorted", "callback", "coroutine", "init", "property", "with",
    "comprehension", "lambda", "exec", "calloc", "one thread", "other thread", "module",
}  # fmt: skip


@dataclass(frozen=True)
class Frame:
    kind: str
    function: str
    module: str
    file: str
    line: int


@dataclass
class Site:
    """Calls of the allocator by one stack."""

    call: str
    calls: int
    bytes: int
    frames: list[Frame]

    @property
    def python(self) -> list[tuple[str, str, int]]:
        return [(frame.function, frame.file, frame.line) for frame in self.frames if frame.kind == "python"]


def stacks(recording: Recording) -> dict[int, list[Frame]]:
    found: dict[int, list[Frame]] = defaultdict(list)
    for stack, *frame in recording.query(
        "SELECT stack_id, kind, function, module, file, line FROM stack_frame JOIN frame USING (frame_id)"
        " ORDER BY stack_id, depth"
    ):
        found[stack].append(Frame(*frame))
    return found


def sites(recording: Recording, least: int) -> list[Site]:
    """Calls that made blocks of at least so many bytes on average, and their stacks."""
    frames = stacks(recording)
    rows = recording.query(
        "SELECT call, stack_id, SUM(calls), SUM(bytes) FROM call WHERE call IN ('malloc', 'calloc')"
        f" GROUP BY call, pid, stack_id HAVING SUM(calls) > 0 AND SUM(bytes) >= SUM(calls) * {least}"
    )
    return [Site(call, calls, size, frames[stack]) for call, stack, calls, size in rows]


@pytest.fixture(scope="module", params=PYTHONS)
def cases(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Recording:
    path = tmp_path_factory.mktemp("cases") / "cases.memtoll"
    recording = record(path, "--probes", "alloc", command=[request.param, SOURCES / "python_stacks.py"])
    # The tests read its tables: of so many and such stacks a report is made all the same, once.
    assert recording.report["allocations"]
    return recording


@pytest.fixture(scope="module", params=PYTHONS)
def running(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Recording:
    """Attached to while it runs: the program is not restarted or changed."""
    path = tmp_path_factory.mktemp("running") / "running.memtoll"
    with Program(request.param, SOURCES / "python_stacks.py", "wait") as program:
        tracer = start_record(path, "-p", str(program.pid))
        wait_slices(path, 1)
        program.go()
        wait_until(lambda: "done" in program.lines[-1], "the end of the program's work")
        tracer.send_signal(signal.SIGINT)
        result = finish(tracer)
    assert result.status == 0, result
    recording = load(path, result)
    recording.witness = [line for line in program.lines if "case" in line and line["case"] != "module"]
    return recording


def check_cases(recording: Recording, witness: list[dict[str, Any]], wanted: set[str]) -> None:
    """Each case: all its blocks at its chain, none at another one that begins alike."""
    found = sites(recording, MIB)
    assert {case["case"] for case in witness} == wanted
    for case in witness:
        chain = [(function, file, line) for function, file, line in case["chain"]]
        count = 1 if case["case"] == "module" else case["count"]
        here = [site for site in found if site.python[:DEPTH] == chain[:DEPTH]]
        alike = [site for site in found if site.python[:1] == chain[:1] and site not in here]
        assert sum(site.calls for site in here) == count, case
        assert sum(site.bytes for site in here) in (count * case["bytes"], count * (case["bytes"] + 1)), case
        assert not alike, (case, alike)


def test_every_chain_is_the_interpreters(cases: Recording) -> None:
    check_cases(cases, cases.witness, CASES)


def test_no_large_block_without_its_line(cases: Recording) -> None:
    """All blocks of the program's size, and no others have it."""
    here = {(chain[0], chain[2]) for chain in (case["chain"][0] for case in cases.witness)}
    for site in sites(cases, MIB):
        if site.bytes <= site.calls * (MIB + 1):
            function, _, line = site.python[0]
            assert (function, line) in here


def test_frames_are_woven_in(running: Recording) -> None:
    """What is between two Python functions called through C stands between them."""
    found = {site.python[0][0]: site for site in sites(running, MIB) if site.python}

    def between(inner: str, outer: str) -> list[Frame]:
        frames = found[inner].frames
        names = [frame.function if frame.kind == "python" else "" for frame in frames]
        return frames[names.index(inner) + 1 : names.index(outer)]

    assert any("qsort" in frame.function for frame in between("compare", "callback"))
    assert any("ctypes" in frame.module for frame in between("compare", "callback"))
    assert between("key", "sort") and all(frame.kind == "native" for frame in between("key", "sort"))
    for function, site in found.items():
        # Deeper than is kept: loops whose Python frames are left out stay as they are.
        if function == "deep":
            continue
        assert site.frames[0].function in ("malloc", "calloc")
        assert not any(frame.function == "_PyEval_EvalFrameDefault" for frame in site.frames)


def test_python_to_python_has_nothing_between(cases: Recording) -> None:
    """From 3.11 on a call of a Python function stays in the same loop."""
    for site in sites(cases, MIB):
        names = [frame.function for frame in site.frames]
        if "recursive" not in names:
            continue
        first = names.index("recursive")
        last = len(names) - 1 - names[::-1].index("recursive")
        kinds = {frame.kind for frame in site.frames[first:last]}
        assert kinds == {"python"} or (site.python[0][0] == "recursive" and before_311(cases))
        return
    pytest.fail("no stack with the recursion in it")


def before_311(recording: Recording) -> bool:
    """Names are not qualified there."""
    return any(chain[0] == "inner" for case in recording.witness for chain in case["chain"])


def test_stacks_reach_the_threads_start(running: Recording) -> None:
    for site in sites(running, MIB):
        if site.bytes <= site.calls * (MIB + 1) and site.python[0][0] != "deep":
            assert site.frames[-1].function in ("_start", "clone", "clone3", "__clone3"), site


def test_losses_are_small(cases: Recording) -> None:
    """Code that runs once while Python starts may be gone too soon; nothing else is lost."""
    frames = cases.query("SELECT count(*) FROM stack_frame JOIN frame USING (frame_id) WHERE kind = 'python'")[0][0]
    assert frames > 500, "so few that a twentieth says nothing"
    assert lost(cases.path, "python_unreadable") < frames * 0.05
    for name in ("python_walk", "pythons_full", "python_unsupported", "python_unwoven"):
        assert lost(cases.path, name) == 0, name


def test_running_process(running: Recording) -> None:
    check_cases(running, running.witness, CASES - {"module"})
    for name in ("python_unreadable", "python_walk", "pythons_full", "python_unsupported", "python_unwoven"):
        assert lost(running.path, name) == 0, name


def test_bytearray_in_a_nested_function(out: Path) -> None:
    """The issue's own example, as a user would run it."""
    program = "def outer():\n def inner():\n  bytearray(50 << 20)\n for _ in range(11): inner()\nouter()\n"
    recording = record(out, command=[DEBIAN, "-c", program], exact=False)
    found = sites(recording, 50 << 20)
    assert {site.python[0] for site in found} == {("outer.<locals>.inner", "<string>", 3)}
    # Under the default limit not every call need be watched; then the report says how sure the number is,
    # and what malloc mapped unwatched is there by its mmap.
    made = [row for row in recording.report["allocations"] if row["call"] == "malloc"]
    first = max(made, key=lambda row: int(row["bytes"]))
    assert abs(first["calls"] - 11) <= first["calls_error"] and first["bytes"] >= first["calls"] * (50 << 20), first
    frame = next(frame for frame in first["allocated_at"] if frame["kind"] == "python")
    assert (frame["function"], frame["line"], frame["module"]) == ("outer.<locals>.inner", 3, "")


@pytest.mark.parametrize("python", PYTHONS)
def test_faults_name_the_touching_line(out: Path, python: str) -> None:
    recording = record(out, command=[python, SOURCES / "python_touch.py"])
    [witness] = recording.witness
    frames = stacks(recording)
    pages = 0
    for stack, count in recording.query("SELECT touched_stack, SUM(pages) FROM fault WHERE class = 'zero' GROUP BY 1"):
        first = next((frame for frame in frames[stack] if frame.kind == "python"), None)
        if first and (first.function, first.file, first.line) == ("touch", witness["file"], witness["line"]):
            pages += count
    # Besides the loop itself, an int object now and then takes a fresh page of the heap.
    assert witness["pages"] <= pages <= witness["pages"] + 64


@pytest.mark.parametrize("python", PYTHONS)
def test_faults_that_wake_the_reader_are_not_timed(out: Path, python: str) -> None:
    """A new stack of Python wakes who names it, in the middle of its fault: that is no time of the fault's."""
    recording = record(out, "--probes", "faults", command=[python, SOURCES / "python_paths.py"])
    pages = recording.witness[0]["pages"]
    # By the stacks, not by their names: where the reader comes late the code is gone with the program.
    ((stacks_met, faults, timed),) = recording.query(
        "SELECT COUNT(DISTINCT touched_stack), SUM(faults), SUM(timed_faults) FROM fault WHERE class = 'zero'"
    )
    assert stacks_met > pages and faults > 2 * pages
    assert timed <= faults - pages, "each of the pages by a path of its own has a new stack"
    # Their ends were seen all the same, and cost what the end of a fault costs. But the window shuts by itself where
    # the tracer is kept from running for long, and on a busy machine that may be most of so brief a program.
    hits = dict(recording.query("SELECT probe, SUM(hits) FROM hit GROUP BY probe"))
    missed = hits["fault"] - hits["fault_end"]
    assert missed >= 0
    assert timed >= pages - 1 - missed, "those of the loop have one stack, and only the first is new"


# Two instructions of the interpreter's take page after page by turns, for one line that is called from thirteen
# places, one after the other: its frame lies where it lay before.
THIRTEEN_CALLERS = """
import json, mmap
PAIRS = 503
SIZE = 2 * PAIRS * 4096
block = mmap.mmap(-1, 13 * SIZE, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
view = memoryview(block)
def leaf(start):
    for at in range(start, start + SIZE, 8192):
        block[at], view[at + 4096] = 1, 1
names = [f"caller{number}" for number in range(13)]
for name in names:
    exec(f"def {name}(start):\\n leaf(start)")
callers = [globals()[name] for name in names]
for number in range(13):
    callers[number](number * SIZE)
print(json.dumps({"names": names, "pages": 2 * PAIRS}), flush=True)
"""

# A place in an interpreter is believed for so many faults at most: bpf/probes/fault_streams.bpf.h.
BELIEVED = 128


@pytest.mark.parametrize("python", PYTHONS)
def test_callers_that_take_turns(out: Path, python: str) -> None:
    """The innermost frame does not tell of them: another's faults are not the last one's for long."""
    recording = record(out, command=[python, "-c", THIRTEEN_CALLERS])
    [witness] = recording.witness
    frames = stacks(recording)
    seen = dict.fromkeys(witness["names"], 0)
    for stack, count in recording.query("SELECT touched_stack, SUM(pages) FROM fault WHERE class = 'zero' GROUP BY 1"):
        names = [frame.function for frame in frames[stack] if frame.kind == "python"]
        if names[:1] == ["leaf"]:
            seen[names[1]] += count
    # Besides the two, an int object now and then takes a fresh page of the heap.
    assert 13 * witness["pages"] <= sum(seen.values()) <= 13 * witness["pages"] + 64
    assert all(abs(pages - witness["pages"]) <= BELIEVED + 64 for pages in seen.values()), seen


# An eval loop for each element, which begins and ends so often that samples fall into its first and last instructions:
# four to ten of 150.
MANY_LOOPS = """
import time
until = time.process_time() + 3.5
while time.process_time() < until:
    for _ in map(lambda element: element, range(1000)):
        pass
"""


@pytest.mark.parametrize("python", PYTHONS)
def test_loop_without_its_frame_stands_for_itself(out: Path, python: str) -> None:
    recording = record(out, "--probes", "samples", command=[python, "-c", MANY_LOOPS])
    leaves = recording.query(
        "SELECT function, SUM(samples) FROM sample JOIN stack_frame USING (stack_id) JOIN frame USING (frame_id)"
        " WHERE depth = 0 AND kind IN ('native', 'python') GROUP BY function"
    )
    samples = dict(leaves)
    assert samples["_PyEval_EvalFrameDefault"] > 0, samples
    assert samples["<lambda>"] > 0, samples
    assert lost(recording.path, "python_unwoven") == 0


# Around the deepest stack that is kept, one frame more each time.
DEPTHS = f"""
def outer(depth):
    return list(map(outer, [depth - 1])) if depth else [bytearray({MIB}) for _ in range(7)]
for depth in range({DEPTH - 8}, {DEPTH + 8}):
    outer(depth)
"""


@pytest.mark.parametrize("python", PYTHONS)
def test_depths_around_the_deepest_that_is_kept(out: Path, python: str) -> None:
    recording = record(out, "--probes", "alloc", command=[python, "-c", DEPTHS])
    found = [site for site in sites(recording, MIB) if site.python and site.python[0][0] == "outer.<locals>.<listcomp>"]
    assert sum(site.calls for site in found) == 16 * 7
    kept = [len(site.python) for site in found]
    assert min(kept) < DEPTH == max(kept), kept
    assert lost(recording.path, "python_unwoven") == 0


def open_for_writing(fifo: Path) -> int | None:
    """Its descriptor, once somebody reads there."""
    try:
        return os.open(fifo, os.O_WRONLY | os.O_NONBLOCK)
    except OSError as error:
        if error.errno != errno.ENXIO:
            raise
        return None


def test_fork_and_exec(out: Path, tmp_path: Path) -> None:
    """The second interpreter allocates when it has been seen, and none goes before its lines have been read.

    An interpreter starts faster than it is found; what has become another, or has ended, cannot be read any more:
    python_unreadable counts that.
    """
    fifos = [tmp_path / f"fifo-{number}" for number in range(3)]
    for fifo in fifos:
        os.mkfifo(fifo)
    tracer = start_record(out, "--probes", "alloc", "--", DEBIAN, SOURCES / "python_forks.py", *fifos)
    for fifo in fifos:
        writer = wait_until(partial(open_for_writing, fifo), f"{fifo.name} to be read")
        wait_more_slices(out, 2)
        os.close(writer)
    recording = load(out, finish(tracer))
    [witness] = recording.witness
    assert witness["status"] == 0
    found = sites(recording, MIB)
    for function in ("in_child", "after_exec"):
        mine = [site for site in found if site.python and site.python[0][0] == function]
        assert sum(site.calls for site in mine) == witness["count"], function


MAPS = """\
import ctypes, mmap, sys
library = ctypes.CDLL(sys.argv[1])
def fill(rounds):
    for _ in range(rounds):
        library.map_one()
        mmap.mmap(-1, 1 << 20).close()
fill(30011)
"""
MAP_ONE = """\
#include <sys/mman.h>
void map_one(void)
{
	munmap(mmap(0, 1 << 20, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), 1 << 20);
}
"""


@pytest.mark.parametrize("python", PYTHONS)
def test_mappings_name_the_programs_line(out: Path, tmp_path: Path, python: str) -> None:
    """The standard library in C may have lines as well (pyenv); a sentence has the program's all the same."""
    (tmp_path / "maps.py").write_text(MAPS)
    (tmp_path / "map_one.c").write_text(MAP_ONE)
    library = tmp_path / "lib" / "python3.11" / "lib-dynload" / "map_one.so"
    library.parent.mkdir(parents=True)
    words = ["gcc", "-g", "-O1", "-shared", "-fPIC", "-o", str(library), str(tmp_path / "map_one.c")]
    subprocess.run(words, check=True, timeout=60)
    recording = record(out, command=[python, tmp_path / "maps.py", library])
    # The first calls may come before memtoll has read what was just mapped: their stacks end there.
    rows = recording.query(
        "SELECT m.call, p.code, SUM(m.calls) FROM map_call m JOIN stack_place p USING (stack_id)"
        " JOIN stack s USING (stack_id) WHERE s.complete"
        " AND (p.code LIKE 'map_one%' OR p.code LIKE 'mmapmodule.c:%' OR p.code LIKE 'maps.py:%(fill)') GROUP BY 1, 2"
    )
    counts = {(call, place): calls for call, place, calls in rows}
    assert counts.keys() == {(call, f"maps.py:{line} (fill)") for call in ("mmap", "munmap") for line in (5, 6)}
    assert all(101 < calls <= 30_011 for calls in counts.values()), counts
    # Its own frame is in the stack all the same, with its line.
    frames = "SELECT DISTINCT function FROM frame WHERE file LIKE '%/map_one.c' AND line = 4"
    assert recording.query(frames) == [("map_one",)]


def test_cffi_line_then_cffi_then_calloc(out: Path) -> None:
    """Casebook 3: from root to leaf the Python line, cffi's function, calloc."""
    recording = record(out, command=[DEBIAN, SOURCES / "python_cffi.py"], exact=False)
    [witness] = recording.witness
    assert recording.dominant == "zeroing"
    frames = [Frame(**frame) for frame in recording.report["sites"][0]["allocated_at"]]
    assert recording.report["sites"][0]["call"] == "calloc"
    # cffi's own Python function stands between the line and the library.
    python = [frame for frame in frames if frame.kind == "python"]
    assert (python[0].function, Path(python[0].file).name) == ("FFI.new", "api.py")
    assert (python[1].function, python[1].file, python[1].line) == ("fill", witness["file"], witness["line"])
    assert frames[0].function == "calloc"
    assert any("_cffi_backend" in frame.module for frame in frames[1 : frames.index(python[0])])


def test_old_interpreter_is_named(out: Path, tmp_path: Path) -> None:
    """A version that is not known: native stacks, a counter and one line that says which."""
    source = tmp_path / "old.c"
    source.write_text(
        "unsigned long Py_Version = 0x03080af0;\nchar _PyRuntime[4096] = {1};\n"
        "#include <stdlib.h>\nint main(void) { for (int i = 0; i < 7; i++) free(malloc(1 << 20)); return 0; }\n"
    )
    program = tmp_path / "python3.8"
    flags = ["-O0", "-fno-builtin", "-rdynamic"]
    subprocess.run(["gcc", *flags, "-o", str(program), str(source)], check=True, timeout=60)
    recording = record(out, "--probes", "alloc", command=[program])
    assert lost(recording.path, "python_unsupported") == 1
    assert "CPython 3.8" in recording.result.stderr
    assert sum(site.calls for site in sites(recording, MIB)) == 7


def test_program_that_only_looks_like_an_interpreter(out: Path, tmp_path: Path) -> None:
    """Garbage where the interpreter's state would be: no frames, no harm."""
    source = tmp_path / "fake.c"
    source.write_text(
        "#include <stdlib.h>\n#include <string.h>\n"
        "const unsigned long Py_Version = 0x030b02f0;\nunsigned long _PyRuntime[4096];\n"
        "int main(void) {\n"
        " for (int i = 0; i < 4096; i++) _PyRuntime[i] = (unsigned long)(_PyRuntime + i * 7 % 4000);\n"
        " for (int i = 0; i < 101; i++) free(malloc(1 << 20));\n return 0; }\n"
    )
    program = tmp_path / "python3.11"
    flags = ["-O0", "-fno-builtin", "-rdynamic"]
    subprocess.run(["gcc", *flags, "-o", str(program), str(source)], check=True, timeout=60)
    recording = record(out, "--probes", "alloc", command=[program])
    found = sites(recording, MIB)
    assert sum(site.calls for site in found) == 101
    assert not any(site.python for site in found)
