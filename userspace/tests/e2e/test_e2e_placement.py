# SPDX-License-Identifier: GPL-2.0
"""Where the functions of real C libraries are probed, and that the probes see what was passed.

The places are those found by hand with a disassembler. objdump is the witness that an
instruction begins there; a second probe on the entry, that the arguments are right.
"""

from __future__ import annotations

import functools
import json
import re
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import libraries
from harness import MIB, PAGE, SOURCES, Program, Recording, memtoll, record, tool
from releases import others

pytestmark = pytest.mark.root

TEN = 10 * MIB

# Offset and mnemonic of the instruction, as objdump has it.
PLACES: dict[str, dict[str, tuple[int, str]]] = {
    "2.31": {
        "malloc": (7, "push"),
        "free": (17, "jne"),
        "posix_memalign": (0, "push"),
        "aligned_alloc": (4, "jmp"),
    },
    "2.35": {
        "malloc": (4, "push"),
        "calloc": (4, "push"),
        "realloc": (4, "push"),
        "reallocarray": (13, "jo"),
        "free": (7, "je"),
        "posix_memalign": (11, "push"),
        "aligned_alloc": (4, "push"),
    },
    "2.36": {
        "malloc": (0, "push"),
        "calloc": (0, "push"),
        "realloc": (0, "push"),
        "reallocarray": (9, "jo"),
        "free": (3, "je"),
        "posix_memalign": (7, "push"),
        "aligned_alloc": (7, "je"),
    },
    "2.39": {},
    "2.41": {
        "malloc": (0, "push"),
        "calloc": (0, "push"),
        "realloc": (0, "push"),
        "free": (3, "je"),
        "posix_memalign": (7, "push"),
        "aligned_alloc": (0, "push"),
    },
}

# What the kernel emulates everywhere; anything else would be single-stepped.
EMULATED = re.compile(r"push|nop|jmp|j[a-z]{1,3}$")
CORE = ("malloc", "calloc", "realloc", "reallocarray", "free", "posix_memalign", "aligned_alloc")


def build_callers(path: Path, *flags: str | Path, compiler: str = "gcc") -> Path:
    common = "-std=gnu11 -D_GNU_SOURCE -O1 -g -fno-builtin -fno-stack-protector -fno-omit-frame-pointer"
    source = SOURCES / "freestanding/callers.c"
    subprocess.run([tool(compiler), *common.split(), *flags, "-o", path, source], check=True, timeout=60)
    return path


class Library(NamedTuple):
    version: str
    callers: Path
    found: dict[str, Any]  # by doctor


def build_with_library(suite: str, callers: Path) -> Path:
    """The program that calls every function, with the C library of a release of the distribution."""
    root = libraries.package(suite, "libc6")
    # Until 2.33 libc.so.6 was a link to a file with the version in its name.
    directory = next(path for path in root.rglob("libc.so.6") if path.is_file()).parent
    (loader,) = directory.glob("ld-linux-x86-64.so.2")
    linker = [f"-Wl,--dynamic-linker={loader}", f"-Wl,-rpath,{directory}"]
    return build_callers(callers, "-nostartfiles", *linker)


def doctor(pid: int) -> dict[str, Any]:
    result = memtoll("doctor", "--json", "-p", str(pid))
    assert result.status == 0, result
    found = json.loads(result.stdout)
    assert isinstance(found, dict)
    return found


def found_of(callers: Path) -> dict[str, Any]:
    with Program(callers, "serve") as program:
        return doctor(program.pid)


Packaged = Callable[[str], tuple[Path, dict[str, Any]]]


@pytest.fixture(scope="module")
def packaged(tmp_path_factory: pytest.TempPathFactory) -> Packaged:
    """The program with the C library of a release, and what doctor says of it, which is asked once."""
    place = tmp_path_factory.mktemp("packaged")

    @functools.cache
    def of_suite(suite: str) -> tuple[Path, dict[str, Any]]:
        callers = build_with_library(suite, place / suite)
        return callers, found_of(callers)

    return of_suite


def suites(*further: str) -> list[Any]:
    """Of the distribution: its own, and others."""
    own, known = libraries.own_suite(), (*libraries.SUITES[libraries.distribution()], *further)
    return [*(suite for suite in known if suite == own), *others(suite for suite in known if suite != own)]


@pytest.fixture(scope="module", params=suites())
def library(request: pytest.FixtureRequest, packaged: Packaged) -> Library:
    version = libraries.SUITES[libraries.distribution()][request.param]
    return Library(version, *packaged(request.param))


def disassembly(module: str, start: int, length: int) -> str:
    limits = (f"--start-address={start}", f"--stop-address={start + length}")
    command = [tool("objdump"), "-d", *limits, module]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=True).stdout


@functools.cache
def symbols_of(module: str, dynamic: bool) -> str:
    command = [tool("nm"), *(["-D"] if dynamic else []), module]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=True).stdout


def instructions(module: str, symbol: str, dynamic: bool = True) -> dict[int, str]:
    """Offset from the symbol and mnemonic of each instruction at its start, as objdump has them."""
    found = re.search(rf"^([0-9a-f]+) [TWit] {symbol}(@@\S+)?$", symbols_of(module, dynamic), re.M)
    assert found, f"nm finds no {symbol} in {module}"
    start = int(found[1], 16)
    text = disassembly(module, start, 80)
    lines = re.findall(r"^ *([0-9a-f]+):\t[0-9a-f ]+\t(?:bnd )?(\w+)", text, re.M)
    return {int(address, 16) - start: mnemonic for address, mnemonic in lines}


def check_probe(probe: dict[str, Any], dynamic: bool = True) -> None:
    """At an instruction that the kernel emulates; and where it was watched, every call was right."""
    assert probe["refusal"] is None, probe
    mnemonic = instructions(probe["module"], probe["symbol"], dynamic).get(probe["offset"])
    assert mnemonic and EMULATED.match(mnemonic), f"{probe}: objdump has {mnemonic} there"
    if not probe["offset"]:
        assert probe["entered"] is None
        return
    assert probe["differed"] == 0, probe
    # One call a thread may be under way when the watching ends.
    assert 0 <= probe["entered"] - probe["agreed"] <= 1, probe


def test_places_of_libc(library: Library) -> None:
    found = library.found
    (allocator,) = found["allocators"]
    assert (allocator["kind"], allocator["version"], allocator["linkage"]) == ("glibc", library.version, "dynamic")
    probes = {probe["symbol"]: probe for probe in found["probes"]}
    assert set(CORE) <= set(probes)
    for name, (offset, mnemonic) in PLACES[library.version].items():
        assert probes[name]["offset"] == offset, probes[name]
        assert instructions(probes[name]["module"], name)[offset] == mnemonic
    for name, probe in probes.items():
        check_probe(probe)
        if name in CORE and probe["offset"]:
            assert probe["agreed"] > 0, f"{name} was never seen: {probe}"
        assert probe["timed"] or name == "free", probe


@pytest.mark.parametrize("name", ["jemalloc", "tcmalloc", "mimalloc"])
def test_places_of_allocator(name: str, tmp_path: Path) -> None:
    """Also where the code has copied its arguments to other registers before the first good instruction.

    The way past the cache is looked for in glibc only: a preloaded allocator has none, the C library behind it still
    has its own.
    """
    callers = build_callers(tmp_path / "callers", "-DWITH_MAIN")
    with Program(callers, "serve", env={"LD_PRELOAD": str(libraries.preloadable(name))}) as program:
        found = doctor(program.pid)
        said = memtoll("doctor", "-p", str(program.pid)).stdout if name == "jemalloc" else ""
    (allocator,) = [entry for entry in found["allocators"] if entry["kind"] == name]
    assert allocator["linkage"] == "preloaded"
    assert re.fullmatch(r"\d+\.[\d.]+", allocator["version"]), allocator
    for probe in found["probes"]:  # of this system's C library, too
        check_probe(probe)
    probes = [probe for probe in found["probes"] if probe["kind"] == name]
    assert {"malloc", "calloc", "realloc", "free"} <= {probe["symbol"] for probe in probes}
    assert [probe for probe in probes if probe["symbol"].startswith("_Znw")], "no operator new"
    seen = {probe["symbol"] for probe in probes if probe["agreed"]}
    behind = {probe["symbol"] for probe in probes if probe["offset"]}
    assert behind & {"malloc", "calloc", "realloc", "free", "posix_memalign", "memalign", "valloc"} <= seen, probes
    assert {probe["slow"] is None for probe in probes} == {True}
    (own,) = [probe["slow"] for probe in found["probes"] if probe["kind"] == "glibc" and probe["symbol"] == "malloc"]
    assert own["found"] and not own["agreed"], own
    if said:
        assert "past the cache: call at +" in said and "Not called while it was watched" in said


@pytest.mark.parametrize("linking", ["", "-static"], ids=["dynamic", "static"])
def test_places_of_musl(linking: str, tmp_path: Path) -> None:
    flags = ["-DWITH_MAIN", *linking.split()]
    callers = build_callers(tmp_path / "callers", *flags, compiler="musl-gcc")
    found = found_of(callers)
    (allocator,) = found["allocators"]
    assert (allocator["kind"], allocator["linkage"]) == ("musl", "static" if linking else "dynamic")
    probes = {probe["symbol"]: probe for probe in found["probes"]}
    assert {"malloc", "calloc", "realloc", "free", "posix_memalign", "aligned_alloc"} <= set(probes)
    for probe in probes.values():
        check_probe(probe, dynamic=not linking)


class Names(NamedTuple):
    """The local functions of a C library, by their addresses."""

    names: dict[int, str]
    sizes: dict[int, int]

    def at(self, address: int) -> str:
        """The one that has an address in it, whatever suffix the compiler gave it."""
        start = max((at for at in self.sizes if at <= address), default=0)
        assert start and address < start + self.sizes[start], hex(address)
        return self.names[start].split(".")[0]


def names_in(path: Path) -> Names:
    listed = subprocess.run([tool("nm"), "-S", path], capture_output=True, text=True, timeout=60, check=True).stdout
    functions = re.findall(r"^(\w{16}) (\w{16}) [TtWi] (\S+)$", listed, re.M)
    return Names(
        {int(at, 16): name for at, _, name in functions}, {int(at, 16): int(size, 16) for at, size, _ in functions}
    )


class Debugged(NamedTuple):
    """A C library whose debug package has the names of its local functions, and a program that runs with it."""

    suite: str
    found: dict[str, Any]  # by doctor
    names: Names


# The newest, too: what comes next is not what these rules were made from.
DEBUGGED = suites("sid") if libraries.distribution() == "debian" else []


@pytest.fixture(scope="module", params=DEBUGGED)
def debugged(request: pytest.FixtureRequest, packaged: Packaged) -> Debugged:
    suite = request.param
    library = next(path for path in libraries.package(suite, "libc6").rglob("libc.so.6") if path.is_file())
    notes = subprocess.run([tool("readelf"), "-n", library], capture_output=True, text=True, timeout=60, check=True)
    found = re.search(r"Build ID: (\w+)", notes.stdout)
    assert found
    debug = libraries.package(suite, "libc6-dbg") / "usr/lib/debug/.build-id" / found[1][:2] / f"{found[1][2:]}.debug"
    return Debugged(suite, packaged(suite)[1], names_in(debug))


ALLOCATING = ("malloc", "calloc", "realloc", "posix_memalign", "aligned_alloc", "memalign")


def target(module: str, address: int) -> tuple[str, int]:
    """Mnemonic and target of the instruction at an address, as objdump has them."""
    text = disassembly(module, address, 6)
    found = re.search(rf"^ *{address:x}:\t[0-9a-f ]+\t(\w+) +([0-9a-f]+)\b", text, re.M)
    assert found, text
    return found[1], int(found[2], 16)


def slow_ways(found: dict[str, Any], names: Names) -> dict[str, Any]:
    """By function. Every place is a call of the routine by its name, and saw what was asked for."""
    (module,) = {probe["module"] for probe in found["probes"]}
    ways = {probe["symbol"]: probe["slow"] for probe in found["probes"] if probe["slow"]}
    assert set(ALLOCATING) & {probe["symbol"] for probe in found["probes"]} <= set(ways)
    for name, way in ways.items():
        for place in way["places"]:
            mnemonic, to = target(module, place["address"])
            if name != "free":
                assert (mnemonic, names.at(to)) == ("call", "_int_malloc"), (name, place)
            elif place["mapped"]:
                assert names.at(to) == "munmap_chunk", place
            elif mnemonic in ("call", "jmp"):
                assert names.at(to) == "_int_free_chunk", place
            else:
                assert names.at(place["address"]) == "_int_free", place
        assert bool(way["places"]) == way["found"] == (way["refusal"] is None), way
        if not way["found"]:
            continue
        assert way["differed"] == 0, (name, way)
        assert way["agreed"] <= way["entered"] > 0, (name, way)
        # Of small blocks, which the caches of threads have of these since 2.41.
        assert way["agreed"] or name in ("posix_memalign", "aligned_alloc", "memalign"), (name, way)
        # The fast path is there, and calls that went it met no place.
        if name in ("malloc", "free"):
            assert way["bypassed"] and way["agreed"] < way["entered"], (name, way)
        assert way["slow_per_s"] <= way["entered_per_s"] and way["entry_hit_ns"] > 0, (name, way)
    return ways


def test_way_past_the_cache(debugged: Debugged) -> None:
    for name, way in slow_ways(debugged.found, debugged.names).items():
        # A library that is not yet released may be refused, but nothing else may be taken for it.
        assert way["found"] or debugged.suite == "sid", (name, way)


def test_way_past_the_cache_of_a_static_program(tmp_path: Path) -> None:
    callers = build_callers(tmp_path / "callers", "-DWITH_MAIN", "-static")
    assert all(way["found"] for way in slow_ways(found_of(callers), names_in(callers)).values())


ROUNDS, SMALL, SMALL_CALLS = 23, 211, 1009
RULES = {"trim": (TEN, ROUNDS), "reuse": (TEN, ROUNDS), "small": (SMALL, SMALL_CALLS)}


@pytest.fixture(scope="module")
def rules(library: Library, tmp_path_factory: pytest.TempPathFactory) -> Recording:
    """What calloc has to clear, one after the other in one recording."""
    lines = [f"{library.callers} {name} {size} {count}" for name, (size, count) in RULES.items()]
    path = tmp_path_factory.mktemp("rules") / "a.memtoll"
    recording = record(path, "--probes", "alloc", command=["sh", "-c", " && ".join(lines)])
    assert len(recording.witness) == len(RULES)
    return recording


class Callocs(NamedTuple):
    calls: int
    cleared_calls: int
    cleared: int
    witness: dict[str, Any]


def callocs(recording: Recording, name: str) -> Callocs:
    witness = recording.witness[list(RULES).index(name)]
    ((calls, cleared_calls, cleared),) = recording.query(
        "SELECT SUM(calls), SUM(cleared_calls), SUM(cleared_bytes) FROM call"
        f" WHERE call = 'calloc' AND pid = {witness['pid']}"
    )
    return Callocs(calls, cleared_calls, cleared, witness)


def test_rule_after_trim(rules: Recording) -> None:
    """What a trim gave back comes clean from the kernel and is left alone.

    The witness is the faults: were it cleared, each of the 2560 pages of a block would take one.
    """
    made = callocs(rules, "trim")
    assert made.calls == 2 * (ROUNDS + 3)
    assert made.witness["minflt"] < 64 * 2 * ROUNDS
    assert made.cleared < 64 * PAGE * made.calls


def test_rule_of_reused_top(rules: Recording) -> None:
    """A block of memory used before, and no fault: then calloc itself has cleared all of it."""
    made = callocs(rules, "reuse")
    assert made.witness["minflt"] < 8
    assert made.calls == ROUNDS + 3
    # The first has a mapping of its own, the second is cut from a top that it makes grow.
    assert made.cleared_calls >= ROUNDS + 1
    assert ROUNDS * TEN <= made.cleared <= (ROUNDS + 1) * (TEN + PAGE) + 64 * PAGE


def test_rule_of_small_blocks(rules: Recording) -> None:
    """Also from the cache of the thread, which calloc uses since 2.41: what the block holds is cleared."""
    made = callocs(rules, "small")
    assert (made.calls, made.cleared_calls) == (SMALL_CALLS, SMALL_CALLS)
    assert made.cleared == made.witness["usable"]
