# SPDX-License-Identifier: GPL-2.0
"""What a language's own words for an advice are: by the frames of the stacks that it is about."""

from __future__ import annotations

import re
from dataclasses import dataclass

import pytest

from facts import MIB, US, Facts, S

GO = "/usr/local/go/src/runtime"


@dataclass(frozen=True)
class Shape:
    frames: tuple[tuple[str, str, int], ...]
    said: str  # "": nothing
    module: str = "/srv/program"
    python: str = ""  # of these files


SHAPES = {
    "C": Shape((("memset", "", 0), ("main", "/srv/main.c", 3)), ""),
    "Go": Shape(
        (("runtime.memclrNoHeapPointers", f"{GO}/memclr_amd64.s", 127), ("main.answer", "/srv/main.go", 14)),
        "In Go make() clears what it returns: keep the slice",
    ),
    "Rust": Shape((("memset", "", 0), ("job::fill", "/srv/src/main.rs", 3)), "In Rust Vec::with_capacity() does not"),
    "Java": Shape(
        (("Copy::fill_to_memory_atomic", "copy.cpp", 9), ("Unsafe_SetMemory0", "unsafe.cpp", 7)),
        "In Java an array or a ByteBuffer is cleared when it is made",
        module="/usr/lib/jvm/lib/server/libjvm.so",
    ),
    "JavaScript": Shape(
        (("memset", "", 0), ("uv__run_check", "loop-watcher.c", 67)),
        "In Node.js Buffer.allocUnsafe() does not clear",
        module="/usr/bin/node",
    ),
    "Python, a socket": Shape(
        (("sock_recv_impl", "socketmodule.c", 7), ("fetch", "/srv/client.py", 5)),
        "In Python socket.recv_into()",
        python="/srv/client.py",
    ),
    "Python, something else": Shape(
        (("fill", "fill.c", 7), ("fetch", "/srv/client.py", 5)), "", python="/srv/client.py"
    ),
}


@pytest.mark.parametrize("name", SHAPES)
@pytest.mark.slow
def test_clearing_in_a_language(name: str) -> None:
    shape, made = SHAPES[name], Facts()
    made.prices()
    made.slice()
    made.process()
    made.cpu(S)
    stack = made.stack(*shape.frames, module=shape.module)
    made.database.execute("UPDATE frame SET kind = 'python' WHERE file = ?", (shape.python,))
    made.samples("memset", 90, stack)
    made.samples("user", 9)
    text = made.one("SELECT text FROM finding WHERE code = 'memset-app'")["text"]
    assert "Clear only the part that was used, or once instead of every round." in text
    found = re.search(r"\. (In (?:[A-Z]\S+) .*)$", text)
    assert (found[1] if found else "").startswith(shape.said)
    assert bool(found) == bool(shape.said), text


@pytest.mark.parametrize(
    ("above", "said"),
    [
        ((("runtime/debug.FreeOSMemory", f"{GO}/debug/garbage.go", 173), ("main.rest", "/srv/main.go", 9)), "Free"),
        ((("runtime.bgscavenge", f"{GO}/mgcscavenge.go", 653),), "GOGC=off"),
    ],
    ids=["FreeOSMemory", "scavenger"],
)
def test_memory_that_go_gives_back(above: tuple[tuple[str, str, int], ...], said: str) -> None:
    made = Facts()
    made.prices()
    made.slice()
    made.process()
    made.cpu(S)
    gave = made.stack(("runtime.madvise", f"{GO}/sys_linux_amd64.s", 556), *above)
    got = made.stack(("main.fill", "/srv/main.go", 5))
    made.fault("zero", 100_003, 5_000, touched_stack=got)
    made.gave("dontneed", gave, 11, 100_003 * 4096, gave_call="")
    made.again("dontneed", gave, got, 100_003, gave_call="", got_call="")
    (row,) = made.rows("SELECT code, text FROM finding WHERE code IN ('own-storm', 'allocator-storm')")
    assert row["code"] == ("own-storm" if said == "Free" else "allocator-storm")
    assert said in row["text"] and "In Go " in row["text"]


NODE = "/usr/bin/node"
JVM = "/usr/lib/jvm/lib/server/libjvm.so"
MARKED = "objArrayOopDesc::oop_iterate_range<G1MarkAndPushClosure>(G1MarkAndPushClosure*, int, int)"


@pytest.mark.parametrize(
    ("frames", "module", "said"),
    [
        (((MARKED, "x.cpp", 9), ("GangWorker::loop()", "x.cpp", 9), ("start_thread", "", 0)), JVM, "-Xmx"),
        (((MARKED, "x.cpp", 9), ("WorkerThread::run()", "x.cpp", 9)), JVM, "-Xmx"),
        ((("SerialFullGC::follow_stack()", "x.cpp", 9), ("VM_GenCollectFull::doit()", "x.cpp", 7)), JVM, "-Xmx"),
        ((("OptoRuntime::new_array_C", "x.cpp", 9), ("Clears.answer(int)", "", 0)), JVM, ""),
        ((("vframeStream::fill", "x.cpp", 9), ("VM_GetAllStackTraces::doit()", "x.cpp", 7)), JVM, ""),
        ((("runtime.scanobject", f"{GO}/mgcmark.go", 9), ("runtime.gcDrain", f"{GO}/mgcmark.go", 7)), "", "GOMEMLIMIT"),
        ((("main.walk", "/srv/main.go", 9),), "", ""),
        (
            (("v8::internal::ConcurrentMarking::JobTask::Run(v8::JobDelegate*)", "x.cc", 9),),
            NODE,
            "--max-old-space-size",
        ),
        ((("node::Buffer::Fill", "x.cc", 9),), NODE, ""),
    ],
)
def test_collectors_that_touch_what_is_on_swap(
    frames: tuple[tuple[str, str, int], ...], module: str, said: str
) -> None:
    made = Facts()
    made.prices()
    made.meta(memory_bytes=str(16_384 * MIB), swap_in_counted="1")
    made.slice()
    made.process()
    made.memory_cgroup(80 * MIB)
    made.cpu(S, rss_bytes=79 * MIB, swap_bytes=82 * MIB)
    heap = made.stack(("mmap", "", 0), ("reserve", "/srv/heap.c", 17))
    owners = {"allocated_stack": heap, "allocated_call": "mmap", "touched_stack": made.stack(*frames, module=module)}
    made.fault("zero", 40_009, 2 * US, **owners)
    made.fault("swap_major", 20_011, 20 * US, **owners)
    made.access("mmap", heap, 40_009, 20_011)
    made.swap("out_self", 40_009)
    made.swap("in_device", 20_011)
    (row,) = made.rows("SELECT text FROM finding WHERE code = 'swap-in'")
    assert ("the collector touches them" in row["text"]) == bool(said) and said in row["text"], row


def test_rows_can_be_said() -> None:
    """Codes that there are, and languages that a frame may have."""
    made = Facts()
    codes = made.rows(
        "SELECT i.position FROM idiom i WHERE NOT EXISTS (SELECT 1 FROM advice a WHERE a.code GLOB i.code)"
    )
    assert codes == []
    reasons = {
        row["language"]
        for row in made.rows("SELECT DISTINCT SUBSTR(reason, 1, INSTR(reason, ':') - 1) AS language FROM library_code")
    }
    assert {row["language"] for row in made.rows("SELECT DISTINCT language FROM idiom")} <= reasons
