# SPDX-License-Identifier: GPL-2.0
"""What a sentence calls a place: the first frame of the program's own code. The stack keeps them all."""

from __future__ import annotations

from pathlib import Path

import pytest

from facts import US, Facts, S
from harness import memtoll

OWN = ("worker", "/home/me/worker.c", 42)
LIBC = "/usr/lib/x86_64-linux-gnu/libc.so.6"

# Frames between the allocator and the program's own, that no sentence names.
LIBRARY: dict[str, tuple[str, str, int, str]] = {
    "operator": ("operator new(unsigned long)", "", 0, "/usr/lib/x86_64-linux-gnu/libstdc++.so.6.0.30"),
    "own operator": ("operator new(unsigned long)", "/home/me/new.cc", 7, "/srv/program"),
    "header": ("allocate", "/usr/include/c++/12/bits/new_allocator.h", 137, "/srv/program"),
    "libc++": ("allocate", "/usr/lib/llvm-14/include/c++/v1/memory", 99, "/srv/program"),
    "template": ("std::vector<int>::push_back(int&&)", "", 0, "/srv/program"),
    "rust": ("alloc::alloc::alloc_zeroed", "/rustc/59807616/library/alloc/src/alloc.rs", 178, "/srv/program"),
    "rust names": ("<alloc::vec::Vec<T,A> as core::ops::Drop>::drop", "", 0, "/srv/program"),
    "rust drop": ("core::ptr::drop_in_place", "", 0, "/srv/program"),
    "rust shim": ("__rust_alloc", "", 0, "/srv/program"),
    "frozen": ("_call_with_frames_removed", "<frozen importlib._bootstrap>", 241, ""),
    "python": ("decode", "/usr/lib/python3.11/json/decoder.py", 337, ""),
    "interpreter": ("PyByteArray_Resize", "/build/Objects/bytearrayobject.c", 233, "/usr/bin/python3.11"),
    "python's own extension": (
        "new_mmap_object",
        "/build/Modules/mmapmodule.c",
        1356,
        "/opt/py/lib/python3.12/lib-dynload/mmap.so",
    ),
    "go": ("runtime.mallocgc", "/usr/lib/go-1.19/src/runtime/malloc.go", 1100, "/srv/program"),
    "v8": ("v8::internal::Heap::Allocate(unsigned long)", "", 0, "/usr/bin/node"),
    "node": ("ossl_namemap_name2num", "", 0, "/usr/bin/node"),
    "node's script": ("fill", "node:buffer", 1027, "[jit]"),
    "builtin": ("Builtin:ArrayFill", "", 0, "[jit]"),
    "java": ("java.util.Arrays.fill(byte[])", "", 0, "[jit]"),
    "java stub": ("new_type_array Runtime1 stub", "", 0, "[jit]"),
    "java's second compiler's": ("_new_array_Java", "", 0, "[jit]"),
    "java's second compiler's, later": ("C2 Runtime new_array", "", 0, "[jit]"),
    "jvm": ("MemAllocator::allocate() const", "", 0, "/usr/lib/jvm/java-17/lib/server/libjvm.so"),
    "java's start": ("JavaMain", "", 0, "/usr/lib/jvm/java-17/lib/libjli.so"),
    "java's native code": ("Java_java_nio_MappedMemoryUtils_force0", "", 0, "/usr/lib/jvm/java-17/lib/libnio.so"),
    "php": ("zend_hash_destroy", "", 0, "/usr/bin/php8.2"),
    "ruby": ("ruby_xmalloc2", "", 0, "/usr/lib/x86_64-linux-gnu/libruby-3.1.so.3.1.2"),
    "lua": ("lua_pcall", "", 0, "/usr/bin/luajit"),
    "glibc": ("_int_malloc", "/build/malloc.c", 4000, LIBC),
    "static": ("_int_malloc", "/build/malloc.c", 4000, "/srv/program"),
    "mimalloc": ("mi_heap_malloc", "", 0, "/opt/lib/libmimalloc.so.2.0"),
    "xmalloc": ("xmalloc", "/home/me/xmalloc.c", 11, "/srv/program"),
}

# Frames that look alike and are the program's.
NOT_LIBRARY: dict[str, tuple[str, str, int, str]] = {
    "namespace core": ("core::Engine::run(int)", "", 0, "/srv/program"),
    "site packages": ("solve", "/usr/lib/python3/dist-packages/solver/main.py", 7, ""),
    "a name that begins like a system call's": ("mmap_region", "/home/me/region.c", 0, "/srv/program"),
    "an extension of its own": ("scan", "/home/me/scan.c", 7, "/opt/py/lib/python3.12/site-packages/scan.so"),
    "argument": ("take(std::vector<int>)", "", 0, "/srv/program"),
    "a script's function": ("fill", "/srv/buffer.js", 17, "[jit]"),
    "a class of its own": ("org.acme.java.Pool.make(java.lang.String)", "", 0, "[jit]"),
    "operator of its own": ("Pool::operator new(unsigned long)", "", 0, "/srv/program"),
    "trait for a type of its own": ("<worker::Job as core::fmt::Display>::fmt", "", 0, "/srv/program"),
}


def named(facts: Facts, *frames: tuple[str, str, int, str]) -> str:
    stack = facts.stack(*(frame[:3] for frame in frames))
    for depth, frame in enumerate(frames):
        facts.database.execute(
            "UPDATE frame SET module = ? WHERE frame_id = (SELECT frame_id FROM stack_frame"
            " WHERE stack_id = ? AND depth = ?)",
            (frame[3], stack, depth),
        )
    place = facts.one("SELECT code, caller FROM stack_place WHERE stack_id = ?", stack)
    lines = facts.rows("SELECT name FROM stack_line WHERE stack_id = ? ORDER BY depth", stack)
    assert [line["name"] for line in lines] == [frame[0] or "?" for frame in frames]
    return str(place["caller"])


@pytest.mark.parametrize("what", LIBRARY)
def test_library_code_is_not_named(what: str) -> None:
    malloc = ("malloc", "", 0, LIBC)
    assert named(Facts(), malloc, LIBRARY[what], (*OWN, "/srv/program")) == "worker.c:42 (worker)"


@pytest.mark.parametrize("what", NOT_LIBRARY)
def test_own_code_is_named(what: str) -> None:
    frame = NOT_LIBRARY[what]
    # Its caller has no line: else that would be preferred.
    assert frame[0] in named(Facts(), ("malloc", "", 0, LIBC), frame, ("main", "", 0, "/srv/program"))


def test_allocator_that_a_process_maps_is_not_named() -> None:
    facts = Facts()
    facts.process()
    facts.allocator("ours")
    own = (*OWN, "/srv/program")
    assert named(facts, ("malloc", "", 0, LIBC), ("refill", "", 0, "/opt/libours.so"), own) == "worker.c:42 (worker)"


def test_own_code_without_a_name_comes_before_a_library() -> None:
    start = ("_start", "", 0, "/srv/program")
    assert named(Facts(), ("malloc", "", 0, LIBC), ("", "", 0, "/srv/program"), start).startswith("program+0x")


def test_a_library_alone_is_named() -> None:
    assert named(Facts(), ("malloc", "", 0, LIBC), LIBRARY["python"]) == "decoder.py:337 (decode)"


@pytest.mark.parametrize(("touched", "where"), [("own", "in memory of mmap"), ("runtime", "for mmap at malloc.go:97")])
def test_a_runtime_is_not_named_beside_own_code(touched: str, where: str) -> None:
    """It maps memory on a stack of its own, in which no line is the program's."""
    facts = Facts()
    facts.prices()
    facts.slice()
    facts.process()
    facts.cpu(10 * S)
    runtime = ("runtime.sysMap", "/usr/local/go/src/runtime/malloc.go", 97)
    made = facts.stack(("runtime.mmap", "", 0), runtime)
    code = facts.stack(("main.make", "/srv/main.go", 4) if touched == "own" else runtime)
    facts.fault("zero", 1_000_003, 6 * US, allocated_stack=made, allocated_call="mmap", touched_stack=code)
    sentence = facts.one("SELECT sentence FROM verdict")["sentence"]
    assert f"most {where}" in sentence
    assert ("touched at main.go:4 (main.make)" in sentence) == (touched == "own")
    assert ("malloc.go" in sentence) == (touched == "runtime")


@pytest.mark.parametrize(
    ("executable", "hint"),
    [
        ("/usr/bin/node", "--perf-basic-prof"),
        ("/opt/jdk/bin/java", "--jvm-perfmap"),
        ("/opt/jdk/bin/java", "Compiler.perfmap"),
        ("/srv/vm", "/tmp/perf-PID.map"),
    ],
)
def test_how_code_made_at_run_time_gets_names(executable: str, hint: str) -> None:
    facts = Facts()
    facts.prices()
    facts.slice()
    facts.process(executable=executable)
    facts.cpu(S)
    facts.samples("user", 20, facts.stack(("", "", 0), ("main", "", 0)))
    facts.samples("user", 80, facts.stack(("main", "/srv/main.c", 4)))
    facts.database.execute("UPDATE frame SET module = '' WHERE function = ''")
    (note,) = [row["text"] for row in facts.rows("SELECT text FROM note") if "made at run time" in row["text"]]
    assert "in stacks of 20 % of the time" in note and hint in note
    facts.database.execute("UPDATE frame SET module = '[jit]', function = 'go' WHERE function = ''")
    assert not [row for row in facts.rows("SELECT text FROM note") if "made at run time" in row["text"]]


@pytest.mark.slow
@pytest.mark.parametrize(("told", "mappings"), [(False, True), (True, True), (False, False)])
def test_places_in_no_file_are_said_on_the_page(tmp_path: Path, told: bool, mappings: bool) -> None:
    """Where no other code tells the place; of code that was not seen to be mapped it is not said how it was made."""
    path = tmp_path / "a.memtoll"
    facts = Facts(path)
    facts.prices()
    facts.slice()
    facts.process()
    facts.cpu(S)
    caller = ("run", "/srv/run.c", 9) if told else ("lua_pcall", "", 0)
    facts.samples("memset", 100, facts.stack(("", "", 0), caller))
    facts.database.execute("UPDATE frame SET module = '' WHERE function = ''")
    facts.database.execute("UPDATE frame SET module = '/usr/bin/luajit' WHERE function = 'lua_pcall'")
    if not mappings:
        facts.row("not_captured", toll="map", reason="mapping calls were not traced")
    (note,) = [row["text"] for row in facts.rows("SELECT text FROM note") if "has no names" in row["text"]]
    assert ("made at run time" in note) == ("/tmp/perf-PID.map" in note) == mappings
    assert ("--probes" in note) == (not mappings)
    facts.save()
    page = " ".join(memtoll("report", path).stdout.split())
    assert ("100 % of the time is at code in no file, without names: --full" in page) == (not told)


def test_python_copies_what_it_only_reads() -> None:
    facts = Facts()
    facts.prices()
    facts.slice()
    facts.process()
    facts.cpu(10 * S)
    stack = facts.stack(("_Py_IncRef", "", 0), ("count", "/srv/job.py", 7))
    facts.fault("cow", 1_000_003, 6 * US, touched_stack=stack)
    text = "SELECT text FROM finding WHERE code = 'cow'"
    assert "Write less after the fork" in facts.one(text)["text"]
    facts.database.execute("UPDATE frame SET kind = 'python' WHERE function = 'count'")
    said = facts.one(text)["text"]
    assert "gc.freeze()" in said and "reference count" in said and "Write less" not in said


@pytest.mark.parametrize(
    ("frames", "said"),
    [
        (
            ("update_refs", "gc_collect_main", "gc_collect", "cfunction_vectorcall_NOARGS"),
            "by Python's garbage collector",
        ),
        (("",), "gc.freeze() does not help there"),
        (("list_iter_next",), "gc.freeze() does not help there"),
        # Stripped: it may be either.
        (("", "", "", "PyObject_Vectorcall"), "Call gc.freeze() before the fork and gc.disable() in the child"),
    ],
)
def test_python_copies_by_its_collector_or_by_its_counts(frames: tuple[str, ...], said: str) -> None:
    facts = Facts()
    facts.prices()
    facts.slice()
    facts.process()
    facts.cpu(10 * S)
    stack = facts.stack(*((name, "", 0) for name in frames), ("count", "/srv/job.py", 7))
    facts.database.execute("UPDATE frame SET kind = 'python' WHERE function = 'count'")
    facts.fault("cow", 1_000_003, 6 * US, touched_stack=stack)
    # What it takes that had become its own is no copy.
    facts.fault("reuse", 2_000_003, US)
    assert said in " ".join(facts.one("SELECT text FROM finding WHERE code = 'cow'")["text"].split())
