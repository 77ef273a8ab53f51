# SPDX-License-Identifier: GPL-2.0
"""memtoll hold: against what malloc itself says (mallinfo2), what malloc_trim(0) then gives back, and the kernel's
own sums; and on targets that are damaged, of another kind, or gone.
"""

from __future__ import annotations

import functools
import json
import os
import re
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import jsonschema
import pytest

import libraries
from harness import (
    MEMTOLL,
    MIB,
    PAGE,
    SOURCES,
    Program,
    Result,
    ask,
    assert_refused,
    end,
    finish,
    load,
    memtoll,
    query,
    record,
    site_line,
    spawn,
    start_record,
    tool,
    wait_attached,
    wait_until,
    workload,
)
from leftovers import noted
from releases import others
from swapping import CGROUPS

pytestmark = pytest.mark.root

AT_REST: Final = ["pages", "top", "full", "arenas", "lists", "mapped", "advised", "locked"]
# The same where the program break cannot grow: the main arena is in mappings then.
WALLED: Final = [*(f"{shape} 64 walled" for shape in ("pages", "top", "full", "lists")), "full 64 heapless"]
FREE: Final = ("small", "large", "unsorted", "fast", "top")
CACHE_BINS: Final = 64
CACHE_COUNT: Final = 7
LEAKED: Final = 83  # blocks by each "leak" of holder.c
SUITES: Final = libraries.SUITES[libraries.distribution()]


def hold_of(*words: str | int, status: int = 0) -> dict[str, Any]:
    result = memtoll("hold", "--json", *map(str, words))
    assert result.status == status, result
    found: dict[str, Any] = json.loads(result.stdout)
    jsonschema.validate(found, json.loads(memtoll("hold", "--schema").stdout))
    return found


def hold(pid: int) -> dict[str, Any]:
    found = hold_of("-p", pid)
    (process,) = found["processes"]
    assert process["pid"] == pid and process["verdict"] == found["verdict"]
    return dict(process)


def rollup(pid: int) -> dict[str, int]:
    """The kernel's own sums, of now."""
    text = Path(f"/proc/{pid}/smaps_rollup").read_text()
    return {name: int(size) * 1024 for name, size in re.findall(r"^(\w+): +(\d+) kB", text, re.M)}


@pytest.mark.parametrize("shape", AT_REST + WALLED)
def test_what_malloc_says_itself(shape: str) -> None:
    """At rest every byte, by kind. To malloc, what is in a thread's cache is in use."""
    with Program(workload("holder"), *shape.split()) as program:
        found = hold(program.pid)
        told = ask(program, "info")
    malloc, chunks = found["malloc"], found["malloc"]["chunks"]
    assert sum(chunks[kind]["bytes"] for kind in FREE) == told["fordblks"]
    assert chunks["fast"]["bytes"] == told["fsmblks"]
    assert malloc["system_bytes"] == told["arena"]
    assert malloc["unread"]["bytes"] == malloc["hidden"]["bytes"] == malloc["damages"] == malloc["torn_lists"] == 0
    used = chunks["live"]["bytes"] + chunks["tcache"]["bytes"] + malloc["overhead"]["bytes"]
    assert used == told["uordblks"]
    mapped = malloc["mapped"]
    assert (mapped["count"], mapped["bytes"]) == (told["hblks"], told["hblkhd"])
    assert (mapped["counted"], mapped["counted_bytes"]) == (told["hblks"], told["hblkhd"])
    assert malloc["arenas"][0]["chunks"]["top"]["bytes"] == told["keepcost"]


@pytest.mark.parametrize("shape", AT_REST + WALLED)
def test_what_a_trim_gives_back(shape: str) -> None:
    with Program(workload("holder"), *shape.split()) as program:
        forecast = hold(program.pid)["malloc"]["trim"]["resident"]
        told = ask(program, "trim")
        again = hold(program.pid)["malloc"]["trim"]["resident"]
    assert told["before"] - told["after"] == pytest.approx(forecast, rel=0.1, abs=4 * PAGE)
    assert again == pytest.approx(0, abs=4 * PAGE)
    if shape.startswith("top"):
        assert forecast > 60 * MIB


@pytest.mark.parametrize(
    ("shape", "holder", "advice", "words"),
    [
        ("pages", "pinned", "pinned", "96 bytes"),
        ("top", "trim", "trim", "malloc_trim"),
        ("full", "live", None, "has not freed"),
        ("arenas", "arena_tops", "arena-max", "8 arenas"),
        ("mapped", "live", None, "has not freed"),
        ("advised", "live", None, "has not freed"),
        ("locked", "locked", "locked", "mlockall"),
        ("top 64 walled", "trim", "trim", "malloc_trim"),
        ("full 64 walled", "live", None, "has not freed"),
    ],
)
def test_the_verdict(shape: str, holder: str, advice: str | None, words: str) -> None:
    with Program(workload("holder"), *shape.split()) as program:
        found = hold(program.pid)
        text = memtoll("hold", "-p", str(program.pid)).stdout
    verdict = found["verdict"]
    assert verdict["holder"] == holder
    assert words in verdict["sentence"]
    assert verdict["parts"][holder] > 30 * MIB
    codes = {one["code"]: one["bytes"] for one in verdict["advice"]}
    assert set(codes) == ({advice} if advice else set())
    if advice:
        assert codes[advice] == pytest.approx(verdict["parts"][holder], rel=0.05)
    assert " ".join(verdict["sentence"].split()) in " ".join(text.split())
    assert max(map(len, text.splitlines())) <= 100


def test_caches_of_threads() -> None:
    """Seven of each size that they have, which the program has freed."""
    with Program(workload("holder"), "lists") as program:
        found = hold(program.pid)["malloc"]
    assert found["caches"] == 1
    assert found["chunks"]["tcache"]["count"] == CACHE_BINS * CACHE_COUNT
    assert found["chunks"]["fast"]["count"] > 9000


def test_the_sum_is_the_kernels() -> None:
    with Program(workload("holder"), "arenas") as program:
        found = hold(program.pid)
        told = rollup(program.pid)
        threads = {int(task.name) for task in Path(f"/proc/{program.pid}/task").iterdir()}
    assert found["agree"]
    assert found["sum"]["rss"] == pytest.approx(told["Rss"], rel=0.01)
    assert found["sum"]["pss"] == pytest.approx(told["Pss"], rel=0.01)
    assert sum(part["rss"] for part in found["resident"].values()) == found["sum"]["rss"]
    assert sum(found["verdict"]["parts"].values()) == pytest.approx(told["Rss"], rel=0.01)
    # Each thread has its stack, and nothing else is one.
    assert {stack["tid"] for stack in found["stacks"]} == threads
    assert found["threads"] == len(threads) == 9
    assert all(stack["memory"]["rss"] for stack in found["stacks"])
    assert sum(stack["memory"]["rss"] for stack in found["stacks"]) == found["resident"]["stacks"]["rss"]
    (libc,) = [file for file in found["files"] if re.search(r"/libc[.-]", file["path"])]
    assert 0 < libc["memory"]["private_dirty"] < libc["memory"]["rss"]


def test_what_goes_on_meanwhile() -> None:
    """Eight threads allocate and free all the time: within a twentieth of what malloc says before and after."""
    with Program(workload("holder"), "busy") as program:
        wait_until(lambda: ask(program, "info")["arena"] > 100 * MIB, "heaps of all threads")
        before = ask(program, "info")
        result = memtoll("hold", "--json", "-p", str(program.pid))
        after = ask(program, "info")
        threads = {int(task.name) for task in Path(f"/proc/{program.pid}/task").iterdir()}
    assert result.status in (0, 4), result
    (found,) = json.loads(result.stdout)["processes"]
    # Of a thread that runs the kernel does not say where its stack is.
    assert {stack["tid"] for stack in found["stacks"] if stack["memory"]["rss"]} == threads
    malloc = found["malloc"]
    assert not malloc["corrupt"]
    used = malloc["chunks"]["live"]["bytes"] + malloc["chunks"]["tcache"]["bytes"] + malloc["overhead"]["bytes"]
    low, high = sorted((before["uordblks"], after["uordblks"]))
    assert 0.95 * low <= used <= 1.05 * high
    assert malloc["unread"]["bytes"] < 0.05 * malloc["system_bytes"]


def test_mappings_of_the_heap_that_change() -> None:
    """The break cannot grow, and the program takes and frees all the time: no mapping that there was is missed."""
    with Program(workload("holder"), "full", "16", "walled") as program:
        (first,) = program.lines
        stdin = program.process.stdin
        assert stdin
        stdin.write("work 2000\n")
        stdin.flush()
        looks = []
        while len(program.lines) == 1:
            looks.append(json.loads(memtoll("hold", "--json", "-p", str(program.pid)).stdout)["processes"][0]["malloc"])
        told = ask(program, "info")
    assert looks
    for malloc in looks:
        assert first["arena"] <= malloc["system_bytes"] <= told["arena"]
        chunks = sum(kind["bytes"] for kind in malloc["chunks"].values())
        assert chunks + malloc["overhead"]["bytes"] + malloc["unread"]["bytes"] >= first["arena"]
        assert malloc["unread"]["bytes"] < 0.05 * malloc["system_bytes"]
        assert not malloc["corrupt"]


PYTHON: Final = """
import ctypes, json, os, sys
blocks = [os.urandom(1) * 3000 for _ in range(20000)]
keep = blocks[::100]
del blocks
def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * 4096
print(json.dumps({"ready": len(keep)}), flush=True)
for line in sys.stdin:
    before = resident()
    ctypes.CDLL(None).malloc_trim(0)
    print(json.dumps({"before": before, "after": resident()}), flush=True)
"""


def test_python_after_a_burst() -> None:
    """60 MB of bytes objects, of which each hundredth is kept."""
    with Program(sys.executable, "-c", PYTHON) as program:
        found = hold(program.pid)
        told = ask(program, "trim")
    forecast = found["malloc"]["trim"]["resident"]
    assert found["verdict"]["holder"] == "trim"
    assert forecast > 40 * MIB
    assert told["before"] - told["after"] == pytest.approx(forecast, rel=0.1)


def holder_with(suite: str, path: Path) -> Path:
    """The holder with the C library of another release, which it is linked with."""
    root = libraries.package(suite, "libc6")
    directory = next(path for path in root.rglob("libc.so.6") if path.is_file()).parent
    (loader,) = directory.glob("ld-linux-x86-64.so.2")
    parts = [directory / name for name in ("libc.so.6", "libpthread.so.0")]
    flags = f"-std=gnu11 -O1 -fno-builtin -w -nodefaultlibs -Wl,--dynamic-linker={loader} -Wl,-rpath,{directory}"
    old = ["-DINFO=mallinfo"] if SUITES[suite] < "2.33" else []
    subprocess.run(
        [tool("gcc"), *flags.split(), *old, "-o", path, SOURCES / "holder.c", *parts, loader, "-lgcc"],
        check=True, timeout=60,
    )  # fmt: skip
    return path


@pytest.mark.parametrize("suite", others(suite for suite in SUITES if suite != libraries.own_suite()))
def test_other_releases_of_glibc(suite: str, tmp_path: Path) -> None:
    """Every byte again, and all that is cached."""
    with Program(holder_with(suite, tmp_path / "holder"), "lists") as program:
        found = hold(program.pid)
        told = ask(program, "info")
    chunks = found["malloc"]["chunks"]
    (libc,) = [one for one in found["allocators"] if one["kind"] == "glibc"]
    assert libc["version"] == SUITES[suite] and "unknown" not in libc
    assert sum(chunks[kind]["bytes"] for kind in FREE) == told["fordblks"]
    assert chunks["fast"]["bytes"] == told["fsmblks"] > 500_000
    assert chunks["tcache"]["count"] == CACHE_BINS * CACHE_COUNT
    assert found["malloc"]["system_bytes"] == told["arena"]
    assert found["malloc"]["mapped"]["counted"] == told["hblks"]


def test_a_corrupt_heap() -> None:
    """One line, what is marked as partial, and the rest of the heap all the same."""
    with Program(workload("holder"), "corrupt") as program:
        found = hold_of("-p", program.pid, status=4)
        result = memtoll("hold", "-p", str(program.pid))
    assert not found["complete"]
    (process,) = found["processes"]
    assert process["malloc"]["corrupt"]
    assert process["malloc"]["damages"] == 1
    assert process["malloc"]["unread"]["bytes"] == 2048
    assert process["malloc"]["chunks"]["live"]["bytes"] > 63 * MIB
    assert result.status == 4
    assert len(result.stderr.splitlines()) == 1 and "corrupt" in result.stderr
    assert "the heap is corrupt" in result.stdout and "At least" in result.stdout


def counters_of(program: Program, kind: str) -> tuple[dict[str, int], dict[str, Any]]:
    """What the allocator counts as read from outside, and the whole look."""
    found = hold(program.pid)
    (other,) = [one for one in found["allocators"] if one["kind"] == kind]
    assert "unknown" not in other, other
    return dict(other["counters"]), found


def agree(seen: dict[str, int], told: dict[str, int]) -> None:
    """Each figure that it tells, within a fiftieth; to ask it needs a few pages, too."""
    for name, size in told.items():
        assert seen[name] == pytest.approx(size, rel=0.02, abs=16 * PAGE), name


@pytest.mark.parametrize("kind", ["jemalloc", "tcmalloc"])
def test_what_another_allocator_counts(kind: str) -> None:
    """Against what it says itself, with an arena or cache for each of seven threads; and when it has given back."""
    with Program(workload("counted"), "7", env={"LD_PRELOAD": str(libraries.preloadable(kind))}) as program:
        told = ask(program, "info")
        seen, found = counters_of(program, kind)
        agree(seen, told)
        # Much of what seven threads freed; how much lies in lists of its own depends on how they met.
        assert seen["dirty"] > 32 * MIB and seen["active"] > 10 * MIB
        verdict = found["verdict"]
        assert verdict["holder"] == "anonymous" and f"{kind} counts" in verdict["sentence"]
        (advice,) = [one for one in verdict["advice"] if one["code"] == "purge"]
        assert advice["bytes"] == seen["dirty"] + seen["muzzy"]
        before = found["sum"]["rss"]
        told = ask(program, "purge")
        seen, found = counters_of(program, kind)
        agree(seen, told)
        assert not [one for one in found["verdict"]["advice"] if one["code"] == "purge"]
        # As much as was advised came back.
        assert before - found["sum"]["rss"] == pytest.approx(advice["bytes"], rel=0.05)
        text = memtoll("hold", "-p", str(program.pid)).stdout
    assert f"{kind}'s own count" in text and "in pages with live blocks" in text


def test_what_gives_back_already_is_not_advised() -> None:
    env = {
        "LD_PRELOAD": str(libraries.preloadable("jemalloc")),
        "MALLOC_CONF": "background_thread:true,dirty_decay_ms:600000",
    }
    with Program(workload("counted"), "7", env=env) as program:
        (advice,) = [one for one in hold(program.pid)["verdict"]["advice"] if one["code"] == "purge"]
        names = {stack["name"] for stack in hold(program.pid)["stacks"]}
    assert "jemalloc_bg_thd" in names
    assert "background_thread" not in advice["text"] and "dirty_decay_ms" in advice["text"]


def test_what_mimalloc_counts() -> None:
    """Of it no more is there than what it has committed."""
    with Program(workload("counted"), "7", env={"LD_PRELOAD": str(libraries.preloadable("mimalloc"))}) as program:
        told = ask(program, "info")
        seen, found = counters_of(program, "mimalloc")
    assert seen["committed"] == told["committed"] > 100 * MIB
    assert seen["active"] == seen["dirty"] == 0
    assert "of which mimalloc counts" in found["verdict"]["sentence"]


def test_an_allocator_that_counts_otherwise(tmp_path: Path) -> None:
    """Its inside is not known, and said so; what is resident is."""
    source = tmp_path / "own.c"
    source.write_text(
        "#include <stddef.h>\n#include <string.h>\nstatic char pool[64 << 20]; static size_t used;\n"
        'const char *je_malloc_conf = "<jemalloc>: "; int mallctl(void) { return 1; }\n'
        "void *malloc(size_t n) { void *p = pool + used; used += (n + 31) & ~15UL; return p; }\n"
        "void free(void *p) { (void)p; }\n"
        "void *calloc(size_t n, size_t m) { return malloc(n * m); }\n"
        "void *realloc(void *p, size_t n) { void *q = malloc(n); if (p) memcpy(q, p, n); return q; }\n"
    )
    library = tmp_path / "libjemalloc.so.2"
    subprocess.run([tool("gcc"), "-shared", "-fPIC", "-O1", "-fno-builtin", "-o", library, source], check=True)
    with Program(workload("holder"), "full", "16", env={"LD_PRELOAD": str(library)}) as program:
        found = hold(program.pid)
    others = [one for one in found["allocators"] if one["path"] == str(library)]
    assert len(others) == 1 and "unknown" in others[0] and "counters" not in others[0]
    assert found["verdict"]["parts"]["anonymous"] > 16 * MIB or found["verdict"]["parts"]["files"] > 16 * MIB


def test_several_count_shared_pages_once() -> None:
    with Program(workload("holder"), "full") as one, Program(workload("holder"), "top") as other:
        found = hold_of("-p", f"{one.pid},{other.pid}")
        text = memtoll("hold", "-p", f"{one.pid},{other.pid}").stdout
        told = [rollup(program.pid) for program in (one, other)]
    assert [process["pid"] for process in found["processes"]] == [one.pid, other.pid]
    assert found["pss"] == pytest.approx(sum(sums["Pss"] for sums in told), rel=0.01)
    assert found["rss"] == pytest.approx(sum(sums["Rss"] for sums in told), rel=0.01)
    assert sum(found["verdict"]["parts"].values()) == pytest.approx(found["pss"], rel=0.01)
    assert re.search(rf"^  {one.pid} holder .*\n", text, re.M) and "sum" in text


def test_by_name(tmp_path: Path) -> None:
    name = f"holder{os.getpid()}"[:15]
    (tmp_path / name).write_bytes(workload("holder").read_bytes())
    (tmp_path / name).chmod(0o755)
    with Program(tmp_path / name, "mapped", "4") as program:
        (process,) = hold_of("-n", name)["processes"]
    assert (process["pid"], process["name"]) == (program.pid, name)


# A program of 32 bits that waits for a signal: pause(2).
NARROW: Final = bytes.fromhex(
    "7f454c4601010100000000000000000002000300010000005480040834000000"
    "0000000000000000340020000100000000000000010000000000000000800408"
    "008004085b0000005b000000050000000010000031c0b01dcd80ebf8"
)


def test_a_program_of_32_bits(tmp_path: Path) -> None:
    (tmp_path / "narrow").write_bytes(NARROW)
    (tmp_path / "narrow").chmod(0o755)
    try:
        process = spawn([tmp_path / "narrow"])
    except OSError:
        pytest.skip("this kernel runs no programs of 32 bits")
    try:
        wait_until(lambda: Path(f"/proc/{process.pid}/exe").readlink().name == "narrow", "the program")
        assert_refused(memtoll("hold", "-p", str(process.pid)), 3, "32 bits")
        with Program(workload("holder"), "mapped", "4") as program:
            found = hold_of("-p", f"{process.pid},{program.pid}", status=3)
        assert [one["pid"] for one in found["processes"]] == [program.pid]
        assert (found["complete"], found["unread"], found["ended"]) == (False, 1, 0)
    finally:
        end(process)


def test_a_group_without_processes() -> None:
    base = CGROUPS / "memory" if (CGROUPS / "memory").is_dir() else CGROUPS
    cgroup = base / f"memtoll-test-hold-{os.getpid()}"
    with noted("cgroup", cgroup):
        cgroup.mkdir()
        try:
            assert_refused(memtoll("hold", "-c", str(cgroup)), 1, "no processes")
        finally:
            cgroup.rmdir()


def test_targets_that_are_gone() -> None:
    process = spawn(["true"])
    wait_until(lambda: "\nState:\tZ" in Path(f"/proc/{process.pid}/status").read_text(), "the end of true")
    assert_refused(memtoll("hold", "-p", str(process.pid)), 1, "zombie")
    end(process)
    assert_refused(memtoll("hold", "-p", str(process.pid)), 1, f"no process with pid {process.pid}")


def test_targets_that_end_meanwhile() -> None:
    """At any moment of it: all of an answer or none, and one line that says so."""
    for turn in range(12):
        with Program(workload("holder"), "pages", "32") as program:
            looking = spawn([MEMTOLL, "hold", "--json", "-p", str(program.pid)])
            # Each a little later in what it does: by what it has read, not by time.
            reads = functools.partial(has_read, looking, 4 * turn)
            wait_until(reads, "reads", every=0.0001)
            program.process.kill()
            result = finish(looking)
        if result.status == 1:
            assert_refused(result, 1, str(program.pid))
        else:
            assert result.status in (0, 4), result
            assert json.loads(result.stdout)["processes"]


def has_read(process: subprocess.Popen[str], calls: int) -> bool:
    """Whether it has made so many calls that read, or has ended."""
    with suppress(OSError):
        (made,) = re.findall(r"^syscr: (\d+)", Path(f"/proc/{process.pid}/io").read_text(), re.M)
        return int(made) >= calls or process.poll() is not None
    return True


def test_a_closed_reader() -> None:
    with Program(workload("holder"), "mapped", "4") as program:
        done = subprocess.run(
            ["sh", "-c", '"$1" hold --json -p "$2" > /dev/full', "sh", str(MEMTOLL), str(program.pid)],
            capture_output=True, text=True, timeout=100, check=False,
        )  # fmt: skip
    assert_refused(Result(done.returncode, done.stdout, done.stderr), 1, "write")


HUGE: Final = 2 * MIB


def test_huge_pages_that_are_mostly_zeros() -> None:
    """Of each five small pages are written to; how many there are is the machine's, and the kernel's to say."""
    with Program(workload("holder"), "sparse", "64") as program:
        found = hold(program.pid)
        pages = rollup(program.pid)["AnonHugePages"] // HUGE
    if not pages:
        assert "huge" not in found
        return
    use = found["huge"]
    assert (use["pages"], use["looked"]) == (pages, pages)
    assert use["zero"] == use["zero_low"] == use["zero_high"] == pages * (HUGE - 5 * PAGE)
    (advice,) = (each for each in found["verdict"]["advice"] if each["code"] == "huge-pages")
    assert advice["bytes"] == use["zero"]


# Looks of a recording.


def looks(path: Path) -> int:
    return int(query(path, "SELECT COUNT(*) FROM hold_look")[0][0]) if path.exists() else 0


def has_looks(path: Path, count: int) -> bool:
    return looks(path) >= count


def test_a_leak_has_its_line(out: Path) -> None:
    """Blocks that stay are told from those that come and go, by the same wrapper of malloc."""
    leaks = 3
    with Program(workload("holder"), "full", "8") as program:
        tracer = start_record(out, "--hold", "1s", "-p", str(program.pid))
        wait_attached(tracer, program.pid)
        wait_until(lambda: looks(out) >= 1, "the first look", every=0.1)
        for _ in range(leaks):
            ask(program, "leak")
            before = looks(out)
            # Of the next two one at least began after it.
            wait_until(functools.partial(has_looks, out, before + 2), "two more looks", every=0.1)
        tracer.send_signal(signal.SIGINT)
        result = finish(tracer)
    assert result.status == 0, result
    recording = load(out, result)
    found = recording.report["hold"]
    assert (found["grows"], found["complete"]) == (True, True), found
    assert found["looks"] == found["seen"] > 2 * leaks
    # At rest before the first look and after the last: what malloc itself says lives.
    grown = program.lines[-1]["uordblks"] - program.lines[0]["uordblks"]
    assert found["grown_bytes"] == pytest.approx(grown, rel=0.02)
    assert found["parts"]["live"]["last"] - found["parts"]["live"]["first"] == found["grown_bytes"]
    site = found["site"]
    assert (site["call"], site["made"], site["freed"], site["in_part"]) == ("malloc", leaks * LEAKED, 0, False)
    assert site["bytes"] == leaks * LEAKED * 100_000
    assert f"called at holder.c:{site_line('holder.c', 'leak')} (leak)" in site["place"]
    for options in ((), ("--full",)):
        text = " ".join(memtoll("report", *options, out).stdout.split())
        assert "Live blocks grew by " in text and f"{leaks * LEAKED} made and 0 freed" in text
    assert "HOLD (" in text


def pinned_by(out: Path, shape: str, *options: str) -> tuple[dict[str, Any], str]:
    """Of a holder that takes up a shape while it is recorded, what live blocks keep; and the report in text."""
    with Program(workload("holder"), "none", "8") as program:
        tracer = start_record(out, "--hold", "1s", *options, "-p", str(program.pid))
        wait_attached(tracer, program.pid)
        ask(program, shape)
        before = looks(out)
        wait_until(functools.partial(has_looks, out, before + 2), "two more looks", every=0.1)
        tracer.send_signal(signal.SIGINT)
        result = finish(tracer)
        assert result.status == 0, result
        found = hold(program.pid)["malloc"]
        # Each of its blocks begins so.
        assert {pin["hint"] for pin in found["pins"] if pin["size"] == 96} in (set(), {"staying"})
    recording = load(out, result)
    return recording.report["hold"], " ".join(memtoll("report", "--full", out).stdout.split())


def test_blocks_on_pages_have_their_line(out: Path) -> None:
    """Small ones, sampled: one of 11 of them; all the others are of the same call site by estimate."""
    found, text = pinned_by(out, "pages", "--overhead-limit", "none", "--sample", "1K")
    pages = [pin for pin in found["pinned"] if pin["at"] == "page"]
    named = [pin for pin in pages if pin["call"]]
    place = f"called at holder.c:{site_line('holder.c', 'stay')} (stay)"
    assert [pin["call"] for pin in named] == ["malloc"] and place in named[0]["place"], pages
    kept = found["parts"]["pinned"]["last"]
    assert sum(pin["bytes"] for pin in pages) == pytest.approx(kept, rel=0.02)
    # Of 2047 blocks 183 are expected to be chosen: half as many would be seven standard deviations fewer.
    assert 0.5 * kept < named[0]["bytes"] <= kept
    assert (named[0]["size"], named[0]["hint"]) == (96, "staying")
    assert place in text and "Free, but kept on pages with live blocks" in text


def test_a_block_at_the_end_has_its_line(out: Path) -> None:
    """Of many freed blocks one that stays is the last; by the smallest mean nearly all are chosen."""
    found, text = pinned_by(out, "top", "--overhead-limit", "none", "--sample", "16")
    (end,) = [pin for pin in found["pinned"] if pin["at"] == "end"]
    place = f"called at holder.c:{site_line('holder.c', 'stay')} (stay)"
    assert (end["call"], end["size"], end["blocks"]) == ("malloc", 208, 1) and place in end["place"]
    assert end["bytes"] == pytest.approx(8 * MIB, rel=0.01)
    assert place in text and "until malloc_trim(0) is called" in text


CLASSES: Final = """
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <unistd.h>
namespace shop { struct Session { virtual ~Session() {} virtual void serve(); char rest[72]; }; }
void shop::Session::serve() {}
static void *between[5003];
int main()
{
	for (auto &block : between) {
		block = memset(malloc(3900), 1, 3900);
		new shop::Session;
	}
	for (auto &block : between)
		free(block);
	puts("{\\"ready\\": true}");
	fflush(stdout);
	getchar();
}
"""


@pytest.mark.parametrize("stripped", [False, True])
def test_objects_of_a_class(tmp_path: Path, stripped: bool) -> None:
    """By the name of its vtable, or where that is stripped, by its type_info."""
    (tmp_path / "classes.cpp").write_text(CLASSES)
    flags = ["-std=c++17", "-O1", "-fno-builtin", "-w", *(["-s"] if stripped else [])]
    subprocess.run([tool("g++"), *flags, "-o", tmp_path / "classes", tmp_path / "classes.cpp"], check=True, timeout=60)
    with Program(tmp_path / "classes") as program:
        found = hold(program.pid)
    (advice,) = [one for one in found["verdict"]["advice"] if one["code"] == "pinned"]
    assert "most with a pointer to vtable for shop::Session" in advice["text"]
    pin = found["malloc"]["pins"][0]
    assert (pin["size"], pin["hint"]) == (96, "vtable for shop::Session")
    assert 5000 <= pin["count"] <= 5003


TURNS_MS: Final = 4_000


def test_what_a_trim_costs_is_forecast(out: Path) -> None:
    """By what is used of it meanwhile; then it is trimmed, and the same again for as long tells its faults."""
    with Program(workload("holder"), "top", "32") as program:
        tracer = start_record(out, "--hold", "1s", "--overhead-limit", "none", "-p", str(program.pid))
        wait_attached(tracer, program.pid)
        before = looks(out)
        wait_until(functools.partial(has_looks, out, before + 1), "a look", every=0.1)
        warm = ask(program, f"turn {TURNS_MS}")
        before = looks(out)
        wait_until(functools.partial(has_looks, out, before + 2), "two more looks", every=0.1)
        tracer.send_signal(signal.SIGINT)
        result = finish(tracer)
        assert result.status == 0, result
        gave = ask(program, "trim")
        cold = ask(program, f"turn {TURNS_MS}")
    found = load(out, result).report["hold"]["trim"]
    assert not found["in_part"]
    assert found["bytes"] == pytest.approx(gave["before"] - gave["after"], rel=0.1)
    # In both it is one time that the turns took, whatever looks came before and after.
    forecast = found["refaults_per_s"] * found["seconds"]
    refaults = cold["faults"] - warm["faults"]
    assert refaults > 1000
    assert refaults / 1.5 <= forecast <= refaults * 1.5, (found, warm, cold)
    text = " ".join(memtoll("report", "--full", out).stdout.split())
    assert "malloc_trim(0) now would give back" in text and "pages a second would be faulted in again" in text


def test_what_a_program_trims_itself_is_not_used(out: Path) -> None:
    """It is free before and after, and as it has been given back, nothing of it would be faulted in again."""
    with Program(workload("holder"), "top", "32") as program:
        tracer = start_record(out, "--hold", "1s", "--overhead-limit", "none", "-p", str(program.pid))
        wait_attached(tracer, program.pid)
        wait_until(functools.partial(has_looks, out, 1), "a look", every=0.1)
        for _ in range(3):
            told = ask(program, "trim")
            before = looks(out)
            wait_until(functools.partial(has_looks, out, before + 1), "another look", every=0.1)
        tracer.send_signal(signal.SIGINT)
        assert finish(tracer).status == 0
    rows = query(out, "SELECT pages, used_pages FROM hold_reuse ORDER BY look")
    assert told["before"] - told["after"] < MIB
    assert len(rows) >= 3 and {pages for pages, _ in rows} == {rows[0][0]}
    assert rows[0][0] > 31 * MIB / PAGE
    # To read what is resident takes a buffer.
    assert all(used <= 8 for _, used in rows), rows


def test_blocks_from_before_have_what_they_begin_with(out: Path) -> None:
    with Program(workload("holder"), "pages", "8") as program:
        tracer = start_record(out, "--hold", "1s", "-p", str(program.pid))
        wait_attached(tracer, program.pid)
        wait_until(lambda: looks(out) >= 1, "the first look", every=0.1)
        tracer.send_signal(signal.SIGINT)
        result = finish(tracer)
        text = memtoll("hold", "-p", str(program.pid)).stdout
    found = load(out, result).report["hold"]["pinned"]
    assert [(pin["call"], pin["place"], pin["size"], pin["hint"]) for pin in found] == [(None, None, 96, "staying")]
    assert "most begin with a pointer to staying" in text
    full = " ".join(memtoll("report", "--full", out).stdout.split())
    assert "that were not seen made, most of 96 bytes with a pointer to staying first" in full


def test_a_command_that_ends_has_no_last_look(out: Path) -> None:
    """What its first ones found is no growth."""
    recording = record(out, "--hold", "1s", command=["/bin/true"])
    assert looks(out) <= 2
    found = recording.report["hold"]
    assert found is None or not found["grows"]
    assert [line for line in recording.result.stderr.splitlines() if "wrote" not in line] == []
