# SPDX-License-Identifier: GPL-2.0
"""Which allocator a program has, how much of it is seen, and who clears what its calloc returns.

The witness of clearing is a memset of our own that counts, preloaded before the allocator in a
run that is not traced.
"""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

import golang
import libraries
from harness import MIB, PAGE, SOURCES, Recording, finish, record, spawn, tool, workload

pytestmark = pytest.mark.root

TEN = 10 * MIB
HUNDRED = 100 * MIB

# Keeps the compiler from dropping calls, and unwinding whole without call frame information.
FLAGS = "-O1 -g -fno-builtin -fno-omit-frame-pointer"


def build(path: Path, source: str, *flags: str | Path, compiler: str = "gcc") -> Path:
    words = [tool(compiler), *FLAGS.split(), "-o", path, SOURCES / source, *flags]
    subprocess.run(words, check=True, timeout=60)
    return path


def allocator(recording: Recording, kind: str) -> dict[str, Any]:
    (found,) = [entry for entry in recording.report["allocators"] if entry["kind"] == kind]
    assert isinstance(found, dict)
    return found


def cleared_by_witness(library: Path, size: int, calls: int, path: Path) -> tuple[int, int]:
    """Bytes that the allocator's memset writes, and CPU ns of all, when nobody traces."""
    env = {"LD_PRELOAD": f"{workload('libmemsetcount.so')} {library}", "MEMTOLL_TEST_WITNESS": str(path)}
    done = finish(spawn([workload("calloc_loop"), str(size), str(calls)], env))
    assert done.status == 0, done
    return int(json.loads(path.read_text())["bytes"]), int(done.witness[-1]["loop_cpu_ns"])


# Fifty samples: what they saw goes before times, which some memory is too fast for (allocators.sql).
ENOUGH_CPU_NS = 500_000_000


@pytest.mark.parametrize(("size", "calls"), [(TEN, 101), (HUNDRED, 7)], ids=["10-MiB", "100-MiB"])
@pytest.mark.parametrize("name", ["jemalloc", "tcmalloc", "mimalloc"])
def test_large_callocs(name: str, size: int, calls: int, out: Path, tmp_path: Path) -> None:
    library = libraries.preloadable(name)
    cleared, cpu_ns = cleared_by_witness(library, size, calls, tmp_path / "witness.json")
    clears = cleared >= 0.9 * calls * size
    assert clears or cleared <= 0.1 * calls * size, f"{name} clears a part: the test knows no name for that"
    if clears:
        calls = max(calls, calls * ENOUGH_CPU_NS // cpu_ns)
    env = {"LD_PRELOAD": str(library)}
    recording = record(out, command=[workload("calloc_loop"), str(size), str(calls)], env=env)
    found = allocator(recording, name)
    clearing = found["clearing"]
    assert found["linkage"] == "preloaded"
    assert found["complete"] is True
    assert "malloc, calloc, realloc, free" in found["coverage"] and "seen: 100 %" in found["coverage"]
    site = recording.site("calloc_loop.c", "calloc", "calloc")
    assert (site.calls, site.bytes) == (calls, calls * size)
    assert clearing["rule"] == "observation"
    assert (clearing["calls"], clearing["bytes"]) == (calls, calls * size)
    if clears:
        assert clearing["cleared_by"] in ("memset", "both"), clearing
        # Half a second of it, beside that many calls.
        assert recording.dominant == "zeroing", recording.report["verdict"]
    else:
        assert clearing["cleared_by"] == "kernel", clearing
        # A block has a page or two that the allocator itself touched.
        assert recording.toll("zero.kernel", "bytes") < 0.1 * calls * size
    # Where memset is the first to touch the pages, the kernel has cleared them just before.
    twice = recording.report["zeroing"]["bytes_twice"]
    assert (clearing["cleared_by"] == "both") == (2 * twice >= calls * size), (clearing, twice)


def test_musl(out: Path, tmp_path: Path) -> None:
    """Every large block has a mapping of its own, static or not: nothing is cleared by calloc."""
    calls = 211
    linkings: dict[str, list[str | Path]] = {"dynamic": [], "static": ["-static"]}
    programs = [
        build(tmp_path / linkage, "calloc_loop.c", *flags, compiler="musl-gcc") for linkage, flags in linkings.items()
    ]
    script = " && ".join(f"{program} {TEN} {calls}" for program in programs)
    recording = record(out, command=["sh", "-c", script])
    for linkage, witness in zip(linkings, recording.witness, strict=True):
        pid = witness["pid"]
        # The shell's own is glibc's, also in the process that it forks.
        entries = [entry for entry in recording.report["allocators"] if entry["pid"] == pid]
        (found,) = [entry for entry in entries if entry["kind"] == "musl"]
        assert (found["linkage"], found["complete"]) == (linkage, True)
        made = dict(recording.query(f"SELECT call, SUM(calls) FROM call WHERE pid = {pid} GROUP BY call"))
        assert made["calloc"] == calls and made["free"] >= calls
        assert (found["clearing"]["calls"], found["clearing"]["bytes"]) == (calls, calls * TEN)
        assert found["clearing"]["cleared_by"] == "kernel", found
    # A page or two of each, of 2,560: which of its faults and its mappings is dearer is the machine's affair.
    assert recording.toll("zero.libc", "time_s") == 0
    assert recording.toll("zero.kernel", "pages") < 2 * 4 * calls
    assert recording.toll("map", "count") >= 2 * 2 * calls


def test_glibc_agrees_with_samples(out: Path) -> None:
    """The cross-check: what CPU samples inside calloc show against what the chunks' headers say."""
    # Some memsets clear 10 MiB in 65 us, and a sample comes every 10 ms.
    recording = record(out, command=[workload("calloc_loop"), str(TEN), "2003"])
    clearing = allocator(recording, "glibc")["clearing"]
    assert (clearing["rule"], clearing["cleared_by"]) == ("chunk header", "memset")
    assert clearing["samples"] > 0
    assert clearing["agrees"] is True, clearing


def test_heap_that_cannot_grow(out: Path) -> None:
    """Something is in the way of the break: the main arena goes on in mappings, and clears there as it did before.
    The witness is the kernel's count of faults: the pages come once, and so each later call's zeros are calloc's own.
    """
    calls = 211
    recording = record(out, command=[workload("calloc_loop"), str(TEN), str(calls), "--walled"])
    assert recording.witness[0]["minflt"] < 3 * TEN / PAGE
    assert recording.query("SELECT SUM(failed) FROM map_call WHERE call = 'brk' AND in_call = 'calloc'")[0][0] > 0
    # The first block has a mapping of its own; when it is freed, the threshold is raised.
    assert recording.query("SELECT SUM(cleared_calls) FROM call WHERE call = 'calloc'") == [(calls - 1,)]
    assert recording.toll("zero.libc", "bytes") == pytest.approx((calls - 1) * TEN, rel=0.01)
    assert allocator(recording, "glibc")["clearing"]["cleared_by"] == "memset"


def test_static_glibc(out: Path, tmp_path: Path) -> None:
    calls = 211
    program = build(tmp_path / "calloc_loop", "calloc_loop.c", "-static")
    recording = record(out, command=[program, str(TEN), str(calls)])
    found = allocator(recording, "glibc")
    assert (found["linkage"], found["complete"], found["module"]) == ("static", True, str(program))
    assert recording.site("calloc_loop.c", "calloc", "calloc").calls == calls
    assert found["clearing"]["cleared_by"] == "memset"
    assert recording.toll("zero.libc", "bytes") == pytest.approx((calls - 1) * TEN, rel=0.03)
    assert recording.dominant == "zeroing"


def test_stripped_static_glibc(out: Path, tmp_path: Path) -> None:
    """What cannot be seen is said to be unknown, not 0; faults and mappings are all there."""
    calls = 53
    program = build(tmp_path / "calloc_loop", "calloc_loop.c", "-static", "-s")
    recording = record(out, command=[program, str(TEN), str(calls), "--touch"])
    found = allocator(recording, "glibc")
    assert (found["linkage"], found["calls"], found["probes"], found["complete"]) == ("static", 0, [], False)
    assert found["coverage"] == "no malloc symbol: faults and mappings only"
    assert found["clearing"]["cleared_by"] == "unknown"
    assert {"alloc", "zero.libc"} <= set(recording.report["not_captured"])
    assert recording.report["toll"]["zero.libc"]["bytes"] is None
    assert any("no malloc symbol" in note for note in recording.report["notes"])
    assert recording.toll("zero.kernel", "bytes") >= TEN
    check = recording.report["checks"]["minor_faults"]
    assert check["ours"] == pytest.approx(check["kernel"], rel=0.02)


def test_go(out: Path, tmp_path: Path) -> None:
    program = golang.build(SOURCES / "memory.go", tmp_path / "program")
    recording = record(out, command=[program, "returns", "11", str(TEN)])
    found = allocator(recording, "go")
    assert f"go{found['version']}" == recording.witness[-1]["version"]
    assert (found["linkage"], found["probes"], found["complete"]) == ("static", [], False)
    assert "Go's own allocator" in found["coverage"]
    assert recording.toll("zero.kernel", "pages") >= TEN // PAGE
    assert recording.report["sites"], "an empty report"
    begun = "SELECT stack_id FROM stack_frame JOIN frame USING (frame_id) WHERE function GLOB 'runtime.goexit*'"
    ((whole, all_of_them),) = recording.query(f"SELECT SUM(complete), COUNT(*) FROM stack WHERE stack_id IN ({begun})")
    assert whole == all_of_them > 0
    # Goroutines' stacks are in the same area as all else.
    assert not any("stack" in site["area"] for site in recording.report["sites"] if site["bytes"] >= TEN)
    assert "runtime." not in recording.report["verdict"]["sentence"]
    assert {"alloc", "zero.libc"} <= set(recording.report["not_captured"])


@pytest.fixture(scope="module")
def operators(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(tmp_path_factory.mktemp("operators") / "operators", "operators.cc", "-std=c++17", compiler="g++")


@pytest.mark.parametrize("name", ["jemalloc", "tcmalloc", "mimalloc"])
def test_operators(name: str, operators: Path, out: Path) -> None:
    """Blocks made by new, which does not come by malloc; each is seen once, where it was made."""
    rounds = 1009
    env = {"LD_PRELOAD": str(libraries.preloadable(name))}
    recording = record(out, "--probes", "alloc", command=[operators, str(rounds)], env=env)
    assert recording.site("operators.cc", "array", "malloc").calls == rounds
    assert recording.site("operators.cc", "array", "malloc").bytes == sum(100 + n % 89 for n in range(rounds))
    assert recording.site("operators.cc", "aligned", "malloc").bytes == rounds * 192
    assert recording.report["calls"]["free"] >= 2 * rounds
    assert recording.site("operators.cc", "drop", "free").calls == rounds


def test_embedded_jemalloc(out: Path, tmp_path: Path) -> None:
    """Built into the program under a prefix, as Redis has it; the C library's own is there as well."""
    calls = 53
    archive = next(libraries.package(libraries.own_suite(), "libjemalloc-dev").rglob("libjemalloc_pic.a"))
    renamed = tmp_path / "libje.a"
    names = ["malloc", "calloc", "realloc", "free", "posix_memalign", "aligned_alloc", "memalign", "valloc"]
    names += ["mallctl", "mallctlbymib", "mallctlnametomib", "mallocx", "rallocx", "dallocx", "sdallocx"]
    flags = [f"--redefine-sym={symbol}=je_{symbol}" for symbol in names]
    subprocess.run([tool("objcopy"), *flags, archive, renamed], check=True, timeout=60)
    # The program's calls of calloc and free go to the allocator that is built in.
    defines: list[str | Path] = ["-Dcalloc=je_calloc", "-Dfree=je_free", "-include", SOURCES / "embedded.h"]
    libraries_of_it: list[str | Path] = [renamed, "-lstdc++", "-lm", "-ldl", "-pthread"]
    program = build(tmp_path / "calloc_loop", "calloc_loop.c", *defines, *libraries_of_it)
    env = {"JE_MALLOC_CONF": "narenas:3", "MALLOC_CONF": "narenas:2"}
    recording = record(out, command=[program, str(HUNDRED), str(calls)], env=env)
    found = allocator(recording, "jemalloc")
    assert (found["linkage"], found["module"]) == ("embedded", str(program))
    assert {"je_malloc", "je_calloc", "je_free"} <= {probe["symbol"] for probe in found["probes"]}
    assert recording.site("calloc_loop.c", "calloc", "calloc").calls == calls
    assert found["clearing"]["cleared_by"] == "kernel"
    assert "narenas:2" in found["tunables"]
    assert allocator(recording, "glibc")["linkage"] == "dynamic"
    assert allocator(recording, "glibc")["tunables"] == ""
    assert recording.toll("zero.kernel", "bytes") < 0.1 * calls * TEN


def test_tunables_in_force(out: Path) -> None:
    env = {"GLIBC_TUNABLES": "glibc.malloc.mmap_threshold=131072", "MALLOC_ARENA_MAX": "2", "TCMALLOC_X": "1"}
    recording = record(out, "--probes", "alloc", command=[workload("calloc_loop"), str(TEN), "11"], env=env)
    found = allocator(recording, "glibc")
    assert set(found["tunables"].split()) == {
        "GLIBC_TUNABLES=glibc.malloc.mmap_threshold=131072",
        "MALLOC_ARENA_MAX=2",
    }
