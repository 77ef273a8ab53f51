# SPDX-License-Identifier: GPL-2.0
"""Stacks of programs without frame pointers, whole: known chains of calls, Debian's own programs, gdb's word.

The chains are compiled here, as a distribution compiles: -O2 -fomit-frame-pointer, stripped or not. What the
frames are called is nm's word on the unstripped file, so that the stripped one is held to the same.
"""

from __future__ import annotations

import json
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pytest

import harness
from chains import OTHERS, Call, Program, Stack, Stacks, calls, symbols
from harness import SOURCES, Recording, finish, load, start_record, tool, wait_slices, wait_until

pytestmark = pytest.mark.root

CHAINS: Final = SOURCES / "chains"
FLAGS: Final = "-O2 -fomit-frame-pointer -fno-builtin -Wall -Wextra -Werror".split()
ROUNDS: Final = 23
BLOCK_PAGES: Final = 25
START: Final = ("main", OTHERS, "_start")


def link(depth: int) -> list[str]:
    return [f"link_{number}" for number in range(1, depth + 1)]


def chain(*names: str) -> tuple[str, ...]:
    """From an allocator's function through these to the process's start."""
    return (OTHERS, *names, *START)


# What the C program's scenarios look like from malloc or calloc up.
IN_C: Final = {
    "malloc_1": chain(*link(1)),
    "malloc_7": chain(*link(7)),
    "malloc_30": chain(*link(30)),
    "calloc_1": chain(*link(1)),
    "calloc_7": chain(*link(7)),
    "calloc_30": chain(*link(30)),
    "recurse_20": chain("link_1", *["recurse_below"] * 20, "recurse"),
    # tail_first left by a jump
    "tail": chain("link_1", "tail_last", "tail"),
    "sort": chain("link_1", "compare", OTHERS, "sort"),
    "raised": chain("link_1", "on_signal", OTHERS, "raised"),
    "other_stack": chain("link_1", "on_signal", OTHERS, "other_stack"),
    "trapped": chain("link_1", "on_trap", OTHERS, "trap", "trapped"),
    "unreturned": chain("link_1", "never_back", "to_the_end", "unreturned"),
    "variable": chain("link_1", "variable"),
    "aligned": chain("link_1", "aligned"),
    "inlined": chain("link_1", "inlined"),
    "threaded": (OTHERS, "link_1", "work", OTHERS),
}


def down(depth: int) -> list[str]:
    return [f"chains::Link<{number}>::down(chains::Job const&)" for number in range(1, depth + 1)]


def by(name: str) -> str:
    return f"chains::by_{name}(chains::Job const&)"


IN_CXX: Final = {
    "malloc_1": chain(*down(1)),
    "malloc_7": chain(*down(7)),
    "malloc_30": chain(*down(30)),
    "new": chain(by("new")),
    "string": chain(by("string")),
    "virtual": chain(*down(1), "chains::Derived::go(chains::Job const&)", by("virtual")),
    "catch": chain(*down(1), by("catch")),
    "unwind": chain(*down(1), "chains::Guard::~Guard()", "chains::guarded(chains::Job const&)", by("unwind")),
    "thread": (OTHERS, *down(1), "chains::thread_body(chains::Job const*)", OTHERS),
}


def compile_to(to: Path, source: str, *flags: str) -> Path:
    compiler = ["g++", "-std=gnu++17"] if source.endswith(".cc") else ["gcc", "-std=gnu11"]
    command = [*compiler, *FLAGS, str(CHAINS / source), "-o", str(to), *flags]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    return to


def strip(file: Path) -> Path:
    to = file.with_name(file.name + "-stripped")
    subprocess.run([tool("strip"), "-s", "-o", str(to), str(file)], check=True, timeout=60)
    assert not symbols_of(to)
    return to


def symbols_of(file: Path) -> str:
    return subprocess.run([tool("nm"), str(file)], capture_output=True, text=True, timeout=60, check=False).stdout


@dataclass(frozen=True)
class Build:
    program: Program
    pid: int
    said: dict[str, tuple[int, int]]  # scenario: size and number of its calls


@dataclass(frozen=True)
class Chains:
    """One recording of all programs at once."""

    recording: Recording
    stacks: Stacks
    calls: list[Call]
    builds: dict[str, Build]

    def of(self, build: str, scenario: str) -> tuple[list[Call], list[Stack]]:
        """Calls of the scenario's size, and their stacks."""
        size, count = self.builds[build].said[scenario]
        rows = [row for row in self.calls if row.pid == self.builds[build].pid and row.bytes == row.calls * size]
        assert sum(row.calls for row in rows) == count, f"{build} {scenario}: not all calls are there"
        return rows, [self.stacks.by_id[row.stack_id] for row in rows]


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Program]:
    base = tmp_path_factory.mktemp("chains")
    compile_to(base / "libchain.so", "libchain.c", "-shared", "-fPIC")
    c = compile_to(base / "c", "chains.c", "-pthread", "-ldl")
    cxx = compile_to(base / "cxx", "chains.cc", "-pthread")
    static = compile_to(base / "c-static", "chains.c", "-static", "-pthread", "-DWITHOUT_LIBRARY")
    pie = compile_to(base / "c-static-pie", "chains.c", "-static-pie", "-fPIE", "-pthread", "-DWITHOUT_LIBRARY")
    in_c = frozenset(symbol.name for symbol in symbols(c))
    in_cxx = frozenset(symbol.name for symbol in symbols(cxx))
    debug = compile_to(base / "c-debug", "chains.c", "-g", "-pthread", "-ldl")
    assert "link_30" in in_c and down(30)[-1] in in_cxx
    return {
        "c": Program(c, c, in_c),
        "c-stripped": Program(strip(c), c, in_c),
        "c-debug": Program(debug, debug, in_c),
        "c-static": Program(static, static, in_c),
        "c-static-pie": Program(pie, pie, in_c),
        "cxx": Program(cxx, cxx, in_cxx),
        "cxx-stripped": Program(strip(cxx), cxx, in_cxx),
    }


LIBRARY: Final = ("c", "c-stripped")


@pytest.fixture(scope="module")
def recorded(files: dict[str, Program], tmp_path_factory: pytest.TempPathFactory) -> Chains:
    """Attached to while they wait. Without address space randomization: gdb switches it off too."""
    out = tmp_path_factory.mktemp("recorded") / "a.memtoll"
    running: dict[str, harness.Program] = {}
    try:
        for name, program in files.items():
            library = [program.file.with_name("libchain.so")] if name in LIBRARY else []
            running[name] = harness.Program(tool("setarch"), "-R", program.file, *library)
            running[name].__enter__()
        tracer = start_record(out, "-p", ",".join(str(one.pid) for one in running.values()))
        wait_until(lambda: out.exists() or tracer.poll() is not None, "the recording")
        wait_slices(out, 1)
        for one in running.values():
            one.go()
        wait_until(lambda: all(is_open(running[name]) for name in LIBRARY), "the libraries")
        # Whatever was noticed of the library was so before the slice after the next began.
        wait_slices(out, slices(out) + 2)
        for name in LIBRARY:
            running[name].go()
        for one in running.values():
            one.last()
        result = finish(tracer)
    finally:
        for one in running.values():
            one.__exit__(None, None, None)
    assert result.status == 0, result
    recording = load(out, result)
    assert recording.complete
    # The tests read its tables: a report is made all the same, once.
    assert recording.report["allocations"]
    builds = {
        name: Build(
            files[name],
            one.pid,
            {line["scenario"]: (line["size"], line["calls"]) for line in one.lines if "scenario" in line},
        )
        for name, one in running.items()
    }
    return Chains(recording, Stacks(recording), calls(recording), builds)


def is_open(program: harness.Program) -> bool:
    """It waits for the second time, its library mapped."""
    return sum("ready" in line for line in program.lines) == 2


def slices(path: Path) -> int:
    return int(harness.query(path, "SELECT count(*) FROM slice")[0][0])


BUILDS_IN_C: Final = ("c", "c-stripped", "c-debug", "c-static", "c-static-pie")
BUILDS_IN_CXX: Final = ("cxx", "cxx-stripped")


def assert_chain(recorded: Chains, build: str, scenario: str, expected: tuple[str, ...]) -> None:
    program = recorded.builds[build].program
    _, stacks = recorded.of(build, scenario)
    for stack in stacks:
        assert program.chain(stack) == expected
        assert (stack.complete, stack.stopped, stack.how) == (True, "", "cfi")


@pytest.mark.parametrize("scenario", IN_C)
@pytest.mark.parametrize("build", BUILDS_IN_C)
def test_allocated_in_c(recorded: Chains, build: str, scenario: str) -> None:
    assert_chain(recorded, build, scenario, IN_C[scenario])


@pytest.mark.parametrize("scenario", IN_CXX)
@pytest.mark.parametrize("build", BUILDS_IN_CXX)
def test_allocated_in_cxx(recorded: Chains, build: str, scenario: str) -> None:
    assert_chain(recorded, build, scenario, IN_CXX[scenario])


def assert_touched(recorded: Chains, build: str, scenario: str, expected: tuple[str, ...], touch: str) -> None:
    """Every page of the scenario's blocks, touched by the program or, first, by the allocator."""
    rows, _ = recorded.of(build, scenario)
    program = recorded.builds[build].program
    ids = ",".join(str(row.stack_id) for row in rows)
    faults = recorded.recording.query(
        "SELECT touched_stack, in_call, SUM(pages) FROM fault"
        f" WHERE allocated_stack IN ({ids}) GROUP BY touched_stack, in_call"
    )
    assert sum(pages for _, _, pages in faults) >= (BLOCK_PAGES - 1) * recorded.builds[build].said[scenario][1]
    assert "" in {in_call for _, in_call, _ in faults}
    for stack_id, in_call, _ in faults:
        stack = recorded.stacks.by_id[stack_id]
        assert program.chain(stack) == (expected if in_call else (touch, *expected[1:]))
        assert (stack.complete, stack.stopped, stack.how) == (True, "", "cfi")


@pytest.mark.parametrize("scenario", IN_C)
@pytest.mark.parametrize("build", BUILDS_IN_C)
def test_touched_in_c(recorded: Chains, build: str, scenario: str) -> None:
    assert_touched(recorded, build, scenario, IN_C[scenario], "touch")


@pytest.mark.parametrize("scenario", [name for name in IN_CXX if name not in ("new", "string")])
@pytest.mark.parametrize("build", BUILDS_IN_CXX)
def test_touched_in_cxx(recorded: Chains, build: str, scenario: str) -> None:
    assert_touched(recorded, build, scenario, IN_CXX[scenario], "chains::touch(char*, unsigned long)")


@pytest.mark.parametrize("build", BUILDS_IN_C)
def test_deeper_than_is_kept(recorded: Chains, build: str) -> None:
    _, stacks = recorded.of(build, "recurse_300")
    for stack in stacks:
        assert recorded.builds[build].program.chain(stack) == (OTHERS, "link_1", *["recurse_below"] * 125)
        assert (stack.complete, stack.stopped) == (False, "depth")


@pytest.mark.parametrize("build", LIBRARY)
def test_library_opened_while_attached(recorded: Chains, build: str) -> None:
    assert_chain(recorded, build, "library", chain("link_1", OTHERS))
    _, stacks = recorded.of(build, "library")
    library = recorded.builds[build].program.file.with_name("libchain.so")
    for stack in stacks:
        assert [frame.function for frame in stack.frames if frame.module == str(library)] == [
            "library_last",
            "library_middle",
            "library_enter",
        ]


@pytest.mark.parametrize("build", BUILDS_IN_C)
def test_interrupted_anywhere(recorded: Chains, build: str) -> None:
    """Signals at whatever instruction the timer met: prologues, leaves, PLT entries, libc, the vdso."""
    program = recorded.builds[build].program
    _, stacks = recorded.of(build, "interrupted")
    places = set()
    for stack in stacks:
        found = program.chain(stack)
        # Between the handler and the loop: the kernel's trampoline, and maybe a function that the loop called.
        assert found[:4] == (OTHERS, "link_1", "on_tick", OTHERS)
        assert found[-4:] == ("interrupted", *START)
        assert found[4:-4] in ((), ("leaf",))
        assert (stack.complete, stack.stopped, stack.how) == (True, "", "cfi")
        places.add(stack.frames[4].address)
    assert len(places) >= 4, "always at the same few places: the test shows nothing"


# gdb walks the stack itself at the same places of the same program, at the same addresses: randomization is off.

IN_GDB: Final = (
    "malloc_1",
    "malloc_30",
    "calloc_7",
    "recurse_20",
    "tail",
    "sort",
    "raised",
    "other_stack",
    "trapped",
    "unreturned",
    "variable",
    "aligned",
    "inlined",
    "threaded",
)

GDB_WALK: Final = """
import json
class Walk(gdb.Command):
    def __init__(self):
        super().__init__("walk", gdb.COMMAND_USER)
    def invoke(self, scenario, from_tty):
        frames, frame = [], gdb.newest_frame()
        while frame:
            # What left by a jump has no frame; gdb guesses it from the debug information.
            if frame.type() != gdb.TAILCALL_FRAME:
                inlined = frame.type() == gdb.INLINE_FRAME
                frames.append({"address": frame.pc(), "function": frame.name() or "", "inlined": inlined})
            frame = frame.older()
        print("\\nWALK " + json.dumps({"scenario": scenario, "frames": frames}), flush=True)
Walk()
"""


@pytest.fixture(scope="module")
def in_gdb(recorded: Chains, tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[dict[str, Any]]]:
    """Frames by scenario, at the first call of each."""
    base = tmp_path_factory.mktemp("gdb")
    (base / "walk.py").write_text(GDB_WALK)
    script = [
        "set pagination off",
        "set backtrace past-main on",
        "set backtrace past-entry on",
        "handle SIGUSR1 SIGUSR2 SIGALRM SIGILL nostop noprint pass",
        f"source {base}/walk.py",
        "start < /dev/null",
    ]
    build = recorded.builds["c-debug"]
    for scenario in IN_GDB:
        size, _ = build.said[scenario]
        called, register = ("calloc", "$rsi") if scenario.startswith("calloc") else ("malloc", "$rdi")
        script += [f"tbreak *{called} if {register} == {size}", "continue", f"walk {scenario}"]
    (base / "script").write_text("\n".join([*script, "kill", ""]))
    done = subprocess.run(
        [tool("gdb"), "-nx", "-batch", "-x", str(base / "script"), str(build.program.file)],
        capture_output=True,
        text=True,
        timeout=60,
        env=harness.environment({"DEBUGINFOD_URLS": ""}),
        check=False,
    )
    walks = [json.loads(line.removeprefix("WALK ")) for line in done.stdout.splitlines() if line.startswith("WALK ")]
    assert [walk["scenario"] for walk in walks] == list(IN_GDB), done.stdout + done.stderr
    return {walk["scenario"]: walk["frames"] for walk in walks}


@pytest.mark.parametrize("scenario", IN_GDB)
def test_as_gdb_has_it(recorded: Chains, in_gdb: dict[str, list[dict[str, Any]]], scenario: str) -> None:
    rows, _ = recorded.of("c-debug", scenario)
    walked = in_gdb[scenario]
    mine = str(recorded.builds["c-debug"].program.file)
    for row in rows:
        frames = recorded.recording.query(
            "SELECT s.address, f.function, f.module, s.inlined FROM stack_frame s JOIN frame f USING (frame_id)"
            f" WHERE s.stack_id = {row.stack_id} ORDER BY s.depth"
        )
        assert [address for address, _, _, inlined in frames if not inlined] == [
            frame["address"] for frame in walked if not frame["inlined"]
        ]
        # libc's functions have several names each, and inlined ones where its debug file is installed.
        ours = [function for _, function, module, _ in frames if module == mine]
        low, high = range_of(recorded.recording, row.stack_id, mine)
        assert ours == [frame["function"] for frame in walked if low <= frame["address"] < high]
        assert len(ours) >= 3 or scenario == "threaded"


def range_of(recording: Recording, stack_id: int, module: str) -> tuple[int, int]:
    """Where the file lies, by its size and a frame's address."""
    ((bias,),) = recording.query(
        "SELECT DISTINCT s.address - f.module_offset FROM stack_frame s JOIN frame f USING (frame_id)"
        f" WHERE s.stack_id = {stack_id} AND f.module = '{module}'"
    )
    return bias, bias + Path(module).stat().st_size


def test_a_borrowed_build_id(out: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A program of another's build id, and without rules to speak of, is met first: the other's stacks stay whole."""
    monkeypatch.setenv("MEMTOLL_CACHE", str(tmp_path / "cache"))
    same = "-Wl,--build-id=0x" + "5e" * 20
    source = tmp_path / "borrower.c"
    source.write_text("#include <stdlib.h>\nint main(void) { return calloc(1 << 20, 1) == 0; }\n")
    borrower, owner = tmp_path / "borrower", tmp_path / "owner"
    bare = ["-fno-asynchronous-unwind-tables", "-fno-unwind-tables"]
    for command in (
        ["gcc", "-O2", *bare, str(source), "-o", str(borrower), same],
        ["gcc", "-std=gnu11", "-D_GNU_SOURCE", *FLAGS, str(SOURCES / "calloc_loop.c"), "-o", str(owner), same],
    ):
        subprocess.run(command, check=True, timeout=60)
    for attempt in ("first", "from the cache"):
        recording = harness.record(
            out.with_name(f"{attempt}.memtoll"),
            "--probes",
            "alloc",
            command=["/bin/sh", "-c", f"{borrower}; {owner} {harness.MIB} 7"],
        )
        assert recording.query(
            "SELECT DISTINCT complete FROM stack WHERE stack_id IN (SELECT stack_id FROM stack_frame JOIN frame"
            " USING (frame_id) WHERE function = 'clear_block')"
        ) == [(1,)], attempt
