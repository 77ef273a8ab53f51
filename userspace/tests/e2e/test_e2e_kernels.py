# SPDX-License-Identifier: GPL-2.0
"""Debian's kernels: memtoll loads, attaches and counts exactly in each. Needs no root: they run under emulation.

MEMTOLL_KERNELS names suites of Debian; those of `make test-kernels` are in the Makefile. Counts and bytes are
asserted, no times, and so no verdict: an emulated processor has none of its own, and few samples come. A kernel that
cannot be had, a guest that does not boot and one that does not swap as a case needs it leave the test undecided, after
three tries: of those none tells anything about memtoll.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
from concurrent.futures import Future, ThreadPoolExecutor
from functools import cached_property
from pathlib import Path
from typing import Final

import pytest

import kernels
from faults import Faults
from harness import MEMTOLL, MIB, PAGE, Recording, Result, integrity, load, query, tool, workload
from relocations import Relocations, assert_subset
from suite import undecided

pytestmark = pytest.mark.guest

# One boot of each, all cases.
SUITES: Final = [name for name in os.environ.get("MEMTOLL_KERNELS", "bookworm trixie").split() if name != "systemd"]
# Two at a time: each has one processor, and works for a minute.
AT_A_TIME: Final = 2
# A guard against hangs: two guests beside eight busy processes have taken ten minutes.
SECONDS: Final = 1200
OLDEST: Final = (5, 15)

TEN: Final = 10 * MIB
CALLS: Final = 101
ATTACHED_CALLS: Final = 53
PAGES: Final = 1009
COPIED: Final = 503
MAPPED: Final = 101
# Since when something tells of mapping calls and reads that are not watched.
TELLS: Final = (6, 12)
CHUNKS: Final = 5
# Faults that the two counts may differ by, as the report's own check has it.
SLACK: Final = 3
LIMIT: Final = 24 * MIB
# Classes of first writes.
ZEROED: Final = ("zero", "zero_huge", "zero_upgrade", "zero_mthp")
CHUNK_PAGES: Final = 8 * MIB // PAGE
FILLED: Final = CHUNKS * CHUNK_PAGES
# All of it comes back in each of two passes; how much of the last one's is there still is the kernel's matter.
# Since when the kernel has functions that tell what memory.stat does.
KFUNCS: Final = (7, 0)
FIGURES: Final = {
    *("usage", "anon", "file", "shmem", "pgfault", "pgmajfault", "workingset_refault_anon", "workingset_refault_file"),
    *("pgscan", "pgsteal", "high", "max", "oom_kill"),
}
THIN: Final = "/sys/fs/cgroup/thin"
LATE: Final = "/sys/fs/cgroup/late"
FILE: Final = "/files/data"
FILE_PAGES: Final = 4001
FILE_LIMIT: Final = 8 * MIB
WATCHED: Final = "/sys/fs/cgroup/watched"
WANTED: Final = {"swap": kernels.Swapping(int(2 * FILLED * 0.85), int(2 * FILLED * 1.15))}


def recorded(name: str, *command: str) -> list[str]:
    return ["memtoll", "record", "-o", f"/out/{name}.memtoll", "--force", "--overhead-limit", "none", "--", *command]


def shell(*lines: str) -> list[str]:
    return ["sh", "-c", "\n".join(lines)]


CASES: Final = {
    "doctor": ["memtoll", "doctor", "--json"],
    "calloc": recorded("calloc", "calloc_loop", str(TEN), str(CALLS)),
    # One recording of several programs: classes of faults, and forks.
    "programs": recorded("programs", *shell(f"touch-pages {PAGES} small rw", f"cow fork {COPIED} 3", "forker")),
    "swap": [
        *shell("mkdir -p /sys/fs/cgroup/small", f"echo {LIMIT} >/sys/fs/cgroup/small/memory.max", 'exec "$@"'),
        "sh",
        *recorded("swap", *shell("echo $$ >/sys/fs/cgroup/small/cgroup.procs", f"exec pagez {CHUNKS} 3")),
    ],
    # None is on when it starts; it looks at the end of each slice. 6.1 does not tell what goes out: nothing follows.
    "late": shell(
        f"mkdir {LATE} && echo {LIMIT} >{LATE}/memory.max && swapoff /dev/zram0 || exit 99",
        shlex.join(
            recorded(
                "late",
                *shell(
                    "swapon /dev/zram0",
                    "case $(uname -r) in 6.1.*) tries=0 ;; *) tries=100 ;; esac",
                    "for i in $(seq $tries); do grep -qs rss_stat /proc/$PPID/fdinfo/* && break; sleep 0.1; done",
                    f"echo $$ >{LATE}/cgroup.procs",
                    f"exec pagez {CHUNKS} 1",
                ),
            )
        ),
    ),
    # On a disk in memory, as this machine's is of no matter; without swap, so that it is files that go.
    "thrash": shell(
        "disk=/dev/zram$(cat /sys/class/zram-control/hot_add)",
        "echo 64M >/sys/block/${disk#/dev/}/disksize",
        "mke2fs -b 4096 $disk >/dev/null && mkdir /files && mount -t ext4 $disk /files || exit 99",
        f"dd if=/dev/zero of={FILE} bs={PAGE} count={FILE_PAGES} && sync && echo 3 >/proc/sys/vm/drop_caches",
        f"mkdir {THIN} && echo {FILE_LIMIT} >{THIN}/memory.max && echo 0 >{THIN}/memory.swap.max || exit 99",
        shlex.join(
            recorded("thrash", *shell(f"echo $$ >{THIN}/cgroup.procs", f"exec filewalk {FILE} 3 --random --rare"))
        ),
        "status=$?",
        f"cp {THIN}/memory.stat /out/thrash.stat",
        "exit $status",
    ),
    # By default: four seconds of nothing but getppid, then calls.
    "quiet": [
        *("memtoll", "record", "-o", "/out/quiet.memtoll", "--"),
        *shell(f"printf 'map 1 4000000\\nmap {MAPPED} 20000\\n' | quiet /init none"),
    ],
    # A cgroup with some faults and an idle process; its files tell nothing where there are functions for them.
    "figures": shell(
        f"mkdir {WATCHED}",
        f"sh -c 'echo $$ >{WATCHED}/cgroup.procs; touch-pages {PAGES} small w'",
        f"sh -c 'echo $$ >{WATCHED}/cgroup.procs; exec sleep 600' & idle=$!",
        f"files='{WATCHED}/memory.stat {WATCHED}/memory.events {WATCHED}/memory.current'",
        "if grep -qw bpf_mem_cgroup_memory_events /proc/kallsyms; then",
        "for file in $files; do mount --bind /dev/null $file && [ ! -s $file ] || exit 99; done",
        "fi",
        "memtoll watch -c watched -o /tmp/kept --metrics /out/figures.prom -I 1s -d 2s",
        "status=$?",
        "umount $files 2>/dev/null",
        f"{{ cat {WATCHED}/memory.stat {WATCHED}/memory.events; echo usage $(cat {WATCHED}/memory.current); }}"
        " >/out/figures.files",
        "kill $idle",
        "exit $status",
    ),
    # Two starts: the first looks through all of the kernel's types.
    "types": shell(
        "for start in whole subset; do",
        "MEMTOLL_PRICES=/tmp/kept MEMTOLL_DEBUG=1 memtoll record -o /tmp/$start -- true 2>/out/types.$start || exit",
        "done",
    ),
    "attach": ["attach", "memtoll", "/out/attach.memtoll", "calloc_loop", str(TEN), str(ATTACHED_CALLS), "--wait"],
}


class Boot:
    """One kernel's guest and what was recorded in it."""

    def __init__(self, guest: kernels.Guest) -> None:
        self.guest = guest
        self.known: dict[str, Recording] = {}

    def case(self, name: str) -> kernels.Case:
        return self.guest.cases[name]

    def recording(self, name: str) -> Recording:
        if name not in self.known:
            case = self.case(name)
            result = Result(case.status, case.stdout, case.stderr)
            assert case.status == 0, result
            path = self.guest.out / f"{name}.memtoll"
            self.known[name] = load(path, result)
            assert self.known[name].report["complete"] is True
            assert integrity(path) == "ok"
        return self.known[name]

    @cached_property
    def old(self) -> bool:
        return self.guest.kernel.version < OLDEST


def boot(suite: str, programs: list[Path]) -> Boot:
    return Boot(kernels.boot(kernels.kernel(suite), programs, CASES, WANTED, SECONDS))


@pytest.fixture(scope="module")
def boots(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Future[Boot]]:
    """All kernels, booted side by side; each has come to its end when this is left."""
    # busybox has a command of that name.
    touch = tmp_path_factory.mktemp("programs") / "touch-pages"
    shutil.copy(workload("touch"), touch)
    workloads = map(workload, ("calloc_loop", "cow", "filewalk", "forker", "pagez", "quiet"))
    programs = [MEMTOLL, touch, *workloads, Path(tool("sqlite3"))]
    with ThreadPoolExecutor(AT_A_TIME) as pool:
        return {suite: pool.submit(boot, suite, programs) for suite in SUITES}


@pytest.fixture(params=SUITES)
def any_kernel(request: pytest.FixtureRequest, boots: dict[str, Future[Boot]]) -> Boot:
    try:
        return boots[request.param].result()
    except kernels.Unavailable as error:
        undecided(f"{request.param}: {error}")


@pytest.fixture
def kernel(any_kernel: Boot) -> Boot:
    if any_kernel.old:
        pytest.skip(f"Linux {any_kernel.guest.kernel.release} is refused")
    return any_kernel


def assert_checked(recording: Recording) -> None:
    """All faults that getrusage counted: of the command and its children, as the kernel has them at their end."""
    check = recording.report["checks"]["minor_faults"]
    assert check["ours"] == pytest.approx(check["kernel"], rel=0.01, abs=SLACK)
    # A command that starts takes some; its heap may come in huge pages, by a handful of faults.
    assert check["kernel"] > 50
    # CPU samples in an emulated machine come late or not at all: no losses of counting is what is asked for.
    lost = {name for name, count in recording.report["losses"].items() if count}
    assert not {name for name in lost if re.search("lost|full|drop|late_attach", name)}, recording.report["losses"]


def test_an_old_kernel_is_refused(any_kernel: Boot) -> None:
    """By one line that says why, and before the program is started."""
    if not any_kernel.old:
        pytest.skip("new enough")
    case = any_kernel.case("calloc")
    assert (case.status, case.stdout) == (3, "")
    (line,) = case.stderr.splitlines()
    assert line.startswith("memtoll: ") and any_kernel.guest.kernel.release in line and "5.15" in line


def test_doctor(kernel: Boot) -> None:
    case = kernel.case("doctor")
    assert (case.status, case.stderr) == (0, "")
    found = json.loads(case.stdout)
    features = {feature["name"]: feature for feature in found["features"]}
    assert all(feature["works"] for feature in features.values() if feature["required"]), features
    mechanisms = {(6, 13): "session", (6, 6): "multi", OLDEST: "perf"}
    expected = next(name for since, name in mechanisms.items() if kernel.guest.kernel.version >= since)
    assert features["uprobes"]["detail"] == f"{expected} links"
    assert features["cgroup figures"]["works"] is (kernel.guest.kernel.version >= KFUNCS)


def test_calloc(kernel: Boot) -> None:
    """Casebook: every block after the first comes from the heap and is cleared by libc."""
    recording = kernel.recording("calloc")
    site = recording.site("calloc_loop.c", "calloc", "calloc")
    assert (site.calls, site.bytes, site.function) == (CALLS, CALLS * TEN, "clear_block")
    assert recording.site("calloc_loop.c", "free", "free").calls == CALLS
    assert recording.toll("zero.libc", "count") == CALLS - 1
    assert recording.toll("zero.libc", "bytes") == pytest.approx((CALLS - 1) * TEN, rel=0.01)
    assert recording.toll("zero.kernel", "bytes") == pytest.approx(TEN, rel=0.2)
    assert_checked(recording)


def test_system_calls_that_need_no_probe(kernel: Boot) -> None:
    """They are left alone where something tells of those that do; what is missed then is counted."""
    recording = kernel.recording("quiet")
    unwatched = recording.report["losses"]["maps_unwatched"]
    sql = "SELECT COALESCE(SUM(calls), 0) FROM map_call WHERE call IN ('mmap', 'munmap')"
    seen = int(query(recording.path, sql)[0][0])
    duty = recording.report["overhead"]["duty_cycle"]
    assert seen + unwatched >= 2 * (MAPPED + 1)
    if kernel.guest.kernel.version >= TELLS:
        assert 0 < duty["syscall"] < 1
        assert 4 <= unwatched < 2 * MAPPED
    else:
        assert unwatched == 0
        assert "syscall" not in duty


def test_types_that_are_looked_through(kernel: Boot) -> None:
    assert kernel.case("types").status == 0, kernel.case("types")
    out = kernel.guest.out
    assert_subset(*(Relocations((out / f"types.{start}").read_text()) for start in ("whole", "subset")))


def test_stacks(kernel: Boot) -> None:
    """Whole, through a libc without frame pointers."""
    recording = kernel.recording("calloc")
    (stack,) = {
        tuple(frame["function"] for frame in row["allocated_at"])
        for row in recording.report["allocations"]
        if row["call"] == "calloc" and row["calls"] == CALLS
    }
    assert stack[1:5] == ("clear_block", "one_round", "run", "main")
    assert stack[-1] == "_start"
    assert recording.report["stacks"]["whole_share"] >= 0.95


def test_faults_by_class(kernel: Boot) -> None:
    """Of processes that count their own: see touch.c and cow.c."""
    recording = kernel.recording("programs")
    touched, cow, _ = recording.witness
    faults = Faults(recording)
    assert touched["faults"][:2] == [PAGES, PAGES]
    read, written = faults.touched("touch.c", "read"), faults.touched("touch.c", "write")
    assert (read.kinds, read.faults, read.pages) == ({"zero_read"}, PAGES, PAGES)
    assert (written.kinds, written.faults, written.pages) == ({"zero_upgrade"}, PAGES, PAGES)
    assert faults.touched("cow.c", "first").of("zero").pages == COPIED
    assert faults.touched("cow.c", "child").of("cow").pages == pytest.approx(3 * COPIED, rel=0.02)
    own = faults.touched("cow.c", "parent")
    assert cow["parent_faults"] == COPIED
    assert (own.kinds, own.faults, own.pages) == ({"reuse"}, COPIED, COPIED)
    assert_checked(recording)


def test_forks(kernel: Boot) -> None:
    recording = kernel.recording("programs")
    truth = recording.witness[-1]
    assert recording.site("forker.c", "parent", "calloc").calls == truth["parent"]
    assert recording.site("forker.c", "child", "calloc").calls == truth["children"]
    roles = {pid: role for pid, role in recording.query("SELECT pid, role FROM process")}
    assert {roles[pid] for pid in truth["child_pids"]} == {"child"}


def test_swap(kernel: Boot) -> None:
    """40 MiB, three times over, in 24 MiB: /proc/vmstat counts what comes back."""
    recording = kernel.recording("swap")
    case, wanted = kernel.case("swap"), WANTED["swap"]
    swapped = case.swapped
    if not wanted.low <= swapped["pswpin"] <= wanted.high:
        undecided(f"the guest brought back {case.tries} pages: the test wants {wanted.low} to {wanted.high}")
    assert recording.toll("swap.in", "pages") == pytest.approx(swapped["pswpin"], rel=0.01)
    filled = Faults(recording).allocated("pagez.c", "malloc").of(*ZEROED)
    # A chunk ends in a page that nobody touches, for the header before it; a huge page may hold that, too.
    beside = CHUNKS if "zero_huge" in filled.kinds else 0
    assert FILLED <= filled.pages <= FILLED + beside, filled
    check = recording.report["checks"]["major_faults"]
    assert check["ours"] == pytest.approx(check["kernel"], rel=0.01, abs=SLACK)
    assert check["kernel"] == pytest.approx(recording.witness[-1]["majflt"], rel=0.01)
    if kernel.guest.kernel.version >= (6, 2):
        assert recording.toll("swap.out", "pages") == pytest.approx(swapped["pswpout"], rel=0.05)
    mine = Faults(recording).touched("pagez.c", "change")
    assert mine.of("swap_zram_major", "swap_major").pages >= 0.98 * swapped["pswpin"], mine.kinds
    assert_checked(recording)


def test_swap_that_is_switched_on_meanwhile(kernel: Boot) -> None:
    """What follows it is loaded only then, into the maps of the others."""
    recording = kernel.recording("late")
    pushed = kernel.case("late").swapped["pswpout"]
    if kernel.guest.kernel.version < (6, 2):
        assert recording.toll("swap.out", "pages") == 0
        return
    if pushed < CHUNK_PAGES // 2:
        undecided(f"the guest pushed out {pushed} pages")
    assert recording.toll("swap.out", "pages") == pytest.approx(pushed, rel=0.05)


def test_files_thrash_in_a_cgroup(kernel: Boot) -> None:
    """Three times in no order over a file of twice the size that the cgroup may have; its own count is the witness."""
    recording = kernel.recording("thrash")
    stat = dict(line.split() for line in (kernel.guest.out / "thrash.stat").read_text().splitlines())
    refaults = int(stat["workingset_refault_file"])
    assert refaults > FILE_PAGES // 2
    cache = recording.report["page_cache"]
    assert recording.witness[-1]["used"] == 3 * FILE_PAGES
    assert cache["filled_pages"] == pytest.approx(recording.witness[-1]["majflt"], abs=32)
    assert cache["again_pages"] == pytest.approx(refaults, abs=32)
    assert (cache["thrash"], cache["path"], cache["limit_bytes"]) == (True, FILE, FILE_LIMIT)
    assert FILE_PAGES * PAGE <= cache["fits_bytes"] <= FILE_PAGES * PAGE + 2 * MIB


def test_attach(kernel: Boot) -> None:
    """A process that was running already."""
    recording = kernel.recording("attach")
    assert recording.site("calloc_loop.c", "calloc", "calloc").calls == ATTACHED_CALLS
    assert recording.site("calloc_loop.c", "free", "free").calls == ATTACHED_CALLS


def test_figures_of_a_cgroup(kernel: Boot) -> None:
    """Those of its files; from the kernel's functions where it has them."""
    case = kernel.case("figures")
    assert case.status == 0, case
    text = (kernel.guest.out / "figures.prom").read_text()
    pattern = r'^memtoll_cgroup_memory_(?:bytes|events_total)\{target="watched",(?:kind|event)="(\w+)"\} (\S+)$'
    told = {name: int(float(value)) for name, value in re.findall(pattern, text, re.M)}
    lines = (line.split() for line in (kernel.guest.out / "figures.files").read_text().splitlines())
    files = {name: int(value) for name, value in lines}
    # What a group of its own is charged in advance comes and goes.
    assert told.pop("usage") == pytest.approx(files.pop("usage"), abs=MIB)
    assert told == {name: value for name, value in files.items() if name in FIGURES}
    assert told["pgfault"] >= PAGES
    if kernel.guest.kernel.version >= KFUNCS:
        assert set(told) == FIGURES - {"usage"}
